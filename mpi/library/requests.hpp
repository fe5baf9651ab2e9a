// Requests of messages that were packed. The requests are MPI's own; what is kept beside them is where the packed bytes
// are, and what to do when MPI has completed them.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>

#include "known.hpp"
#include "scratch.hpp"

namespace tasuki::mpi {

struct Message {
  std::shared_ptr<Counted> what;
  Scratch packed;
  void* buffer = nullptr;  ///< the program's
  bool receives = false;
  bool persistent = false;
  bool active = true;     ///< of a persistent one: started, and not completed
  bool unpacked = false;  ///< already, when the program asked for its status
};

/// Keeps the message until the request is completed. If the request is complete already, it is finished at once: MPIs
/// give the same request to several sends that are complete.
void keep(MPI_Request request, Message message);

/// What came into `packed`, to the receive's buffer. `status` is MPI's.
void unpack_received(const Counted& what, const Scratch& packed, void* buffer, const MPI_Status& status);

/// Ends requests that the program has freed, as far as they are complete.
void end_requests();

}  // namespace tasuki::mpi
