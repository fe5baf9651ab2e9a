// Collectives on GPU memory without a GPU: the plans of all ranks are lowered, and kernels and streams are followed on
// the host, in random order, over several epochs with new data; the results are what the plans promise, and nobody
// waits for ever, whether an epoch is one kernel or two.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "collectives/algorithm.hpp"
#include "gpu_ranks.hpp"
#include "plan/builder.hpp"
#include "tasuki/planning.hpp"

using namespace gpu_ranks;

namespace {

// Each rank by itself runs in rows where it can.
void run(const Machine& machine, const CollectiveShape& shape, int blocks, Pieces pieces, bool by_rows, Random& random,
         std::uint64_t epochs = kEpochs) {
  const std::vector<Plan> plans = plan(machine, shape).plans();
  World world;
  std::vector<std::unique_ptr<Rank>> ranks;
  // Where a rank lets others store into what it sends on first, it may do so in its wait: docs/gpus.md, Limits.
  const bool late =
      shape.in_place && shape.algorithm == "doubling" && shape.kind != CollectiveKind::allgather && plans.size() > 2;
  const bool meet = pieces != Pieces::one && !late && random() % 3 == 0;
  if (meet) pieces = Pieces::two;  // all of them have a wait that comes after it
  const Between between = meet ? Between::meeting : random() % 2 == 0 ? Between::idle : Between::nothing;
  CAPTURE(static_cast<int>(between));
  world.ranks = static_cast<int>(plans.size());
  for (const Plan& plan : plans)
    ranks.push_back(std::make_unique<Rank>(world, plan, blocks, pieces, by_rows, true, between, epochs));
  for (int idle = 0; idle < 200;) {
    const bool moved = ranks[random() % ranks.size()]->advance(random);
    idle = moved ? 0 : idle + 1;
    if (std::all_of(ranks.begin(), ranks.end(), [](const auto& rank) { return rank->done(); })) return;
  }
  std::string text;
  for (std::size_t r = 0; r < ranks.size(); ++r) text += "\nrank " + std::to_string(r) + ":" + ranks[r]->blocked();
  FAIL_CHECK("nobody can go on:" << text);
}

std::int64_t below(Random& random, std::int64_t n) {
  return static_cast<std::int64_t>(random() % static_cast<unsigned>(n));
}

CollectiveShape shape_of(CollectiveKind kind, int ranks, Random& random) {
  CollectiveShape shape;
  shape.kind = kind;
  shape.memory = Memory::device;
  shape.shared = true;
  shape.root = static_cast<int>(below(random, ranks));
  const std::vector<DType> types{DType::i32, DType::u8, DType::i64, DType::i16, DType::u32};
  shape.type = types[static_cast<std::size_t>(below(random, std::ssize(types)))];
  shape.op = std::array{ReduceOp::sum, ReduceOp::max, ReduceOp::bxor}[static_cast<std::size_t>(below(random, 3))];
  const std::vector<std::int64_t> counts{0, 1, 5, 64, 130, 1003};
  shape.count = counts[static_cast<std::size_t>(below(random, std::ssize(counts)))];
  shape.in_place = below(random, 2) == 0;
  return shape;
}

std::string described(const CollectiveShape& shape, int ranks) {
  return std::string(to_string(shape.kind)) + ":" + shape.algorithm + " on " + std::to_string(ranks) + " root " +
         std::to_string(shape.root) + " count " + std::to_string(shape.count) + " " +
         std::string(to_string(shape.type)) + (shape.in_place ? " in place" : "") + " path " + shape.path + " chunk " +
         std::to_string(shape.chunk);
}

}  // namespace

TEST_CASE("collectives lowered for GPUs give what their plans promise, in one kernel or two, on every path") {
  Random random(41);
  const std::vector<std::string> paths{"auto",
                                       "peer:put,peer:eager",
                                       "peer:put,peer:ll",
                                       "peer:copy,peer:eager",
                                       "peer:eager",
                                       "peer:ll,peer:eager",
                                       "peer:copy,peer:put,peer:eager",
                                       "nccl",
                                       "mpi:staged",
                                       "peer:eager,mpi:staged",
                                       "peer:copy,mpi:staged",
                                       "peer:pull,peer:eager",
                                       "peer:pull,peer:copy,peer:eager",
                                       "peer:pull,peer:ll,peer:eager"};
  int ran = 0;
  for (const CollectiveKind kind : all_collectives()) {
    for (const Algorithm* algorithm : algorithms_of(kind)) {
      if (algorithm->name == "torus") continue;  // for machines whose hosts a torus joins
      for (int i = 0; i < 24; ++i) {
        const int ranks = 1 + static_cast<int>(below(random, 5));
        CollectiveShape shape = shape_of(kind, ranks, random);
        shape.algorithm = algorithm->name;
        shape.path = paths[static_cast<std::size_t>(below(random, std::ssize(paths)))];
        if (algorithm->settings != nullptr && below(random, 2) == 0) shape.chunk = 1 + below(random, 900);
        INFO(described(shape, ranks));
        const auto pieces = static_cast<Pieces>(below(random, 3));
        const bool by_rows = below(random, 4) != 0;
        const int blocks = below(random, 2) == 0 ? 132 : 3;
        CAPTURE(static_cast<int>(pieces));
        CAPTURE(by_rows);
        CAPTURE(blocks);
        try {
          run(Machine::uniform(ranks, ranks, 0, true), shape, blocks, pieces, by_rows, random);
          ++ran;
        } catch (const PathUnusable&) {
          // What depends on what arrives, NCCL carries not; no path carries words of 4 bytes that are none.
        } catch (const Error& error) {
          // In chunks of a few bytes.
          CHECK(std::string(error.what()).find("lanes move data; one operation on GPU memory takes at most") !=
                std::string::npos);
        }
      }
    }
  }
  CHECK(ran > 250);
  CHECK(told > 50);
  CHECK(staged > 20);
  CHECK(in_rows > 80);
  CHECK(carried > 100);
}

TEST_CASE("what is put by a copy engine is not overwritten before, in any schedule") {
  struct One {
    CollectiveKind kind;
    const char* algorithm;
    int ranks;
    std::int64_t count;
    const char* path;
    std::int64_t chunk;
  };
  const int before = told;
  for (const One& one : {One{CollectiveKind::allreduce, "doubling", 2, 1003, "peer:copy,peer:put,peer:eager", 182},
                         One{CollectiveKind::reduce_scatter, "collect", 2, 1003, "peer:copy,peer:eager", 485},
                         One{CollectiveKind::reduce_scatter, "collect", 4, 64, "peer:copy,peer:put,peer:eager", 0},
                         One{CollectiveKind::reduce_scatter, "collect", 4, 1, "peer:pull,peer:copy,peer:eager", 507}}) {
    CollectiveShape shape;
    shape.kind = one.kind;
    shape.memory = Memory::device;
    shape.shared = true;
    shape.in_place = true;
    shape.type = DType::u32;
    shape.count = one.count;
    shape.algorithm = one.algorithm;
    shape.path = one.path;
    shape.chunk = one.chunk;
    INFO(described(shape, one.ranks));
    for (unsigned seed = 0; seed < 60; ++seed) {
      Random random(seed);
      run(Machine::uniform(one.ranks, one.ranks, 0, true), shape, seed % 2 == 0 ? 132 : 3,
          static_cast<Pieces>(seed / 2 % 3), true, random);
    }
  }
  CHECK(told > before);
}

TEST_CASE("what a start enqueues on a GPU ends without the wait, which the host may reach after waiting for the GPU") {
  const int before = held;
  int ran = 0;
  for (const char* algorithm : {"exchange", "hierarchical", "ring"}) {
    for (const int island : {1, 2}) {  // messages of a stream bring what other islands have
      for (const bool in_place : {false, true}) {
        CollectiveShape shape;
        shape.kind = CollectiveKind::allreduce;
        shape.memory = Memory::device;
        shape.shared = true;
        shape.in_place = in_place;
        shape.type = DType::i8;
        shape.op = ReduceOp::product;
        shape.count = 1021;
        shape.algorithm = algorithm;
        shape.path = "peer:put,peer:eager,nccl";
        const int ranks = 2 * island;
        INFO(described(shape, ranks));
        for (unsigned seed = 0; seed < 12; ++seed) {
          Random random(seed);
          try {
            run(Machine::uniform(ranks, ranks, island, true), shape, 8, Pieces::two, false, random);
            ++ran;
          } catch (const PathUnusable&) {
            // NCCL carries nothing that depends on what arrives.
          }
        }
      }
    }
  }
  CHECK(ran > 20);
  CHECK(held > before);
}

TEST_CASE("sums that go on in chunks are stored in two places at once, and are what the plans promise") {
  const int before = sent_on;
  for (const int ranks : {2, 3, 4}) {
    for (const int arity : {1, 2}) {
      for (const std::int64_t count : {50'000, 49'999}) {
        CollectiveShape shape;
        shape.kind = CollectiveKind::reduce;
        shape.memory = Memory::device;
        shape.shared = true;
        shape.root = ranks - 1;
        shape.in_place = arity == 2;
        shape.type = DType::u32;
        shape.count = count;
        shape.algorithm = "trees";
        shape.trees = 2;
        shape.arity = std::min(arity, ranks - 1);
        shape.chunk = 1 << 15;
        INFO(described(shape, ranks));
        Random random(static_cast<unsigned>(count + ranks));
        run(Machine::uniform(ranks, ranks, 0, true), shape, ranks == 3 ? 7 : 132, Pieces::one, false, random);
      }
    }
  }
  CHECK(sent_on > before);
}

TEST_CASE("what comes in LL lines goes on by the warp that takes it or adds to it") {
  struct One {
    CollectiveKind kind;
    const char* algorithm;
    int arity;
    int rank;          // one of four
    RowKind kinds[2];  // of its rows that move data
    int sends;         // of those of the first kind
  };
  for (const One& one : {One{CollectiveKind::broadcast, "trees", 1, 1, {RowKind::unpack, RowKind::unpack}, 1},
                         One{CollectiveKind::broadcast, "trees", 2, 1, {RowKind::unpack, RowKind::unpack}, 1},
                         One{CollectiveKind::reduce, "trees", 1, 2, {RowKind::combine, RowKind::combine}, 1},
                         One{CollectiveKind::allreduce, "relay", 0, 3, {RowKind::combine, RowKind::answer}, 3}}) {
    for (const std::int64_t count : {64, 1003, 9'001}) {  // with places in a table, and without
      for (const bool in_place : {false, true}) {
        CollectiveShape shape;
        shape.kind = one.kind;
        shape.memory = Memory::device;
        shape.shared = true;
        shape.in_place = in_place;
        shape.type = one.arity == 2 ? DType::u16 : DType::u32;
        shape.count = one.arity == 2 ? 2 * count : count;
        shape.algorithm = one.algorithm;
        shape.trees = one.arity > 0 ? 1 : 0;
        shape.arity = one.arity;
        shape.chunk = one.arity > 0 ? 16 * count : 0;
        shape.path = "peer:ll";
        INFO(described(shape, 4));
        const Machine machine = Machine::uniform(4, 4, 0, true);
        World world;
        const Rank rank(world, plan(machine, shape).plan(one.rank), 8, Pieces::one, true);
        REQUIRE(rank.rows());
        bool found[2] = {};
        for (const Row& row : rank.rows()->rows) {
          if (row.kind == RowKind::none || row.kind == RowKind::signal) continue;
          CHECK((row.kind == one.kinds[0] || row.kind == one.kinds[1]));
          for (int k = 0; k < 2; ++k) found[k] = found[k] || row.kind == one.kinds[k];
          if (row.kind == one.kinds[0]) CHECK(row.sends == one.sends);
        }
        CHECK((found[0] && found[1]));
        CHECK(rank.rows()->places.empty() == (count > 1003));
        Random random(static_cast<unsigned>(count));
        for (const Pieces pieces : {Pieces::one, Pieces::two, Pieces::either})
          run(machine, shape, 8, pieces, true, random);
      }
    }
  }
}

TEST_CASE("warps that fill lines take as many where several ranks exchange them") {
  CollectiveShape shape;
  shape.kind = CollectiveKind::allgather;
  shape.memory = Memory::device;
  shape.shared = true;
  shape.type = DType::u32;
  shape.count = 12'007;
  shape.algorithm = "direct";
  shape.path = "peer:ll";
  const auto kinds = [&](int ranks) {
    World world;
    const Rank rank(world, plan(Machine::uniform(ranks, ranks, 0, true), shape).plan(0), 8, Pieces::one, true);
    std::map<RowKind, bool> found;
    for (const Row& row : rank.rows().value().rows) found[row.kind] = true;
    return found;
  };
  CHECK(kinds(3).contains(RowKind::answer));
  CHECK(!kinds(3).contains(RowKind::unpack));
  CHECK(!kinds(2).contains(RowKind::answer));
  Random random(43);
  for (const int ranks : {2, 3, 4})
    run(Machine::uniform(ranks, ranks, 0, true), shape, 8, Pieces::either, true, random);
}

TEST_CASE("small epochs by LL lines run in rows, those that do more do not") {
  const auto of_rank = [](int rank, CollectiveKind kind, std::int64_t count, const std::string& path, DType type) {
    CollectiveShape shape;
    shape.kind = kind;
    shape.memory = Memory::device;
    shape.shared = true;
    shape.type = type;
    shape.count = count;
    shape.path = path;
    World world;
    const Plan plan = tasuki::plan(Machine::uniform(2, 2, 0, true), shape).plan(rank);
    return Rank(world, plan, 132, Pieces::one, true).rows();
  };
  const auto kinds = [](const std::optional<RowProgram>& rows) {
    std::map<RowKind, int> count;
    for (const Row& row : rows.value().rows) ++count[row.kind];
    count.erase(RowKind::none);
    return count;
  };
  using Count = std::map<RowKind, int>;
  // 250 words are three lines of 120, 120 and 10.
  const auto allreduce = of_rank(0, CollectiveKind::allreduce, 250, "peer:ll", DType::f32);
  CHECK(kinds(allreduce) == Count{{RowKind::fill, 3}, {RowKind::combine, 3}});
  CHECK(allreduce->reduces);
  CHECK(allreduce->type == DType::f32);
  CHECK(allreduce->rows.size() % kGpuWarps == 0);
  CHECK(allreduce->places.size() == allreduce->rows.size() * kLanes);
  // One way: the receiver tells the sender that it may go on, who waits for that before it fills lines.
  const auto sender = of_rank(1, CollectiveKind::reduce, 250, "peer:ll", DType::f64);
  CHECK(kinds(sender) == Count{{RowKind::fill, 5}});
  CHECK(sender->rows.front().signal.counter != nullptr);
  CHECK(kinds(of_rank(0, CollectiveKind::reduce, 250, "peer:ll", DType::f64)) ==
        Count{{RowKind::combine, 5}, {RowKind::signal, 1}});
  // More lines than there are warps: each kind has its share of them, and every line is in one row.
  const auto large = of_rank(0, CollectiveKind::allreduce, 132 * 8 * 120 + 7, "peer:ll", DType::f32);
  CHECK(large.value().places.empty());
  CHECK(large->rows.size() == 132 * kGpuWarps);
  std::map<RowKind, std::map<std::uint32_t, int>> lines;
  for (const Row& row : large->rows)
    for (std::uint32_t i = 0; i < row.lines && row.kind != RowKind::none; ++i)
      ++lines[row.kind][row.line + i * row.step];
  for (const RowKind kind : {RowKind::fill, RowKind::combine}) {
    CHECK(lines[kind].size() == 132 * 8 + 1);
    for (const auto& [line, times] : lines[kind]) {
      CHECK(line <= 132 * 8);
      CHECK(times == 1);
    }
  }
  CHECK(!of_rank(0, CollectiveKind::allreduce, 250, "peer:put,peer:eager", DType::f32));  // signals after puts
}

TEST_CASE("what an allreduce between two GPUs adds up is one step, and its LL lines need no signal") {
  Random random(42);
  for (const bool in_place : {false, true}) {
    CollectiveShape shape;
    shape.memory = Memory::device;
    shape.shared = true;
    shape.type = DType::f32;
    shape.count = 64;
    shape.in_place = in_place;
    shape.algorithm = "exchange";
    shape.path = "peer:ll";
    World world;
    for (const Plan& plan : tasuki::plan(Machine::uniform(2, 2, 0, true), shape).plans()) {
      const Rank rank(world, plan, 132, Pieces::one);
      int moves = 0;
      int others = 0;
      for (const GpuTask& task : rank.gpu().tasks[kBoth]) {
        for (const auto& lane : View(rank.gpu(), task).lanes()) {
          for (std::size_t s = 0; s < lane.size(); s += 1 + static_cast<std::size_t>(lane[s].joined)) {
            (lane[s].tiles > 0 ? moves : others) += 1;
            if (lane[s].joined > 0) CHECK(lane[s].by_lines == 1);
          }
        }
      }
      CHECK(others == 0);
      CHECK(moves == (in_place ? 3 : 2));  // what is sent, what is added up; in place a copy of what is sent
    }
  }
}

TEST_CASE("one part of a vector is combined while the next one is put, and by more blocks") {
  const auto lowered = [](std::int64_t chunk) {
    CollectiveShape shape;
    shape.kind = CollectiveKind::allreduce;
    shape.memory = Memory::device;
    shape.shared = true;
    shape.type = DType::f32;
    shape.count = 1 << 20;
    shape.algorithm = "doubling";
    shape.chunk = chunk;
    shape.path = "peer:put";
    World world;
    return Rank(world, tasuki::plan(Machine::uniform(2, 2, 0, true), shape).plan(0), 132, Pieces::one).gpu();
  };
  const GpuProgram in_parts = lowered(1 << 20);
  REQUIRE(in_parts.rounds[kBoth].size() == 1);
  CHECK(in_parts.blocks[kBoth] == 132);
  const auto& tasks = in_parts.tasks[kBoth];
  REQUIRE(tasks.size() == 3);  // the first one has the threads that only signal
  std::map<Verb, int> blocks;
  for (std::size_t t = 1; t < tasks.size(); ++t) {
    const int end = t + 1 < tasks.size() ? tasks[t + 1].first_block : in_parts.blocks[kBoth];
    const auto lanes = View(in_parts, tasks[t]).lanes();
    for (const GpuStep& step : lanes.front())
      if (step.tiles > 0) blocks[step.verb] = end - tasks[t].first_block;
  }
  CHECK(blocks.at(Verb::put) > 30);
  CHECK(blocks.at(Verb::reduce) > 3 * blocks.at(Verb::put) / 2);
  CHECK(lowered(1 << 22).rounds[kBoth].size() == 2);  // it comes as a whole, when all has been sent
}

// In one piece such an epoch runs in rows, in two it does not, and the wait depends on what the start's blocks share.
TEST_CASE("epochs in one piece and in two may follow each other where what was sent is overwritten") {
  Random random(47);
  int in_rows_once = 0;
  for (const int ranks : {2, 3}) {
    for (const std::int64_t count : {5, 130, 1003, 4000}) {
      for (const int blocks : {3, 8, 132}) {
        CollectiveShape shape;
        shape.kind = CollectiveKind::allreduce;
        shape.memory = Memory::device;
        shape.type = DType::i64;
        shape.count = count;
        shape.in_place = true;
        shape.path = "peer:ll";
        INFO(described(shape, ranks));
        CAPTURE(blocks);
        const int before = in_rows;
        run(Machine::uniform(ranks, ranks, 0, true), shape, blocks, Pieces::either, true, random);
        in_rows_once += in_rows > before ? 1 : 0;
      }
    }
  }
  CHECK(in_rows_once > 8);
}

// The broadcast of 64 KiB by `hierarchical` on two ranks in 8 blocks once did not end on GPUs: the kernel before the
// copies waited for the first copy's end.
TEST_CASE("several copies of a copy engine, each worth many blocks, wait for no kernel that waits for them") {
  Random random(7004);
  for (const int ranks : {2, 3}) {
    for (const auto& [kind, algorithm] : {std::pair{CollectiveKind::broadcast, "hierarchical"},
                                          {CollectiveKind::broadcast, "trees"},
                                          {CollectiveKind::allgather, "hierarchical"},
                                          {CollectiveKind::allreduce, "doubling"},
                                          {CollectiveKind::allreduce, "hierarchical"}}) {
      for (const int blocks : {1, 8, 132}) {
        for (const std::int64_t chunk : {0, 4096, 32768}) {
          for (const char* path : {"peer:copy", "peer:copy,peer:put", "peer:copy,mpi:staged"}) {
            CollectiveShape shape;
            shape.kind = kind;
            shape.memory = Memory::device;
            shape.shared = true;
            shape.type = DType::i64;
            shape.count = 8192;
            shape.algorithm = algorithm;
            shape.path = path;
            shape.chunk = chunk;
            INFO(described(shape, ranks));
            CAPTURE(blocks);
            try {
              run(Machine::uniform(ranks, ranks, 0, true), shape, blocks, Pieces::either, true, random);
            } catch (const PathUnusable&) {  // by copies alone nothing is added up
            }
          }
        }
      }
    }
  }
}

TEST_CASE("messages of the progress thread, alone and beside stores: many epochs, in one piece and in two") {
  constexpr std::uint64_t kMany = 24;
  Random random(66);
  std::map<std::string, int> with_messages;  // operations, by path
  for (const int ranks : {2, 3}) {
    for (const char* path : {"mpi:staged", "peer:copy,mpi:staged"}) {
      for (const auto& [kind, algorithm] : {std::pair{CollectiveKind::broadcast, "hierarchical"},
                                            {CollectiveKind::broadcast, "trees"},
                                            {CollectiveKind::allreduce, "ring"}}) {
        for (const int blocks : {1, 8}) {
          for (const std::int64_t count : {5, 8192}) {
            CollectiveShape shape;
            shape.kind = kind;
            shape.memory = Memory::device;
            shape.shared = true;
            shape.type = DType::i64;
            shape.count = count;
            shape.algorithm = algorithm;
            shape.path = path;
            INFO(described(shape, ranks));
            CAPTURE(blocks);
            const int before = carried;
            run(Machine::uniform(ranks, ranks, 0, true), shape, blocks, Pieces::either, true, random, kMany);
            with_messages[path] += carried > before ? 1 : 0;
          }
        }
      }
    }
  }
  CHECK(with_messages["mpi:staged"] == 24);
  CHECK(with_messages["peer:copy,mpi:staged"] > 12);
}

TEST_CASE("what goes by NCCL and comes by the progress thread: many epochs, in one piece and in two") {
  Random random(68);
  const int before = held;
  int mixed = 0;
  for (const auto& [ranks, island] : {std::pair{2, 1}, {4, 2}, {5, 2}}) {
    Machine machine = Machine::uniform(ranks, ranks, island, true);
    machine.costs["nccl"].one_way = machine.costs["nccl"].mutual = {1e-5, 3e11, 3e11, 0};
    machine.costs["mpi:staged"].one_way = machine.costs["mpi:staged"].mutual = {3e-5, 1e10, 1e10, 0};
    for (const char* path : {"nccl", "mpi:staged"}) machine.costs[path].measured = true;
    for (const CollectiveKind kind : all_collectives()) {
      for (const Algorithm* algorithm : algorithms_of(kind)) {
        if (algorithm->name == "torus") continue;
        for (const std::int64_t count : {1, 5003}) {
          CollectiveShape shape;
          shape.kind = kind;
          shape.memory = Memory::device;
          shape.type = kind == CollectiveKind::barrier ? DType::u8 : DType::i64;
          shape.count = kind == CollectiveKind::barrier ? 0 : count;
          shape.algorithm = algorithm->name;
          shape.path = random() % 2 == 0 ? "auto" : "nccl,mpi:staged";
          shape.in_place = kind != CollectiveKind::barrier && kind != CollectiveKind::broadcast && random() % 2 == 0;
          INFO(described(shape, ranks));
          try {
            for (const Plan& plan : plan(machine, shape).plans()) {
              const auto takes = [&](const char* path) {
                return std::ranges::find(plan.paths, path) != plan.paths.end();
              };
              mixed += takes("nccl") && takes("mpi:staged") ? 1 : 0;
            }
            for (const Pieces pieces : {Pieces::two, Pieces::either})
              run(machine, shape, random() % 2 == 0 ? 1 : 8, pieces, false, random, 4);
          } catch (const PathUnusable&) {
            // Neither carries words of 4 bytes that are none, nor NCCL what depends on what arrives.
          }
        }
      }
    }
  }
  CHECK(mixed > 100);
  CHECK(held > before + 100);
}
