// Redistribute: what one rank asks for, and what ranks that have cells in common must hear of each other's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shapes/rank_shape.hpp"
#include "shapes/redistribute.hpp"

namespace tasuki {

/// A redistribution as one rank asks for it. Its buffers are the source and the target of each array in turn.
class RedistributeOfRank final : public RankShape {
 public:
  RedistributeOfRank(int rank, ArraySide from, ArraySide to, std::vector<int> axes, std::vector<MovedArray> arrays,
                     std::int64_t scratch)
      : rank_(rank),
        from_(std::move(from)),
        to_(std::move(to)),
        axes_(std::move(axes)),
        arrays_(std::move(arrays)),
        scratch_(scratch) {}
  std::string operation() const override { return "Redistribute"; }
  std::string name() const override;
  Agreed agreed() const override;
  std::string complaint(const Machine& machine) const override;
  void list() override;
  std::vector<MemoryUse> memory() const override;
  Layout bytes_of(std::size_t buffer, bool written) const override;
  std::string overlapping(std::size_t a, std::size_t b) const override;
  bool copies_first(std::size_t written, std::size_t read) override;
  bool copies() const override;
  Hearers hearers() const override { return Hearers::named; }
  std::string subject() const override { return "redistribute"; }
  std::vector<int> named() const override;
  void tell(int hearer, Encoder& to) const override;
  void hear(int rank, Decoder& from) override;
  std::string misfit() const override;
  void found_copies() override { some_copied_ = true; }
  Problem problem(const Machine& machine) const override;

 private:
  std::vector<std::string> names() const;
  std::string buffer_name(std::size_t buffer) const;  ///< in errors

  int rank_;
  ArraySide from_, to_;
  std::vector<int> axes_;
  std::vector<MovedArray> arrays_;
  std::int64_t scratch_;
  // Once listed.
  std::optional<RedistributeSides> sides_;
  std::vector<CommonCells> sent_, received_;
  bool some_copied_ = false;
  std::map<int, std::vector<RedistributeCells>> cells_;  // of this rank, and of those that it has heard
};

}  // namespace tasuki
