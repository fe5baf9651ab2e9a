// One pass inside a host: a typed message goes through memory that both ranks map, packed by its sender while its
// receiver unpacks it. It may do so only if the sender sees the receive that MPI will match it with
// (docs/unchanged-mpi.md): receives are posted in the receiver's memory, with communicator, tag and number. What MPI
// carries is then an empty message.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>

#include "comms.hpp"
#include "known.hpp"
#include "peers.hpp"

namespace tasuki::mpi {

/// Smaller messages are faster by MPI.
inline constexpr std::int64_t kLeastShared = 256;

/// A message of this process that goes through the ring, from `take` to `fill`.
struct Passage {
  Posting* posting = nullptr;
  std::byte* bytes = nullptr;  ///< in the ring
  FillPrices* prices = nullptr;
  explicit operator bool() const { return posting != nullptr; }
};

/// Looks for the receives of one message, or of several that are sent together. One that is not posted yet may be so in
/// a moment: it is waited for, for no longer than the ring gains. If that is in vain, ever more messages of the kind
/// are sent without a wait before it is tried again.
class PostingWait {
 public:
  /// For messages of that kind.
  explicit PostingWait(const Counted& what);
  PostingWait(const PostingWait&) = delete;
  PostingWait& operator=(const PostingWait&) = delete;
  ~PostingWait();
  /// Another message that will be looked for makes the wait as much longer as the ring gains for it.
  void also(const Counted& what) { limit_ns_ += what.ring_gain.load(std::memory_order_relaxed); }
  /// The receive that message `number` to the rank of `comm` will meet, if it is posted and has room. Within
  /// `Counting`.
  Passage take(const Comm& comm, int to, int tag, std::int64_t number, std::int64_t bytes);

 private:
  bool over();
  const Counted& what_;
  std::int64_t limit_ns_ = 0;
  std::int64_t begun_ns_ = 0;  // 0: it has not been waited
  bool waits_ = false, in_vain_ = false;
};
/// Packs, and lets the receiver see how far it is. After MPI has taken the empty message.
void fill(const Passage& passage, const Counted& what, const void* buffer);

/// Posts a receive, the one with `number`. Null if nobody would look, or there is no room. Within `Counting`.
Posting* post(Comm& comm, int from, int tag, std::int64_t number, std::int64_t bytes);
/// Takes a posting back. False if a sender has taken it: its bytes come through the ring, or have come.
bool withdraw(Posting* posting);
/// All of them that no sender has taken. Nothing may be posted any more.
void withdraw_all();
/// Waits for the bytes of a taken posting and unpacks them; returns how many. The posting ends.
std::int64_t drain(Posting* posting, const Counted& what, void* buffer);

// The same ways of filling and waiting for other memory of a pair of ranks (standing.hpp).
std::uint64_t key_of(const Comm& comm, int tag);
/// Packs; `filled` is called with the bytes that are there.
void fill(std::byte* to, FillPrices& prices, const Counted& what, const void* buffer,
          const std::function<void(std::int64_t)>& filled);
/// Unpacks `bytes` bytes; `wait_for(n)` returns once n bytes are there.
void drain(const std::byte* from, std::int64_t bytes, const Counted& what, void* buffer,
           const std::function<void(std::int64_t)>& wait_for);
/// A message came that is not the one for which a posting was taken: ends the program.
[[noreturn]] void order_lost();

}  // namespace tasuki::mpi
