// A random MPI program in which many messages have one tag, so that it shows in which order messages and receives are
// matched: receives of any source or any tag, all probes, receives that are cancelled, persistent requests, several
// communicators, typed and plain data of all sizes. Each rank writes what it saw to a file, so that two runs can be
// compared: between two ranks the order of messages and the order of receives alone say what is matched, and a receive
// from any source has a tag that only one rank sends.
//   mpi_matching FILE [ROUNDS [SEED]]
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "random_types.hpp"

namespace {

using random_types::below;
using random_types::between;
using random_types::Random;

int rank, ranks;
std::FILE* out;
std::vector<char> attached(16 << 20);
constexpr int kTags = 3;  // that a rank sends
constexpr int kNobody = 999;

int tag_of(int source, int which) {
  return source * kTags + which;
}

/// Integers, one after the other or at equal distances, of which every byte is seen.
struct Data {
  Data(int ints, int block, int gap) : n(ints / block), memory(static_cast<std::size_t>(n) * (block + gap) + 4) {
    if (gap == 0) {
      type = MPI_INT;
      count = n * block;
    } else {
      MPI_Type_vector(n, block, block + gap, MPI_INT, &type);
      MPI_Type_commit(&type);
      count = 1;
    }
  }
  Data(const Data&) = delete;
  ~Data() {
    if (type != MPI_INT) MPI_Type_free(&type);
  }
  void fill(Random& random) {
    for (int& number : memory) number = static_cast<int>(random());
  }
  std::uint64_t sum() const {
    std::uint64_t all = 14695981039346656037u;
    for (const int number : memory) all = (all ^ static_cast<unsigned>(number)) * 1099511628211u;
    return all;
  }
  int n, count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  std::vector<int> memory;
};

std::unique_ptr<Data> data(Random& random, int ints) {
  const int block = std::vector<int>{1, 2, 5, 600}[static_cast<std::size_t>(below(random, 4))];
  const int all = (ints + block - 1) / block * block;
  return std::make_unique<Data>(all, block, below(random, 4) == 0 ? 0 : between(random, 1, 3));
}

struct Message {
  int from, to, comm, tag, ints;
};
struct Receive {
  int message;  // that it matches
  int source, tag, comm;
};

// What all ranks know: who sends what to whom, and by which receives it is received. A receive is chosen, and is
// matched with the first message left that it may take.
void choose(Random& random, int comms, std::vector<Message>& messages, std::vector<Receive>& receives) {
  const int number = between(random, 4, 24);
  const bool any = below(random, 2) == 0;
  for (int i = 0; i < number; ++i) {
    const int from = below(random, ranks);
    const int size = below(random, 4);
    const int ints = size == 0   ? between(random, 1, 40)
                     : size == 1 ? between(random, 400, 3000)
                     : size == 2 ? between(random, 3000, 20000)
                                 : 30 * between(random, 20, 2000);
    messages.push_back({from, below(random, ranks), below(random, comms), tag_of(from, below(random, kTags)), ints});
  }
  std::vector<int> left(messages.size());
  for (std::size_t i = 0; i < left.size(); ++i) left[i] = static_cast<int>(i);
  while (!left.empty()) {
    const Message& wanted = messages[static_cast<std::size_t>(
        left[static_cast<std::size_t>(below(random, static_cast<int>(left.size())))])];
    Receive receive{0, wanted.from, wanted.tag, wanted.comm};
    const int wild = any ? below(random, 6) : -1;
    if (wild == 0) receive.source = MPI_ANY_SOURCE;
    if (wild == 1) receive.tag = MPI_ANY_TAG;
    const auto found = std::find_if(left.begin(), left.end(), [&](int i) {
      const Message& one = messages[static_cast<std::size_t>(i)];
      return one.from == wanted.from && one.to == wanted.to && one.comm == wanted.comm &&
             (wild == 1 || one.tag == wanted.tag);
    });
    receive.message = *found;
    receives.push_back(receive);
    left.erase(found);
  }
}

void log(const char* how, const Data& data, const MPI_Status& status) {
  int ints = 0;
  MPI_Get_elements(&status, MPI_INT, &ints);
  std::fprintf(out, "%s: from %d tag %d ints %d sum %016llx\n", how, status.MPI_SOURCE, status.MPI_TAG, ints,
               static_cast<unsigned long long>(data.sum()));
}

struct Open {  // a request of this rank's, and what it is
  MPI_Request request;
  Data* data;
  bool receives;
};

// A request that is started and completed, in one of several ways.
void complete(Random& random, std::vector<Open>& open) {
  std::vector<MPI_Request> requests;
  for (const Open& one : open) requests.push_back(one.request);
  std::vector<MPI_Status> statuses(open.size());
  const int count = static_cast<int>(open.size());
  const int way = below(random, 4);
  if (way == 0) {
    MPI_Waitall(count, requests.data(), statuses.data());
  } else if (way == 1) {
    for (int i = count; i-- > 0;) {
      MPI_Request& request = requests[static_cast<std::size_t>(i)];
      for (int flag = 0; !flag;) MPI_Test(&request, &flag, &statuses[static_cast<std::size_t>(i)]);
    }
  } else {
    std::vector<int> indices(open.size());
    std::vector<MPI_Status> some(open.size());
    for (int left = count; left > 0;) {
      int number = 1;
      if (way == 2)
        MPI_Waitany(count, requests.data(), indices.data(), some.data());
      else
        MPI_Waitsome(count, requests.data(), &number, indices.data(), some.data());
      if (number == MPI_UNDEFINED || indices[0] == MPI_UNDEFINED) {
        std::fprintf(stderr, "mpi_matching: rank %d: %d requests are lost\n", rank, left);
        MPI_Abort(MPI_COMM_WORLD, 1);
      }
      for (int i = 0; i < number; ++i)
        statuses[static_cast<std::size_t>(indices[static_cast<std::size_t>(i)])] = some[static_cast<std::size_t>(i)];
      left -= number;
    }
  }
  for (std::size_t i = 0; i < open.size(); ++i) {
    open[i].request = requests[i];
    if (open[i].receives) log("received", *open[i].data, statuses[i]);
  }
}

void free_all(std::vector<Open>& open) {
  for (Open& one : open)
    if (one.request != MPI_REQUEST_NULL) MPI_Request_free(&one.request);  // persistent
  open.clear();
}

void round(Random& random, const std::vector<MPI_Comm>& comms) {
  std::vector<Message> messages;
  std::vector<Receive> receives;
  choose(random, static_cast<int>(comms.size()), messages, receives);
  const bool posted = below(random, 3) > 0;     // receives before sends
  const bool blocking = below(random, 2) == 0;  // receives, if they are not
  const bool cancels = below(random, 8) == 0;
  const int starts = below(random, 3) == 0 ? 3 : 1;  // of persistent requests: all that is sent is, then
  Random own(random() + static_cast<std::uint64_t>(rank));
  std::vector<std::unique_ptr<Data>> all;
  std::vector<Open> sent, received;
  const auto comm_of = [&](int which) { return comms[static_cast<std::size_t>(which)]; };
  const auto receive_all = [&] {
    for (const Receive& receive : receives) {
      const Message& message = messages[static_cast<std::size_t>(receive.message)];
      if (message.to != rank) continue;
      Data& into = *all.emplace_back(data(own, message.ints + 1200 + below(own, 100)));
      MPI_Comm comm = comm_of(receive.comm);
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Message matched;
      MPI_Status status;
      const int way = below(own, 5);
      const char* how = "received";
      if (starts > 1) {
        MPI_Recv_init(into.memory.data(), into.count, into.type, receive.source, receive.tag, comm, &request);
      } else if (posted || !blocking) {
        MPI_Irecv(into.memory.data(), into.count, into.type, receive.source, receive.tag, comm, &request);
      } else if (way == 0) {
        MPI_Probe(receive.source, receive.tag, comm, &status);
        MPI_Recv(into.memory.data(), into.count, into.type, status.MPI_SOURCE, status.MPI_TAG, comm, &status);
        how = "probed";
      } else if (way == 1) {
        for (int flag = 0; !flag;) MPI_Improbe(receive.source, receive.tag, comm, &flag, &matched, &status);
        MPI_Mrecv(into.memory.data(), into.count, into.type, &matched, &status);
        how = "matched";
      } else if (way == 2) {
        for (int flag = 0; !flag;) MPI_Iprobe(receive.source, receive.tag, comm, &flag, &status);
        MPI_Recv(into.memory.data(), into.count, into.type, receive.source, receive.tag, comm, &status);
        how = "probed";
      } else {
        MPI_Recv(into.memory.data(), into.count, into.type, receive.source, receive.tag, comm, &status);
      }
      if (request != MPI_REQUEST_NULL)
        received.push_back({request, &into, true});
      else
        log(how, into, status);
    }
  };
  // Receives of which no message comes, here and there.
  const auto cancel_one = [&] {
    Data& into = *all.emplace_back(data(own, 1000));
    MPI_Request never;
    MPI_Status status;
    int cancelled = 0;
    MPI_Irecv(into.memory.data(), into.count, into.type, below(own, ranks), kNobody, comm_of(0), &never);
    MPI_Cancel(&never);
    MPI_Wait(&never, &status);
    MPI_Test_cancelled(&status, &cancelled);
    std::fprintf(out, "cancelled %d sum %016llx\n", cancelled, static_cast<unsigned long long>(into.sum()));
  };
  if (cancels) cancel_one();
  if (posted || starts > 1) receive_all();
  if (starts == 1 && posted && below(random, 2) == 0) MPI_Barrier(MPI_COMM_WORLD);
  for (const Message& message : messages) {
    if (message.from != rank) continue;
    Data& from = *all.emplace_back(data(own, message.ints));
    from.fill(own);
    MPI_Comm comm = comm_of(message.comm);
    MPI_Request request = MPI_REQUEST_NULL;
    const auto call = [&](auto function) {
      function(from.memory.data(), from.count, from.type, message.to, message.tag, comm);
    };
    const auto start = [&](auto function) {
      function(from.memory.data(), from.count, from.type, message.to, message.tag, comm, &request);
    };
    const int way = below(own, 8);
    if (starts > 1)
      way < 4 ? start(MPI_Send_init) : way < 6 ? start(MPI_Bsend_init) : start(MPI_Ssend_init);
    else if (way == 0 && posted)
      call(MPI_Send);
    else if (way == 1 && posted)
      call(MPI_Ssend);
    else if (way < 5)
      start(MPI_Isend);
    else if (way == 5)
      start(MPI_Issend);
    else if (way == 6)
      call(MPI_Bsend);
    else
      start(MPI_Ibsend);
    if (request != MPI_REQUEST_NULL) sent.push_back({request, &from, false});
  }
  if (!posted && starts == 1) receive_all();
  const std::size_t receiving = received.size();
  received.insert(received.end(), sent.begin(), sent.end());
  for (int turn = 0; turn < starts; ++turn) {
    if (starts > 1) {
      std::vector<MPI_Request> requests;
      for (const Open& one : received) requests.push_back(one.request);
      for (std::size_t i = receiving; i < received.size(); ++i) received[i].data->fill(own);
      // The receives in their order, then the sends in theirs.
      if (turn % 2 == 0 && !requests.empty())
        MPI_Startall(static_cast<int>(requests.size()), requests.data());
      else
        for (MPI_Request& request : requests) MPI_Start(&request);
      // Open MPI gives a buffered send that is still on its way another handle.
      for (std::size_t i = 0; i < received.size(); ++i) received[i].request = requests[i];
    }
    complete(own, received);
  }
  free_all(received);
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 2) return 2;
  out = std::fopen((std::string(argv[1]) + "." + std::to_string(rank)).c_str(), "w");
  if (out == nullptr) return 2;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 100;
  Random random(argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1);
  MPI_Buffer_attach(attached.data(), static_cast<int>(attached.size()));
  MPI_Comm again;
  MPI_Comm_dup(MPI_COMM_WORLD, &again);
  for (int i = 0; i < rounds; ++i) {
    std::fprintf(out, "round %d\n", i);
    // A new one each time: what was received from any source leaves a communicator uncounted.
    MPI_Comm fresh;
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &fresh);
    round(random, i % 2 ? std::vector<MPI_Comm>{fresh, again} : std::vector<MPI_Comm>{fresh});
    MPI_Comm_free(&fresh);
  }
  MPI_Comm_free(&again);
  void* buffer;
  int size;
  MPI_Buffer_detach(&buffer, &size);
  std::fclose(out);
  return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
