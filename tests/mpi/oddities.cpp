// What programs do wrong or seldom, in a program of MPI alone that writes down what it sees: types that are not
// committed, freed types, handles that are used again, ten thousand live types, truncation, absolute addresses, no
// process, to oneself, types that reach over more than 2 GiB, threads, a fork. `large` (5 GB of memory): a message of
// more than 2 GiB, too.
//   mpi_oddities FILE [fork] [large]
#include <mpi.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

int rank, ranks;
std::FILE* out;

int class_of(int status) {
  int kind = MPI_SUCCESS;
  MPI_Error_class(status, &kind);
  return kind;
}

std::uint64_t sum_of(const std::vector<int>& memory) {
  std::uint64_t sum = 0;
  for (const int one : memory) sum = sum * 31 + static_cast<unsigned>(one);
  return sum;
}

void log(const char* what, int status, const std::vector<int>& memory) {
  std::fprintf(out, "%s: class %d sum %016llx\n", what, class_of(status),
               static_cast<unsigned long long>(sum_of(memory)));
}

std::vector<int> numbers(int count) {
  std::vector<int> all(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) all[static_cast<std::size_t>(i)] = 1000 * rank + i;
  return all;
}

MPI_Datatype every(int stride, int count) {
  MPI_Datatype type;
  MPI_Type_vector(count, 1, stride, MPI_INT, &type);
  MPI_Type_commit(&type);
  return type;
}

// Memory of which only what is used exists.
class Sparse {
 public:
  explicit Sparse(std::int64_t bytes)
      : bytes_(static_cast<std::size_t>(bytes)),
        memory_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (memory_ == MAP_FAILED) std::exit(4);
  }
  Sparse(const Sparse&) = delete;
  Sparse& operator=(const Sparse&) = delete;
  ~Sparse() { munmap(memory_, bytes_); }
  char* at(std::int64_t byte) const { return static_cast<char*>(memory_) + byte; }

 private:
  std::size_t bytes_;
  void* memory_;
};

// Three blocks of 300 ints, every other one, 3 GB from each other, in five spellings.
void reach_far(int other) {
  constexpr std::int64_t kDistance = 3'000'000'008;
  constexpr int kInts = 600;
  const Sparse from(2 * kDistance + 4096), to(2 * kDistance + 4096);
  const MPI_Datatype block = every(2, kInts / 2);
  struct Far {
    MPI_Datatype type;
    int count;
  };
  std::vector<Far> all(4);
  const MPI_Aint places[3] = {0, kDistance, 2 * kDistance};
  const int ones[3] = {1, 1, 1};
  const MPI_Datatype blocks[3] = {block, block, block};
  MPI_Type_create_hvector(3, 1, kDistance, block, &all[0].type);
  MPI_Type_create_resized(block, 0, kDistance, &all[1].type);
  MPI_Type_create_struct(3, ones, places, blocks, &all[2].type);
  MPI_Type_create_hindexed_block(3, 1, places, block, &all[3].type);
  for (Far& one : all) one.count = 1;
  all[1].count = 3;
#if MPI_VERSION >= 4
  all.push_back({MPI_DATATYPE_NULL, 1});
  MPI_Type_create_hvector_c(3, 1, kDistance, block, &all.back().type);
#endif
  for (Far& one : all) MPI_Type_commit(&one.type);
  for (std::size_t turn = 0; turn < 3 * all.size(); ++turn) {
    const Far &out_type = all[turn % all.size()], &in_type = all[(turn / 2 + 1) % all.size()];
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < kInts; ++j) {
        const int value = 10'000 * static_cast<int>(turn) + 1000 * (i + 1) + j + 7 * rank;
        std::memcpy(from.at(i * kDistance + 4 * j), &value, sizeof value);
        std::memset(to.at(i * kDistance + 4 * j), 1, sizeof value);
      }
    MPI_Request request;
    MPI_Irecv(to.at(0), in_type.count, in_type.type, other, 12, MPI_COMM_WORLD, &request);
    const int sent = MPI_Send(from.at(0), out_type.count, out_type.type, other, 12, MPI_COMM_WORLD);
    MPI_Status status;
    const int received = MPI_Wait(&request, &status);
    int elements = 0;
    MPI_Get_elements(&status, MPI_INT, &elements);
    std::vector<int> seen(3 * kInts);
    for (int i = 0; i < 3; ++i)
      std::memcpy(&seen[static_cast<std::size_t>(i * kInts)], to.at(i * kDistance), 4 * kInts);
    log("3 GB from each other", sent == MPI_SUCCESS ? received : sent, seen);
    std::fprintf(out, "%d elements\n", elements);
  }
  for (Far& one : all) MPI_Type_free(&one.type);
  MPI_Datatype freed = block;
  MPI_Type_free(&freed);
#if MPI_VERSION >= 4
  MPI_Datatype empty;
  MPI_Type_contiguous(0, MPI_INT, &empty);
  MPI_Type_commit(&empty);
  MPI_Status status;
  log("3e9 empty elements",
      MPI_Sendrecv_c(from.at(0), 3'000'000'000, empty, other, 13, to.at(0), 3'000'000'000, empty, other, 13,
                     MPI_COMM_WORLD, &status),
      {});
  MPI_Type_free(&empty);
#endif
}

// From rank 0 to rank 1, in blocks of 4096 bytes with gaps of 8.
void send_large() {
  constexpr int kBlocks = 540'000, kBlock = 4096, kStride = 4104;
  static_assert(static_cast<std::int64_t>(kBlocks) * kBlock > std::int64_t{1} << 31);
  const Sparse memory(static_cast<std::int64_t>(kBlocks) * kStride);
  MPI_Datatype type;
  MPI_Type_create_hvector(kBlocks, kBlock, kStride, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; rank == 0 && i < kBlocks; ++i)
    std::memset(memory.at(i * kStride), static_cast<int>(i % 251), kBlock);
  const int status = rank == 0 ? MPI_Send(memory.at(0), 1, type, 1, 14, MPI_COMM_WORLD)
                               : MPI_Recv(memory.at(0), 1, type, 0, 14, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (std::int64_t i = 0; i < kBlocks; ++i)
    for (int j = 0; j < kStride && i * kStride + j < static_cast<std::int64_t>(kBlocks) * kStride; ++j)
      wrong += memory.at(i * kStride)[j] != static_cast<char>(j < kBlock ? i % 251 : 0);
  std::fprintf(out, "more than 2 GiB: class %d, %lld bytes wrong\n", class_of(status), static_cast<long long>(wrong));
  MPI_Type_free(&type);
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (argc < 2 || ranks != 2) return 2;
  out = std::fopen((std::string(argv[1]) + "." + std::to_string(rank)).c_str(), "w");
  if (out == nullptr) return 2;
  const int other = 1 - rank;
  MPI_Status status;

  std::vector<int> from = numbers(8000), to(8000, -1);
  MPI_Datatype loose;
  MPI_Type_vector(10, 1, 2, MPI_INT, &loose);
  log("not committed", MPI_Send(from.data(), 1, loose, other, 0, MPI_COMM_WORLD), to);
  MPI_Type_commit(&loose);
  log("committed",
      MPI_Sendrecv(from.data(), 1, loose, other, 0, to.data(), 1, loose, other, 0, MPI_COMM_WORLD, &status), to);
  MPI_Type_free(&loose);
  log("null type", MPI_Send(from.data(), 1, MPI_DATATYPE_NULL, other, 0, MPI_COMM_WORLD), to);

  // Handles come again, with other layouts.
  for (int i = 0; i < 200; ++i) {
    MPI_Datatype type = every(2 + i % 5, 100 + i);
    const int result =
        MPI_Sendrecv(from.data(), 1, type, other, 1, to.data(), 1, type, other, 1, MPI_COMM_WORLD, &status);
    if (i % 20 == 0) log("handle again", result, to);
    MPI_Type_free(&type);
  }
  std::vector<MPI_Datatype> many;
  for (int i = 0; i < 12000; ++i) many.push_back(every(2 + i % 7, 3 + i % 50));
  for (int i = 0; i < 12000; i += 7) {
    int position = 0;
    MPI_Pack(from.data(), 1, many[static_cast<std::size_t>(i)], to.data(), 4 * 8000, &position, MPI_COMM_WORLD);
  }
  log("12000 types", MPI_SUCCESS, to);
  for (MPI_Datatype& type : many) MPI_Type_free(&type);

  // Freed while messages use it; a shorter and a longer message than the receive.
  MPI_Request requests[2];
  MPI_Datatype type = every(3, 2000), shorter = every(2, 700), longer = every(2, 3000);
  MPI_Irecv(to.data(), 1, type, other, 2, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(from.data(), 1, shorter, other, 2, MPI_COMM_WORLD, &requests[1]);
  MPI_Type_free(&type);
  MPI_Type_free(&shorter);
  type = every(5, 900);  // maybe by the handle of one that is in use
  MPI_Status statuses[2];
  const int waited = MPI_Waitall(2, requests, statuses);
  int elements = 0;
  MPI_Get_elements(&statuses[0], MPI_INT, &elements);
  log("freed in use", waited, to);
  std::fprintf(out, "elements %d\n", elements);
  std::vector<int> room(8000, -1);
  MPI_Irecv(room.data(), 1, type, other, 3, MPI_COMM_WORLD, &requests[0]);
  MPI_Send(from.data(), 1, longer, other, 3, MPI_COMM_WORLD);
  std::fprintf(out, "too long: class %d\n", class_of(MPI_Wait(&requests[0], &status)));

  // Absolute addresses, nobody, oneself, nothing.
  MPI_Aint address = 0;
  MPI_Get_address(from.data(), &address);
  MPI_Datatype absolute;
  MPI_Type_create_hindexed_block(1, 1, &address, longer, &absolute);
  MPI_Type_commit(&absolute);
  log("absolute",
      MPI_Sendrecv(MPI_BOTTOM, 1, absolute, other, 4, to.data(), 1, longer, other, 4, MPI_COMM_WORLD, &status), to);
  log("nobody",
      MPI_Sendrecv(from.data(), 1, longer, MPI_PROC_NULL, 5, to.data(), 1, longer, MPI_PROC_NULL, 5, MPI_COMM_WORLD,
                   &status),
      to);
  log("oneself", MPI_Sendrecv(from.data(), 1, type, rank, 6, to.data(), 1, longer, rank, 6, MPI_COMM_WORLD, &status),
      to);
  log("nothing", MPI_Sendrecv(nullptr, 0, type, other, 7, nullptr, 0, longer, other, 7, MPI_COMM_WORLD, &status), to);

  // A receive whose elements overlap is an error that MPI need not find; all numbers are equal, so that it can be told
  // what comes of it. And a send whose elements do, which is none.
  {
    MPI_Datatype overlapping;
    MPI_Type_vector(1500, 2, 1, MPI_INT, &overlapping);
    MPI_Type_commit(&overlapping);
    const std::vector<int> sent(3000, 7);
    std::vector<int> behind(1502, -1);
    for (int turn = 0; turn < 3; ++turn)
      log("overlapping receive",
          MPI_Sendrecv(sent.data(), 3000, MPI_INT, other, 9, behind.data(), 1, overlapping, other, 9, MPI_COMM_WORLD,
                       &status),
          behind);
    std::vector<int> all(3000, -1);
    log("overlapping send",
        MPI_Sendrecv(from.data(), 1, overlapping, other, 10, all.data(), 3000, MPI_INT, other, 10, MPI_COMM_WORLD,
                     &status),
        all);
    std::fill(behind.begin(), behind.end(), -1);
    MPI_Request both[2];
    MPI_Recv_init(behind.data(), 1, overlapping, other, 11, MPI_COMM_WORLD, &both[0]);
    MPI_Send_init(sent.data(), 3000, MPI_INT, other, 11, MPI_COMM_WORLD, &both[1]);
    for (int turn = 0; turn < 4; ++turn) {
      MPI_Startall(2, both);
      log("overlapping, persistent", MPI_Waitall(2, both, MPI_STATUSES_IGNORE), behind);
    }
    for (MPI_Request& one : both) MPI_Request_free(&one);
    MPI_Type_free(&overlapping);
  }

  reach_far(other);
  if (argc > 3 && std::strcmp(argv[3], "large") == 0) send_large();

  // Two threads, each with its own tag.
  if (provided == MPI_THREAD_MULTIPLE) {
    std::vector<std::vector<int>> of_threads(2, std::vector<int>(8000, -1));
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t)
      threads.emplace_back([&, t] {
        auto& mine = of_threads[static_cast<std::size_t>(t)];
        for (int i = 0; i < 50; ++i) {
          MPI_Request request;
          MPI_Irecv(mine.data(), 1, type, other, 10 + t, MPI_COMM_WORLD, &request);
          MPI_Send(from.data() + i, 1, type, other, 10 + t, MPI_COMM_WORLD);
          MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (const auto& one : of_threads) log("thread", MPI_SUCCESS, one);
  }
  MPI_Type_free(&absolute);
  MPI_Type_free(&longer);
  MPI_Type_free(&type);
  if (argc > 2 && std::strcmp(argv[2], "fork") == 0) {
    const pid_t child = fork();
    if (child == 0) _exit(7);
    int how = 0;
    waitpid(child, &how, 0);
    std::fprintf(out, "child %d\n", WEXITSTATUS(how));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  std::fclose(out);
  return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
