// Transfer moves: see transfer_moves.hpp.
#include "collectives/transfer_moves.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "layout/cut.hpp"

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

}  // namespace tasuki
