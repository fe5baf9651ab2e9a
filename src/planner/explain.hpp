// Explanation: what the table behind `Operation::explain` says. It is gathered while an operation is planned, because
// the machine may be seen otherwise later. It becomes text when somebody asks, because few do.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "planner/planner.hpp"
#include "tasuki/layout.hpp"

namespace tasuki {

struct Explanation {
  /// A path that was not chosen.
  struct Other {
    const Path* path = nullptr;
    double seconds = -1;  ///< -1: it cannot be taken
    double reuse = 0;     ///< seconds that the program loses later
    bool measured = false;
    std::string why_not;
  };
  struct Piece {
    std::string label;
    int from = 0;
    int to = 0;
    std::int64_t bytes = 0;
    Pattern pattern = Pattern::empty;
    const Path* path = nullptr;
    double seconds = 0;
    bool measured = false;
    std::vector<Other> others;  ///< for memory of the same kind; only of what this rank sends
  };

  std::string operation;
  int rank = 0;
  int ranks = 0;
  std::int64_t commands = 0;
  std::int64_t bytes_of_plan = 0;
  std::vector<Piece> pieces;
  std::map<Resource, double> busy;  ///< seconds by sending
  std::vector<NetworkShare> shares;
  std::int64_t messages = 0;  ///< that a network moves
  double kept = 0;            ///< seconds for which sending them keeps the core busy
  std::string source;         ///< of the prices: how old they are, and how certain
  std::string remark;
};

Explanation explained(const Machine& machine, const Problem& problem, const Facts& facts,
                      const std::vector<Choice>& choices, const Plan& plan);

/// The table: for every piece the chosen path, its price, and why others were not chosen.
std::string to_text(const Explanation& explanation);

}  // namespace tasuki
