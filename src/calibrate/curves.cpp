// Curves: see curves.hpp.
#include "calibrate/curves.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <string>
#include <tuple>

#include "calibrate/both_ways.hpp"
#include "session/collective.hpp"
#include "session/runtime.hpp"
#include "tasuki/error.hpp"
#include "tasuki/memory.hpp"
#include "tasuki/transfer.hpp"

namespace tasuki {

namespace {

constexpr std::int64_t kMost = kCurveSizes.back();
constexpr std::int64_t kMostOfSmall = kCurveSizes[kFirstLargest - 1];
constexpr std::size_t kLikeRuns = 5;  // the size whose bandwidth the bytes of many runs have

constexpr std::array kPieces{&Curves::one_way, &Curves::both, &Curves::own, &Curves::own_both};
constexpr std::array kAllTimes{&Curves::one_way, &Curves::both,  &Curves::own,     &Curves::own_both,
                               &Curves::use,     &Curves::again, &Curves::own_use, &Curves::own_again};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// As programs have it: NumPy and the C library ask for large pages for arrays of 4 MiB and more.
std::shared_ptr<std::byte> own_memory(std::int64_t bytes) {
  constexpr std::size_t kPage = std::size_t{2} << 20;
  const auto size = static_cast<std::size_t>(bytes);
  std::shared_ptr<std::byte> memory(static_cast<std::byte*>(std::aligned_alloc(kPage, size)), std::free);
  if (!memory) throw Error(fmt::format("there is no memory for {} bytes in which paths are measured", bytes));
  // Where the system refuses it is slower, and no less right.
  static_cast<void>(madvise(memory.get(), size, bytes > 4 << 20 ? MADV_HUGEPAGE : MADV_NOHUGEPAGE));
  return memory;
}

// What is moved, from the begin of the memory on.
struct Piece {
  Layout layout;
  std::int64_t bytes;  // of memory, up to its last line
  std::int64_t step;   // bytes from one line of it to the next
  bool runs = false;   // these arrive beside those that are sent, in the same lines, as in halos
  explicit Piece(std::int64_t size) : layout(Layout::bytes(size)), bytes(size), step(64) {}
  static Piece of_runs() {
    Piece piece(8);
    piece.layout = Layout::hvector(kManyRuns, 1, kStride, piece.layout);
    piece.bytes = kManyRuns * kStride;
    piece.step = kStride;
    piece.runs = true;
    return piece;
  }
};

// A path in one kind of memory.
class Mover {
 public:
  // Seconds of one round: of the operations with the meeting before them, and of the program's stores and loads before
  // that. These are done twice: at first the lines lie in other caches, where the round before has left them. Of the
  // largest pieces caches keep nothing. The meeting counts because it ends at different times: the rank that leaves it
  // last finds a word of the other's already there, but not yet a longer piece.
  struct Round {
    double operations = 0, use = 0, again = 0;
  };

  Mover(const Context& context, const Path& path, int a, int b, std::byte* from, std::byte* to)
      : context_(context), a_(a), b_(b), from_(from), to_(to) {
    options_.path = a == b ? "auto" : path.name;  // what stays on a rank cannot be forced
    options_.engine = "inline";
    options_.correct = false;
    if (a != b) meeting_.emplace(context, a, b, from, to, Layout::bytes(8), options_);
  }

  /// One way, each after a word has come back.
  double one_way(const Piece& piece) {
    Transfer there(context_, {a_, from_, piece.layout}, {b_, arrives(piece), piece.layout}, options_);
    if (a_ == b_) return time(piece, true, true, {&there}).operations;
    const Layout word = Layout::bytes(8);
    Transfer back(context_, {b_, from_, word}, {a_, to_, word}, options_);
    return time(piece, context_.rank() == a_, context_.rank() == b_, {&there, &back}).operations;
  }

  Round both_ways(const Piece& piece) {
    BothWays there(context_, a_, b_, from_, arrives(piece), piece.layout, options_);
    return time(piece, true, true, {&there});
  }

 private:
  std::byte* arrives(const Piece& piece) const { return piece.runs ? from_ + 8 : to_; }

  static void run(Operation& operation) {
    operation.start();
    operation.wait();
  }

  // Changes every line that is sent next, and reads every line that has come. A store alone would be less than what
  // programs do: of a line that another core has read, a load finds a copy, and then the store has to wait for that
  // core.
  void compute(const Piece& piece, bool sends, bool receives) {
    const std::byte* const to = arrives(piece);
    for (std::int64_t i = 0; sends && i < piece.bytes; i += piece.step)
      from_[i] = static_cast<std::byte>(std::to_integer<unsigned>(from_[i]) + 1);
    unsigned sum = 0;
    for (std::int64_t i = 0; receives && i < piece.bytes; i += piece.step) sum += std::to_integer<unsigned>(to[i]);
    read_ = sum;
  }

  // Seconds of one round. Both ranks must do equally many, so their number is fixed. The fastest batch was disturbed
  // least.
  Round time(const Piece& piece, bool sends, bool receives, std::initializer_list<Operation*> operations) {
    const bool large = piece.bytes >= 1 << 20;
    const int batches = !large || piece.runs ? 6 : piece.bytes > kMostOfSmall ? 2 : 3;
    const int rounds = large ? 1 : piece.bytes < 1 << 10 ? 20 : 4;
    Round sum;
    const auto once = [&] {
      const double begin = now();
      compute(piece, sends, receives);
      const double used = now();
      if (piece.bytes <= kMostOfSmall) compute(piece, sends, receives);
      const double started = now();
      sum.use += used - begin;
      sum.again += started - used;
      if (meeting_) run(*meeting_);
      for (Operation* operation : operations) run(*operation);
      sum.operations += now() - started;
    };
    try {
      for (int i = 0; i < (large ? 1 : 3); ++i) once();
      Round best{1e9, 1e9, 1e9};
      for (int batch = 0; batch < batches; ++batch) {
        sum = {};
        for (int i = 0; i < rounds; ++i) once();
        for (const auto part : {&Round::operations, &Round::use, &Round::again})
          best.*part = std::min(best.*part, sum.*part / rounds);
      }
      return best;
    } catch (const std::exception& error) {
      runtime_of(context_).fail(error.what());  // the other end would wait
      throw;
    }
  }

  const Context& context_;
  int a_;
  int b_;
  std::byte* from_;
  std::byte* to_;
  OperationOptions options_;
  std::optional<BothWays> meeting_;  // ranks begin together
  volatile unsigned read_ = 0;       // so that the reads stay
};

// Which sizes are measured.
struct Sizes {
  std::size_t first, end;  // in kCurveSizes
  bool largest;            // many runs, too; else 8 bytes
};
constexpr Sizes kSmall{0, kFirstLargest, false};
constexpr Sizes kLargest{kFirstLargest, kCurveSizes.size(), true};

template <class Measure>
void for_pieces(const Sizes& sizes, const Measure& measure) {
  if (!sizes.largest) measure(std::size_t{0}, Piece(8));
  for (std::size_t i = sizes.first; i < sizes.end; ++i) measure(i + 1, Piece(kCurveSizes[i]));
  if (sizes.largest) measure(kCurveSizes.size() + 1, Piece::of_runs());
}

// The times of one kind of memory.
struct Kind {
  Curves::Times &one_way, &both, &use, &again;
};

void measure_between(Mover& mover, const Sizes& sizes, const Kind& kind) {
  for_pieces(sizes, [&](std::size_t i, const Piece& piece) { kind.one_way[i] = mover.one_way(piece); });
  for_pieces(sizes, [&](std::size_t i, const Piece& piece) {
    const Mover::Round round = mover.both_ways(piece);
    kind.both[i] = round.operations;
    kind.use[i] = round.use;
    kind.again[i] = round.again;
  });
}

// A copy within the rank, by itself on rank 0, and at the same time as on the other rank.
void measure_within(const Context& context, Mover& mover, const Sizes& sizes, int other, const Kind& kind) {
  if (context.rank() == 0)
    for_pieces(sizes, [&](std::size_t i, const Piece& piece) { kind.one_way[i] = mover.one_way(piece); });
  if (other < 0) return;
  for_pieces(sizes, [&](std::size_t i, const Piece& piece) {
    exchange(runtime_of(context), std::array{other}, std::array{std::string("now")});
    kind.both[i] = mover.one_way(piece);
  });
}

}  // namespace

CurveRoom CurveRoom::on(const Context& context, bool takes_part, bool largest) {
  CurveRoom room;
  room.largest = largest;
  all_do(runtime_of(context), "measuring the machine", [&] {
    if (!takes_part) return;
    const auto make = [&](std::shared_ptr<std::byte>& memory, bool shared, std::int64_t bytes) {
      memory = shared ? shared_alloc(context, bytes) : own_memory(bytes);
      std::fill_n(memory.get(), bytes, std::byte{1});
    };
    for (auto* memory : {&room.from, &room.to}) make(*memory, true, largest ? kMost : kMostOfSmall);
    for (auto* memory : {&room.own_from, &room.own_to}) make(*memory, false, kMostOfSmall);
    if (!largest) return;
    for (auto* memory : {&room.largest_from, &room.largest_to}) make(*memory, false, kMost);
  });
  return room;
}

void CurvePasses::add(const Curves& pass) {
  for (const auto times : kAllTimes) {
    for (std::size_t i = 0; i < (pass.*times).size(); ++i) {
      double time = (pass.*times)[i];
      if (time <= 0) continue;
      for (double* known : {&(least_.*times)[i], &(next_.*times)[i]})
        if (*known <= 0 || time < *known) std::swap(time, *known);
    }
  }
}

bool CurvePasses::settled() const {
  constexpr double kSettled = 0.15;
  for (const auto times : kPieces) {
    for (std::size_t i = 0; i <= kFirstLargest; ++i)
      if ((least_.*times)[i] > 0 &&
          !((next_.*times)[i] > 0 && (next_.*times)[i] <= (1 + kSettled) * (least_.*times)[i]))
        return false;
  }
  return true;
}

void Curves::tell(CostSection& section) const {
  constexpr double kLeast = 1e-9;
  constexpr std::int64_t kSmallBytes = 4 << 10;
  constexpr double kLeastOfNext = 0.5, kMostOfNext = 1;  // their bandwidth as a share of that of the next size
  // A word, or a small piece, takes as long in either memory. What disturbed a word in one of them would make all that
  // is longer seem fast; what disturbed a small piece would make the others about as long seem slow.
  const auto less = [](double shared, double user) {
    return shared <= 0 || user <= 0 ? std::max(shared, user) : std::min(shared, user);
  };
  for (const auto& [prefix, times, in_other] : {std::tuple{"", &one_way, &own},
                                                {"mutual_", &both, &own_both},
                                                {"own_", &own, &one_way},
                                                {"own_mutual_", &own_both, &both}}) {
    double word = less(times->front(), in_other->front());
    // Nor does it take longer than any piece: that was disturbed in all passes, and pieces would seem to take no time.
    for (const double time : *times)
      if (time > 0) word = std::min(word, time);
    // Small pieces take hardly longer than a word: the difference may be lost in what disturbs both.
    double next = 0;
    for (std::size_t i = kCurveSizes.size(); i-- > 0;) {
      if (times->front() <= 0 || (*times)[i + 1] <= 0) continue;
      const bool small = kCurveSizes[i] <= kSmallBytes;
      const double time = small ? less((*times)[i + 1], (*in_other)[i + 1]) : (*times)[i + 1];
      const double beyond = std::max(time - word, kLeast);
      double bandwidth = static_cast<double>(kCurveSizes[i]) / beyond;
      if (small && next > 0) bandwidth = std::clamp(bandwidth, kLeastOfNext * next, kMostOfNext * next);
      section[sized_bandwidth(prefix, kCurveSizes[i])] = bandwidth;
      next = bandwidth;
    }
    const auto known = section.find(sized_bandwidth(prefix, kCurveSizes[kLikeRuns]));
    if (known == section.end() || times->back() <= 0) continue;
    const double contiguous = word + 8 * static_cast<double>(kManyRuns) / known->second;
    section[price_of_runs(prefix, kManyRuns)] =
        std::max(times->back() - contiguous, kLeast) / static_cast<double>(kManyRuns);
  }
  for (const auto& [prefix, first, second] : {std::tuple{"", &use, &again}, {"own_", &own_use, &own_again}}) {
    for (std::size_t i = 0; i < kFirstLargest; ++i)
      if ((*second)[i + 1] > 0)
        section[sized_reuse(prefix, kCurveSizes[i])] = std::max((*first)[i + 1] - (*second)[i + 1], kLeast);
  }
}

Curves measure_curves(const Context& context, const Path& path, int partner, const CurveRoom& room, bool largest) {
  const int me = context.rank();
  const bool within = path.joins(runtime_of(context).machine(), 0, 0);
  const int other = me == 0 ? partner : 0;
  Curves curves;
  const auto measure = [&](const auto& from, const auto& to, const Sizes& sizes, const Kind& kind) {
    Mover mover(context, path, within ? me : 0, within ? me : partner, from.get(), to.get());
    if (within) {
      measure_within(context, mover, sizes, other, kind);
    } else {
      measure_between(mover, sizes, kind);
    }
  };
  const Kind shared{curves.one_way, curves.both, curves.use, curves.again};
  const Kind own{curves.own, curves.own_both, curves.own_use, curves.own_again};
  measure(room.from, room.to, kSmall, shared);
  if (largest) measure(room.from, room.to, kLargest, shared);
  try {
    measure(room.own_from, room.own_to, kSmall, own);
    if (largest) measure(room.largest_from, room.largest_to, kLargest, own);
  } catch (const PathUnusable&) {  // on both ranks: it needs memory that they share
  }
  return curves;
}

}  // namespace tasuki
