// The one exception type that Tasuki throws, and the one that a host program may throw through a wait.
#pragma once

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>

namespace tasuki {

/// What a failure is about: whether the program must change, or the machine has.
enum class ErrorKind : std::uint8_t {
  argument,      ///< An argument, a setting or the state of an object does not allow the call. The program must change.
  disagreement,  ///< The ranks pass different arguments, or make different objects. The program must change.
  not_possible,  ///< It cannot be done on this machine or by this build, such as a path between these ranks.
  rank_died,     ///< A rank that this one depends on has died or given up. The context has failed.
  deadline,      ///< A wait has lasted longer than the context's deadline. The context has failed.
  system,        ///< MPI, CUDA, NCCL or the operating system reported a failure.
};
/// `argument`, `disagreement`, `not possible`, `rank died`, `deadline`, `system`.
constexpr const char* to_string(ErrorKind kind) {
  constexpr const char* names[] = {"argument", "disagreement", "not possible", "rank died", "deadline", "system"};
  return names[static_cast<int>(kind)];
}

/// Thrown for every failure that Tasuki can describe. The text names the rank, the operation, the argument and its
/// value, and what to do about it. Where a failure of one rank is thrown by all, all have its kind.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& text) : Error(ErrorKind::argument, text) {}
  Error(ErrorKind kind, const std::string& text) : std::runtime_error(text), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

/// Thrown by `WaitHooks::look` to leave a wait early (Ctrl-C in an interpreter). An operation whose `wait` was left
/// early is still active and may be waited for again. Any other call that was left early (a barrier, making an
/// operation) ends the context, as a deadline does.
class Interruption : public std::exception {
 public:
  const char* what() const noexcept override { return "the wait was interrupted"; }
};

}  // namespace tasuki
