// Looks up MPI's functions under their PMPI_ or plain names, and turns their error codes into exceptions.
#include "session/mpi.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "session/generation.hpp"
#include "session/progress.hpp"
#include "session/roster.hpp"
#include "session/settings.hpp"
#include "session/wait_clock.hpp"

namespace tasuki {
namespace mpi {

const Calls& calls_by(bool profiled) {
#define TASUKI_MPI_CALL(name) &PMPI_##name,
  static const Calls hidden{TASUKI_MPI_CALLS(TASUKI_MPI_CALL)};
#undef TASUKI_MPI_CALL
#define TASUKI_MPI_CALL(name) &MPI_##name,
  static const Calls shown{TASUKI_MPI_CALLS(TASUKI_MPI_CALL)};
#undef TASUKI_MPI_CALL
  return profiled ? hidden : shown;
}

const Calls& calls() {
  static const Calls& chosen = calls_by(calls_pmpi());
  return chosen;
}

namespace {

/// For waits while a context is made. Throws if a rank has died, or after `seconds`.
class Watch {
 public:
  Watch(MPI_Comm comm, Roster roster, double seconds, std::string doing)
      : comm_(comm), roster_(std::move(roster)), seconds_(seconds), doing_(std::move(doing)) {}

  bool late() { return clock_.read() > seconds_; }
  std::string dead() { return roster_.dead(); }
  [[noreturn]] void fail(const std::string& dead) const {
    int rank = 0;
    Comm_rank(comm_, &rank);
    if (!dead.empty()) throw Error(ErrorKind::rank_died, fmt::format("Context: rank {}: {}: {}", rank, doing_, dead));
    throw Error(ErrorKind::deadline,
                fmt::format("Context: rank {}: {}: the other ranks have not all come within {:g} s; all ranks of the "
                            "communicator must make the context, and TASUKI_DEADLINE allows more",
                            rank, doing_, seconds_));
  }

 private:
  MPI_Comm comm_;
  Roster roster_;
  double seconds_;
  std::string doing_;
  WaitClock clock_;
};

/// Makes a call that blocks in a thread of its own, if MPI and the system allow one, else here. `watch` may give the
/// call up; the thread then stays in it.
int call_aside(const std::function<int()>& call, Watch& watch) {
  constexpr std::chrono::milliseconds kLookInterval{2};
  int level = MPI_THREAD_SINGLE;
  Query_thread(&level);
  if (level < MPI_THREAD_MULTIPLE) return call();
  const auto code = std::make_shared<std::promise<int>>();
  std::future<int> ended = code->get_future();
  try {
    std::thread([call, code] { code->set_value(call()); }).detach();
  } catch (const std::system_error&) {
    return call();
  }
  while (ended.wait_for(kLookInterval) != std::future_status::ready) {
    const std::string dead = watch.dead();
    if (!dead.empty() || watch.late()) watch.fail(dead);
  }
  return ended.get();
}

}  // namespace

MPI_Comm duplicate(MPI_Comm comm, double seconds, const std::string& doing) {
  struct Copy {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  // After a timeout MPI may still write into it, so then it is never freed.
  auto copy = std::make_unique<Copy>();
  Watch watch(comm, Roster(comm), seconds, doing);
  Comm_idup(comm, &copy->comm, &copy->request);
  for (int done = 0; done == 0; sched_yield()) {
    const bool late = watch.late();  // before the test, so that what has come until now counts
    Test(&copy->request, &done, MPI_STATUS_IGNORE);
    if (done != 0) break;
    const std::string dead = watch.dead();
    if (!dead.empty() || late) {
      (void)copy.release();
      watch.fail(dead);
    }
    Progress::drive();  // other ranks may come only after what is active
  }
  Comm_set_errhandler(copy->comm, MPI_ERRORS_RETURN);
  return copy->comm;
}

MPI_Comm part(MPI_Comm comm, std::span<const int> ranks, int tag, double seconds) {
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group some = MPI_GROUP_NULL;
  const auto made = std::make_shared<MPI_Comm>(MPI_COMM_NULL);  // a call that was given up may still write it
  Comm_group(comm, &all);
  Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some);
  Group_free(&all);
  Watch watch(comm, Roster(comm, ranks), seconds, "making the communicator of a subset");
  check_mpi(
      call_aside([comm, some, tag, made] { return calls().Comm_create_group(comm, some, tag, made.get()); }, watch),
      "MPI_Comm_create_group");
  Group_free(&some);
  Comm_set_errhandler(*made, MPI_ERRORS_RETURN);
  return *made;
}

}  // namespace mpi

std::string mpi_error_text(int code) {
  char text[MPI_MAX_ERROR_STRING] = "unknown error";
  int length = 0;
  if (mpi::calls().Error_string(code, text, &length) != MPI_SUCCESS) return fmt::format("error code {}", code);
  return text;
}

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  int rank = 0;
  mpi::calls().Comm_rank(MPI_COMM_WORLD, &rank);
  throw Error(ErrorKind::system, fmt::format("rank {}: {} failed: {}", rank, call, mpi_error_text(code)));
}

bool mpi_running() {
  if (Generation::forked()) return false;  // a forked child must not call its parent's MPI
  int started = 0;
  int ended = 0;
  mpi::calls().Initialized(&started);
  mpi::calls().Finalized(&ended);
  return started != 0 && ended == 0;
}

}  // namespace tasuki
