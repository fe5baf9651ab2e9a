// Redistribute: see redistribute.hpp.
#include "shapes/redistribute.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "layout/sequence.hpp"
#include "shapes/blocks.hpp"
#include "tasuki/error.hpp"
#include "tasuki/strided_copy.hpp"

namespace tasuki {

std::string redistribute_name(const std::vector<std::string>& arrays) {
  return fmt::format("redistribute {}", fmt::join(arrays, ","));
}

std::string complaint_about_scratch(std::int64_t scratch) {
  if (scratch >= 0) return {};
  return fmt::format("argument 'scratch' is {}; it must be 0 (no limit) or more bytes", scratch);
}

namespace {

using CellsOf = std::function<std::vector<RedistributeCells>(int rank)>;

// In how many directions the rank and others deal with each other.
std::int64_t ways_of(const RedistributeSides& sides, int rank) {
  std::int64_t ways = 0;
  for (const std::vector<CommonCells>& list : {sides.sent(rank), sides.received(rank)})
    ways += std::ranges::count_if(list, [&](const CommonCells& cells) { return cells.rank != rank; });
  return ways;
}

std::int64_t copied_bytes(const std::vector<RedistributeCells>& arrays) {
  std::int64_t bytes = 0;
  for (const RedistributeCells& array : arrays) bytes += array.copied_bytes();
  return bytes;
}

// A rank shares out what it may have, less its copies, evenly over all that it sends and receives, and takes a peer's
// share if that is less.
void limit(Problem& problem, const RedistributeSides& sides, std::int64_t scratch, const CellsOf& cells_of) {
  if (scratch == 0) return;
  problem.scratch = scratch;
  const auto share_of = [&](int rank) {
    const std::int64_t left = scratch - copied_bytes(cells_of(rank));
    return std::max<std::int64_t>(left / std::max<std::int64_t>(ways_of(sides, rank), 1), 1);
  };
  const std::int64_t own = share_of(problem.rank);
  for (const int peer : peers_of(problem.moves, problem.rank))
    problem.scratch_with[peer] = std::min(own, share_of(peer));
}

// The copy of a rank's source: its cells, or all bytes from the first to the last where cells share bytes. Both begin
// at the first byte of the range.
std::vector<StridedCopy> whole_copy(const LocalCells& cells) {
  const ByteRange range = cells.range();
  Layout all = cells.cell;
  for (std::size_t d = cells.extents.size(); d-- > 0;)
    all = Layout::hvector(cells.extents[d], 1, cells.strides[d], all);
  all = all.overlaps() ? Layout::bytes(range.end - range.begin) : moved(all, -range.begin);
  std::vector<StridedCopy> copies = zip(all, all);
  for (StridedCopy& copy : copies) copy = reordered(copy);
  return copies;
}

}  // namespace

Problem redistribute_problem(const RedistributeSides& sides, const std::vector<std::string>& arrays, int rank,
                             std::int64_t scratch, bool some_copied,
                             const std::function<std::vector<RedistributeCells>(int rank)>& cells_of) {
  Problem problem;
  problem.operation = redistribute_name(arrays);
  problem.rank = rank;
  BlockMoves moves;
  for (std::size_t a = 0; a < arrays.size(); ++a) {
    const auto buffer = static_cast<int>(2 * a);
    problem.buffers.push_back({arrays.size() == 1 ? "source" : arrays[a] + " source", Role::input});
    problem.buffers.push_back({arrays.size() == 1 ? "target" : arrays[a] + " target", Role::output});
    moves.parts.push_back({buffer, buffer + 1, arrays[a]});
  }
  std::map<int, PeerBlocks> blocks;  // of the rank, and of the others what concerns it
  const std::vector<RedistributeCells> mine = cells_of(rank);
  const auto add = [&](const CommonCells& cells, int from, int to) {
    const auto side = [&](int of, bool source) {
      std::vector<Elements> parts;
      for (const RedistributeCells& one : of == rank ? mine : cells_of(of))
        parts.push_back(source ? sides.source_bytes(cells, one.source) : sides.target_bytes(cells, one.target));
      return parts;
    };
    blocks[from].sent.push_back({to, from, side(from, true)});
    blocks[to].received.push_back({from, to, side(to, false)});
  };
  for (const CommonCells& cells : sides.sent(rank)) add(cells, rank, cells.rank);
  for (const CommonCells& cells : sides.received(rank))
    if (cells.rank != rank) add(cells, cells.rank, rank);
  problem.moves = moves.of(rank, [&](int of) -> const PeerBlocks& { return blocks[of]; });
  if (some_copied) {
    for (std::size_t a = 0; a < arrays.size(); ++a) {
      UserRole copy{problem.buffers[2 * a].name + " copied", Role::scratch, mine[a].copied_bytes(),
                    static_cast<int>(2 * a)};
      if (mine[a].copied) copy.copies = whole_copy(mine[a].source);
      problem.buffers.push_back(std::move(copy));
    }
    for (Move& move : problem.moves) {
      const auto a = static_cast<std::size_t>(move.src / 2);
      if ((move.src_rank == rank ? mine : cells_of(move.src_rank))[a].copied)
        move.src = static_cast<int>(2 * arrays.size() + a);
    }
  }
  limit(problem, sides, scratch, cells_of);
  return problem;
}

namespace {

class JointRedistribute final : public EachRank {
 public:
  explicit JointRedistribute(const RedistributeShape& shape)
      : sides_(shape.from, shape.to, shape.axes),
        memory_(shape.memory),
        shared_(shape.shared),
        scratch_(shape.scratch) {
    for (const ArrayShape& array : shape.arrays) {
      names_.push_back(array.name);
      bytes_.push_back(array.element_bytes);
    }
  }

  std::vector<BufferFact> facts(int rank) const override {
    const bool sends = !sides_.sent(rank).empty();
    const bool receives = !sides_.received(rank).empty();
    std::vector<BufferFact> facts;
    for (const RedistributeCells& array : cells_of(rank)) {
      for (const ByteRange& range :
           {sends ? array.source.range() : ByteRange{}, receives ? array.target.range() : ByteRange{}}) {
        facts.push_back(allocated(range.end - range.begin, memory_, shared_));
        if (facts.back().bytes > 0) continue;
        facts.back().copies = 0;  // as of an operation on ranks, which has no address of it
        facts.back().shared = false;
      }
    }
    return facts;
  }

 private:
  std::vector<RedistributeCells> cells_of(int rank) const {
    std::vector<RedistributeCells> all;
    for (const std::int64_t bytes : bytes_) {
      const Layout cell = Layout::bytes(bytes);
      all.push_back(
          {LocalCells::c_order(sides_.from().local(rank), cell), LocalCells::c_order(sides_.to().local(rank), cell)});
    }
    return all;
  }

  Problem problem_of(int rank) const override {
    return redistribute_problem(sides_, names_, rank, scratch_, false, [&](int of) { return cells_of(of); });
  }

  RedistributeSides sides_;
  std::vector<std::string> names_;
  std::vector<std::int64_t> bytes_;
  Memory memory_;
  bool shared_;
  std::int64_t scratch_;
};

}  // namespace

std::shared_ptr<const JointShape> joint(const Machine& machine, const RedistributeShape& redistribute) {
  check_gpus(machine, redistribute.memory);
  std::string wrong = complaint_about(redistribute.from, redistribute.to, redistribute.axes, machine.size());
  if (wrong.empty() && redistribute.arrays.empty()) wrong = "argument 'arrays' is empty; give at least one";
  for (const ArrayShape& array : redistribute.arrays)
    if (wrong.empty() && array.element_bytes < 1)
      wrong = fmt::format("array {}: an element has {} bytes; it must be at least 1", array.name, array.element_bytes);
  if (wrong.empty()) wrong = complaint_about_scratch(redistribute.scratch);
  if (!wrong.empty()) throw Error("Redistribute: " + wrong);
  return std::make_shared<const JointRedistribute>(redistribute);
}

}  // namespace tasuki
