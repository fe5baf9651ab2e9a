// What every function of xmp.h does with failures.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "tasuki/error.hpp"
#include "whereabouts.hpp"

namespace tasuki::xmp {

/// Notes what is being handled as the last error, or ends the program with it. Called in a catch clause.
int note_exception(const char* call) noexcept;

/// Runs the body of the C function `call`; returns its status.
template <class Body>
int guarded(const char* call, Body&& body) noexcept {
  const Doing doing(call);
  try {
    body();
    return 0;
  } catch (...) {
    return note_exception(call);
  }
}

/// `rank 3: ` and the text, as an error.
[[noreturn]] void refuse(const std::string& text);
template <class... Arguments>
[[noreturn]] void refuse(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  refuse(fmt::format(format, std::forward<Arguments>(arguments)...));
}

template <class T>
T* given(T* pointer, const char* argument) {
  if (pointer == nullptr) refuse("argument '{}' is null", argument);
  return pointer;
}

}  // namespace tasuki::xmp
