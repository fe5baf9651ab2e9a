// Types and operators as arguments, which may be numbers that no enumerator has.
#pragma once

#include <string>

#include "tasuki/dtype.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

/// As the ranks compare it: its name, or its number if it is no enumerator.
template <class Enum>
std::string shown(Enum value) {
  try {
    return std::string(to_string(value));
  } catch (const Error&) {
    return std::to_string(static_cast<int>(value));
  }
}

/// What is wrong with a type or an operator that may be no enumerator. Empty: nothing.
template <class Enum>
std::string enumerator_complaint(const char* argument, Enum value) {
  try {
    (void)to_string(value);
    return {};
  } catch (const Error& error) {
    return "argument '" + std::string(argument) + "': " + error.what();
  }
}

}  // namespace tasuki
