// Persistent requests, one by one and started together.
#include <utility>
#include <vector>

#include "comms.hpp"
#include "hook.hpp"
#include "report.hpp"
#include "requests.hpp"
#include "ring.hpp"

namespace {

using namespace tasuki::mpi;

// A persistent receive is started, and posted once MPI has it.
int start_receive(Message& message, MPI_Request& request) {
  message.active = true;
  message.unpacked = false;
  message.drained = -1;
  const int result = PMPI_Start(&request);
  if (result != MPI_SUCCESS || message.comm == MPI_COMM_NULL) return result;
  const Counting counting;
  Comm* comm = counting.alone() ? comm_of(message.comm) : nullptr;
  if (comm == nullptr) return result;
  const std::int64_t number = next_received(*comm, message.peer, message.tag);
  if (!message.what->contiguous && message.what->bytes() >= kLeastShared)
    message.posting = post(*comm, message.peer, message.tag, number, message.what->bytes());
  return result;
}

// A persistent send is started. If its receive is posted MPI carries an empty message, and the caller fills `passage`.
int start_send(Message& message, MPI_Request& request, Passage& passage) {
  message.active = true;
  const Counted& what = *message.what;
  {
    const Counting counting;
    if (Comm* comm = counting.alone() ? comm_of(message.comm) : nullptr) {
      const std::int64_t number = next_sent(*comm, message.peer, message.tag);
      if (!what.contiguous && what.bytes() >= kLeastShared)
        passage = take(*comm, message.peer, message.tag, number, what.bytes());
    }
    if (passage) {
      // The receive has begun, so that the send is complete once it is packed, by whichever call it was made.
      message.aside = true;
      MPI_Request empty = MPI_REQUEST_NULL;
      const int result = PMPI_Isend(nullptr, 0, MPI_PACKED, message.peer, message.tag, message.comm, &empty);
      return result == MPI_SUCCESS ? PMPI_Request_free(&empty) : result;
    }
  }
  if (message.packed) what.packer.pack(static_cast<const std::byte*>(message.buffer), message.packed.data());
  note(message.call, message.caller, what, message.route);
  return PMPI_Start(&request);
}

void fill_started(const Message& message, const Passage& passage) {
  if (!passage) return;
  fill(passage, *message.what, message.buffer);
  note(message.call, message.caller, *message.what, Route::ring);
}

int start(MPI_Request& request) {
  Message* message = find_message(request);
  if (message == nullptr) return PMPI_Start(&request);
  if (message->receives) return start_receive(*message, request);
  Passage passage;
  const int result = start_send(*message, request, passage);
  fill_started(*message, passage);
  return result;
}

// Requests that are started together, in their order, in which MPIs start them too: MPI has all of them, and receives
// are posted, before anything is packed into the ring.
int start_together(const std::vector<Message*>& all, MPI_Request* requests) {
  std::vector<std::pair<Message*, Passage>> passages;
  int result = MPI_SUCCESS;
  for (std::size_t i = 0; i < all.size() && result == MPI_SUCCESS;) {
    std::size_t end = i;
    while (end < all.size() && all[end] == nullptr) ++end;
    if (end > i) {
      result = PMPI_Startall(static_cast<int>(end - i), requests + i);
      i = end;
      continue;
    }
    Message& message = *all[i];
    if (message.receives) {
      result = start_receive(message, requests[i]);
    } else {
      Passage passage;
      result = start_send(message, requests[i], passage);
      if (passage) passages.emplace_back(&message, passage);
    }
    ++i;
  }
  for (const auto& [message, passage] : passages) fill_started(*message, passage);
  return result;
}

}  // namespace

HOOK int tasuki_MPI_Start(MPI_Request* request) {
  return no_messages() || request == nullptr ? PMPI_Start(request) : start(*request);
}

HOOK int tasuki_MPI_Startall(int count, MPI_Request* requests) {
  if (no_messages() || count <= 0 || requests == nullptr) return PMPI_Startall(count, requests);
  const auto known = find_messages(count, requests);
  return known.empty() ? PMPI_Startall(count, requests) : start_together(known, requests);
}
