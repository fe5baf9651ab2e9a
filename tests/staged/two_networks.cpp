// Two networks at once in host memory: stores over one, messages over the other, with prices by which both carry large
// pieces together. What arrives is what one path brings, bit for bit, and the plans are those made off line. Between
// GPUs stores and messages do the same, where a list names both.
#include <doctest/doctest.h>
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "paths/path.hpp"
#include "protocols/message.hpp"
#include "protocols/pull.hpp"
#include "protocols/put.hpp"
#include "random_split.hpp"
#include "session/runtime.hpp"
#include "tasuki/planning.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

Offer offered(const Question& q, bool can) {
  if (q.move.src_rank == q.move.dst_rank) return Offer::no("same rank");
  if (!q.cost.measured) return Offer::no("for tests that name its price");
  return can ? priced(q) : Offer::no("needs memory that ranks share, and puts do not add");
}

// Paths that join nobody by themselves.
Path path_on(Resource resource, const std::string& name, std::shared_ptr<const Protocol> protocol,
             Offer (*offer)(const Question&)) {
  Path path;
  path.name = name;
  path.protocol = std::move(protocol);
  path.joins = [](const Machine&, int, int) { return false; };
  path.offer = offer;
  path.resource = resource;
  return path;
}

const PathRegistration puts{[] {
  return path_on(Resource::links, "links:put", std::make_shared<PutProtocol>(Home::shared),
                 [](const Question& q) { return offered(q, q.dst.shared && !accumulates(q.move.add, q.move.op)); });
}};
const PathRegistration pulls{[] {
  return path_on(Resource::links, "links:pull", std::make_shared<PullProtocol>(Home::shared),
                 [](const Question& q) { return offered(q, q.src.shared); });
}};
const PathRegistration messages{[] {
  Path path =
      path_on(Resource::network, "outside", std::make_shared<MessageProtocol>(Home::own, MessageProtocol::Cut::limit),
              [](const Question& q) { return offered(q, true); });
  path.transport = "mpi";
  path.carried = {Verb::send, Verb::recv};
  return path;
}};

// Both networks are as fast, so they carry half of what is large each.
void set_prices(const Context& ctx, bool collides) {
  Runtime& runtime = runtime_of(ctx);
  runtime.pricing = true;  // nothing is measured
  Machine machine = runtime.machine();
  machine.inside.collision = collides ? 0.5 : 1;
  for (const char* name : {"links:put", "links:pull", "outside"}) {
    PathCost cost;
    cost.one_way.latency = 2e-6;
    cost.one_way.bandwidth = cost.one_way.bulk_bandwidth = 1e9;
    cost.mutual = cost.one_way;
    cost.measured = true;
    machine.costs[name] = cost;
  }
  runtime.replace_machine(std::move(machine));
}

HaloShape random_halo(int ranks, std::mt19937& random) {
  HaloShape shape;
  shape.extents = {67 + static_cast<std::int64_t>(random() % 9), 95, 101};
  if (ranks > 2) shape.extents = {83 + static_cast<std::int64_t>(random() % 9), 97, 151};
  shape.grid.split = random_split(ranks, 3, random);
  for (int d = 0; d < 3; ++d) shape.grid.periodic.push_back(random() % 3 != 0);
  shape.grid.mapping = random() % 2 == 0 ? "row" : "column";
  shape.corners = random() % 2 == 0;
  shape.reverse = random() % 3 == 0;
  shape.path = "links,outside";
  for (unsigned f = 0; f < 1 + random() % 2; ++f) {
    FieldShape field;
    field.name = "f" + std::to_string(f);
    field.shadow = field.width = 1 + static_cast<std::int64_t>(random() % 2);
    shape.fields.push_back(field);
  }
  return shape;
}

Halo halo_of(const HaloShape& shape, const std::vector<Field<double>>& fields, const std::string& path,
             const std::string& engine) {
  std::vector<HaloField> entries;
  for (std::size_t f = 0; f < fields.size(); ++f) entries.emplace_back(fields[f], shape.fields[f].width);
  HaloOptions options;
  options.corners = shape.corners;
  options.reverse = shape.reverse;
  options.path = path;
  options.engine = engine;
  return Halo(entries, options);
}

// What an epoch leaves of numbers whose sum depends on the order of adding.
std::vector<double> after(Halo& halo, const std::vector<Field<double>>& fields, std::uint64_t seed) {
  for (const Field<double>& field : fields) {
    std::vector<double> image(static_cast<std::size_t>(field.bytes()) / sizeof(double));
    for (double& value : image) {
      seed = seed * 6364136223846793005U + 1442695040888963407U;
      value = static_cast<double>(seed >> 11) * (seed % 3 == 0 ? 1 : 1e-9);
    }
    field.upload(image.data());
  }
  halo.start();
  halo.wait();
  std::vector<double> all;
  for (const Field<double>& field : fields) {
    std::vector<double> image(static_cast<std::size_t>(field.bytes()) / sizeof(double));
    field.download(image.data());
    all.insert(all.end(), image.begin(), image.end());
  }
  return all;
}

// How many pieces that leave the rank are cut: each has a part on either network.
int cut_pieces(const Planned& planned, int rank) {
  int first = 0;
  int second = 0;
  for (const Message& message : planned.messages()) {
    if (message.from != rank) continue;
    if (message.label.ends_with(" part 1")) first += message.path == "outside" ? 1 : -1000;
    if (message.label.ends_with(" part 2")) second += message.path.starts_with("links") ? 1 : -1000;
  }
  CHECK(first == second);
  return first;
}

}  // namespace

TEST_CASE("pieces that two networks carry together arrive as over one path, and are cut as off line") {
  const Context ctx(MPI_COMM_WORLD);
  std::mt19937 random(606);
  int cut[2] = {0, 0};
  for (int i = 0; i < 8; ++i) {
    CAPTURE(i);
    const bool collides = i % 2 == 1;
    set_prices(ctx, collides);
    const HaloShape shape = random_halo(ctx.size(), random);
    CAPTURE(shape.reverse);
    const Grid grid(ctx, shape.extents, shape.grid);
    std::vector<Field<double>> fields;
    for (const FieldShape& field : shape.fields) fields.emplace_back(grid, FieldOptions{field.name, field.shadow});
    Halo both = halo_of(shape, fields, shape.path, i % 3 == 0 ? "thread" : "inline");
    Halo one = halo_of(shape, fields, "mpi", "inline");
    const Planned planned = plan(machine_of(ctx), shape);
    CHECK(to_json(planned.plan(ctx.rank())) == to_json(both.plan()));
    const VerifyReport report = verify(both);
    INFO(report.text());
    CHECK(report.ok());
    const int mine = cut_pieces(planned, ctx.rank());
    cut[collides ? 1 : 0] += mine;
    if (mine > 0) {
      CHECK(both.explain().find(" part 1 ") != std::string::npos);
      CHECK(both.explain().find("balance: network outside: ") != std::string::npos);
    }
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      const std::uint64_t seed =
          1000 * static_cast<std::uint64_t>(ctx.rank()) + 10 * static_cast<std::uint64_t>(i) + epoch;
      const std::vector<double> got = after(both, fields, seed);
      const std::vector<double> expected = after(one, fields, seed);
      REQUIRE(got.size() == expected.size());
      CHECK(std::memcmp(got.data(), expected.data(), got.size() * sizeof(double)) == 0);
    }
  }
  MPI_Allreduce(MPI_IN_PLACE, cut, 2, MPI_INT, MPI_SUM, ctx.comm());
  CHECK(cut[0] > 0);
  CHECK(cut[1] > 0);
}
