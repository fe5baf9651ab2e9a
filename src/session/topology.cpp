// Finds hosts and processes. The kernel's boot id and the host name tell hosts apart; /proc shows which processes can
// be watched.
#include "session/topology.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "session/process.hpp"
#include "session/reach.hpp"
#include "support/text_file.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

/// The data that every rank sends to all others.
struct Record {
  std::int64_t pid = 0;
  std::uint64_t born = 0;
  SharedIdentity memory;
  char boot[48] = {};  // boot id of the kernel, which tells hosts of the same name apart
  char name[256] = {};
};

void put(char* field, std::size_t size, const std::string& text) {
  text.copy(field, size - 1);  // the field was all zeros, so the text ends with one
}

Record own_record(const SharedMemory* memory) {
  Record own;
  own.pid = getpid();
  own.born = own_start_time();
  if (memory != nullptr) own.memory = memory->identity();
  put(own.boot, sizeof own.boot, read_text("/proc/sys/kernel/random/boot_id").value_or("unknown"));
  if (gethostname(own.name, sizeof own.name - 1) != 0) put(own.name, sizeof own.name, "unknown");
  return own;
}

}  // namespace

Topology discover(Communicator& communicator, SharedMemory* memory, const std::string& problem) {
  Topology topology;
  topology.rank = communicator.rank();
  topology.threads = communicator.threads();
  const char* doing = "finding out who is there";
  const auto texts = gather_now(communicator, as_text(own_record(memory)) + problem, doing);
  for (std::size_t rank = 0; rank < texts.size(); ++rank)
    if (texts[rank].size() > sizeof(Record))
      throw Error(fmt::format("Context: rank {}: {}", rank, texts[rank].substr(sizeof(Record))));

  std::map<std::pair<std::string, std::string>, int> hosts;  // (boot id, name) -> number, in the order of first ranks
  std::vector<int> members;                                  // number of ranks of each host so far
  std::vector<int> neighbours;
  std::vector<SharedIdentity> identities;
  for (const std::string& text : texts) {
    const auto record = from_text<Record>(text);
    Process process;
    process.host = hosts.try_emplace({record.boot, record.name}, static_cast<int>(hosts.size())).first->second;
    members.resize(hosts.size(), 0);
    process.local = members[static_cast<std::size_t>(process.host)]++;
    process.pid = record.pid;
    process.born = record.born;
    process.name = record.name;
    topology.processes.push_back(std::move(process));
  }
  topology.hosts = static_cast<int>(hosts.size());

  topology.visible = true;  // set to false below if a process of this host is not in /proc, as between containers
  for (int rank = 0; rank < topology.size(); ++rank) {
    if (!topology.same_host(rank, topology.rank)) continue;
    const Process& process = topology.processes[static_cast<std::size_t>(rank)];
    topology.visible = topology.visible && process.born != 0 && life_of(process.pid, process.born) == Life::running;
    neighbours.push_back(rank);
    identities.push_back(from_text<Record>(texts[static_cast<std::size_t>(rank)]).memory);
  }

  const auto groups = open_neighbours(communicator, *memory, neighbours, identities);
  const auto own = std::ranges::find(neighbours, topology.rank) - neighbours.begin();
  const auto told = gather_now(communicator, as_text(groups[static_cast<std::size_t>(own)]), doing);
  for (std::size_t rank = 0; rank < told.size(); ++rank) topology.processes[rank].group = from_text<int>(told[rank]);
  cut_islands(topology, 0);
  return topology;
}

std::string Topology::called(int other) const {
  if (same_host(rank, other)) return fmt::format("rank {}", other);
  return fmt::format("rank {} on host {}", other, processes[static_cast<std::size_t>(other)].name);
}

namespace {

/// Numbers the islands. `part_of(rank)` says which island of its group a rank is in.
template <class PartOf>
void number_islands(Topology& topology, const PartOf& part_of) {
  std::map<std::tuple<int, int, int>, int> islands;  // (host, group, which island of the group) -> number
  for (std::size_t rank = 0; rank < topology.processes.size(); ++rank) {
    Process& process = topology.processes[rank];
    const std::tuple key{process.host, process.group, part_of(rank)};
    process.island = islands.try_emplace(key, static_cast<int>(islands.size())).first->second;
  }
  topology.islands = static_cast<int>(islands.size());
}

}  // namespace

void cut_islands(Topology& topology, int island_size) {
  std::map<std::pair<int, int>, int> members;  // number of ranks of each group so far
  number_islands(topology, [&](std::size_t rank) {
    const Process& process = topology.processes[rank];
    const int place = members[{process.host, process.group}]++;
    return island_size > 0 ? place / island_size : 0;
  });
}

void inherit_islands(Topology& topology, const Topology& parent, std::span<const int> ranks) {
  number_islands(topology,
                 [&](std::size_t rank) { return parent.processes[static_cast<std::size_t>(ranks[rank])].island; });
}

}  // namespace tasuki
