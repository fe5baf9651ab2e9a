// The one exception type that Tasuki throws, and the one that a host program may throw through a wait.
#pragma once

#include <exception>
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

/// Thrown by `WaitHooks::look` to leave a wait early (Ctrl-C in an interpreter). An operation whose `wait` was left
/// early is still active and may be waited for again. Any other call that was left early (a barrier, making an
/// operation) ends the context, as a deadline does.
class Interruption : public std::exception {
 public:
  const char* what() const noexcept override { return "the wait was interrupted"; }
};

}  // namespace tasuki
