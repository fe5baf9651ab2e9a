// Machine: queries, and machines made from a pattern. The JSON form is in json.cpp.
#include "tasuki/machine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "layout/counted.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

std::string_view to_string(Memory memory) {
  return memory == Memory::host ? "host" : "device";
}

bool Machine::gpus_complete() const {
  return std::all_of(ranks.begin(), ranks.end(),
                     [&](const Rank& rank) { return rank.gpus >= 0 && rank.gpus == ranks[0].gpus; });
}

const PathCost& Machine::cost(const std::string& path) const {
  static const PathCost unknown;
  const auto found = costs.find(path);
  return found == costs.end() ? unknown : found->second;
}

Machine Machine::uniform(int ranks, int per_host, int per_island, bool gpus) {
  if (ranks < 1) throw Error(fmt::format("Machine: argument 'ranks' is {}; it must be 1 or more", ranks));
  if (per_host < 1) throw Error(fmt::format("Machine: argument 'per_host' is {}; it must be 1 or more", per_host));
  if (per_island < 0 || (per_island > per_host && per_island % per_host != 0))
    throw Error(
        fmt::format("Machine: argument 'per_island' is {}; give 0 (a whole host), 1 to {} (per_host), or a multiple of "
                    "that (an island of several hosts)",
                    per_island, per_host));
  Machine machine;
  const int island_size = per_island > 0 ? per_island : per_host;
  const int islands_of_host = (per_host + island_size - 1) / island_size;
  for (int r = 0; r < ranks; ++r) {
    Rank rank;
    rank.host = r / per_host;
    rank.island = island_size > per_host ? r / island_size : rank.host * islands_of_host + r % per_host / island_size;
    rank.gpus = gpus ? rank.island : -1;
    machine.ranks.push_back(rank);
  }
  return machine;
}

namespace {

// A torus of hosts grows in its slowest dimension, by whole planes.
void grow(const Machine& machine, std::vector<int>& torus, int wanted, std::ptrdiff_t per_host) {
  const std::int64_t size = machine.size();
  std::int64_t plane = 1;
  for (std::size_t d = 1; d < torus.size(); ++d) plane *= torus[d];
  const std::int64_t ranks_of_plane = plane * per_host;
  if (ranks_of_plane * torus[0] != size || wanted % ranks_of_plane != 0)
    throw Error(
        fmt::format("machine {} has {}, and {} were asked for; its hosts form a torus of {}, {}", machine.name,
                    counted(size, "rank"), wanted, fmt::join(torus, " x "),
                    ranks_of_plane * torus[0] != size
                        ? fmt::format("which they do not fill: give at most {}", size)
                        : fmt::format("which grows in its first dimension: give a multiple of {}", ranks_of_plane)));
  torus[0] = static_cast<int>(wanted / ranks_of_plane);
}

}  // namespace

Machine Machine::resized(int wanted) const {
  if (wanted < 1) throw Error(fmt::format("machine {}: {} ranks were asked for; give 1 or more", name, wanted));
  Machine machine = *this;
  if (wanted <= size()) {
    machine.ranks.resize(static_cast<std::size_t>(wanted));
    return machine;
  }
  // More hosts like the present ones, if these are all alike.
  const auto per_host =
      std::count_if(ranks.begin(), ranks.end(), [&](const Rank& r) { return r.host == ranks[0].host; });
  const auto per_island =
      std::count_if(ranks.begin(), ranks.end(), [&](const Rank& r) { return r.island == ranks[0].island; });
  const bool gpus = !ranks.empty() && ranks[0].gpus >= 0;
  const bool divides = !ranks.empty() && (per_island <= per_host || per_island % per_host == 0);
  const Machine pattern = uniform(wanted, static_cast<int>(per_host), divides ? static_cast<int>(per_island) : 0, gpus);
  const bool alike = divides && std::equal(ranks.begin(), ranks.end(), pattern.ranks.begin());
  if (!alike || (size() % per_host) != 0)
    throw Error(
        fmt::format("machine {} has {}, and {} were asked for; give at most {}, or a machine file whose hosts "
                    "are all alike",
                    name, counted(size(), "rank"), wanted, size()));
  if (inside.kind == Network::Kind::torus && wanted % per_island != 0)
    throw Error(
        fmt::format("machine {} has {}, and {} were asked for; each island is a torus, so give a multiple of {}", name,
                    counted(size(), "rank"), wanted, per_island));
  if (outside.kind == Network::Kind::torus) grow(*this, machine.outside.extents, wanted, per_host);
  machine.ranks = pattern.ranks;
  return machine;
}

}  // namespace tasuki
