// Communicators by numbers that all their ranks give them alike, without asking each other; and how many messages have
// gone between two ranks with a tag. Both let a sender know which posted receive its next message will meet.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace tasuki::mpi {

class Exchange;
struct Posting;

/// Kept as long as the communicator, and as long as a persistent request needs it.
struct Comm : std::enable_shared_from_this<Comm> {
  std::uint64_t number = 0;        ///< equal on all its ranks, and never that of another communicator
  std::vector<int> world;          ///< the world's rank of each of its ranks
  std::atomic<bool> wild{false};   ///< this rank has let receives match in an order that is not counted
  std::atomic<bool> ended{false};  ///< the program has freed it
  std::uint64_t made = 0;          ///< communicators made of it
  std::array<std::shared_ptr<Exchange>, 2> exchanges;  ///< by `Exchange::Kind`, once it has called such a collective
};

/// Null if the communicator was made in a way that is not followed.
Comm* comm_of(MPI_Comm comm);
/// After a call of all ranks of `parent` that makes a communicator. `made` may be MPI_COMM_NULL.
void comm_made(MPI_Comm parent, MPI_Comm made);

/// From now on nothing is known of the order in which receives of this rank match.
void all_wild();

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

/// Before MPI is given what is not within `Counting`: if another thread than the first does so, nothing is counted any
/// more, and the receives that are posted are taken back.
void notice_thread();
/// The posting of the first thread's blocking receive, which MPI has not been given yet; null once it is over. Within
/// `Counting`, but for null.
void set_blocking(Posting* posting);

/// The next number of a message to (or from) the rank of the communicator, with the tag. Within `Counting`. -1 if it
/// cannot be told.
std::int64_t next_sent(Comm& comm, int to, int tag);
std::int64_t next_received(Comm& comm, int from, int tag);
/// The last receive that was counted is looked after no further, so it cannot be told whether it is open; and whether
/// there was such a one of the kind that was counted last.
void last_is_loose();
bool last_may_be_loose();
/// What `next_sent` would be.
std::int64_t sent_so_far(const Comm& comm, int to, int tag);
/// From now on messages of that kind are not counted.
void leave_sent(Comm& comm, int to, int tag);
void leave_received(Comm& comm, int from, int tag);

}  // namespace tasuki::mpi
