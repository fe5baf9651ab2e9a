// Neighbour collectives: see neighbours.hpp.
#include "shapes/neighbours.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "layout/counted.hpp"
#include "layout/sequence.hpp"
#include "shapes/blocks.hpp"
#include "shapes/enumerators.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

// The bytes from the first that the blocks name to the last: offsets from the base. Those of nobody are left out.
ByteRange range_of(const std::vector<Layout>& blocks, const std::vector<int>& ranks) {
  ByteRange range;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (ranks[i] >= 0) range.include({blocks[i].true_lower_bound(), blocks[i].true_upper_bound()});
  return range;
}

// The rank's blocks as the moves know them. Offsets are counted from the first byte that the rank's blocks name.
PeerBlocks peer_blocks(const NeighbourBlocks& blocks) {
  PeerBlocks all;
  all.of_grid = blocks.of_grid;
  const auto listed = [](const std::vector<int>& ranks, const std::vector<Layout>& layouts) {
    const std::int64_t begin = range_of(layouts, ranks).begin;
    std::vector<PeerBlock> list;
    for (std::size_t i = 0; i < ranks.size(); ++i)
      list.push_back({ranks[i], static_cast<std::int64_t>(i), {moved(layouts[i], -begin)}});
    return list;
  };
  all.sent = listed(blocks.to, blocks.sent);
  all.received = listed(blocks.from, blocks.received);
  return all;
}

std::string shown(const BlockMisfit& misfit) {
  const auto [a, b] = std::pair{misfit.from, misfit.to};
  if (misfit.part < 0)
    return fmt::format(
        "rank {} names rank {} in 'to' {} times, but rank {} names rank {} in 'from' {} times; they must be equal", a,
        b, misfit.sent, b, a, misfit.received);
  return fmt::format(
      "rank {} sends {} bytes to rank {} (its block {}), which receives {} from it (its block {}); they must be equal",
      a, misfit.sent, b, misfit.sent_number, misfit.received, misfit.received_number);
}

// Why the ranks' blocks do not fit together; empty if they do.
std::string misfit_of(const std::vector<NeighbourBlocks>& all) {
  std::vector<PeerBlocks> blocks;
  for (const NeighbourBlocks& one : all) blocks.push_back(peer_blocks(one));
  const auto ranks = static_cast<int>(all.size());
  for (int a = 0; a < ranks; ++a) {
    for (const int b : std::set(all[at(a)].to.begin(), all[at(a)].to.end()))
      if (const auto wrong = b < 0 ? std::nullopt : misfit(blocks[at(a)], a, blocks[at(b)], b)) return shown(*wrong);
    for (const int b : std::set(all[at(a)].from.begin(), all[at(a)].from.end()))
      if (const auto wrong = b < 0 ? std::nullopt : misfit(blocks[at(b)], b, blocks[at(a)], a)) return shown(*wrong);
  }
  return {};
}

// The problem of a rank; `all` fit together. Its buffers begin where the range of the rank's blocks does. Throws
// `Error` if a block that is received names a byte twice.
Problem neighbour_problem(bool allgather, const std::vector<NeighbourBlocks>& all, int rank) {
  Problem problem;
  problem.operation = neighbour_name(allgather);
  problem.rank = rank;
  problem.buffers = {{"in", Role::input}, {"out", Role::output}};
  std::map<int, PeerBlocks> known;
  BlockMoves moves;
  moves.parts = {{0, 1, "block"}};
  problem.moves = moves.of(rank, [&](int of) -> const PeerBlocks& {
    const auto [entry, added] = known.try_emplace(of);
    if (added) entry->second = peer_blocks(all[at(of)]);
    return entry->second;
  });
  return problem;
}

// In a grid -1 is nobody.
std::string ranks_complaint(const char* name, const std::vector<int>& ranks, int least, int size) {
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i] < least || ranks[i] >= size)
      return fmt::format("argument '{}' names rank {} (entry {}), but the context has ranks 0 to {}", name, ranks[i], i,
                         size - 1);
  return {};
}

std::string counts_complaint(const char* name, const std::vector<std::int64_t>& counts, std::size_t neighbours,
                             std::int64_t element) {
  if (counts.size() != neighbours)
    return fmt::format("argument '{}' has {} entries for {} neighbours", name, counts.size(), neighbours);
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] < 0)
      return fmt::format("argument '{}' is {} for neighbour {}; it must not be negative", name, counts[i], i);
    if (counts[i] > kMostBytes / element || (bytes += counts[i] * element) > kMostBytes)
      return fmt::format("argument '{}' is {} for neighbour {}; more than can be moved", name, counts[i], i);
  }
  return {};
}

std::string layouts_complaint(const char* name, const std::vector<Layout>& layouts, std::size_t neighbours) {
  if (layouts.size() != neighbours)
    return fmt::format("argument '{}' has {} layouts for {} neighbours", name, layouts.size(), neighbours);
  return {};
}

std::vector<std::int64_t> in_bytes(std::vector<std::int64_t> counts, std::int64_t element) {
  for (std::int64_t& count : counts) count *= element;
  return counts;
}

// The bytes of all blocks but those of nobody.
Layout all_of(const std::vector<Layout>& blocks, const std::vector<int>& ranks) {
  std::vector<Layout> some;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (ranks[i] >= 0) some.push_back(blocks[i]);
  return joined(some);
}

NeighbourBlocks blocks_of(const NeighbourCall& call) {
  NeighbourBlocks blocks;
  blocks.to = call.to;
  blocks.from = call.from;
  blocks.of_grid = call.of_grid;
  const std::int64_t element = call.has_layouts ? 1 : size_of(call.type);
  blocks.sent = call.has_layouts ? call.in_layouts : contiguous(in_bytes(call.sent, element), call.allgather);
  blocks.received = call.has_layouts ? call.out_layouts : contiguous(in_bytes(call.received, element), false);
  return blocks;
}

}  // namespace

std::vector<int> beside(const Placement& placement, int rank) {
  std::vector<int> ranks;
  const auto here = placement.coords(rank);
  for (int d = 0; d < placement.ndims(); ++d) {
    for (const int step : {-1, 1}) {
      auto there = here;
      int& coord = there[at(d)];
      coord += step;
      const int count = placement.cut.split[at(d)];
      const bool inside = coord >= 0 && coord < count;
      coord = (coord + count) % count;
      ranks.push_back(inside || placement.cut.periodic[at(d)] ? placement.rank_at(there) : -1);
    }
  }
  return ranks;
}

std::vector<Layout> contiguous(const std::vector<std::int64_t>& bytes, bool same_place) {
  std::vector<Layout> blocks;
  std::int64_t begin = 0;
  for (const std::int64_t size : bytes) {
    blocks.push_back(moved(Layout::bytes(size), same_place ? 0 : begin));
    begin += size;
  }
  return blocks;
}

std::string neighbour_name(bool allgather) {
  return allgather ? "neighbour_allgather" : "neighbour_alltoall";
}

Agreed NeighboursOfRank::agreed() const {
  Agreed all{{"layouts", call_.has_layouts ? "true" : "false"}};
  if (!call_.has_layouts) all.emplace_back("type", tasuki::shown(call_.type));
  all.emplace_back("neighbours", call_.of_grid ? "of a grid" : "listed");
  return all;
}

std::string NeighboursOfRank::complaint(const Machine& machine) const {
  const int least = call_.of_grid ? -1 : 0;
  for (std::string wrong : {ranks_complaint("to", call_.to, least, machine.size()),
                            ranks_complaint("from", call_.from, least, machine.size())})
    if (!wrong.empty()) return wrong;
  if (call_.has_layouts) {
    std::string wrong = layouts_complaint("in_layouts", call_.in_layouts, call_.to.size());
    return !wrong.empty() ? wrong : layouts_complaint("out_layouts", call_.out_layouts, call_.from.size());
  }
  if (std::string wrong = enumerator_complaint("type", call_.type); !wrong.empty()) return wrong;
  if (call_.type == DType::none) return "argument 'type' is none; give the type of the elements";
  const std::int64_t element = size_of(call_.type);
  std::string wrong = counts_complaint(call_.sent_name, call_.sent, call_.to.size(), element);
  return !wrong.empty() ? wrong : counts_complaint(call_.received_name, call_.received, call_.from.size(), element);
}

void NeighboursOfRank::list() {
  own_ = blocks_of(call_);
}

std::vector<MemoryUse> NeighboursOfRank::memory() const {
  const std::string only = ", which neighbour collectives do not know; give two buffers";
  return {{"in", "argument 'in'", range_of(own_.sent, own_.to), only},
          {"out", "argument 'out'", range_of(own_.received, own_.from), only}};
}

Layout NeighboursOfRank::bytes_of(std::size_t buffer, bool written) const {
  if (written != (buffer == 1)) return {};
  const auto& [blocks, ranks] = written ? std::tie(own_.received, own_.from) : std::tie(own_.sent, own_.to);
  return moved(all_of(blocks, ranks), -range_of(blocks, ranks).begin);
}

std::string NeighboursOfRank::overlap_in(std::size_t buffer) const {
  if (!call_.has_layouts || !bytes_of(buffer, true).overlaps()) return {};
  return "argument 'out_layouts' names a byte twice, which memory that is written must not";
}

std::string NeighboursOfRank::overlapping(std::size_t, std::size_t) const {
  return "arguments 'in' and 'out' overlap in memory";
}

void NeighboursOfRank::tell(int, Encoder& to) const {
  to.number(own_.of_grid ? 1 : 0);
  for (const auto* ranks : {&own_.to, &own_.from}) to.numbers(std::vector<std::int64_t>(ranks->begin(), ranks->end()));
  for (const auto* layouts : {&own_.sent, &own_.received})
    for (const Layout& layout : *layouts) to.layout(layout);
}

void NeighboursOfRank::hear(int, Decoder& from) {
  NeighbourBlocks& blocks = all_.emplace_back();
  blocks.of_grid = from.number(0, 1) == 1;
  for (auto* ranks : {&blocks.to, &blocks.from}) {
    for (const std::int64_t rank : from.numbers()) {
      if (rank < (blocks.of_grid ? -1 : 0) || rank >= ranks_) throw Malformed("a rank that does not exist");
      ranks->push_back(static_cast<int>(rank));
    }
  }
  for (const auto& [layouts, ranks] : {std::pair{&blocks.sent, &blocks.to}, std::pair{&blocks.received, &blocks.from}})
    while (layouts->size() < ranks->size()) layouts->push_back(from.layout());
}

std::string NeighboursOfRank::misfit() const {
  return misfit_of(all_);
}

Problem NeighboursOfRank::problem(const Machine&) const {
  return neighbour_problem(call_.allgather, all_, rank_);
}

NeighbourShape NeighbourShape::among(const std::vector<std::pair<std::vector<int>, std::vector<int>>>& neighbours,
                                     std::int64_t bytes, bool allgather) {
  NeighbourShape shape;
  shape.allgather = allgather;
  for (const auto& [to, from] : neighbours) {
    NeighbourBlocks& blocks = shape.blocks.emplace_back();
    blocks.to = to;
    blocks.from = from;
    blocks.sent = contiguous(std::vector<std::int64_t>(to.size(), bytes), allgather);
    blocks.received = contiguous(std::vector<std::int64_t>(from.size(), bytes), false);
  }
  return shape;
}

NeighbourShape NeighbourShape::on_grid(const Machine& machine, const std::vector<int>& split,
                                       const std::vector<bool>& periodic, std::int64_t bytes, bool allgather) {
  if (bytes < 0) throw Error(fmt::format("argument 'bytes' is {}; it must not be negative", bytes));
  GridOptions options;
  options.split = split;
  options.periodic = periodic;
  // A cell for every rank, whatever the split is.
  const Placement placement = placed(std::vector<std::int64_t>(split.size(), machine.size()), options, machine);
  std::vector<std::pair<std::vector<int>, std::vector<int>>> neighbours;
  for (int rank = 0; rank < machine.size(); ++rank) {
    const std::vector<int> both = beside(placement, rank);
    neighbours.emplace_back(both, both);
  }
  NeighbourShape shape = among(neighbours, bytes, allgather);
  for (NeighbourBlocks& blocks : shape.blocks) blocks.of_grid = true;
  return shape;
}

namespace {

// Whether the rank's lists have one layout for each neighbour, and name ranks that there are.
void check_blocks(const NeighbourBlocks& blocks, int rank, int ranks) {
  const int least = blocks.of_grid ? -1 : 0;
  for (const auto& [name, list, layouts] :
       {std::tuple{"to", &blocks.to, &blocks.sent}, std::tuple{"from", &blocks.from, &blocks.received}}) {
    if (list->size() != layouts->size())
      throw Error(fmt::format("rank {}: argument '{}' names {} neighbours, but there are {} layouts", rank, name,
                              list->size(), layouts->size()));
    for (std::size_t i = 0; i < list->size(); ++i)
      if ((*list)[i] < least || (*list)[i] >= ranks)
        throw Error(fmt::format("rank {}: argument '{}' names rank {} (entry {}), but there are ranks 0 to {}", rank,
                                name, (*list)[i], i, ranks - 1));
  }
}

// Colours the pairs that exchange so that those of one rank differ: each takes the first colour that is left. At most
// twice as many are needed as a rank has partners.
std::map<std::pair<int, int>, int> rounds_of(const std::vector<NeighbourBlocks>& all) {
  std::set<std::pair<int, int>> pairs;
  for (int rank = 0; rank < std::ssize(all); ++rank)
    for (const int to : all[at(rank)].to)
      if (to >= 0 && to != rank) pairs.insert(std::minmax(rank, to));
  std::vector<std::set<int>> taken(all.size());
  std::map<std::pair<int, int>, int> rounds;
  for (const auto& [a, b] : pairs) {
    int round = 0;
    while (taken[at(a)].contains(round) || taken[at(b)].contains(round)) ++round;
    taken[at(a)].insert(round);
    taken[at(b)].insert(round);
    rounds[{a, b}] = round;
  }
  return rounds;
}

class JointNeighbours final : public EachRank {
 public:
  JointNeighbours(NeighbourShape shape, std::map<std::pair<int, int>, int> rounds)
      : shape_(std::move(shape)), rounds_(std::move(rounds)) {}

  std::vector<BufferFact> facts(int rank) const override {
    const NeighbourBlocks& blocks = shape_.blocks[at(rank)];
    const ByteRange ranges[] = {range_of(blocks.sent, blocks.to), range_of(blocks.received, blocks.from)};
    return facts_of(ranges, shape_.memory, shape_.shared);
  }

 private:
  Problem problem_of(int rank) const override {
    Problem problem = neighbour_problem(shape_.allgather, shape_.blocks, rank);
    for (Move& move : problem.moves) {
      const auto found = rounds_.find(std::minmax(move.src_rank, move.dst_rank));
      if (found != rounds_.end()) move.round = found->second;
    }
    return problem;
  }

  NeighbourShape shape_;
  std::map<std::pair<int, int>, int> rounds_;  // of pairs, the lower rank first
};

}  // namespace

std::shared_ptr<const JointShape> joint(const Machine& machine, const NeighbourShape& neighbours) {
  check_gpus(machine, neighbours.memory);
  if (std::ssize(neighbours.blocks) != machine.size())
    throw Error(fmt::format("argument 'blocks' is of {}, but the machine has {}",
                            counted(std::ssize(neighbours.blocks), "rank"), machine.size()));
  for (int rank = 0; rank < machine.size(); ++rank) check_blocks(neighbours.blocks[at(rank)], rank, machine.size());
  if (const std::string wrong = misfit_of(neighbours.blocks); !wrong.empty()) throw Error(wrong);
  const bool loses = machine.inside.collision < 1 || machine.outside.collision < 1;
  return std::make_shared<const JointNeighbours>(
      neighbours, loses ? rounds_of(neighbours.blocks) : std::map<std::pair<int, int>, int>());
}

}  // namespace tasuki
