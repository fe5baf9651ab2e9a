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
  EngineRegistration::Make make;
};
std::map<std::string, Entry>& entries() {
  static std::map<std::string, Entry> map;
  return map;
}
}  // namespace

EngineRegistration::EngineRegistration(std::string name, bool threaded, Make make) {
  entries()[std::move(name)] = {threaded, make};
}

std::string engine_complaint(const std::string& name) {
  if (entries().contains(name)) return {};
  std::string names = "auto";
  for (const auto& [known, entry] : entries()) names += ", " + known;
  return fmt::format("there is no engine '{}'; give one of {}", name, names);
}

std::unique_ptr<Engine> make_engine(const std::string& name, Executor& executor) {
  const auto it = entries().find(name);
  if (it == entries().end()) throw Error(engine_complaint(name));
  return it->second.make(executor);
}

bool engine_is_threaded(const std::string& name) {
  const auto it = entries().find(name);
  return it != entries().end() && it->second.threaded;
}

}  // namespace tasuki
