// Context: the ranks that work together, where they run, and what they have agreed on.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
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
/// profile. A handle: cheap to copy, and all copies of the handle refer to the same group. Every grid, field and
/// operation keeps its context alive.
///
/// Making a context is collective over the communicator. It throws `Error` if the other ranks do not come within
/// `TASUKI_DEADLINE` seconds. Making grids, fields and operations is collective over the context, in the same order on
/// every rank (a `Transfer` involves its two ranks only). Starting, testing, waiting for and destroying them is local.
/// So is the end of the last handle, grid, field and operation of a context: ranks may end theirs in any order. What
/// the ranks share stays until all of them have, and is freed when this rank makes or ends a context after that, or MPI
/// ends. One thread at a time may use the objects of one context. A wait drives the active operations of all contexts
/// that its thread was the last to use, so ranks may wait for operations of several contexts in any order.
///
/// Settings are read from the environment when the context is made (docs/environment.md): `TASUKI_ISLAND`,
/// `TASUKI_PATH`, `TASUKI_ENGINE`, `TASUKI_DEADLINE`, `TASUKI_PROFILE`, `TASUKI_TRACE`, `TASUKI_AGREE`,
/// `TASUKI_CHECK`, `TASUKI_PMPI` and `TASUKI_PASSES`. All but the last must be the same on all ranks.
class Context {
 public:
  /// Over `MPI_COMM_WORLD`. Starts MPI (`MPI_THREAD_MULTIPLE`) if nobody has, and then ends it with the last handle of
  /// the process's last context, which waits for the other ranks to do the same, as long as they live.
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

  /// Returns what every rank gave, in the order of ranks. Works without MPI too; use it for norms and decisions.
  /// Collective. Fails like a wait if a rank has died.
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

  /// Compares arguments over the ranks, so that no rank goes on alone. Throws on every rank if one has a `complaint`
  /// (empty: none), naming that rank, or if the ranks give different names or values, naming the first that differs.
  /// `doing` says in the message what the ranks were about to do. Collective; fails like a wait if a rank has died.
  void agree(const std::string& doing, const std::vector<std::pair<std::string, std::string>>& names_and_values,
             const std::string& complaint = {}) const;

  /// The same among `ranks` only, who all pass the same list, in any order: nobody else takes part. A rank that is not
  /// among them returns at once, or throws its complaint, of which nobody hears. Throws `Error` if a rank of the list
  /// does not exist. Lists that differ are an error on all who are named, after which the context cannot be used again.
  void agree(const std::string& doing, const std::vector<std::pair<std::string, std::string>>& names_and_values,
             const std::string& complaint, std::span<const int> ranks) const;

  /// A context of these ranks alone, numbered in this order (the first becomes rank 0), over a communicator of their
  /// own: what is done with it involves them and nobody else. It has this context's settings, deadline, islands, prices
  /// and GPU (each rank calls `use_gpu` there too), and memory of its own: what `shared_alloc` and fields of this
  /// context have made counts as the user's memory there.
  ///
  /// Collective over the ranks named, who pass the same list; the others need not call it, and may sleep. Two ranks
  /// make what they share in the same order. Subsets may overlap, have one rank or all, and have subsets. A subset
  /// lives by itself, also when this context is gone.
  ///
  /// Throws `Error` on this rank at once if the list is empty, names a rank twice, one that does not exist, or not this
  /// one. Throws on all who are named if the lists differ; if they name different ranks, or one does not come before
  /// this context's deadline, this context cannot be used again.
  Context subset(std::span<const int> ranks) const;
  Context subset(std::initializer_list<int> ranks) const { return subset(std::span(ranks.begin(), ranks.size())); }

  /// Tells the other ranks of the host that this one will not go on: their waits end with an error that says `why`.
  /// This rank's context, and the subsets made from it, then end without waiting for the others. Only the first reason
  /// counts. Local.
  void give_up(const std::string& why) const;

  /// Identifies the context: equal for all handles of it, different for every other living context. `WaitHooks` get it.
  /// Local.
  const void* id() const { return runtime_.get(); }

 private:
  friend class Operation;
  friend struct ContextAccess;
  explicit Context(std::shared_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {}
  Runtime& runtime() const { return *runtime_; }

  std::shared_ptr<Runtime> runtime_;
};

}  // namespace tasuki
