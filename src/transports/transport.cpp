// The transports of a context: see transport.hpp.
#include "transports/transport.hpp"

#include <fmt/format.h>

#include "machine/derived.hpp"
#include "paths/path.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

std::map<std::string, TransportRegistration::Make>& makers() {
  static std::map<std::string, TransportRegistration::Make> map;
  return map;
}

const RuntimePart registration{[](Runtime& runtime) {
  runtime.transports = std::make_shared<Transports>(runtime);
  runtime.replace_machine(with_unusable(runtime.machine(), runtime.transports->unusable()));
}};

}  // namespace

TransportRegistration::TransportRegistration(std::string name, Make make) {
  makers()[std::move(name)] = make;
}

Transports::Transports(Runtime& runtime) {
  for (const auto& [name, make] : makers()) transports_[name] = make(runtime);
}

Transport& Transports::find(const std::string& name) const {
  const auto found = transports_.find(name);
  if (found == transports_.end())
    throw Error(ErrorKind::not_possible,
                fmt::format("this build of Tasuki has no transport '{}': it was built without CUDA", name));
  return *found->second;
}

void Transports::prepare(Runtime& runtime, const std::string& wanted) {
  for (const auto& [name, transport] : transports_) transport->prepare(runtime, wanted);
}

std::map<std::string, std::string> Transports::prepare_pair(Runtime& runtime, int peer, const std::string& wanted) {
  std::map<std::string, std::string> why = unusable();
  for (const Path& path : all_paths()) {
    const auto found = transports_.find(path.transport);
    if (path.memory != Memory::device || found == transports_.end()) continue;
    if (found->second->prepare_pair(runtime, peer, wanted)) why.erase(path.name);
  }
  return why;
}

std::map<std::string, std::string> Transports::unusable() const {
  std::map<std::string, std::string> why;
  for (const Path& path : all_paths()) {
    if (path.transport.empty()) continue;
    const auto found = transports_.find(path.transport);
    const std::string reason =
        found == transports_.end() ? "this build of Tasuki has no CUDA" : found->second->why_not();
    if (!reason.empty()) why[path.name] = reason;
  }
  return why;
}

}  // namespace tasuki
