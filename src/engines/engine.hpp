// Engine: decides which thread or stream runs an operation's plan, and when. One file an engine, registered by name.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engines/host/executor.hpp"
#include "session/runtime.hpp"
#include "tasuki/device.hpp"

namespace tasuki {

/// What of an epoch becomes work of a stream, by one call: `Operation::start(stream)`, `wait(stream)` or `run(stream)`.
enum class StreamWork : std::uint8_t {
  start,  ///< permissions to write, and what leaves this rank
  wait,   ///< what arrives, and the epoch's end
  run,    ///< both
};
inline bool starts_epoch(StreamWork work) {
  return work != StreamWork::wait;
}
inline bool ends_epoch(StreamWork work) {
  return work != StreamWork::start;
}

/// Kernels of the user run epochs, too: their blocks, of which there are so many, count in words how often they have
/// come to the beginning and to the end of one.
struct KernelEpochs {
  const unsigned long long* begun = nullptr;
  const unsigned long long* ended = nullptr;
  int blocks = 1;
};
/// Epochs that the host has put into streams: `before`, and what is in these words.
struct HostEpochs {
  std::uint64_t before = 0;
  const unsigned long long* begun[2] = {};
};

/// Drives one executor. Called by the user's thread only.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual void admit() {}  ///< Before `start`. Throws if there is no room for another epoch; nothing has changed then.
  virtual void start() = 0;  ///< Begins an epoch.
  virtual bool test() = 0;   ///< does what the caller's thread can do now; true if the epoch has ended
  /// Puts the work into `stream`, in its order. Only engines for GPU memory can; others throw.
  virtual void enqueue(Stream stream, StreamWork work);
  virtual bool captured() const { return false; }  ///< true if an epoch is part of a graph, which may be launched again
  /// From now on kernels of the user run epochs between the host's. Called again, these kernels do instead of those
  /// that did before. Only engines for GPU memory can; for others, the caller counts. Throws if a graph that was
  /// captured before does not know.
  virtual HostEpochs share_epochs(const KernelEpochs& kernels);
  /// Waits until the recorder has all times; for engines that do not record while they run.
  virtual void tell() {}
  /// Waits for what was started, and throws if it has failed and nobody has been told. Before the engine is destroyed
  /// by `free`.
  virtual void finish() {}
  /// Stops driving after a failure; afterwards the executor is the caller's.
  virtual void stop() {}
  /// The operation is destroyed while an epoch is active. The engine is destroyed next.
  virtual void abandon() { stop(); }
};

/// Makes the engine called `name` for `executor`; throws `Error` listing the engines if there is none.
std::unique_ptr<Engine> make_engine(const std::string& name, Executor& executor, Runtime& runtime);
/// Empty if `name` exists, else a complaint that lists the engines.
std::string engine_complaint(const std::string& name);
/// The kind of memory that operations of the engine called `name` work on.
Memory engine_memory(const std::string& name);
/// True if a thread other than the caller's runs the commands.
bool engine_is_threaded(const std::string& name);

struct EngineRegistration {
  using Make = std::unique_ptr<Engine> (*)(Executor&, Runtime&);
  EngineRegistration(std::string name, bool threaded, Make make, Memory memory = Memory::host);
};

}  // namespace tasuki
