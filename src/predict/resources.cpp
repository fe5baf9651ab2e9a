// Resources: see resources.hpp.
#include "predict/resources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace tasuki::detail {

Resources::Resources(const Machine& machine) : machine_(machine) {
  std::set<int> hosts;
  std::map<int, std::set<int>> hosts_of, ranks_of;  // islands
  for (int r = 0; r < machine.size(); ++r) {
    const auto& rank = machine.ranks[static_cast<std::size_t>(r)];
    hosts.insert(rank.host);
    hosts_of[rank.island].insert(rank.host);
    ranks_of[rank.island].insert(r);
  }
  const auto place = [](const std::set<int>& all, int one) {
    return static_cast<int>(std::distance(all.begin(), all.find(one)));
  };
  std::map<int, int> host_places;
  for (const int host : hosts) host_places.emplace(host, static_cast<int>(host_places.size()));
  for (int r = 0; r < machine.size(); ++r) {
    const auto& rank = machine.ranks[static_cast<std::size_t>(r)];
    host_.push_back(host_places.at(rank.host));
    // In an island of several hosts the network joins the hosts; within one host it joins the ranks.
    const auto& members = hosts_of[rank.island];
    point_.push_back(members.size() > 1 ? place(members, rank.host) : place(ranks_of[rank.island], r));
  }
}

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

Resources::Served Resources::carry(int from, int to, double at, std::int64_t bytes, std::int32_t who) {
  Served whole{at, at, -1};
  double head = at;
  for (const int link : way(from, to).links) {
    const double seconds = static_cast<double>(bytes) / all_[static_cast<std::size_t>(link)].bandwidth;
    const Served served = serve(link, head, seconds, who);
    if (served.after >= 0) whole.after = served.after;
    head = served.begin;
    whole.end = std::max(whole.end, served.end);
  }
  whole.begin = head;
  return whole;
}

const Resources::Way& Resources::way(int from, int to) {
  static const Way none;
  const bool inside = machine_.same_island(from, to);
  if (!inside && machine_.same_host(from, to)) return none;
  if (const Network& network = inside ? machine_.inside : machine_.outside;
      network.kind == Network::Kind::none || network.bandwidth <= 0)
    return none;
  const auto found = ways_.find({from, to});
  return found != ways_.end() ? found->second : ways_.emplace(std::pair(from, to), find(from, to)).first->second;
}

Resources::Way Resources::find(int from, int to) {
  Way way;
  const auto a = static_cast<std::size_t>(from);
  const auto b = static_cast<std::size_t>(to);
  if (machine_.same_island(from, to)) {
    route(machine_.inside, fmt::format(" in island {}", machine_.ranks[a].island), point_[a], point_[b], way);
  } else if (!machine_.same_host(from, to)) {
    route(machine_.outside, " outside", host_[a], host_[b], way);
  }
  return way;
}

// The resources on the way: a port out, the links, a port in. On a torus the way goes dimension by dimension, the
// shorter way round, and upwards if both ways are equally long.
void Resources::route(const Network& network, const std::string& where, int from, int to, Way& way) {
  if (network.kind == Network::Kind::none || network.bandwidth <= 0 || from == to) return;
  way.links.push_back(named(fmt::format("port out of {}{}", from, where), network.rails, network.bandwidth));
  if (network.kind == Network::Kind::torus) {
    int stride = 1;
    for (const int extent : network.extents) stride *= extent;
    int at = from;
    int hops = 0;
    for (const int extent : network.extents) {
      stride /= extent;
      const int target = to / stride % extent;
      const int up = (target - at / stride % extent + extent) % extent;
      const int step = 2 * up <= extent ? 1 : extent - 1;
      while (at / stride % extent != target) {
        const int place = at / stride % extent;
        const int next = at + ((place + step) % extent - place) * stride;
        way.links.push_back(named(fmt::format("link {} -> {}{}", at, next, where), 1, network.bandwidth));
        at = next;
        ++hops;
      }
    }
    way.latency = std::max(hops - 1, 0) * network.latency;
  }
  way.links.push_back(named(fmt::format("port into {}{}", to, where), network.rails, network.bandwidth));
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
