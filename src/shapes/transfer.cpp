// Transfer: see transfer.hpp.
#include "shapes/transfer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "layout/cut.hpp"
#include "layout/sequence.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

std::string transfer_name(int from, int to) {
  return fmt::format("transfer {}->{}", from, to);
}

// What a rank asks of the planner for a transfer between layouts of equal size: one move, or several parts that may
// take different paths; nothing if it is neither `from` nor `to`. Offsets are relative to the lowest byte that each
// layout names. Throws `Error` if `dst` names a byte twice.
Problem transfer_problem(const Constants& constants, int rank, int from, int to, const Layout& src, const Layout& dst) {
  Problem problem;
  problem.operation = transfer_name(from, to);
  problem.rank = rank;
  problem.buffers = {{"from", Role::input}, {"to", Role::output}};
  if (rank != from && rank != to) return problem;
  std::vector<StridedCopy> copies;
  for (const auto& copy : zip(src, dst)) {
    copies.push_back(reordered(copy));
    copies.back().src_offset -= src.true_lower_bound();
    copies.back().dst_offset -= dst.true_lower_bound();
  }
  const std::int64_t wanted =
      from == to ? 1 : std::clamp<std::int64_t>(src.size() / constants.transfer_part, 1, constants.transfer_parts);
  auto parts = cut_in_parts(copies, wanted);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].empty()) continue;
    Move move;
    move.seq = static_cast<std::int64_t>(i);
    move.src_rank = from;
    move.dst_rank = to;
    move.src = 0;
    move.dst = 1;
    move.whole = src.size();
    move.label = wanted == 1 ? "all" : fmt::format("part {} of {}", i + 1, wanted);
    move.copies = std::move(parts[i]);
    if (move.bytes() > 0) problem.moves.push_back(std::move(move));
  }
  mark_mutual(problem.moves);
  return problem;
}

std::string unequal(int from, const Layout& src, int to, const Layout& dst) {
  if (src.size() == dst.size()) return {};
  return fmt::format("layouts of unequal size: 'from' names {} bytes on rank {}, 'to' names {} bytes on rank {}",
                     src.size(), from, dst.size(), to);
}

std::string overlap_of(const Layout& dst) {
  if (!dst.overlaps()) return {};
  return fmt::format("layout 'to' ({}) names a byte twice; a destination must not", dst.describe());
}

std::string rank_complaint(const char* name, int rank, int ranks) {
  if (rank >= 0 && rank < ranks) return {};
  return fmt::format("argument '{}.rank' is {}, but the context has ranks 0 to {}", name, rank, ranks - 1);
}

ByteRange range_of(const Layout& layout) {
  return {layout.true_lower_bound(), layout.true_upper_bound()};
}

}  // namespace

TransferOfRank::TransferOfRank(int rank, SideOfTransfer from, SideOfTransfer to)
    : rank_(rank), from_(std::move(from)), to_(std::move(to)) {
  for (SideOfTransfer* end : {&from_, &to_})
    if (end->rank != rank) *end = {end->rank, {}, {}};
}

std::string TransferOfRank::name() const {
  return transfer_name(from_.rank, to_.rank);
}

std::optional<std::vector<int>> TransferOfRank::among() const {
  if ((rank_ == from_.rank) == (rank_ == to_.rank)) return std::vector<int>();
  return std::vector<int>{rank_ == from_.rank ? to_.rank : from_.rank};
}

Agreed TransferOfRank::agreed() const {
  return {{"from.rank", std::to_string(from_.rank)}, {"to.rank", std::to_string(to_.rank)}};
}

std::string TransferOfRank::complaint(const Machine& machine) const {
  std::string wrong = rank_complaint("from", from_.rank, machine.size());
  return !wrong.empty() ? wrong : rank_complaint("to", to_.rank, machine.size());
}

void TransferOfRank::tell(int /*hearer*/, Encoder& to) const {
  const SideOfTransfer& mine = rank_ == from_.rank ? from_ : to_;
  to.layout(mine.layout).text(mine.elements);
}

void TransferOfRank::hear(int /*rank*/, Decoder& from) {
  SideOfTransfer& theirs = rank_ == from_.rank ? to_ : from_;
  theirs.layout = from.layout();
  theirs.elements = from.text();
}

std::string TransferOfRank::misfit() const {
  if (!from_.elements.empty() && !to_.elements.empty() && from_.elements != to_.elements)
    return fmt::format(
        "'from' has {} on rank {}, but 'to' has {} on rank {}; give arrays of the same type and shape, or "
        "bytes or a layout if their bytes are what is meant",
        from_.elements, from_.rank, to_.elements, to_.rank);
  return unequal(from_.rank, from_.layout, to_.rank, to_.layout);
}

std::vector<MemoryUse> TransferOfRank::memory() const {
  std::vector<MemoryUse> uses;
  for (const auto& [name, end] : {std::pair{"from", &from_}, std::pair{"to", &to_}})
    uses.push_back({name, fmt::format("argument '{}.base'", name),
                    end->rank == rank_ ? range_of(end->layout) : ByteRange(), ", which transfers do not know"});
  return uses;
}

Layout TransferOfRank::bytes_of(std::size_t buffer, bool written) const {
  if (written != (buffer == 1)) return {};
  const Layout& layout = written ? to_.layout : from_.layout;
  return moved(layout, -layout.true_lower_bound());
}

std::string TransferOfRank::overlap_in(std::size_t buffer) const {
  return buffer == 1 ? overlap_of(to_.layout) : std::string();
}

std::string TransferOfRank::overlapping(std::size_t /*a*/, std::size_t /*b*/) const {
  return "source and destination overlap in memory";
}

Problem TransferOfRank::problem(const Machine& machine) const {
  return transfer_problem(machine.constants, rank_, from_.rank, to_.rank, from_.layout, to_.layout);
}

namespace {

class JointTransfer final : public EachRank {
 public:
  JointTransfer(const Machine& machine, TransferShape shape)
      : constants_(machine.constants), shape_(std::move(shape)) {}

  std::vector<BufferFact> facts(int rank) const override {
    const ByteRange ranges[] = {rank == shape_.from ? range_of(shape_.src) : ByteRange(),
                                rank == shape_.to ? range_of(shape_.dst) : ByteRange()};
    return facts_of(ranges, shape_.memory, shape_.shared);
  }

 private:
  Problem problem_of(int rank) const override {
    return transfer_problem(constants_, rank, shape_.from, shape_.to, shape_.src, shape_.dst);
  }

  Constants constants_;
  TransferShape shape_;
};

}  // namespace

std::shared_ptr<const JointShape> joint(const Machine& machine, const TransferShape& transfer) {
  check_rank(machine, "from", transfer.from);
  check_rank(machine, "to", transfer.to);
  check_gpus(machine, transfer.memory);
  for (const std::string& wrong :
       {unequal(transfer.from, transfer.src, transfer.to, transfer.dst), overlap_of(transfer.dst)})
    if (!wrong.empty()) throw Error(wrong);
  return std::make_shared<const JointTransfer>(machine, transfer);
}

}  // namespace tasuki
