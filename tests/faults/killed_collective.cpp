// A rank is killed in the middle of every collective in turn. The two others must leave it with an error that names the
// dead rank, and go on to the next collective with another rank. Run with the launcher's recovery on
// (killed_collective.py).
//
//   killed_collective TURNS ROUND
//
// Ranks 0 and 1 survive all; each rank after them takes part in one collective only, and sleeps until its turn. TURNS
// is a file that rank 0 makes a byte longer for each turn. ROUND shifts paths, engines and the victim's number.
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "each_collective.hpp"
#include "tasuki/tasuki.hpp"

namespace {

using namespace tasuki;
using namespace each_collective;

constexpr std::array kWays{
    std::pair{"auto", "inline"},
    std::pair{"auto", "thread"},
    std::pair{"mpi", "inline"},
    std::pair{"mpi", "thread"},
};
constexpr int kRanks = 3;

int turns_in(const char* file) {
  struct stat found {};
  return stat(file, &found) == 0 ? static_cast<int>(found.st_size) : 0;
}

void begin_turn(const char* file) {
  std::FILE* const turns = std::fopen(file, "a");
  if (turns == nullptr || std::fputc('.', turns) == EOF || std::fclose(turns) != 0) {
    fmt::print("{} cannot be written\n", file);
    std::exit(1);
  }
}

// Wherever the rank is then.
void kill_soon(int turn) {
  std::thread([turn] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + 7 * turn));
    kill(getpid(), SIGKILL);
  }).detach();
}

void one_turn(const Context& ctx, int turn, int round) {
  const auto& [path, engine] = kWays[static_cast<std::size_t>(turn + round) % kWays.size()];
  const std::string kind = kKinds[static_cast<std::size_t>(turn)];
  const int victim = 2 + turn;
  std::vector<int> ranks{0, 1};
  const int number = (turn + round) % kRanks;
  ranks.insert(ranks.begin() + number, victim);
  Context part = ctx.subset(ranks);
  part.set_deadline(10);
  CollectiveOptions options;
  options.path = path;
  options.engine = engine;
  std::vector<double> in(kCount * kRanks), out(in.size());
  auto begin = std::chrono::steady_clock::now();
  std::string error = "nothing was wrong";
  try {
    Operation operation = make(part, kind, turn % kRanks, in.data(), out.data(), options);
    if (!verify(operation).ok()) throw Error("the plan is wrong");
    if (ctx.rank() == victim) kill_soon(turn);
    for (int epoch = 0;; ++epoch) {
      for (std::size_t i = 0; i < in.size(); i += 97) in[i] = epoch;
      begin = std::chrono::steady_clock::now();
      operation.start();
      operation.wait();
    }
  } catch (const Error& caught) {
    error = caught.what();
  }
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
  fmt::print("turn {} {} {} {} victim {} survivor {} after {:.2f} s: {}\n", turn, kind, path, engine, number,
             ctx.rank(), waited.count(), error);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Context ctx(argc, argv);
  const char* const file = argv[1];
  const int round = std::atoi(argv[2]);
  const int turns = static_cast<int>(kKinds.size());
  if (ctx.size() != 2 + turns) {
    fmt::print("start it on {} ranks\n", 2 + turns);
    return 1;
  }
  for (int turn = 0; turn < turns; ++turn) {
    if (ctx.rank() > 1 && ctx.rank() != 2 + turn) continue;
    if (ctx.rank() == 0) begin_turn(file);
    while (ctx.rank() > 1 && turns_in(file) <= turn) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    one_turn(ctx, turn, round);
  }
  _exit(0);
}
