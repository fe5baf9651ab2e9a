// Team: threads of one process that are the ranks of a context, and the board on which they leave texts for each other.
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

  /// What `rank` says in the collective call number `call`, which is `kind` ("gathers texts"). Throws `Error` if
  /// another rank's is of another kind.
  void post(std::uint64_t call, const std::string& kind, int rank, const std::string& text);
  /// What all have said; false until they have. Every rank takes it once.
  bool take(std::uint64_t call, std::vector<std::string>& texts);

  void send(int from, int to, const std::string& text);
  /// The oldest text from `from` to `to`; false if there is none.
  bool receive(int from, int to, std::string& text);

  /// The team of these of its ranks, in this order, which is the same for all of them that ask; each asks once.
  /// `number` tells teams of the same ranks apart.
  std::shared_ptr<Team> part(const std::vector<int>& ranks, int number);

  /// The rank has failed. The first one counts.
  void fail(int rank, const std::string& why);
  int failed() const;       ///< the first rank that has, or -1
  std::string why() const;  ///< and why: `rank 2 ...`; empty if none has

 private:
  struct Call {
    std::string kind;
    int first = 0;  // who was first here
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
  std::map<std::pair<std::vector<int>, int>, Part> parts_;          // that not all of their ranks have
  int failed_ = -1;
  std::string why_;
};

std::unique_ptr<Communicator> communicator_of(std::shared_ptr<Team> team, int rank);

}  // namespace tasuki
