// Redistribution: who sends which cells to whom, against a table of all cells; and its plans, which are sound on every
// path.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "shapes/redistribute.hpp"
#include "tasuki/error.hpp"
#include "tasuki/planning.hpp"

using namespace tasuki;

namespace {

using Numbers = std::vector<std::int64_t>;

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

class Random {
 public:
  explicit Random(unsigned seed) : random_(seed) {}
  std::int64_t up_to(std::int64_t most) {
    return static_cast<std::int64_t>(random_() % static_cast<unsigned>(most + 1));
  }
  std::mt19937& engine() { return random_; }

 private:
  std::mt19937 random_;
};

DimDistribution random_dim(Random& random, std::int64_t extent, int ranks) {
  switch (random.up_to(4)) {
    case 0: {
      Numbers cuts{0, extent};
      while (std::ssize(cuts) <= ranks) cuts.push_back(random.up_to(extent));
      std::ranges::sort(cuts);
      return DimDistribution::between(cuts);
    }
    case 1:
    case 2:
      return DimDistribution::cyclic(ranks, 1 + random.up_to(3));
    case 3:
      return random.up_to(1) == 0 ? DimDistribution::replicated(ranks) : DimDistribution::block(ranks);
    default:
      return DimDistribution::block(ranks);
  }
}

ArrayDistribution random_array(Random& random, const Numbers& extents, int ranks) {
  ArrayDistribution array;
  array.extents = extents;
  int left = ranks;
  for (const std::int64_t extent : extents) {
    const int parts = 1 + static_cast<int>(random.up_to(std::min(left, 3) - 1));
    left /= parts;
    array.dims.push_back(random_dim(random, extent, parts));
  }
  if (random.up_to(1) == 0) {
    std::vector<int> all(at(ranks));
    std::iota(all.begin(), all.end(), 0);
    std::ranges::shuffle(all, random.engine());
    all.resize(at(array.grid_size()));
    array.ranks = all;
  }
  return array;
}

Section random_section(Random& random, std::int64_t extent, std::int64_t count) {
  Section section{0, count, 1};
  const std::int64_t most = count > 1 ? (extent - 1) / (count - 1) : 1;
  section.step = 1 + random.up_to(most - 1);
  section.start = random.up_to(extent - 1 - std::max<std::int64_t>(count - 1, 0) * section.step);
  if (random.up_to(2) > 0) return section;
  section.start += (count - 1) * section.step;
  section.step = -section.step;
  return section;
}

RedistributeShape random_shape(Random& random, int ranks) {
  const std::int64_t dims = 1 + random.up_to(3);
  RedistributeShape shape;
  for (int d = 0; d < dims; ++d) shape.axes.push_back(d);
  std::ranges::shuffle(shape.axes, random.engine());
  const bool sections = random.up_to(1) == 0;
  Numbers from, to, counts;
  for (int d = 0; d < dims; ++d) counts.push_back(1 + random.up_to(dims > 2 ? 6 : 12));
  for (int d = 0; d < dims; ++d) to.push_back(counts[at(d)] + (sections ? random.up_to(6) : 0));
  from.resize(at(dims));
  for (int d = 0; d < dims; ++d) from[at(shape.axes[at(d)])] = counts[at(d)] + (sections ? random.up_to(6) : 0);
  shape.from.array = random_array(random, from, ranks);
  shape.to.array = random_array(random, to, ranks);
  if (sections) {
    shape.from.sections.resize(at(dims));
    for (int d = 0; d < dims; ++d) {
      shape.to.sections.push_back(random_section(random, to[at(d)], counts[at(d)]));
      const auto a = at(shape.axes[at(d)]);
      shape.from.sections[a] = random_section(random, from[a], counts[at(d)]);
    }
  }
  return shape;
}

// Calls `f` with every index below the extents.
template <class F>
void for_each(const Numbers& extents, F&& f) {
  if (std::ranges::any_of(extents, [](std::int64_t extent) { return extent == 0; })) return;
  Numbers index(extents.size(), 0);
  for (;;) {
    f(index);
    std::size_t d = index.size();
    while (d > 0 && ++index[d - 1] == extents[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

std::int64_t number_of(const Numbers& index, const Numbers& extents) {
  std::int64_t number = 0;
  for (std::size_t d = 0; d < index.size(); ++d) number = number * extents[d] + index[d];
  return number;
}

// What the ranks' local arrays hold where the global one holds `value(its index)`.
template <class F>
std::vector<Numbers> locals(const ArrayDistribution& array, int ranks, F&& value) {
  std::vector<Numbers> all;
  for (int rank = 0; rank < ranks; ++rank) {
    const Numbers extents = array.local(rank);
    std::vector<Numbers> indices;
    for (int d = 0; d < std::ssize(extents); ++d) {
      indices.push_back(array.indices(rank, d));
      REQUIRE(std::ssize(indices.back()) == extents[at(d)]);
    }
    Numbers& local = all.emplace_back();
    for_each(extents, [&](const Numbers& index) {
      Numbers global;
      for (std::size_t d = 0; d < index.size(); ++d) global.push_back(indices[d][at(index[d])]);
      local.push_back(value(global));
    });
  }
  return all;
}

// The local arrays after the cells have moved, as a table of all cells has it.
std::vector<Numbers> expected(const RedistributeShape& shape, int ranks) {
  const Numbers& to = shape.to.array.extents;
  Numbers global(at(std::accumulate(to.begin(), to.end(), std::int64_t{1}, std::multiplies<>())), -1);
  Numbers counts = to;
  for (std::size_t d = 0; d < shape.to.sections.size(); ++d) counts[d] = shape.to.sections[d].count;
  for_each(counts, [&](const Numbers& position) {
    Numbers from(position.size()), target(position.size());
    for (std::size_t d = 0; d < position.size(); ++d) {
      const auto a = at(shape.axes[d]);
      const Section given = shape.from.sections.empty() ? Section{} : shape.from.sections[a];
      const Section taken = shape.to.sections.empty() ? Section{} : shape.to.sections[d];
      from[a] = given.start + position[d] * given.step;
      target[d] = taken.start + position[d] * taken.step;
    }
    global[at(number_of(target, to))] = number_of(from, shape.from.array.extents);
  });
  return locals(shape.to.array, ranks, [&](const Numbers& index) { return global[at(number_of(index, to))]; });
}

std::string said(const RedistributeShape& shape, int ranks) {
  try {
    (void)plan(Machine::uniform(ranks, 2, 2), shape);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("a redistribution moves each cell of a section to its place, and no other") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const int ranks = 1 + static_cast<int>(random.up_to(7));
    const RedistributeShape shape = random_shape(random, ranks);
    INFO(shape.from.array.describe() << " to " << shape.to.array.describe());
    const RedistributeSides sides(shape.from, shape.to, shape.axes);
    const auto before = locals(shape.from.array, ranks,
                               [&](const Numbers& index) { return number_of(index, shape.from.array.extents); });
    std::vector<Numbers> after = locals(shape.to.array, ranks, [](const Numbers&) { return -1; });
    const Layout cell = Layout::bytes(8);
    for (int from = 0; from < ranks; ++from) {
      const auto source = LocalCells::c_order(shape.from.array.local(from), cell);
      for (const CommonCells& sent : sides.sent(from)) {
        const auto target = LocalCells::c_order(shape.to.array.local(sent.rank), cell);
        const auto received = sides.received(sent.rank);
        const auto found = std::ranges::find(received, from, &CommonCells::rank);
        REQUIRE(found != received.end());
        REQUIRE(sides.source_bytes(sent, source) == sides.source_bytes(*found, source));
        REQUIRE(sides.target_bytes(sent, target) == sides.target_bytes(*found, target));
        const Layout out = sides.target_bytes(sent, target);
        std::string packed(at(out.size()), ' ');
        REQUIRE(sides.source_bytes(sent, source).size() == out.size());
        sides.source_bytes(sent, source).pack(before[at(from)].data(), packed.data());
        // Each cell comes from one rank only.
        std::string there(packed.size(), ' ');
        out.pack(after[at(sent.rank)].data(), there.data());
        REQUIRE(std::ranges::all_of(there, [](char byte) { return byte == '\xff'; }));
        out.unpack(packed.data(), after[at(sent.rank)].data());
      }
    }
    CHECK(after == expected(shape, ranks));
  }
}

TEST_CASE("random redistributions are sound on every path") {
  for (unsigned seed = 1000; seed < 1030; ++seed) {
    for (const char* path : {"auto", "mpi", "shared:eager,mpi", "shared:pull,mpi", "shared:put,shared:eager,mpi"}) {
      CAPTURE(seed);
      CAPTURE(path);
      Random random(seed);
      const int ranks = 1 + static_cast<int>(random.up_to(5));
      RedistributeShape shape = random_shape(random, ranks);
      if (seed % 2 == 0) shape.arrays = {{"u", 8}, {"v", 3}};
      shape.shared = seed % 3 != 0;
      shape.path = path;
      const Planned planned = plan(Machine::uniform(ranks, 3, 3), shape);
      const auto plans = planned.plans();
      const VerifyReport report = verify(plans);
      INFO(report.text());
      CHECK(report.ok());
      for (const Plan& one : plans) {
        CHECK(one.operation == (seed % 2 == 0 ? "redistribute u,v" : "redistribute array"));
        CHECK(plan_from_json(to_json(one)) == one);
      }
    }
  }
}

TEST_CASE("random redistributions keep to a limit for scratch, or say what they need") {
  int refused = 0;
  for (unsigned seed = 2000; seed < 2030; ++seed) {
    for (const char* path : {"auto", "mpi", "shared:eager,mpi", "shared:eager", "shared:put,mpi"}) {
      CAPTURE(seed);
      CAPTURE(path);
      Random random(seed);
      const int ranks = 1 + static_cast<int>(random.up_to(4));
      RedistributeShape shape = random_shape(random, ranks);
      shape.arrays = {{"u", 8}, {"v", 3}};
      shape.shared = seed % 3 == 0;
      shape.path = path;
      // A link's share is 64 bytes at least where a rank has 1024 for all: at most 2 (ranks - 1) ways, 2 paths each.
      shape.scratch = seed % 4 == 0 ? 1 + random.up_to(300) : 1024 + random.up_to(2000);
      std::vector<Plan> plans;
      try {
        plans = plan(Machine::uniform(ranks, 5, 5), shape).plans();
      } catch (const Error& error) {
        const std::string said = error.what();
        INFO(said);
        REQUIRE(shape.scratch < 1024);
        CHECK(said.find("of scratch") != std::string::npos);
        ++refused;
        continue;
      }
      const VerifyReport report = verify(plans);
      INFO(report.text());
      CHECK(report.ok());
      for (const Plan& one : plans) {
        std::int64_t scratch = 0;
        for (const Buffer& buffer : one.buffers)
          if (buffer.role == Role::scratch && buffer.rank == one.rank) scratch += buffer.bytes * buffer.ring;
        CHECK(scratch <= shape.scratch);
      }
    }
  }
  CHECK(refused > 0);
}

TEST_CASE("a piece larger than the scratch travels in slices that use it in turn") {
  RedistributeShape shape;
  shape.from.array = {{64, 64, 8}, {DimDistribution::block(2), DimDistribution::whole(), DimDistribution::whole()}};
  shape.to.array = {{64, 64, 8}, {DimDistribution::whole(), DimDistribution::block(2), DimDistribution::whole()}};
  for (const char* path : {"mpi", "shared:eager"}) {
    CAPTURE(path);
    shape.path = path;
    shape.scratch = 0;
    const Machine machine = Machine::uniform(2, 2, 2);
    const auto scratch_of = [](const Plan& one) {
      std::int64_t bytes = 0;
      for (const Buffer& buffer : one.buffers)
        if (buffer.role == Role::scratch && buffer.rank == one.rank) bytes += buffer.bytes * buffer.ring;
      return bytes;
    };
    const std::int64_t piece = 32 * 32 * 8 * 8;  // bytes to the other rank
    CHECK(scratch_of(plan(machine, shape).plan(0)) >= piece);
    shape.scratch = 10000;
    const auto plans = plan(machine, shape).plans();
    const VerifyReport report = verify(plans);
    INFO(report.text());
    CHECK(report.ok());
    CHECK(scratch_of(plans[0]) <= 10000);
    CHECK(scratch_of(plans[0]) > 1000);
    shape.scratch = -1;
    CHECK(said(shape, 2) == "Redistribute: argument 'scratch' is -1; it must be 0 (no limit) or more bytes");
    shape.scratch = 100;
    CHECK(said(shape, 2).find("of scratch") != std::string::npos);
  }
}

TEST_CASE("pencils of many ranks are small, sound by neighbourhoods, and predicted") {
  RedistributeShape shape;
  const auto pencils = [](int across, int along_dim) {
    ArrayDistribution array;
    array.extents = {640, 640, 640};
    for (int d = 0; d < 3; ++d)
      array.dims.push_back(d == along_dim ? DimDistribution::whole() : DimDistribution::block(across));
    return array;
  };
  shape.from.array = pencils(16, 0);
  shape.to.array = pencils(16, 1);
  shape.axes = {0, 1, 2};
  const Planned planned = plan(Machine::uniform(256, 8, 8), shape);
  const auto plans = planned.plans();
  std::int64_t most = 0;
  for (const Plan& one : plans) most = std::max(most, one.memory());
  CHECK(most <= 24 << 10);
  const NeighbourhoodReport report = verify_neighbourhoods(plans);
  INFO(report.text());
  CHECK(report.ok());
  CHECK(planned.predict().seconds > 0);
}

TEST_CASE("redistributions that cannot be are named") {
  RedistributeShape shape;
  shape.from.array = {{8, 6}, {DimDistribution::block(2), DimDistribution::whole()}};
  shape.to.array = {{6, 8}, {DimDistribution::cyclic(2, 2), DimDistribution::whole()}, {1, 0}};
  shape.axes = {1, 0};
  CHECK(said(shape, 2) == "nothing");
  const auto changed = [&](auto&& change) {
    RedistributeShape other = shape;
    change(other);
    return said(other, 2);
  };
  CHECK(changed([](auto& s) { s.axes = {}; }) ==
        "Redistribute: the array of argument 'from' is 8 x 6, but that of 'to' is 6 x 8; they must be equal");
  CHECK(changed([](auto& s) {
          s.to.array.extents = {6, 9};
        }) ==
        "Redistribute: the array of argument 'from' is 6 x 8 once its axes are permuted, but that of 'to' is 6 x 9; "
        "they must be equal");
  for (const std::vector<int>& axes : {std::vector<int>{0, 0}, {0, 2}, {0}, {0, 1, 2}, {-1, 0}})
    CHECK(changed([&](auto& s) { s.axes = axes; }).find("it must name each of the dimensions 0 to 1 once") !=
          std::string::npos);
  CHECK(changed([](auto& s) {
          s.to.array.ranks = {1, 2};
        }) == "Redistribute: argument 'to': rank 2 is named, but there are ranks 0 to 1");
  CHECK(changed([](auto& s) {
          s.to.array.ranks = {1, 1};
        }) == "Redistribute: argument 'to': rank 1 is named twice; it has one part of the array");
  CHECK(changed([](auto& s) { s.to.array.ranks = {1}; }) ==
        "Redistribute: argument 'to': 1 rank given for the 2 places of the process grid");
  CHECK(changed([](auto& s) { s.from.array.dims[1] = DimDistribution::block(2); }) ==
        "Redistribute: argument 'from': the process grid has 4 places, but there are ranks 0 to 1");
  CHECK(changed([](auto& s) {
          s.from.sections = {{0, 4, 2}, {0, 6, 1}};
        }) ==
        "Redistribute: the section of argument 'from' is 6 x 4 once its axes are permuted, but that of 'to' is 6 x 8; "
        "they must be equal");
  CHECK(changed([](auto& s) {
          s.from.sections = {{0, 5, 2}, {0, 6, 1}};
        }) ==
        "Redistribute: argument 'from': the section of dimension 0 (5 indices from 0, 2 apart) leaves the array, which "
        "has indices 0 to 7");
  CHECK(changed([](auto& s) { s.from.sections = {{7, 8, -1}, {0, 6, 1}}; }) == "nothing");
  CHECK(changed([](auto& s) { s.from.sections = {{7, 8, 0}, {0, 6, 1}}; }).find("step") != std::string::npos);
  CHECK(changed([](auto& s) {
          s.from.array.dims[0] = DimDistribution::between({0, 9});
        }).find("the cuts of dimension 0 go from 0 to 9; they must go from 0 to the extent, 8") != std::string::npos);
  CHECK(changed([](auto& s) { s.from.array.dims[0] = DimDistribution::between({}); }).find("needs one more cut") !=
        std::string::npos);
  CHECK(changed([](auto& s) { s.from.array.dims[0].ranks = 0; }).find("must be at least 1") != std::string::npos);
  CHECK(changed([](auto& s) { s.to.array.dims[0].width = 0; }).find("must be at least 1") != std::string::npos);
  CHECK(changed([](auto& s) { s.from.array.dims.pop_back(); }).find("each dimension needs one") != std::string::npos);
  CHECK(changed([](auto& s) { s.arrays = {}; }).find("'arrays' is empty") != std::string::npos);
  CHECK(changed([](auto& s) { s.arrays[0].element_bytes = 0; }).find("must be at least 1") != std::string::npos);
}
