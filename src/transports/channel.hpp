// Channels: how an engine runs a command that loads and stores cannot do. Three kinds, for the three who may drive it:
// this rank's processor, a stream of its GPU, or a thread beside a running kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tasuki/device.hpp"

namespace tasuki {

/// What a complete signal adds to a counter in GPU memory: one block's share is 1, the first block's is the rest. Words
/// that a kernel and a thread tell each other by count likewise.
constexpr std::uint64_t kSignal = 1 << 16;

/// Driven by a processor's thread: it starts a round, then looks until the round has ended.
class HostChannel {
 public:
  virtual ~HostChannel() = default;
  /// Starts round `round` of the command on copy `copy` of its buffers.
  virtual void start(std::int64_t round, int copy) = 0;
  /// True when what was started has ended. Never blocks.
  virtual bool test() = 0;
  /// Withdraws what was started, after a failure.
  virtual void cancel() {}
};

/// Work of a CUDA stream: it ends in the order of the stream.
class StreamChannel {
 public:
  virtual ~StreamChannel() = default;
  /// The command becomes work of `stream`. Those of one epoch and path come between `begin_group` and `end_group` of
  /// the first.
  virtual void enqueue(Stream stream) = 0;
  virtual void begin_group() {}
  virtual void end_group() {}
};

/// Carried by a thread of this process while a kernel goes on. Both count epochs in words of host memory, the e-th time
/// by e * kSignal.
class ThreadChannel {
 public:
  virtual ~ThreadChannel() = default;
  /// Where the GPU says that its memory is ready: packed, or no longer needed by an earlier epoch.
  virtual std::uint64_t* asked() const = 0;
  /// Where it sees that the message has ended.
  virtual const std::uint64_t* ended() const = 0;
  /// What went wrong since, if something did: a whole message with rank, operation and call.
  virtual std::string failure() const = 0;
};

/// The channel of a command; none of them: loads and stores do.
struct Channel {
  std::unique_ptr<HostChannel> host;
  std::unique_ptr<StreamChannel> stream;
  std::unique_ptr<ThreadChannel> thread;
  bool carried() const { return host != nullptr || stream != nullptr || thread != nullptr; }
};

}  // namespace tasuki
