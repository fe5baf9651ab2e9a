// What tests on ranks ask of plans and of errors.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "rank_test.hpp"
#include "tasuki/tasuki.hpp"

inline void check_plan(const tasuki::Operation& operation) {
  const tasuki::VerifyReport report = tasuki::verify(operation);
  INFO(report.text());
  CHECK(report.ok());
}

/// Checks that the error has these words, and returns whether it has. A failure shows both.
inline bool says(const std::string& error, const std::string& words) {
  INFO(error);
  INFO(words);
  const bool found = error.find(words) != std::string::npos;
  CHECK(found);
  return found;
}
