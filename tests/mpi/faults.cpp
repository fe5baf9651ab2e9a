// A program of MPI alone that faults.py runs under conditions that stand against the library: two ranks exchange typed
// messages and blocks by turns and write down what they receive.
//   mpi_faults FILE [unfinished | closed | truncated]
// unfinished: the ranks end without MPI_Finalize; closed: no other process may look into them; truncated: a block of a
// collective is longer than its receiver allows.
#include <linux/capability.h>
#include <mpi.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr int kTurns = 8, kInts = 3000;

// What a system without ptrace does: not even the same user may open this process' files.
bool close_to_others() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2]{};
  if (syscall(SYS_capget, &header, sets) != 0) return false;
  sets[0].effective &= ~(1u << CAP_SYS_PTRACE);
  return syscall(SYS_capset, &header, sets) == 0 && prctl(PR_SET_DUMPABLE, 0) == 0;
}

MPI_Datatype every_second(int ints) {
  MPI_Datatype type;
  MPI_Type_vector(ints, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  return type;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 2 ? argv[2] : "";
  if (mode == "closed" && !close_to_others()) return 77;
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 2 || ranks != 2) return 2;
  std::FILE* out = std::fopen((std::string(argv[1]) + "." + std::to_string(rank)).c_str(), "w");
  if (out == nullptr) return 2;
  const int other = 1 - rank;
  MPI_Datatype type = every_second(kInts);
  std::vector<int> from(2 * kInts), to(2 * kInts, -1);
  for (int turn = 0; turn < kTurns; ++turn) {
    for (int i = 0; i < 2 * kInts; ++i) from[static_cast<std::size_t>(i)] = 100'000 * rank + 10'000 * turn + i;
    if (turn % 2 == 0) {  // calls of several kinds, so that a tool that takes over only some would lose count
      MPI_Request request;
      MPI_Irecv(to.data(), 1, type, other, 3, MPI_COMM_WORLD, &request);
      MPI_Send(from.data(), 1, type, other, 3, MPI_COMM_WORLD);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Sendrecv(from.data(), 1, type, other, 3, to.data(), 1, type, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    int counts[2] = {0, 0}, places[2] = {0, 0};
    counts[other] = 1;
    const MPI_Datatype types[2] = {type, type};
    std::vector<int> behind(2 * kInts, -1);
    MPI_Alltoallw(from.data(), counts, places, types, behind.data(), counts, places, types, MPI_COMM_WORLD);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < to.size(); ++i)
      sum = sum * 31 + static_cast<unsigned>(to[i]) + 7 * static_cast<unsigned>(behind[i]);
    std::fprintf(out, "turn %d: %016llx\n", turn, static_cast<unsigned long long>(sum));
  }
  if (mode == "truncated") {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const MPI_Datatype shorter = every_second(kInts / 3);
    int counts[2] = {0, 0}, places[2] = {0, 0}, kind = 0;
    counts[other] = 1;
    const MPI_Datatype sent[2] = {type, type}, received[2] = {shorter, shorter};
    std::vector<int> behind(2 * kInts, -1);
    MPI_Error_class(
        MPI_Alltoallw(from.data(), counts, places, sent, behind.data(), counts, places, received, MPI_COMM_WORLD),
        &kind);
    bool untouched = kind == MPI_ERR_TRUNCATE;
    for (std::size_t i = 2 * kInts / 3; i < behind.size(); ++i) untouched = untouched && behind[i] == -1;
    if (!untouched) return 4;
  }
  std::fclose(out);
  if (mode == "unfinished") {
    MPI_Barrier(MPI_COMM_WORLD);
    _exit(0);
  }
  MPI_Type_free(&type);
  return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
