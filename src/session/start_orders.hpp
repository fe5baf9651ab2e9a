// StartOrders: in which order ranks start operations in the streams of their GPUs, and whether two ranks disagree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

namespace tasuki {

/// What one rank knows of its own starts and those of other ranks. Starts that were long ago are forgotten.
class StartOrders {
 public:
  struct Start {
    std::uint64_t operation = 0;  ///< a number that the ranks which make the operation agree on
    std::uint64_t epoch = 0;
    std::uint64_t stream = 0;  ///< any number that the rank has for the stream
    std::uint64_t number = 0;  ///< counts the rank's starts
  };
  /// This rank started `first` before `second` in one stream, and `rank` did the opposite in one stream of its own.
  struct Conflict {
    std::uint64_t first = 0;
    std::uint64_t second = 0;
    std::uint64_t rank = 0;
  };

  /// A start of this rank. A rank's starts are told in the order of their numbers.
  std::optional<Conflict> mine(const Start& start);
  /// A start of another rank, which may have any number.
  std::optional<Conflict> theirs(std::uint64_t rank, const Start& start);

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // operation and epoch
  struct Starts {
    std::map<Key, Start> all;
    std::deque<Key> order;
    void add(const Start& start);
    const Start* find(const Key& key) const;
  };
  struct Both {
    std::uint64_t number = 0;  // of the other rank
    std::uint64_t operation = 0;
  };
  struct Other {
    Starts starts;
    // By this rank's stream and the other's: what both have started there, by this rank's number.
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::map<std::uint64_t, Both>> both;
  };
  static std::optional<Conflict> match(std::uint64_t rank, Other& other, const Start& mine, const Start& theirs);

  Starts own_;
  std::map<std::uint64_t, Other> others_;
};

}  // namespace tasuki
