// Channel: a transport that a path lends to an engine for one command it cannot carry out with loads and stores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tasuki/device.hpp"
#include "tasuki/plan.hpp"

namespace tasuki {

class Runtime;

struct Located;

/// What a path needs to know to open a channel for a command. Addresses are per ring copy of the buffer.
struct ChannelRequest {
  Runtime& runtime;
  const Plan& plan;
  const Command& command;
  const std::vector<Located>& where;  ///< of all buffers of the plan
  std::int64_t rounds;                ///< of the command's loop; 1 outside loops
  int operation;                      ///< number of the operation, equal on all ranks
  std::vector<std::byte*> local;      ///< this rank's side
  std::vector<std::uint64_t> remote;  ///< the peer's side, in the peer's address space; empty for send and recv
  bool threaded;                      ///< another thread than the user's will drive it
};

class Channel {
 public:
  virtual ~Channel() = default;
  /// Starts round `round` of the command on copy `copy` of its buffers.
  virtual void start(std::int64_t round, int copy);
  /// True when what was started has ended. Never blocks.
  virtual bool test();
  /// For channels that carry GPU memory: the command becomes work of `stream`. Those of one epoch and path come between
  /// `begin_group` and `end_group` of the first.
  virtual void enqueue(Stream stream);
  virtual void begin_group() {}
  virtual void end_group() {}
  /// For channels of GPU memory that are no work of a stream: where the GPU sees that a message has ended, the e-th
  /// time by e * kSignal (gpu_program.hpp). nullptr: the order of the stream says so.
  virtual const std::uint64_t* ended() const { return nullptr; }
  /// And where it says, by the same number, that its memory is ready: packed, or no longer needed by an earlier epoch.
  virtual std::uint64_t* asked() const { return nullptr; }
  /// What went wrong since, if something did: a whole message with rank, operation and call.
  virtual std::string failure() const { return {}; }
  /// Withdraws what was started, after a failure.
  virtual void cancel() {}
};

}  // namespace tasuki
