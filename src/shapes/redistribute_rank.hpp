// Redistribute: what one rank asks for, and what ranks that have cells in common must hear of each other's memory.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "layout/encoding.hpp"
#include "shapes/redistribute.hpp"

namespace tasuki {

/// A redistribution as one rank asks for it. Its buffers are the source and the target of each array in turn.
class RedistributeOfRank {
 public:
  RedistributeOfRank(int rank, ArraySide from, ArraySide to, std::vector<int> axes, std::vector<MovedArray> arrays)
      : rank_(rank), from_(std::move(from)), to_(std::move(to)), axes_(std::move(axes)), arrays_(std::move(arrays)) {}
  /// Arguments that ranks must have alike, by name.
  std::vector<std::pair<std::string, std::string>> agreed() const;
  /// What is wrong on this rank by itself; empty: nothing. May throw `Error` in its place.
  std::string complaint(int ranks) const;
  /// Finds what the functions below answer from. There is no complaint.
  void list();
  std::string buffer_name(std::size_t buffer) const;  ///< In errors.
  /// The bytes of a buffer that this rank may use, relative to the address that is given; none: it is not looked at.
  ByteRange range(std::size_t buffer) const;
  /// Of a source those that are read, of a target those that are written; relative to the first byte of its range.
  Layout bytes_of(std::size_t buffer) const;
  /// The ranks that it deals with, ascending, without itself.
  std::vector<int> named() const;
  /// What these must know, and what each of them says. Throws `Malformed` for what no rank with the same arguments
  /// says.
  void tell(Encoder& to) const;
  void hear(int rank, Decoder& from);
  /// Once all have been heard.
  Problem problem() const;

 private:
  int rank_;
  ArraySide from_, to_;
  std::vector<int> axes_;
  std::vector<MovedArray> arrays_;
  // Once listed.
  std::optional<RedistributeSides> sides_;
  std::vector<CommonCells> sent_, received_;
  std::map<int, std::vector<RedistributeCells>> cells_;  // of this rank, and of those that it has heard
};

}  // namespace tasuki
