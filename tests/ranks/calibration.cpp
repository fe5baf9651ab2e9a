// Measuring the machine when a rank cannot do its part: all ranks hear of it at once, and none waits for it.
#include <doctest/doctest.h>
#include <mpi.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "error_of.hpp"
#include "session/runtime.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

/// While one exists, this process gets no more memory that can be shared.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    before_signal_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none{0, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &none);
  }
  ~NoMoreFiles() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, before_signal_);
  }
  NoMoreFiles(const NoMoreFiles&) = delete;
  NoMoreFiles& operator=(const NoMoreFiles&) = delete;

 private:
  rlimit before_{};
  void (*before_signal_)(int) = nullptr;
};

/// How often this thread has read from a file, with what this function read when it was called before.
long reads() {
  std::ifstream in("/proc/thread-self/io");
  std::string key;
  long count = -1;
  while (in >> key >> count)
    if (key == "syscr:") return count;
  return -1;
}

}  // namespace

TEST_CASE("a rank that gets no memory to measure in is named on all ranks, and they can measure later") {
  const char* set = std::getenv("TASUKI_PROFILE");
  const std::string before = set == nullptr ? "" : set;
  int world = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &world);
  long long number =
      world == 0 ? static_cast<long long>(std::chrono::steady_clock::now().time_since_epoch().count()) : 0;
  MPI_Bcast(&number, 1, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
  const auto file = std::filesystem::temp_directory_path() / ("tasuki-unmeasured-" + std::to_string(number) + ".json");
  setenv("TASUKI_PROFILE", file.c_str(), 1);
  {
    const Context ctx(MPI_COMM_WORLD);
    const int poor = ctx.size() > 1 ? 1 : 0;  // what paths are tried out with
    const auto begin = std::chrono::steady_clock::now();
    std::string text;
    if (ctx.rank() == poor) {
      const NoMoreFiles limit;
      text = error_of([&] { machine_of(ctx); });
    } else {
      text = error_of([&] { machine_of(ctx); });
    }
    INFO(text);
    CHECK(text.find("measuring the machine: rank " + std::to_string(poor) + ": SharedMemory: rank ") == 0);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(15));
    // Measuring takes long where more ranks share the cores.
    if (ctx.size() <= 2) CHECK(error_of([&] { machine_of(ctx); }) == "no error");
  }
  setenv("TASUKI_PROFILE", before.c_str(), 1);
  if (world == 0) std::filesystem::remove(file);
}

TEST_CASE("a profile says when, where and beside what it was measured, and how certain it is") {
  int ranks = 0, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (ranks != 2) return;
  const char* set = std::getenv("TASUKI_PROFILE");
  const std::string before = set == nullptr ? "" : set;
  char name[] = "/tmp/tasuki-told-XXXXXX";
  if (rank == 0) REQUIRE(mkdtemp(name) != nullptr);
  MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
  const std::filesystem::path file = std::filesystem::path(name) / "profile.json";
  setenv("TASUKI_PROFILE", file.c_str(), 1);
  {
    const Context ctx(MPI_COMM_WORLD);
    const Machine machine = machine_of(ctx);
    INFO(machine.source);
    CHECK(machine.source.find("measured 20") == 0);
    CHECK(machine.source.find(" UTC on ") != std::string::npos);
    CHECK(machine.source.find("within ") != std::string::npos);
    for (const std::string& other : ctx.allgather(machine.to_json())) CHECK(other == machine.to_json());
    std::vector<double> in(4), out(8);
    const Allgather allgather(ctx, in.data(), out.data(), 4, DType::f64);
    const std::string text = allgather.explain();
    CHECK(text.find("prices: " + machine.source + "\n") != std::string::npos);
  }
  {
    const Context ctx(MPI_COMM_WORLD);  // which reads it
    const long before_asking = reads();
    const long before_making = reads();
    REQUIRE(before_making > before_asking);
    CHECK(machine_of(ctx).source.find("measured 20") == 0);
    // Where nothing is measured nobody looks at the machine's load, which takes longer than making an operation.
    CHECK(reads() - before_making == before_making - before_asking);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    std::ifstream in(file);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    for (const char* key : {"\"date\"", "\"host\"", "\"tasuki\"", "\"load\"", "\"others\"", "\"switches\"",
                            "\"seconds\"", "\"spread\"", "\"shared:put\""})
      CHECK(text.find(key) != std::string::npos);
    std::filesystem::remove_all(name);
  }
  before.empty() ? unsetenv("TASUKI_PROFILE") : setenv("TASUKI_PROFILE", before.c_str(), 1);
}

TEST_CASE("subsets measure what their context has no price for, once for the same ranks") {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) return;  // it takes seconds
  const char* set = std::getenv("TASUKI_PROFILE");
  const std::string before = set == nullptr ? "" : set;
  setenv("TASUKI_PROFILE", "no-profile-of-subsets.json", 1);
  const Context ctx(MPI_COMM_WORLD);
  const std::vector<int> swapped = {1, 0};
  const auto measured = [&] {
    const Context part = ctx.subset(swapped);
    return std::pair(machine_of(part).costs, runtime_of(part).provenance);
  };
  const auto first = measured();
  CHECK(!first.second.empty());
  CHECK(measured() == first);
  // Other ranks, or the same in another order, may have other partners.
  CHECK(runtime_of(ctx).provenance.empty());
  CHECK(runtime_of(ctx.subset(std::vector<int>{0, 1})).provenance.empty());
  CHECK(!std::filesystem::exists("no-profile-of-subsets.json"));
  before.empty() ? unsetenv("TASUKI_PROFILE") : setenv("TASUKI_PROFILE", before.c_str(), 1);
}
