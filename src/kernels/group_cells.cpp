// See group_cells.hpp.
#include "kernels/group_cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "engines/bind.hpp"
#include "layout/encoding.hpp"
#include "session/collective.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

// The reason of the first rank that cannot; empty: all can. Collective.
std::string why_not(Runtime& runtime, const std::string& mine) {
  const auto all = gather_texts(runtime, mine, "device");
  const auto first = std::find_if(all.begin(), all.end(), [](const std::string& text) { return !text.empty(); });
  return first == all.end() ? std::string() : fmt::format("on rank {}, {}", first - all.begin(), *first);
}

// Collective over the plan's peers.
std::string unanswered_by_peers(Runtime& runtime, const Plan& plan, const std::vector<LineOfBlock>& lines) {
  const std::vector<int> peers = peers_of(plan);
  const std::string mine = Encoder().records(std::span<const LineOfBlock>(lines)).bytes();
  const auto blobs = exchange(runtime, peers, std::vector<std::string>(peers.size(), mine));
  for (std::size_t p = 0; p < peers.size(); ++p) {
    const auto theirs = Decoder(blobs[p]).records<LineOfBlock>();
    std::string wrong = unanswered(lines, runtime.rank(), theirs, peers[p]);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace

std::string described(const KernelGroup& group, int threads, const std::string& why) {
  if (group.blocks == 1) return fmt::format("1 block of {} threads, without barriers", threads);
  return fmt::format("{} blocks of {} threads, {}{}", group.blocks, threads,
                     why.empty() ? "barrier-free" : "with group barriers: ", why);
}

void check_cells(const KernelGroup& group, const BlockCells& cells, const std::string& who) {
  if (group.cells.empty()) return;
  if (group.cells.size() != static_cast<std::size_t>(group.blocks))
    throw Error(fmt::format("{}: device: argument 'cells' is of {} blocks; the group has {}", who, group.cells.size(),
                            group.blocks));
  if (const std::string wrong = cells.complaint(); !wrong.empty())
    throw Error(fmt::format("{}: device: {}", who, wrong));
}

GroupDeal deal_group(Runtime& runtime, const Plan& plan, const KernelGroup& group, int threads, const BlockCells& cells,
                     int warps, const GpuProgram& lowered) {
  auto mine = listed_by_cells(plan, lowered, cells, warps);
  auto* const found = std::get_if<ListedByCells>(&mine);
  std::string why = why_not(runtime, found != nullptr ? std::string() : std::get<std::string>(mine));
  if (why.empty()) why = why_not(runtime, unanswered_by_peers(runtime, plan, found->lines));
  GroupDeal dealt{{}, described(group, threads, why)};
  if (why.empty()) dealt.barrier_free = std::move(found->parts);
  return dealt;
}

}  // namespace tasuki
