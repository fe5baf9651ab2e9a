// Collectives that exchange blocks, in a program of MPI alone that writes down what it receives: MPI_Alltoallw and
// MPI_Neighbor_alltoallw on grids with and without ends, random graphs with several edges between two ranks and to
// oneself, and parts of the world, by random types and sizes. Each communicator is used several times, by turns with
// others, and with messages on the way. `later`: by the forms of these calls that end later, of which several are open
// at a time; persistent ones where the MPI has them, whose types are freed once they have been started.
//   mpi_blocks FILE communicators [later]
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr int kCalls = 6, kMostInts = 400'000;
int rank, ranks;
std::FILE* out;
std::mt19937 alike;  // on all ranks

int draw(int below) {
  return static_cast<int>(alike() % static_cast<unsigned>(below));
}

// `ints` ints in pieces of some form; the sender's and the receiver's need not be alike.
MPI_Datatype make(int form, int ints) {
  MPI_Datatype type = MPI_DATATYPE_NULL, one = MPI_DATATYPE_NULL;
  if (form == 0) {
    MPI_Type_contiguous(ints, MPI_INT, &type);
  } else if (form == 1) {
    MPI_Type_vector(ints, 1, 2, MPI_INT, &type);
  } else if (form == 2) {
    MPI_Type_create_resized(MPI_INT, 0, 12, &one);
    MPI_Type_contiguous(ints, one, &type);
  } else {  // runs of two lengths
    const int lengths[2] = {ints / 3, ints - ints / 3}, places[2] = {ints, 0};
    MPI_Type_indexed(2, lengths, places, MPI_INT, &type);
  }
  if (one != MPI_DATATYPE_NULL) MPI_Type_free(&one);
  MPI_Type_commit(&type);
  return type;
}

int size_of_next() {
  constexpr int kSizes[] = {0, 1, 37, 300, 1025, 5000, 70'000, kMostInts};
  return kSizes[draw(alike() % 4 == 0 ? 8 : 6)];
}

struct Side {
  std::vector<int> counts, small_at;
  std::vector<MPI_Aint> at;
  std::vector<MPI_Datatype> types;
  std::vector<int> memory;
  void add(int form, int ints) {
    const bool basic = form == 4;
    counts.push_back(basic ? ints : ints > 0 ? 1 : 0);
    types.push_back(basic || ints == 0 ? MPI_INT : make(form, ints));
    small_at.push_back(static_cast<int>(memory.size() * sizeof(int)));
    at.push_back(static_cast<MPI_Aint>(small_at.back()));
    memory.resize(memory.size() + 3 * static_cast<std::size_t>(ints) + 2, -1);
  }
  Side() = default;
  Side(Side&&) = default;
  ~Side() { free_types(); }
  void free_types() {
    for (MPI_Datatype& type : types)
      if (type != MPI_INT) MPI_Type_free(&type);
    types.clear();
  }
};

void log(const char* what, int call, const std::vector<int>& memory) {
  std::uint64_t sum = 0;
  for (const int one : memory) sum = sum * 1099511628211u + static_cast<unsigned>(one);
  std::fprintf(out, "%s, call %d: %016llx\n", what, call, static_cast<unsigned long long>(sum));
}

// Who sends to whom, in the order of each rank's lists.
struct Graph {
  std::vector<std::vector<int>> sources, targets;
};

struct Case {
  MPI_Comm comm = MPI_COMM_NULL;
  std::string name;
  Side sent, received;
  bool neighbours = true;
  MPI_Request request = MPI_REQUEST_NULL;
};

// Sizes and forms of all edges are drawn by all ranks. An edge's number is its place in its receiver's list.
Case on_graph(int turn) {
  Case made;
  made.name = "graph " + std::to_string(turn);
  Graph graph{std::vector<std::vector<int>>(static_cast<std::size_t>(ranks)),
              std::vector<std::vector<int>>(static_cast<std::size_t>(ranks))};
  for (int edges = draw(4 * ranks); edges >= 0; --edges) {
    const int from = draw(ranks), to = draw(ranks), ints = size_of_next(), form_out = draw(5), form_in = draw(5);
    graph.sources[static_cast<std::size_t>(to)].push_back(from);
    graph.targets[static_cast<std::size_t>(from)].push_back(to);
    if (from == rank) made.sent.add(form_out, ints);
    if (to == rank) made.received.add(form_in, ints);
  }
  const auto& from = graph.sources[static_cast<std::size_t>(rank)];
  const auto& to = graph.targets[static_cast<std::size_t>(rank)];
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, static_cast<int>(from.size()), from.data(), MPI_UNWEIGHTED,
                                 static_cast<int>(to.size()), to.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made.comm);
  return made;
}

// All blocks of a dimension are of one size, as grids' are.
Case on_grid(int turn) {
  Case made;
  made.name = "grid " + std::to_string(turn);
  int dims[2] = {0, turn % 2 == 0 ? 1 : 0};
  const int periods[2] = {draw(2), draw(2)};
  MPI_Dims_create(ranks, 2, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &made.comm);
  for (int dim = 0; dim < 2; ++dim) {
    const int ints = size_of_next(), form = draw(5);
    for (int side = 0; side < 2; ++side) {
      made.sent.add(form, ints);
      made.received.add(4 - form, ints);
    }
  }
  return made;
}

Case on_part(int turn) {
  Case made;
  made.name = "part " + std::to_string(turn);
  made.neighbours = false;
  const int colour = turn % 2 == 0 ? 0 : rank % 2;
  MPI_Comm_split(MPI_COMM_WORLD, colour, -rank, &made.comm);
  int size = 0, mine = 0;
  MPI_Comm_size(made.comm, &size);
  MPI_Comm_rank(made.comm, &mine);
  const int seed = draw(1000);
  for (int other = 0; other < size; ++other) {
    const auto ints = [&](int from, int to) { return (seed * (from + 1) + 7919 * to) % 3 * ((seed + from) % 700); };
    made.sent.add((mine + turn) % 5, ints(mine, other));
    made.received.add((other + turn + 1) % 5, ints(other, mine));
  }
  return made;
}

int call(Case& one) {
  Side &sent = one.sent, &received = one.received;
  if (one.neighbours)
    return MPI_Neighbor_alltoallw(sent.memory.data(), sent.counts.data(), sent.at.data(), sent.types.data(),
                                  received.memory.data(), received.counts.data(), received.at.data(),
                                  received.types.data(), one.comm);
  return MPI_Alltoallw(sent.memory.data(), sent.counts.data(), sent.small_at.data(), sent.types.data(),
                       received.memory.data(), received.counts.data(), received.small_at.data(), received.types.data(),
                       one.comm);
}

// Open MPI 5.0 does not keep the types of persistent collectives that the program frees.
constexpr bool kKeepsTypes =
#ifdef OPEN_MPI
    false;
#else
    true;
#endif
constexpr bool kPersistent =
#if MPI_VERSION >= 4 || (defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5)
    true;
#else
    false;
#endif

// Starts it. Half of the communicators have persistent requests.
int start(Case& one, bool persistent) {
  Side &sent = one.sent, &received = one.received;
#if MPI_VERSION >= 4 || (defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5)
  if (persistent && one.request == MPI_REQUEST_NULL) {
    const int status =
        one.neighbours
            ? MPI_Neighbor_alltoallw_init(sent.memory.data(), sent.counts.data(), sent.at.data(), sent.types.data(),
                                          received.memory.data(), received.counts.data(), received.at.data(),
                                          received.types.data(), one.comm, MPI_INFO_NULL, &one.request)
            : MPI_Alltoallw_init(sent.memory.data(), sent.counts.data(), sent.small_at.data(), sent.types.data(),
                                 received.memory.data(), received.counts.data(), received.small_at.data(),
                                 received.types.data(), one.comm, MPI_INFO_NULL, &one.request);
    if (status != MPI_SUCCESS) return status;
  }
#endif
  if (persistent) return MPI_Start(&one.request);
  if (one.neighbours)
    return MPI_Ineighbor_alltoallw(sent.memory.data(), sent.counts.data(), sent.at.data(), sent.types.data(),
                                   received.memory.data(), received.counts.data(), received.at.data(),
                                   received.types.data(), one.comm, &one.request);
  return MPI_Ialltoallw(sent.memory.data(), sent.counts.data(), sent.small_at.data(), sent.types.data(),
                        received.memory.data(), received.counts.data(), received.small_at.data(), received.types.data(),
                        one.comm, &one.request);
}

void fill(Case& one, int call) {
  for (std::size_t at = 0; at < one.sent.memory.size(); ++at)
    one.sent.memory[at] = 1'000'003 * (rank + 1) + 31 * call + static_cast<int>(at);
  std::fill(one.received.memory.begin(), one.received.memory.end(), -1);
}

// All that are open end together with a message.
int together(std::vector<Case>& cases, int call, bool persistent, MPI_Request message) {
  std::vector<MPI_Request> open{message};
  for (Case& one : cases) {
    fill(one, call);
    if (start(one, persistent) != MPI_SUCCESS) return MPI_ERR_OTHER;
    open.push_back(one.request);
  }
  if (MPI_Waitall(static_cast<int>(open.size()), open.data(), MPI_STATUSES_IGNORE) != MPI_SUCCESS) return MPI_ERR_OTHER;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    cases[i].request = open[i + 1];
    log(cases[i].name.c_str(), call, cases[i].received.memory);
  }
  return MPI_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 3) return 2;
  out = std::fopen((std::string(argv[1]) + "." + std::to_string(rank)).c_str(), "w");
  if (out == nullptr) return 2;
  const bool later = argc > 3;
  const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  std::vector<int> ahead(20'000, rank), behind(20'000, -1);
  for (int turn = 0; turn < std::atoi(argv[2]); ++turn) {
    std::vector<Case> cases;
    cases.push_back(on_graph(turn));
    cases.push_back(on_grid(turn));
    cases.push_back(on_part(turn));
    for (int i = 0; i < kCalls; ++i) {
      // A message that MPI moves on while this rank waits in a collective, and the other in one too.
      MPI_Request request;
      MPI_Isend(ahead.data(), static_cast<int>(ahead.size()), MPI_INT, next, 5, MPI_COMM_WORLD, &request);
      if (i % 2 == 1)
        MPI_Recv(behind.data(), static_cast<int>(behind.size()), MPI_INT, before, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (later) {
        const bool persistent = kPersistent && turn % 2 == 0;
        MPI_Request message;
        MPI_Irecv(behind.data(), i % 2 == 0 ? static_cast<int>(behind.size()) : 0, MPI_INT,
                  i % 2 == 0 ? before : MPI_PROC_NULL, 5, MPI_COMM_WORLD, &message);
        if (together(cases, i, persistent, message) != MPI_SUCCESS) return 3;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (persistent && kKeepsTypes && i == 0)
          for (Case& one : cases) {
            one.sent.free_types();
            one.received.free_types();
          }
        continue;
      }
      for (Case& one : cases) {
        fill(one, i);
        if (call(one) != MPI_SUCCESS) return 3;
        log(one.name.c_str(), i, one.received.memory);
      }
      if (i % 2 == 0)
        MPI_Recv(behind.data(), static_cast<int>(behind.size()), MPI_INT, before, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (Case& one : cases) {
      if (one.request != MPI_REQUEST_NULL) MPI_Request_free(&one.request);
      MPI_Comm_free(&one.comm);
    }
  }
  std::fclose(out);
  return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
