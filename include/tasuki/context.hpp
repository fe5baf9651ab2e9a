// Context: the ranks that work together, where they run, and what they have agreed on.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tasuki {

class Runtime;
struct ContextAccess;

/// What can be passed on as its bytes.
template <class T>
concept Plain = std::is_trivially_copyable_v<T> && !std::is_array_v<T> && !std::is_pointer_v<T>;

/// A group of ranks over an MPI communicator, with what Tasuki knows of it: hosts, islands, shared memory, the machine
/// profile. A cheap handle; copies refer to the same group. Every grid, field and operation keeps its context alive.
///
/// Making a context is collective over the communicator; it throws `Error` if the other ranks do not come within
/// `TASUKI_DEADLINE` seconds. Making operations and fields is collective over the context, in the same order on every
/// rank; starting, testing, waiting and destroying them is local.
/// One thread at a time may use the objects of one context.
///
/// Settings are read from the environment when the context is made (docs/environment.md): `TASUKI_ISLAND`,
/// `TASUKI_PATH`, `TASUKI_ENGINE`, `TASUKI_DEADLINE`, `TASUKI_PROFILE`, `TASUKI_TRACE`, `TASUKI_AGREE`, `TASUKI_CHECK`,
/// `TASUKI_PMPI`.
/// They must be the same on all ranks.
class Context {
 public:
  /// Over `MPI_COMM_WORLD`. Starts MPI (`MPI_THREAD_MULTIPLE`) if nobody has, and then ends it with the last handle.
  Context(int& argc, char**& argv);
  /// Over a duplicate of `comm`, which the caller may free afterwards. MPI must have been started.
  explicit Context(MPI_Comm comm);

  int rank() const;
  int size() const;
  /// Tasuki's duplicate; for the user's own collectives, not for point-to-point messages. MPI_COMM_NULL in a context of
  /// `run_threads`.
  MPI_Comm comm() const;
  bool is_root() const { return rank() == 0; }

  /// Seconds that a wait may take before it fails; 30 unless `TASUKI_DEADLINE` or this says otherwise. Local.
  double deadline() const;
  void set_deadline(double seconds);

  void barrier() const;  ///< Collective. Fails like a wait if a rank has died.

  /// What every rank gives, in the order of ranks: for norms and decisions, also where there is no MPI. Collective.
  /// Fails like a wait if a rank has died.
  std::vector<std::string> allgather(const std::string& bytes) const;
  template <Plain T>
  std::vector<T> allgather(const T& value) const {
    std::vector<T> all;
    for (const std::string& bytes : allgather(std::string(reinterpret_cast<const char*>(&value), sizeof value))) {
      T one;
      std::memcpy(&one, bytes.data(), sizeof one);
      all.push_back(one);
    }
    return all;
  }

  /// Ranks, hosts and islands, a line each. Local.
  std::string describe() const;

  /// Throws on every rank if one has a `complaint` (empty: none), naming that rank, or if the ranks give different
  /// names or values, naming the first that differs: so that no rank goes on alone with what it is about to do, for
  /// which `doing` stands in the text. Collective; fails like a wait if a rank has died.
  void agree(const std::string& doing, const std::vector<std::pair<std::string, std::string>>& names_and_values,
             const std::string& complaint = {}) const;

  /// Tells the other ranks that this one will not go on: their waits end with an error that says `why`, and this rank's
  /// context ends without waiting for them. Only the first reason counts. Local.
  void give_up(const std::string& why) const;

  /// The same for all copies of a context, and for no other context that exists; what `WaitHooks` are given. Local.
  const void* id() const { return runtime_.get(); }

 private:
  friend class Operation;
  friend struct ContextAccess;
  explicit Context(std::shared_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {}
  Runtime& runtime() const { return *runtime_; }

  std::shared_ptr<Runtime> runtime_;
};

}  // namespace tasuki
