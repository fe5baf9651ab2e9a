// First epochs that take much longer than predicted correct the price of a path, for what is made later and on all
// ranks alike. Who waits late is no reason to.
#include <doctest/doctest.h>
#include <mpi.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

constexpr std::int64_t kCount = 40000;

/// A context of all ranks by a profile in which `shared:eager` has these prices and all others are dear.
class Priced {
 public:
  Priced(const std::string& latency, const std::string& bandwidth, bool corrects) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char name[] = "/tmp/tasuki-priced-XXXXXX";
    if (rank == 0) REQUIRE(mkdtemp(name) != nullptr);
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    folder_ = name;
    const std::string file = folder_ / "profile.json";
    if (rank == 0) {
      std::ofstream out(file);
      out << "{\"version\": 13, \"paths\": {";
      for (const char* path : {"mpi", "shared:pull", "shared:put", "shared:read", "self"})
        out << '"' << path << "\": {\"latency\": 1, \"bandwidth\": 1e6, \"per_run\": 1e-6}, ";
      out << "\"shared:eager\": {\"latency\": " << latency << ", \"bandwidth\": " << bandwidth
          << ", \"per_run\": 1e-10}}}";
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (const auto& [variable, value] :
         {std::pair{"TASUKI_PROFILE", file}, {"TASUKI_CORRECT", corrects ? "1" : "0"}}) {
      const char* before = std::getenv(variable);
      before_.emplace_back(variable, before == nullptr ? "" : before);
      setenv(variable, value.c_str(), 1);
    }
  }
  ~Priced() {
    for (const auto& [variable, value] : before_)
      value.empty() ? unsetenv(variable.c_str()) : setenv(variable.c_str(), value.c_str(), 1);
    MPI_Barrier(MPI_COMM_WORLD);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) std::filesystem::remove_all(folder_);
  }
  Priced(const Priced&) = delete;
  Priced& operator=(const Priced&) = delete;

 private:
  std::filesystem::path folder_;
  std::vector<std::pair<std::string, std::string>> before_;
};

/// Blocks of both ranks to each other, `epochs` times, right each time. `between` is called between start and wait.
template <class Between>
std::string exchange(const Context& ctx, int epochs, const OperationOptions& options, const Between& between) {
  const int other = 1 - ctx.rank();
  std::vector<double> in(kCount), out(kCount);
  NeighbourAlltoall operation(ctx, Neighbours({other}, {other}), in.data(), out.data(), kCount, DType::f64, options);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    std::iota(in.begin(), in.end(), 1000.0 * epoch + ctx.rank());
    operation.start();
    between(epoch);
    operation.wait();
    CHECK(out.front() == 1000.0 * epoch + other);
    CHECK(out.back() == 1000.0 * epoch + other + kCount - 1);
  }
  const VerifyReport report = verify(operation);
  INFO(report.text());
  CHECK(report.ok());
  return operation.explain();
}

int ranks() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

}  // namespace

TEST_CASE("epochs that take much longer than predicted correct a price for what is made later, on all ranks alike") {
  // More ranks than cores are not timed, and here all prices are of two ranks.
  if (ranks() != 2 || std::thread::hardware_concurrency() < 2) return;
  for (const bool corrects : {true, false}) {
    const Priced priced("1e-8", "1e15", corrects);
    const Context ctx(MPI_COMM_WORLD);
    const Machine before = machine_of(ctx);
    const std::string text = exchange(ctx, 32, {}, [](int) {});
    CHECK(text.find("shared:eager") != std::string::npos);
    CHECK(text.find("corrected") == std::string::npos);  // nothing changes what is made
    const std::string after = exchange(ctx, 2, {}, [](int) {});
    const Machine machine = machine_of(ctx);
    for (const std::string& other : ctx.allgather(machine.to_json())) CHECK(other == machine.to_json());
    CHECK((machine.cost("shared:eager") != before.cost("shared:eager")) == corrects);
    CHECK((after.find("shared:eager corrected") != std::string::npos) == corrects);
    CHECK(machine.cost("mpi") == before.cost("mpi"));
    if (!corrects) continue;
    // Once is enough: the next operation is predicted well enough not to correct it again.
    (void)exchange(ctx, 32, {}, [](int) {});
    (void)exchange(ctx, 2, {}, [](int) {});
    const std::string source = machine_of(ctx).source;
    INFO(source);
    CHECK(source.find("corrected", source.find("corrected") + 1) == std::string::npos);
  }
}

TEST_CASE("who waits late, starts late or tests is not taken for a slow path") {
  if (ranks() != 2 || std::thread::hardware_concurrency() < 2) return;
  const Priced priced("1e-3", "1e9", true);  // a millisecond: longer than any epoch takes, shorter than the pauses here
  const Context ctx(MPI_COMM_WORLD);
  const Machine before = machine_of(ctx);
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(4)); };
  for (const int late : {0, 1, 2}) {  // one of them, or both
    (void)exchange(ctx, 28, {}, [&](int) {
      if (late == 2 || ctx.rank() == late) pause();
    });
    (void)exchange(ctx, 28, {}, [&](int epoch) {
      if (epoch % 2 == ctx.rank()) pause();
    });
  }
  OperationOptions apart;
  apart.correct = false;
  (void)exchange(ctx, 32, apart, [](int) {});
  CHECK(machine_of(ctx).costs == before.costs);
}
