// Advice on engines: iterations of plans whose times are known, with and without a core to spare, and on GPUs.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tasuki/error.hpp"
#include "tasuki/planning.hpp"
#include "tasuki/predict.hpp"

using namespace tasuki;

namespace {

constexpr double kLatency = 1e-6;
constexpr double kBandwidth = 4e9;

PathCost cost(double latency, double bandwidth) {
  PathCost cost;
  cost.one_way = cost.mutual = {latency, bandwidth, bandwidth, 0};
  cost.measured = true;
  return cost;
}

Machine host_of(int ranks, int cores) {
  Machine machine = Machine::uniform(ranks, ranks, 0);
  machine.cores = cores;
  for (const char* path : {"mpi", "shared:put", "shared:pull", "shared:eager", "shared:read"})
    machine.costs[path] = cost(kLatency, kBandwidth);
  machine.costs["self"] = cost(1e-7, 2 * kBandwidth);
  return machine;
}

Machine gpus(int ranks) {
  Machine machine = Machine::uniform(ranks, ranks, 0, true);
  for (const char* path : {"peer:put", "peer:pull", "peer:eager", "peer:ll"}) machine.costs[path] = cost(6e-6, 3.6e11);
  machine.costs["peer:copy"] = cost(1.5e-5, 3.9e11);
  machine.costs["self:gpu"] = cost(2e-6, 2e12);
  machine.unusable["nccl"] = "not in this test";
  return machine;
}

Planned collective(const Machine& machine, CollectiveKind kind, std::int64_t bytes, Memory memory = Memory::host,
                   const std::string& path = "auto") {
  CollectiveShape shape;
  shape.kind = kind;
  shape.type = kind == CollectiveKind::broadcast ? DType::u8 : DType::f32;
  shape.count = kind == CollectiveKind::broadcast ? bytes : bytes / 4;
  shape.memory = memory;
  shape.shared = true;
  shape.path = path;
  Planned planned = plan(machine, shape);
  const VerifyReport report = verify(planned.plans());
  INFO(report.text());
  CHECK(report.ok());
  return planned;
}

const Advice::Way& way(const Advice& advice, const std::string& engine) {
  const auto found =
      std::find_if(advice.ways.begin(), advice.ways.end(), [&](const auto& one) { return one.engine == engine; });
  REQUIRE(found != advice.ways.end());
  return *found;
}

bool has(const Advice& advice, const std::string& engine) {
  return std::any_of(advice.ways.begin(), advice.ways.end(), [&](const auto& one) { return one.engine == engine; });
}

}  // namespace

TEST_CASE("inline hides what travels by itself, and nothing else; a thread with a core hides the shorter") {
  for (const int ranks : {2, 3, 5}) {
    for (const std::int64_t bytes : {12, 40004, 3000004}) {
      const Machine full = host_of(ranks, ranks);
      const Machine spare = host_of(ranks, 2 * ranks);
      const auto plans = collective(full, CollectiveKind::allreduce, bytes).plans();
      const double alone = predict(plans, full).seconds;
      const double hand_over = full.constants.thread_hand_over;
      CAPTURE(ranks);
      CAPTURE(bytes);
      const Advice idle = advise(plans, full, 0);
      CHECK(way(idle, "inline").seconds == doctest::Approx(alone).epsilon(0.02));
      CHECK(idle.ways[idle.best].engine == "inline");
      for (const double computation : {alone / 3, alone, 20 * alone}) {
        const Advice tight = advise(plans, full, computation);
        const double seconds = way(tight, "inline").seconds;
        CHECK(seconds > computation);
        CHECK(seconds <= computation + 2 * alone);  // a rank may wait for one that computes in the middle of its part
        CHECK(way(tight, "inline").exposed == doctest::Approx(seconds - computation));
        CHECK(way(tight, "thread").seconds ==
              doctest::Approx(std::max(seconds, computation + alone) + 2 * hand_over).epsilon(0.02));
        CHECK(tight.ways[tight.best].engine == "inline");
        const Advice roomy = advise(plans, spare, computation);
        CHECK(way(roomy, "thread").seconds ==
              doctest::Approx(hand_over + std::max(computation, hand_over + alone)).epsilon(0.02));
        const bool pays = way(roomy, "thread").seconds < way(roomy, "inline").seconds * 0.97;
        CHECK(roomy.ways[roomy.best].engine == (pays ? "thread" : "inline"));
      }
      const Advice even = advise(plans, spare, alone);
      if (bytes == 12) CHECK(even.ways[even.best].engine == "inline");
      if (bytes == 3000004) CHECK(even.ways[even.best].engine == "thread");
    }
  }
}

TEST_CASE("what a peer stores comes during the computation, what a rank fetches comes after it") {
  const Machine machine = host_of(2, 2);
  const std::int64_t bytes = 4000000;  // 1 ms
  const double moved = static_cast<double>(bytes) / kBandwidth;
  const double computation = 3 * moved;
  const auto exposed = [&](const char* path) {
    TransferShape shape;
    shape.to = 1;
    shape.src = shape.dst = Layout::bytes(bytes);
    shape.path = path;
    const auto plans = plan(machine, shape).plans();
    return way(advise(plans, machine, computation), "inline").exposed;
  };
  // The sender stores before it computes; the receiver loads when it waits.
  CHECK(exposed("shared:put") == doctest::Approx(moved).epsilon(0.02));
  CHECK(exposed("shared:pull") == doctest::Approx(moved).epsilon(0.02));
  // In a chain of three the second rank forwards only when it waits.
  const Machine three = host_of(3, 3);
  CollectiveShape chain = CollectiveShape::broadcast(0, bytes);
  chain.algorithm = "trees";
  chain.trees = chain.arity = 1;
  chain.chunk = bytes;
  chain.shared = true;
  chain.path = "shared:put";
  const auto plans = plan(three, chain).plans();
  CHECK(verify(plans).ok());
  const double inline_exposed = way(advise(plans, three, computation), "inline").exposed;
  CHECK(inline_exposed > 0.9 * moved);
  CHECK(inline_exposed < 2.1 * moved);
}

TEST_CASE("on GPUs SMs are the price of a kernel beside the computation, and copy engines take none") {
  for (const int ranks : {2, 4}) {
    const Machine machine = gpus(ranks);
    const std::int64_t bytes = 64 << 20;
    const Planned broadcast = collective(machine, CollectiveKind::broadcast, bytes, Memory::device, "peer:put");
    const auto plans = broadcast.plans();
    const double alone = predict(plans, machine).seconds;
    const double computation = 3 * alone;
    const double launch = machine.constants.gpu_launch;
    const Advice advice = broadcast.advise(computation);
    CAPTURE(advice.text());
    CHECK(way(advice, "stream").seconds == doctest::Approx(computation + alone + launch).epsilon(0.05));
    // 3.6e11 B/s by SMs that move 2e10 each: 18 of 132.
    const double share = 18.0 / 132;
    CHECK(way(advice, "stream, beside").exposed == doctest::Approx(share * alone + launch).epsilon(0.1));
    CHECK(way(advice, "kernel").seconds < way(advice, "stream, beside").seconds);
    const Advice copies =
        advise(plans, machine, computation,
               collective(machine, CollectiveKind::broadcast, bytes, Memory::device, "peer:copy").plans());
    CHECK(has(copies, "stream, copy engines"));
    CHECK(way(copies, "stream, copy engines").exposed < way(copies, "stream, beside").exposed);
    CHECK(copies.ways[copies.best].engine.find("stream") == 0);
    // A Machine whose kernels need every SM gains nothing from running beside.
    Machine weak = machine;
    weak.constants.gpu_sm_bandwidth = 1e9;
    CHECK(way(advise(plans, weak, computation), "stream, beside").seconds >= computation + alone);
  }
  // Sums are not for copy engines.
  const Planned sum = collective(gpus(2), CollectiveKind::allreduce, 4096, Memory::device);
  const Advice advice = sum.advise(1e-3);
  CHECK(!has(advice, "inline"));
  CHECK(advice.text().find("pays: ") != std::string::npos);
}

TEST_CASE("halos are advised on, too, and bad times are refused") {
  const Machine machine = host_of(4, 8);
  HaloShape halo;
  halo.extents = {130, 77};
  halo.fields = {{.name = "p", .shadow = 2, .width = 2}};
  const Planned planned = plan(machine, halo);
  CHECK(verify(planned.plans()).ok());
  const Advice advice = planned.advise(1e-3);
  CHECK(way(advice, "thread").seconds == doctest::Approx(1e-3 + machine.constants.thread_hand_over));
  CHECK(advice.text().find("beside a computation of 1000.00 us\n") == 0);
  for (const double bad : {-1e-6, std::nan(""), std::numeric_limits<double>::infinity()}) {
    std::string error;
    try {
      (void)planned.advise(bad);
    } catch (const Error& caught) {
      error = caught.what();
    }
    CHECK(error.find("advise: argument 'computation' is ") == 0);
  }
}
