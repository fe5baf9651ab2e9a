// Ranks that hand each other memory under whatever conditions apart.py has put them: they say how they reach each
// other, and check what arrives. Or ranks of which the last does not come to make the context.
//
//   apart MEGABYTES [alone]    `alone`: in a network of its own once MPI has started
//   apart collectives          every algorithm of seven collectives
//   apart absent SECONDS
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <mpi.h>

#include "tasuki/tasuki.hpp"

namespace {

int exchange(const tasuki::Context& ctx, std::int64_t bytes) {
  const auto from = tasuki::shared_alloc(ctx, bytes + 3);
  const auto to = tasuki::shared_alloc(ctx, bytes + 3);
  const tasuki::Layout layout = tasuki::Layout::contiguous(bytes + 3, tasuki::Layout::of<char>());
  tasuki::Transfer there(ctx, {0, from.get(), layout}, {ctx.size() - 1, to.get(), layout});
  const tasuki::VerifyReport report = tasuki::verify(there);
  if (!report.ok()) fmt::print("rank {}: {}\n", ctx.rank(), report.text());
  int wrong = report.ok() ? 0 : 1;
  for (int i = 1; i < 4; ++i) {
    std::memset(from.get(), 10 * i + ctx.rank(), static_cast<std::size_t>(bytes + 3));
    there.start();
    there.wait();
    if (ctx.rank() == ctx.size() - 1)
      for (std::int64_t b = 0; b < bytes + 3; ++b) wrong += to.get()[b] == std::byte(10 * i) ? 0 : 1;
  }
  return wrong;
}

struct Collectives {
  const tasuki::Context& ctx;
  std::int64_t n;  // numbers in a block
  std::vector<double> in, out;

  tasuki::Operation make(std::string_view kind, const tasuki::CollectiveOptions& options) {
    constexpr auto type = tasuki::DType::f64;
    constexpr auto sum = tasuki::ReduceOp::sum;
    if (kind == "broadcast") return tasuki::Broadcast(ctx, 1, in.data(), n * 8, options);
    if (kind == "reduce") return tasuki::Reduce(ctx, 1, in.data(), out.data(), n, type, sum, options);
    if (kind == "reduce_scatter") return tasuki::ReduceScatter(ctx, in.data(), out.data(), n, type, sum, options);
    if (kind == "allgather") return tasuki::Allgather(ctx, in.data(), out.data(), n, type, options);
    if (kind == "alltoall") return tasuki::Alltoall(ctx, in.data(), out.data(), n, type, options);
    if (kind == "scan") return tasuki::Scan(ctx, in.data(), out.data(), n, type, sum, options);
    return tasuki::Allreduce(ctx, in.data(), out.data(), n, type, sum, options);
  }

  static double value(int rank, std::int64_t at, int round) { return static_cast<double>(rank * 100 + at + round * 7); }

  double sum_to(int last, std::int64_t at, int round) const {
    double sum = 0;
    for (int rank = 0; rank <= last; ++rank) sum += value(rank, at, round);
    return sum;
  }

  int wrong_of(std::string_view kind, int round) const {
    const int me = ctx.rank();
    const int last = ctx.size() - 1;
    int wrong = 0;
    const bool blocks = kind == "allgather" || kind == "alltoall";
    for (std::int64_t i = 0; i < (blocks ? n * ctx.size() : n); ++i) {
      const auto from = static_cast<int>(i / n);
      if (kind == "reduce" && me != 1) continue;
      const double got = kind == "broadcast" ? in[i] : out[i];
      const double want = kind == "broadcast"        ? value(1, i, round)
                          : kind == "reduce_scatter" ? sum_to(last, me * n + i, round)
                          : kind == "allgather"      ? value(from, i % n, round)
                          : kind == "alltoall"       ? value(from, me * n + i % n, round)
                          : kind == "scan"           ? sum_to(me, i, round)
                                                     : sum_to(last, i, round);
      wrong += got == want ? 0 : 1;
    }
    return wrong;
  }

  int run(std::string_view kind, const char* algorithm) {
    tasuki::CollectiveOptions options;
    options.algorithm = algorithm;
    tasuki::Operation operation = make(kind, options);
    int wrong = tasuki::verify(operation).ok() ? 0 : 1;
    for (int round = 1; round < 5; ++round) {
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = value(ctx.rank(), static_cast<std::int64_t>(i), round);
      std::fill(out.begin(), out.end(), -1);
      operation.start();
      operation.wait();
      wrong += wrong_of(kind, round);
    }
    if (wrong != 0) fmt::print("rank {}: {} by {}: {} wrong numbers\n", ctx.rank(), kind, algorithm, wrong);
    return wrong;
  }
};

int collectives(const tasuki::Context& ctx) {
  const std::vector<std::pair<std::string_view, std::vector<const char*>>> all = {
      {"allreduce", {"exchange", "direct", "doubling", "ring", "halving", "hierarchical"}},
      {"reduce", {"binomial", "trees", "direct", "collect", "hierarchical"}},
      {"reduce_scatter", {"direct", "ring", "halving", "collect", "hierarchical"}},
      {"allgather", {"direct", "doubling", "ring", "hierarchical"}},
      {"alltoall", {"direct", "pairwise", "bruck", "hierarchical"}},
      {"broadcast", {"trees", "binomial", "hierarchical"}},
      {"scan", {"doubling", "hierarchical"}}};
  int wrong = 0;
  for (const std::int64_t n : {1, 4097}) {
    const auto room = static_cast<std::size_t>(n * ctx.size());
    Collectives one{ctx, n, std::vector<double>(room), std::vector<double>(room)};
    for (const auto& [kind, algorithms] : all)
      for (const char* algorithm : algorithms) wrong += one.run(kind, algorithm);
  }
  return wrong;
}

int absent(double seconds) {
  int argc = 0;
  char** argv = nullptr;
  int level = 0;
  int rank = 0;
  int size = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == size - 1) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    _exit(0);
  }
  const auto begin = std::chrono::steady_clock::now();
  try {
    const tasuki::Context ctx(MPI_COMM_WORLD);
    fmt::print("rank {} has a context\n", rank);
  } catch (const tasuki::Error& error) {
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
    fmt::print("rank {} gave up after {:.1f} s: {}\n", rank, waited.count(), error.what());
  }
  std::fflush(stdout);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds - 1));
  _exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "absent") return absent(std::atof(argv[2]));
  const std::int64_t megabytes = argc > 1 ? std::atoll(argv[1]) : 1;
  if (argc > 2 && std::string_view(argv[2]) == "alone") {
    int level = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::vector<int> out(static_cast<std::size_t>(size));
    std::vector<int> in(out);
    MPI_Alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, MPI_COMM_WORLD);  // connects everybody with everybody
    if (unshare(CLONE_NEWNET) != 0) return 3;
  }
  tasuki::Context ctx(argc, argv);
  const bool gather = argc > 1 && std::string_view(argv[1]) == "collectives";
  const int wrong = gather ? collectives(ctx) : exchange(ctx, megabytes << 20);
  const std::string text = ctx.describe();
  if (ctx.is_root()) fmt::print("{}", text);
  fmt::print("rank {}: {} wrong\n", ctx.rank(), wrong);
  std::fflush(stdout);
  if (wrong != 0) return 1;
  ctx.barrier();
  if (argc > 2) _exit(0);  // the network that MPI would take leave in is gone
  return 0;
}
