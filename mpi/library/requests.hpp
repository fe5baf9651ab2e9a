// Requests of messages that were packed. The requests are MPI's own; what is kept beside them is where the packed bytes
// are, and what to do when MPI has completed them.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "known.hpp"
#include "ring.hpp"
#include "scratch.hpp"

namespace tasuki::mpi {

struct Message {
  std::shared_ptr<Counted> what;
  Scratch packed;          ///< none if MPI was given the program's buffer
  void* buffer = nullptr;  ///< the program's
  bool receives = false;
  bool persistent = false;
  bool active = true;          ///< of a persistent one: started, and not completed
  bool unpacked = false;       ///< already, when the program asked for its status
  Posting* posting = nullptr;  ///< of a receive that a sender may see
  std::int64_t drained = -1;   ///< bytes that came through the ring
  bool ring_pays = false;      ///< of a persistent one: it goes through the ring where that is possible
  bool aside = false;          ///< of a persistent send: it went through the ring, and MPI's request is not started
  // Of a persistent message that is counted at each start: which one it is.
  MPI_Comm comm = MPI_COMM_NULL;
  int peer = MPI_PROC_NULL, tag = 0;
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
/// Of many requests at once; empty if there is none of any.
std::vector<Message*> find_messages(int count, const MPI_Request* requests);
inline bool is_receive(const Message* message) {
  return message != nullptr && message->receives;
}
/// MPI has completed the request that had this handle. `message` may be null.
void complete(MPI_Request request, Message* message, MPI_Status& status, bool failed);
void complete(MPI_Request request, MPI_Status& status, bool failed);
/// MPI_Start of it. Open MPI gives a buffered send that is still on its way another handle when it is started again.
int start_in_mpi(MPI_Request& request);
/// The message is over: nothing is kept for the request any more.
void forget(MPI_Request request);
/// The program has freed the request of an open message; it is ended once MPI has completed it.
void free_later(MPI_Request request);

/// MPI has completed the receive: what came is unpacked to the program's buffer, from the ring if a sender has taken
/// the posting, else from packed memory. `status` is MPI's, and is made to say how many bytes came.
void finish_receive(Message& message, MPI_Status& status, bool failed);

/// Ends requests that the program has freed, as far as they are complete.
void end_requests();

}  // namespace tasuki::mpi
