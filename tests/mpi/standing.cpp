// A random MPI program with groups of persistent requests that are started together again and again: halos, with
// several messages between the same ranks, some of one tag, of types that differ between the sides, and to a rank
// itself. Between the starts the same communicators and tags are used by other calls too, in either direction: messages
// by blocking and non-blocking sends that meet started receives, receives that meet started sends, part of the requests
// alone, probes, receives of the same kind and of any tag behind those that are started, and cancelled receives, so
// that the messages of those come to later ones. Some exchanges go on after their communicator has been freed. Each
// rank writes what it saw to a file.
//   mpi_standing FILE [ROUNDS [SEED]]
#include <mpi.h>

#include <algorithm>
#include <cstddef>
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
std::vector<char> attached(8 << 20);
constexpr int kBehind = 80;

/// Rows of integers, and memory behind them: Open MPI 5.0 writes past a contiguous receive whose message is longer.
struct Box {
  Box(int ints, int block, int gap)
      : memory(static_cast<std::size_t>(ints / block) * static_cast<std::size_t>(block + gap) + 3 + kBehind) {
    MPI_Datatype rows;
    MPI_Type_vector(ints / block, block, block + gap, MPI_INT, &rows);
    const int one = 1;
    const MPI_Aint first = 4;
    MPI_Type_create_hindexed(1, &one, &first, rows, &type);
    MPI_Type_free(&rows);
    MPI_Type_commit(&type);
  }
  Box(const Box&) = delete;
  ~Box() { MPI_Type_free(&type); }
  void fill(Random& random) {
    for (int& number : memory) number = static_cast<int>(random());
  }
  std::uint64_t sum() const {
    std::uint64_t all = 14695981039346656037u;
    for (const int number : memory) all = (all ^ static_cast<unsigned>(number)) * 1099511628211u;
    return all;
  }
  std::vector<int> memory;
  MPI_Datatype type;
};

struct Message {
  int from, to, tag, ints;
};

std::unique_ptr<Box> box(Random& random, int ints) {
  const int block = std::vector<int>{1, 2, 30, ints}[static_cast<std::size_t>(below(random, 4))];
  return std::make_unique<Box>(ints, block, between(random, 1, 3));
}

void log(const char* what, const Box& data, const MPI_Status& status) {
  int ints = 0, cancelled = 0;
  MPI_Get_elements(&status, MPI_INT, &ints);
  MPI_Test_cancelled(&status, &cancelled);
  std::fprintf(out, "%s: from %d tag %d ints %d cancelled %d sum %016llx\n", what, cancelled ? -1 : status.MPI_SOURCE,
               cancelled ? -1 : status.MPI_TAG, cancelled ? 0 : ints, cancelled,
               static_cast<unsigned long long>(data.sum()));
}

class Exchange {
 public:
  // The same on all ranks.
  Exchange(Random& random, MPI_Comm comm) : comm_(comm) {
    const int number = between(random, 2, 20), tags = between(random, 1, 6);
    for (int i = 0; i < number; ++i)
      messages_.push_back({below(random, ranks), below(random, ranks), below(random, tags),
                           60 * (below(random, 6) == 0 ? between(random, 100, 600) : between(random, 1, 30))});
    Random own(random() + static_cast<std::uint64_t>(rank));
    MPI_Comm_rank(comm, &me_);
    for (const Message& message : messages_) {
      if (message.to != me_) continue;
      mine_.push_back(&message);
      received_.push_back(box(own, room(message)));
      MPI_Recv_init(received_.back()->memory.data(), 1, received_.back()->type, message.from, message.tag, comm,
                    &requests_.emplace_back());
    }
    for (const Message& message : messages_) {
      if (message.from != me_) continue;
      theirs_.push_back(&message);
      sent_.push_back(box(own, message.ints));
      const auto init = below(own, 5) == 0 ? MPI_Ssend_init : below(own, 6) == 0 ? MPI_Bsend_init : MPI_Send_init;
      init(sent_.back()->memory.data(), 1, sent_.back()->type, message.to, message.tag, comm,
           &requests_.emplace_back());
    }
  }
  Exchange(const Exchange&) = delete;
  ~Exchange() {
    for (MPI_Request& request : requests_) MPI_Request_free(&request);
  }

  /// `way` is the same on all ranks, `own` is not.
  void run(int way, Random& own) {
    for (auto& one : sent_) one->fill(own);
    for (auto& one : received_) one->fill(own);
    switch (way) {
      default:
        start(0, requests_.size());
        return complete(own);
      case 1:  // receives, then sends, one by one
        for (std::size_t i = 0; i < requests_.size(); ++i) start(i, i + 1);
        return complete(own);
      case 2:  // what is sent meets started receives, and is sent by other calls
        start(0, received_.size());
        send_otherwise(own);
        MPI_Barrier(comm_);
        return complete(own, received_.size());
      case 3:  // what is started is received by other calls
        start(received_.size(), requests_.size());
        return receive_otherwise(own);
      case 4: {  // a part of the receives alone, then the others
        const std::size_t half = received_.size() / 2;
        start(0, half);
        start(half, requests_.size());
        return complete(own);
      }
      case 5: {  // receives that are started, and cancelled: none of their messages is sent
        start(0, received_.size());
        for (std::size_t i = 0; i < received_.size(); ++i) MPI_Cancel(&requests_[i]);
        complete(own, received_.size());
        MPI_Barrier(comm_);
        return;
      }
      case 6:  // cancelled ones whose messages come to others
        return run_cancelled(own);
      case 7:
        return run_any(own);
      case 8:
        return run_long(own);
    }
  }

 private:
  // What any message of its kind takes.
  int room(const Message& of) const {
    int most = 0;
    for (const Message& one : messages_)
      if (one.from == of.from && one.to == of.to && one.tag == of.tag) most = std::max(most, one.ints);
    return most;
  }
  // Some receives are cancelled before anything is sent, and there are others of their kinds behind them, and some that
  // are cancelled before them.
  void run_cancelled(Random& own) {
    std::vector<std::unique_ptr<Box>> boxes;
    std::vector<MPI_Request> before, behind;
    const bool plain = below(own, 2) == 0;
    for (const Message* message : mine_) {
      if (!plain || below(own, 3)) continue;
      boxes.push_back(box(own, room(*message)));
      MPI_Irecv(boxes.back()->memory.data(), room(*message), MPI_INT, message->from, message->tag, comm_,
                &before.emplace_back());
    }
    start(0, received_.size());
    for (std::size_t i = 0; i < received_.size(); ++i) {
      if (below(own, 3)) continue;
      const Message& message = *mine_[i];
      boxes.push_back(box(own, room(message)));
      MPI_Irecv(boxes.back()->memory.data(), 1, boxes.back()->type, message.from, message.tag, comm_,
                &behind.emplace_back());
      MPI_Cancel(&requests_[i]);
    }
    for (MPI_Request& request : before) MPI_Cancel(&request);
    std::vector<MPI_Status> statuses(before.size() + behind.size());
    MPI_Waitall(static_cast<int>(before.size()), before.data(), statuses.data());
    MPI_Barrier(comm_);
    start(received_.size(), requests_.size());
    complete(own);
    MPI_Waitall(static_cast<int>(behind.size()), behind.data(), statuses.data() + before.size());
    for (std::size_t i = 0; i < boxes.size(); ++i) log(i < before.size() ? "before" : "behind", *boxes[i], statuses[i]);
    MPI_Barrier(comm_);
  }
  // Some messages are longer than their receives.
  void run_long(Random& own) {
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    start(0, received_.size());
    MPI_Barrier(comm_);
    std::vector<std::vector<int>> sent;
    std::vector<MPI_Request> open(theirs_.size());
    for (std::size_t i = 0; i < theirs_.size(); ++i) {
      const Message& message = *theirs_[i];
      sent.emplace_back(static_cast<std::size_t>(room(message) + (below(own, 3) ? 0 : 60)), static_cast<int>(own()));
      MPI_Isend(sent[i].data(), static_cast<int>(sent[i].size()), MPI_INT, message.to, message.tag, comm_, &open[i]);
    }
    for (std::size_t i = 0; i < received_.size(); ++i) {
      MPI_Status status;
      int kind = MPI_SUCCESS;
      MPI_Error_class(MPI_Wait(&requests_[i], &status), &kind);
      std::fprintf(out, "long: truncated %d\n", kind == MPI_ERR_TRUNCATE);
      if (kind == MPI_SUCCESS) log("long", *received_[i], status);
    }
    MPI_Waitall(static_cast<int>(open.size()), open.data(), MPI_STATUSES_IGNORE);
    MPI_Barrier(comm_);
  }
  // A receive of any tag behind those that are started, and one more message.
  void run_any(Random& own) {
    int number = 0;
    MPI_Comm_size(comm_, &number);
    Box any(600, 30, 1), more(600, 2, 1);
    any.fill(own);
    more.fill(own);
    MPI_Request last, sent;
    MPI_Status status;
    start(0, received_.size());
    MPI_Irecv(any.memory.data(), 1, any.type, (me_ + 1) % number, MPI_ANY_TAG, comm_, &last);
    MPI_Barrier(comm_);
    MPI_Isend(more.memory.data(), 1, more.type, (me_ + number - 1) % number, 77, comm_, &sent);
    start(received_.size(), requests_.size());
    complete(own);
    MPI_Wait(&last, &status);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    log("any", any, status);
  }
  void start(std::size_t begin, std::size_t end) {
    if (end > begin) MPI_Startall(static_cast<int>(end - begin), requests_.data() + begin);
  }
  void complete(Random& own, std::size_t number = SIZE_MAX) {
    const int count = static_cast<int>(std::min(number, requests_.size()));
    std::vector<MPI_Status> statuses(requests_.size()), some(requests_.size());
    std::vector<int> indices(requests_.size());
    const int way = below(own, 6);
    if (way == 0) {
      MPI_Waitall(count, requests_.data(), statuses.data());
    } else if (way == 1) {
      for (int flag = 0; !flag;) MPI_Testall(count, requests_.data(), &flag, statuses.data());
    } else if (way == 2) {
      for (int i = count; i-- > 0;) {
        const auto at = static_cast<std::size_t>(i);
        MPI_Status last;
        const bool asks = below(own, 2);
        if (asks)
          for (int flag = 0; !flag;) MPI_Request_get_status(requests_[at], &flag, &statuses[at]);
        MPI_Wait(&requests_[at], asks ? &last : &statuses[at]);  // MPICH's status is empty once it has been asked
      }
    } else {
      for (int left = count; left > 0;) {
        int done = 1;
        if (way == 3)
          MPI_Waitany(count, requests_.data(), indices.data(), some.data());
        else if (way == 4)
          MPI_Waitsome(count, requests_.data(), &done, indices.data(), some.data());
        else
          MPI_Testsome(count, requests_.data(), &done, indices.data(), some.data());
        if (done == MPI_UNDEFINED || (done > 0 && indices[0] == MPI_UNDEFINED)) {
          std::fprintf(stderr, "mpi_standing: rank %d: %d requests are lost\n", rank, left);
          MPI_Abort(MPI_COMM_WORLD, 1);
        }
        for (int i = 0; i < done; ++i)
          statuses[static_cast<std::size_t>(indices[static_cast<std::size_t>(i)])] = some[static_cast<std::size_t>(i)];
        left -= done;
      }
    }
    for (std::size_t i = 0; i < std::min(received_.size(), static_cast<std::size_t>(count)); ++i)
      log("received", *received_[i], statuses[i]);
  }
  void send_otherwise(Random& own) {
    std::vector<MPI_Request> open;
    for (std::size_t i = 0; i < sent_.size(); ++i) {
      const Message& message = *theirs_[i];
      void* memory = sent_[i]->memory.data();
      MPI_Datatype type = sent_[i]->type;
      std::vector<int> flat(static_cast<std::size_t>(message.ints), static_cast<int>(own()));
      switch (below(own, 6)) {
        case 0:
          MPI_Send(memory, 1, type, message.to, message.tag, comm_);
          break;
        case 1:
          MPI_Ssend(memory, 1, type, message.to, message.tag, comm_);
          break;
        case 2:  // plain, and shorter
          MPI_Send(flat.data(), below(own, message.ints), MPI_INT, message.to, message.tag, comm_);
          break;
        case 3:
          MPI_Isend(memory, 1, type, message.to, message.tag, comm_, &open.emplace_back());
          break;
        case 4:
          MPI_Bsend(memory, 1, type, message.to, message.tag, comm_);
          break;
        default:
          MPI_Sendrecv(memory, 1, type, message.to, message.tag, nullptr, 0, MPI_INT, MPI_PROC_NULL, 0, comm_,
                       MPI_STATUS_IGNORE);
      }
    }
    MPI_Waitall(static_cast<int>(open.size()), open.data(), MPI_STATUSES_IGNORE);
  }
  void receive_otherwise(Random& own) {
    for (std::size_t i = 0; i < received_.size(); ++i) {
      const Message& message = *mine_[i];
      MPI_Status status;
      const int way = below(own, 3);
      if (way == 0) {
        MPI_Probe(message.from, message.tag, comm_, &status);
        int ints = 0;
        MPI_Get_count(&status, MPI_INT, &ints);
        std::fprintf(out, "probed %d\n", ints);
      }
      if (way == 1) {
        MPI_Message matched;
        MPI_Mprobe(message.from, message.tag, comm_, &matched, &status);
        MPI_Mrecv(received_[i]->memory.data(), 1, received_[i]->type, &matched, &status);
      } else {
        MPI_Recv(received_[i]->memory.data(), 1, received_[i]->type, message.from, message.tag, comm_, &status);
      }
      log("otherwise", *received_[i], status);
    }
    std::vector<MPI_Request> sends(requests_.begin() + static_cast<std::ptrdiff_t>(received_.size()), requests_.end());
    MPI_Waitall(static_cast<int>(sends.size()), sends.data(), MPI_STATUSES_IGNORE);
  }

  MPI_Comm comm_;
  int me_ = 0;
  std::vector<Message> messages_;
  std::vector<const Message*> mine_, theirs_;
  std::vector<std::unique_ptr<Box>> received_, sent_;
  std::vector<MPI_Request> requests_;  // receives first
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 2) return 2;
  out = std::fopen((std::string(argv[1]) + "." + std::to_string(rank)).c_str(), "w");
  if (out == nullptr) return 2;
  std::setvbuf(out, nullptr, _IOLBF, 4096);
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 20;
  Random random(argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1);
  MPI_Buffer_attach(attached.data(), static_cast<int>(attached.size()));
  for (int round = 0; round < rounds; ++round) {
    std::fprintf(out, "round %d\n", round);
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, 0, below(random, 2) ? rank : -rank, &comm);
    const bool others = below(random, 3) == 0;  // other uses of the tags
    {
      Exchange first(random, comm), second(random, comm);
      Random own(random() + static_cast<std::uint64_t>(rank));
      for (int turn = 0; turn < 12; ++turn) {
        const int way = others && below(random, 3) == 0 ? between(random, 1, 4) : 0;
        std::fprintf(out, "turn %d, way %d\n", turn, way);
        (below(random, 4) ? first : second).run(way, own);
      }
      const int last = others ? below(random, 6) : 4;
      if (last < 4) first.run(5 + last, own);
      for (int turn = 0; turn < 3 && last < 3; ++turn) first.run(0, own);
      MPI_Comm_free(&comm);
      if (last == 4) {
        MPI_Comm other;
        MPI_Comm_dup(MPI_COMM_WORLD, &other);  // it may have the handle of the one that was freed
        Exchange third(random, other);
        for (int turn = 0; turn < 6; ++turn) (turn % 3 == 0 ? first : turn % 3 == 1 ? second : third).run(0, own);
        MPI_Comm_free(&other);
      }
    }
  }
  void* buffer;
  int size;
  MPI_Buffer_detach(&buffer, &size);
  std::fclose(out);
  return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
