// Mirrored edges of halos off line: on random grids every shadow cell is promised what a serial model says, every plan
// is sound on every path, plans without edges are what they were, and edges that cannot be are named.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "../random_split.hpp"
#include "grid/edges.hpp"
#include "grid/placement.hpp"
#include "layout/nest_loop.hpp"
#include "tasuki/error.hpp"
#include "tasuki/planning.hpp"

using namespace tasuki;

namespace {

constexpr int kDims = 3;
const char* const kWords[] = {"none", "face", "cell", "-face", "-cell"};

struct Case {
  HaloShape shape;
  std::vector<Edges> edges;  // by field
};

Case random_case(int ranks, std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
  Case c;
  HaloShape& halo = c.shape;
  const int dims = 1 + static_cast<int>(below(kDims));
  halo.grid.split = random_split(ranks, dims, random);
  for (int d = 0; d < dims; ++d) {
    halo.extents.push_back(1 + below(9));
    halo.grid.periodic.push_back(below(3) == 0);
  }
  halo.corners = below(4) != 0;
  halo.cuts = random_cuts(halo.extents, 2, random);
  std::vector<std::string> names;
  for (int f = 0; f < 1 + static_cast<int>(below(3)); ++f) {
    FieldShape field{.name = std::string(1, "uvw"[f]), .pad = below(3)};
    std::string list;
    Width width(0);
    for (std::size_t d = 0; d < static_cast<std::size_t>(dims); ++d) {
      std::string words[2];
      for (const bool above : {false, true}) {
        const auto word = halo.grid.periodic[d] ? 0 : static_cast<std::size_t>(below(5));
        words[above] = kWords[word];
        std::int64_t most = 4;
        if (word != 0) most = std::min<std::int64_t>(most, halo.extents[d] + 1 - (word % 2 == 0 ? 1 : 0));
        (above ? width.hi : width.lo)[d] = below(static_cast<int>(most));
      }
      list +=
          std::string(list.empty() ? "" : ", ") + "ijk"[d] + "=" + words[0] + (below(2) == 0 ? " / " : "/") + words[1];
    }
    field.width = field.shadow = width;
    field.shadow.lo[0] += 1;
    halo.edges += (halo.edges.empty() ? "" : "; ") + field.name + ": " + list;
    names.push_back(field.name);
    halo.fields.push_back(field);
  }
  c.edges = edges_from(halo.edges, names);
  return c;
}

using Source = std::tuple<int, std::int64_t, bool>;  // rank, offset, with its sign changed
using Promised = std::map<std::int64_t, Source>;     // by offset

std::int64_t offset_of(const Placement& placement, const FieldShape& field, int rank, const Index& global) {
  const Box box = placement.owned(rank);
  std::int64_t offset = 0;
  for (int d = 0; d < box.ndims; ++d) {
    const auto i = static_cast<std::size_t>(d);
    const std::int64_t pad = d + 1 == box.ndims ? field.pad : 0;
    offset = offset * (box.extent(d) + field.shadow.lo[i] + field.shadow.hi[i] + pad) + global[i] - box.lo[i] +
             field.shadow.lo[i];
  }
  return offset * field.element_bytes;
}

// The global index that fills one of a dimension, and whether its sign changes; false: none does.
bool image(const Edges& edges, const Placement& placement, int d, std::int64_t& at, bool& negates) {
  const auto i = static_cast<std::size_t>(d);
  const std::int64_t n = placement.cut.extents[i];
  if (at >= 0 && at < n) return true;
  if (placement.cut.periodic[i]) {
    at = ((at % n) + n) % n;
    return true;
  }
  const Edge& edge = at < 0 ? edges.lo[i] : edges.hi[i];
  if (edge.mirror == Edge::Mirror::none) return false;
  // How far outside the outermost cell, and as far inside it, or one cell less.
  const std::int64_t outside = at < 0 ? -at : at - (n - 1);
  const std::int64_t inside = edge.mirror == Edge::Mirror::cell ? outside : outside - 1;
  at = at < 0 ? inside : n - 1 - inside;
  negates = negates != edge.negates;
  return true;
}

Promised model(const Placement& placement, const Case& c, std::size_t f, int rank) {
  Promised promised;
  const FieldShape& field = c.shape.fields[f];
  const Box box = placement.owned(rank);
  if (box.empty()) return promised;
  Index at{};
  for (int d = 0; d < box.ndims; ++d) at[static_cast<std::size_t>(d)] = box.lo[d] - field.width.lo[d];
  for (;;) {
    Index from = at;
    bool there = true;
    bool negates = false;
    int sides = 0;
    for (int d = 0; d < box.ndims && there; ++d) {
      const auto i = static_cast<std::size_t>(d);
      if (at[i] < box.lo[i] || at[i] >= box.hi[i]) ++sides;
      there = image(c.edges[f], placement, d, from[i], negates);
    }
    if (there && sides > 0 && (sides == 1 || c.shape.corners)) {
      int owner = 0;
      const auto has = [&](int r) {
        const Box theirs = placement.owned(r);
        for (int d = 0; d < box.ndims; ++d)
          if (from[static_cast<std::size_t>(d)] < theirs.lo[d] || from[static_cast<std::size_t>(d)] >= theirs.hi[d])
            return false;
        return true;
      };
      while (!has(owner)) ++owner;
      promised[offset_of(placement, field, rank, at)] = {owner, offset_of(placement, field, owner, from), negates};
    }
    int d = box.ndims - 1;
    for (; d >= 0 && ++at[static_cast<std::size_t>(d)] == box.hi[d] + field.width.hi[d]; --d)
      at[static_cast<std::size_t>(d)] = box.lo[d] - field.width.lo[d];
    if (d < 0) return promised;
  }
}

Promised promised(const Plan& plan, const std::string& field) {
  Promised found;
  for (const Expect& e : plan.expects) {
    if (plan.buffers[static_cast<std::size_t>(e.dst)].name != field) continue;
    CHECK((e.dtype == DType::none) == (e.op != ReduceOp::negate));
    const int from = plan.buffers[static_cast<std::size_t>(e.src)].rank;
    for (std::int32_t k = e.first_copy; k < e.first_copy + e.copy_count; ++k) {
      const StridedCopy& copy = plan.copies[static_cast<std::size_t>(k)];
      for_each_offset(copy, [&](std::int64_t src, std::int64_t dst) {
        for (std::int64_t b = 0; b < copy.block; b += 8) {
          const bool fresh = found.try_emplace(dst + b, from, src + b, e.op == ReduceOp::negate).second;
          CHECK(fresh);
        }
      });
    }
  }
  return found;
}

std::string said(const HaloShape& shape, int ranks = 2) {
  try {
    (void)plan(Machine::uniform(ranks, ranks, ranks), shape);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

bool says(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  CHECK_MESSAGE(found, text);
  return found;
}

HaloShape walls(const std::string& edges) {
  HaloShape shape;
  shape.extents = {6, 5};
  shape.grid.periodic = {false, true};
  shape.fields = {{.name = "u"}};
  shape.edges = edges;
  return shape;
}

}  // namespace

TEST_CASE("every shadow cell of random halos with edges is promised what a serial model says, and plans are sound") {
  std::mt19937 random(4711);
  for (int i = 0; i < 90; ++i) {
    const int ranks = 1 + i % 6;
    Case c = random_case(ranks, random);
    const Machine machine = Machine::uniform(ranks, i % 2 == 0 ? ranks : 1, i % 2 == 0 ? ranks : 1);
    const char* const paths[] = {"auto", "mpi", "shared:eager,mpi", "shared:pull,mpi"};
    c.shape.path = paths[random() % 4];
    CAPTURE(i);
    CAPTURE(c.shape.edges);
    CAPTURE(c.shape.path);
    const std::vector<Plan> plans = plan(machine, c.shape).plans();
    const VerifyReport report = verify(plans);
    INFO(report.text());
    CHECK(report.ok());
    CHECK(report.orders.empty());
    const Placement placement = placed(c.shape.extents, c.shape.grid, machine);
    for (int rank = 0; rank < ranks; ++rank) {
      const Plan& one = plans[static_cast<std::size_t>(rank)];
      for (std::size_t f = 0; f < c.shape.fields.size(); ++f)
        CHECK(promised(one, c.shape.fields[f].name) == model(placement, c, f, rank));
      CHECK(plan_from_text(to_text(one)) == one);
      CHECK(plan_from_json(to_json(one)) == one);
    }
  }
}

TEST_CASE("plans of halos without mirrored edges are what they are without the option") {
  std::mt19937 random(99);
  for (int i = 0; i < 30; ++i) {
    const int ranks = 1 + i % 6;
    Case c = random_case(ranks, random);
    const Machine machine = Machine::uniform(ranks, ranks, ranks);
    HaloShape without = c.shape;
    without.edges = "";
    HaloShape none = c.shape;
    none.edges = "i=none";
    CAPTURE(i);
    const std::vector<Plan> plans = plan(machine, without).plans();
    CHECK(plan(machine, none).plans() == plans);
    // What comes from neighbours is the same beside mirrored edges.
    const std::vector<Plan> with = plan(machine, c.shape).plans();
    for (std::size_t rank = 0; rank < plans.size(); ++rank) {
      for (const FieldShape& field : c.shape.fields) {
        const Promised all = promised(with[rank], field.name);
        for (const auto& [offset, source] : promised(plans[rank], field.name)) {
          REQUIRE(all.count(offset) == 1);
          CHECK(all.at(offset) == source);
        }
      }
    }
  }
}

TEST_CASE("a sign that is not changed, changed twice or of other numbers is noticed") {
  HaloShape shape = walls("i=-face");
  shape.grid.split = {2, 1};
  for (const char* path : {"mpi", "shared:eager"}) {
    shape.path = path;
    const std::vector<Plan> plans = plan(Machine::uniform(2, 2, 2), shape).plans();
    REQUIRE(verify(plans).ok());
    int changed = 0;
    for (std::size_t k = 0; k < plans[0].commands.size(); ++k) {
      if (plans[0].commands[k].op != ReduceOp::negate) continue;
      const auto noticed = [&](auto change, const std::string& what) {
        std::vector<Plan> all = plans;
        change(all[0].commands[k]);
        const VerifyReport report = verify(all);
        CHECK_FALSE(report.ok());
        says(report.text(), what);
        ++changed;
      };
      noticed(
          [](Command& c) {
            c.verb = Verb::copy;
            c.dtype = DType::none;
            c.op = ReduceOp::sum;
          },
          "wrong result");
      noticed([](Command& c) { c.op = ReduceOp::sum; }, "the sum of f64, where the negate of f64 is promised");
      noticed([](Command& c) { c.dtype = DType::f32; }, "the negate of f32, where the negate of f64 is promised");
      noticed([](Command& c) { c.dtype = DType::u64; }, "names the operator negate, which is not defined for u64");
    }
    CHECK(changed > 0);
  }
}

TEST_CASE("a reverse halo adds mirrored shadows into the cells that they are images of") {
  HaloShape shape = walls("i=face/cell");
  shape.fields[0].shadow = shape.fields[0].width = 2;
  shape.reverse = true;
  for (const int ranks : {1, 2, 4}) {
    const std::vector<Plan> plans = plan(Machine::uniform(ranks, ranks, ranks), shape).plans();
    const VerifyReport report = verify(plans);
    INFO(report.text());
    CHECK(report.ok());
  }
}

TEST_CASE("edges that cannot be are named") {
  CHECK(said(walls("i=face")) == "nothing");
  CHECK(said(walls(" u : i = -face / none ")) == "nothing");
  says(said(walls("j=face")), "option 'edges' mirrors field u in dimension 1, which is periodic");
  says(said(walls("k=face")), "option 'edges' mirrors dimension 2 of field u, whose grid has 2");
  says(said(walls("i=wall")), "option 'edges' is 'i=wall': there is no edge 'wall'; give one of none, face, cell");
  says(said(walls("i=face, i=cell")), "names dimension i twice");
  says(said(walls("i=face/cell/none")), "has 3 sides");
  says(said(walls("face")), "'face' is no entry");
  says(said(walls("p: i=face")), "the halo has no field 'p'");
  says(said(walls("i=face; i=cell")), "two lists name no field");
  says(said(walls("u: i=face; u: i=cell")), "two lists name field u");
  HaloShape wide = walls("i=cell");
  wide.fields[0].shadow = wide.fields[0].width = 6;
  says(said(wide), "option 'edges' mirrors 6 cells of field u below dimension 0, but the grid has 5");
  wide.edges = "i=face";
  CHECK(said(wide) == "nothing");
  HaloShape unsigned_numbers = walls("i=-face");
  unsigned_numbers.fields[0].dtype = DType::u64;
  says(said(unsigned_numbers), "option 'edges' changes the sign of field u, whose elements (8 bytes each)");
  unsigned_numbers.edges = "i=face";
  CHECK(said(unsigned_numbers) == "nothing");
  HaloShape reverse = walls("i=-face");
  reverse.reverse = true;
  says(said(reverse), "option 'edges' changes the sign of field u, which reverse cannot do");
}
