// Threads that exchange typed messages at the same time, by all kinds of calls, each with its own tags, types and
// communicators. MPI gives a handle that one thread has completed, or ended, to another thread at once. Writes down
// what came wrong, and a sum of all.
//   mpi_threads FILE [THREADS] [TURNS]
#include <mpi.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <utility>
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

// What one thread does; the thread of that number on the other rank does the same.
class Worker {
 public:
  Worker(int number, MPI_Comm parent, Result& result)
      : number_(number), parent_(parent), result_(result), random_(static_cast<unsigned>(number) * 77 + 1) {}

  void work(int turns) {
    MPI_Comm_dup(parent_, &comm_);
    for (int i = 0; i < turns; ++i, ++turn_) {
      count_ = kCounts[random_() % kCounts.size()];
      out_stride_ = 2 + static_cast<int>(random_() % (kWidest - 1));
      in_stride_ = 2 + static_cast<int>(random_() % (kWidest - 1));
      out_type_ = every(out_stride_, count_);
      in_type_ = every(in_stride_, count_);
      from_.assign(kMessages, std::vector<int>(kMost * kWidest));
      to_ = from_;
      for (int m = 0; m < kMessages; ++m)
        for (int k = 0; k < count_; ++k) from_[index(m)][index(k * out_stride_)] = value_of(rank, number_, turn_, m, k);
      switch (random_() % 8) {
        case 0:
        case 1:
          later(comm_);
          break;
        case 2:
          later(MPI_COMM_WORLD);
          break;
        case 3:
          persistent();
          break;
        case 4:
          freed();
          break;
        case 5:
          at_once();
          break;
        case 6:
          matched();
          break;
        default:
          blocks();
      }
      MPI_Type_free(&out_type_);
      MPI_Type_free(&in_type_);
      if (turn_ % 16 == 15) {
        MPI_Comm_free(&comm_);
        MPI_Comm_dup(parent_, &comm_);
      }
    }
    MPI_Comm_free(&comm_);
  }

 private:
  static constexpr int kMessages = 3, kMost = 1500, kWidest = 4;
  static constexpr std::array<int, 5> kCounts{40, 65, 300, 700, kMost};
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  int tag(int m) const { return number_ * kMessages + m; }

  // Message m has come, as every `stride`-th int.
  void check(const std::vector<int>& to, int m, int stride) {
    for (int i = 0; i < count_ * stride; ++i) {
      const int seen = to[index(i)];
      result_.wrong += seen != (i % stride == 0 ? value_of(other, number_, turn_, m, i / stride) : 0);
      result_.sum = result_.sum * 31 + static_cast<unsigned>(seen);
    }
  }
  void check_all() {
    for (int m = 0; m < kMessages; ++m) check(to_[index(m)], m, in_stride_);
  }

  // Typed messages, and between them plain ones, whose requests the library does not keep.
  void later(MPI_Comm comm) {
    std::vector<std::vector<int>> plain(kMessages, std::vector<int>(index(count_)));
    std::vector<MPI_Request> requests;
    const auto add = [&] { return &requests.emplace_back(); };
    for (int m = 0; m < kMessages; ++m) {
      int* out = from_[index(m)].data();
      MPI_Irecv(to_[index(m)].data(), 1, in_type_, other, tag(m), comm, add());
      MPI_Irecv(plain[index(m)].data(), count_, MPI_INT, other, tag(m), comm, add());
      MPI_Isend(out, 1, out_type_, other, tag(m), comm, add());
      MPI_Isend(out, 1, out_type_, other, tag(m), comm, add());
    }
    complete_each(static_cast<int>(random_() % 6), requests);
    check_all();
    for (int m = 0; m < kMessages; ++m) check(plain[index(m)], m, 1);
  }

  void persistent() {
    std::vector<MPI_Request> requests(2 * kMessages);
    for (int m = 0; m < kMessages; ++m) {
      MPI_Recv_init(to_[index(m)].data(), 1, in_type_, other, tag(m), comm_, &requests[index(m)]);
      MPI_Send_init(from_[index(m)].data(), 1, out_type_, other, tag(m), comm_, &requests[index(kMessages + m)]);
    }
    for (int start = 0; start < 3; ++start) {
      if (start == 1)
        for (MPI_Request& one : requests) MPI_Start(&one);
      else
        MPI_Startall(static_cast<int>(requests.size()), requests.data());
      complete_each(static_cast<int>(random_() % 6), requests);
      check_all();
      for (auto& one : to_) one.assign(one.size(), 0);
    }
    for (MPI_Request& one : requests) MPI_Request_free(&one);
  }

  // The sends' requests are freed at once. That the other rank has answered says that they are complete.
  void freed() {
    std::vector<MPI_Request> receives(kMessages);
    for (int m = 0; m < kMessages; ++m)
      MPI_Irecv(to_[index(m)].data(), 1, in_type_, other, tag(m), comm_, &receives[index(m)]);
    for (int m = 0; m < kMessages; ++m) {
      MPI_Request send = MPI_REQUEST_NULL;
      MPI_Isend(from_[index(m)].data(), 1, out_type_, other, tag(m), comm_, &send);
      MPI_Request_free(&send);
    }
    complete_each(static_cast<int>(random_() % 6), receives);
    check_all();
    int here = 1, there = 0;
    MPI_Sendrecv(&here, 1, MPI_INT, other, tag(0), &there, 1, MPI_INT, other, tag(0), comm_, MPI_STATUS_IGNORE);
    result_.wrong += there != 1;
  }

  void at_once() {
    MPI_Sendrecv(from_[0].data(), 1, out_type_, other, tag(0), to_[0].data(), 1, in_type_, other, tag(0), comm_,
                 MPI_STATUS_IGNORE);
    check(to_[0], 0, in_stride_);
    to_[1] = from_[1];
    MPI_Sendrecv_replace(to_[1].data(), 1, out_type_, other, tag(1), other, tag(1), comm_, MPI_STATUS_IGNORE);
    check(to_[1], 1, out_stride_);
    MPI_Request send = MPI_REQUEST_NULL;
    MPI_Issend(from_[2].data(), 1, out_type_, other, tag(2), comm_, &send);
    MPI_Recv(to_[2].data(), 1, in_type_, other, tag(2), comm_, MPI_STATUS_IGNORE);
    check(to_[2], 2, in_stride_);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
  }

  void matched() {
    std::vector<MPI_Request> requests(kMessages);
    for (int m = 0; m < kMessages; ++m)
      MPI_Isend(from_[index(m)].data(), 1, out_type_, other, tag(m), comm_, &requests[index(m)]);
    MPI_Status status;
    MPI_Probe(other, tag(0), comm_, &status);
    MPI_Recv(to_[0].data(), 1, in_type_, status.MPI_SOURCE, status.MPI_TAG, comm_, &status);
    int ints = 0;
    MPI_Get_count(&status, MPI_INT, &ints);
    result_.wrong += ints != count_;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Mprobe(other, tag(1), comm_, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(to_[1].data(), 1, in_type_, &message, MPI_STATUS_IGNORE);
    int there = 0;
    while (there == 0) MPI_Improbe(other, tag(2), comm_, &there, &message, MPI_STATUS_IGNORE);
    MPI_Imrecv(to_[2].data(), 1, in_type_, &message, &requests.emplace_back());
    complete_each(static_cast<int>(random_() % 6), requests);
    check_all();
  }

  // One block to each rank, and one from each. Those of this rank itself are empty.
  void blocks() {
    MPI_Comm ring = MPI_COMM_NULL;
    const int all = 2, periodic = 0;
    MPI_Cart_create(comm_, 1, &all, &periodic, 0, &ring);
    std::array<int, 2> counts{};
    counts[index(other)] = 1;
    const std::array<int, 2> at{};
    const std::array<MPI_Aint, 2> places{};
    const std::array<MPI_Datatype, 2> out{out_type_, out_type_}, in{in_type_, in_type_};
    for (int m = 0; m < kMessages; ++m) {
      if (m % 2 == 0)
        MPI_Alltoallw(from_[index(m)].data(), counts.data(), at.data(), out.data(), to_[index(m)].data(), counts.data(),
                      at.data(), in.data(), comm_);
      else  // the lower neighbour, and the upper one
        MPI_Neighbor_alltoallw(from_[index(m)].data(), counts.data(), places.data(), out.data(), to_[index(m)].data(),
                               counts.data(), places.data(), in.data(), ring);
    }
    check_all();
    MPI_Comm_free(&ring);
  }

  int number_, turn_ = 0;
  MPI_Comm parent_, comm_ = MPI_COMM_NULL;
  Result& result_;
  std::mt19937 random_;
  int count_ = 0, out_stride_ = 0, in_stride_ = 0;
  MPI_Datatype out_type_ = MPI_DATATYPE_NULL, in_type_ = MPI_DATATYPE_NULL;
  std::vector<std::vector<int>> from_, to_;
};

// A type is freed while another thread waits for a message of it, and others are made.
[[maybe_unused]] void free_while_used(Result& result) {
  constexpr int kCount = 500, kStride = 3, kOthers = 100, kTag = 9999;
  std::vector<int> data(kCount * kStride);
  MPI_Datatype type = every(kStride, kCount);
  if (rank == 0) {
    std::atomic<bool> begins{false};
    std::thread receiver([&] {
      MPI_Datatype used = type;
      begins = true;
      MPI_Recv(data.data(), 1, used, other, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    });
    while (!begins) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    MPI_Type_free(&type);
    std::vector<MPI_Datatype> others;
    std::vector<int> spread(2 * kOthers), packed(kOthers);
    for (int i = 0; i < kOthers; ++i) {
      others.push_back(every(2, i + 1));
      int position = 0;
      MPI_Pack(spread.data(), 1, others.back(), packed.data(), kOthers * 4, &position, MPI_COMM_SELF);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    receiver.join();
    for (MPI_Datatype& one : others) MPI_Type_free(&one);
    for (int i = 0; i < kCount; ++i) result.wrong += data[static_cast<std::size_t>(i * kStride)] != i;
  } else {
    for (int i = 0; i < kCount; ++i) data[static_cast<std::size_t>(i * kStride)] = i;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(data.data(), 1, type, other, kTag, MPI_COMM_WORLD);
    MPI_Type_free(&type);
  }
}

// Threads use a type for the first time, all at once.
void first_use(int number, Result& result) {
  constexpr int kTypes = 300, kCount = 100, kStride = 2;
  std::vector<MPI_Datatype> types;
  for (int i = 0; i < kTypes; ++i) types.push_back(every(kStride, kCount));
  std::atomic<int> arrived{0};
  std::atomic<long> wrong{0};
  const auto use = [&] {
    std::vector<int> spread(kCount * kStride), packed(kCount);
    for (int i = 0; i < kCount; ++i) spread[static_cast<std::size_t>(i * kStride)] = i;
    for (int t = 0; t < kTypes; ++t) {
      for (++arrived; arrived < (t + 1) * number;) std::this_thread::yield();
      int position = 0;
      MPI_Pack(spread.data(), 1, types[static_cast<std::size_t>(t)], packed.data(), kCount * 4, &position,
               MPI_COMM_SELF);
      for (int i = 0; i < kCount; ++i) wrong += std::exchange(packed[static_cast<std::size_t>(i)], -1) != i;
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < number; ++t) threads.emplace_back(use);
  for (std::thread& thread : threads) thread.join();
  for (MPI_Datatype& type : types) MPI_Type_free(&type);
  result.wrong += wrong;
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
    std::vector<MPI_Comm> parents(results.size());
    std::vector<Worker> workers;
    for (int t = 0; t < number; ++t) {
      MPI_Comm& parent = parents[static_cast<std::size_t>(t)];
      MPI_Comm_dup(MPI_COMM_WORLD, &parent);
      workers.emplace_back(t, parent, results[static_cast<std::size_t>(t)]);
    }
    workers[0].work(turns);  // alone first, so that receives are posted
    std::vector<std::thread> threads;
    for (int t = 1; t < number; ++t) threads.emplace_back([&, t] { workers[static_cast<std::size_t>(t)].work(turns); });
    workers[0].work(turns);
    for (std::thread& thread : threads) thread.join();
    for (MPI_Comm& parent : parents) MPI_Comm_free(&parent);
    first_use(number, results[0]);
#ifndef __SANITIZE_THREAD__  // nothing that it sees says that the receive has begun
    free_while_used(results[0]);
#endif
  }
  for (const Result& one : results)
    std::fprintf(out, "%ld wrong, sum %016llx\n", one.wrong, static_cast<unsigned long long>(one.sum));
  std::fclose(out);
  return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
