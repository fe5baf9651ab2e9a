// Operation: what Halo, Transfer and Broadcast have in common. Persistent: init, then start / test / wait, then free.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tasuki/context.hpp"
#include "tasuki/device.hpp"
#include "tasuki/plan.hpp"
#include "tasuki/predict.hpp"

namespace tasuki {

/// What may be forced; `auto` lets the planner and the settings choose.
struct OperationOptions {
  /// For the pieces that leave the rank: `auto`, or a path by name or family (docs/paths.md), or several with commas
  /// between them, of which the cheapest is taken for each piece.
  std::string path = "auto";
  /// `auto` (= TASUKI_ENGINE, else `inline`), `inline`, `thread`; for GPU memory `auto` or `stream`.
  std::string engine = "auto";
  /// GPU memory: thread blocks of 256 that an exchange may take, at most one a multiprocessor; 0: as many as it gains
  /// by. Few leave more of the GPU to a kernel beside which the exchange travels. Local: ranks may differ.
  int blocks = 0;
};

/// A handle to a prepared communication; copies refer to the same one. Made collectively by the derived classes, with
/// the same arguments on all ranks where they must agree; then every rank runs it as often as it likes. Any number of
/// operations may be active at once and they may be started in any order that differs between ranks; only what is put
/// into one stream runs in that stream's order.
class Operation {
 public:
  /// Begins epoch n = 1, 2, ... Local; never allocates. Throws if the operation is active, or was
  /// freed, or is an alternating halo whose fields were not swapped exactly once.
  void start();
  /// True if the epoch started last has ended on this rank. Local; drives all active operations of the context, does
  /// not block. Throws as `wait` does, so that a loop of tests ends: if a rank that it depends on has died, or once the
  /// deadline has passed, of which the time between two tests counts for a tenth at most.
  bool test();
  /// Returns when the epoch started last has ended on this rank; at once if none is active. Throws if a rank that it
  /// depends on has died, or after the context's deadline, naming rank, operation and command.
  void wait();
  /// For operations on GPU memory. The epoch becomes work of `stream`, in its order and without host synchronisation:
  /// `start` says that the shadows may be written and moves what leaves this rank, after the stream's earlier work;
  /// later work of the stream may change what was sent. After `wait` comes work that reads what has arrived. `run` is
  /// both, in one kernel, or in two where the stream carries messages, which are between them. Legal while the stream
  /// is being captured: each replay of the graph is an epoch more; fields with two copies are captured as they are
  /// shown, so capture an iteration for each. An exchange that fails (a peer has died, the deadline has passed) ends
  /// its kernels, and the next call of these or `synchronize` throws.
  void start(Stream stream);
  void wait(Stream stream);
  void run(Stream stream);

  /// Gives everything back. Local. Throws if active. The destructor of the last handle does the same without throwing.
  void free();
  bool active() const;

  /// The pieces of this rank, a table: piece, bytes, pattern, path, predicted µs, and why others were not taken. Local.
  /// What an epoch takes on all ranks together is for `predict`. With `measured`, a second table says what each command
  /// took in the last epochs, at most 64, beside what it was predicted to: the first such call begins to keep the times
  /// and shows those that there are already. Recording costs two looks at the clock a command. Throws if the operation
  /// is active, and on GPU memory unless TASUKI_TRACE was set when it was made: only then do its kernels take times.
  std::string explain(bool measured = false) const;
  const Plan& plan() const;     ///< This rank's plan.
  std::int64_t memory() const;  ///< Bytes that the plan and its lowered form occupy on this rank.
  const Context& context() const;

 protected:
  class State;
  Operation() = default;
  std::shared_ptr<State> state_;
};

/// The context's ranks as planning sees them, with the prices of all paths; those that are missing are measured first.
/// The same on every rank. Plans made from it off line (planning.hpp) are those that operations of the context run.
/// Collective.
Machine machine_of(const Context& context);

/// Collective over the operation's context: gathers the plans of all ranks and runs the verifier on them; every rank
/// gets the same report.
VerifyReport verify(const Operation& operation, int epochs = 0);

/// Collective over the operation's context: gathers the plans of all ranks and predicts what an epoch takes (see
/// predict.hpp); every rank gets the same.
Prediction predict(const Operation& operation);

}  // namespace tasuki
