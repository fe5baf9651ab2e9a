// Two networks at once inside an island, as the paper of machine tca-64 has them: where its curves cross, which the
// prices were fitted to, and the order of its applications' exchanges, which they were not.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tasuki/error.hpp"
#include "tasuki/planning.hpp"

using namespace tasuki;

namespace {

Machine tca() {
  std::ifstream file(TASUKI_MACHINES "/tca-64.json");
  std::stringstream text;
  text << file.rdbuf();
  return Machine::from_json(text.str(), "tca-64");
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
  MESSAGE(fmt::format("{} split {}x{}: MPI {:.1f}, direct {:.1f}, hybrid {:.1f}, chosen {:.1f} us", extents[0],
                      split[0], split[1], all.mpi, all.direct, all.hybrid, all.chosen));
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

// The first size at which MPI is faster.
int crossing(int d) {
  for (int n = 256; n < 1024; n += 16)
    if (face_us(d, n, "mpi") < face_us(d, n, "peer")) return n;
  return 1024;
}

void within(int found, double from, double to) {
  CHECK(found >= from * 0.85);
  CHECK(found <= to * 1.15);
}

}  // namespace

TEST_CASE("stores and MPI cross where the paper's point-to-point curves do") {
  within(crossing(0), 320, 384);  // contiguous
  within(crossing(1), 576, 640);  // block stride
  within(crossing(2), 512, 512);  // stride
  CHECK(face_us(0, 64, "peer") < face_us(0, 64, "mpi") / 3);
  // Block stride is about as fast as contiguous on the direct network, and packed for MPI.
  CHECK(face_us(1, 256, "peer") < face_us(0, 256, "peer") * 1.1);
  CHECK(face_us(1, 256, "mpi") > face_us(0, 256, "mpi") * 1.2);
}

TEST_CASE("the exchanges of the paper's applications come in the paper's order") {
  const Times s28 = himeno(64, {2, 8, 1});
  CHECK(s28.direct < s28.hybrid);
  CHECK(s28.hybrid < s28.mpi);
  const Times m28 = himeno(128, {2, 8, 1});
  CHECK(m28.hybrid < m28.mpi);
  const Times m24 = himeno(128, {2, 4, 1});
  CHECK(m24.hybrid < m24.mpi);
  CHECK(m24.hybrid < m24.direct);
  const Times s42 = himeno(64, {4, 2, 1});
  CHECK(s42.direct < s42.hybrid);
  const Times m42 = himeno(128, {4, 2, 1});
  CHECK(m42.direct < m42.hybrid);
  const Times l28 = himeno(256, {2, 8, 1});
  const Times l24 = himeno(256, {2, 4, 1});
  for (const Times& large : {l28, l24}) CHECK(large.hybrid < large.direct);
  const Times laplace_small = times({8192, 8192}, {2, 8});
  const Times laplace_large = times({16384, 16384}, {2, 8});
  for (const Times& laplace : {laplace_small, laplace_large}) CHECK(laplace.hybrid < laplace.mpi);
  // What is chosen is never slower than any of the three.
  for (const Times& one : {s28, m28, m24, s42, m42, l28, l24, laplace_small, laplace_large}) {
    CHECK(one.chosen <= one.mpi);
    CHECK(one.chosen <= one.direct);
    CHECK(one.chosen <= one.hybrid);
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
