// Main of the unit tests, which need no MPI: tests/unit/*.cpp.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
