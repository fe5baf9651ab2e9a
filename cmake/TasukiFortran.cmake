# The Fortran module: library tasuki_fortran, wherever there is a Fortran compiler. Contexts over a type(MPI_Comm) come
# along where the MPI that Tasuki is built with has the module mpi_f08 of this compiler.
if(NOT TASUKI_FORTRAN MATCHES "^(ON|OFF|AUTO)$")
  message(FATAL_ERROR "TASUKI_FORTRAN is '${TASUKI_FORTRAN}'; it must be ON, OFF or AUTO")
endif()
set(TASUKI_MPI_F08 OFF)
if(TASUKI_FORTRAN STREQUAL "OFF")
  return()
endif()
include(CheckLanguage)
check_language(Fortran)
if(NOT CMAKE_Fortran_COMPILER)
  if(TASUKI_FORTRAN STREQUAL "AUTO")
    message(STATUS "Fortran: no compiler found, built without the module")
    return()
  endif()
  message(FATAL_ERROR "TASUKI_FORTRAN=ON, but no Fortran compiler was found; put one on PATH or set FC")
endif()
enable_language(Fortran)

# Only the MPI that the library itself uses: another one's module would give communicators that mean nothing to it.
cmake_path(GET MPI_C_COMPILER PARENT_PATH mpi_folder)
find_program(TASUKI_MPIFORT NAMES mpifort mpif90 PATHS ${mpi_folder} NO_DEFAULT_PATH)
if(TASUKI_MPIFORT)
  set(MPI_Fortran_COMPILER ${TASUKI_MPIFORT} CACHE FILEPATH "MPI compiler wrapper")
  find_package(MPI 3.0 COMPONENTS Fortran)
  if(TARGET MPI::MPI_Fortran)
    tasuki_without_rpath(MPI::MPI_Fortran)
  endif()
  if(MPI_Fortran_HAVE_F08_MODULE)
    set(TASUKI_MPI_F08 ON)
  endif()
endif()

# Modules that are written: from the schema of operations, and by scripts for what repeats itself.
set(written_sources ${TASUKI_WRITTEN}/fortran/tasuki_making.f90 ${TASUKI_WRITTEN}/fortran/tasuki_option_structs.f90)
tasuki_write(fortran ${written_sources})
set(writers arrays interfaces)
set(written_modules tasuki_arrays tasuki_c)
foreach(writer module IN ZIP_LISTS writers written_modules)
  set(written ${PROJECT_BINARY_DIR}/fortran/${module}.f90)
  add_custom_command(
    OUTPUT ${written}
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/fortran/${writer}.py ${written}
    DEPENDS ${TASUKI_SCHEMA})
  list(APPEND written_sources ${written})
endforeach()
set(modules ${PROJECT_BINARY_DIR}/fortran/modules)
set(fortran_sources tasuki_structs.f90 tasuki_base.f90 tasuki_operators.f90 tasuki_fields.f90 tasuki_layouts.f90
                    tasuki_operations.f90 tasuki_neighbours.f90 tasuki_lists.f90 tasuki_meshes.f90
                    tasuki_distributions.f90 tasuki.f90)
if(TASUKI_MPI_F08)
  list(APPEND fortran_sources tasuki_mpi.f90)
endif()
list(TRANSFORM fortran_sources PREPEND ${PROJECT_SOURCE_DIR}/fortran/)
add_library(tasuki_fortran SHARED ${fortran_sources} ${written_sources})
add_library(tasuki::tasuki_fortran ALIAS tasuki_fortran)
set_target_properties(
  tasuki_fortran PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${TASUKI_SOVERSION} Fortran_PREPROCESS ON
                            Fortran_MODULE_DIRECTORY ${modules})
target_include_directories(tasuki_fortran PUBLIC $<BUILD_INTERFACE:${modules}>
                                                 $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/tasuki/fortran>)
target_link_libraries(tasuki_fortran PUBLIC tasuki PRIVATE tasuki_flags)
if(TASUKI_MPI_F08)
  target_compile_definitions(tasuki_fortran PRIVATE TASUKI_HAVE_MPI_F08)
  target_link_libraries(tasuki_fortran PUBLIC MPI::MPI_Fortran)
endif()
message(STATUS "Fortran: ${CMAKE_Fortran_COMPILER_ID} ${CMAKE_Fortran_COMPILER_VERSION}, mpi_f08 ${TASUKI_MPI_F08}")
