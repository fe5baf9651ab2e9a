// Ways: see ways.hpp.
#include "machine/ways.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>

namespace tasuki {

Ways::Ways(const Machine& machine) : machine_(machine) {
  std::set<int> hosts;
  std::map<int, std::set<int>> hosts_of, ranks_of;  // islands
  for (int r = 0; r < machine.size(); ++r) {
    const auto& rank = machine.ranks[static_cast<std::size_t>(r)];
    hosts.insert(rank.host);
    hosts_of[rank.island].insert(rank.host);
    ranks_of[rank.island].insert(r);
  }
  const auto places = [](const std::set<int>& all) {
    std::map<int, int> numbers;
    for (const int one : all) numbers.emplace(one, static_cast<int>(numbers.size()));
    return numbers;
  };
  const std::map<int, int> host_places = places(hosts);
  std::map<int, std::map<int, int>> points;
  for (const auto& [island, members] : hosts_of)
    points[island] = places(members.size() > 1 ? members : ranks_of[island]);
  for (int r = 0; r < machine.size(); ++r) {
    const auto& rank = machine.ranks[static_cast<std::size_t>(r)];
    host_.push_back(host_places.at(rank.host));
    // In an island of several hosts the network joins the hosts; within one host it joins the ranks.
    point_.push_back(points[rank.island].at(hosts_of[rank.island].size() > 1 ? rank.host : r));
  }
}

Way Ways::between(int from, int to, bool outside) const {
  Way way;
  const auto a = static_cast<std::size_t>(from);
  const auto b = static_cast<std::size_t>(to);
  if (outside && machine_.same_host(from, to)) return way;
  const int island = outside ? -1 : machine_.ranks[a].island;
  const Network& network = outside ? machine_.outside : machine_.inside;
  int at = outside ? host_[a] : point_[a];
  const int end = outside ? host_[b] : point_[b];
  if (network.kind == Network::Kind::none || at == end) return way;
  way.links.push_back({NetworkLink::Kind::port_out, island, at, -1});
  if (network.kind == Network::Kind::torus) {
    int stride = 1;
    for (const int extent : network.extents) stride *= extent;
    for (const int extent : network.extents) {
      stride /= extent;
      const int target = end / stride % extent;
      const int up = (target - at / stride % extent + extent) % extent;
      const int step = 2 * up <= extent ? 1 : extent - 1;
      while (at / stride % extent != target) {
        const int place = at / stride % extent;
        const int next = at + ((place + step) % extent - place) * stride;
        way.links.push_back({NetworkLink::Kind::link, island, at, next});
        at = next;
        ++way.hops;
      }
    }
  } else {
    way.hops = 1;
  }
  way.links.push_back({NetworkLink::Kind::port_into, island, -1, end});
  return way;
}

}  // namespace tasuki
