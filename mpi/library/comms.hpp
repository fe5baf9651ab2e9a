// Communicators by numbers that all their ranks give them alike, without asking each other; and how many messages have
// gone between two ranks with a tag. Both let a sender know which posted receive its next message will meet.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

namespace tasuki::mpi {

struct Comm {
  std::uint64_t number = 0;  ///< equal on all its ranks, and never that of another communicator
  std::vector<int> world;    ///< the world's rank of each of its ranks
  bool wild = false;         ///< this rank has let receives match in an order that is not counted
  std::uint64_t made = 0;    ///< communicators made of it
};

/// Null if the communicator was made in a way that is not followed.
Comm* comm_of(MPI_Comm comm);
/// After a call of all ranks of `parent` that makes a communicator. `made` may be MPI_COMM_NULL.
void comm_made(MPI_Comm parent, MPI_Comm made);

void begin_comms();
void end_comms();

/// From the counting of a message until MPI has been given it, so that messages are counted in MPI's order. That is
/// only so while one thread calls MPI, whatever it has asked MPI for: once another does, nothing is counted any more.
class Counting {
 public:
  Counting();
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;
  ~Counting() { end(); }
  bool alone() const { return alone_; }
  void end();

 private:
  bool alone_;
};

/// The next number of a message to (or from) the rank of the communicator, with the tag. Within `Counting`. -1 if it
/// cannot be told.
std::int64_t next_sent(Comm& comm, int to, int tag);
std::int64_t next_received(Comm& comm, int from, int tag);
/// From now on messages of that kind are not counted.
void leave_sent(Comm& comm, int to, int tag);
void leave_received(Comm& comm, int from, int tag);

}  // namespace tasuki::mpi
