// Resources: see resources.hpp.
#include "predict/resources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tasuki::detail {

namespace {

std::string name_of(const NetworkLink& link) {
  const std::string where = link.island < 0 ? " outside" : fmt::format(" in island {}", link.island);
  switch (link.kind) {
    case NetworkLink::Kind::port_out:
      return fmt::format("port out of {}{}", link.from, where);
    case NetworkLink::Kind::link:
      return fmt::format("link {} -> {}{}", link.from, link.to, where);
    case NetworkLink::Kind::port_into:
      break;
  }
  return fmt::format("port into {}{}", link.to, where);
}

}  // namespace

Resources::Resources(const Machine& machine) : machine_(machine), network_(machine) {}

int Resources::add(std::string name, int servers, double bandwidth) {
  all_.push_back({std::move(name), bandwidth, 0, {}});
  all_.back().servers.assign(static_cast<std::size_t>(std::max(servers, 1)), {0.0, -1});
  return static_cast<int>(all_.size()) - 1;
}

int Resources::named(const std::string& name, int servers, double bandwidth) {
  const auto found = names_.find(name);
  if (found != names_.end()) return found->second;
  return names_[name] = add(name, servers, bandwidth);
}

double Resources::free_at(int resource) const {
  const auto& servers = all_[static_cast<std::size_t>(resource)].servers;
  return std::min_element(servers.begin(), servers.end())->first;
}

Resources::Served Resources::serve(int resource, double at, double seconds, std::int32_t who) {
  Resource& r = all_[static_cast<std::size_t>(resource)];
  auto& [free, last] = *std::min_element(r.servers.begin(), r.servers.end());
  Served served;
  served.begin = std::max(at, free);
  served.after = free > at ? last : -1;
  served.end = served.begin + seconds;
  free = served.end;
  last = who;
  r.busy += seconds;
  return served;
}

Resources::Served Resources::carry(int from, int to, bool outside, double at, std::int64_t bytes, std::int32_t who) {
  Served whole{at, at, -1};
  double head = at;
  for (const int link : way(from, to, outside).links) {
    const double seconds = static_cast<double>(bytes) / all_[static_cast<std::size_t>(link)].bandwidth;
    const Served served = serve(link, head, seconds, who);
    if (served.after >= 0) whole.after = served.after;
    head = served.begin;
    whole.end = std::max(whole.end, served.end);
  }
  whole.begin = head;
  return whole;
}

const Resources::Route& Resources::way(int from, int to, bool outside) {
  static const Route none;
  outside = outside || !machine_.same_island(from, to);
  const Network& network = outside ? machine_.outside : machine_.inside;
  if (network.bandwidth <= 0) return none;
  const std::tuple key{from, to, outside};
  const auto found = ways_.find(key);
  if (found != ways_.end()) return found->second;
  Route route;
  const Way way = network_.between(from, to, outside);
  for (const NetworkLink& link : way.links) {
    const bool port = link.kind != NetworkLink::Kind::link;
    route.links.push_back(named(name_of(link), port ? network.rails : 1, network.bandwidth));
  }
  route.latency = std::max(way.hops - 1, 0) * network.latency;
  return ways_.emplace(key, std::move(route)).first->second;
}

void Resources::forget_busy() {
  for (Resource& resource : all_) resource.busy = 0;
}

std::vector<std::pair<std::string, double>> Resources::busy() const {
  std::vector<std::pair<std::string, double>> busy;
  for (const Resource& resource : all_)
    if (resource.busy > 0) busy.emplace_back(resource.name, resource.busy);
  return busy;
}

}  // namespace tasuki::detail
