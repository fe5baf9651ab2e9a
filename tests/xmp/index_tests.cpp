// The index arithmetic of the run-time library of directives, against what it means, element by element.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "cut.hpp"
#include "loops.hpp"
#include "moves.hpp"
#include "shape.hpp"
#include "tasuki/error.hpp"

using namespace tasuki;
using namespace tasuki::xmp;

namespace {

// All kinds of cuts of [first, first + extent) into so many parts.
std::vector<Cut> cuts_of(std::int64_t first, std::int64_t extent, int parts) {
  const std::int64_t end = first + extent;
  std::vector<Cut> cuts{Cut::block(first, end, parts), Cut::cyclic(first, end, parts),
                        Cut::cyclic(first, end, parts, 2), Cut::cyclic(first, end, parts, 3),
                        Cut::block(first, end, parts, extent)};
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(parts), 0);
  for (std::int64_t left = extent, p = parts - 1; p >= 0; --p) {
    const std::int64_t here = p == 0 ? left : p % 3 == 1 ? 0 : left / 2;  // some are empty
    sizes[static_cast<std::size_t>(p)] = here;
    left -= here;
  }
  cuts.push_back(Cut::gblock(first, end, sizes));
  if (parts == 1) cuts.push_back(Cut::whole(first, end));
  return cuts;
}

// Who owns an index, by dealing out one index after the other.
std::vector<int> dealt(const Cut& cut) {
  std::vector<int> owners;
  for (std::int64_t i = cut.first(); i < cut.end(); ++i) {
    int owner = 0;
    if (cut.format() == Format::block) owner = static_cast<int>((i - cut.first()) / cut.size());
    if (cut.format() == Format::cyclic) owner = static_cast<int>((i - cut.first()) / cut.size()) % cut.parts();
    if (cut.format() == Format::gblock)
      while (i >= cut.begin_of(owner + 1)) ++owner;
    owners.push_back(owner);
  }
  return owners;
}

int draw(std::mt19937& random, int least, int most) {
  return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
}

}  // namespace

TEST_CASE("every index of every cut has one owner, and its place there is its rank among his") {
  for (int parts = 1; parts <= 5; ++parts)
    for (std::int64_t extent = 1; extent <= 13; ++extent)
      for (const std::int64_t first : {-3, 0, 1})
        for (const Cut& cut : cuts_of(first, extent, parts)) {
          const std::vector<int> owners = dealt(cut);
          std::vector<std::int64_t> counts(static_cast<std::size_t>(parts), 0);
          for (std::int64_t i = first; i < first + extent; ++i) {
            const int owner = owners[static_cast<std::size_t>(i - first)];
            REQUIRE(cut.owner(i) == owner);
            for (int part = 0; part < parts; ++part)
              REQUIRE(cut.below(part, i) == counts[static_cast<std::size_t>(part)]);
            REQUIRE(cut.nth(owner, counts[static_cast<std::size_t>(owner)]++) == i);
          }
          for (int part = 0; part < parts; ++part) {
            REQUIRE(cut.below(part, first + extent + 5) == counts[static_cast<std::size_t>(part)]);
            std::int64_t seen = 0;
            std::int64_t at = first;
            for (;;) {
              const Range run = cut.run_after(part, at);
              if (run.count() == 0) break;
              for (std::int64_t i = run.first; i < run.end; ++i, ++seen) REQUIRE(cut.owner(i) == part);
              at = run.end;
            }
            REQUIRE(seen == counts[static_cast<std::size_t>(part)]);
          }
        }
}

TEST_CASE("cuts that cannot be are refused with a sentence") {
  CHECK_THROWS_WITH_AS(Cut::block(0, 10, 3, 3), doctest::Contains("give block(4) or more"), Error);
  CHECK_THROWS_WITH_AS(Cut::gblock(0, 10, {3, 3}), doctest::Contains("adds up to 6"), Error);
  CHECK_THROWS_WITH_AS(Cut::gblock(0, 10, {3, 9}), doctest::Contains("entry 1"), Error);
  CHECK_THROWS_WITH_AS(Cut::gblock(0, 10, {-1, 11}), doctest::Contains("entry 0"), Error);
  CHECK_THROWS_WITH_AS(Cut::cyclic(0, 10, 2, -1), doctest::Contains("at least 1"), Error);
}

TEST_CASE("the pieces of a loop are the iterations whose index a part owns, in their order") {
  for (int parts = 1; parts <= 4; ++parts)
    for (std::int64_t extent = 1; extent <= 11; ++extent)
      for (const Cut& cut : cuts_of(1, extent, parts))
        for (std::int64_t begin = 1; begin <= extent + 1; ++begin)
          for (std::int64_t end = begin; end <= extent + 1; ++end)
            for (std::int64_t step = 1; step <= 5; ++step)
              for (int part = 0; part < parts; ++part) {
                const Range loop{begin, end, step};
                std::vector<std::int64_t> expected;
                for (std::int64_t i = begin; i < end; i += step)
                  if (cut.format() == Format::whole || cut.owner(i) == part) expected.push_back(i);
                std::vector<std::int64_t> found;
                int pieces = 0;
                for (std::int64_t at = begin;;) {
                  const Range piece = next_piece(cut, part, loop, at);
                  if (piece.count() == 0) break;
                  ++pieces;
                  for (std::int64_t i = piece.first; i < piece.end; i += piece.step) found.push_back(i);
                  const bool all = cut.format() == Format::cyclic && cut.size() == 1;
                  at = all ? loop.end : piece.end;
                }
                REQUIRE(found == expected);
                if (cut.contiguous()) REQUIRE(pieces <= 1);
              }
}

TEST_CASE("nests of expand and margin: interior and boundary are all iterations, none twice") {
  std::mt19937 random(1);
  for (int n = 0; n < 3000; ++n) {
    const int dims = draw(random, 1, 3);
    std::vector<Cut> cuts;
    std::vector<int> parts;
    Nest loop;
    std::vector<Layers> layers;
    const bool grows = draw(random, 0, 1) == 1;
    for (int d = 0; d < dims; ++d) {
      const int split = draw(random, 1, 4);
      const int extent = draw(random, 1, 12);
      Cut cut = draw(random, 0, 3) == 0 ? Cut::whole(0, extent) : Cut::block(0, extent, split);
      parts.push_back(draw(random, 0, cut.parts() - 1));
      cuts.push_back(cut);
      const int begin = draw(random, 0, extent);
      loop.push_back({begin, draw(random, begin, extent), draw(random, 1, 3)});
      const std::int64_t sign = grows ? 1 : -1;
      layers.push_back({sign * draw(random, 0, 3), sign * draw(random, 0, 3)});
    }
    using Points = std::multiset<std::vector<std::int64_t>>;
    const auto points_of = [&](const std::vector<Nest>& nests) {
      Points points;
      for (const Nest& nest : nests) {
        std::vector<std::int64_t> at;
        const auto walk = [&](const auto& self, std::size_t d) -> void {
          if (d == nest.size()) {
            points.insert(at);
            return;
          }
          for (std::int64_t i = nest[d].first; i < nest[d].end; i += nest[d].step) {
            at.push_back(i);
            self(self, d + 1);
            at.pop_back();
          }
        };
        walk(walk, 0);
      }
      return points;
    };
    const auto expected = [&](bool widened) {
      Nest nest;
      for (std::size_t d = 0; d < loop.size(); ++d) {
        const std::int64_t begin = cuts[d].begin_of(parts[d]);
        const std::int64_t end = cuts[d].begin_of(parts[d] + 1);
        if (begin == end) return Points();
        const bool whole = cuts[d].format() == Format::whole;
        const std::int64_t low = widened && !whole ? begin - layers[d].below : begin;
        const std::int64_t high = widened && !whole ? end + layers[d].above : end;
        Range range = loop[d];
        while (range.first < low) range.first += range.step;
        range.end = std::max(range.first, std::min(range.end, high));
        nest.push_back(range);
      }
      return points_of({nest});
    };
    const Points own = expected(false);
    const Points other = expected(true);
    Points differ;
    std::set_symmetric_difference(own.begin(), own.end(), other.begin(), other.end(),
                                  std::inserter(differ, differ.end()));
    REQUIRE(points_of(nests_of(cuts, parts, loop, Edge::expand, layers)) == other);
    const std::vector<Nest> margin = nests_of(cuts, parts, loop, Edge::margin, layers);
    REQUIRE(margin.size() <= 14);
    REQUIRE(points_of(margin) == differ);
  }
  CHECK_THROWS_WITH_AS(nests_of({Cut::block(0, 4, 2)}, {0}, {{0, 4}}, Edge::margin, {{1, -1}}),
                       doctest::Contains("both signs"), Error);
  CHECK_THROWS_WITH_AS(nests_of({Cut::cyclic(0, 4, 2)}, {0}, {{0, 4}}, Edge::expand, {{1, 1}}),
                       doctest::Contains("cyclic"), Error);
}

namespace {

// An array on ranks that are only memory.
struct Model {
  ArrayShape shape;
  std::map<int, std::vector<std::byte>> memory;  // by rank

  // Where an element is on a node; -1: it owns it not.
  std::int64_t place(int number, const std::vector<std::int64_t>& index) const {
    const Coordinates at = shape.nodes().coordinates(number);
    const Indices strides = shape.strides(at);
    std::int64_t place = 0;
    for (int d = 0; d < shape.ndims(); ++d) {
      const auto i = static_cast<std::size_t>(d);
      const int part = shape.part(d, at);
      if (shape.distributed(d) && shape.owner(d, index[i]) != part) return -1;
      place += shape.local(d, part, index[i]) * strides[i];
    }
    return place;
  }
};

template <class F>
void for_each_index(const std::vector<std::int64_t>& extents, F&& use) {
  std::vector<std::int64_t> at(extents.size(), 0);
  for (;;) {
    use(at);
    std::size_t d = extents.size();
    while (d-- > 0) {
      if (++at[d] < extents[d]) break;
      at[d] = 0;
    }
    if (d == static_cast<std::size_t>(-1)) return;
  }
}

constexpr std::int64_t kElement = sizeof(std::int32_t);

std::vector<std::int64_t> extents_of(const ArrayShape& shape) {
  std::vector<std::int64_t> extents;
  for (int d = 0; d < shape.ndims(); ++d) extents.push_back(shape.dim(d).extent);
  return extents;
}

// A random array of these extents over some of `ranks` ranks.
Model random_model(std::mt19937& random, int ranks, const std::vector<std::int64_t>& extents) {
  NodeShape nodes;
  const int node_dims = draw(random, 1, 2);
  nodes.extents = {draw(random, 1, ranks)};
  if (node_dims == 2) nodes.extents.push_back(draw(random, 1, ranks / nodes.extents[0]));
  std::vector<int> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(rank);
  std::shuffle(all.begin(), all.end(), random);
  int size = 1;
  for (const int extent : nodes.extents) size *= extent;
  nodes.ranks.assign(all.begin(), all.begin() + size);

  std::vector<Spread> spreads;
  std::vector<std::int64_t> first;
  for (int n = 0; n < node_dims; ++n) {
    const std::int64_t begin = draw(random, -2, 3);
    const auto choices = cuts_of(begin, 12, nodes.extents[static_cast<std::size_t>(n)]);
    spreads.push_back({choices[random() % choices.size()], n});
    if (spreads.back().cut.format() == Format::whole) spreads.back().node_dim = -1;
    first.push_back(begin);
  }
  std::vector<int> axes{-1, -1};
  for (int n = 0; n < node_dims; ++n) axes.push_back(n);
  std::shuffle(axes.begin(), axes.end(), random);
  std::vector<ArrayDim> dims;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    ArrayDim dim;
    dim.extent = extents[d];
    dim.axis = axes[d];
    if (dim.axis >= 0) {
      const auto axis = static_cast<std::size_t>(dim.axis);
      dim.offset = first[axis] + draw(random, 0, static_cast<int>(12 - extents[d]));
      if (spreads[axis].cut.contiguous()) {
        dim.shadow = {draw(random, 0, 2), draw(random, 0, 2)};
        dim.full_shadow = draw(random, 0, 4) == 0;
      }
    }
    dims.push_back(dim);
  }
  Model model;
  model.shape = ArrayShape(nodes, spreads, dims, kElement);
  for (int n = 0; n < nodes.size(); ++n) {
    auto& memory = model.memory[nodes.ranks[static_cast<std::size_t>(n)]];
    memory.resize(static_cast<std::size_t>(model.shape.bytes(nodes.coordinates(n))), std::byte{0x55});
  }
  return model;
}

void fill(Model& model, std::int32_t base) {
  for_each_index(extents_of(model.shape), [&](const std::vector<std::int64_t>& at) {
    std::int32_t value = base;
    for (const std::int64_t i : at) value = value * 16 + static_cast<std::int32_t>(i);
    for (int n = 0; n < model.shape.nodes().size(); ++n) {
      const std::int64_t place = model.place(n, at);
      auto& memory = model.memory[model.shape.nodes().ranks[static_cast<std::size_t>(n)]];
      if (place >= 0) std::memcpy(memory.data() + place * kElement, &value, sizeof value);
    }
  });
}

std::int32_t value_at(const Model& model, int number, const std::vector<std::int64_t>& at) {
  std::int32_t value = 0;
  const auto& memory = model.memory.at(model.shape.nodes().ranks[static_cast<std::size_t>(number)]);
  std::memcpy(&value, memory.data() + model.place(number, at) * kElement, sizeof value);
  return value;
}

// Moves what the ranks have for each other; both must name equally many bytes.
void move(const std::map<int, Moves>& moves, const Model& from, Model& to) {
  std::map<std::pair<int, int>, std::vector<std::byte>> packets;
  for (const auto& [rank, mine] : moves)
    for (const Packet& block : mine.sent) {
      auto& packet = packets[{rank, block.rank}];
      REQUIRE(packet.empty());
      packet.resize(static_cast<std::size_t>(block.layout.size()));
      block.layout.pack(from.memory.at(rank).data(), packet.data());
    }
  for (const auto& [rank, mine] : moves)
    for (const Packet& block : mine.received) {
      const auto found = packets.find({block.rank, rank});
      REQUIRE(found != packets.end());
      REQUIRE(static_cast<std::int64_t>(found->second.size()) == block.layout.size());
      block.layout.unpack(found->second.data(), to.memory.at(rank).data());
      packets.erase(found);
    }
  REQUIRE(packets.empty());
}

}  // namespace

TEST_CASE("random assignments between random distributions are those of whole arrays") {
  std::mt19937 random(2);
  for (int n = 0; n < 1500; ++n) {
    const int ranks = draw(random, 1, 6);
    std::vector<std::int64_t> left_extents;
    std::vector<std::int64_t> right_extents;
    std::vector<Range> left;
    std::vector<Range> right;
    const int dims = draw(random, 1, 2);
    for (int d = 0; d < dims; ++d) {
      const int count = draw(random, 1, 5);
      for (auto [extents, section] : {std::pair{&left_extents, &left}, std::pair{&right_extents, &right}}) {
        const int step = draw(random, 1, 2);
        const int first = draw(random, 0, 2);
        const int end = first + (count - 1) * step + 1;
        extents->push_back(draw(random, end, 12));
        section->push_back({first, end, step});
      }
    }
    // A dimension more on one side, of which one index takes part.
    if (draw(random, 0, 1) == 1 && dims == 1) {
      const int extent = draw(random, 1, 6);
      const int index = draw(random, 0, extent - 1);
      left_extents.insert(left_extents.begin(), extent);
      left.insert(left.begin(), Range{index, index + 1});
    }
    Model to = random_model(random, ranks, left_extents);
    Model from = random_model(random, ranks, right_extents);
    fill(to, 1);
    fill(from, 2);
    const Model before = to;
    std::map<int, Moves> moves;
    for (int rank = 0; rank < ranks; ++rank) moves[rank] = moves_of({&to.shape, left}, {&from.shape, right}, rank);
    move(moves, from, to);
    // The dimensions with more than one element correspond.
    std::vector<std::size_t> left_dims;
    std::vector<std::size_t> right_dims;
    for (std::size_t d = 0; d < left.size(); ++d)
      if (left[d].count() > 1) left_dims.push_back(d);
    for (std::size_t d = 0; d < right.size(); ++d)
      if (right[d].count() > 1) right_dims.push_back(d);
    for_each_index(left_extents, [&](const std::vector<std::int64_t>& at) {
      std::vector<std::int64_t> source;
      for (const Range& range : right) source.push_back(range.first);
      bool assigned = true;
      for (std::size_t d = 0; d < left.size(); ++d)
        assigned =
            assigned && at[d] >= left[d].first && at[d] < left[d].end && (at[d] - left[d].first) % left[d].step == 0;
      if (assigned)
        for (std::size_t j = 0; j < left_dims.size(); ++j) {
          const Range& l = left[left_dims[j]];
          const Range& r = right[right_dims[j]];
          source[right_dims[j]] = r.first + (at[left_dims[j]] - l.first) / l.step * r.step;
        }
      std::int32_t expected = 2;
      for (const std::int64_t i : source) expected = expected * 16 + static_cast<std::int32_t>(i);
      for (int number = 0; number < to.shape.nodes().size(); ++number) {
        if (to.place(number, at) < 0) continue;
        REQUIRE(value_at(to, number, at) == (assigned ? expected : value_at(before, number, at)));
      }
    });
  }
}

TEST_CASE("assignments and shadows of more than 2 GiB a message are counted in 64 bits") {
  const std::int64_t extent = std::int64_t{6} << 30;
  const NodeShape three{{3}, {0, 1, 2}};
  const std::vector<Spread> even{{Cut::block(0, extent, 3), 0}};
  const std::vector<Spread> uneven{{Cut::gblock(0, extent, {extent - 5, 0, 5}), 0}};
  ArrayDim dim;
  dim.extent = extent;
  dim.axis = 0;
  const ArrayShape to(three, even, {dim}, 4);
  const ArrayShape from(three, uneven, {dim}, 4);
  std::int64_t sent = 0;
  std::int64_t received = 0;
  for (int rank = 0; rank < 3; ++rank) {
    const Moves moves = moves_of({&to, {{0, extent - 1}}}, {&from, {{1, extent}}}, rank);
    for (const Packet& packet : moves.sent) sent += packet.layout.size();
    for (const Packet& packet : moves.received) received += packet.layout.size();
    CHECK(moves.received.size() == (rank == 2 ? 2 : 1));
  }
  CHECK(sent == 4 * (extent - 1));
  CHECK(received == 4 * (extent - 1));
  // Rows of 8 GiB: the faces of one row.
  const std::vector<Spread> rows{{Cut::block(0, 3, 3), 0}, {Cut::whole(0, extent), -1}};
  ArrayDim row;
  row.extent = 3;
  row.axis = 0;
  row.shadow = {1, 1};
  dim.axis = 1;
  const ArrayShape faces(three, rows, {row, dim}, 4);
  const Moves moves = shadow_moves(faces, {{1, 1}, {0, 0}}, true, 1);
  CHECK(moves.sent.size() == 2);
  for (const Packet& packet : moves.received) CHECK(packet.layout.size() == 4 * extent);
}

TEST_CASE("full shadows are filled from the owners, with and without corners") {
  std::mt19937 random(3);
  for (int n = 0; n < 600; ++n) {
    std::vector<std::int64_t> extents{draw(random, 1, 12), draw(random, 1, 12)};
    Model model = random_model(random, 6, extents);
    bool cyclic = false;
    for (int d = 0; d < 2; ++d) cyclic = cyclic || !model.shape.cut(d).contiguous();
    if (cyclic) continue;
    fill(model, 3);
    const bool corners = draw(random, 0, 1) == 1;
    std::vector<Layers> width;
    for (int d = 0; d < 2; ++d) {
      const ArrayDim& dim = model.shape.dim(d);
      width.push_back(dim.full_shadow ? Layers{-1, -1}
                                      : Layers{draw(random, 0, static_cast<int>(dim.shadow.below)),
                                               draw(random, 0, static_cast<int>(dim.shadow.above))});
    }
    std::map<int, Moves> moves;
    for (int rank = 0; rank < 6; ++rank) moves[rank] = shadow_moves(model.shape, width, corners, rank);
    const Model before = model;
    move(moves, before, model);
    for (int number = 0; number < model.shape.nodes().size(); ++number) {
      const Coordinates at = model.shape.nodes().coordinates(number);
      bool empty = false;
      for (int d = 0; d < 2; ++d) empty = empty || model.shape.owned(d, model.shape.part(d, at)) == 0;
      for_each_index(extents, [&](const std::vector<std::int64_t>& index) {
        int outside = 0;
        bool within = !empty;
        for (int d = 0; d < 2; ++d) {
          const auto i = static_cast<std::size_t>(d);
          const int part = model.shape.part(d, at);
          const std::int64_t begin = model.shape.begin_of(d, part);
          const std::int64_t end = model.shape.begin_of(d, part + 1);
          outside += index[i] < begin || index[i] >= end ? 1 : 0;
          if (width[i].below >= 0)
            within = within && index[i] >= begin - width[i].below && index[i] < end + width[i].above;
        }
        if (!within || outside == 0 || (outside > 1 && !corners)) return;
        const Indices strides = model.shape.strides(at);
        std::int64_t place = 0;
        std::int32_t expected = 3;
        for (int d = 0; d < 2; ++d) {
          const auto i = static_cast<std::size_t>(d);
          place += model.shape.local(d, model.shape.part(d, at), index[i]) * strides[i];
          expected = expected * 16 + static_cast<std::int32_t>(index[i]);
        }
        std::int32_t value = 0;
        const auto& memory = model.memory.at(model.shape.nodes().ranks[static_cast<std::size_t>(number)]);
        std::memcpy(&value, memory.data() + place * kElement, sizeof value);
        REQUIRE(value == expected);
      });
    }
  }
}

TEST_CASE("local and global indices are each other's inverse, and arrays that do not fit are refused") {
  std::mt19937 random(4);
  for (int n = 0; n < 400; ++n) {
    const Model model = random_model(random, 6, {draw(random, 1, 12), draw(random, 1, 12)});
    for (int d = 0; d < 2; ++d) {
      std::int64_t all = 0;
      for (int part = 0; part < model.shape.cut(d).parts(); ++part) all += model.shape.owned(d, part);
      REQUIRE(all == model.shape.dim(d).extent);
      for (std::int64_t i = 0; i < model.shape.dim(d).extent; ++i) {
        const int part = model.shape.distributed(d) ? model.shape.owner(d, i) : 0;
        const std::int64_t local = model.shape.local(d, part, i);
        REQUIRE(local >= 0);
        REQUIRE(local < model.shape.stored(d, part));
        REQUIRE(model.shape.global(d, part, local) == i);
      }
    }
  }
  const NodeShape nodes{{2}, {0, 1}};
  const std::vector<Spread> spreads{{Cut::block(0, 8, 2), 0}};
  const std::vector<Spread> cyclic{{Cut::cyclic(0, 8, 2), 0}};
  const auto dim = [](std::int64_t extent, int axis, std::int64_t offset, Layers shadow = {}) {
    return ArrayDim{extent, axis, offset, shadow, false};
  };
  CHECK_THROWS_WITH_AS(ArrayShape(nodes, spreads, {dim(8, 0, 1)}, 8), doctest::Contains("from template index 1"),
                       Error);
  CHECK_THROWS_WITH_AS(ArrayShape(nodes, spreads, {dim(8, 1, 0)}, 8), doctest::Contains("template that has 1"), Error);
  CHECK_THROWS_WITH_AS(ArrayShape(nodes, spreads, {dim(8, 0, 0), dim(8, 0, 0)}, 8), doctest::Contains("both aligned"),
                       Error);
  CHECK_THROWS_WITH_AS(ArrayShape(nodes, spreads, {dim(0, -1, 0)}, 8), doctest::Contains("at least 1"), Error);
  CHECK_THROWS_WITH_AS(ArrayShape(nodes, cyclic, {dim(8, 0, 0, {1, 1})}, 8), doctest::Contains("no shadow"), Error);
  CHECK_THROWS_WITH_AS(ArrayShape(nodes, spreads, {dim(8, 0, 0, {-1, 1})}, 8), doctest::Contains("-1:1"), Error);
}
