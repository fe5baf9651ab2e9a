// Engine: who drives an operation's executor. One file an engine, registered by name.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engines/host/executor.hpp"
#include "session/runtime.hpp"
#include "tasuki/device.hpp"

namespace tasuki {

/// Drives one executor. Called by the user's thread only.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual void start() = 0;  ///< Begins an epoch.
  virtual bool test() = 0;   ///< True if it has ended; does what the caller's thread has to do for it.
  /// As `Operation` has them; only engines for GPU memory can. `parts`: 1 start, 2 wait, 3 both.
  virtual void enqueue(Stream stream, int parts);
  virtual bool captured() const { return false; }  ///< True if an epoch is part of a graph, which may run again.
  /// Waits until the recorder has all that has run; for engines that do not record as they go.
  virtual void tell() {}
  /// Ends the driving after a failure, so that the executor is the caller's again.
  virtual void stop() {}
  /// The operation is destroyed while an epoch is active: lets go of it. The engine is destroyed next.
  virtual void abandon() { stop(); }
};

/// Makes the engine called `name` for `executor`; throws `Error` listing the engines if there is none.
std::unique_ptr<Engine> make_engine(const std::string& name, Executor& executor, Runtime& runtime);
/// Empty if `name` exists, else a complaint that lists the engines.
std::string engine_complaint(const std::string& name);
/// The memory that operations of the engine called `name` must be in.
Memory engine_memory(const std::string& name);
/// True if a thread other than the caller's runs the commands.
bool engine_is_threaded(const std::string& name);

struct EngineRegistration {
  using Make = std::unique_ptr<Engine> (*)(Executor&, Runtime&);
  EngineRegistration(std::string name, bool threaded, Make make, Memory memory = Memory::host);
};

}  // namespace tasuki
