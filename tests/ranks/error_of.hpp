// What an action threw, as text that tests can compare.
#pragma once

#include <exception>
#include <string>

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
