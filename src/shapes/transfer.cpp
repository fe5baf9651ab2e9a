// Transfer: see transfer.hpp.
#include "shapes/transfer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "layout/cut.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

std::string transfer_name(int from, int to) {
  return fmt::format("transfer {}->{}", from, to);
}

Problem transfer_problem(const Constants& constants, int rank, int from, int to, const Layout& src, const Layout& dst) {
  Problem problem;
  problem.operation = transfer_name(from, to);
  problem.rank = rank;
  problem.buffers = {{"from", Role::input}, {"to", Role::output}};
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

std::string complaint_about(int from, const Layout& src, int to, const Layout& dst) {
  if (src.size() != dst.size())
    return fmt::format("layouts of unequal size: 'from' names {} bytes on rank {}, 'to' names {} bytes on rank {}",
                       src.size(), from, dst.size(), to);
  if (dst.overlaps()) return fmt::format("layout 'to' ({}) names a byte twice; a destination must not", dst.describe());
  return {};
}

namespace {

class JointTransfer final : public EachRank {
 public:
  JointTransfer(const Machine& machine, TransferShape shape)
      : constants_(machine.constants), shape_(std::move(shape)) {}

  std::vector<BufferFact> facts(int rank) const override {
    const auto side = [&](int of, const Layout& layout) {
      if (rank == of)
        return allocated(layout.true_upper_bound() - layout.true_lower_bound(), shape_.memory, shape_.shared);
      BufferFact nothing = allocated(0, Memory::host, false);
      nothing.copies = 0;
      return nothing;
    };
    return {side(shape_.from, shape_.src), side(shape_.to, shape_.dst)};
  }

 private:
  Problem problem_of(int rank) const override {
    if (rank == shape_.from || rank == shape_.to)
      return transfer_problem(constants_, rank, shape_.from, shape_.to, shape_.src, shape_.dst);
    Problem nothing;
    nothing.operation = transfer_name(shape_.from, shape_.to);
    nothing.rank = rank;
    nothing.buffers = {{"from", Role::input}, {"to", Role::output}};
    return nothing;
  }

  Constants constants_;
  TransferShape shape_;
};

}  // namespace

std::shared_ptr<const JointShape> joint(const Machine& machine, const TransferShape& transfer) {
  check_rank(machine, "from", transfer.from);
  check_rank(machine, "to", transfer.to);
  check_gpus(machine, transfer.memory);
  if (const std::string wrong = complaint_about(transfer.from, transfer.src, transfer.to, transfer.dst); !wrong.empty())
    throw Error(wrong);
  return std::make_shared<const JointTransfer>(machine, transfer);
}

}  // namespace tasuki
