// Layouts of collectives: see collective_layouts.hpp.
#include "shapes/collective_layouts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "layout/counted.hpp"
#include "layout/sequence.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

using Numbers = std::vector<std::int64_t>;
using Side = CollectiveSide;
using Ends = CollectiveSides;

// How many blocks `in` and `out` of a rank have; 0: the side is not looked at.
struct Blocks {
  int in = 1;
  int out = 1;
};
Blocks blocks_of(const CollectiveShape& shape, int rank, int ranks, bool in_place) {
  const bool root = rank == shape.root;
  Blocks blocks;
  switch (shape.kind) {
    case CollectiveKind::broadcast:
      return {1, 0};
    case CollectiveKind::reduce:
      blocks.out = root ? 1 : 0;
      break;
    case CollectiveKind::reduce_scatter:
      blocks.in = ranks;
      // In place the blocks of `in` are those of the one buffer.
      if (in_place) return {ranks, 0};
      break;
    case CollectiveKind::allgather:
      blocks.out = ranks;
      break;
    case CollectiveKind::gather:
      blocks.out = root ? ranks : 0;
      break;
    case CollectiveKind::scatter:
      blocks.in = root ? ranks : 0;
      if (in_place) blocks.out = 0;
      return blocks;
    case CollectiveKind::alltoall:
      blocks = {ranks, ranks};
      break;
    default:
      break;
  }
  if (in_place) blocks.in = 0;
  return blocks;
}

// What the argument with a side's layouts is called: one, or one for each rank's block.
std::string argument_of(const CollectiveCall& call, bool is_in) {
  switch (call.shape.kind) {
    case CollectiveKind::broadcast:
      return "layout";
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::scatter:
      return is_in ? "in_layouts" : "out_layout";
    case CollectiveKind::allgather:
    case CollectiveKind::gather:
      return is_in ? "in_layout" : "out_layouts";
    case CollectiveKind::alltoall:
      return is_in ? "in_layouts" : "out_layouts";
    default:
      return is_in ? "in_layout" : "out_layout";
  }
}

Side side_of(const std::vector<Layout>& layouts, int blocks) {
  Side side;
  if (blocks == 0) return side;
  for (const Layout& layout : layouts) side.bytes.push_back(layout.size());
  side.whole = joined(layouts);
  return side;
}

// Of what is only moved, the numbers that the pieces of all layouts consist of: algorithms cut between them, so that
// what they move stays aligned.
DType unit_of(const std::vector<Ends>& all) {
  std::int64_t bytes = 16;
  for (const Ends& ends : all)
    for (const Layout* layout : {&ends.in.whole, &ends.out.whole})
      for (const Block& nest : layout->blocks())
        while (nest.bytes % bytes != 0) bytes /= 2;
  return bytes == 16  ? DType::c128
         : bytes == 8 ? DType::u64
         : bytes == 4 ? DType::u32
         : bytes == 2 ? DType::u16
                      : DType::u8;
}

// Compares what the ranks have told, and collects it.
class Fitting {
 public:
  Fitting(const CollectiveCall& call, const std::vector<Ends>& ends) : call_(call), ends_(ends) {}

  void fill(CollectiveShape& shape) const {
    if (!reduces(shape.kind)) shape.type = unit_of(ends_);
    const std::int64_t element = size_of(shape.type) * shape.record;
    Numbers bytes = counted();
    for (std::int64_t& count : bytes) count /= element;
    const bool one = bytes.size() == 1;
    shape.count = one ? bytes.front() : 0;
    if (!one) shape.counts = std::move(bytes);
    shape.in_layouts.clear();
    shape.out_layouts.clear();
    if (rooted(shape.kind)) shape.in_place = of(shape.root).in_place;
    // The one buffer of a reduce-scatter in place has the blocks of `in`.
    const bool turned = shape.kind == CollectiveKind::reduce_scatter && shape.in_place;
    for (const Ends& its : ends_) {
      shape.in_layouts.push_back(turned ? Layout() : its.in.whole);
      shape.out_layouts.push_back(turned ? its.in.whole : its.out.whole);
    }
  }

  // Bytes of the whole, or of each block, as the counts of the shape are. Throws `Error` if sides do not fit.
  Numbers counted() const {
    const CollectiveKind kind = call_.shape.kind;
    const int root = call_.shape.root;
    Numbers counts;
    switch (kind) {
      case CollectiveKind::allgather:
      case CollectiveKind::gather:
        for (int r = 0; r < ranks(); ++r) {
          const Block own = of(r).in_place ? Block{r, false, r} : Block{r, true, 0};
          for (int to = 0; to < ranks(); ++to)
            if (kind == CollectiveKind::allgather || to == root) equal(own, {to, false, r});
          counts.push_back(bytes(own));
        }
        return counts;
      case CollectiveKind::scatter:
        for (int r = 0; r < ranks(); ++r) {
          counts.push_back(bytes({root, true, r}));
          if (!of(r).in_place) equal({root, true, r}, {r, false, 0});
        }
        return counts;
      case CollectiveKind::alltoall:
        for (int from = 0; from < ranks(); ++from) {
          for (int to = 0; to < ranks(); ++to) {
            const Block sent{from, !of(from).in_place, to};
            equal(sent, {to, false, from});
            counts.push_back(bytes(sent));
          }
        }
        return counts;
      case CollectiveKind::reduce_scatter:
        for (int b = 0; b < ranks(); ++b) {
          counts.push_back(bytes({0, true, b}));
          for (int r = 0; r < ranks(); ++r) equal({0, true, b}, {r, true, b});
          if (!of(b).in_place) equal({0, true, b}, {b, false, 0});
        }
        return counts;
      default:
        return {bytes_of_vector(kind, root)};
    }
  }

 private:
  int ranks() const { return static_cast<int>(ends_.size()); }
  const Ends& of(int rank) const { return ends_[static_cast<std::size_t>(rank)]; }

  struct Block {
    int rank = 0;
    bool is_in = true;
    int number = 0;
  };
  std::int64_t bytes(const Block& block) const {
    const Ends& its = of(block.rank);
    return (block.is_in ? its.in : its.out).block(block.number);
  }
  std::string named(const Block& block) const {
    const std::string argument = argument_of(call_, block.is_in);
    return fmt::format("'{}'{} of rank {}", argument,
                       argument.ends_with('s') ? fmt::format(" for rank {}", block.number) : "", block.rank);
  }
  void equal(const Block& a, const Block& b) const {
    if (bytes(a) == bytes(b)) return;
    throw Error(fmt::format("argument {} names {} bytes, but {} names {}; they must be equal", named(a), bytes(a),
                            named(b), bytes(b)));
  }

  // Where every rank has the same vector.
  std::int64_t bytes_of_vector(CollectiveKind kind, int root) const {
    const auto given = [&](int r) { return of(r).in_place ? Block{r, false, 0} : Block{r, true, 0}; };
    const bool all = kind != CollectiveKind::broadcast && kind != CollectiveKind::reduce;
    for (int r = 0; r < ranks(); ++r) {
      equal(given(root), given(r));
      if (all || (kind == CollectiveKind::reduce && r == root)) equal(given(root), {r, false, 0});
    }
    return bytes(given(root));
  }

  const CollectiveCall& call_;
  const std::vector<Ends>& ends_;
};

}  // namespace

std::string complaint_about_layouts(const CollectiveCall& call, int rank, int ranks) {
  const CollectiveShape& shape = call.shape;
  const Blocks blocks = blocks_of(shape, rank, ranks, shape.in_place);
  const std::int64_t element = size_of(shape.type) * shape.record;
  for (const bool is_in : {true, false}) {
    const std::vector<Layout>& layouts = is_in ? call.in_layouts : call.out_layouts;
    const int count = is_in ? blocks.in : blocks.out;
    if (count == 0) continue;
    const std::string argument = argument_of(call, is_in);
    if (std::ssize(layouts) != count)
      return fmt::format("argument '{}' has {} for {}", argument, counted(std::ssize(layouts), "layout"),
                         counted(ranks, "rank"));
    for (const Layout& layout : layouts) {
      if (layout.size() % element != 0)
        return fmt::format("argument '{}' ({}) names {} bytes, which is no whole number of elements of {}{}", argument,
                           layout.describe(), layout.size(), shape.record > 1 ? fmt::format("{} ", shape.record) : "",
                           to_string(shape.type));
      if (shape.record == 1) continue;
      for (const Block& block : layout.blocks())
        if (block.bytes % element != 0)
          return fmt::format(
              "argument '{}' ({}) has runs of {} bytes, but operator '{}' combines records of {} bytes, which must lie "
              "together",
              argument, layout.describe(), block.bytes, shape.own, element);
    }
  }
  return {};
}

void tell_layouts(const CollectiveCall& call, int rank, int ranks, Encoder& to) {
  const Blocks blocks = blocks_of(call.shape, rank, ranks, call.marked);
  to.number(call.marked ? 1 : 0);
  for (const Side& side : {side_of(call.in_layouts, blocks.in), side_of(call.out_layouts, blocks.out)})
    to.numbers(side.bytes).layout(side.whole);
}

CollectiveSides hear_layouts(const CollectiveShape& shape, int rank, int ranks, Decoder& from) {
  Ends ends;
  ends.in_place = from.number(0, 1) == 1;
  const Blocks blocks = blocks_of(shape, rank, ranks, ends.in_place);
  for (const auto& [side, count] : {std::pair{&ends.in, blocks.in}, std::pair{&ends.out, blocks.out}}) {
    side->bytes = from.numbers();
    if (std::ssize(side->bytes) != count) throw Malformed("layouts of another number of blocks");
    side->whole = from.layout();
  }
  return ends;
}

std::string misfit_of(const CollectiveCall& call, const std::vector<CollectiveSides>& all) {
  try {
    (void)Fitting(call, all).counted();
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

void fill(CollectiveCall& call, const std::vector<CollectiveSides>& all) {
  Fitting(call, all).fill(call.shape);
}

}  // namespace tasuki
