// Curves: see curves.hpp.
#include "calibrate/curves.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <initializer_list>
#include <string>

#include "calibrate/exchange.hpp"
#include "session/collective.hpp"
#include "session/runtime.hpp"
#include "tasuki/error.hpp"
#include "tasuki/memory.hpp"
#include "tasuki/transfer.hpp"

namespace tasuki {

namespace {

constexpr std::int64_t kMost = kCurveSizes.back();

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// As programs have it: NumPy asks for large pages for arrays of this size, too.
std::shared_ptr<std::byte> own_memory() {
  constexpr std::size_t kPage = std::size_t{2} << 20;
  std::shared_ptr<std::byte> memory(static_cast<std::byte*>(std::aligned_alloc(kPage, kMost)), std::free);
  if (!memory) throw Error(fmt::format("there is no memory for {} bytes in which paths are measured", kMost));
  static_cast<void>(madvise(memory.get(), kMost, MADV_HUGEPAGE));  // without them it is slower, and no less right
  return memory;
}

// A path in one kind of memory.
class Mover {
 public:
  Mover(const Context& context, const Path& path, int a, int b, std::byte* from, std::byte* to)
      : context_(context), a_(a), b_(b), from_(from), to_(to) {
    options_.path = a == b ? "auto" : path.name;  // what stays on a rank cannot be forced
    options_.engine = "inline";
  }

  /// One way, each after a word has come back.
  double one_way(std::int64_t bytes) const {
    const Layout piece = Layout::bytes(bytes);
    Transfer there(context_, {a_, from_, piece}, {b_, to_, piece}, options_);
    if (a_ == b_) return time(bytes, {&there});
    const Layout word = Layout::bytes(8);
    Transfer back(context_, {b_, from_, word}, {a_, to_, word}, options_);
    return time(bytes, {&there, &back});
  }

  double both_ways(std::int64_t bytes) const {
    Exchange there(context_, a_, b_, from_, to_, Layout::bytes(bytes), options_);
    return time(bytes, {&there});
  }

 private:
  // Both ranks must do equally many rounds, so their number is fixed. The fastest batch was disturbed least.
  double time(std::int64_t bytes, std::initializer_list<Operation*> operations) const {
    const bool large = bytes >= 1 << 20;
    const int batches = bytes >= 32 << 20 ? 1 : large ? 3 : 6;
    const int rounds = large ? 1 : bytes < 1 << 10 ? 20 : 4;
    const auto once = [&] {
      for (Operation* operation : operations) {
        operation->start();
        operation->wait();
      }
    };
    try {
      for (int i = 0; i < (large ? 1 : 3); ++i) once();
      double best = 1e9;
      for (int batch = 0; batch < batches; ++batch) {
        const double begin = now();
        for (int i = 0; i < rounds; ++i) once();
        best = std::min(best, (now() - begin) / rounds);
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
};

template <class Time>
Curves::Times times_for(const Time& time) {
  Curves::Times times{};
  times[0] = time(8);
  for (std::size_t i = 0; i < kCurveSizes.size(); ++i) times[i + 1] = time(kCurveSizes[i]);
  return times;
}

void measure_between(const Mover& mover, Curves::Times& one_way, Curves::Times& both) {
  one_way = times_for([&](std::int64_t bytes) { return mover.one_way(bytes); });
  both = times_for([&](std::int64_t bytes) { return mover.both_ways(bytes); });
}

// A copy within the rank, by itself on rank 0, and at the same time as on the other rank.
void measure_within(const Context& context, const Mover& mover, int other, Curves::Times& alone,
                    Curves::Times& together) {
  if (context.rank() == 0) alone = times_for([&](std::int64_t bytes) { return mover.one_way(bytes); });
  if (other < 0) return;
  together = times_for([&](std::int64_t bytes) {
    exchange(runtime_of(context), std::array{other}, std::array{std::string("now")});
    return mover.one_way(bytes);
  });
}

}  // namespace

CurveRoom CurveRoom::on(const Context& context, bool takes_part) {
  CurveRoom room;
  all_do(runtime_of(context), "measuring the machine", [&] {
    if (!takes_part) return;
    room = {shared_alloc(context, kMost), shared_alloc(context, kMost), own_memory(), own_memory()};
    for (const auto* memory : {&room.from, &room.to, &room.own_from, &room.own_to})
      std::fill_n(memory->get(), kMost, std::byte{1});
  });
  return room;
}

void Curves::keep_least(const Curves& other) {
  for (const auto times : {&Curves::one_way, &Curves::both, &Curves::own, &Curves::own_both})
    for (std::size_t i = 0; i < (this->*times).size(); ++i)
      (this->*times)[i] = std::min((this->*times)[i], (other.*times)[i]);
}

void Curves::tell(CostSection& section) const {
  constexpr double kLeast = 1e-9;
  for (const auto& [prefix, times] :
       {std::pair{"", &one_way}, {"mutual_", &both}, {"own_", &own}, {"own_mutual_", &own_both}}) {
    if (times->front() <= 0) continue;
    for (std::size_t i = 0; i < kCurveSizes.size(); ++i)
      section[sized_bandwidth(prefix, kCurveSizes[i])] =
          static_cast<double>(kCurveSizes[i]) / std::max((*times)[i + 1] - times->front(), kLeast);
  }
}

Curves measure_curves(const Context& context, const Path& path, int partner, const CurveRoom& room) {
  const int me = context.rank();
  const bool within = path.joins(runtime_of(context).machine, 0, 0);
  const int other = me == 0 ? partner : 0;
  const Mover shared(context, path, within ? me : 0, within ? me : partner, room.from.get(), room.to.get());
  const Mover own(context, path, within ? me : 0, within ? me : partner, room.own_from.get(), room.own_to.get());
  Curves curves;
  if (within) {
    measure_within(context, shared, other, curves.one_way, curves.both);
    measure_within(context, own, other, curves.own, curves.own_both);
    return curves;
  }
  measure_between(shared, curves.one_way, curves.both);
  try {
    measure_between(own, curves.own, curves.own_both);
  } catch (const PathUnusable&) {  // on both ranks: it needs memory that they share
  }
  return curves;
}

}  // namespace tasuki
