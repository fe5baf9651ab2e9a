// A random MPI program that knows nothing of Tasuki: typed messages of all kinds between all ranks, received by other
// types than they were sent by, completed in all ways. Each rank writes what it saw (source, tag, counts, every byte of
// the buffers) to a file, so that two runs can be compared.
//   mpi_messages FILE [ROUNDS [SEED]]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "random_types.hpp"

namespace {

using random_types::below;
using random_types::between;
using random_types::Random;

int rank, ranks;
std::FILE* out;
std::vector<char> attached(4 << 20);

/// Integers at random places: a type, how many of it, and the memory that it names.
struct Data {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  int count = 0;
  int ints = 0;
  std::vector<int> memory;
  void* base = nullptr;
  Data() = default;
  Data(const Data&) = delete;
  ~Data() {
    if (type != MPI_DATATYPE_NULL) MPI_Type_free(&type);
  }
};

// A type whose elements do not overlap, of about `wanted` integers or some more.
void make(Data& data, Random& random, int wanted) {
  const int blocks = between(random, 1, 12);
  const int each = (wanted + blocks - 1) / blocks;
  MPI_Aint extent = 0, low = 0;
  const int hole = between(random, 0, 3);
  switch (below(random, 7)) {
    case 0:
      MPI_Type_vector(blocks, each, each + hole, MPI_INT, &data.type);
      break;
    case 1:
      MPI_Type_create_hvector(blocks, each, static_cast<MPI_Aint>(-4) * (each + 3), MPI_INT, &data.type);
      break;
    case 2: {
      std::vector<int> lengths, places;
      for (int b = 0, at = 5; b < blocks; ++b) {
        lengths.push_back(between(random, std::max(each - 1, 0), each + 1));
        places.push_back(at);
        at += lengths.back() + below(random, 3);
      }
      MPI_Type_indexed(blocks, lengths.data(), places.data(), MPI_INT, &data.type);
      break;
    }
    case 3: {
      const int sizes[] = {blocks + 1, each + 2, 3}, parts[] = {blocks, each, 2}, starts[] = {1, 1, 0};
      MPI_Type_create_subarray(3, sizes, parts, starts, below(random, 2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, MPI_INT,
                               &data.type);
      break;
    }
    case 4: {
      MPI_Datatype row;
      MPI_Type_vector(each, 1, 2, MPI_INT, &row);
      MPI_Type_create_hvector(blocks, 1, static_cast<MPI_Aint>(8) * each + 4 * hole, row, &data.type);
      MPI_Type_free(&row);
      break;
    }
    case 5: {
      MPI_Datatype pair;
      MPI_Type_create_resized(MPI_INT, 0, 8, &pair);
      const int lengths[] = {each, each};
      const MPI_Aint places[] = {static_cast<MPI_Aint>(8) * each + 16, 4};
      const MPI_Datatype parts[] = {pair, pair};
      MPI_Type_create_struct(2, lengths, places, parts, &data.type);
      MPI_Type_free(&pair);
      break;
    }
    default:
      MPI_Type_contiguous(each * blocks, MPI_INT, &data.type);
  }
  MPI_Type_commit(&data.type);
  int size = 0;
  MPI_Type_size(data.type, &size);
  data.count = std::max(1, (wanted * 4 + size - 1) / std::max(size, 1));
  data.ints = data.count * size / 4;
  MPI_Aint true_low = 0, true_extent = 0;
  MPI_Type_get_extent(data.type, &low, &extent);
  MPI_Type_get_true_extent(data.type, &true_low, &true_extent);
  const MPI_Aint reach = true_extent + std::abs(extent) * (data.count - 1) + std::abs(true_low) + 64;
  data.memory.resize(static_cast<std::size_t>(reach) / 2 + 64);
  for (int& number : data.memory) number = static_cast<int>(random());
  data.base = data.memory.data() + data.memory.size() / 2 - static_cast<std::size_t>(true_extent / 8);
}

struct Message {
  int from, to, tag, ints;
  int sends, receives;  // how
  bool any_source;
};

std::uint64_t sum_of(const Data& data) {
  std::uint64_t sum = 14695981039346656037u;
  for (const int number : data.memory) sum = (sum ^ static_cast<unsigned>(number)) * 1099511628211u;
  return sum;
}

void log(const Message& message, const Data& data, const MPI_Status& status) {
  int count = 0, elements = 0, bytes = 0;
  MPI_Get_count(&status, data.type, &count);
  MPI_Get_elements(&status, data.type, &elements);
  MPI_Get_count(&status, MPI_INT, &bytes);
  std::fprintf(out, "from %d tag %d count %d elements %d ints %d sum %016llx\n", status.MPI_SOURCE, status.MPI_TAG,
               count, elements, bytes, static_cast<unsigned long long>(sum_of(data)));
  (void)message;
}

void probe_and_log(int from, int tag) {
  MPI_Status status;
  int ints = 0;
  MPI_Probe(from, tag, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, MPI_INT, &ints);
  std::fprintf(out, "probed %d tag %d ints %d\n", status.MPI_SOURCE, status.MPI_TAG, ints);
}

// Completes all requests, in a way that the random numbers choose; `done(i, status)` for each.
template <class Done>
void complete(std::vector<MPI_Request>& requests, Random& random, const Done& done) {
  const int count = static_cast<int>(requests.size());
  std::vector<MPI_Status> statuses(requests.size());
  std::vector<int> indices(requests.size());
  const int way = below(random, 8);
  if (way == 0) {
    MPI_Waitall(count, requests.data(), statuses.data());
    for (int i = 0; i < count; ++i) done(i, statuses[static_cast<std::size_t>(i)]);
  } else if (way == 1) {
    for (int i = 0; i < count; ++i) {
      MPI_Wait(&requests[static_cast<std::size_t>(i)], &statuses[0]);
      done(i, statuses[0]);
    }
  } else if (way == 2) {
    for (int flag = 0; !flag;) MPI_Testall(count, requests.data(), &flag, statuses.data());
    for (int i = 0; i < count; ++i) done(i, statuses[static_cast<std::size_t>(i)]);
  } else if (way == 3 || way == 4) {
    for (int left = count; left > 0;) {
      int number = 0;
      if (way == 3)
        MPI_Waitsome(count, requests.data(), &number, indices.data(), statuses.data());
      else
        MPI_Testsome(count, requests.data(), &number, indices.data(), statuses.data());
      if (number == MPI_UNDEFINED) break;
      for (int i = 0; i < number; ++i)
        done(indices[static_cast<std::size_t>(i)], statuses[static_cast<std::size_t>(i)]);
      left -= number;
    }
  } else if (way == 5 || way == 6) {
    for (int left = count; left > 0; --left) {
      int index = MPI_UNDEFINED, flag = 0;
      if (way == 5)
        MPI_Waitany(count, requests.data(), &index, &statuses[0]);
      else
        while (!flag) MPI_Testany(count, requests.data(), &index, &flag, &statuses[0]);
      if (index == MPI_UNDEFINED) break;
      done(index, statuses[0]);
    }
  } else {
    for (int i = 0; i < count; ++i) {
      MPI_Request& request = requests[static_cast<std::size_t>(i)];
      int flag = request == MPI_REQUEST_NULL;
      while (!flag) MPI_Request_get_status(request, &flag, &statuses[0]);
      done(i, statuses[0]);  // the data are there
      for (flag = 0; !flag;) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    }
  }
}

enum { kNow = 4, kWays = 8 };  // ways below kNow need the receive to be posted

MPI_Request send(const Message& message, const Data& data) {
  MPI_Request request = MPI_REQUEST_NULL;
  const auto call = [&](auto function) {
    function(data.base, data.count, data.type, message.to, message.tag, MPI_COMM_WORLD);
  };
  const auto start = [&](auto function) {
    function(data.base, data.count, data.type, message.to, message.tag, MPI_COMM_WORLD, &request);
  };
  switch (message.sends) {
    case 0:
      call(MPI_Send);
      break;
    case 1:
      call(MPI_Ssend);
      break;
    case 2:
      call(MPI_Rsend);
      break;
    case 3:
      start(MPI_Irsend);
      break;
    case 4:
      start(MPI_Isend);
      break;
    case 5:
      start(MPI_Issend);
      break;
    case 6:
      call(MPI_Bsend);
      break;
    default:
      start(MPI_Ibsend);
  }
  return request;
}

void round_of_messages(Random& random) {
  // The same on all ranks: who sends what to whom.
  const bool posted_first = below(random, 2) == 0;
  std::vector<Message> messages;
  const int number = between(random, 1, 6);
  for (int i = 0; i < number; ++i)
    messages.push_back({below(random, ranks), below(random, ranks), 100 + i,
                        below(random, 6) == 0 ? between(random, 20000, 60000) : between(random, 1, 300),
                        posted_first ? below(random, kWays) : between(random, kNow, kWays - 1), below(random, 4),
                        below(random, 3) == 0});
  Random own(random() + static_cast<std::uint64_t>(rank));
  std::vector<Data> sent(messages.size()), received(messages.size());
  std::vector<MPI_Request> requests;
  std::vector<int> whose;
  const auto receive = [&](std::size_t i, bool blocking) {
    const Message& message = messages[i];
    Data& data = received[i];
    make(data, own, 4 * message.ints + 60 + below(own, 40));
    const int from = message.any_source ? MPI_ANY_SOURCE : message.from;
    MPI_Status status;
    if (blocking && message.receives == 0) {
      MPI_Recv(data.base, data.count, data.type, from, message.tag, MPI_COMM_WORLD, &status);
      return log(message, data, status);
    }
    if (blocking && message.receives == 1) {
      probe_and_log(from, message.tag);
      MPI_Recv(data.base, data.count, data.type, from, message.tag, MPI_COMM_WORLD, &status);
      return log(message, data, status);
    }
    MPI_Request request;
    if (blocking && message.receives == 2) {
      MPI_Message matched;
      MPI_Mprobe(from, message.tag, MPI_COMM_WORLD, &matched, &status);
      if (below(own, 2) == 0) {
        MPI_Mrecv(data.base, data.count, data.type, &matched, &status);
        return log(message, data, status);
      }
      MPI_Imrecv(data.base, data.count, data.type, &matched, &request);
    } else {
      MPI_Irecv(data.base, data.count, data.type, from, message.tag, MPI_COMM_WORLD, &request);
    }
    requests.push_back(request);
    whose.push_back(static_cast<int>(i));
  };
  if (posted_first)
    for (std::size_t i = 0; i < messages.size(); ++i)
      if (messages[i].to == rank) receive(i, false);
  // One receive of which no message comes.
  Data nothing;
  make(nothing, own, 50);
  MPI_Request never;
  MPI_Irecv(nothing.base, nothing.count, nothing.type, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &never);
  if (posted_first) MPI_Barrier(MPI_COMM_WORLD);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].from != rank) continue;
    make(sent[i], own, messages[i].ints);
    const MPI_Request request = send(messages[i], sent[i]);
    if (below(own, 4) == 0) {
      MPI_Type_free(&sent[i].type);  // while it is in use
      sent[i].type = MPI_DATATYPE_NULL;
    }
    if (request == MPI_REQUEST_NULL) continue;
    requests.push_back(request);
    whose.push_back(-1);
  }
  if (!posted_first)
    for (std::size_t i = 0; i < messages.size(); ++i)
      if (messages[i].to == rank) receive(i, true);
  std::vector<MPI_Status> statuses(messages.size());
  complete(requests, own, [&](int i, const MPI_Status& status) {
    const int message = whose[static_cast<std::size_t>(i)];
    if (message >= 0) statuses[static_cast<std::size_t>(message)] = status;
  });
  for (std::size_t i = 0; i < messages.size(); ++i)
    if (std::count(whose.begin(), whose.end(), static_cast<int>(i)) > 0) log(messages[i], received[i], statuses[i]);
  MPI_Status status;
  int cancelled = 0;
  MPI_Cancel(&never);
  MPI_Wait(&never, &status);
  MPI_Test_cancelled(&status, &cancelled);
  std::fprintf(out, "cancelled %d sum %016llx\n", cancelled, static_cast<unsigned long long>(sum_of(nothing)));
  MPI_Barrier(MPI_COMM_WORLD);
}

// Around a ring: Sendrecv, Sendrecv_replace, persistent requests.
void ring(Random& random) {
  const int ints = between(random, 1, 2000);
  const int rounds = between(random, 1, 3);
  Random own(random() + static_cast<std::uint64_t>(rank));
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  Data to, from, both;
  make(to, own, ints);
  make(from, own, 4 * ints + 100);
  // The same number of integers everywhere.
  MPI_Type_vector(ints, 1, 3, MPI_INT, &both.type);
  MPI_Type_commit(&both.type);
  both.count = 1;
  both.memory.resize(static_cast<std::size_t>(3 * ints));
  for (int& number : both.memory) number = static_cast<int>(own());
  both.base = both.memory.data();
  MPI_Status status;
  MPI_Sendrecv(to.base, to.count, to.type, right, 1, from.base, from.count, from.type, left, 1, MPI_COMM_WORLD,
               &status);
  log({}, from, status);
  MPI_Sendrecv_replace(both.base, 1, both.type, right, 2, left, 2, MPI_COMM_WORLD, &status);
  log({}, both, status);
  std::vector<MPI_Request> requests(2);
  MPI_Recv_init(from.base, from.count, from.type, left, 3, MPI_COMM_WORLD, &requests[0]);
  if (below(own, 2) == 0)
    MPI_Send_init(to.base, to.count, to.type, right, 3, MPI_COMM_WORLD, &requests[1]);
  else
    MPI_Ssend_init(to.base, to.count, to.type, right, 3, MPI_COMM_WORLD, &requests[1]);
  for (int i = 0; i < rounds; ++i) {
    for (int& number : to.memory) number = static_cast<int>(own());
    MPI_Startall(2, requests.data());
    MPI_Status seen{};
    complete(requests, own, [&](int which, const MPI_Status& one) {
      if (which == 0) seen = one;
    });
    log({}, from, seen);
  }
  for (MPI_Request& request : requests) MPI_Request_free(&request);
}

void pack_and_unpack(Random& random) {
  Random own(random() + static_cast<std::uint64_t>(rank));
  Data from, to;
  make(from, own, between(own, 1, 500));
  make(to, own, from.ints);
  std::vector<char> packed(static_cast<std::size_t>(4 * from.ints + 4 * to.ints) + 100);
  int position = 3;
  MPI_Pack(from.base, from.count, from.type, packed.data(), static_cast<int>(packed.size()), &position, MPI_COMM_WORLD);
  std::fprintf(out, "packed to %d\n", position);
  position = 3;
  MPI_Unpack(packed.data(), static_cast<int>(packed.size()), &position, to.base, to.count, to.type, MPI_COMM_SELF);
  std::fprintf(out, "unpacked to %d sum %016llx\n", position, static_cast<unsigned long long>(sum_of(to)));
}

// Each rank sends each other one a box of its own type.
void alltoallw(Random& random) {
  const int ints = between(random, 1, 400);
  Random own(random() + static_cast<std::uint64_t>(rank));
  const std::size_t n = static_cast<std::size_t>(ranks);
  std::vector<int> out_memory(n * static_cast<std::size_t>(ints) * 3), in_memory(out_memory.size());
  for (int& number : out_memory) number = static_cast<int>(own());
  for (int& number : in_memory) number = static_cast<int>(own());
  MPI_Datatype apart, together;
  MPI_Type_vector(ints, 1, 3, MPI_INT, &apart);
  MPI_Type_contiguous(ints, MPI_INT, &together);
  MPI_Type_commit(&apart);
  MPI_Type_commit(&together);
  std::vector<int> ones(n, 1), places(n);
  std::vector<MPI_Aint> far(n);
  std::vector<MPI_Datatype> out_types(n), in_types(n);
  for (std::size_t i = 0; i < n; ++i) {
    places[i] = static_cast<int>(i) * ints * 12;
    far[i] = places[i];
    out_types[i] = below(own, 3) ? apart : together;
    in_types[i] = below(own, 3) ? apart : together;
  }
  const auto log_memory = [&](const char* what) {
    std::uint64_t sum = 0;
    for (const int number : in_memory) sum = sum * 1099511628211u + static_cast<unsigned>(number);
    std::fprintf(out, "%s sum %016llx\n", what, static_cast<unsigned long long>(sum));
  };
  MPI_Alltoallw(out_memory.data(), ones.data(), places.data(), out_types.data(), in_memory.data(), ones.data(),
                places.data(), in_types.data(), MPI_COMM_WORLD);
  log_memory("alltoallw");
  MPI_Comm line;
  const int dims[] = {ranks}, periods[] = {1};
  MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &line);
  std::vector<int> two(2, 1);
  const std::vector<MPI_Aint> at{0, ranks > 1 ? far[1] : 0};
  std::vector<int> before = in_memory;
  in_memory.resize(std::max(in_memory.size(), std::size_t{6} * static_cast<std::size_t>(ints)));
  out_memory.resize(in_memory.size());
  const std::vector<MPI_Aint> apart_at{0, static_cast<MPI_Aint>(ints) * 12};
  const std::vector<MPI_Datatype> sends{apart, together}, receives{apart, apart};
  MPI_Neighbor_alltoallw(out_memory.data(), two.data(), apart_at.data(), sends.data(), in_memory.data(), two.data(),
                         apart_at.data(), receives.data(), line);
  log_memory("neighbor_alltoallw");
  MPI_Comm_free(&line);
  MPI_Type_free(&apart);
  MPI_Type_free(&together);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 2) return 2;
  out = std::fopen((std::string(argv[1]) + "." + std::to_string(rank)).c_str(), "w");
  if (out == nullptr) return 2;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 50;
  Random random(argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1);
  MPI_Buffer_attach(attached.data(), static_cast<int>(attached.size()));
  for (int i = 0; i < rounds; ++i) {
    std::fprintf(out, "round %d\n", i);
    round_of_messages(random);
    if (i % 3 == 0) ring(random);
    if (i % 4 == 0) pack_and_unpack(random);
    if (i % 5 == 0) alltoallw(random);
  }
  void* buffer;
  int size;
  MPI_Buffer_detach(&buffer, &size);
  std::fclose(out);
  return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
