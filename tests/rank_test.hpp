// A test case that every rank runs with a context `ctx`, whatever ranks are: processes (ranks_main.cpp) or threads of
// this process (threads_main.cpp).
#pragma once

#include <doctest/doctest.h>

#include "tasuki/context.hpp"

/// Runs `body` on all ranks; each program's main has its own.
void on_ranks(void (*body)(const tasuki::Context& ctx));

#define RANK_TEST_NAMED(name, function)         \
  static void function(const tasuki::Context&); \
  TEST_CASE(name) {                             \
    on_ranks(function);                         \
  }                                             \
  static void function(const tasuki::Context& ctx)

#define RANK_TEST(name) RANK_TEST_NAMED(name, DOCTEST_ANONYMOUS(rank_test_))
