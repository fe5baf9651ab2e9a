// What a team's calls are made of: where the words of each rank lie in its memory, how a thread waits, how a failure is
// kept, how a group copies, and what arguments can be. Part of tasuki/kernel.cuh.
#pragma once

#include "tasuki/kernel/group.cuh"
#include "tasuki/kernel/impl/stop.cuh"

namespace tasuki::device {

constexpr int kMostRanks = 72;  ///< of a team

/// What a call was about when it failed.
enum class Call : int {
  failed,
  put,
  put_with_signal,
  signal,
  wait_signal,
  put_word,
  wait_word,
  put_packet,
  wait_packet,
  all_to_all,
  allreduce,
  barrier,
  grid_barrier,
  isend,
  irecv,
  wait_send,
  wait_receive,
  ask,  ///< the process's thread for a message
  wait_host_send,
  wait_host_receive,
};

enum class Reason : int {
  none,
  deadline,
  aborted,
  peer,           ///< there is no such rank
  slot,           ///< there is no such signal, word, barrier
  window,         ///< bytes outside the window
  tag,            ///< below 0 (and not kAnyTag, for a receive)
  too_large,      ///< a message from outside the window, a packet, an exchange
  too_many_open,  ///< receives
  truncated,      ///< a message longer than its receive
  twice,          ///< a receive into a layout that names a byte twice
  overrun,        ///< a packet that came before the last was taken
  unreached,      ///< a rank whose memory is not reached, or a barrier with such ranks
  host_room,      ///< a message through the host, or its receive, of too many bytes to go without slices
  host_tag,       ///< a tag of a message through the host that is too large for MPI
  no_host,        ///< no message goes through the host
};

/// The first failure of a rank's kernels, in host memory. Numbers as the call and the reason need them.
struct Failure {
  unsigned set;  // or see kOtherVersion
  Call call;
  Reason reason;
  int peer;
  int index;  // a slot or a tag
  int block;  // that found it
  Word expected;
  Word found;
  Word more;
};

/// A rank's part of a team: a small plain value, passed to a kernel as it is (with __grid_constant__ on a GPU, so that
/// nobody makes a copy of it). Its members are Tasuki's own but for `rank` and `ranks`.
struct Team {
  Heading heading;
  int rank;  // as the heading: in the same place in all versions
  int ranks;
  int signals;
  int words;
  int barriers;
  int packets;
  int exchanges;
  Word packet_lines;    // of a slot
  Word exchange_words;  // of a rank for each other, at most
  int unreachable;      // their memory is not mapped here
  Word window_bytes;
  Word window_at;  // in every rank's memory, as all that follows
  Word signals_at;
  Word words_at;
  Word arrivals_at;
  Word rounds_at;
  Word packets_at;
  Word exchanges_at;
  Word exchanged_at;
  Word deadline;  // ns
  Word* failed;
  Stop stop;
  Failure* failure;
  Byte* base[kMostRanks];  // where this rank sees every rank's memory; null: nowhere
};

namespace detail {

constexpr Word kCacheLine = 128;  // bytes

/// Of a barrier, at each rank for itself: how often it has been passed, and how many of the rank's blocks have come.
struct alignas(kCacheLine) Round {
  Word passed;
  Word come;
  Word released;
};

TASUKI_DEVICE Word* signal_at(const Team& team, int at, int from, int slot) {
  return reinterpret_cast<Word*>(team.base[at] + team.signals_at) + static_cast<Word>(from) * team.signals + slot;
}
TASUKI_DEVICE Line* word_at(const Team& team, int at, int from, int slot) {
  return reinterpret_cast<Line*>(team.base[at] + team.words_at) + static_cast<Word>(from) * team.words + slot;
}
TASUKI_DEVICE Word* arrival_at(const Team& team, int at, int from, int which) {
  return reinterpret_cast<Word*>(team.base[at] + team.arrivals_at) + static_cast<Word>(which) * team.ranks + from;
}
TASUKI_DEVICE Round& round_of(const Team& team, int which) {
  return reinterpret_cast<Round*>(team.base[team.rank] + team.rounds_at)[which];
}

TASUKI_DEVICE bool working(const Team& team) {
  return load_relaxed(team.failed) == 0;
}

/// Keeps the failure if it is the first. Always false, for the caller to return.
TASUKI_RARE bool fail(const Team& team, Call call, Reason reason, int peer, int index, Word expected = 0,
                      Word found = 0, Word more = 0) {
  if (!same_version(team.heading)) return false;
  if (exchange_gpu(team.failed, 1) != 0) return false;
  Failure& failure = *team.failure;
  failure.call = call;
  failure.reason = reason;
  failure.peer = peer;
  failure.index = index;
  failure.block = this_block().block();
  failure.expected = expected;
  failure.found = found;
  failure.more = more;
  fence();
  store_release(&failure.set, 1);
  return false;
}

/// How long one thread polls for what it waits for. Other things are looked at by the clock, not at every
/// poll.
class Deadline {
 public:
  TASUKI_DEVICE explicit Deadline(const Team& team) : team_(team) {}

  /// After a look in vain: false if nobody can be waited for any longer.
  TASUKI_DEVICE bool more() {
#if defined(__CUDACC__)
    const long long time = clock64();
    if (last_ == 0) last_ = time;
    if (time - last_ < kLookCycles) return true;
    last_ = time;
#else
    ++polls_;
    if (polls_ > kSpins) std::this_thread::yield();
    if (polls_ % kPollsPerLook != 0) return true;
#endif
    return look();
  }
  TASUKI_DEVICE Reason why() const {
    return why_;
  }  ///< none: something else has failed
  /// What is waited for has gone on.
  TASUKI_DEVICE void begin_again() {
    begin_ = 0;
    last_ = 0;
  }

 private:
  TASUKI_DEVICE bool look() {
    if (!working(team_)) return false;
    const Word time = now_ns();
    if (stop_requested(team_.stop, time)) {
      why_ = Reason::aborted;
      return false;
    }
    if (begin_ == 0) begin_ = time;
#if !defined(__CUDACC__)
    skip_pause(begin_, last_, time);
#endif
    if (time - begin_ < team_.deadline) return true;
    why_ = Reason::deadline;
    return false;
  }

  const Team& team_;
  Word begin_ = 0;
  Reason why_ = Reason::none;
#if defined(__CUDACC__)
  static constexpr long long kLookCycles = 20000;  // some 10 us
  long long last_ = 0;
#else
  static constexpr int kSpins = 50;
  static constexpr int kPollsPerLook = 64;
  Word last_ = 0;
  unsigned polls_ = 0;
#endif
};

constexpr int kQuickLooks = 32;  // in vain, until the clock is looked at

/// By one thread: until the word has reached `least`. Calls that look at `working` too do so for threads, and for teams
/// of one rank, that wait for nothing.
TASUKI_DEVICE bool await(const Team& team, const Word* word, Word least, Call call, int peer, int index) {
  const bool good = working(team);  // on its way while the word is looked at
  Word value = load_acquire(word);
  for (int looks = kQuickLooks; looks > 0 && value < least; --looks) value = load_acquire(word);
  if (value >= least) return good;
  Deadline deadline(team);
  for (;;) {
    value = load_acquire(word);
    if (value >= least) return good;
    if (deadline.more()) continue;
    if (deadline.why() != Reason::none) fail(team, call, deadline.why(), peer, index, least, value);
    return false;
  }
}

#if defined(__CUDACC__)
template <class Unit, int kAtOnce, class Group>  // loads that a thread has on the way
TASUKI_DEVICE void copy_units(const Group& group, Byte* to, const Byte* from, Word units) {
  auto* const target = reinterpret_cast<Unit*>(to);
  const auto* const source = reinterpret_cast<const Unit*>(from);
  const Word step = static_cast<Word>(group.threads());
  TASUKI_ROLLED
  for (Word n = static_cast<Word>(group.thread()); n < units; n += kAtOnce * step) {
    Unit value[kAtOnce];
    TASUKI_UNROLLED
    for (int j = 0; j < kAtOnce; ++j) {
      if (n + j * step < units) value[j] = source[n + j * step];
    }
    TASUKI_UNROLLED
    for (int j = 0; j < kAtOnce; ++j) {
      if (n + j * step < units) target[n + j * step] = value[j];
    }
  }
}
template <int kAtOnce, class Group>
TASUKI_DEVICE void copy_by(const Group& group, Byte* to, const Byte* from, Word bytes) {
  constexpr int kFew = 4;
  const Word places = reinterpret_cast<Word>(to) | reinterpret_cast<Word>(from);
  const Word unit = places % 16 == 0 ? 16 : places % 8 == 0 ? 8 : places % 4 == 0 ? 4 : 1;
  const Word whole = bytes / unit * unit;
  if (unit == 16) copy_units<uint4, kAtOnce>(group, to, from, bytes / 16);
  if (unit == 8) copy_units<uint2, kFew>(group, to, from, bytes / 8);
  if (unit == 4) copy_units<unsigned, kFew>(group, to, from, bytes / 4);
  if (unit == 1) copy_units<Byte, kFew>(group, to, from, bytes);
  copy_units<Byte, 1>(group, to + whole, from + whole, bytes - whole);
}
#endif

/// By the group, without a `sync` before or after.
template <class Group>
TASUKI_DEVICE void copy(const Group& group, Byte* to, const Byte* from, Word bytes) {
#if defined(__CUDACC__)
  copy_by<8>(group, to, from, bytes);
#else
  const Word share = (bytes + static_cast<Word>(group.threads()) - 1) / static_cast<Word>(group.threads());
  const Word begin = share * static_cast<Word>(group.thread());
  if (begin < bytes) std::memcpy(to + begin, from + begin, begin + share < bytes ? share : bytes - begin);
#endif
}
/// The same from another GPU, which answers later, so that more has to be on its way.
template <class Group>
TASUKI_DEVICE void pull(const Group& group, Byte* to, const Byte* from, Word bytes) {
#if defined(__CUDACC__)
  copy_by<16>(group, to, from, bytes);
#else
  copy(group, to, from, bytes);
#endif
}

/// A team of another version has no ranks, so that every call fails, and `fail` says why. That costs one subtraction;
/// one more comparison took a tenth of a word's time.
TASUKI_DEVICE bool is_rank(const Team& team, int peer) {
  constexpr unsigned kBeyond = 1 << 16;  // more than ranks of any team
  static_assert(kMostRanks < kBeyond);
  const unsigned difference = team.heading.version - kKernelVersion;
  return static_cast<unsigned>(peer) + difference * kBeyond < static_cast<unsigned>(team.ranks);
}

/// Whether the arguments of a call can be; by every thread, which all find the same.
TASUKI_DEVICE bool check_slot(const Team& team, Call call, int peer, int slot, int slots) {
  if (!is_rank(team, peer)) return fail(team, call, Reason::peer, peer, slot);
  if (team.unreachable != 0 && (team.base[peer] == nullptr || call == Call::barrier || call == Call::grid_barrier))
    return fail(team, call, Reason::unreached, peer, slot);
  if (slot < 0 || slot >= slots) return fail(team, call, Reason::slot, peer, slot, static_cast<Word>(slots));
  return true;
}
/// The same for words, with one branch instead of several. Each branch waits for parameters of the kernel, which come
/// from constant memory. A word takes 0.03 to 0.06 us less with it. Packets and exchanges took longer with it.
TASUKI_DEVICE bool check_word(const Team& team, Call call, int peer, int slot) {
  const unsigned place = static_cast<unsigned>(peer) < kMostRanks ? static_cast<unsigned>(peer) : 0u;
  const bool reached = team.base[place] != nullptr;
  const bool there = static_cast<unsigned>(slot) < static_cast<unsigned>(team.words);
  if (is_rank(team, peer) & reached & there) return true;
  return check_slot(team, call, peer, slot, team.words);
}
TASUKI_DEVICE bool check_window(const Team& team, Call call, int peer, Word offset, Word bytes) {
  if (!is_rank(team, peer)) return fail(team, call, Reason::peer, peer, 0);
  if (team.base[peer] == nullptr) return fail(team, call, Reason::unreached, peer, 0);
  if (offset > team.window_bytes || bytes > team.window_bytes - offset)
    return fail(team, call, Reason::window, peer, 0, offset, bytes, team.window_bytes);
  return true;
}

/// `put`, as part of a call.
template <class Group>
TASUKI_DEVICE bool put_by(Call call, const Team& team, const Group& group, int to, Word offset, const void* from,
                          Word bytes) {
  if (!check_window(team, call, to, offset, bytes)) return false;
  const bool good = working(team);  // on its way while the bytes are copied
  group.sync();
  copy(group, team.base[to] + team.window_at + offset, static_cast<const Byte*>(from), bytes);
  return group.all(good);
}

}  // namespace detail

}  // namespace tasuki::device
