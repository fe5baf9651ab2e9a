// Sends and receives. What travels is the bytes of the type map, so that the other side need not know of this library:
// MPI matches, probes, counts, truncates and cancels as ever.
#include <type_traits>
#include <utility>

#include "hook.hpp"
#include "typed.hpp"

namespace {

using namespace tasuki::mpi;

// A message is counted, and if its receive is posted, goes through the ring: MPI is given an empty message by `empty`,
// or if it does not have the receive either, one to nobody. True if that was done; `status` is then MPI's.
template <class Empty>
bool through_ring(const Typed& data, MPI_Comm comm, int to, int tag, int& status, const Empty& empty) {
  if (to < 0 || !ring_runs()) return false;
  const bool pays = data.ring_pays();
  Counting counting;
  Comm* known = counting.alone() || promises() ? comm_of(comm) : nullptr;
  if (known == nullptr) return false;
  const std::int64_t number = counting.alone() ? next_sent(*known, to, tag) : -1;
  if (const Slot slot = claim(*known, to, tag, data.message_bytes())) {
    status = empty(MPI_PROC_NULL);
    counting.end();
    data.fill(slot);
    return true;
  }
  if (!pays || !counting.alone()) return false;
  const Passage passage = PostingWait(data.what()).take(*known, to, tag, number, data.what().bytes());
  if (!passage) return false;
  status = empty(to);
  counting.end();
  fill(passage, data.what(), data.own_buffer());
  data.note(Route::ring);
  return true;
}

// A message that is counted, and may fill the slot of a posted receive, but is MPI's else. True if it has filled it.
bool into_slot(const Typed& data, MPI_Comm comm, int to, int tag) {
  if (to < 0 || !ring_runs()) return false;
  Counting counting;
  Comm* known = counting.alone() || promises() ? comm_of(comm) : nullptr;
  if (known == nullptr) return false;
  if (counting.alone()) next_sent(*known, to, tag);
  const Slot slot = claim(*known, to, tag, data.message_bytes());
  counting.end();
  if (slot) data.fill(slot);
  return static_cast<bool>(slot);
}

// Before MPI is given a receive.
void before_receive(MPI_Comm comm, int from, int tag) {
  if (!ring_runs() || from == MPI_PROC_NULL) return;
  notice_thread();
  if (const Comm* known = comm_of(comm)) hand_over(known, from, tag);
}

// A receive is counted, and if it is of a type in pieces, posted.
struct Received {
  Comm* comm = nullptr;  // null: it is not counted
  std::int64_t number = -1;
  Posting* posting = nullptr;
};
Received posted(const Counting& counting, const Typed& data, MPI_Comm comm, int from, int tag) {
  if (!ring_runs() || from == MPI_PROC_NULL) return {};
  const bool pays = data.ring_pays();
  Comm* known = counting.alone() ? comm_of(comm) : nullptr;
  if (known == nullptr) return {};
  if (from == MPI_ANY_SOURCE || tag == MPI_ANY_TAG) {  // it may take the message of any receive to come
    known->wild = true;
    return {};
  }
  const std::int64_t number = next_received(*known, from, tag);
  return {known, number, pays ? post(*known, from, tag, number, data.what().bytes()) : nullptr};
}

// By a call that blocks in MPI, which cannot be within `Counting`.
Posting* posted_by_blocking(const Typed& data, MPI_Comm comm, int from, int tag) {
  const Counting counting;
  Posting* posting = posted(counting, data, comm, from, tag).posting;
  if (posting != nullptr) set_blocking(posting);
  return posting;
}

// A message that was matched by its status, which is counted as a receive.
void count_matched(MPI_Comm comm, const MPI_Status& status) {
  if (!ring_runs()) return;
  const Counting counting;
  Comm* known = counting.alone() ? comm_of(comm) : nullptr;
  if (known != nullptr && status.MPI_SOURCE >= 0) next_received(*known, status.MPI_SOURCE, status.MPI_TAG);
}

template <class Original, class Small, class Count>
int send(const char* name, const void* caller, Original original, Small small, const void* buffer, Count count,
         MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  Typed data(name, caller, buffer, count, type, to < 0);
  int status = MPI_SUCCESS;
  if (through_ring(data, comm, to, tag, status,
                   [&](int whom) { return small(nullptr, 0, MPI_PACKED, whom, tag, comm); }))
    return status;
  data.choose();
  data.note();
  if (!data.changed()) return original(buffer, count, type, to, tag, comm);
  if (data.packed()) data.pack();
  return small(data.buffer(), data.count(), data.type(), to, tag, comm);
}

template <class Original, class Small, class Count>
int isend(const char* name, const void* caller, Original original, Small small, const void* buffer, Count count,
          MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  Typed data(name, caller, buffer, count, type, to < 0 || request == nullptr);
  int status = MPI_SUCCESS;
  if (through_ring(data, comm, to, tag, status,
                   [&](int whom) { return small(nullptr, 0, MPI_PACKED, whom, tag, comm, request); }))
    return status;
  data.choose();
  data.note();
  if (!data.changed()) return original(buffer, count, type, to, tag, comm, request);
  if (data.packed()) data.pack();
  const int result = small(data.buffer(), data.count(), data.type(), to, tag, comm, request);
  if (result == MPI_SUCCESS && data.packed()) keep(*request, data.message(false, false));
  return result;
}

// Messages of persistent requests that are not kept are not counted, and so are no others with their rank and tag.
template <class Leave>
void leave_uncounted(MPI_Comm comm, const Leave& leave) {
  if (!ring_runs()) return;
  const Counting counting;
  if (Comm* known = counting.alone() ? comm_of(comm) : nullptr) leave(*known);
}

// Whether a persistent message may gain by this library, so that it is worth looking after at each start.
bool worth_keeping(const Typed& data, MPI_Comm comm, int peer) {
  if (!data.known()) return false;
  if (data.packed() || reporting) return true;
  if (!ring_runs() || peer < 0) return false;
  const Counting counting;
  const Comm* known = counting.alone() ? comm_of(comm) : nullptr;
  return known != nullptr && static_cast<std::size_t>(peer) < known->world.size();
}

// A bundle may have the persistent send. True if one has a send of that kind, so that all of these must be looked
// after.
bool may_stand(bool kept, MPI_Comm comm, int to, int tag) {
  if (!ring_runs()) return false;
  const Counting counting;
  const Comm* known = counting.alone() || promises() ? comm_of(comm) : nullptr;
  if (known == nullptr || static_cast<std::size_t>(to) >= known->world.size()) return false;
  if (kept && counting.alone()) may_promise(*known, to, tag);
  return promised(*known, to, tag);
}

// MPI's request is bound to what MPI is given here: the program's buffer or a packed one. When it is started and its
// receive is posted, it stays inactive, and the message goes through the ring.
template <class Original, class Small, class Count>
int send_init(const char* name, const void* caller, Original original, Small small, const void* buffer, Count count,
              MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  Typed data(name, caller, buffer, count, type, to < 0 || request == nullptr);
  data.choose();
  const int result = data.changed() ? small(data.buffer(), data.count(), data.type(), to, tag, comm, request)
                                    : original(buffer, count, type, to, tag, comm, request);
  if (result != MPI_SUCCESS || to < 0) return result;
  const bool kept = worth_keeping(data, comm, to), known_type = data.known();
  if (!may_stand(kept, comm, to, tag) && !kept) {
    leave_uncounted(comm, [&](Comm& known) { leave_sent(known, to, tag); });
    return result;
  }
  Message message = data.message(false, true);
  if (Comm* known = comm_of(comm)) message.counted = known->shared_from_this();
  message.comm = comm;
  message.peer = to;
  message.tag = tag;
  if (!known_type) {
    message.count = static_cast<std::int64_t>(count);
    PMPI_Type_dup(type, &message.type);
  }
  keep(*request, std::move(message));
  return result;
}

template <class Original, class Small, class Count>
int irecv(const char* name, const void* caller, Original original, Small small, void* buffer, Count count,
          MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request) {
  Typed data(name, caller, buffer, count, type, from == MPI_PROC_NULL || request == nullptr);
  data.choose_to_receive();
  before_receive(comm, from, tag);
  const int result = data.changed() ? small(data.buffer(), data.count(), data.type(), from, tag, comm, request)
                                    : original(buffer, count, type, from, tag, comm, request);
  if (result != MPI_SUCCESS || request == nullptr) return result;
  const Counting counting;
  const Received received = posted(counting, data, comm, from, tag);  // once MPI has it, so that nobody can probe it
  if (!data.packed() && received.posting == nullptr) {
    if (received.comm != nullptr) last_is_loose();
    data.note();
    return result;
  }
  Message message = data.message(true, false);
  message.posting = received.posting;
  message.number = received.number;
  if (received.comm != nullptr) message.counted = received.comm->shared_from_this();
  message.comm = comm;
  message.peer = from;
  message.tag = tag;
  keep(*request, std::move(message));
  return result;
}

template <class Original, class Small, class Count>
int recv_init(const char* name, const void* caller, Original original, Small small, void* buffer, Count count,
              MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request) {
  Typed data(name, caller, buffer, count, type, from == MPI_PROC_NULL || request == nullptr);
  data.choose_to_receive();
  const int result = data.changed() ? small(data.buffer(), data.count(), data.type(), from, tag, comm, request)
                                    : original(buffer, count, type, from, tag, comm, request);
  if (result != MPI_SUCCESS || from == MPI_PROC_NULL) return result;
  const bool any = from == MPI_ANY_SOURCE || tag == MPI_ANY_TAG;
  const bool kept = worth_keeping(data, comm, from);
  if (any || !kept) before_receive(comm, from, tag);
  if (any || !kept)
    leave_uncounted(comm, [&](Comm& known) {
      if (any)
        known.wild = true;
      else
        leave_received(known, from, tag);
    });
  if (!kept) return result;
  Message message = data.message(true, true);
  if (!any) {
    if (Comm* known = comm_of(comm)) message.counted = known->shared_from_this();
    message.comm = comm;
    message.peer = from;
    message.tag = tag;
  }
  keep(*request, std::move(message));
  return result;
}

// What a blocking call has received.
void finish(Typed& data, Posting* posting, MPI_Status& status, int result) {
  Message message = data.message(true, false);
  message.posting = posting;
  finish_receive(message, status, result != MPI_SUCCESS);
  if (posting != nullptr) set_blocking(nullptr);
}

template <class Original, class Count>
int recv(const char* name, const void* caller, Original original, void* buffer, Count count, MPI_Datatype type,
         int from, int tag, MPI_Comm comm, MPI_Status* status) {
  Typed data(name, caller, buffer, count, type, from == MPI_PROC_NULL);
  data.choose_to_receive();
  before_receive(comm, from, tag);
  Posting* posting = posted_by_blocking(data, comm, from, tag);
  if (!data.known()) return original(buffer, count, type, from, tag, comm, status);
  MPI_Status own;
  MPI_Status* seen = status == MPI_STATUS_IGNORE ? &own : status;
  const int result = data.changed() ? PMPI_Recv(data.buffer(), data.count(), data.type(), from, tag, comm, seen)
                                    : original(buffer, count, type, from, tag, comm, seen);
  finish(data, posting, *seen, result);
  return result;
}

template <class Count>
int plain_recv(void* buffer, Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status* status) {
#if MPI_VERSION >= 4
  if constexpr (!std::is_same_v<Count, int>) return PMPI_Recv_c(buffer, count, type, from, tag, comm, status);
#endif
  return PMPI_Recv(buffer, static_cast<int>(count), type, from, tag, comm, status);
}

template <class Original, class Count>
int mrecv(const char* name, const void* caller, Original original, void* buffer, Count count, MPI_Datatype type,
          MPI_Message* message, MPI_Status* status) {
  const bool nobody = message == nullptr || *message == MPI_MESSAGE_NO_PROC;
  Typed data(name, caller, buffer, count, type, nobody);
  data.choose_to_receive();
  if (!data.changed()) {
    data.note();
    return original(buffer, count, type, message, status);
  }
  MPI_Status own;
  MPI_Status* seen = status == MPI_STATUS_IGNORE ? &own : status;
  const int result = PMPI_Mrecv(data.buffer(), data.count(), data.type(), message, seen);
  finish(data, nullptr, *seen, result);
  return result;
}

template <class Original, class Count>
int imrecv(const char* name, const void* caller, Original original, void* buffer, Count count, MPI_Datatype type,
           MPI_Message* message, MPI_Request* request) {
  const bool nobody = message == nullptr || *message == MPI_MESSAGE_NO_PROC;
  Typed data(name, caller, buffer, count, type, nobody || request == nullptr);
  data.choose_to_receive();
  if (!data.packed()) data.note();
  if (!data.changed()) return original(buffer, count, type, message, request);
  const int result = PMPI_Imrecv(data.buffer(), data.count(), data.type(), message, request);
  if (result == MPI_SUCCESS && data.packed()) keep(*request, data.message(true, false));
  return result;
}

template <class Original, class Count>
int sendrecv(const char* name, const void* caller, Original original, const void* out, Count out_count,
             MPI_Datatype out_type, int to, int out_tag, void* in, Count in_count, MPI_Datatype in_type, int from,
             int in_tag, MPI_Comm comm, MPI_Status* status) {
  Typed sent(name, caller, out, out_count, out_type, to < 0);
  Typed received(name, caller, in, in_count, in_type, from == MPI_PROC_NULL);
  received.choose_to_receive();
  before_receive(comm, from, in_tag);
  Posting* posting = posted_by_blocking(received, comm, from, in_tag);
  MPI_Status own;
  MPI_Status* seen = status == MPI_STATUS_IGNORE ? &own : status;
  const auto receive = [&](int result) {
    if (received.known()) finish(received, posting, *seen, result);
    return result;
  };
  int result = MPI_SUCCESS;
  MPI_Request empty = MPI_REQUEST_NULL;
  const bool fits = in_count <= INT_MAX;
  if (!fits) {
    if (into_slot(sent, comm, to, out_tag))
      return receive(plain_recv<Count>(in, in_count, in_type, from, in_tag, comm, seen));
  } else if (through_ring(sent, comm, to, out_tag, result,
                          [&](int whom) { return PMPI_Isend(nullptr, 0, MPI_PACKED, whom, out_tag, comm, &empty); })) {
    if (result != MPI_SUCCESS) return receive(result);
    result = PMPI_Recv(received.buffer(), received.count(), received.type(), from, in_tag, comm, seen);
    receive(result);
    const int last = PMPI_Wait(&empty, MPI_STATUS_IGNORE);
    return result != MPI_SUCCESS ? result : last;
  }
  sent.choose();
  sent.note();
  if (!fits || out_count > INT_MAX || (!sent.changed() && !received.changed()))
    return receive(original(out, out_count, out_type, to, out_tag, received.own_buffer(), in_count, in_type, from,
                            in_tag, comm, received.known() ? seen : status));
  if (sent.packed()) sent.pack();
  return receive(PMPI_Sendrecv(sent.buffer(), sent.count(), sent.type(), to, out_tag, received.buffer(),
                               received.count(), received.type(), from, in_tag, comm, seen));
}

template <class Original, class Count>
int sendrecv_replace(const char* name, const void* caller, Original original, void* buffer, Count count,
                     MPI_Datatype type, int to, int out_tag, int from, int in_tag, MPI_Comm comm, MPI_Status* status) {
  Typed sent(name, caller, buffer, count, type, to < 0 || from == MPI_PROC_NULL);
  Typed received(name, caller, buffer, count, type, to < 0 || from == MPI_PROC_NULL);
  if (into_slot(sent, comm, to, out_tag))
    return recv(name, caller, plain_recv<Count>, buffer, count, type, from, in_tag, comm, status);
  const Typed nothing(name, caller, nullptr, 0, MPI_BYTE, true);
  before_receive(comm, from, in_tag);
  posted(Counting(), nothing, comm, from, in_tag);  // it is counted
  sent.choose();
  received.choose_to_receive();
  sent.note();
  if (!sent.packed()) {
    received.note();
    if (!sent.changed()) return original(buffer, count, type, to, out_tag, from, in_tag, comm, status);
    return PMPI_Sendrecv_replace(buffer, sent.count(), sent.type(), to, out_tag, from, in_tag, comm, status);
  }
  sent.pack();
  MPI_Status own;
  MPI_Status* seen = status == MPI_STATUS_IGNORE ? &own : status;
  const int result = PMPI_Sendrecv(sent.buffer(), sent.count(), sent.type(), to, out_tag, received.buffer(),
                                   received.count(), received.type(), from, in_tag, comm, seen);
  finish(received, nullptr, *seen, result);
  return result;
}

}  // namespace

// Each call with counts that are ints and, where the MPI has it, with large counts.
#if MPI_VERSION >= 4
#define BOTH(define, name) define(name, name, int) define(name##_c, name, MPI_Count)
#else
#define BOTH(define, name) define(name, name, int)
#endif

#define SEND(name, small, Count)                                                                                   \
  HOOK int tasuki_MPI_##name(const void* buffer, Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm) { \
    return send("MPI_" #name, CALLER, PMPI_##name, PMPI_##small, buffer, count, type, to, tag, comm);              \
  }
BOTH(SEND, Send)
BOTH(SEND, Ssend)
BOTH(SEND, Rsend)
BOTH(SEND, Bsend)

#define ISEND(name, small, Count)                                                                                \
  HOOK int tasuki_MPI_##name(const void* buffer, Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm, \
                             MPI_Request* request) {                                                             \
    return isend("MPI_" #name, CALLER, PMPI_##name, PMPI_##small, buffer, count, type, to, tag, comm, request);  \
  }
BOTH(ISEND, Isend)
BOTH(ISEND, Issend)
BOTH(ISEND, Irsend)
BOTH(ISEND, Ibsend)

#define SEND_INIT(name, small, Count)                                                                               \
  HOOK int tasuki_MPI_##name(const void* buffer, Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm,    \
                             MPI_Request* request) {                                                                \
    return send_init("MPI_" #name, CALLER, PMPI_##name, PMPI_##small, buffer, count, type, to, tag, comm, request); \
  }
BOTH(SEND_INIT, Send_init)
BOTH(SEND_INIT, Ssend_init)
BOTH(SEND_INIT, Rsend_init)
BOTH(SEND_INIT, Bsend_init)

#define IRECV(name, small, Count)                                                                                 \
  HOOK int tasuki_MPI_##name(void* buffer, Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,      \
                             MPI_Request* request) {                                                              \
    return irecv("MPI_" #name, CALLER, PMPI_##name, PMPI_##small, buffer, count, type, from, tag, comm, request); \
  }
BOTH(IRECV, Irecv)

#define RECV_INIT(name, small, Count)                                                                                 \
  HOOK int tasuki_MPI_##name(void* buffer, Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,          \
                             MPI_Request* request) {                                                                  \
    return recv_init("MPI_" #name, CALLER, PMPI_##name, PMPI_##small, buffer, count, type, from, tag, comm, request); \
  }
BOTH(RECV_INIT, Recv_init)

#define RECV(name, small, Count)                                                                             \
  HOOK int tasuki_MPI_##name(void* buffer, Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm, \
                             MPI_Status* status) {                                                           \
    return recv("MPI_" #name, CALLER, PMPI_##name, buffer, count, type, from, tag, comm, status);            \
  }
BOTH(RECV, Recv)

#define MRECV(name, small, Count)                                                                                      \
  HOOK int tasuki_MPI_##name(void* buffer, Count count, MPI_Datatype type, MPI_Message* message, MPI_Status* status) { \
    return mrecv("MPI_" #name, CALLER, PMPI_##name, buffer, count, type, message, status);                             \
  }
BOTH(MRECV, Mrecv)

#define IMRECV(name, small, Count)                                                               \
  HOOK int tasuki_MPI_##name(void* buffer, Count count, MPI_Datatype type, MPI_Message* message, \
                             MPI_Request* request) {                                             \
    return imrecv("MPI_" #name, CALLER, PMPI_##name, buffer, count, type, message, request);     \
  }
BOTH(IMRECV, Imrecv)

#define SENDRECV(name, small, Count)                                                                                 \
  HOOK int tasuki_MPI_##name(const void* out, Count out_count, MPI_Datatype out_type, int to, int out_tag, void* in, \
                             Count in_count, MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm,              \
                             MPI_Status* status) {                                                                   \
    return sendrecv("MPI_" #name, CALLER, PMPI_##name, out, out_count, out_type, to, out_tag, in, in_count, in_type, \
                    from, in_tag, comm, status);                                                                     \
  }
BOTH(SENDRECV, Sendrecv)

#define SENDRECV_REPLACE(name, small, Count)                                                                          \
  HOOK int tasuki_MPI_##name(void* buffer, Count count, MPI_Datatype type, int to, int out_tag, int from, int in_tag, \
                             MPI_Comm comm, MPI_Status* status) {                                                     \
    return sendrecv_replace("MPI_" #name, CALLER, PMPI_##name, buffer, count, type, to, out_tag, from, in_tag, comm,  \
                            status);                                                                                  \
  }
BOTH(SENDRECV_REPLACE, Sendrecv_replace)

// Messages that are matched before they are received are counted when they are matched.
HOOK int tasuki_MPI_Mprobe(int from, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
  MPI_Status own;
  MPI_Status* seen = status == MPI_STATUS_IGNORE ? &own : status;
  notice_thread();
  const int result = PMPI_Mprobe(from, tag, comm, message, seen);
  if (result == MPI_SUCCESS) count_matched(comm, *seen);
  return result;
}

HOOK int tasuki_MPI_Improbe(int from, int tag, MPI_Comm comm, int* flag, MPI_Message* message, MPI_Status* status) {
  MPI_Status own;
  MPI_Status* seen = status == MPI_STATUS_IGNORE ? &own : status;
  notice_thread();
  const int result = PMPI_Improbe(from, tag, comm, flag, message, seen);
  if (result == MPI_SUCCESS && *flag != 0) count_matched(comm, *seen);
  return result;
}

#if MPI_VERSION >= 4
namespace {
// Left to MPI, but for what fills a slot; what it receives is counted, as it is posted by this call.
void count_received(MPI_Comm comm, int from, int tag) {
  const Typed nothing("", nullptr, nullptr, 0, MPI_BYTE, true);
  before_receive(comm, from, tag);
  const Counting counting;
  if (posted(counting, nothing, comm, from, tag).comm != nullptr) last_is_loose();
}

template <class Count>
int plain_irecv(void* buffer, Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request) {
  if constexpr (std::is_same_v<Count, int>)
    return PMPI_Irecv(buffer, count, type, from, tag, comm, request);
  else
    return PMPI_Irecv_c(buffer, count, type, from, tag, comm, request);
}
}  // namespace

#define ISENDRECV(name, small, Count)                                                                                \
  HOOK int tasuki_MPI_##name(const void* out, Count out_count, MPI_Datatype out_type, int to, int out_tag, void* in, \
                             Count in_count, MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm,              \
                             MPI_Request* request) {                                                                 \
    if (into_slot(Typed("MPI_" #name, CALLER, out, out_count, out_type, to < 0), comm, to, out_tag))                 \
      return irecv("MPI_" #name, CALLER, plain_irecv<Count>, PMPI_Irecv, in, in_count, in_type, from, in_tag, comm,  \
                   request);                                                                                         \
    count_received(comm, from, in_tag);                                                                              \
    return PMPI_##name(out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, request);   \
  }
BOTH(ISENDRECV, Isendrecv)

#define ISENDRECV_REPLACE(name, small, Count)                                                                         \
  HOOK int tasuki_MPI_##name(void* buffer, Count count, MPI_Datatype type, int to, int out_tag, int from, int in_tag, \
                             MPI_Comm comm, MPI_Request* request) {                                                   \
    if (into_slot(Typed("MPI_" #name, CALLER, buffer, count, type, to < 0), comm, to, out_tag))                       \
      return irecv("MPI_" #name, CALLER, plain_irecv<Count>, PMPI_Irecv, buffer, count, type, from, in_tag, comm,     \
                   request);                                                                                          \
    count_received(comm, from, in_tag);                                                                               \
    return PMPI_##name(buffer, count, type, to, out_tag, from, in_tag, comm, request);                                \
  }
BOTH(ISENDRECV_REPLACE, Isendrecv_replace)
#endif
