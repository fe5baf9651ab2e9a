// An MPI program whose receives are posted when messages are sent: exchanges of strided numbers between two neighbours,
// by all calls, on several communicators, with sizes from bytes to more than the ring has. What came is checked, and
// written to a file.
//   mpi_posted FILE [ROUNDS]
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "random_types.hpp"

namespace {

using random_types::below;
using random_types::between;
using random_types::Random;

int rank, ranks;

double number(int from, int round, int i) {
  return from * 1e9 + round * 1e6 + i;
}

struct Strided {
  Strided(int count, int block, int gap, bool negative) : n(count * block), step(block + gap) {
    MPI_Type_create_hvector(count, block, static_cast<MPI_Aint>(negative ? -8 : 8) * step, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    memory.assign(static_cast<std::size_t>(count) * static_cast<std::size_t>(step) + 8, -1);
    first = negative ? static_cast<std::size_t>(count - 1) * static_cast<std::size_t>(step) : 0;
    for (int c = 0; c < count; ++c)
      for (int b = 0; b < block; ++b)
        places.push_back(negative ? first + static_cast<std::size_t>(b) -
                                        static_cast<std::size_t>(c) * static_cast<std::size_t>(step)
                                  : static_cast<std::size_t>(c * step + b));
  }
  Strided(const Strided&) = delete;
  ~Strided() { MPI_Type_free(&type); }
  double* base() { return memory.data() + first; }
  int n, step;
  std::size_t first;
  MPI_Datatype type;
  std::vector<double> memory;
  std::vector<std::size_t> places;
};

void check(bool holds, const char* what, int round) {
  if (holds) return;
  std::fprintf(stderr, "mpi_posted: rank %d, round %d: %s\n", rank, round, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 2) return 2;
  std::FILE* out = std::fopen((std::string(argv[1]) + "." + std::to_string(rank)).c_str(), "w");
  if (out == nullptr) return 2;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 100;
  MPI_Comm turned, line;
  MPI_Comm_split(MPI_COMM_WORLD, 0, ranks - rank, &turned);
  const int dims[] = {ranks}, periods[] = {1};
  MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &line);
  Random random(5);
  for (int round = 0; round < rounds; ++round) {
    // The same on all ranks.
    const MPI_Comm comm = round % 3 == 0 ? MPI_COMM_WORLD : round % 3 == 1 ? turned : line;
    int me = 0;
    MPI_Comm_rank(comm, &me);
    const int right = (me + 1) % ranks, left = (me + ranks - 1) % ranks;
    const int n = below(random, 10) == 0  ? 600000
                  : below(random, 3) == 0 ? between(random, 1, 200) * 600
                                          : between(random, 5, 20) * 60;
    const int block = std::vector<int>{1, 2, 3, 60}[static_cast<std::size_t>(below(random, 4))];
    const int other = std::vector<int>{1, 2, 3, 60}[static_cast<std::size_t>(below(random, 4))];
    const int spare = below(random, 3) * 60;  // the receive has room for more
    const int tag = below(random, 3), way = below(random, 6), end = below(random, 4);
    Strided to(n / block, block, between(random, 1, 3), below(random, 2) == 0);
    Strided from((n + spare) / other, other, between(random, 1, 3), below(random, 2) == 0);
    for (std::size_t i = 0; i < to.places.size(); ++i) to.memory[to.places[i]] = number(me, round, static_cast<int>(i));
    MPI_Status status;
    if (way == 5) {
      MPI_Sendrecv(to.base(), 1, to.type, right, tag, from.base(), 1, from.type, left, tag, comm, &status);
    } else {
      MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
      if (below(random, 5) == 0) {  // persistent, started once
        MPI_Recv_init(from.base(), 1, from.type, left, tag, comm, &requests[0]);
        MPI_Start(&requests[0]);
      } else {
        MPI_Irecv(from.base(), 1, from.type, left, tag, comm, &requests[0]);
      }
      const MPI_Request received = requests[0];
      MPI_Barrier(MPI_COMM_WORLD);
      switch (way) {
        case 0:
          MPI_Send(to.base(), 1, to.type, right, tag, comm);
          break;
        case 1:
          MPI_Isend(to.base(), 1, to.type, right, tag, comm, &requests[1]);
          break;
        case 2:
          MPI_Rsend(to.base(), 1, to.type, right, tag, comm);
          break;
        case 3:
          MPI_Issend(to.base(), 1, to.type, right, tag, comm, &requests[1]);
          break;
        default:
          MPI_Irsend(to.base(), 1, to.type, right, tag, comm, &requests[1]);
      }
      MPI_Status statuses[2];
      if (end == 0) {
        MPI_Waitall(2, requests, statuses);
        status = statuses[0];
      } else if (end == 1) {
        for (int flag = 0; !flag;) MPI_Request_get_status(requests[0], &flag, &status);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      } else if (end == 2) {
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        for (int flag = 0; !flag;) MPI_Test(&requests[0], &flag, &status);
      } else {
        int number_done = 0, indices[2];
        for (int left_open = requests[1] == MPI_REQUEST_NULL ? 1 : 2; left_open > 0; left_open -= number_done) {
          MPI_Waitsome(2, requests, &number_done, indices, statuses);
          if (number_done == MPI_UNDEFINED) break;
          for (int i = 0; i < number_done; ++i)
            if (indices[i] == 0) status = statuses[i];
        }
      }
      if (requests[0] != MPI_REQUEST_NULL) {
        requests[0] = received;
        MPI_Request_free(&requests[0]);
      }
    }
    int count = 0;
    MPI_Get_elements(&status, MPI_DOUBLE, &count);
    check(count == n && status.MPI_SOURCE == left && status.MPI_TAG == tag, "the status is wrong", round);
    for (int i = 0; i < n; ++i)
      check(from.memory[from.places[static_cast<std::size_t>(i)]] == number(left, round, i), "a number is wrong",
            round);
    std::uint64_t sum = 0;
    for (const double one : from.memory) sum = sum * 31 + static_cast<std::uint64_t>(static_cast<std::int64_t>(one));
    std::fprintf(out, "round %d count %d sum %016llx\n", round, count, static_cast<unsigned long long>(sum));
  }
  MPI_Comm_free(&turned);
  MPI_Comm_free(&line);
  std::fclose(out);
  return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
