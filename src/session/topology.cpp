// Finds hosts and processes. The kernel's boot id and the host name tell hosts apart; /proc shows which processes can
// be watched.
#include "session/topology.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "layout/encoding.hpp"
#include "session/process.hpp"
#include "session/reach.hpp"
#include "support/text_file.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

using Cores = std::bitset<CPU_SETSIZE>;

/// What every rank tells all others.
struct Known {
  std::int64_t pid = 0;
  std::uint64_t born = 0;
  SharedIdentity memory;
  std::string boot;  // boot id of the kernel, which tells hosts of the same name apart
  std::string name;
  std::string pids;  // the name space of process numbers; empty: not known
  Cores cores;       // hardware threads on which it may run
  std::string problem;
};

// A launcher, a container or a user may have left the process less than the whole machine.
Cores own_cores() {
  Cores cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores.set();  // on machines with more than these
  for (std::size_t core = 0; core < cores.size(); ++core) cores[core] = CPU_ISSET(core, &set);
  return cores;
}

Known own(const SharedMemory* memory, const std::string& problem) {
  Known known;
  known.pid = getpid();
  known.born = own_start_time();
  if (memory != nullptr) known.memory = memory->identity();
  known.boot = read_text("/proc/sys/kernel/random/boot_id").value_or("unknown");
  std::array<char, 256> name{};
  known.name = gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
  std::array<char, 64> pids{};
  if (const auto length = readlink("/proc/self/ns/pid", pids.data(), pids.size()); length > 0)
    known.pids.assign(pids.data(), static_cast<std::size_t>(length));
  known.cores = own_cores();
  known.problem = problem;
  return known;
}

std::string told(const Known& known) {
  return Encoder()
      .number(known.pid)
      .record(known.born)
      .record(known.memory)
      .text(known.boot)
      .text(known.name)
      .text(known.pids)
      .record(known.cores)
      .text(known.problem)
      .bytes();
}

Known heard(const std::string& message) {
  Decoder from(message);
  Known known;
  known.pid = from.number();
  known.born = from.record<std::uint64_t>();
  known.memory = from.record<SharedIdentity>();
  known.boot = from.text();
  known.name = from.text();
  known.pids = from.text();
  known.cores = from.record<Cores>();
  known.problem = from.text();
  from.end();
  return known;
}

}  // namespace

Topology discover(Communicator& communicator, SharedMemory* memory, const std::string& problem) {
  Topology topology;
  topology.rank = communicator.rank();
  topology.threads = communicator.threads();
  const char* doing = "finding out who is there";
  std::vector<Known> all;
  for (const std::string& message : gather_now(communicator, told(own(memory, problem)), doing))
    all.push_back(heard(message));
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (!all[rank].problem.empty()) throw Error(fmt::format("Context: rank {}: {}", rank, all[rank].problem));

  std::map<std::pair<std::string, std::string>, int> hosts;  // (boot id, name) -> number, in the order of first ranks
  std::vector<int> members;                                  // number of ranks of each host so far
  std::vector<Cores> cores;                                  // of each host: those of all its ranks
  std::vector<int> neighbours;
  std::vector<SharedIdentity> identities;
  for (const Known& one : all) {
    Process process;
    process.host = hosts.try_emplace({one.boot, one.name}, static_cast<int>(hosts.size())).first->second;
    members.resize(hosts.size(), 0);
    process.local = members[static_cast<std::size_t>(process.host)]++;
    cores.resize(hosts.size());
    cores[static_cast<std::size_t>(process.host)] |= one.cores;
    process.own_cores = static_cast<int>(one.cores.count());
    process.pid = one.pid;
    process.born = one.born;
    process.name = one.name;
    topology.processes.push_back(std::move(process));
  }
  topology.hosts = static_cast<int>(hosts.size());
  for (Process& process : topology.processes)
    process.cores = static_cast<int>(cores[static_cast<std::size_t>(process.host)].count());

  topology.visible = true;  // set to false below if a process of this host is not in /proc, as between containers
  for (int rank = 0; rank < topology.size(); ++rank) {
    if (!topology.same_host(rank, topology.rank)) continue;
    const Process& process = topology.processes[static_cast<std::size_t>(rank)];
    // A process of the same name space is not missing there, but has died since it told its number.
    const bool same_space =
        !all[static_cast<std::size_t>(rank)].pids.empty() &&
        all[static_cast<std::size_t>(rank)].pids == all[static_cast<std::size_t>(topology.rank)].pids;
    topology.visible =
        topology.visible && process.born != 0 && (same_space || life_of(process.pid, process.born) == Life::running);
    neighbours.push_back(rank);
    identities.push_back(all[static_cast<std::size_t>(rank)].memory);
  }

  communicator.found(topology);
  const auto groups = open_neighbours(communicator, *memory, neighbours, identities);
  const auto place = std::ranges::find(neighbours, topology.rank) - neighbours.begin();
  const auto numbers = gather_now(communicator, encoded(groups[static_cast<std::size_t>(place)]), doing);
  for (std::size_t rank = 0; rank < numbers.size(); ++rank)
    topology.processes[rank].group = decoded<int>(numbers[rank]);
  cut_islands(topology, 0);
  return topology;
}

bool Topology::crowded(int other) const {
  const Process& one = processes[static_cast<std::size_t>(other)];
  return std::ranges::count(processes, one.host, &Process::host) > one.cores;
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
