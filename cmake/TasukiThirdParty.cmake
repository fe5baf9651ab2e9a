# tasuki_third_party: the header-only libraries (nlohmann/json, CLI11, doctest, fmt) that tools/setup.py unpacks.
# Only sources use them; no public header of Tasuki does. fmt's implementation is a library of its own.
set(third_party ${PROJECT_SOURCE_DIR}/.deps/include)
if(SKBUILD AND NOT DEFINED TASUKI_THIRD_PARTY_INCLUDE) # pip has put them beside the interpreter
  execute_process(COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/python/build/header_folders.py
                  OUTPUT_VARIABLE third_party OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()
set(TASUKI_THIRD_PARTY_INCLUDE ${third_party} CACHE STRING "Folders with nlohmann/, CLI/, doctest/ and fmt/")
foreach(header nlohmann/json.hpp CLI/CLI.hpp doctest/doctest.h fmt/format.h)
  find_file(found_header ${header} PATHS ${TASUKI_THIRD_PARTY_INCLUDE} NO_DEFAULT_PATH NO_CACHE)
  if(NOT found_header)
    message(FATAL_ERROR "${TASUKI_THIRD_PARTY_INCLUDE}/${header} is missing; run `make setup`, "
                        "or set TASUKI_THIRD_PARTY_INCLUDE to a folder that has it")
  endif()
  unset(found_header)
endforeach()
add_library(tasuki_third_party INTERFACE)
target_include_directories(tasuki_third_party SYSTEM INTERFACE ${TASUKI_THIRD_PARTY_INCLUDE})
add_library(tasuki_fmt STATIC ${PROJECT_SOURCE_DIR}/cmake/fmt.cpp)
set_target_properties(tasuki_fmt PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden)
target_include_directories(tasuki_fmt SYSTEM PRIVATE ${TASUKI_THIRD_PARTY_INCLUDE})
target_link_libraries(tasuki_third_party INTERFACE tasuki_fmt)
