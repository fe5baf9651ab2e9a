// Ranks that hand each other memory under whatever conditions apart.py has put them: they say how they reach each
// other, and check what arrives. Or ranks of which the last does not come to make the context.
//
//   apart MEGABYTES [alone]    `alone`: in a network of its own once MPI has started
//   apart absent SECONDS
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
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
  const int wrong = exchange(ctx, megabytes << 20);
  const std::string text = ctx.describe();
  if (ctx.is_root()) fmt::print("{}", text);
  fmt::print("rank {}: {} wrong bytes\n", ctx.rank(), wrong);
  std::fflush(stdout);
  if (wrong != 0) return 1;
  ctx.barrier();
  if (argc > 2) _exit(0);  // the network that MPI would take leave in is gone
  return 0;
}
