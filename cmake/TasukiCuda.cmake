# Adds the GPU sources (src/**/*.cu) to the library. Without such sources, or without nvcc, nothing here has an effect.

# tasuki_add_cuda(TARGET SOURCE...): adds .cu files to a target and tells its C++ sources by TASUKI_HAVE_CUDA.
function(tasuki_add_cuda target)
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT CUDA IN_LIST languages OR NOT ARGN)
    return()
  endif()
  set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES "${CMAKE_CUDA_ARCHITECTURES}" CUDA_STANDARD 20)
  target_sources(${target} PRIVATE ${ARGN})
  target_compile_options(
    ${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:--extended-lambda;--expt-relaxed-constexpr;-Xcompiler=-Wall,-Wextra>")
  target_compile_definitions(${target} PRIVATE TASUKI_HAVE_CUDA)
  target_link_libraries(${target} PRIVATE CUDA::cudart_static)
endfunction()

# tasuki_share_device_functions(TARGET...): functions that are no kernels are compiled once a source. Else each kernel has
# copies of all that it calls, and is compiled with them: ten times as long for a source of ten kernels.
function(tasuki_share_device_functions)
  set_target_properties(${ARGN} PROPERTIES CUDA_SEPARABLE_COMPILATION ON)
endfunction()

# tasuki_find_peer(NAME HEADER LIBRARY...): sets TASUKI_${NAME}_INCLUDE to the folder of a header, and for each library
# TASUKI_${NAME}_${LIBRARY} to the file, if they are in ${NAME}_HOME or in a Python's package nvidia.${name} (PyPI's
# nvidia-${name}-cu*).
function(tasuki_find_peer name header)
  string(TOLOWER ${name} module)
  set(places $ENV{${name}_HOME})
  set(find_package "import importlib.util as u; print(*u.find_spec('nvidia.${module}').submodule_search_locations, sep=';')")
  foreach(python IN ITEMS ${Python3_EXECUTABLE} python3)
    execute_process(COMMAND ${python} -c "${find_package}" OUTPUT_VARIABLE folders OUTPUT_STRIP_TRAILING_WHITESPACE
                    ERROR_QUIET RESULT_VARIABLE code)
    list(APPEND places ${folders})
  endforeach()
  find_path(TASUKI_${name}_INCLUDE ${header} HINTS ${places} PATH_SUFFIXES include)
  foreach(library IN LISTS ARGN)
    find_file(TASUKI_${name}_${library} ${library} HINTS ${places} PATH_SUFFIXES lib lib64)
  endforeach()
endfunction()

# tasuki_use_nvshmem(TARGET): the header of NVSHMEM for a target's CUDA sources, and by BENCH_NVSHMEM_LIBRARY where its
# library is. Without them it does nothing.
function(tasuki_use_nvshmem target)
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT CUDA IN_LIST languages)
    return()
  endif()
  tasuki_find_peer(NVSHMEM nvshmem_host.h libnvshmem_host.so.3)
  if(TASUKI_NVSHMEM_INCLUDE AND TASUKI_NVSHMEM_libnvshmem_host.so.3)
    message(STATUS "NVSHMEM: ${TASUKI_NVSHMEM_libnvshmem_host.so.3}")
    target_include_directories(${target} SYSTEM PRIVATE ${TASUKI_NVSHMEM_INCLUDE})
    target_compile_definitions(${target} PRIVATE "BENCH_NVSHMEM_LIBRARY=\"${TASUKI_NVSHMEM_libnvshmem_host.so.3}\"")
  endif()
endfunction()

# tasuki_add_kernel_peers(TARGET NCCL_SOURCE NVSHMEM_SOURCE): peers whose calls are made in kernels. Each source is there
# in any case, and says that its peer is left out if its headers are not found, or TASUKI_KERNEL_PEERS is off. NCCL's
# library must be of the headers' version: it is opened where it was found, by BENCH_NCCL_LIBRARY. NVSHMEM's calls are in
# a static library, with which its source is linked on the device, apart from all others.
function(tasuki_add_kernel_peers target nccl_source nvshmem_source)
  set(nvshmem_library ${target}-nvshmem)
  add_library(${nvshmem_library} STATIC EXCLUDE_FROM_ALL)
  tasuki_add_cuda(${nvshmem_library} ${nvshmem_source})
  target_link_libraries(${nvshmem_library} PRIVATE tasuki tasuki_flags)
  tasuki_add_cuda(${target} ${nccl_source})
  target_link_libraries(${target} PRIVATE ${nvshmem_library})
  if(NOT TASUKI_KERNEL_PEERS)
    message(STATUS "tasuki-bench-kernel: no peers (TASUKI_KERNEL_PEERS is off)")
    target_compile_definitions(${target} PRIVATE BENCH_NO_NCCL_DEVICE)
    return()
  endif()
  tasuki_find_peer(NCCL nccl_device.h libnccl.so.2)
  if(TASUKI_NCCL_INCLUDE)
    target_include_directories(${target} SYSTEM PRIVATE ${TASUKI_NCCL_INCLUDE})
  endif()
  if(TASUKI_NCCL_libnccl.so.2)
    target_compile_definitions(${target} PRIVATE "BENCH_NCCL_LIBRARY=\"${TASUKI_NCCL_libnccl.so.2}\"")
  endif()
  tasuki_find_peer(NVSHMEM nvshmem_host.h libnvshmem_host.so.3 libnvshmem_device.a)
  set(nvshmem ${TASUKI_NVSHMEM_libnvshmem_device.a} ${TASUKI_NVSHMEM_libnvshmem_host.so.3})
  if(TASUKI_NVSHMEM_INCLUDE AND TASUKI_NVSHMEM_libnvshmem_device.a AND TASUKI_NVSHMEM_libnvshmem_host.so.3)
    target_include_directories(${nvshmem_library} SYSTEM PRIVATE ${TASUKI_NVSHMEM_INCLUDE})
    target_compile_definitions(${nvshmem_library} PRIVATE BENCH_NVSHMEM_DEVICE)
    set_target_properties(${nvshmem_library} PROPERTIES CUDA_SEPARABLE_COMPILATION ON CUDA_RESOLVE_DEVICE_SYMBOLS ON)
    target_link_libraries(${nvshmem_library} PRIVATE ${nvshmem})
  endif()
  set(nccl ${TASUKI_NCCL_INCLUDE} ${TASUKI_NCCL_libnccl.so.2})
  message(STATUS "tasuki-bench-kernel: NCCL's calls in kernels: ${nccl}, NVSHMEM's: ${nvshmem}")
endfunction()

file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS src/*.cu)
if(NOT cuda_sources OR NOT TASUKI_CUDA)
  return()
endif()
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  if(TASUKI_CUDA STREQUAL "AUTO")
    message(STATUS "CUDA: no nvcc found, built without GPU sources")
    return()
  endif()
  message(FATAL_ERROR "TASUKI_CUDA=${TASUKI_CUDA}, but no nvcc found; put it on PATH or set CMAKE_CUDA_COMPILER")
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 90)
endif()
enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.8) # cudaStreamGetDevice
  message(FATAL_ERROR "nvcc is of CUDA ${CMAKE_CUDA_COMPILER_VERSION}; Tasuki needs 12.8 or later. -DTASUKI_CUDA=OFF builds without GPUs")
endif()
find_package(CUDAToolkit REQUIRED)
message(STATUS "CUDA: ${CMAKE_CUDA_COMPILER_VERSION}, architectures ${CMAKE_CUDA_ARCHITECTURES}")
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION) # older CMakes do not know that this nvcc has C++20
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
tasuki_add_cuda(tasuki ${cuda_sources})
