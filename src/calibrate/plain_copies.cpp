// PlainCopies: see plain_copies.hpp.
#include "calibrate/plain_copies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "layout/encoding.hpp"
#include "tasuki/strided_copy.hpp"

namespace tasuki {

namespace {

constexpr std::int64_t kFlag = 64;  // bytes

struct Told {
  SharedAddress from, to, flag;
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Copies {
 public:
  explicit Copies(const Layout& layout) : copies_(zip(layout, layout)) {
    for (const StridedCopy& copy : copies_) functions_.push_back(select_copy(copy));
  }
  void operator()(const std::byte* from, std::byte* to) const {
    for (std::size_t i = 0; i < copies_.size(); ++i) functions_[i](copies_[i], from, to);
  }

 private:
  std::vector<StridedCopy> copies_;
  std::vector<CopyFunction> functions_;
};

}  // namespace

std::unique_ptr<PlainCopies> PlainCopies::between(Runtime& runtime, int other, bool first, std::byte* from,
                                                  std::byte* to, std::int64_t bytes) {
  std::unique_ptr<PlainCopies> plain(new PlainCopies(runtime, other, first));
  plain->from_ = from;
  plain->to_ = to;
  if (other == runtime.rank()) return plain;
  plain->flags_ = runtime.memory().allocate(kFlag);
  plain->flag_ = reinterpret_cast<std::uint64_t*>(plain->flags_.get());
  const std::array<int, 1> peers{other};
  const Told mine{runtime.memory().find(from, bytes), runtime.memory().find(to, bytes),
                  runtime.memory().find(plain->flags_.get(), kFlag)};
  const auto theirs = decoded<Told>(exchange(runtime, peers, std::array{encoded(mine)})[0]);
  plain->mapped_from_ = runtime.memory().map(other, theirs.from);
  plain->mapped_to_ = runtime.memory().map(other, theirs.to);
  plain->flags_there_ = runtime.memory().map(other, theirs.flag);
  plain->from_there_ = plain->mapped_from_.get();
  plain->to_there_ = plain->mapped_to_.get();
  plain->flag_there_ = reinterpret_cast<std::uint64_t*>(plain->flags_there_.get());
  const bool mapped = plain->from_there_ != nullptr && plain->to_there_ != nullptr && plain->flag_there_ != nullptr;
  const auto said = static_cast<std::int64_t>(mapped);
  const bool both = decoded<std::int64_t>(exchange(runtime, peers, std::array{encoded(said)})[0]) != 0 && mapped;
  return both ? std::move(plain) : nullptr;
}

void PlainCopies::raise() {
  std::atomic_ref(*flag_there_).store(++raised_, std::memory_order_release);
}

void PlainCopies::await() {
  ++awaited_;
  const std::array<int, 1> peers{other_};
  wait_until(
      runtime_, peers, [&] { return std::atomic_ref(*flag_).load(std::memory_order_acquire) >= awaited_; },
      [&] { return fmt::format("rank {}: measuring plain copies with rank {}", runtime_.rank(), other_); });
}

template <class Once>
double PlainCopies::least(const Layout& layout, const Once& once) {
  const bool word = layout.size() < 1024;
  const int rounds = word ? 10 : 2;
  for (int i = 0; i < 3; ++i) once();
  double best = 1e9;
  for (int batch = 0; batch < (word ? 40 : 8); ++batch) {
    const double begin = now();
    for (int i = 0; i < rounds; ++i) once();
    best = std::min(best, (now() - begin) / rounds);
  }
  return best;
}

// What has arrived is sent back from where it arrived.
double PlainCopies::there_and_back(const Layout& layout) {
  const Copies copies(layout);
  const bool alone = other_ == runtime_.rank();
  return least(layout,
               [&] {
                 if (alone) {
                   copies(from_, to_);
                   copies(to_, from_);
                   return;
                 }
                 if (!first_) await();
                 copies(to_, to_there_);
                 raise();
                 if (first_) await();
               }) /
         2;
}

double PlainCopies::both(const Layout& layout) {
  const Copies copies(layout);
  return least(layout,
               [&] {
                 copies(from_, to_there_);
                 raise();
                 await();
                 copies(to_, from_there_);
                 raise();
                 await();
               }) /
         2;
}

Times PlainCopies::measure() {
  Times times;
  times.one_way = seconds_for([&](const Layout& layout) { return there_and_back(layout); }, false);
  times.after = times.one_way.word;
  if (other_ != runtime_.rank())
    times.both_ways = seconds_for([&](const Layout& layout) { return both(layout); }, false);
  return times;
}

}  // namespace tasuki
