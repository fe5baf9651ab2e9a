// Main of the tests that run on several ranks (tests/ranks/*.cpp). Every rank keeps its output to itself until the end;
// then rank 0 prints its own and that of the ranks that failed. A rank that leaves a test early, by an exception or a
// failed REQUIRE, would leave the others waiting for it: it prints and aborts the job.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <mpi.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "rank_test.hpp"

/// Why this program cannot run here, or empty; set by programs that need more than ranks.
std::string (*why_skip)(int ranks) = nullptr;

namespace {

int world_rank = 0;
std::ostringstream output;

// One write per block, so that blocks of several ranks do not mix.
void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

std::string titled(int rank, const std::string& text) {
  return "==== rank " + std::to_string(rank) + " ====\n" + text + "\n";
}

class RankReporter : public doctest::ConsoleReporter {
 public:
  using ConsoleReporter::ConsoleReporter;

  void test_case_start(const doctest::TestCaseData& data) override {
    ConsoleReporter::test_case_start(data);
    name_ = data.m_name;
  }

  void log_assert(const doctest::AssertData& data) override {
    ConsoleReporter::log_assert(data);
    if (!data.m_failed) return;
    failed_ = true;
    if ((data.m_at & doctest::assertType::is_require) != 0) left_early_ = true;
  }

  void test_case_exception(const doctest::TestCaseException& exception) override {
    ConsoleReporter::test_case_exception(exception);
    if (!exception.is_crash) {
      left_early_ = true;
    } else if (std::string(exception.error_string.c_str()).find("SIGTERM") != std::string::npos && !failed_) {
      // Stopped from outside: after a time-out, or because another rank aborted. Where it was is all there is to say.
      print("==== rank " + std::to_string(world_rank) + " was stopped in test case \"" + name_ + "\"\n");
    } else {
      print(titled(world_rank, output.str()));
    }
    crashed_ = exception.is_crash;
  }

  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    ConsoleReporter::test_case_end(stats);
    if (left_early_ && !crashed_) {
      print(titled(world_rank, output.str()));
      // A launcher drops what it has not passed on when a job aborts.
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
  }

  void test_run_end(const doctest::TestRunStats& stats) override {
    ConsoleReporter::test_run_end(stats);
    // A filter with a misspelt name must not pass.
    if (stats.numTestCasesPassingFilters == 0) s << "no test case has a name that matches\n";
    no_tests = stats.numTestCasesPassingFilters == 0;
  }

  static inline bool no_tests = false;

 private:
  std::string name_;
  std::atomic<bool> failed_ = false;
  std::atomic<bool> left_early_ = false;
  bool crashed_ = false;
};

DOCTEST_REGISTER_REPORTER("ranks", 0, RankReporter);

// Brings the output of failed ranks to rank 0, which prints it after its own. Returns whether any rank failed.
bool report(bool failed) {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int mine = failed ? 1 : 0;
  std::vector<int> all(static_cast<std::size_t>(size));
  MPI_Allgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD);

  const std::string text = output.str();
  if (world_rank == 0) print(all[0] != 0 ? titled(0, text) : text);
  bool any = all[0] != 0;
  for (int rank = 1; rank < size; ++rank) {
    if (all[static_cast<std::size_t>(rank)] == 0) continue;
    any = true;
    if (world_rank == rank) MPI_Send(text.data(), static_cast<int>(text.size()), MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    if (world_rank == 0) {
      MPI_Status status;
      int length = 0;
      MPI_Probe(rank, 0, MPI_COMM_WORLD, &status);
      MPI_Get_count(&status, MPI_CHAR, &length);
      std::string received(static_cast<std::size_t>(length), ' ');
      MPI_Recv(received.data(), length, MPI_CHAR, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      print(titled(rank, received));
    }
  }
  return any;
}

}  // namespace

void on_ranks(void (*body)(const tasuki::Context&)) {
  const tasuki::Context context(MPI_COMM_WORLD);
  body(context);
}

int main(int argc, char** argv) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  if (provided != MPI_THREAD_MULTIPLE) {
    std::fprintf(stderr, "this MPI does not provide MPI_THREAD_MULTIPLE, which the tests need\n");
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  }

  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const std::string reason = why_skip != nullptr ? why_skip(ranks) : "";
  if (!reason.empty()) {
    if (world_rank == 0) print("SKIPPED: " + reason + "\n");
    MPI_Finalize();
    return EXIT_SUCCESS;
  }

  doctest::Context context;
  context.setCout(&output);
  context.addFilter("reporters", "ranks");
  context.setOption("no-intro", true);
  context.setOption("no-colors", true);
  context.applyCommandLine(argc, argv);
  const bool failed = context.run() != 0 || (RankReporter::no_tests && !context.shouldExit());
  const bool any_failed = report(failed);
#ifdef __SANITIZE_THREAD__
  // MPICH's ranks do not come out of MPI_Finalize under the thread sanitizer, which ends the program at the first race.
  MPI_Barrier(MPI_COMM_WORLD);
  std::_Exit(any_failed ? EXIT_FAILURE : EXIT_SUCCESS);
#endif
  MPI_Finalize();
  return any_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
