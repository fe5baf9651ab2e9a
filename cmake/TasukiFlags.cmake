# tasuki_flags: warnings and sanitizers for everything that is compiled here. No -march: the copy kernels choose their
# instructions at run time, so one build serves all x86-64 machines.
add_library(tasuki_flags INTERFACE)
set(cxx_flags -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND cxx_flags -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow
       -Wno-stringop-overread) # gcc 12 sees them in its own std::string (its bug 105651)
endif()
if(TASUKI_WERROR)
  list(APPEND cxx_flags -Werror)
endif()
if(TASUKI_UNITY)
  list(APPEND cxx_flags -Wno-subobject-linkage) # an unnamed namespace in a group looks like one in a header
endif()
if(TASUKI_SANITIZE)
  if(NOT TASUKI_SANITIZE MATCHES "^(address|undefined|address,undefined|thread)$")
    message(FATAL_ERROR "TASUKI_SANITIZE is '${TASUKI_SANITIZE}'; it must be address,undefined (or one) or thread")
  endif()
  # Compiles in two thirds of the time that -O2 -g takes, and names the same lines. At -O0 tests take longer than that saves.
  list(APPEND cxx_flags -fsanitize=${TASUKI_SANITIZE} -fno-omit-frame-pointer -O1 -g1)
  # GCC's analysis of values takes what sanitizers insert for uses of them; the build without them has this warning.
  list(APPEND cxx_flags -Wno-maybe-uninitialized)
  if(TASUKI_SANITIZE MATCHES "undefined")
    list(APPEND cxx_flags -fno-sanitize-recover=undefined)
  endif()
  target_link_options(tasuki_flags INTERFACE -fsanitize=${TASUKI_SANITIZE})
endif()
set(fortran_flags "")
if(TASUKI_SANITIZE)
  list(APPEND fortran_flags -fsanitize=${TASUKI_SANITIZE})
endif()
set(fortran_gnu_flags -std=f2008 -Wall -Wextra)
if(TASUKI_WERROR)
  list(APPEND fortran_gnu_flags -Werror)
endif()
set(c_flags ${cxx_flags})
# C converts enumerations and sizes as a matter of course, and has no unnamed namespaces.
list(REMOVE_ITEM c_flags -Wconversion -Wno-subobject-linkage)
target_compile_options(
  tasuki_flags
  INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${cxx_flags}>" "$<$<COMPILE_LANGUAGE:C>:${c_flags}>"
            "$<$<COMPILE_LANGUAGE:Fortran>:${fortran_flags}>" "$<$<COMPILE_LANG_AND_ID:Fortran,GNU>:${fortran_gnu_flags}>")
