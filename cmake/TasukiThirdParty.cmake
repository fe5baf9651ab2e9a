# tasuki_third_party: the header-only libraries (nlohmann/json, CLI11, doctest, fmt) that tools/setup.py unpacks.
# Only sources use them; no public header of Tasuki does.
set(TASUKI_THIRD_PARTY_INCLUDE ${PROJECT_SOURCE_DIR}/.deps/include
    CACHE PATH "Folder with nlohmann/, CLI/, doctest/ and fmt/")
foreach(header nlohmann/json.hpp CLI/CLI.hpp doctest/doctest.h fmt/format.h)
  if(NOT EXISTS ${TASUKI_THIRD_PARTY_INCLUDE}/${header})
    message(FATAL_ERROR "${TASUKI_THIRD_PARTY_INCLUDE}/${header} is missing; run `make setup`, "
                        "or set TASUKI_THIRD_PARTY_INCLUDE to a folder that has it")
  endif()
endforeach()
add_library(tasuki_third_party INTERFACE)
target_include_directories(tasuki_third_party SYSTEM INTERFACE ${TASUKI_THIRD_PARTY_INCLUDE})
target_compile_definitions(tasuki_third_party INTERFACE FMT_HEADER_ONLY)
