// Context: the user's handle to a runtime, and the start of MPI.
#include "tasuki/context.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "session/collective.hpp"
#include "session/deferred_release.hpp"
#include "session/generation.hpp"
#include "session/mpi.hpp"
#include "session/runtime.hpp"
#include "tasuki/device.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

void refuse_in_child() {
  if (Generation::forked())
    throw Error(
        fmt::format("Context: this process (pid {}) was forked from one that had made a context, and cannot make one; "
                    "start it by other means than fork, as 'spawn' of Python's multiprocessing does",
                    getpid()));
}

/// Starts MPI if it has not been started; true if it was started here.
bool start_mpi(int& argc, char**& argv) {
  refuse_in_child();
  int ended = 0;
  mpi::Finalized(&ended);
  if (ended != 0)
    throw Error(
        "Context: MPI has been finalised and cannot be started again; make contexts before MPI_Finalize, and "
        "keep one handle of the first context until the last is done");
  if (mpi_running()) return false;
  int level = 0;
  check_mpi(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level), "MPI_Init_thread");
  return true;
}

MPI_Comm checked(MPI_Comm comm) {
  refuse_in_child();
  if (!mpi_running())
    throw Error(
        "Context: MPI is not running (not started yet, or finalised); call MPI_Init_thread first, or use "
        "Context(argc, argv)");
  if (comm == MPI_COMM_NULL) throw Error("Context: argument 'comm' is MPI_COMM_NULL; pass a communicator");
  int inter = 0;
  mpi::Comm_test_inter(comm, &inter);
  if (inter != 0)
    throw Error("Context: argument 'comm' is an intercommunicator; merge it with MPI_Intercomm_merge first");
  return comm;
}

std::shared_ptr<Runtime> made_over(MPI_Comm comm, bool ours) {
  collect_released();
  std::shared_ptr<Runtime> made = owned(std::make_unique<Runtime>(communicator_over(comm), ours));
  collect_released();  // all ranks have come here, so all have released what they released before
  return made;
}

}  // namespace

Context::Context(int& argc, char**& argv) {
  const bool ours = start_mpi(argc, argv);
  runtime_ = made_over(MPI_COMM_WORLD, ours);
}

Context::Context(MPI_Comm comm) : runtime_(made_over(checked(comm), false)) {}

int Context::rank() const {
  return runtime_->rank();
}
int Context::size() const {
  return runtime_->size();
}
MPI_Comm Context::comm() const {
  return runtime_->comm();
}
double Context::deadline() const {
  return runtime_->deadline;
}

void Context::set_deadline(double seconds) {
  if (!(seconds > 0))
    throw Error(
        fmt::format("Context: rank {}: set_deadline: argument 'seconds' is {}; it must be above 0", rank(), seconds));
  runtime_->deadline = seconds;
}

void Context::barrier() const {
  runtime_->barrier();
}

std::vector<std::string> Context::allgather(const std::string& bytes) const {
  return gather_texts(*runtime_, bytes, "allgather");
}

void Context::agree(const std::string& doing, const std::vector<std::pair<std::string, std::string>>& names_and_values,
                    const std::string& complaint) const {
  Agreement agreement(*runtime_, doing);
  for (const auto& [name, value] : names_and_values) agreement.same(name, value);
  agreement.complain(complaint).check();
}

void Context::agree(const std::string& doing, const std::vector<std::pair<std::string, std::string>>& names_and_values,
                    const std::string& complaint, std::span<const int> ranks) const {
  std::vector<int> peers(ranks.begin(), ranks.end());
  std::ranges::sort(peers);
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  for (const int peer : peers)
    if (peer < 0 || peer >= size())
      throw Error(fmt::format("{}: rank {}: the ranks that take part include {}, but the context has ranks 0 to {}",
                              doing, rank(), peer, size() - 1));
  if (std::erase(peers, rank()) == 0) peers.clear();
  Agreement agreement(*runtime_, doing, peers);
  for (const auto& [name, value] : names_and_values) agreement.same(name, value);
  agreement.complain(complaint).check();
}

void Context::give_up(const std::string& why) const {
  runtime_->give_up(why);
}

bool uses_gpu(const Context& context) {
  return runtime_of(context).gpus != nullptr;
}

std::string Context::describe() const {
  const Topology& topology = runtime_->topology();
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  mpi::Get_library_version(version, &length);
  const std::string first_line(version, std::strcspn(version, "\n,"));
  const auto count = [](int n, const char* what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); };
  std::string text =
      fmt::format("{}, {}, {}; {}\n", count(size(), "rank"), count(topology.hosts, "host"),
                  count(topology.islands, "island"), topology.threads ? "threads of one process" : first_line);
  for (int r = 0; r < size(); ++r) {
    const Process& process = topology.processes[r];
    text += fmt::format("rank {}: host {} ({}), island {}, pid {}\n", r, process.host, process.name, process.island,
                        process.pid);
    const std::string why = topology.same_host(r, rank()) ? runtime_->memory().why_not(r) : "";
    if (!why.empty()) text += fmt::format("  rank {} cannot map its memory: {}\n", rank(), why);
  }
  return text;
}

}  // namespace tasuki
