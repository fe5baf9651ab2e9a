// Ranks that are threads: what is special about them. That everything else is as with processes, the rank tests show,
// which this program runs too.
#include "tasuki/threads.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "rank_test.hpp"
#include "ranks/error_of.hpp"
#include "session/runtime.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

TEST_CASE("run_threads runs its body once on every rank, as often as it is called") {
  for (const int ranks : {1, 2, 5}) {
    std::vector<std::atomic<int>> calls(static_cast<std::size_t>(ranks));
    run_threads(ranks, [&](const Context& ctx) {
      CHECK(ctx.size() == ranks);
      CHECK(ctx.comm() == MPI_COMM_NULL);
      ++calls[static_cast<std::size_t>(ctx.rank())];
      ctx.barrier();
      for (const auto& called : calls) CHECK(called == 1);
      CHECK(ctx.describe().find("threads of one process") != std::string::npos);
      CHECK(ctx.describe().find("rank " + std::to_string(ranks - 1)) != std::string::npos);
    });
  }
}

TEST_CASE("threads see each other's shared memory at one place, and count who has it mapped") {
  run_threads(4, [](const Context& ctx) {
    SharedMemory& memory = runtime_of(ctx).memory();
    const int next = (ctx.rank() + 1) % ctx.size();
    const int before = (ctx.rank() + ctx.size() - 1) % ctx.size();
    for (int round = 0; round < 60; ++round) {
      const std::int64_t bytes = round % 6 == 5 ? 300001 : 77 * round + 1;
      std::shared_ptr<std::byte> block = memory.allocate(bytes);
      const auto places = ctx.allgather(block.get() == nullptr ? 0 : reinterpret_cast<std::uintptr_t>(block.get()));
      const auto addresses = ctx.allgather(memory.find(block.get(), bytes));
      std::shared_ptr<std::byte> theirs = memory.map(next, addresses[static_cast<std::size_t>(next)]);
      CHECK(reinterpret_cast<std::uintptr_t>(theirs.get()) == places[static_cast<std::size_t>(next)]);
      theirs.get()[bytes == 300001 ? 300000 : 77 * round] = std::byte(round + ctx.rank());
      ctx.barrier();
      CHECK(memory.mappers(block.get()) == 1);
      CHECK((block.get()[bytes - 1] == std::byte(round + before)));
      std::byte* const place = block.get();
      block.reset();
      const auto other = memory.allocate(bytes);
      CHECK(other.get() != place);  // the rank before may still store into it
      ctx.barrier();
      theirs.get()[0] = std::byte{255};  // late
      theirs.reset();
      ctx.barrier();
      CHECK((other.get()[0] == std::byte{0}));
    }
    CHECK(memory.regions() <= 4);
  });
}

TEST_CASE("a number of threads that makes no sense is refused") {
  const auto nothing = [](const Context&) {};
  CHECK(error_of([&] { run_threads(0, nothing); }) ==
        "run_threads: argument 'ranks' is 0; it must be between 1 and 1024");
  CHECK(error_of([&] { run_threads(-3, nothing); }).find("'ranks' is -3") != std::string::npos);
  CHECK(error_of([&] { run_threads(1025, nothing); }).find("'ranks' is 1025") != std::string::npos);
}

TEST_CASE("what a rank throws ends the waits of the others, and comes out") {
  std::atomic<int> told{0};
  const auto body = [&](const Context& ctx) {
    GridOptions options;
    options.periodic = {true};
    const Grid grid(ctx, {30}, options);
    const Field<double> field(grid);
    Halo halo(HaloField{field});
    for (int epoch = 0; epoch < 3; ++epoch) {
      halo.start();
      halo.wait();
    }
    if (ctx.rank() == 1) throw std::out_of_range("a cell too far");
    const std::string text = error_of([&] {
      for (;;) {
        halo.start();
        halo.wait();
      }
    });
    CHECK(text.find("rank 1 gave up because rank 1 left with an exception") != std::string::npos);
    ++told;
  };
  CHECK_THROWS_AS(run_threads(3, body), std::out_of_range);
  CHECK(told == 2);
}

TEST_CASE("what a rank throws ends the waits of the others also while something holds its context") {
  std::vector<Field<double>> kept;
  std::atomic<int> told{0};
  const auto begin = std::chrono::steady_clock::now();
  const auto body = [&](const Context& ctx) {
    const Grid grid(ctx, {30}, {.periodic = {true}});
    const Field<double> field(grid);
    Halo halo(HaloField{field});
    if (ctx.rank() == 1) {
      kept.push_back(field);
      throw std::out_of_range("a cell too far");
    }
    const std::string text = error_of([&] {
      halo.start();
      halo.wait();
    });
    CHECK(text.find("rank 1 left with an exception: a cell too far") != std::string::npos);
    ++told;
  };
  CHECK_THROWS_AS(run_threads(3, body), std::out_of_range);
  CHECK(told == 2);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(15));
}

TEST_CASE("what a rank throws ends the waits of the others in subsets, also while something holds them") {
  std::vector<std::optional<Context>> kept(3);
  std::atomic<int> told{0};
  const auto body = [&](const Context& ctx) {
    const Context pair = ctx.rank() == 2 ? ctx.subset({2}) : ctx.subset({1, 0});
    const Context all = ctx.subset({2, 0, 1});
    kept[static_cast<std::size_t>(ctx.rank())] = all;
    if (ctx.rank() == 1) throw std::out_of_range("a rank too far");
    const std::string text = error_of([&] { ctx.rank() == 0 ? pair.barrier() : all.barrier(); });
    CAPTURE(text);
    // In the pair it is rank 0, and nothing holds that.
    CHECK(text.find(ctx.rank() == 0 ? "rank 0 left with an exception" : "a rank too far") != std::string::npos);
    ++told;
  };
  const auto begin = std::chrono::steady_clock::now();
  CHECK_THROWS_AS(run_threads(3, body), std::out_of_range);
  CHECK(told == 2);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(15));
}

TEST_CASE("threads let go of their context and its subsets in any order") {
  for (int turn = 0; turn < 5; ++turn) {
    std::vector<std::optional<Context>> kept(4);
    run_threads(4, [&](const Context& ctx) {
      std::vector<Context> parts;
      parts.push_back(ctx.subset({3, 2, 1, 0}));
      parts.push_back(ctx.subset(ctx.rank() % 2 == 0 ? std::vector<int>{0, 2} : std::vector<int>{3, 1}));
      parts.push_back(parts[0].subset({0, 1, 2, 3}));
      for (const Context& part : parts) part.barrier();
      if (ctx.rank() % 2 == 0) parts.erase(parts.begin());
      if (turn % 2 == 0) kept[static_cast<std::size_t>(ctx.rank())] = parts.back();  // beyond the threads' end
      while (!parts.empty()) parts.pop_back();
    });
  }
}

TEST_CASE("what others throw comes out where the first rank to fail has caught its error") {
  const std::string text = error_of([] {
    run_threads(2, [](const Context& ctx) {
      Context own = ctx;
      const Grid grid(ctx, {20}, {.periodic = {true}});
      const Field<float> field(grid);
      Halo halo(HaloField{field});
      if (ctx.rank() == 0) {
        own.set_deadline(0.1);
        halo.start();
        CHECK(error_of([&] { halo.wait(); }).find("the deadline of 0.1 s has passed") != std::string::npos);
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      throw std::out_of_range("something of its own");
    });
  });
  CHECK(text == "something of its own");
}

TEST_CASE("a rank that fails while others make their context does not keep them waiting") {
  // Islands of an impossible size, for this context only.
  setenv("TASUKI_ISLAND", "many", 1);
  const std::string text = error_of([] { run_threads(3, [](const Context&) {}); });
  unsetenv("TASUKI_ISLAND");
  CHECK(text.find("TASUKI_ISLAND is 'many'") != std::string::npos);
}

TEST_CASE("arguments that differ between threads are an error on all") {
  std::atomic<int> refused{0};
  run_threads(4, [&](const Context& ctx) {
    const std::string text = error_of([&] { Grid(ctx, {ctx.rank() == 2 ? 9 : 8}); });
    CHECK(text.find("differs between ranks: rank 0 has 8, rank 2 has 9") != std::string::npos);
    ++refused;
  });
  CHECK(refused == 4);
}

TEST_CASE("threads that make different collective calls are told so") {
  const std::string text = error_of(
      [] { run_threads(3, [](const Context& ctx) { ctx.rank() == 1 ? (void)ctx.allgather(1.5) : ctx.barrier(); }); });
  CHECK(text.find("the ranks do different things: rank ") != std::string::npos);
  CHECK(text.find("rank 1 gathers texts") != std::string::npos);
}

TEST_CASE("a wait between threads has a deadline") {
  const std::string text = error_of([] {
    run_threads(2, [](const Context& ctx) {
      Context own = ctx;
      const Grid grid(ctx, {20});
      const Field<float> field(grid);
      Halo halo(HaloField{field});
      own.set_deadline(0.2);
      if (ctx.rank() == 1) halo.start();
      if (ctx.rank() == 1) halo.wait();
      ctx.barrier();
    });
  });
  CHECK(text.find("the deadline of 0.2 s has passed") != std::string::npos);
}

TEST_CASE("islands of threads cannot reach each other, and the error says why") {
  setenv("TASUKI_ISLAND", "1", 1);
  const std::string text = error_of([] {
    run_threads(2, [](const Context& ctx) {
      const Grid grid(ctx, {20});
      const Field<float> field(grid);
      Halo halo(HaloField{field});
    });
  });
  // Also where only another rank than the one that speaks has something to send.
  const std::string elsewhere = error_of([] {
    run_threads(2, [](const Context& ctx) {
      char byte = 0;
      Transfer transfer(ctx, {1, &byte, Layout::bytes(1)}, {0, &byte, Layout::bytes(1)});
    });
  });
  unsetenv("TASUKI_ISLAND");
  for (const std::string& said : {text, elsewhere}) {
    CHECK(said.find("no path can carry") != std::string::npos);
    CHECK(said.find("mpi: the ranks are threads of one process") != std::string::npos);
  }
}

TEST_CASE("a trace of threads is refused") {
  setenv("TASUKI_TRACE", "/nowhere", 1);
  const std::string text = error_of([] { run_threads(2, [](const Context&) {}); });
  unsetenv("TASUKI_TRACE");
  CHECK(text.find("run a process a rank to trace") != std::string::npos);
}
