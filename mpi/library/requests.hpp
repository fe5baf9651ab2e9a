// Requests of messages that were packed. The requests are MPI's own; what is kept beside them is where the packed bytes
// are, and what to do when MPI has completed them.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "comms.hpp"
#include "known.hpp"
#include "ring.hpp"
#include "scratch.hpp"
#include "standing.hpp"
#include "tasuki/strided_copy.hpp"

namespace tasuki::mpi {

/// What another thread may see or change.
class Flag {
 public:
  Flag() = default;
  Flag(Flag&& other) noexcept : is_(other.is_.load()) {}
  Flag& operator=(bool is) {
    is_.store(is, std::memory_order_release);
    return *this;
  }
  operator bool() const { return is_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> is_{false};
};

struct Message {
  std::shared_ptr<Counted> what;
  Scratch packed;          ///< none if MPI was given the program's buffer
  void* buffer = nullptr;  ///< the program's
  bool receives = false;
  bool persistent = false;
  bool active = true;  ///< of a persistent one: started, and not completed
  /// A thread is in a call that may end MPI's request. MPI may give the handle to another thread before that call is
  /// over, so that nobody else finds this message by it.
  Flag completing;
  bool unpacked = false;       ///< already, when the program asked for its status
  Posting* posting = nullptr;  ///< of a receive that a sender may see
  std::int64_t drained = -1;   ///< bytes that came through the ring
  bool ring_pays = false;      ///< of a persistent one: it goes through the ring where that is possible
  bool aside = false;          ///< of a persistent send: it went through the ring, and MPI's request is not started
  // Of a persistent receive, which may be one of several that are posted together. While it is `waiting` or `withdrawn`
  // MPI's request is not started.
  std::shared_ptr<Standing> standing;
  int slot = 0;
  bool offered = false;  ///< whether it was tried to let it stand
  Flag waiting;          ///< its bytes come into its slot, unless a thread gives it to MPI
  Flag withdrawn;        ///< it was cancelled while it waited
  bool direct = false;   ///< its bytes were copied to the program's buffer already
  bool in_slot = false;  ///< the bytes that it was completed with came into its slot
  // Of a persistent send to this rank itself: copies in one pass, to receives of that type.
  std::shared_ptr<Counted> copies_to;
  std::vector<std::pair<StridedCopy, CopyFunction>> copies;
  MPI_Request request = MPI_REQUEST_NULL;  ///< MPI's
  // Which kind of message it is; null if it is not counted. A persistent one is counted at each start.
  std::shared_ptr<Comm> counted;
  MPI_Comm comm = MPI_COMM_NULL;  ///< means nothing once the program has freed it
  int peer = MPI_PROC_NULL, tag = 0;
  std::int64_t number = -1;  ///< of the receive that was started last
  bool loose = false;        ///< others of its kind may be open of which nothing is known
  // Of a persistent send whose layout is not known, or is plain.
  std::int64_t count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  std::shared_ptr<const void> arguments;  ///< of a collective: what MPI goes on reading
  // For the report.
  const char* call = nullptr;
  const void* caller = nullptr;
  Route route = Route::original;
};

/// Keeps the message until the request is completed. If the request is complete already, it is finished at once: MPIs
/// give the same request to several sends that are complete.
void keep(MPI_Request request, Message message);

/// Whether no message is open, so that nothing need be looked up.
bool no_messages();
/// Null if there is none of that request.
Message* find_message(MPI_Request request);
/// Before MPI may complete the request: the message is `completing`, unless it is persistent, whose handle stays.
Message* find_to_complete(MPI_Request request);
/// Of many requests at once; empty if there is none of any.
std::vector<Message*> find_messages(int count, const MPI_Request* requests);
/// Those of requests that MPI may complete; the ones that are not complete when it ends are open again.
class Completing {
 public:
  Completing(int count, const MPI_Request* requests);
  Completing(const Completing&) = delete;
  Completing& operator=(const Completing&) = delete;
  ~Completing();
  bool none() const { return messages_.empty(); }
  const std::vector<Message*>& messages() const { return messages_; }
  Message*& operator[](int i) { return messages_[static_cast<std::size_t>(i)]; }

 private:
  std::vector<Message*> messages_;
};
inline bool is_receive(const Message* message) {
  return message != nullptr && message->receives;
}
/// Whether the message is started and is not MPI's: a send that is complete, or a receive whose slot has its bytes.
inline bool outside_mpi(const Message* message) {
  return message != nullptr && (message->aside || message->waiting || message->withdrawn || message->in_slot);
}
/// Whether it is, and is not complete. A receive that the sender has declined is MPI's then.
bool pending(Message* message);
/// Waits until it is not pending. MPI goes on meanwhile: the sender may need it.
void await_outside_mpi(Message* message);
/// The status of a send, and of a request that is not started.
void set_empty(MPI_Status& status);
/// MPI has completed the request that had this handle. `message` may be null, and is null afterwards if it is over. It
/// was found before MPI was called.
void complete(MPI_Request request, Message*& message, MPI_Status& status, bool failed);
/// MPI_Start of it. Open MPI gives a buffered send that is still on its way another handle when it is started again.
int start_in_mpi(Message& message, MPI_Request& request);
/// The message is over: nothing of it is kept for the request any more.
void forget(MPI_Request request, const Message* message);
/// The program has freed the request of an open message; it is ended once MPI has completed it.
void free_later(MPI_Request request);

/// MPI has completed the receive: what came is unpacked to the program's buffer, from the ring if a sender has taken
/// the posting, else from packed memory. `status` is MPI's, and is made to say how many bytes came.
void finish_receive(Message& message, MPI_Status& status, bool failed);

/// Before a receive of this rank is cancelled that MPI has, so that the messages of all others are met in another order
/// than they are numbered: senders see none of this rank's receives any more, and what they have seen is matched.
void forget_order();

/// Ends requests that the program has freed, as far as they are complete.
void end_requests();

}  // namespace tasuki::mpi
