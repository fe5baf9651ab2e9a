// Operation: what Halo, Transfer and Broadcast have in common. Persistent: init, then start / test / wait, then free.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tasuki/box.hpp"
#include "tasuki/context.hpp"
#include "tasuki/device.hpp"
#include "tasuki/kernel/version.hpp"
#include "tasuki/plan.hpp"
#include "tasuki/predict.hpp"

namespace tasuki {

/// What may be forced; `auto` lets the planner and the settings choose.
struct OperationOptions {
  /// For the pieces that leave the rank: `auto`, or a path by name or family (docs/paths.md), or several with commas
  /// between them, of which the planner chooses for each piece.
  std::string path = "auto";
  /// `auto` (= TASUKI_ENGINE, else `inline`), `inline`, `thread`; for GPU memory `auto` or `stream`.
  std::string engine = "auto";
  /// GPU memory: number of thread blocks (of 256 threads) that an exchange may take, at most one an SM; 0: as many as
  /// make it faster. Fewer blocks leave more SMs to a kernel that runs beside the exchange. Local: ranks may differ.
  int blocks = 0;
  /// Tries so many candidates while the operation is made, those that are predicted to be the best, and keeps the one
  /// that was fastest: paths, and of a collective its algorithms. 0 or 1: predictions decide. They run for some
  /// milliseconds each, on memory of their own that is as large as the user's and of the same kind; the user's stays as
  /// it is. `explain` tells what was tried and what it took. The same on all ranks.
  int tune = 0;
  /// The first epochs are timed on hosts, where it costs nothing that lasts. If they all take more than twice what was
  /// predicted, on all ranks, the price of the path is corrected for what is made later in this context, and rank 0
  /// says so (docs/paths.md). TASUKI_CORRECT=0 turns this off for all operations.
  bool correct = true;
  /// What plans, errors, traces and the report call the operation, before what it is: `pressure: halo p`. Empty: only
  /// what it is. The same on all ranks.
  std::string name = {};
};

namespace device {
template <bool kReduces>
struct BasicHandle;
using Handle = BasicHandle<false>;
using ReducingHandle = BasicHandle<true>;
}  // namespace device

/// The blocks of a kernel that run epochs of an operation together.
struct KernelGroup {
  int blocks = 1;
  int threads = 256;    ///< of a block on a GPU: a multiple of 32, at most 1024
  int cpu_threads = 1;  ///< of a block on a processor, at most 32
  /// Of a halo, by block: boxes of this rank's cells (global indices) that the block computes; all must be disjoint.
  /// With them the group is barrier-free. Each sends its own cells when its own threads have written them. It
  /// takes the cells of the shadow that lie within the halo's width of its own: after `wait` it may read these. What
  /// another block has copied within the rank may be read once that block has ended the step.
  ///
  /// Fields have two copies, and the halo is alternating. The kernel lets two blocks wait for each other, as `Steps`
  /// does, if cells of theirs lie within twice the halo's width. Cells that are sent and belong to no block must not
  /// change while the kernel runs.
  ///
  /// Where the group cannot do without barriers, it has them as always, on all ranks: `Operation::device_group` says
  /// why.
  std::vector<std::vector<Box>> cells = {};
};

/// A handle to a prepared communication; a second handle refers to the same one. The derived classes make it, with the
/// same arguments on all ranks where they must agree; then every rank runs it as often as it likes. Any number of
/// operations may be active at once, and ranks may start them in different orders. On GPUs there are limits:
/// operations that are put into one stream run in that stream's order, which must be the same on all ranks, and the
/// host can start as many at once as CUDA runs streams side by side (docs/gpus.md).
class Operation {
 public:
  /// Begins the next epoch: 1, 2, ... Local; never allocates. Throws if the operation is active, or was freed, or is an
  /// alternating halo whose fields were not swapped exactly once, or if a kernel on threads has a handle of it. On GPU
  /// memory also if another operation of this process has failed there and nobody has been told, or if too many epochs
  /// that the host has started are active.
  void start();
  /// Does what can be done now, for all active operations of the context. True if the epoch started last has ended on
  /// this rank. Local; does not block. Throws as `wait` does, so that a loop of tests ends: if a rank that it depends
  /// on has died, or once the deadline has passed, of which the time between two tests counts for a tenth at most.
  bool test();
  /// Returns when the epoch started last has ended on this rank; at once if none is active. Throws if a rank that it
  /// depends on is known to have died (docs/concepts.md), or at the context's deadline, naming rank, operation and
  /// command.
  void wait();
  /// For operations on GPU memory. The epoch becomes work of `stream`, in its order and without host synchronisation.
  /// `start` runs after the stream's earlier work: it permits the peers to write, and sends what leaves this rank;
  /// later work of the stream may change what was sent. `wait` receives: later work of the stream may read what has
  /// arrived. `run` is both in one kernel, or in two with the messages of path `nccl` between them.
  ///
  /// Legal while the stream is being captured: each launch of the graph is a further epoch. Of fields with two copies
  /// the graph always uses the copy that was current at the capture, so capture an even number of iterations. An
  /// exchange that fails (a peer has died, the deadline has passed) ends its kernels, and work that follows in the
  /// stream reads half a result. The next of these calls, or `synchronize`, throws; docs/gpus.md says who hears of
  /// what.
  void start(Stream stream);
  void wait(Stream stream);
  void run(Stream stream);

  /// What a kernel needs to run epochs by itself, with the same plan and the same bytes as the host (tasuki/kernel.hpp,
  /// docs/kernels.md): a small plain value that is passed to kernels launched by `launch_resident`. The host and
  /// kernels may take turns, epoch by epoch; an epoch that a kernel started ends in that kernel. Fields with two copies
  /// are used as they are shown now, and as the kernel swaps them; afterwards the host swaps its fields as often as the
  /// kernel did. An operation has handles for one group at a time: asking for another group invalidates the older
  /// handles, and waits for the GPU.
  ///
  /// Waits of a kernel end after nine tenths of the context's deadline as it is now. A call that fails in a kernel is
  /// thrown by the host's next call of the operation, by `Resident::wait` and by `synchronize`.
  ///
  /// Local. A call with `cells` that makes a new handle is collective over the context: all ranks give cells then.
  /// Throws if the operation is active, was freed, is part of a graph or is on host memory while the context uses GPUs;
  /// if a kernel on threads has a handle of it; if a piece travels by a path that only the host can start, naming it
  /// (messages of MPI are carried by the process's progress thread, which needs MPI_THREAD_MULTIPLE); if the group
  /// cannot be; and if the operation combines elements, for which there is
  /// `device_reducing`: its kernels contain code for all types and operators.
  /// `version` stays as it is: the default is that of the headers that the caller is compiled with. Throws if the
  /// library's is another.
  device::Handle device(const KernelGroup& group = {}, std::uint32_t version = device::kKernelVersion);
  device::ReducingHandle device_reducing(const KernelGroup& group = {}, std::uint32_t version = device::kKernelVersion);
  /// How the group of the newest handle runs the operation: `8 blocks of 256 threads, barrier-free`, or `..., with
  /// group barriers: ` and why. Empty before the first handle. Local.
  std::string device_group() const;

  /// Frees everything. Local. Throws if active. Waits for kernels that have a `device` handle of it to end, and on GPU
  /// memory for all kernels; if an exchange has failed there and nobody has been told, it throws that once all is free.
  /// The destructor of the last handle does the same without throwing: it writes on stderr.
  void free();
  bool active() const;

  /// A table of the pieces of this rank: piece, bytes, pattern, path, predicted µs, and why other paths were not taken.
  /// Local. `predict` says what an epoch takes on all ranks together.
  ///
  /// With `measured`, a second table has the time of each command, the median of the last epochs (at most 64), beside
  /// its predicted time. The first such call begins to record, so it shows only times that a trace has recorded before.
  /// Recording costs two reads of the clock a command. Throws if the operation is active, and on GPU memory unless
  /// TASUKI_TRACE was set when the operation was made, because only then its kernels record times.
  std::string explain(bool measured = false) const;
  const Plan& plan() const;     ///< This rank's plan.
  std::int64_t memory() const;  ///< Bytes that the plan and its lowered form occupy on this rank.
  Memory where() const;         ///< The memory that this rank's part is on; `host` on a rank without a part. Local.
  const Context& context() const;

 protected:
  class State;
  class Trial;
  class Kernels;
  Operation() = default;
  std::shared_ptr<State> state_;
};

/// The context's ranks as planning sees them, with the prices of all paths; paths without prices are measured first.
/// The same on every rank. Plans made from it off line (planning.hpp) equal those that operations of the context run.
/// Collective.
Machine machine_of(const Context& context);

/// Collective over the operation's context: gathers the plans of all ranks and runs the verifier on them; every rank
/// gets the same report.
VerifyReport verify(const Operation& operation, int epochs = 0);

/// Collective over the operation's context: gathers the plans of all ranks and predicts what an epoch takes (see
/// predict.hpp); every rank gets the same.
Prediction predict(const Operation& operation);

/// Collective over the operation's context: gathers the plans of all ranks and says which engine pays beside a
/// computation of so many seconds (see predict.hpp), given the cores that the ranks may use; every rank gets the same.
/// Throws `Error` on every rank for a time that is negative, not finite, or not the same on all ranks.
Advice advise(const Operation& operation, double computation);

}  // namespace tasuki
