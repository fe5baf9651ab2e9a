// Engine: who drives an operation's executor. One file an engine, registered by name.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engines/executor.hpp"

namespace tasuki {

/// Drives one executor. Called by the user's thread only.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual void start() = 0;  ///< Begins an epoch.
  virtual bool test() = 0;   ///< True if it has ended; does what the caller's thread has to do for it.
  /// Ends the driving after a failure, so that the executor is the caller's again.
  virtual void stop() {}
};

/// Makes the engine called `name` for `executor`; throws `Error` listing the engines if there is none.
std::unique_ptr<Engine> make_engine(const std::string& name, Executor& executor);
/// Empty if `name` exists, else a complaint that lists the engines.
std::string engine_complaint(const std::string& name);
/// True if a thread other than the caller's runs the commands.
bool engine_is_threaded(const std::string& name);

struct EngineRegistration {
  using Make = std::unique_ptr<Engine> (*)(Executor&);
  EngineRegistration(std::string name, bool threaded, Make make);
};

}  // namespace tasuki
