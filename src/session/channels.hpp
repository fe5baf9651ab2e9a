// Channels: numbers by which two ranks keep the messages of what they share apart.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>

namespace tasuki {

/// Both ranks of a pair make what they share in the same order, so each counts for itself and both count alike. Between
/// two ranks a message tag is made from the number's place in the tag space and the link within it; a place is used
/// again once this rank has given its last number back. If one rank of the pair has and the other has not, the other
/// throws, so neither sends a message that could be taken for another's.
class Channels {
 public:
  static constexpr int kLinks = 64;  ///< between the two ranks, in one channel

  /// `rank` is for messages; `largest_tag` is what MPI allows.
  Channels(int rank, int largest_tag) : rank_(rank), places_((std::int64_t{largest_tag} + 1) / kLinks) {}

  /// The next number with `peer`: 0, 1, 2, ... Throws `Error` if its place in the tag space is still held.
  std::int64_t take(int peer);
  void give_back(int peer, std::int64_t channel);

  /// The tag of a link's messages, in both directions. Throws `Error` if there are too many links.
  int tag(std::int64_t channel, int link) const;

  std::int64_t places() const { return places_; }  ///< How many may be held with one peer.

 private:
  struct Pair {
    std::int64_t next = 0;
    std::map<std::int64_t, std::int64_t> held;  // by place: the number
  };
  int rank_;
  std::int64_t places_;
  std::unordered_map<int, Pair> pairs_;
};

}  // namespace tasuki
