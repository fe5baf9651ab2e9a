// The calls that complete requests, or say that they are complete. As long as no packed message is open they cost one
// comparison.
#include <vector>

#include "hook.hpp"
#include "requests.hpp"
#include "session.hpp"

namespace {

using namespace tasuki::mpi;

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

void complete_all(const std::vector<MPI_Request>& before, Completing& known, const MPI_Request* after,
                  MPI_Status* statuses, int result) {
  for (int i = 0; i < static_cast<int>(before.size()); ++i) {
    if (known[i] == nullptr) continue;
    const bool in_status = result == MPI_ERR_IN_STATUS;
    const bool open = (in_status && statuses[i].MPI_ERROR == MPI_ERR_PENDING) ||
                      (result != MPI_SUCCESS && !in_status && after[i] != MPI_REQUEST_NULL);
    if (open) continue;
    complete(before[static_cast<std::size_t>(i)], known[i], statuses[i],
             result != MPI_SUCCESS && !(in_status && statuses[i].MPI_ERROR == MPI_SUCCESS));
  }
}

void complete_one(const std::vector<MPI_Request>& before, Completing& known, int index, MPI_Status& status,
                  bool failed) {
  complete(before[static_cast<std::size_t>(index)], known[index], status, failed);
}

// MPI does not see what is outside of it: the first of it that is complete; -1 if there is none. `open`: whether others
// are not.
int first_outside_mpi(const std::vector<Message*>& known, bool& open) {
  open = false;
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (!outside_mpi(known[i])) continue;
    if (!pending(known[i]) && outside_mpi(known[i])) return static_cast<int>(i);
    open = open || outside_mpi(known[i]);
  }
  return -1;
}

// What is said of it before it is completed.
[[maybe_unused]] void see_outside_mpi(Message& message, MPI_Status& status) {
  set_empty(status);
  if (message.receives && message.active) finish_receive(message, status, false);
}

// MPI is let go on while something is awaited that it does not see: a call that completes requests of which none is
// active need not, and the other rank may wait for what this one has sent before (a buffered send).
void let_go_on() {
  int unused = 0;
  PMPI_Iprobe(0, 0, session().own, &unused, MPI_STATUS_IGNORE);
}

void complete_outside_mpi(MPI_Request request, Message*& message, MPI_Status& status) {
  set_empty(status);
  complete(request, message, status, false);
}

}  // namespace

HOOK int tasuki_MPI_Wait(MPI_Request* request, MPI_Status* status) {
  if (no_messages() || request == nullptr) return PMPI_Wait(request, status);
  const MPI_Request before = *request;
  Message* message = find_to_complete(before);
  if (message == nullptr) return PMPI_Wait(request, status);
  await_outside_mpi(message);
  MPI_Status own;
  const int result = PMPI_Wait(request, or_own(status, own));
  complete(before, message, *or_own(status, own), result != MPI_SUCCESS);
  return result;
}

HOOK int tasuki_MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  if (no_messages() || request == nullptr) return PMPI_Test(request, flag, status);
  const MPI_Request before = *request;
  Message* message = find_to_complete(before);
  if (message == nullptr) return PMPI_Test(request, flag, status);
  if (pending(message)) {  // a persistent one
    let_go_on();
    *flag = 0;
    return MPI_SUCCESS;
  }
  MPI_Status own;
  const int result = PMPI_Test(request, flag, or_own(status, own));
  if (result != MPI_SUCCESS ? *request == MPI_REQUEST_NULL : *flag != 0)
    complete(before, message, *or_own(status, own), result != MPI_SUCCESS);
  else
    message->completing = false;
  return result;
}

HOOK int tasuki_MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  if (no_messages() || count <= 0 || requests == nullptr) return PMPI_Waitall(count, requests, statuses);
  Completing known(count, requests);
  if (known.none()) return PMPI_Waitall(count, requests, statuses);
  bool all_outside = true;
  for (int i = 0; i < count; ++i) {
    await_outside_mpi(known[i]);
    all_outside = all_outside && (requests[i] == MPI_REQUEST_NULL || outside_mpi(known[i]));
  }
  if (all_outside) {
    MPI_Status empty, unseen;
    set_empty(empty);
    for (int i = 0; i < count; ++i) {
      MPI_Status& status = statuses == MPI_STATUSES_IGNORE ? unseen : statuses[i];
      status = empty;
      complete(requests[i], known[i], status, false);
    }
    return MPI_SUCCESS;
  }
  const auto before = copied(requests, count);
  Statuses all(statuses, count);
  const int result = PMPI_Waitall(count, requests, all.data());
  complete_all(before, known, requests, all.data(), result);
  return result;
}

HOOK int tasuki_MPI_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  if (no_messages() || count <= 0 || requests == nullptr) return PMPI_Testall(count, requests, flag, statuses);
  Completing known(count, requests);
  if (known.none()) return PMPI_Testall(count, requests, flag, statuses);
  for (Message* message : known.messages()) {
    if (!pending(message)) continue;
    let_go_on();
    *flag = 0;
    return MPI_SUCCESS;
  }
  const auto before = copied(requests, count);
  Statuses all(statuses, count);
  const int result = PMPI_Testall(count, requests, flag, all.data());
  if (result != MPI_SUCCESS || *flag != 0) complete_all(before, known, requests, all.data(), result);
  return result;
}

HOOK int tasuki_MPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  if (no_messages() || count <= 0 || requests == nullptr) return PMPI_Waitany(count, requests, index, status);
  Completing known(count, requests);
  if (known.none()) return PMPI_Waitany(count, requests, index, status);
  const auto before = copied(requests, count);
  MPI_Status own;
  bool open = false;
  int result = MPI_SUCCESS, flag = 0;
  do {
    if (const int first = first_outside_mpi(known.messages(), open); first >= 0) {
      *index = first;
      complete_outside_mpi(requests[first], known[first], *or_own(status, own));
      return MPI_SUCCESS;
    }
    if (!open) break;
    let_go_on();
    result = PMPI_Testany(count, requests, index, &flag, or_own(status, own));
  } while (result == MPI_SUCCESS && (flag == 0 || *index == MPI_UNDEFINED));
  if (!open) result = PMPI_Waitany(count, requests, index, or_own(status, own));
  if (*index >= 0 && *index < count) complete_one(before, known, *index, *or_own(status, own), result != MPI_SUCCESS);
  return result;
}

HOOK int tasuki_MPI_Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  if (no_messages() || count <= 0 || requests == nullptr) return PMPI_Testany(count, requests, index, flag, status);
  Completing known(count, requests);
  if (known.none()) return PMPI_Testany(count, requests, index, flag, status);
  const auto before = copied(requests, count);
  MPI_Status own;
  bool open = false;
  if (const int first = first_outside_mpi(known.messages(), open); first >= 0) {
    *index = first;
    *flag = 1;
    complete_outside_mpi(requests[first], known[first], *or_own(status, own));
    return MPI_SUCCESS;
  }
  if (open) let_go_on();
  const int result = PMPI_Testany(count, requests, index, flag, or_own(status, own));
  if (open && *index == MPI_UNDEFINED) *flag = 0;
  if (*flag != 0 && *index >= 0 && *index < count)
    complete_one(before, known, *index, *or_own(status, own), result != MPI_SUCCESS);
  return result;
}

namespace {

template <class Call>
int some(Call call, bool waits, int count, MPI_Request* requests, int* number, int* indices, MPI_Status* statuses) {
  if (no_messages() || count <= 0 || requests == nullptr) return call(count, requests, number, indices, statuses);
  Completing known(count, requests);
  if (known.none()) return call(count, requests, number, indices, statuses);
  const auto before = copied(requests, count);
  Statuses all(statuses, count);
  bool open = false;
  int result = MPI_SUCCESS;
  do {
    if (first_outside_mpi(known.messages(), open) >= 0) {
      *number = 0;
      for (int i = 0; i < count; ++i) {
        Message*& message = known[i];
        if (!outside_mpi(message) || pending(message) || !outside_mpi(message)) continue;
        complete_outside_mpi(requests[i], message, all.data()[*number]);
        indices[(*number)++] = i;
      }
      return MPI_SUCCESS;
    }
    if (open) let_go_on();
    result = open ? PMPI_Testsome(count, requests, number, indices, all.data())
                  : call(count, requests, number, indices, all.data());
    if (open && *number == MPI_UNDEFINED) *number = 0;  // those that MPI does not see are active
  } while (open && waits && result == MPI_SUCCESS && *number == 0);
  if (*number == MPI_UNDEFINED) return result;
  for (int i = 0; i < *number; ++i) {
    MPI_Status& status = all.data()[i];
    const bool failed = result != MPI_SUCCESS && !(result == MPI_ERR_IN_STATUS && status.MPI_ERROR == MPI_SUCCESS);
    complete_one(before, known, indices[i], status, failed);
  }
  return result;
}

}  // namespace

HOOK int tasuki_MPI_Waitsome(int count, MPI_Request* requests, int* number, int* indices, MPI_Status* statuses) {
  return some(PMPI_Waitsome, true, count, requests, number, indices, statuses);
}

HOOK int tasuki_MPI_Testsome(int count, MPI_Request* requests, int* number, int* indices, MPI_Status* statuses) {
  return some(PMPI_Testsome, false, count, requests, number, indices, statuses);
}

// The program may read what it received once it has been told that the request is complete.
HOOK int tasuki_MPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  if (no_messages()) return PMPI_Request_get_status(request, flag, status);
  Message* message = find_message(request);
  if (!is_receive(message)) return PMPI_Request_get_status(request, flag, status);
  if (pending(message)) {
    let_go_on();
    *flag = 0;
    return MPI_SUCCESS;
  }
  MPI_Status own;
  const int result = PMPI_Request_get_status(request, flag, or_own(status, own));
  if (result == MPI_SUCCESS && *flag != 0 && message->active) finish_receive(*message, *or_own(status, own), false);
  return result;
}

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
// An MPI 4.0 has no such names, and nobody calls them there.
#pragma weak PMPI_Request_get_status_all
#pragma weak PMPI_Request_get_status_any
#pragma weak PMPI_Request_get_status_some

HOOK int tasuki_MPI_Request_get_status_all(int count, const MPI_Request* requests, int* flag, MPI_Status* statuses) {
  if (no_messages() || count <= 0) return PMPI_Request_get_status_all(count, requests, flag, statuses);
  for (int i = 0; i < count; ++i) {
    if (!pending(find_message(requests[i]))) continue;
    let_go_on();
    *flag = 0;
    return MPI_SUCCESS;
  }
  Statuses all(statuses, count);
  const int result = PMPI_Request_get_status_all(count, requests, flag, all.data());
  if (result != MPI_SUCCESS || *flag == 0) return result;
  for (int i = 0; i < count; ++i) {
    Message* message = find_message(requests[i]);
    if (is_receive(message) && message->active) finish_receive(*message, all.data()[i], false);
  }
  return result;
}

HOOK int tasuki_MPI_Request_get_status_any(int count, const MPI_Request* requests, int* index, int* flag,
                                           MPI_Status* status) {
  if (no_messages() || count <= 0) return PMPI_Request_get_status_any(count, requests, index, flag, status);
  const auto known = find_messages(count, requests);
  MPI_Status own;
  bool open = false;
  if (const int first = first_outside_mpi(known, open); first >= 0) {
    *index = first;
    *flag = 1;
    see_outside_mpi(*known[static_cast<std::size_t>(first)], *or_own(status, own));
    return MPI_SUCCESS;
  }
  const int result = PMPI_Request_get_status_any(count, requests, index, flag, or_own(status, own));
  if (open && *index == MPI_UNDEFINED) *flag = 0;
  if (result != MPI_SUCCESS || *flag == 0 || *index < 0 || *index >= count) return result;
  Message* message = find_message(requests[*index]);
  if (is_receive(message) && message->active) finish_receive(*message, *or_own(status, own), false);
  return result;
}

HOOK int tasuki_MPI_Request_get_status_some(int count, const MPI_Request* requests, int* number, int* indices,
                                            MPI_Status* statuses) {
  if (no_messages() || count <= 0) return PMPI_Request_get_status_some(count, requests, number, indices, statuses);
  const auto known = find_messages(count, requests);
  Statuses all(statuses, count);
  bool open = false;
  if (first_outside_mpi(known, open) >= 0) {
    *number = 0;
    for (int i = 0; i < count; ++i) {
      Message* message = known[static_cast<std::size_t>(i)];
      if (!outside_mpi(message) || pending(message) || !outside_mpi(message)) continue;
      see_outside_mpi(*message, all.data()[*number]);
      indices[(*number)++] = i;
    }
    return MPI_SUCCESS;
  }
  const int result = PMPI_Request_get_status_some(count, requests, number, indices, all.data());
  if (open && *number == MPI_UNDEFINED) *number = 0;
  if (result != MPI_SUCCESS || *number == MPI_UNDEFINED) return result;
  for (int i = 0; i < *number; ++i) {
    Message* message = find_message(requests[indices[i]]);
    if (is_receive(message) && message->active) finish_receive(*message, all.data()[i], false);
  }
  return result;
}
#endif
