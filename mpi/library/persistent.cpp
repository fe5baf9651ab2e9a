// Persistent requests, one by one and started together.
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "comms.hpp"
#include "hook.hpp"
#include "report.hpp"
#include "requests.hpp"
#include "ring.hpp"
#include "standing.hpp"

namespace {

using namespace tasuki::mpi;

// The communicator, if its messages are counted. Within `Counting`.
Comm* counted_comm(const Counting& counting, const Message& message) {
  return counting.alone() ? message.counted.get() : nullptr;
}

void begin(Message& message) {
  message.active = true;
  message.unpacked = message.in_slot = message.withdrawn = false;
  message.drained = -1;
}

// A persistent receive is started by MPI, and posted once MPI has it.
int start_receive(const Counting& counting, Message& message, MPI_Request& request) {
  begin(message);
  if (message.counted != nullptr && message.number >= 0)
    hand_over(message.counted.get(), message.peer, message.tag, -1, message.number);
  else if (message.counted != nullptr)
    hand_over(message.counted.get(), message.peer, message.tag);
  const int result = start_in_mpi(message, request);
  Comm* comm = result == MPI_SUCCESS && message.ring_pays ? counted_comm(counting, message) : nullptr;
  if (comm != nullptr) message.posting = post(*comm, message.peer, message.tag, message.number, message.what->bytes());
  return result;
}

// A send of a group, which has its number already.
struct Sent {
  Message* message;
  MPI_Request* request;
  const Comm* comm;  // null: its messages are not counted
  std::int64_t number;
  Passage passage;
  Slot slot;
};

int start_by_mpi(Message& message, MPI_Request& request) {
  if (message.packed) message.what->packer.pack(static_cast<const std::byte*>(message.buffer), message.packed.data());
  if (message.what != nullptr) note(message.call, message.caller, *message.what, message.route);
  return start_in_mpi(message, request);
}

std::int64_t bytes_of(const Message& message) {
  if (message.what != nullptr) return message.what->bytes();
  MPI_Count size = 0;
  PMPI_Type_size_x(message.type, &size);
  return static_cast<std::int64_t>(size) * message.count;
}

// Sends of one group, in their order.
class Group {
 public:
  Counting& counting() { return counting_; }
  void add(const Sent& sent) { sends_.push_back(sent); }
  /// MPI is given those that have been added since the last time.
  int start() {
    constexpr std::int64_t kMessage = 300;  // ns that MPI takes for one
    for (std::size_t i = started_; i < sends_.size(); ++i) {
      const Message& message = *sends_[i].message;
      bundle_wait_.also(kMessage);
      if (!message.ring_pays) continue;
      bundle_wait_.also(message.what->ring_gain.load(std::memory_order_relaxed));
      if (wait_)
        wait_->also(*message.what);
      else
        wait_.emplace(*message.what);
    }
    int result = MPI_SUCCESS;
    while (started_ < sends_.size() && result == MPI_SUCCESS) result = start(sends_[started_++]);
    return result;
  }
  /// Packs those that go through the ring: those to other ranks first, which wait for them.
  void fill() {
    counting_.end();
    for (const bool to_others : {true, false})
      for (const Sent& sent : sends_) {
        const bool stands = static_cast<bool>(sent.slot);
        if ((!stands && !sent.passage) || (stands && sent.slot.receiver == own_rank()) == to_others) continue;
        Message& message = *sent.message;
        if (stands && message.what == nullptr) {
          tasuki::mpi::fill(sent.slot, message.buffer, message.count, message.type);
          continue;
        }
        if (stands)
          tasuki::mpi::fill(sent.slot, *message.what, message.buffer, &message);
        else
          tasuki::mpi::fill(sent.passage, *message.what, message.buffer);
        note(message.call, message.caller, *message.what, Route::ring);
      }
  }

 private:
  // If its receive is posted MPI carries an empty message, or none if it has not got the receive either, and the ring
  // is to be filled. The receive has begun, so that the send is complete then, by whichever call it was made.
  int start(Sent& sent) {
    Message& message = *sent.message;
    if (sent.comm == nullptr) return start_by_mpi(message, *sent.request);
    const std::int64_t bytes = bytes_of(message);
    sent.slot = claim(*sent.comm, message.peer, message.tag, bytes, &bundle_wait_);
    if (sent.slot) {
      message.aside = true;
      return MPI_SUCCESS;
    }
    if (message.ring_pays && sent.number >= 0 && wait_ && !sent.comm->ended)
      sent.passage = wait_->take(*sent.comm, message.peer, message.tag, sent.number, bytes);
    if (!sent.passage) return start_by_mpi(message, *sent.request);
    message.aside = true;
    MPI_Request empty = MPI_REQUEST_NULL;
    const int result = PMPI_Isend(nullptr, 0, MPI_PACKED, message.peer, message.tag, message.comm, &empty);
    return result == MPI_SUCCESS ? PMPI_Request_free(&empty) : result;
  }

  Counting counting_;
  std::vector<Sent> sends_;
  std::size_t started_ = 0;
  std::optional<PostingWait> wait_;
  BundleWait bundle_wait_;
};

int world_rank_of(const Comm& comm, const Message& message) {
  return comm.world[static_cast<std::size_t>(message.peer)];
}

// Receives that are started together for the first time are offered to their senders as bundles, and what the
// receivers of the sends have offered is looked at. Which bundles this call starts as a whole.
void see_bundles(const Counting& counting, const std::vector<Message*>& all) {
  static std::uint64_t calls = 0;
  ++calls;
  std::map<int, std::vector<Message*>> fresh;
  int last = -1;
  for (Message* message : all) {
    if (message == nullptr) continue;
    if (message->standing != nullptr) {
      Standing& standing = *message->standing;
      if (std::exchange(standing.call, calls) != calls) standing.seen = 0, standing.tried = standing.posted = false;
      ++standing.seen;
      continue;
    }
    if (message->receives ? message->offered || message->what == nullptr : false) continue;
    const Comm* comm = counted_comm(counting, *message);
    if (comm == nullptr) continue;
    const int peer = world_rank_of(*comm, *message);
    if (peer < 0) continue;
    if (message->receives)
      fresh[peer].push_back(message);
    else if (std::exchange(last, peer) != peer)
      look_for_offers(peer);
  }
  for (auto& [peer, messages] : fresh)
    if (looks(peer)) {
      offer(peer, messages);
      for (Message* message : messages) message->offered = true;
    }
}

// A receive of a bundle that is started as a whole is posted with it, if its sender has promised to look there.
int start_or_post(const Counting& counting, bool counted, Message& message, MPI_Request& request) {
  Standing* standing = counted ? message.standing.get() : nullptr;
  if (standing == nullptr || standing->seen != standing->members.size())
    return start_receive(counting, message, request);
  if (!std::exchange(standing->tried, true)) {
    bool may = true;
    for (const Message* member : standing->members) {
      const Comm* comm = member != nullptr ? counted_comm(counting, *member) : nullptr;
      may = may && comm != nullptr && !comm->wild;
    }
    standing->posted = may && post(*standing);
  }
  if (!standing->posted) return start_receive(counting, message, request);
  begin(message);
  return MPI_SUCCESS;
}

// Requests that are started together are one exchange. MPI has all of them, and receives are posted, before anything is
// packed into the ring. Before a send looks for its receive all receives that stand between it and the next request
// that is MPI's alone are posted: ranks that start at the same time find each other's. What MPI is given keeps its
// order, sends among sends and receives among receives: messages of several tags may meet receives of any tag.
int start_together(const std::vector<Message*>& all, MPI_Request* requests) {
  Group group;
  const bool counted = group.counting().alone() && ring_runs();
  if (counted) see_bundles(group.counting(), all);
  for (Message* message : all) {
    if (message == nullptr || !message->receives) continue;
    Comm* comm = counted_comm(group.counting(), *message);
    message->number = comm != nullptr ? next_received(*comm, message->peer, message->tag) : -1;
    message->loose = comm != nullptr && last_may_be_loose();
  }
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
      result = start_or_post(group.counting(), counted, message, requests[i]);
    } else {
      message.active = true;
      Comm* comm = counted || promises() ? message.counted.get() : nullptr;
      const std::int64_t number = counted && comm != nullptr ? next_sent(*comm, message.peer, message.tag) : -1;
      group.add({&message, &requests[i], comm, number, {}, {}});
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
