// Collectives: what a rank tells the others of its counts or layouts, and what all ranks ask of one, as the algorithm
// lays it out that is chosen.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectives/collective.hpp"
#include "shapes/collective_layouts.hpp"
#include "shapes/joint.hpp"
#include "shapes/rank_shape.hpp"
#include "tasuki/layout.hpp"
#include "tasuki/planning.hpp"

namespace tasuki {

/// What the ranks tell each other where each has counts of its own: how many elements it sends to each, and gets.
struct CountMatrix {
  std::vector<std::int64_t> sent, received;  ///< [rank * ranks + other]
};

class CollectiveOfRank final : public RankShape {
 public:
  /// `engine`, `tune`: as the options have them. The machine must outlive it.
  CollectiveOfRank(const Machine& machine, int rank, CollectiveCall call, std::string engine, int tune)
      : machine_(machine), rank_(rank), call_(std::move(call)), engine_(std::move(engine)), tune_(tune) {}
  std::string operation() const override { return call_.operation; }
  std::string name() const override { return std::string(to_string(call_.shape.kind)); }
  Agreed agreed() const override;
  std::string complaint(const Machine& machine) const override;
  void list() override;
  std::vector<MemoryUse> memory() const override;
  Layout bytes_of(std::size_t buffer, bool written) const override;
  std::string overlapping(std::size_t a, std::size_t b) const override;
  Hearers hearers() const override;
  bool hears_sizes() const override { return hearers() == Hearers::all; }
  std::string subject() const override { return call_.has_matrix ? "counts" : "layouts"; }
  void tell(int hearer, Encoder& to) const override;
  void hear(int rank, Decoder& from) override;
  std::string misfit() const override;
  std::optional<Choosing> choosing() const override;
  void settle(Memory memory, bool shared, bool holds) override;
  std::vector<Arrangement> arrangements(const Machine& machine) const override;
  Problem problem(const Machine& machine) const override { return arrangements(machine).front().problem; }

 private:
  bool marks_out() const { return call_.shape.kind == CollectiveKind::scatter; }
  bool marked_root() const { return rooted(call_.shape.kind) && call_.marked; }

  const Machine& machine_;
  int rank_;
  CollectiveCall call_;
  std::string engine_;
  int tune_;
  CountMatrix matrix_;
  std::vector<CollectiveSides> sides_;    // of all ranks
  std::optional<Collective> collective_;  // once sizes are known
};

/// Throws `Error` for a shape that cannot be.
std::shared_ptr<const JointShape> joint(const Machine& machine, const CollectiveShape& collective);

}  // namespace tasuki
