// The one exception type that Tasuki throws.
#pragma once

#include <stdexcept>
#include <string>

namespace tasuki {

/// Thrown for every failure that Tasuki can describe: bad arguments, arguments that differ between ranks, a path that
/// was asked for and cannot be used, a peer that died, a deadline that passed. The text names the rank, the operation,
/// the argument and its value, and what to do about it.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace tasuki
