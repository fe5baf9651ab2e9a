// Finds hosts and processes: MPI says which ranks share a host, /proc whether they can be watched.
#include "topology/topology.hpp"

#include <unistd.h>

#include <cstring>
#include <map>
#include <utility>

#include "support/mpi.hpp"
#include "topology/process.hpp"

namespace tasuki {
namespace {

/// What every rank tells every other.
struct Record {
  std::int64_t pid = 0;
  std::uint64_t born = 0;
  std::int32_t leader = 0;  // lowest rank of the host
  std::int32_t local = 0;
  char name[MPI_MAX_PROCESSOR_NAME] = {};
};

Record own_record(MPI_Comm host, int rank) {
  Record own;
  own.pid = getpid();
  own.born = own_start_time();
  int length = 0;
  check_mpi(MPI_Get_processor_name(own.name, &length), "MPI_Get_processor_name");

  check_mpi(MPI_Comm_rank(host, &own.local), "MPI_Comm_rank");
  own.leader = rank;
  check_mpi(MPI_Bcast(&own.leader, 1, MPI_INT32_T, 0, host), "MPI_Bcast");
  return own;
}

}  // namespace

Topology discover(MPI_Comm comm, MPI_Comm host) {
  Topology topology;
  int size = 0;
  check_mpi(MPI_Comm_rank(comm, &topology.rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size");

  const Record own = own_record(host, topology.rank);
  std::vector<Record> records(size);
  check_mpi(MPI_Allgather(&own, sizeof own, MPI_BYTE, records.data(), sizeof own, MPI_BYTE, comm), "MPI_Allgather");

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
