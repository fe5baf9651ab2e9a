// Several contexts in a process: a wait drives the operations of all of them, and no release waits for another rank.
#include <doctest/doctest.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "error_of.hpp"
#include "host_paths.hpp"
#include "session/deferred_release.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

constexpr double kDeadline = 8;
constexpr std::int64_t kLength = 3001;

std::vector<int> everyone(const Context& ctx) {
  std::vector<int> all(static_cast<std::size_t>(ctx.size()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// An allreduce in several steps over the ranks of a context, with other data at each epoch.
class Sum {
 public:
  Sum(const Context& ctx, int salt, const std::string& path, const std::string& engine = "inline")
      : ctx_(ctx), salt_(salt), mine_(kLength), all_(kLength), sum_(make(path, engine)) {
    const VerifyReport report = verify(sum_);
    INFO(report.text());
    CHECK(report.ok());
  }
  void start(int epoch) {
    epoch_ = epoch;
    for (std::int64_t i = 0; i < kLength; ++i) mine_[static_cast<std::size_t>(i)] = value(ctx_.rank(), i);
    sum_.start();
  }
  void wait() {
    sum_.wait();
    int wrong = 0;
    for (std::int64_t i = 0; i < kLength; ++i) {
      std::int64_t expected = 0;
      for (int rank = 0; rank < ctx_.size(); ++rank) expected += value(rank, i);
      wrong += all_[static_cast<std::size_t>(i)] == expected ? 0 : 1;
    }
    CHECK(wrong == 0);
  }

 private:
  Allreduce make(const std::string& path, const std::string& engine) {
    CollectiveOptions options;
    options.path = path;
    options.engine = engine;
    options.algorithm = ctx_.size() > 1 ? "ring" : "auto";
    return Allreduce(ctx_, mine_.data(), all_.data(), kLength, DType::i64, ReduceOp::sum, options);
  }
  std::int64_t value(int rank, std::int64_t i) const { return salt_ * 1000003 + rank * 7919 + epoch_ * 101 + i; }

  Context ctx_;
  int salt_;
  int epoch_ = 0;
  std::vector<std::int64_t> mine_;
  std::vector<std::int64_t> all_;
  Allreduce sum_;
};

}  // namespace

TEST_CASE("operations of several contexts are waited for in other orders on every rank") {
  Context ctx(MPI_COMM_WORLD);
  ctx.set_deadline(kDeadline);
  Context duplicate(MPI_COMM_WORLD);
  duplicate.set_deadline(kDeadline);
  const Context part = ctx.subset(everyone(ctx));
  for (const std::string& path : host_paths(ctx)) {
    if (path != "auto" && path != "shared:eager" && path != "mpi") continue;  // cannot add in the user's own memory
    CAPTURE(path);
    std::array<Sum, 3> sums{Sum(ctx, 1, path), Sum(duplicate, 2, path), Sum(part, 3, path)};
    for (int epoch = 0; epoch < 8; ++epoch) {
      std::array<std::size_t, 3> order{0, 1, 2};
      std::ranges::shuffle(order, std::mt19937(static_cast<unsigned>(epoch * 64 + ctx.rank())));
      for (const std::size_t i : order) sums[i].start(epoch);
      std::ranges::shuffle(order, std::mt19937(static_cast<unsigned>(epoch * 64 + ctx.rank() + 7)));
      for (const std::size_t i : order) sums[i].wait();
    }
  }
}

TEST_CASE("three pairs of three ranks wait around a triangle") {
  Context ctx(MPI_COMM_WORLD);
  if (ctx.size() < 3) return;
  ctx.set_deadline(kDeadline);
  const int me = ctx.rank();
  if (me >= 3) return;
  std::map<int, Context> pairs;  // by the rank that is left out
  for (int out = 0; out < 3; ++out)
    if (out != me)
      pairs.emplace(out, ctx.subset({(out + 1) % 3 < (out + 2) % 3 ? (out + 1) % 3 : (out + 2) % 3,
                                     (out + 1) % 3 < (out + 2) % 3 ? (out + 2) % 3 : (out + 1) % 3}));
  std::map<int, Sum> sums;
  for (const auto& [out, pair] : pairs) sums.try_emplace(out, pair, out + 1, "auto");
  for (int epoch = 0; epoch < 8; ++epoch) {
    const std::array<int, 2> order{(me + 1) % 3, (me + 2) % 3};
    for (const int out : order) sums.at(out).start(epoch);
    for (const int out : order) sums.at(out).wait();
  }
}

TEST_CASE("what is made in one context drives the active operations of another") {
  Context ctx(MPI_COMM_WORLD);
  ctx.set_deadline(kDeadline);
  Context other(MPI_COMM_WORLD);
  other.set_deadline(kDeadline);
  Sum sum(ctx, 1, "auto");
  for (int epoch = 0; epoch < 4; ++epoch) {
    sum.start(epoch);
    if (ctx.rank() % 2 == 1) sum.wait();
    const Context part = epoch % 2 == 0 ? other.subset(everyone(other)) : Context(MPI_COMM_WORLD);
    Sum made(part, 5, "auto");
    if (ctx.rank() % 2 == 0) sum.wait();
    made.start(epoch);
    made.wait();
  }
}

TEST_CASE("threads hand contexts to each other while they wait, and drive each operation one at a time") {
  Context first(MPI_COMM_WORLD);
  Context second(MPI_COMM_WORLD);
  if (runtime_of(first).thread_level() < MPI_THREAD_MULTIPLE) return;
  for (Context* ctx : {&first, &second}) ctx->set_deadline(kDeadline);
  Sum a(first, 1, "auto");
  Sum b(second, 2, "auto");
  for (int epoch = 0; epoch < 20; ++epoch) {
    // This thread starts both, hands one over, and waits for the other one, which drives what is still its own.
    a.start(epoch);
    b.start(epoch);
    Sum& mine = epoch % 2 == 0 ? a : b;
    Sum& theirs = epoch % 2 == 0 ? b : a;
    std::thread taker([&] { theirs.wait(); });
    mine.wait();
    taker.join();
  }
}

TEST_CASE("a context's release waits for nobody") {
  const int before = deferred_releases();
  int me = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks < 2) return;
  auto ctx = std::make_unique<Context>(MPI_COMM_WORLD);
  {
    Sum sum(*ctx, 1, "auto");
    sum.start(1);
    sum.wait();
  }
  // Rank 0 releases its context, and only then sends what the others wait for before they release theirs.
  int word = 17;
  if (me == 0) ctx.reset();
  MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (me == 0) CHECK(deferred_releases() >= 1);
  ctx.reset();
  MPI_Barrier(MPI_COMM_WORLD);
  for (int made = 0; made < 3; ++made) Context(MPI_COMM_WORLD).barrier();  // what all have released is collected here
  CHECK(deferred_releases() <= before + 2);
}

TEST_CASE("contexts of the same ranks are released in other orders on every rank") {
  Context ctx(MPI_COMM_WORLD);
  ctx.set_deadline(kDeadline);
  for (int turn = 0; turn < 3; ++turn) {
    std::vector<Context> contexts;
    for (int i = 0; i < 4; ++i) contexts.push_back(i % 2 == 0 ? ctx.subset(everyone(ctx)) : Context(MPI_COMM_WORLD));
    std::ranges::shuffle(contexts, std::mt19937(static_cast<unsigned>(64 * turn + ctx.rank())));
    while (!contexts.empty()) contexts.pop_back();
    Sum sum(ctx, turn, "auto");
    sum.start(turn);
    sum.wait();
  }
}

TEST_CASE("MPI frees a communicator without waiting for its other ranks, which deferred release relies on") {
  int me = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm one = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &one);
  if (me == 0) MPI_Comm_free(&one);
  int word = me == 0 ? 23 : 0;
  MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
  CHECK(word == 23);
  if (me != 0) MPI_Comm_free(&one);
}

TEST_CASE("who destroys an operation in an epoch says so to those who wait for it, and to nobody else") {
  Context ctx(MPI_COMM_WORLD);
  if (ctx.size() < 2) return;
  ctx.set_deadline(60);
  const auto begin = std::chrono::steady_clock::now();
  Context other(MPI_COMM_WORLD);
  std::vector<double> mine(kLength);
  std::vector<double> all(kLength);
  const auto make = [&](const Context& where) {
    CollectiveOptions options;
    options.algorithm = "ring";
    return std::make_unique<Allreduce>(where, mine.data(), all.data(), kLength, DType::f64, ReduceOp::sum, options);
  };
  const auto kept = make(ctx);
  auto dropped = make(ctx);
  const bool drops = ctx.rank() == ctx.size() - 1;
  if (drops) {
    dropped->start();
    dropped.reset();
  }
  // It goes on with what is alike in everything but its number, and with other contexts.
  const auto elsewhere = make(other);
  for (const auto& sum : {kept.get(), elsewhere.get()}) {
    sum->start();
    sum->wait();
  }
  if (!drops) {
    dropped->start();
    const std::string text = error_of([&] { dropped->wait(); });
    CAPTURE(text);
    const std::string who = "rank " + std::to_string(ctx.size() - 1) + " destroyed allreduce in epoch 1";
    CHECK((text.find(who) != text.npos || text.find(" gave up because ") != text.npos));
  }
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
  elsewhere->start();
  elsewhere->wait();
}
