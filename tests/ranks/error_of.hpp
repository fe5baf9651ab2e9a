// What an action threw, as text that tests can compare.
#pragma once

#include <exception>
#include <string>

#include "tasuki/error.hpp"

/// The message of the exception that `f` throws, or "no error".
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

/// The kind of the `tasuki::Error` that `f` throws, or "no error".
template <class F>
std::string kind_of(F&& f) {
  try {
    f();
  } catch (const tasuki::Error& error) {
    return to_string(error.kind());
  }
  return "no error";
}
