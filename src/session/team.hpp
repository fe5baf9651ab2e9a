// Team: the threads of one process that are the ranks of a context. They exchange texts through it, under a lock.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "session/communicator.hpp"

namespace tasuki {

class Team {
 public:
  explicit Team(int ranks) : ranks_(ranks) {}
  int ranks() const { return ranks_; }

  /// Contributes `rank`'s text to collective call number `call`. `kind` names the call, such as "gathers texts". Throws
  /// `Error` if another rank has contributed to this call with another kind.
  void post(std::uint64_t call, const std::string& kind, int rank, const std::string& text);
  /// Gets the texts of all ranks; false until all have contributed. Every rank takes them once.
  bool take(std::uint64_t call, std::vector<std::string>& texts);

  /// Puts a text into the queue from `from` to `to`.
  void send(int from, int to, const std::string& text);
  /// Takes the oldest text of the queue from `from` to `to`; false if it is empty.
  bool receive(int from, int to, std::string& text);

  /// The team of these ranks, numbered in this order. Each of them calls it once, and all get the same team. `number`
  /// tells teams of the same ranks apart.
  std::shared_ptr<Team> part(const std::vector<int>& ranks, int number);

  /// Records that the rank has failed, and why. Only the first failure is kept.
  void fail(int rank, const std::string& why);
  int failed() const;       ///< the first rank that has failed, or -1
  std::string why() const;  ///< its reason, such as `rank 2 ...`; empty if none has failed

 private:
  struct Call {
    std::string kind;
    int first = 0;  // the first rank that contributed, for the message
    std::vector<std::string> texts;
    int posted = 0;
    int taken = 0;
  };
  struct Part {
    std::shared_ptr<Team> team;
    std::size_t taken = 0;
  };
  const int ranks_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Call> calls_;
  std::map<std::pair<int, int>, std::deque<std::string>> letters_;  // by (from, to)
  std::map<std::pair<std::vector<int>, int>, Part> parts_;  // parts that some of their ranks have not asked for yet
  int failed_ = -1;
  std::string why_;
};

std::unique_ptr<Communicator> communicator_of(std::shared_ptr<Team> team, int rank);

}  // namespace tasuki
