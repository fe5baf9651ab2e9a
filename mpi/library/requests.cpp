// Requests and the calls that complete them: see requests.hpp. As long as no packed message is open these calls cost
// one comparison.
#include "requests.hpp"

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "comms.hpp"
#include "hook.hpp"
#include "report.hpp"
#include "ring.hpp"
#include "session.hpp"

namespace tasuki::mpi {

namespace {

struct RequestHash {
  std::size_t operator()(MPI_Request request) const {
    const auto value = (std::uintptr_t)request;  // an integer or a pointer
    return value ^ value >> 7;
  }
};

std::atomic<int> open_messages{0};
std::mutex mutex;
// Never ended, as a program may complete requests while static objects end.
auto& messages = *new std::unordered_map<MPI_Request, std::unique_ptr<Message>, RequestHash>;
auto& freed = *new std::vector<MPI_Request>;  // by the program, before they were complete; `messages` has them

bool none() {
  return open_messages.load(std::memory_order_acquire) == 0;
}

Message* find(MPI_Request request) {
  if (request == MPI_REQUEST_NULL) return nullptr;
  const std::scoped_lock lock(mutex);
  const auto found = messages.find(request);
  return found == messages.end() ? nullptr : found->second.get();
}

// Of many requests at once; empty if there is nothing of any.
std::vector<Message*> find_all(int count, const MPI_Request* requests) {
  std::vector<Message*> found;
  const std::scoped_lock lock(mutex);
  for (int i = 0; i < count; ++i) {
    const auto one = messages.find(requests[i]);
    if (one == messages.end()) continue;
    if (found.empty()) found.resize(static_cast<std::size_t>(count));
    found[static_cast<std::size_t>(i)] = one->second.get();
  }
  return found;
}

void forget(MPI_Request request) {
  std::unique_ptr<Message> last;
  const std::scoped_lock lock(mutex);
  const auto found = messages.find(request);
  if (found == messages.end()) return;
  last = std::move(found->second);
  messages.erase(found);
  open_messages.fetch_sub(1, std::memory_order_acq_rel);
}

// MPI has completed the request that had this handle.
void complete(MPI_Request request, Message* message, MPI_Status& status, bool failed) {
  if (message == nullptr) return;
  if (message->receives && message->active) finish_receive(*message, status, failed);
  if (message->persistent)
    message->active = message->aside = false;
  else
    forget(request);
}

void complete(MPI_Request request, MPI_Status& status, bool failed) {
  complete(request, find(request), status, failed);
}

bool is_receive(const Message* message) {
  return message != nullptr && message->receives;
}

void end_freed() {
  std::vector<MPI_Request> left;
  {
    const std::scoped_lock lock(mutex);
    if (freed.empty()) return;
    left = std::exchange(freed, {});
  }
  std::vector<MPI_Request> open;
  for (MPI_Request request : left) {
    MPI_Request now = request;
    MPI_Status status;
    int done = 0;
    const int error = PMPI_Test(&now, &done, &status);
    if (error == MPI_SUCCESS && !done) {
      open.push_back(request);
      continue;
    }
    Message* message = find(request);
    if (is_receive(message) && message->active) finish_receive(*message, status, error != MPI_SUCCESS);
    const bool persistent = message != nullptr && message->persistent;
    forget(request);
    if (persistent && now != MPI_REQUEST_NULL) PMPI_Request_free(&now);
  }
  const std::scoped_lock lock(mutex);
  freed.insert(freed.end(), open.begin(), open.end());
}

// The statuses of an array of requests: the program's, or others if it wants none.
class Statuses {
 public:
  Statuses(MPI_Status* given, int count) : given_(given) {
    if (given == MPI_STATUSES_IGNORE) own_.resize(static_cast<std::size_t>(count > 0 ? count : 0));
  }
  MPI_Status* data() { return given_ == MPI_STATUSES_IGNORE ? own_.data() : given_; }

 private:
  MPI_Status* given_;
  std::vector<MPI_Status> own_;
};

std::vector<MPI_Request> copied(const MPI_Request* requests, int count) {
  return count > 0 && requests != nullptr ? std::vector<MPI_Request>(requests, requests + count)
                                          : std::vector<MPI_Request>();
}

MPI_Status* or_own(MPI_Status* given, MPI_Status& own) {
  return given == MPI_STATUS_IGNORE ? &own : given;
}

void complete_all(const std::vector<MPI_Request>& before, const std::vector<Message*>& known, const MPI_Request* after,
                  MPI_Status* statuses, int result) {
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (known[i] == nullptr) continue;
    const bool in_status = result == MPI_ERR_IN_STATUS;
    const bool open = (in_status && statuses[i].MPI_ERROR == MPI_ERR_PENDING) ||
                      (result != MPI_SUCCESS && !in_status && after[i] != MPI_REQUEST_NULL);
    if (open) continue;
    complete(before[i], known[i], statuses[i],
             result != MPI_SUCCESS && !(in_status && statuses[i].MPI_ERROR == MPI_SUCCESS));
  }
}

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
  Message* message = find(request);
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

// MPI does not see sends that went through the ring: the first of them; -1 if there is none.
int first_aside(const std::vector<Message*>& known) {
  for (std::size_t i = 0; i < known.size(); ++i)
    if (known[i] != nullptr && known[i]->aside) return static_cast<int>(i);
  return -1;
}

// The status of a send.
void set_empty(MPI_Status& status) {
  MPI_Request none = MPI_REQUEST_NULL;
  PMPI_Wait(&none, &status);
}

void complete_aside(MPI_Request request, MPI_Status& status) {
  set_empty(status);
  complete(request, status, false);
}

}  // namespace

void finish_receive(Message& message, MPI_Status& status, bool failed) {
  if (message.unpacked) {  // the status that MPI gives again
    if (message.drained >= 0) PMPI_Status_set_elements_x(&status, MPI_BYTE, message.drained);
    return;
  }
  message.unpacked = true;
  if (message.what == nullptr) return;
  if (Posting* posting = std::exchange(message.posting, nullptr); posting != nullptr && !withdraw(posting)) {
    MPI_Count bytes = 0;
    PMPI_Get_elements_x(&status, MPI_BYTE, &bytes);
    if (!failed && bytes != 0) order_lost();
    message.drained = drain(posting, *message.what, message.buffer);
    PMPI_Status_set_elements_x(&status, MPI_BYTE, message.drained);
    note(message.call, message.caller, *message.what, Route::ring);
    return;
  }
  note(message.call, message.caller, *message.what, message.route);
  if (failed || !message.packed) return;
  int cancelled = 0;
  MPI_Count bytes = 0;
  PMPI_Test_cancelled(&status, &cancelled);
  if (cancelled) return;
  PMPI_Get_elements_x(&status, MPI_BYTE, &bytes);
  auto* base = static_cast<std::byte*>(message.buffer);
  if (bytes == message.what->bytes())
    message.what->packer.unpack(message.packed.data(), base);
  else if (bytes > 0 && bytes < message.what->bytes())
    message.what->unpack_part(message.packed.data(), 0, bytes, base);
}

void keep(MPI_Request request, Message message) {
  if (!none()) end_freed();
  if (request == MPI_REQUEST_NULL) return;
  if (!message.persistent) {
    MPI_Status status;
    int done = 0;
    if (PMPI_Request_get_status(request, &done, &status) == MPI_SUCCESS && done) {
      if (!message.receives) return;
      finish_receive(message, status, false);
    }
  }
  const std::scoped_lock lock(mutex);
  if (messages.insert_or_assign(request, std::make_unique<Message>(std::move(message))).second)
    open_messages.fetch_add(1, std::memory_order_acq_rel);
}

void end_requests() {
  end_freed();
}

}  // namespace tasuki::mpi

using namespace tasuki::mpi;

HOOK int tasuki_MPI_Wait(MPI_Request* request, MPI_Status* status) {
  if (none() || request == nullptr) return PMPI_Wait(request, status);
  const MPI_Request before = *request;
  if (find(before) == nullptr) return PMPI_Wait(request, status);
  MPI_Status own;
  const int result = PMPI_Wait(request, or_own(status, own));
  complete(before, *or_own(status, own), result != MPI_SUCCESS);
  return result;
}

HOOK int tasuki_MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  if (none() || request == nullptr) return PMPI_Test(request, flag, status);
  const MPI_Request before = *request;
  if (find(before) == nullptr) return PMPI_Test(request, flag, status);
  MPI_Status own;
  const int result = PMPI_Test(request, flag, or_own(status, own));
  if (result != MPI_SUCCESS ? *request == MPI_REQUEST_NULL : *flag != 0)
    complete(before, *or_own(status, own), result != MPI_SUCCESS);
  return result;
}

HOOK int tasuki_MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  if (none() || count <= 0 || requests == nullptr) return PMPI_Waitall(count, requests, statuses);
  const auto known = find_all(count, requests);
  if (known.empty()) return PMPI_Waitall(count, requests, statuses);
  const auto before = copied(requests, count);
  Statuses all(statuses, count);
  const int result = PMPI_Waitall(count, requests, all.data());
  complete_all(before, known, requests, all.data(), result);
  return result;
}

HOOK int tasuki_MPI_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  if (none() || count <= 0 || requests == nullptr) return PMPI_Testall(count, requests, flag, statuses);
  const auto known = find_all(count, requests);
  if (known.empty()) return PMPI_Testall(count, requests, flag, statuses);
  const auto before = copied(requests, count);
  Statuses all(statuses, count);
  const int result = PMPI_Testall(count, requests, flag, all.data());
  if (result != MPI_SUCCESS || *flag != 0) complete_all(before, known, requests, all.data(), result);
  return result;
}

HOOK int tasuki_MPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  if (none() || count <= 0 || requests == nullptr) return PMPI_Waitany(count, requests, index, status);
  const auto known = find_all(count, requests);
  if (known.empty()) return PMPI_Waitany(count, requests, index, status);
  const auto before = copied(requests, count);
  MPI_Status own;
  if (const int first = first_aside(known); first >= 0) {
    *index = first;
    complete_aside(requests[first], *or_own(status, own));
    return MPI_SUCCESS;
  }
  const int result = PMPI_Waitany(count, requests, index, or_own(status, own));
  if (*index >= 0 && *index < count)
    complete(before[static_cast<std::size_t>(*index)], *or_own(status, own), result != MPI_SUCCESS);
  return result;
}

HOOK int tasuki_MPI_Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  if (none() || count <= 0 || requests == nullptr) return PMPI_Testany(count, requests, index, flag, status);
  const auto known = find_all(count, requests);
  if (known.empty()) return PMPI_Testany(count, requests, index, flag, status);
  const auto before = copied(requests, count);
  MPI_Status own;
  if (const int first = first_aside(known); first >= 0) {
    *index = first;
    *flag = 1;
    complete_aside(requests[first], *or_own(status, own));
    return MPI_SUCCESS;
  }
  const int result = PMPI_Testany(count, requests, index, flag, or_own(status, own));
  if (*flag != 0 && *index >= 0 && *index < count)
    complete(before[static_cast<std::size_t>(*index)], *or_own(status, own), result != MPI_SUCCESS);
  return result;
}

namespace {

template <class Call>
int some(Call call, int count, MPI_Request* requests, int* number, int* indices, MPI_Status* statuses) {
  if (none() || count <= 0 || requests == nullptr) return call(count, requests, number, indices, statuses);
  const auto known = find_all(count, requests);
  if (known.empty()) return call(count, requests, number, indices, statuses);
  const auto before = copied(requests, count);
  Statuses all(statuses, count);
  if (first_aside(known) >= 0) {
    *number = 0;
    for (int i = 0; i < count; ++i) {
      const Message* message = known[static_cast<std::size_t>(i)];
      if (message == nullptr || !message->aside) continue;
      complete_aside(requests[i], all.data()[*number]);
      indices[(*number)++] = i;
    }
    return MPI_SUCCESS;
  }
  const int result = call(count, requests, number, indices, all.data());
  if (*number == MPI_UNDEFINED) return result;
  for (int i = 0; i < *number; ++i) {
    MPI_Status& status = all.data()[i];
    const bool failed = result != MPI_SUCCESS && !(result == MPI_ERR_IN_STATUS && status.MPI_ERROR == MPI_SUCCESS);
    complete(before[static_cast<std::size_t>(indices[i])], status, failed);
  }
  return result;
}

}  // namespace

HOOK int tasuki_MPI_Waitsome(int count, MPI_Request* requests, int* number, int* indices, MPI_Status* statuses) {
  return some(PMPI_Waitsome, count, requests, number, indices, statuses);
}

HOOK int tasuki_MPI_Testsome(int count, MPI_Request* requests, int* number, int* indices, MPI_Status* statuses) {
  return some(PMPI_Testsome, count, requests, number, indices, statuses);
}

// The program may read what it received once it has been told that the request is complete.
HOOK int tasuki_MPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  if (none()) return PMPI_Request_get_status(request, flag, status);
  Message* message = find(request);
  if (!is_receive(message)) return PMPI_Request_get_status(request, flag, status);
  MPI_Status own;
  const int result = PMPI_Request_get_status(request, flag, or_own(status, own));
  if (result == MPI_SUCCESS && *flag != 0 && message->active) finish_receive(*message, *or_own(status, own), false);
  return result;
}

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
HOOK int tasuki_MPI_Request_get_status_all(int count, const MPI_Request* requests, int* flag, MPI_Status* statuses) {
  if (none() || count <= 0) return PMPI_Request_get_status_all(count, requests, flag, statuses);
  Statuses all(statuses, count);
  const int result = PMPI_Request_get_status_all(count, requests, flag, all.data());
  if (result != MPI_SUCCESS || *flag == 0) return result;
  for (int i = 0; i < count; ++i) {
    Message* message = find(requests[i]);
    if (is_receive(message) && message->active) finish_receive(*message, all.data()[i], false);
  }
  return result;
}

HOOK int tasuki_MPI_Request_get_status_any(int count, const MPI_Request* requests, int* index, int* flag,
                                           MPI_Status* status) {
  if (none() || count <= 0) return PMPI_Request_get_status_any(count, requests, index, flag, status);
  const auto known = find_all(count, requests);
  MPI_Status own;
  if (const int first = first_aside(known); first >= 0) {
    *index = first;
    *flag = 1;
    set_empty(*or_own(status, own));
    return MPI_SUCCESS;
  }
  const int result = PMPI_Request_get_status_any(count, requests, index, flag, or_own(status, own));
  if (result != MPI_SUCCESS || *flag == 0 || *index < 0 || *index >= count) return result;
  Message* message = find(requests[*index]);
  if (is_receive(message) && message->active) finish_receive(*message, *or_own(status, own), false);
  return result;
}

HOOK int tasuki_MPI_Request_get_status_some(int count, const MPI_Request* requests, int* number, int* indices,
                                            MPI_Status* statuses) {
  if (none() || count <= 0) return PMPI_Request_get_status_some(count, requests, number, indices, statuses);
  const auto known = find_all(count, requests);
  Statuses all(statuses, count);
  if (first_aside(known) >= 0) {
    *number = 0;
    for (int i = 0; i < count; ++i) {
      const Message* message = known[static_cast<std::size_t>(i)];
      if (message == nullptr || !message->aside) continue;
      set_empty(all.data()[*number]);
      indices[(*number)++] = i;
    }
    return MPI_SUCCESS;
  }
  const int result = PMPI_Request_get_status_some(count, requests, number, indices, all.data());
  if (result != MPI_SUCCESS || *number == MPI_UNDEFINED) return result;
  for (int i = 0; i < *number; ++i) {
    Message* message = find(requests[indices[i]]);
    if (is_receive(message) && message->active) finish_receive(*message, all.data()[i], false);
  }
  return result;
}
#endif

// MPI completes it some time. Until then the packed bytes must stay, so MPI's request is kept and tested now and then.
HOOK int tasuki_MPI_Request_free(MPI_Request* request) {
  if (none() || request == nullptr) return PMPI_Request_free(request);
  Message* message = find(*request);
  if (message == nullptr) return PMPI_Request_free(request);
  if (message->persistent && !message->active) {
    forget(*request);
    return PMPI_Request_free(request);
  }
  {
    const std::scoped_lock lock(mutex);
    freed.push_back(*request);
  }
  *request = MPI_REQUEST_NULL;
  end_freed();
  return MPI_SUCCESS;
}

// A receive whose message is on its way through the ring is matched, and not cancelled.
HOOK int tasuki_MPI_Cancel(MPI_Request* request) {
  if (none() || request == nullptr) return PMPI_Cancel(request);
  Message* message = find(*request);
  if (message != nullptr && message->aside) return MPI_SUCCESS;
  if (message != nullptr && message->posting != nullptr) {
    if (!withdraw(message->posting)) return MPI_SUCCESS;
    message->posting = nullptr;
  }
  if (Comm* comm = message != nullptr && message->receives ? comm_of(message->comm) : nullptr) comm->wild = true;
  return PMPI_Cancel(request);
}

HOOK int tasuki_MPI_Start(MPI_Request* request) {
  return none() || request == nullptr ? PMPI_Start(request) : start(*request);
}

HOOK int tasuki_MPI_Startall(int count, MPI_Request* requests) {
  if (none() || count <= 0 || requests == nullptr) return PMPI_Startall(count, requests);
  const auto known = find_all(count, requests);
  return known.empty() ? PMPI_Startall(count, requests) : start_together(known, requests);
}
