// Channels: numbers that tell the operations of two ranks apart, and the tags of their messages.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>

namespace tasuki {

/// Two ranks that make an operation tell each other the lowest number that they can give it, and both take the larger
/// one. So they have the same number whatever failed before on one of them. A message's tag is made of the number's
/// place (the number modulo `places()`) and of the link. A rank uses a place again only after it has given back the
/// number that held it. If only one rank of the pair has done so, the other one throws in `take`, so no message can be
/// taken for another operation's.
class Channels {
 public:
  static constexpr int kLinks = 64;  ///< most links between two ranks in one channel

  /// `rank` is this rank, named in error messages; `largest_tag` is MPI's largest tag.
  Channels(int rank, int largest_tag) : rank_(rank), places_((std::int64_t{largest_tag} + 1) / kLinks) {}

  /// The lowest number that this rank can give the next operation with `peer`: above all that it has taken.
  std::int64_t lowest(int peer) const;
  /// Takes a number, which is at least `lowest`. Throws `Error` if an earlier number still holds its place.
  void take(int peer, std::int64_t channel);
  void give_back(int peer, std::int64_t channel);

  /// The tag of a link's messages, in both directions. Throws `Error` if there are too many links.
  int tag(std::int64_t channel, int link) const;

  std::int64_t places() const { return places_; }  ///< Most numbers that can be held with one peer at a time.

 private:
  struct Pair {
    std::int64_t next = 0;
    std::map<std::int64_t, std::int64_t> held;  // place -> the number that holds it
  };
  int rank_;
  std::int64_t places_;
  std::unordered_map<int, Pair> pairs_;
};

}  // namespace tasuki
