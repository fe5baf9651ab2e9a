// A test case that every rank runs with a context `ctx`, whatever ranks are: processes (ranks_main.cpp) or threads of
// this process (threads_main.cpp).
#pragma once

#include <doctest/doctest.h>

#include <mutex>

#include "tasuki/context.hpp"

// What CAPTURE and INFO make here. doctest collects the texts of the scopes that an exception leaves in a vector of the
// whole process, without a lock; ranks that are threads and fail together then free its elements twice.
inline std::mutex leaving_scopes;

template <class Write>
class LockedScope : public doctest::detail::ContextScope<Write> {
 public:
  explicit LockedScope(const Write& write) : doctest::detail::ContextScope<Write>(write) {}
  LockedScope(const LockedScope&) = delete;
  LockedScope& operator=(const LockedScope&) = delete;
  ~LockedScope() override {
    const std::scoped_lock lock(leaving_scopes);
    this->destroy();
    this->need_to_destroy = false;
  }
};

#undef DOCTEST_INFO_IMPL
#define DOCTEST_INFO_IMPL(builder, stream, ...)                                                \
  const LockedScope DOCTEST_ANONYMOUS(DOCTEST_CAPTURE_)([&](std::ostream* stream) {            \
    doctest::detail::MessageBuilder builder(__FILE__, __LINE__, doctest::assertType::is_warn); \
    builder.m_stream = stream;                                                                 \
    builder* __VA_ARGS__;                                                                      \
  })

/// Runs `body` on all ranks; each program's main has its own.
void on_ranks(void (*body)(const tasuki::Context& ctx));

#define RANK_TEST_NAMED(name, function)         \
  static void function(const tasuki::Context&); \
  TEST_CASE(name) {                             \
    on_ranks(function);                         \
  }                                             \
  static void function(const tasuki::Context& ctx)

#define RANK_TEST(name) RANK_TEST_NAMED(name, DOCTEST_ANONYMOUS(rank_test_))
