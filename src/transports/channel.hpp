// Channels: how an engine runs commands that are not loads and stores, such as messages. There are three kinds, by who
// drives them: a thread of the processor, a stream of the GPU, or a progress thread beside a running kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tasuki/device.hpp"

namespace tasuki {

/// What a complete signal adds to a counter in GPU memory: the first thread block adds kSignal less the number of the
/// other blocks, each of which adds 1. The words between a kernel and a thread count in the same unit.
constexpr std::uint64_t kSignal = 1 << 16;

/// Driven by a thread of the processor, which starts a round and then tests until the round has ended.
class HostChannel {
 public:
  virtual ~HostChannel() = default;
  /// Starts round `round` of the command on copy `copy` of its buffers.
  virtual void start(std::int64_t round, int copy) = 0;
  /// True once the started round has ended. Never blocks.
  virtual bool test() = 0;
  /// After a failure: cancels the started round.
  virtual void cancel() {}
};

/// Driven by a CUDA stream: the command is work of the stream and ends in its order.
class StreamChannel {
 public:
  virtual ~StreamChannel() = default;
  /// Puts the command into `stream`. The commands of an epoch that take one path are put between `begin_group` and
  /// `end_group` of the first of them.
  virtual void enqueue(Stream stream) = 0;
  /// Whether that takes multiprocessors of the GPU, so that some have to be left to it.
  virtual bool takes_processors() const { return true; }
  virtual void begin_group() {}
  virtual void end_group() {}
};

/// Driven by the progress thread while a kernel of this GPU runs. Thread and kernel tell each other about epochs
/// through two words of host memory; in epoch e a word is set to e * kSignal.
class ThreadChannel {
 public:
  virtual ~ThreadChannel() = default;
  /// The word that the GPU sets when its buffer is ready: packed, or no longer needed by an earlier epoch.
  virtual std::uint64_t* asked() const = 0;
  /// The word in which the GPU sees that the message has ended.
  virtual const std::uint64_t* ended() const = 0;
  /// Empty, or an error message with rank, operation and MPI call.
  virtual std::string failure() const = 0;
  /// How far the message is, for the error of a kernel that has waited in vain: who has asked for it, what MPI has been
  /// given, whether the thread still serves.
  virtual std::string standing() const { return "a thread of the host carries it"; }
};

/// The channel of a command; at most one member is set. If none is, the command is loads and stores.
struct Channel {
  std::unique_ptr<HostChannel> host;
  std::unique_ptr<StreamChannel> stream;
  std::unique_ptr<ThreadChannel> thread;
  bool carried() const { return host != nullptr || stream != nullptr || thread != nullptr; }
};

}  // namespace tasuki
