// Collectives: random ones, several at once, started in different orders, with new data at every start, against plain
// loops; every plan verified. And what is said about arguments that are wrong.
#include "tasuki/collectives.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "collective_cases.hpp"
#include "collectives/algorithm.hpp"
#include "error_of.hpp"
#include "host_paths.hpp"
#include "rank_test.hpp"
#include "tasuki/planning.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;
using namespace collective_cases;

namespace {

template <class All>
const auto& one_of(const All& all, Random& random) {
  return all[static_cast<std::size_t>(below(random, std::ssize(all)))];
}

// Those that can be on machines without a torus.
std::vector<const Algorithm*> algorithms_here(CollectiveKind kind) {
  std::vector<const Algorithm*> all = algorithms_of(kind);
  std::erase_if(all, [](const Algorithm* algorithm) { return algorithm->name == "torus"; });
  return all;
}

Wanted random_wanted(const Context& ctx, int number, Random& random) {
  const int n = ctx.size();
  Wanted w;
  w.kind = one_of(all_collectives(), random);
  w.number = number;
  w.root = static_cast<int>(below(random, n));
  w.count = one_of(Counts{0, 1, 2, 7, n + 1, 101, 4099}, random);
  if (has_blocks(w.kind) && below(random, 2) == 0) {
    const bool matrix = w.kind == CollectiveKind::alltoall;
    w.counts.resize(static_cast<std::size_t>(matrix ? n * n : n));
    for (auto& count : w.counts) count = below(random, 3) == 0 ? 0 : below(random, 300);
  }
  w.op = one_of(std::vector<ReduceOp>{ReduceOp::sum, ReduceOp::min, ReduceOp::max}, random);
  w.in_place = w.kind != CollectiveKind::broadcast && w.kind != CollectiveKind::barrier && below(random, 2) == 0;
  for (int a = 0; a < n && w.in_place && w.kind == CollectiveKind::alltoall && !w.counts.empty(); ++a)
    for (int b = 0; b < a; ++b)
      w.counts[static_cast<std::size_t>(a * n + b)] = w.counts[static_cast<std::size_t>(b * n + a)];
  w.shared = below(random, 2) == 0;
  const std::vector<const Algorithm*> algorithms = algorithms_here(w.kind);
  const auto chosen = below(random, std::ssize(algorithms) + 1);
  const Algorithm* algorithm = chosen == 0 ? nullptr : algorithms[static_cast<std::size_t>(chosen - 1)];
  if (algorithm != nullptr) w.options.algorithm = algorithm->name;
  const auto has_trees = [](const Algorithm* a) { return a->over_trees; };
  const bool over_trees =
      algorithm != nullptr ? algorithm->over_trees : std::any_of(algorithms.begin(), algorithms.end(), has_trees);
  if (algorithm != nullptr && algorithm->settings != nullptr) w.options.chunk = below(random, 5000);
  if (over_trees && below(random, 2) == 0) {
    w.options.trees = static_cast<int>(below(random, 3));
    w.options.arity = static_cast<int>(below(random, 3));
    w.options.chunk = 1 + below(random, 5000);
  }
  if (below(random, 3) == 0) {
    w.layouts = 1 + static_cast<unsigned>(below(random, 100000));
    w.options.chunk = std::max<std::int64_t>(w.options.chunk, w.options.chunk > 0 ? 100 : 0);  // parts are counted
  }
  w.options.path = one_of(host_paths(ctx), random);
  // Some paths are for shared memory only, and some cannot add.
  if (w.options.path == "shared:put" || w.options.path == "shared:read" || w.options.path == "shared:pull")
    w.options.path += ",shared:eager";
  return w;
}

void run_some(const Context& ctx, unsigned seed, int groups, const std::string& engine) {
  Random random(seed);
  Random own(seed + 1000 + static_cast<unsigned>(ctx.rank()));  // orders differ between ranks
  for (int group = 0; group < groups; ++group) {
    std::vector<std::unique_ptr<Running>> all;
    std::vector<std::string> names;
    const int active = 1 + static_cast<int>(below(random, 4));
    for (int i = 0; i < active; ++i) {
      Wanted w = random_wanted(ctx, i, random);
      w.options.engine = engine;
      const std::int64_t type = below(random, 4);
      names.push_back(described(w));
      INFO(names.back());
      all.push_back(make(ctx, w, type));
      const VerifyReport report = verify(all.back()->operation());
      INFO(report.text());
      CHECK(report.ok());
      const Plan off_line = plan(machine_of(ctx), shape_of(w, type_of(type), ctx.size())).plan(ctx.rank());
      CHECK(to_json(off_line) == to_json(all.back()->operation().plan()));
    }
    std::vector<std::size_t> order(all.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (int iteration = 0; iteration < 4; ++iteration) {
      for (const auto& one : all) one->fill(iteration);
      std::shuffle(order.begin(), order.end(), own);
      for (const std::size_t i : order) all[i]->operation().start();
      std::shuffle(order.begin(), order.end(), own);
      for (const std::size_t i : order) {
        INFO(names[i]);
        CAPTURE(iteration);
        while (below(own, 2) == 0 && !all[i]->operation().test()) continue;
        all[i]->operation().wait();
        CHECK(all[i]->right(iteration));
      }
    }
    for (const auto& one : all) one->operation().wait();  // nothing is active: no effect
  }
}

}  // namespace

RANK_TEST("random collectives give what plain loops give, several at once, started in any order") {
  run_some(ctx, 21, ctx.size() > 8 ? 5 : ctx.size() > 6 ? 12 : 60, "inline");
}

RANK_TEST("random collectives by the progress thread") {
  run_some(ctx, 22, ctx.size() > 6 ? 4 : 15, "thread");
}

RANK_TEST("large collectives in memory of one's own hand over in the slots of short rings, several at once") {
  if (ctx.size() > 3) return;  // so much memory takes long
  for (const char* engine : {"inline", "thread"}) {
    if (std::string(engine) == "thread" && ctx.size() > 2) continue;
    for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::allreduce, CollectiveKind::reduce,
                                      CollectiveKind::allgather, CollectiveKind::alltoall, CollectiveKind::scan}) {
      std::vector<std::unique_ptr<Running>> all;
      for (const std::int64_t count : {550001, 1100003}) {  // blocks, halves and whole vectors of more than 4 MiB
        if (ctx.size() > 2 && count > 1000000) continue;
        Wanted w;
        w.kind = kind;
        w.number = static_cast<int>(all.size());
        w.root = ctx.size() - 1;
        w.count = count;
        w.in_place = count > 1000000 && kind != CollectiveKind::broadcast;
        w.options.engine = engine;
        w.options.path = std::getenv("TASUKI_ISLAND") == nullptr && ctx.size() > 1 ? "shared:eager" : "auto";
        INFO(described(w));
        all.push_back(make(ctx, w, 0));
        CHECK(verify(all.back()->operation()).ok());
      }
      for (int iteration = 0; iteration < 2; ++iteration) {
        for (const auto& one : all) one->fill(iteration);
        for (const auto& one : all) one->operation().start();
        for (const auto& one : all) one->operation().wait();
        for (const auto& one : all) CHECK(one->right(iteration));
      }
    }
  }
}

// Whatever the algorithm. Settings are given, because `auto` may choose others for other paths.
RANK_TEST("equal runs of a reduction give equal bits, on every path; those of an allreduce on every rank") {
  const std::int64_t block = 211;
  for (const CollectiveKind kind : {CollectiveKind::allreduce, CollectiveKind::reduce, CollectiveKind::reduce_scatter})
    for (const Algorithm* algorithm : algorithms_here(kind)) {
      CAPTURE(to_string(kind));
      CAPTURE(algorithm->name);
      CollectiveOptions options;
      options.algorithm = algorithm->name;
      if (algorithm->over_trees) options.trees = options.arity = 2;
      if (algorithm->settings != nullptr) options.chunk = 1024;
      const std::int64_t count = kind == CollectiveKind::reduce_scatter ? block * ctx.size() : block * 4;
      std::vector<double> in(static_cast<std::size_t>(count));
      std::vector<std::vector<double>> results;
      for (const std::string& path : host_paths(ctx)) {
        options.path = path;
        if (path == "shared:put" || path == "shared:read" || path == "shared:pull") options.path += ",shared:eager";
        std::vector<double> out(in.size());
        Operation operation = [&]() -> Operation {
          if (kind == CollectiveKind::allreduce)
            return Allreduce(ctx, in.data(), out.data(), count, DType::f64, ReduceOp::sum, options);
          if (kind == CollectiveKind::reduce)
            return Reduce(ctx, ctx.size() - 1, in.data(), out.data(), count, DType::f64, ReduceOp::sum, options);
          return ReduceScatter(ctx, in.data(), out.data(), block, DType::f64, ReduceOp::sum, options);
        }();
        for (int repetition = 0; repetition < 2; ++repetition) {
          Random noise(static_cast<unsigned>(ctx.rank()) + 5);
          for (double& number : in) number = static_cast<double>(noise()) / 3e7 - 50;
          operation.start();
          operation.wait();
          results.push_back(out);
        }
      }
      for (const auto& result : results) CHECK(std::memcmp(result.data(), results[0].data(), 8 * result.size()) == 0);
      if (kind != CollectiveKind::allreduce) continue;
      const std::string mine(reinterpret_cast<const char*>(results[0].data()), 8 * results[0].size());
      for (const std::string& other : ctx.allgather(mine)) CHECK(other == mine);
    }
}

RANK_TEST("what a rank has added up in scratch memory is read by another process's copy, too") {
  const auto paths = host_paths(ctx);
  if (std::find(paths.begin(), paths.end(), "shared:read") == paths.end()) return;  // ranks are threads, or alone
  CollectiveOptions options;
  options.algorithm = "hierarchical";
  options.path = "shared:read,mpi";
  std::vector<std::int32_t> in(1003), out(1003);
  Scan scan(ctx, in.data(), out.data(), 1003, DType::i32, ReduceOp::sum, options);
  CHECK(verify(scan).ok());
  for (int turn = 0; turn < 4; ++turn) {
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::int32_t>(i) * turn + ctx.rank();
    scan.start();
    scan.wait();
    int wrong = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const int n = ctx.rank() + 1;
      wrong += out[i] == static_cast<std::int32_t>(i) * turn * n + n * (n - 1) / 2 ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
}

RANK_TEST("a barrier ends when all have started it") {
  Barrier barrier(ctx);
  const VerifyReport report = verify(barrier);
  CHECK(report.ok());
  for (int turn = 1; turn < 20; ++turn) {
    // Whoever comes last has all others wait: none may have passed before it starts.
    const bool last = turn % ctx.size() == ctx.rank();
    if (!last) barrier.start();
    for (int polls = 0; polls < 50 && ctx.size() > 1; ++polls)
      if (!last) CHECK((barrier.active() || ctx.size() == 1));
    ctx.barrier();
    if (!last && ctx.size() > 1) CHECK(!barrier.test());
    ctx.barrier();
    if (last) barrier.start();
    barrier.wait();
  }
}

RANK_TEST("an allreduce explains its choice, live as off line") {
  for (const std::int64_t count : {std::int64_t{1}, std::int64_t{5000}}) {
    std::vector<float> in(static_cast<std::size_t>(count)), out(in.size());
    Allreduce live(ctx, in.data(), out.data(), count, DType::f32, ReduceOp::max);
    const std::string text = live.explain();
    INFO(text);
    CHECK(text.find("algorithm: ") != std::string::npos);
    CHECK(text.find("doubling") != std::string::npos);
    CHECK(text.find("halving") != std::string::npos);
    // Between two ranks these take the steps of the ones above.
    for (const char* other : {"direct", "ring"}) CHECK((text.find(other) != std::string::npos) == (ctx.size() > 2));
    CHECK(text.find("<- chosen") != std::string::npos);
    CollectiveShape shape;
    shape.count = count;
    shape.type = DType::f32;
    shape.op = ReduceOp::max;
    if (const char* path = std::getenv("TASUKI_PATH"); path != nullptr) shape.path = path;
    const Planned planned = plan(machine_of(ctx), shape);
    CHECK(planned.explain(ctx.rank()).starts_with(text));
  }
}

RANK_TEST("wrong arguments of collectives are named on every rank") {
  const int n = ctx.size();
  const int last = n - 1;
  std::vector<double> in(64), out(64);
  const auto says = [&](const std::string& error, const std::string& words) {
    INFO(error);
    INFO(words);
    return error.find(words) != std::string::npos;
  };
  CHECK(says(error_of([&] { Reduce x(ctx, n, in.data(), out.data(), 4, DType::f64); }),
             "Reduce: rank 0: argument 'root' is " + std::to_string(n)));
  CHECK(says(error_of([&] { Allreduce x(ctx, in.data(), out.data(), -3, DType::f64); }), "argument 'count' is -3"));
  CHECK(says(error_of([&] { Allreduce x(ctx, in.data(), out.data(), 4, DType::f64, ReduceOp::band); }),
             "argument 'op' is band"));
  CHECK(says(error_of([&] { Allreduce x(ctx, in.data(), out.data(), 4, DType::none); }), "argument 'type' is none"));
  const double* const missing = ctx.rank() == last ? nullptr : in.data();
  CHECK(says(error_of([&] { Allreduce x(ctx, missing, out.data(), 4, DType::f64); }),
             "Allreduce: rank " + std::to_string(last) + ": argument 'in' is null"));
  CHECK(says(error_of([&] { Allreduce x(ctx, in.data(), in.data() + 3, 4, DType::f64); }),
             "arguments 'in' and 'out' overlap in memory; work in place with 'in_place'"));
  CHECK(says(error_of([&] { Allreduce x(ctx, in.data(), in_place, 4, DType::f64); }),
             "argument 'out' is in_place, which only the other buffer may be"));
  CHECK(says(error_of([&] {
               Allgather x(ctx, in.data(), out.data(), Counts(static_cast<std::size_t>(n + 1), 1), DType::f64);
             }),
             "argument 'counts' has " + std::to_string(n + 1) + " entries"));
  CHECK(says(error_of([&] { Gather x(ctx, 0, in.data(), out.data(), Counts{}, DType::f64); }),
             "argument 'counts' has 0 entries"));
  CollectiveOptions options;
  options.algorithm = "fastest";
  CHECK(says(error_of([&] { Barrier x(ctx, options); }),
             "there is no algorithm 'fastest' for barrier; give one of auto, dissemination"));
  options.algorithm = "ring";
  options.chunk = 64;
  CHECK(says(error_of([&] { Allreduce x(ctx, in.data(), out.data(), 4, DType::f64, ReduceOp::sum, options); }),
             "options 'trees', 'arity' and 'chunk' are for algorithms that have them; of allreduce that is doubling, "
             "hierarchical"));
  options.algorithm = "auto";
  options.trees = 99;
  CHECK(says(error_of([&] { Reduce x(ctx, 0, in.data(), out.data(), 4, DType::f64, ReduceOp::sum, options); }),
             "option 'trees' is 99"));
  if (n == 1) return;
  const bool odd = ctx.rank() == last;
  CHECK(says(error_of([&] { Allreduce x(ctx, in.data(), out.data(), odd ? 5 : 4, DType::f64); }),
             "argument 'count' differs between ranks: rank 0 has 4, rank " + std::to_string(last) + " has 5"));
  CHECK(says(error_of([&] { Allreduce x(ctx, in.data(), out.data(), 4, odd ? DType::f32 : DType::f64); }),
             "argument 'type' differs between ranks"));
  CHECK(says(error_of([&] { Scan x(ctx, in.data(), out.data(), 4, DType::f64, odd ? ReduceOp::max : ReduceOp::sum); }),
             "argument 'op' differs between ranks"));
  CHECK(says(error_of([&] { Scan x(ctx, odd ? in_place : in.data(), out.data(), 4, DType::f64); }),
             "argument 'in_place' differs between ranks"));
  CHECK(says(error_of([&] { Scatter x(ctx, odd ? 1 : 0, in.data(), out.data(), 4, DType::f64); }),
             n == 2 || !odd || last == 1 ? "argument 'root' differs between ranks" : "argument 'root'"));
  CHECK(says(error_of([&] { Gather x(ctx, 0, in_place, out.data(), 4, DType::f64); }),
             "argument 'in' is in_place, which is for the root; rank 1 is not"));
  Counts send(static_cast<std::size_t>(n), 2), receive = send;
  if (odd) send[0] = 3;
  CHECK(says(error_of([&] { Alltoall x(ctx, in.data(), out.data(), send, receive, DType::f64); }),
             "Alltoall: rank 0: argument 'receive_counts' is 2 for rank " + std::to_string(last) +
                 ", whose 'send_counts' has 3 for this rank"));
}
