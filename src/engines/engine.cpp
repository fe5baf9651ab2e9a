// The list of engines.
#include "engines/engine.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "tasuki/error.hpp"

namespace tasuki {

namespace {
struct Entry {
  bool threaded;
  Memory memory;
  EngineRegistration::Make make;
};
std::map<std::string, Entry>& entries() {
  static std::map<std::string, Entry> map;
  return map;
}
}  // namespace

void Engine::enqueue(Stream, StreamWork) {
  throw Error("this engine has no streams (a defect in Tasuki)");
}

HostEpochs Engine::share_epochs(const KernelEpochs&) {
  throw Error("this engine does not count epochs of kernels (a defect in Tasuki)");
}

EngineRegistration::EngineRegistration(std::string name, bool threaded, Make make, Memory memory) {
  entries()[std::move(name)] = {threaded, memory, make};
}

std::string engine_complaint(const std::string& name) {
  if (entries().contains(name)) return {};
  std::string names = "auto";
  for (const auto& [known, entry] : entries()) names += ", " + known;
  return fmt::format("there is no engine '{}'; give one of {}", name, names);
}

std::unique_ptr<Engine> make_engine(const std::string& name, Executor& executor, Runtime& runtime) {
  const auto it = entries().find(name);
  if (it == entries().end()) throw Error(engine_complaint(name));
  return it->second.make(executor, runtime);
}

Memory engine_memory(const std::string& name) {
  const auto it = entries().find(name);
  return it != entries().end() ? it->second.memory : Memory::host;
}

bool engine_is_threaded(const std::string& name) {
  const auto it = entries().find(name);
  return it != entries().end() && it->second.threaded;
}

}  // namespace tasuki
