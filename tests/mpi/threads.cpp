// Threads that send and receive typed messages at the same time, each with its own tag, types and ways of completing
// requests. MPI gives a handle that one thread has completed to another thread's next message at once. Writes down what
// came wrong, and a sum of all.
//   mpi_threads FILE [THREADS] [TURNS]
#include <mpi.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

int rank, other;

struct Result {
  std::uint64_t sum = 0;
  long wrong = 0;
};

int value_of(int of, int thread, int turn, int message, int i) {
  return of * 1'000'003 + thread * 100'003 + turn * 1009 + message * 13 + i;
}

// `count` ints, each `stride` from the last.
MPI_Datatype every(int stride, int count) {
  MPI_Datatype type;
  MPI_Type_vector(count, 1, stride, MPI_INT, &type);
  MPI_Type_commit(&type);
  return type;
}

void complete_each(int how, std::vector<MPI_Request>& requests) {
  const int count = static_cast<int>(requests.size());
  int index = 0, flag = 0, number = 0;
  std::vector<int> indices(requests.size());
  switch (how) {
    case 0:
      for (MPI_Request& one : requests) MPI_Wait(&one, MPI_STATUS_IGNORE);
      break;
    case 1:
      MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
      break;
    case 2:
      for (MPI_Request& one : requests)
        for (flag = 0; flag == 0;) MPI_Test(&one, &flag, MPI_STATUS_IGNORE);
      break;
    case 3:
      for (int i = 0; i < count; ++i) MPI_Waitany(count, requests.data(), &index, MPI_STATUS_IGNORE);
      break;
    case 4:
      for (int done = 0; done < count; done += number)
        MPI_Waitsome(count, requests.data(), &number, indices.data(), MPI_STATUSES_IGNORE);
      break;
    default:
      for (flag = 0; flag == 0;) MPI_Testall(count, requests.data(), &flag, MPI_STATUSES_IGNORE);
  }
}

// Both ranks take the same turns.
void exchange(int thread, int turns, Result& result) {
  constexpr int kMessages = 3, kMost = 1500, kWidest = 4;
  constexpr std::array<int, 5> kCounts{40, 65, 300, 700, kMost};
  std::mt19937 random(static_cast<unsigned>(thread) * 77 + 1);
  for (int turn = 0; turn < turns; ++turn) {
    const int how = static_cast<int>(random() % 6), count = kCounts[random() % kCounts.size()];
    const int out_stride = 2 + static_cast<int>(random() % (kWidest - 1));
    const int in_stride = 2 + static_cast<int>(random() % (kWidest - 1));
    MPI_Datatype out_type = every(out_stride, count), in_type = every(in_stride, count);
    std::vector<std::vector<int>> from(kMessages, std::vector<int>(kMost * kWidest)), to(from.size(), from[0]);
    std::vector<MPI_Request> requests(2 * kMessages);
    for (int m = 0; m < kMessages; ++m) {
      const auto at = static_cast<std::size_t>(m);
      for (int i = 0; i < count; ++i)
        from[at][static_cast<std::size_t>(i * out_stride)] = value_of(rank, thread, turn, m, i);
      MPI_Irecv(to[at].data(), 1, in_type, other, thread, MPI_COMM_WORLD, &requests[2 * at]);
      MPI_Isend(from[at].data(), 1, out_type, other, thread, MPI_COMM_WORLD, &requests[2 * at + 1]);
    }
    MPI_Type_free(&out_type);
    MPI_Type_free(&in_type);
    complete_each(how, requests);
    for (int m = 0; m < kMessages; ++m)
      for (int i = 0; i < count * in_stride; ++i) {
        const int seen = to[static_cast<std::size_t>(m)][static_cast<std::size_t>(i)];
        result.wrong += seen != (i % in_stride == 0 ? value_of(other, thread, turn, m, i / in_stride) : 0);
        result.sum = result.sum * 31 + static_cast<unsigned>(seen);
      }
  }
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0, ranks = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 2 || ranks != 2) return 2;
  other = 1 - rank;
  std::FILE* out = std::fopen((std::string(argv[1]) + "." + std::to_string(rank)).c_str(), "w");
  if (out == nullptr) return 2;
  const int number = argc > 2 ? std::atoi(argv[2]) : 4, turns = argc > 3 ? std::atoi(argv[3]) : 200;
  std::vector<Result> results(static_cast<std::size_t>(number));
  if (provided == MPI_THREAD_MULTIPLE) {
    exchange(0, turns, results[0]);  // alone first, so that receives are posted
    std::vector<std::thread> threads;
    for (int t = 1; t < number; ++t)
      threads.emplace_back([&, t] { exchange(t, turns, results[static_cast<std::size_t>(t)]); });
    exchange(0, turns, results[0]);
    for (std::thread& thread : threads) thread.join();
  }
  for (const Result& one : results)
    std::fprintf(out, "%ld wrong, sum %016llx\n", one.wrong, static_cast<unsigned long long>(one.sum));
  std::fclose(out);
  return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
