// Persistent messages inside a host that MPI does not see. Receives that a rank starts together, all from one rank, are
// a bundle: an agreed list of slots in memory that both ranks map. Once the sender has promised to look at the bundle
// before each of its messages with these communicators and tags, whatever call makes them, starting the receives is to
// post the bundle, one word, and starting the sends is to fill its slots. The rules, state by state, are in
// docs/unchanged-mpi.md.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "comms.hpp"
#include "known.hpp"

namespace tasuki::mpi {

struct Message;
struct Bundle;  // in shared memory

/// A bundle as its receiver knows it.
struct Standing {
  Bundle* bundle = nullptr;
  int sender = 0;                    ///< rank of the world
  std::vector<Message*> members;     ///< by slot; null once a request has been freed
  std::atomic<std::size_t> open{0};  ///< members that are posted and not complete
  bool ended = false;                ///< a member was freed: it is not posted any more
  // Of the call that starts requests.
  std::uint64_t call = 0;
  std::size_t seen = 0;  ///< members that it starts
  bool posted = false, tried = false;
};

/// Offers a bundle for receives from one rank of the world. Null if the rank does not look, or they are too large.
std::shared_ptr<Standing> offer(int sender, const std::vector<Message*>& members);
/// Posts the receives with the numbers of their messages. False: they are MPI's this time. Within `Counting`.
bool post(Standing& standing);

/// Whether the message of a posted member is there or comes, or the receive has been given to MPI: by another call, or
/// here, if its sender has declined it.
bool arrived(Message& message);
/// Unpacks the bytes of a posted member, which come; returns how many.
std::int64_t drain(Message& message);
/// Gives posted receives to MPI, in their order: those of a communicator (null: of all) from one rank, or any, with one
/// tag, or any, whose numbers are between two. Before MPI is given another receive that may meet their messages, so
/// that MPI never has one that is later than a posted one. True if the message of one is there or comes.
bool hand_over(const Comm* comm, int from, int tag, std::int64_t after = -1,
               std::int64_t before = std::numeric_limits<std::int64_t>::max());
/// Takes one posted receive back, which is cancelled and `withdrawn`. Those behind it are MPI's then. False if its
/// message has been sent.
bool take_back(Message& message);
/// The member is complete, or MPI's after all.
void leave(Message& message);
/// The member's request is freed.
void end(Message& message);

/// This rank has a persistent send of that kind, and may promise to look at a bundle that has it.
void may_promise(const Comm& comm, int to, int tag);
/// Looks for new bundles that the rank of the world offers, and promises what it can.
void look_for_offers(int receiver);
/// Whether there is any promise, so that each message must ask; and whether there is one for messages of that kind.
bool promises();
bool promised(const Comm& comm, int to, int tag);

/// A slot that a message of this rank fills.
struct Slot {
  Bundle* bundle = nullptr;
  int slot = 0, receiver = 0;
  std::uint32_t round = 0;
  explicit operator bool() const { return bundle != nullptr; }
};

/// How long the sends of one call wait until the receiver has posted its bundle.
class BundleWait {
 public:
  void also(std::int64_t ns) { limit_ns_ += ns; }
  bool over();

 private:
  std::int64_t limit_ns_ = 0, begun_ns_ = 0;
};

/// For each message of this rank to a rank of the communicator: the slot that it must fill, if it meets a posted
/// receive. Else it is MPI's, and the receiver is told. `wait`: the receive may be posted in a moment.
Slot claim(const Comm& comm, int to, int tag, std::int64_t bytes, BundleWait* wait = nullptr);
/// Packs into the slot. `message`: a persistent send.
void fill(const Slot& slot, const Counted& what, const void* buffer, Message* message = nullptr);
/// Bytes that MPI packs, of any type.
void fill(const Slot& slot, const void* buffer, std::int64_t count, MPI_Datatype type);
/// The message has to go by MPI though the receive is posted here.
void decline(const Slot& slot);

}  // namespace tasuki::mpi
