// Two networks at once inside an island, as the paper of machine tca-64 has them: where its curves cross, which the
// prices were fitted to, and the order of its applications' exchanges, which they were not.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tasuki/error.hpp"
#include "tasuki/planning.hpp"

using namespace tasuki;

namespace {

std::string text_of(const char* name) {
  std::ifstream file(name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Machine tca() {
  return Machine::from_json(text_of(TASUKI_MACHINES "/tca-64.json"), "tca-64");
}

// Whether the page has the row of a table. The message is the row that it should have.
void check_shown(const std::string& row) {
  static const std::string page = text_of(TASUKI_MACHINES "/../docs/machines.md");
  CHECK_MESSAGE(page.find("\n" + row + "\n") != std::string::npos, "docs/machines.md should have: ", row);
}

// So many nodes, which lie in two rows: the paper places ranks so that all neighbours are one hop apart.
Machine rows(int ranks) {
  Machine machine = tca().resized(ranks);
  machine.inside.extents = {2, ranks / 2};
  return machine;
}

HaloShape halo(std::vector<std::int64_t> extents, std::vector<int> split, const std::string& path) {
  HaloShape shape;
  FieldShape field;
  field.element_bytes = extents.size() == 3 ? 4 : 8;
  field.dtype = extents.size() == 3 ? DType::f32 : DType::f64;
  field.memory = Memory::device;
  field.shadow = field.width = 0;
  for (std::size_t d = 0; d < split.size(); ++d)
    if (split[d] > 1) field.shadow.lo[d] = field.shadow.hi[d] = 1;
  field.width = field.shadow;
  shape.fields = {field};
  shape.extents = std::move(extents);
  shape.grid.split = std::move(split);
  shape.grid.mapping = "hops";
  shape.corners = false;
  shape.path = path;
  return shape;
}

struct Times {
  double mpi, direct, hybrid, chosen;
};

Times times(const std::vector<std::int64_t>& extents, const std::vector<int>& split) {
  const Machine machine = rows(split[0] * split[1]);
  const auto us = [&](const std::string& path) {
    return plan(machine, halo(extents, split, path)).predict().seconds * 1e6;
  };
  const Times all{us("mpi"), us("peer"), us("i=mpi,j=peer"), us("auto")};
  check_shown(fmt::format("| {} | {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} |", fmt::join(extents, " × "),
                          fmt::join(split, " × "), all.mpi, all.direct, all.hybrid, all.chosen));
  return all;
}

Times himeno(int n, const std::vector<int>& split) {
  return times({n, n, 2 * n}, split);
}

// One way from rank 0 to rank 1: the face of a cube of n floats a side, across dimension d.
double face_us(int d, int n, const std::string& path) {
  const auto i = static_cast<std::size_t>(d);
  std::vector<std::int64_t> extents{n, n, n};
  std::vector<int> split{1, 1, 1};
  extents[i] *= 2;
  split[i] = 2;
  HaloShape shape = halo(extents, split, path);
  shape.fields[0].width.hi[i] = shape.fields[0].shadow.hi[i] = 0;
  return plan(tca().resized(2), shape).predict().seconds * 1e6;
}

// The first size at which MPI is faster; in the paper it lies between the two.
void check_crossing(int d, const char* pattern, int from, int to) {
  int found = 256;
  while (found < 1024 && face_us(d, found, "mpi") >= face_us(d, found, "peer")) found += 16;
  CHECK(found >= from * 0.85);
  CHECK(found <= to * 1.15);
  const std::string paper = from == to ? fmt::format("{}", to) : fmt::format("{} to {}", from, to);
  check_shown(fmt::format("| {} | {} | {} |", pattern, paper, found));
}

}  // namespace

TEST_CASE("stores and MPI cross where the paper's point-to-point curves do") {
  check_crossing(0, "contiguous", 320, 384);
  check_crossing(1, "block stride", 576, 640);
  check_crossing(2, "stride", 512, 512);
  CHECK(face_us(0, 64, "peer") < face_us(0, 64, "mpi") / 3);
  // Block stride is about as fast as contiguous on the direct network, and packed for MPI.
  CHECK(face_us(1, 256, "peer") < face_us(0, 256, "peer") * 1.1);
  CHECK(face_us(1, 256, "mpi") > face_us(0, 256, "mpi") * 1.2);
}

TEST_CASE("the exchanges of the paper's applications come in the paper's order") {
  std::vector<Times> all;
  const auto one = [&](const Times& times) { return all.emplace_back(times); };
  const Times s28 = one(himeno(64, {2, 8, 1}));
  CHECK(s28.direct < s28.hybrid);
  CHECK(s28.hybrid < s28.mpi);
  const Times m28 = one(himeno(128, {2, 8, 1}));
  CHECK(m28.hybrid < m28.mpi);
  const Times m24 = one(himeno(128, {2, 4, 1}));
  CHECK(m24.hybrid < m24.mpi);
  CHECK(m24.hybrid < m24.direct);
  for (const int n : {64, 128}) {
    const Times small = one(himeno(n, {4, 2, 1}));
    CHECK(small.direct < small.hybrid);
  }
  one(himeno(64, {2, 4, 1}));
  one(himeno(256, {4, 2, 1}));
  for (const std::vector<int>& split : {std::vector{2, 8, 1}, std::vector{2, 4, 1}}) {
    const Times large = one(himeno(256, split));
    CHECK(large.hybrid < large.direct);
  }
  for (const std::int64_t n : {8192, 16384}) {
    const Times laplace = one(times({n, n}, {2, 8}));
    CHECK(laplace.hybrid < laplace.mpi);
  }
  // What is chosen is never slower than any of the three.
  REQUIRE(all.size() == 11);
  for (const Times& exchange : all) {
    CHECK(exchange.chosen <= exchange.mpi);
    CHECK(exchange.chosen <= exchange.direct);
    CHECK(exchange.chosen <= exchange.hybrid);
  }
}

TEST_CASE("where the network loses by collisions, ranks send in rounds, and no plan changes where it does not") {
  const HaloShape shape = halo({128, 128, 256}, {2, 4, 1}, "peer");
  const Planned planned = plan(rows(8), shape);
  CHECK(verify(planned.plans()).ok());
  // With pairs in rounds no two ranks send to one at once: collisions cost nothing.
  Machine kind = rows(8);
  kind.inside.collision = 0.999;
  const double seconds = planned.predict().seconds;
  CHECK(seconds <= plan(kind, shape).predict().seconds * 1.001);
  // By distance, as elsewhere, ranks beside a border go ahead of the others.
  Machine other = rows(8);
  other.inside.collision = 1;
  const Planned by_distance = plan(other, shape);
  CHECK(verify(by_distance.plans()).ok());
  CHECK(predict(by_distance.plans(), rows(8)).seconds > 1.2 * seconds);
  for (const Plan& one : by_distance.plans())
    for (const Command& command : one.commands) CHECK(command.dep_count == 0);
}

TEST_CASE("plans over both networks are sound, and the table shows what each carries") {
  const Planned planned = plan(rows(8), halo({128, 128, 256}, {2, 4, 1}, "auto"));
  CHECK(verify(planned.plans()).ok());
  std::map<std::string, int> used;
  for (const Message& message : planned.messages()) ++used[message.path];
  CHECK(used["mpi:staged"] > 0);
  CHECK(used["peer:put"] > 0);
  const std::string text = planned.explain(1);
  CHECK(text.find("balance: links of the GPU: 131072 bytes, ends after 5") != std::string::npos);
  CHECK(text.find("balance: network outside: 32768 bytes, ends after 3") != std::string::npos);
}

TEST_CASE("both networks carry large pieces together, where that saves time") {
  // How many parts go by each path.
  const auto parts = [](const Planned& planned) {
    std::map<std::string, int> found;
    for (const Message& message : planned.messages())
      if (const auto at = message.label.find(" part "); at != std::string::npos)
        ++found[message.label.substr(at + 1) + " " + message.path];
    return found;
  };
  const HaloShape large = halo({256, 256, 512}, {2, 4, 1}, "auto");
  const Planned planned = plan(rows(8), large);
  CHECK(verify(planned.plans()).ok());
  std::map<std::string, int> found = parts(planned);
  CHECK(found.size() == 2);
  CHECK(found["part 1 mpi:staged"] > 0);
  CHECK(found["part 1 mpi:staged"] == found["part 2 peer:put"]);
  CHECK(planned.explain(1).find("part 1 ") != std::string::npos);
  // Whole pieces would take either network longer than both take together.
  CHECK(planned.predict().seconds <
        0.9 * plan(rows(8), halo({256, 256, 512}, {2, 4, 1}, "i=mpi,j=peer")).predict().seconds);
  CHECK(parts(plan(rows(8), halo({64, 64, 128}, {2, 4, 1}, "auto"))).empty());
  CHECK(parts(plan(rows(8), halo({256, 256, 512}, {2, 4, 1}, "i=mpi,j=peer"))).empty());
  CHECK(parts(plan(rows(8), halo({256, 256, 512}, {2, 4, 1}, "peer"))).empty());
  // A face of two planes is cut along its rows.
  HaloShape wide = large;
  wide.fields[0].shadow = wide.fields[0].width = 2;
  const Planned of_two = plan(rows(8), wide);
  CHECK(verify(of_two.plans()).ok());
  CHECK(parts(of_two).size() == 2);
  // Odd sizes, edges and corners, several fields, sums at the receiver, and ranks that decide by themselves.
  int cut = 0;
  for (const double collision : {0.5, 1.0}) {
    for (const bool reverse : {false, true}) {
      HaloShape shape = halo({255, 257, 509}, {2, 4, 1}, "auto");
      shape.corners = true;
      shape.reverse = reverse;
      shape.fields.push_back(shape.fields.front());
      shape.fields.back().name = "other";
      Machine machine = rows(8);
      machine.inside.collision = collision;
      const Planned odd = plan(machine, shape);
      CHECK(verify(odd.plans()).ok());
      for (const auto& [part, times] : parts(odd)) cut += times;
    }
  }
  CHECK(cut > 0);
}

TEST_CASE("by hops a ring and a torus carry the same halo sooner than in rank order") {
  for (const std::vector<int>& nodes : {std::vector{8}, std::vector{2, 4}}) {
    Machine machine = tca().resized(8);
    machine.inside.extents = nodes;
    HaloShape shape = halo({128, 128, 256}, {2, 4, 1}, "peer");
    const auto us = [&](const char* mapping) {
      shape.grid.mapping = mapping;
      const Planned planned = plan(machine, shape);
      CHECK(verify(planned.plans()).ok());
      return planned.predict().seconds * 1e6;
    };
    const double row = us("row");
    const double hops = us("hops");
    CHECK(hops <= row);
    if (nodes.size() == 1) CHECK(hops < 0.9 * row);
    check_shown(fmt::format("| {} {} | {:.1f} | {:.1f} |", nodes.size() == 1 ? "ring of" : "torus of",
                            fmt::join(nodes, " × "), row, hops));
  }
}
