// Persistent requests, one by one and started together.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "comms.hpp"
#include "hook.hpp"
#include "report.hpp"
#include "requests.hpp"
#include "ring.hpp"

namespace {

using namespace tasuki::mpi;

// The communicator, if its messages are counted. Within `Counting`.
Comm* counted_comm(const Counting& counting, const Message& message) {
  return counting.alone() && message.comm != MPI_COMM_NULL ? comm_of(message.comm) : nullptr;
}

// A persistent receive is started, and posted once MPI has it.
int start_receive(const Counting& counting, Message& message, MPI_Request& request) {
  message.active = true;
  message.unpacked = false;
  message.drained = -1;
  const int result = start_in_mpi(request);
  Comm* comm = result == MPI_SUCCESS ? counted_comm(counting, message) : nullptr;
  if (comm == nullptr) return result;
  const std::int64_t number = next_received(*comm, message.peer, message.tag);
  if (message.ring_pays) message.posting = post(*comm, message.peer, message.tag, number, message.what->bytes());
  return result;
}

// A send of a group, which has its number already.
struct Sent {
  Message* message;
  MPI_Request* request;
  const Comm* comm;  // null: its messages are not counted
  std::int64_t number;
  Passage passage;
};

int start_by_mpi(Message& message, MPI_Request& request) {
  if (message.packed) message.what->packer.pack(static_cast<const std::byte*>(message.buffer), message.packed.data());
  note(message.call, message.caller, *message.what, message.route);
  return start_in_mpi(request);
}

// If its receive is posted MPI carries an empty message, and the ring is to be filled.
int start_sent(Sent& sent, std::optional<PostingWait>& wait) {
  Message& message = *sent.message;
  if (message.ring_pays && sent.comm != nullptr)
    sent.passage = wait->take(*sent.comm, message.peer, message.tag, sent.number, message.what->bytes());
  if (!sent.passage) return start_by_mpi(message, *sent.request);
  // The receive has begun, so that the send is complete once it is packed, by whichever call it was made.
  message.aside = true;
  MPI_Request empty = MPI_REQUEST_NULL;
  const int result = PMPI_Isend(nullptr, 0, MPI_PACKED, message.peer, message.tag, message.comm, &empty);
  return result == MPI_SUCCESS ? PMPI_Request_free(&empty) : result;
}

// Sends of one group, in their order.
class Group {
 public:
  Counting& counting() { return counting_; }
  void add(const Sent& sent) { sends_.push_back(sent); }
  /// MPI is given those that have been added since the last time.
  int start() {
    for (std::size_t i = started_; i < sends_.size(); ++i) {
      const Message& message = *sends_[i].message;
      if (!message.ring_pays) continue;
      if (wait_)
        wait_->also(*message.what);
      else
        wait_.emplace(*message.what);
    }
    int result = MPI_SUCCESS;
    while (started_ < sends_.size() && result == MPI_SUCCESS) result = start_sent(sends_[started_++], wait_);
    return result;
  }
  /// Packs those that go through the ring.
  void fill() {
    counting_.end();
    for (const Sent& sent : sends_) {
      if (!sent.passage) continue;
      tasuki::mpi::fill(sent.passage, *sent.message->what, sent.message->buffer);
      note(sent.message->call, sent.message->caller, *sent.message->what, Route::ring);
    }
  }

 private:
  Counting counting_;
  std::vector<Sent> sends_;
  std::size_t started_ = 0;
  std::optional<PostingWait> wait_;
};

// Requests that are started together are one exchange. MPI has all of them, and receives are posted, before anything is
// packed into the ring. Before a send looks for its receive all receives that stand between it and the next request
// that is MPI's alone are posted: ranks that start at the same time find each other's. What MPI is given keeps its
// order, sends among sends and receives among receives: messages of several tags may meet receives of any tag.
int start_together(const std::vector<Message*>& all, MPI_Request* requests) {
  Group group;
  int result = MPI_SUCCESS;
  for (std::size_t i = 0; i < all.size() && result == MPI_SUCCESS;) {
    std::size_t end = i;
    while (end < all.size() && all[end] == nullptr) ++end;
    if (end > i) {
      result = group.start();
      if (result == MPI_SUCCESS) result = PMPI_Startall(static_cast<int>(end - i), requests + i);
      i = end;
      continue;
    }
    Message& message = *all[i];
    if (message.receives) {
      result = start_receive(group.counting(), message, requests[i]);
    } else {
      message.active = true;
      Comm* comm = counted_comm(group.counting(), message);
      group.add({&message, &requests[i], comm, comm != nullptr ? next_sent(*comm, message.peer, message.tag) : -1, {}});
    }
    ++i;
  }
  if (result == MPI_SUCCESS) result = group.start();
  group.fill();
  return result;
}

}  // namespace

HOOK int tasuki_MPI_Start(MPI_Request* request) {
  if (no_messages() || request == nullptr) return PMPI_Start(request);
  Message* message = find_message(*request);
  return message == nullptr ? PMPI_Start(request) : start_together({message}, request);
}

HOOK int tasuki_MPI_Startall(int count, MPI_Request* requests) {
  if (no_messages() || count <= 0 || requests == nullptr) return PMPI_Startall(count, requests);
  const auto known = find_messages(count, requests);
  return known.empty() ? PMPI_Startall(count, requests) : start_together(known, requests);
}
