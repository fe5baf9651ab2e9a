// Sends and receives. What travels is the bytes of the type map, so that the other side need not know of this library:
// MPI matches, probes, counts, truncates and cancels as ever.
#include <utility>

#include "hook.hpp"
#include "typed.hpp"

namespace {

using namespace tasuki::mpi;

// Non-blocking calls are MPI's if requests may be completed where it is not seen.
bool unseen() {
  return session().fortran_apart;
}

template <class Original, class Small, class Count>
int send(const char* name, const void* caller, Original original, Small small, const void* buffer, Count count,
         MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  const Typed data(name, caller, buffer, count, type, to < 0);
  if (!data.changed()) return original(buffer, count, type, to, tag, comm);
  if (data.packed()) data.pack();
  return small(data.buffer(), data.count(), data.type(), to, tag, comm);
}

template <class Original, class Small, class Count>
int isend(const char* name, const void* caller, Original original, Small small, const void* buffer, Count count,
          MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request, bool persistent) {
  Typed data(name, caller, buffer, count, type, to < 0 || unseen() || request == nullptr);
  if (!data.changed()) return original(buffer, count, type, to, tag, comm, request);
  if (data.packed() && !persistent) data.pack();
  const int result = small(data.buffer(), data.count(), data.type(), to, tag, comm, request);
  if (result == MPI_SUCCESS && data.packed()) keep(*request, data.message(false, persistent));
  return result;
}

template <class Original, class Small, class Count>
int irecv(const char* name, const void* caller, Original original, Small small, void* buffer, Count count,
          MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request, bool persistent) {
  Typed data(name, caller, buffer, count, type, from == MPI_PROC_NULL || unseen() || request == nullptr);
  if (!data.changed()) return original(buffer, count, type, from, tag, comm, request);
  const int result = small(data.buffer(), data.count(), data.type(), from, tag, comm, request);
  if (result == MPI_SUCCESS && data.packed()) keep(*request, data.message(true, persistent));
  return result;
}

template <class Original, class Count>
int recv(const char* name, const void* caller, Original original, void* buffer, Count count, MPI_Datatype type,
         int from, int tag, MPI_Comm comm, MPI_Status* status) {
  const Typed data(name, caller, buffer, count, type, from == MPI_PROC_NULL);
  if (!data.changed()) return original(buffer, count, type, from, tag, comm, status);
  MPI_Status own;
  MPI_Status* seen = status == MPI_STATUS_IGNORE ? &own : status;
  const int result = PMPI_Recv(data.buffer(), data.count(), data.type(), from, tag, comm, seen);
  if (result == MPI_SUCCESS && data.packed()) data.unpack(*seen);
  return result;
}

template <class Original, class Count>
int mrecv(const char* name, const void* caller, Original original, void* buffer, Count count, MPI_Datatype type,
          MPI_Message* message, MPI_Status* status) {
  const bool nobody = message == nullptr || *message == MPI_MESSAGE_NO_PROC;
  const Typed data(name, caller, buffer, count, type, nobody);
  if (!data.changed()) return original(buffer, count, type, message, status);
  MPI_Status own;
  MPI_Status* seen = status == MPI_STATUS_IGNORE ? &own : status;
  const int result = PMPI_Mrecv(data.buffer(), data.count(), data.type(), message, seen);
  if (result == MPI_SUCCESS && data.packed()) data.unpack(*seen);
  return result;
}

template <class Original, class Count>
int imrecv(const char* name, const void* caller, Original original, void* buffer, Count count, MPI_Datatype type,
           MPI_Message* message, MPI_Request* request) {
  const bool nobody = message == nullptr || *message == MPI_MESSAGE_NO_PROC;
  Typed data(name, caller, buffer, count, type, nobody || unseen() || request == nullptr);
  if (!data.changed()) return original(buffer, count, type, message, request);
  const int result = PMPI_Imrecv(data.buffer(), data.count(), data.type(), message, request);
  if (result == MPI_SUCCESS && data.packed()) keep(*request, data.message(true, false));
  return result;
}

template <class Original, class Count>
int sendrecv(const char* name, const void* caller, Original original, const void* out, Count out_count,
             MPI_Datatype out_type, int to, int out_tag, void* in, Count in_count, MPI_Datatype in_type, int from,
             int in_tag, MPI_Comm comm, MPI_Status* status) {
  const Typed sent(name, caller, out, out_count, out_type, to < 0);
  const Typed received(name, caller, in, in_count, in_type, from == MPI_PROC_NULL);
  const bool fits = out_count <= INT_MAX && in_count <= INT_MAX;
  if (!fits || (!sent.changed() && !received.changed()))
    return original(out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, status);
  if (sent.packed()) sent.pack();
  MPI_Status own;
  MPI_Status* seen = status == MPI_STATUS_IGNORE ? &own : status;
  const int result = PMPI_Sendrecv(sent.buffer(), sent.count(), sent.type(), to, out_tag, received.buffer(),
                                   received.count(), received.type(), from, in_tag, comm, seen);
  if (result == MPI_SUCCESS && received.packed()) received.unpack(*seen);
  return result;
}

template <class Original, class Count>
int sendrecv_replace(const char* name, const void* caller, Original original, void* buffer, Count count,
                     MPI_Datatype type, int to, int out_tag, int from, int in_tag, MPI_Comm comm, MPI_Status* status) {
  const Typed sent(name, caller, buffer, count, type, to < 0 || from == MPI_PROC_NULL);
  if (!sent.packed()) return original(buffer, count, type, to, out_tag, from, in_tag, comm, status);
  const Typed received(name, caller, buffer, count, type, false);
  if (!received.packed()) return original(buffer, count, type, to, out_tag, from, in_tag, comm, status);
  sent.pack();
  MPI_Status own;
  MPI_Status* seen = status == MPI_STATUS_IGNORE ? &own : status;
  const int result = PMPI_Sendrecv(sent.buffer(), sent.count(), sent.type(), to, out_tag, received.buffer(),
                                   received.count(), received.type(), from, in_tag, comm, seen);
  if (result == MPI_SUCCESS) received.unpack(*seen);
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

#define ISEND(name, small, Count)                                                                                      \
  HOOK int tasuki_MPI_##name(const void* buffer, Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm,       \
                             MPI_Request* request) {                                                                   \
    return isend("MPI_" #name, CALLER, PMPI_##name, PMPI_##small, buffer, count, type, to, tag, comm, request, false); \
  }
BOTH(ISEND, Isend)
BOTH(ISEND, Issend)
BOTH(ISEND, Irsend)
BOTH(ISEND, Ibsend)

#define SEND_INIT(name, small, Count)                                                                                 \
  HOOK int tasuki_MPI_##name(const void* buffer, Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm,      \
                             MPI_Request* request) {                                                                  \
    return isend("MPI_" #name, CALLER, PMPI_##name, PMPI_##small, buffer, count, type, to, tag, comm, request, true); \
  }
BOTH(SEND_INIT, Send_init)
BOTH(SEND_INIT, Ssend_init)
BOTH(SEND_INIT, Rsend_init)
BOTH(SEND_INIT, Bsend_init)

#define IRECV(name, small, Count)                                                                                \
  HOOK int tasuki_MPI_##name(void* buffer, Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,     \
                             MPI_Request* request) {                                                             \
    return irecv("MPI_" #name, CALLER, PMPI_##name, PMPI_##small, buffer, count, type, from, tag, comm, request, \
                 #small[0] == 'R');                                                                              \
  }
BOTH(IRECV, Irecv)
BOTH(IRECV, Recv_init)

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
