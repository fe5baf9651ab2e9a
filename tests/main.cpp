// Main of the tests that need no ranks: tests/plan/*.cpp, tests/unit/*.cpp.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
