// The table of open messages, what is done when MPI has completed one, and the calls that end requests: see
// requests.hpp. The calls that complete requests are in completion.cpp, those that start them in persistent.cpp.
#include "requests.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
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
// Those whose handle another thread has got from MPI again before the thread that completed them could end them.
auto& outlived = *new std::vector<std::unique_ptr<Message>>;
// Persistent requests are started and completed in the same arrays again and again.
struct Lookup {
  std::vector<MPI_Request> requests;
  std::vector<Message*> found;
  std::uint64_t changes = 0;
};
auto& last_lookup = *new Lookup;
std::uint64_t changes = 1;                    // of `messages`
auto& freed = *new std::vector<MPI_Request>;  // by the program, before they were complete; `messages` has them

}  // namespace

bool no_messages() {
  return open_messages.load(std::memory_order_acquire) == 0;
}

namespace {

// Under the lock. One that another thread completes has lost its handle, if this thread has got it from MPI.
Message* look_up(MPI_Request request, bool to_complete) {
  const auto found = messages.find(request);
  if (found == messages.end() || found->second->completing) return nullptr;
  Message* message = found->second.get();
  if (to_complete && !message->persistent) message->completing = true;
  return message;
}

std::vector<Message*> look_up(int count, const MPI_Request* requests, bool to_complete) {
  std::vector<Message*> found;
  const std::scoped_lock lock(mutex);
  if (const Lookup& seen = last_lookup; seen.changes == changes && static_cast<int>(seen.requests.size()) == count &&
                                        std::equal(seen.requests.begin(), seen.requests.end(), requests))
    return seen.found;
  for (int i = 0; i < count; ++i) {
    Message* one = look_up(requests[i], to_complete);
    if (one == nullptr) continue;
    if (found.empty()) found.resize(static_cast<std::size_t>(count));
    found[static_cast<std::size_t>(i)] = one;
  }
  const bool lasting = !found.empty() && std::all_of(found.begin(), found.end(), [](const Message* message) {
    return message != nullptr && message->persistent;
  });
  if (lasting) last_lookup = {{requests, requests + count}, found, changes};
  return found;
}

// Under the lock.
std::unique_ptr<Message> take_out(MPI_Request request, const Message* message) {
  std::unique_ptr<Message> taken;
  ++changes;
  if (const auto found = messages.find(request); found != messages.end() && found->second.get() == message) {
    taken = std::move(found->second);
    messages.erase(found);
    return taken;
  }
  const auto one = std::find_if(outlived.begin(), outlived.end(), [&](const auto& m) { return m.get() == message; });
  if (one == outlived.end()) return nullptr;
  taken = std::move(*one);
  outlived.erase(one);
  return taken;
}

void put_in(MPI_Request request, std::unique_ptr<Message> message) {
  ++changes;
  std::unique_ptr<Message>& place = messages[request];
  if (place != nullptr) outlived.push_back(std::move(place));
  place = std::move(message);
}

}  // namespace

Message* find_message(MPI_Request request) {
  if (request == MPI_REQUEST_NULL) return nullptr;
  const std::scoped_lock lock(mutex);
  return look_up(request, false);
}

Message* find_to_complete(MPI_Request request) {
  if (request == MPI_REQUEST_NULL) return nullptr;
  const std::scoped_lock lock(mutex);
  return look_up(request, true);
}

std::vector<Message*> find_messages(int count, const MPI_Request* requests) {
  return look_up(count, requests, false);
}

Completing::Completing(int count, const MPI_Request* requests) : messages_(look_up(count, requests, true)) {}

Completing::~Completing() {
  for (Message* message : messages_)
    if (message != nullptr && !message->persistent) message->completing = false;
}

void forget(MPI_Request request, const Message* message) {
  std::unique_ptr<Message> last;
  {
    const std::scoped_lock lock(mutex);
    last = take_out(request, message);
    if (last == nullptr) return;
    open_messages.fetch_sub(1, std::memory_order_acq_rel);
  }
  end(*last);
  if (last->type != MPI_DATATYPE_NULL) PMPI_Type_free(&last->type);
}

int start_in_mpi(Message& message, MPI_Request& request) {
  const MPI_Request before = request;
  if (message.receives) return PMPI_Start(&request);  // whose handle stays, and which another thread may give to MPI
  message.completing = true;
  const int result = PMPI_Start(&request);
  if (request != before) {
    const std::scoped_lock lock(mutex);
    message.request = request;
    if (std::unique_ptr<Message> own = take_out(before, &message); own != nullptr) put_in(request, std::move(own));
  }
  message.completing = false;
  return result;
}

void complete(MPI_Request request, Message*& message, MPI_Status& status, bool failed) {
  if (message == nullptr) return;
  if (message->receives && message->active) finish_receive(*message, status, failed);
  if (message->persistent)
    message->active = message->aside = message->withdrawn = message->in_slot = false;
  else
    forget(request, std::exchange(message, nullptr));
}

void end_requests() {
  std::vector<MPI_Request> left;
  {
    const std::scoped_lock lock(mutex);
    if (freed.empty()) return;
    left = std::exchange(freed, {});
  }
  std::vector<MPI_Request> open;
  for (MPI_Request request : left) {
    Message* message = find_to_complete(request);
    MPI_Request now = request;
    MPI_Status status;
    int done = 0;
    const int error = pending(message) ? MPI_SUCCESS : PMPI_Test(&now, &done, &status);
    if (error == MPI_SUCCESS && !done) {
      if (message != nullptr) message->completing = false;
      open.push_back(request);
      continue;
    }
    if (is_receive(message) && message->active) finish_receive(*message, status, error != MPI_SUCCESS);
    const bool persistent = message != nullptr && message->persistent;
    forget(request, message);
    if (persistent && now != MPI_REQUEST_NULL) PMPI_Request_free(&now);
  }
  const std::scoped_lock lock(mutex);
  freed.insert(freed.end(), open.begin(), open.end());
}

void free_later(MPI_Request request) {
  const std::scoped_lock lock(mutex);
  freed.push_back(request);
}

void set_empty(MPI_Status& status) {
  MPI_Request none = MPI_REQUEST_NULL;
  PMPI_Wait(&none, &status);
}

bool pending(Message* message) {
  return message != nullptr && message->waiting && !arrived(*message);
}

void await_outside_mpi(Message* message) {
  if (!pending(message)) return;
  RankWait wait(message->standing->sender);
  constexpr int kSpins = 200;
  for (int turn = 1; pending(message); ++turn) {
    wait.turn();
    int unused = 0;
    if (turn % kSpins == 0 || !may_spin()) PMPI_Iprobe(0, 0, session().own, &unused, MPI_STATUS_IGNORE);
  }
}

// MPI has the receive, and its message is on the way. If another thread is about to complete it, the handle may mean
// something else: MPI then matches it in that thread's call, which may wait for other things as well.
static void await_match(MPI_Request request, const Message* message) {
  constexpr std::chrono::seconds kEnough{1};
  const auto begin = std::chrono::steady_clock::now();
  for (int there = 0; there == 0; sched_yield()) {
    const std::scoped_lock lock(mutex);
    const auto found = messages.find(request);
    if (found == messages.end() || found->second.get() != message) return;
    if (!message->completing) {
      if (PMPI_Request_get_status(request, &there, MPI_STATUS_IGNORE) != MPI_SUCCESS) return;
    } else if (std::chrono::steady_clock::now() - begin > kEnough) {
      return;
    }
  }
}

void forget_order() {
  hand_over(nullptr, MPI_ANY_SOURCE, MPI_ANY_TAG);
  std::vector<std::pair<MPI_Request, const Message*>> taken;
  {
    const std::scoped_lock lock(mutex);
    for (auto& [request, message] : messages) {  // those that have outlived their requests are matched
      if (message->posting == nullptr) continue;
      if (withdraw(message->posting))
        message->posting = nullptr;
      else
        taken.emplace_back(request, message.get());
    }
  }
  for (const auto& [request, message] : taken) await_match(request, message);
}

// What the status says that MPI does not know.
static void set_received(const Message& message, MPI_Status& status) {
  if (message.withdrawn) {
    set_empty(status);
    PMPI_Status_set_cancelled(&status, 1);
    return;
  }
  if (message.in_slot) {
    set_empty(status);
    status.MPI_SOURCE = message.peer;
    status.MPI_TAG = message.tag;
  }
  if (message.drained >= 0) PMPI_Status_set_elements_x(&status, MPI_BYTE, message.drained);
}

// The posting, which another thread's `forget_order` no longer sees.
static Posting* taken_from(Message& message) {
  if (message.posting == nullptr) return nullptr;
  const std::scoped_lock lock(mutex);
  return std::exchange(message.posting, nullptr);
}

// False if a sender has taken it.
static bool withdraw_posting(Message& message) {
  const std::scoped_lock lock(mutex);
  if (message.posting != nullptr && !withdraw(message.posting)) return false;
  message.posting = nullptr;
  return true;
}

void finish_receive(Message& message, MPI_Status& status, bool failed) {
  if (message.unpacked) {  // the status that MPI gives again
    set_received(message, status);
    return;
  }
  message.unpacked = true;
  if (message.what == nullptr) return;
  if (message.withdrawn) return set_received(message, status);
  if (message.waiting) {
    message.drained = drain(message);
    message.in_slot = true;
    leave(message);
    set_received(message, status);
    note(message.call, message.caller, *message.what, Route::ring);
    return;
  }
  if (Posting* posting = taken_from(message); posting != nullptr && !withdraw(posting)) {
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
  message.what->close_gap(message.packed.data());
  if (bytes == message.what->bytes())
    message.what->packer.unpack(message.packed.data(), base);
  else if (bytes > 0 && bytes < message.what->bytes())
    message.what->unpack_part(message.packed.data(), 0, bytes, base);
}

void keep(MPI_Request request, Message message) {
  if (!no_messages()) end_requests();
  if (request == MPI_REQUEST_NULL) return;
  if (!message.persistent) {
    MPI_Status status;
    int done = 0;
    if (PMPI_Request_get_status(request, &done, &status) == MPI_SUCCESS && done) {
      if (!message.receives) return;
      finish_receive(message, status, false);
    }
  }
  message.request = request;
  const std::scoped_lock lock(mutex);
  put_in(request, std::make_unique<Message>(std::move(message)));
  open_messages.fetch_add(1, std::memory_order_acq_rel);
}

}  // namespace tasuki::mpi

using namespace tasuki::mpi;

// MPI completes it some time. Until then the packed bytes must stay, so MPI's request is kept and tested now and then.
HOOK int tasuki_MPI_Request_free(MPI_Request* request) {
  if (no_messages() || request == nullptr) return PMPI_Request_free(request);
  Message* message = find_message(*request);
  if (message == nullptr) return PMPI_Request_free(request);
  if (message->persistent && !message->active) {
    forget(*request, message);
    return PMPI_Request_free(request);
  }
  free_later(*request);
  *request = MPI_REQUEST_NULL;
  end_requests();
  return MPI_SUCCESS;
}

// A receive whose message is on its way is matched, and not cancelled.
HOOK int tasuki_MPI_Cancel(MPI_Request* request) {
  if (request == nullptr || !ring_runs()) return PMPI_Cancel(request);
  notice_thread();
  Message* message = no_messages() ? nullptr : find_message(*request);
  if (message == nullptr) {  // of whatever kind it is
    forget_order();
    all_wild();
    return PMPI_Cancel(request);
  }
  if (message->aside) return MPI_SUCCESS;
  if (!message->receives) return PMPI_Cancel(request);
  if (message->in_slot || message->withdrawn) return MPI_SUCCESS;
  if (message->waiting) {
    if (take_back(*message)) message->counted->wild = true;
    return MPI_SUCCESS;
  }
  if (!withdraw_posting(*message)) return MPI_SUCCESS;
  if (message->counted != nullptr) {
    if (hand_over(message->counted.get(), message->peer, message->tag, message->number)) {
      await_match(*request, message);
      return MPI_SUCCESS;
    }
    message->counted->wild = true;
  }
  forget_order();
  return PMPI_Cancel(request);
}
