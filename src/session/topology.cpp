// Finds hosts and processes: the communicator says which ranks share a host, /proc whether they can be watched.
#include "session/topology.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "session/process.hpp"

namespace tasuki {
namespace {

/// What every rank tells every other.
struct Record {
  std::int64_t pid = 0;
  std::uint64_t born = 0;
  std::int32_t leader = 0;  // lowest rank of the host
  std::int32_t local = 0;
  char name[256] = {};
};

Record own_record(const Communicator& communicator) {
  Record own;
  own.pid = getpid();
  own.born = own_start_time();
  if (gethostname(own.name, sizeof own.name - 1) != 0) std::strcpy(own.name, "unknown");
  const std::vector<int>& places = communicator.places();
  const auto leader = std::find_if(places.begin(), places.end(), [](int place) { return place >= 0; });
  own.leader = static_cast<std::int32_t>(leader - places.begin());
  own.local = places[static_cast<std::size_t>(communicator.rank())];
  return own;
}

}  // namespace

Topology discover(Communicator& communicator) {
  Topology topology;
  topology.rank = communicator.rank();
  topology.threads = communicator.threads();
  std::vector<Record> records;
  for (const std::string& text : gather_now(communicator, as_text(own_record(communicator))))
    records.push_back(from_text<Record>(text));

  std::map<int, int> host_of_leader;
  for (const Record& record : records) {
    // A host's leader is its lowest rank, so hosts are numbered in the order of their first ranks.
    const auto [entry, added] = host_of_leader.try_emplace(record.leader, static_cast<int>(host_of_leader.size()));
    Process process;
    process.host = entry->second;
    process.local = record.local;
    process.pid = record.pid;
    process.born = record.born;
    process.name.assign(record.name, strnlen(record.name, sizeof record.name));
    topology.processes.push_back(std::move(process));
  }
  topology.hosts = static_cast<int>(host_of_leader.size());

  topology.visible = true;  // ranks of one host in different containers may not see each other's processes
  for (const Process& process : topology.processes)
    if (process.host == topology.processes[topology.rank].host)
      topology.visible = topology.visible && process.born != 0 && life_of(process.pid, process.born) == Life::running;

  cut_islands(topology, 0);
  return topology;
}

void cut_islands(Topology& topology, int island_size) {
  std::map<std::pair<int, int>, int> islands;  // (host, which island of the host) -> number
  for (Process& process : topology.processes) {
    const std::pair key{process.host, island_size > 0 ? process.local / island_size : 0};
    process.island = islands.try_emplace(key, static_cast<int>(islands.size())).first->second;
  }
  topology.islands = static_cast<int>(islands.size());
}

}  // namespace tasuki
