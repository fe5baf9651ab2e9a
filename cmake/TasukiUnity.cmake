# tasuki_unity(TARGET): with TASUKI_UNITY, the target's C++ sources are compiled in groups, each as one file. tools/unity.py
# chooses groups in which no source has a name that another keeps to itself. A source with options of its own is in no
# group, and neither is one that the build writes. Call it when the target has all of its sources, with their options.
option(TASUKI_UNITY "Compile several sources at once: quicker from nothing, slower after a change" OFF)

function(tasuki_unity target)
  if(NOT TASUKI_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "^[^$]*\\.cpp$")
  set(paths "")
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    get_source_file_property(own_options ${source} COMPILE_OPTIONS)
    get_source_file_property(own_headers ${source} SKIP_PRECOMPILE_HEADERS)
    # What the build writes is in no group, also once it is there: groups that change compile everything again.
    cmake_path(IS_PREFIX PROJECT_BINARY_DIR ${source} written)
    if(NOT written AND NOT own_options AND NOT own_headers)
      list(APPEND paths ${source})
    endif()
  endforeach()
  execute_process(COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/unity.py 8 ${paths}
                  OUTPUT_VARIABLE groups OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE ";" "|" groups "${groups}")
  string(REPLACE "\n" ";" groups "${groups}")
  set(number 0)
  foreach(group IN LISTS groups)
    string(REPLACE "|" ";" group "${group}")
    math(EXPR number "${number} + 1")
    set_source_files_properties(${group} PROPERTIES UNITY_GROUP group_${number})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
