# Installs the headers, the library, a CMake package and pkg-config's files, so that users write find_package(tasuki). The
# prefix may be moved: nothing in it names the folder that it was installed to, the build folder or the sources.
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tasuki)
set(data_folder ${CMAKE_INSTALL_DATADIR}/tasuki)
set(libraries tasuki)

# An MPI that `make setup` has put into .deps/ goes with the library, which would not find it otherwise. Another one stays
# where it is, which must not be a folder that only this build has.
cmake_path(GET MPI_C_COMPILER PARENT_PATH mpi_prefix)
cmake_path(GET mpi_prefix PARENT_PATH mpi_prefix)
set(TASUKI_PACKAGE_MPI "") # its folder, from that of the CMake package
cmake_path(IS_PREFIX PROJECT_SOURCE_DIR ${mpi_prefix} NORMALIZE in_sources)
cmake_path(IS_PREFIX PROJECT_BINARY_DIR ${mpi_prefix} NORMALIZE in_build)
if(mpi_prefix MATCHES "^${PROJECT_SOURCE_DIR}/.deps/(openmpi|mpich)$")
  set(mpi_folder ${CMAKE_INSTALL_LIBDIR}/tasuki/${CMAKE_MATCH_1})
  set(TASUKI_PACKAGE_MPI ../../tasuki/${CMAKE_MATCH_1})
  install(DIRECTORY ${mpi_prefix}/ DESTINATION ${mpi_folder} USE_SOURCE_PERMISSIONS COMPONENT tasuki
          PATTERN __pycache__ EXCLUDE)
  set(rpath "$ORIGIN;$ORIGIN/tasuki/${CMAKE_MATCH_1}/lib")
elseif(in_sources OR in_build)
  install(CODE "message(FATAL_ERROR \"Tasuki was built with the MPI in ${mpi_prefix}, a folder inside its sources or its build folder; what is installed would stop to work without it. Build with an MPI that is outside of them (TASUKI_MPI=system), or with one that `make setup` brings (TASUKI_MPI=openmpi or mpich), which is installed too\")"
          COMPONENT tasuki)
else()
  set(rpath "$ORIGIN")
endif()

if(TARGET tasuki_fortran)
  list(APPEND libraries tasuki_fortran)
  get_target_property(modules tasuki_fortran Fortran_MODULE_DIRECTORY)
  install(DIRECTORY ${modules}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tasuki/fortran COMPONENT tasuki)
endif()
if(TARGET tasuki_xmp)
  list(APPEND libraries tasuki_xmp)
  install(DIRECTORY directives/runtime/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tasuki/directives COMPONENT tasuki)
endif()
set_target_properties(${libraries} PROPERTIES INSTALL_RPATH "${rpath}")
if(NOT TASUKI_PACKAGE_MPI)
  set_target_properties(${libraries} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
endif()
install(TARGETS ${libraries} EXPORT tasukiTargets COMPONENT tasuki)
install(DIRECTORY include/tasuki ${TASUKI_WRITTEN}/c/include/tasuki DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT tasuki)
install(DIRECTORY machines DESTINATION ${data_folder} COMPONENT tasuki)
install(FILES LICENSE THIRD-PARTY-NOTICES.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tasuki COMPONENT tasuki)

install(EXPORT tasukiTargets NAMESPACE tasuki:: DESTINATION ${package_folder} COMPONENT tasuki)
# The MPI of the package: where it is, or nothing where it lies beside the library.
set(TASUKI_PACKAGE_MPICC ${MPI_C_COMPILER})
set(TASUKI_PACKAGE_MPIEXEC ${MPIEXEC_EXECUTABLE})
set(TASUKI_PACKAGE_MPIFORT ${TASUKI_MPIFORT})
if(TASUKI_PACKAGE_MPI)
  set(TASUKI_PACKAGE_MPICC "")
  set(TASUKI_PACKAGE_MPIEXEC "")
  set(TASUKI_PACKAGE_MPIFORT "")
endif()
configure_package_config_file(cmake/tasukiConfig.cmake.in ${PROJECT_BINARY_DIR}/tasukiConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tasukiConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tasukiConfig.cmake ${PROJECT_BINARY_DIR}/tasukiConfigVersion.cmake
        DESTINATION ${package_folder} COMPONENT tasuki)

# All that `cmake --install --component tasuki` installs.
add_custom_target(installed DEPENDS ${libraries})
if(TASUKI_MPI_LIBRARY)
  get_property(mpi_libraries DIRECTORY mpi PROPERTY BUILDSYSTEM_TARGETS)
  list(FILTER mpi_libraries INCLUDE REGEX "^tasuki_mpi")
  add_dependencies(installed ${mpi_libraries})
endif()

# pkg-config finds the prefix from where its file lies.
set(TASUKI_PC_MPICC "${MPI_C_COMPILER}")
set(TASUKI_PC_MPIEXEC "${MPIEXEC_EXECUTABLE}")
file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" up ${up})
if(TASUKI_PACKAGE_MPI)
  set(TASUKI_PC_MPICC "\${prefix}/${mpi_folder}/bin/mpicc")
  set(TASUKI_PC_MPIEXEC "\${prefix}/${mpi_folder}/bin/mpirun")
endif()
foreach(library IN LISTS libraries)
  configure_file(cmake/${library}.pc.in ${PROJECT_BINARY_DIR}/${library}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${library}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT tasuki)
endforeach()

# Last: the list of what was installed, from which the prefix can be emptied again, wherever it is then.
install(FILES cmake/uninstall.cmake DESTINATION ${data_folder} COMPONENT tasuki)
install(CODE "set(list_of_files \"${data_folder}/installed.txt\")" COMPONENT tasuki)
install(SCRIPT cmake/list_installed.cmake COMPONENT tasuki)
