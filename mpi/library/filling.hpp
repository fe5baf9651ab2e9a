// By which stores memory that another rank reads is filled.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "known.hpp"
#include "scratch.hpp"

namespace tasuki::mpi {

/// What filling such memory takes, in ns a byte: by usual stores, or past the caches. Two processors that share a cache
/// hand lines to each other fast (64 KiB in 8 B blocks: 3.4 µs one way, and 6.6 past the caches). If they share none,
/// each line that the receiver has had costs its sender a round trip (28 µs), and past the caches it is 6.6 still.
/// Which it is changes while a program runs, as processes are moved, so that the other way is tried now and then.
/// Several threads may fill at the same time; what one of them measures may be lost.
struct FillPrices {
  static constexpr std::int64_t kLeast = 8 << 10;  // bytes of a message
  static constexpr auto kRelaxed = std::memory_order_relaxed;
  std::atomic<double> usual{0}, streamed{0};
  std::atomic<unsigned> messages{0};
  bool streams() {
    constexpr unsigned kTried = 64;
    constexpr double kReceivers = 2;  // who reads them from the memory then
    const double by_usual = usual.load(kRelaxed), past_caches = streamed.load(kRelaxed);
    if (by_usual == 0 || past_caches == 0) return by_usual > 0;
    const unsigned number = messages.load(kRelaxed) + 1;
    messages.store(number, kRelaxed);
    const bool better = by_usual > kReceivers * past_caches;
    return number % kTried == 0 ? !better : better;
  }
  void took(bool streaming, double ns) {
    std::atomic<double>& price = streaming ? streamed : usual;
    const double before = price.load(kRelaxed);
    constexpr double kOutlier = 4, kSlowly = 0.25;  // a sender may have lost its processor meanwhile
    price.store(before == 0 || ns < before ? ns : before + kSlowly * (std::min(ns, kOutlier * before) - before),
                kRelaxed);
  }
};

/// The segments of one message on their way into such memory. It measures what they take, for the messages to come.
class Filling {
 public:
  Filling() = default;
  /// Of a message of `bytes` bytes. `prices` are its receiver's.
  Filling(FillPrices& prices, std::int64_t bytes);
  void pack(const Packer& segment, const std::byte* base, std::byte* to);
  void copy(const std::byte* from, std::int64_t bytes, std::byte* to);

 private:
  template <class Store>
  void store(std::int64_t bytes, const Store& work);
  FillPrices* prices_ = nullptr;  // null: it is too small to be measured
  bool streams_ = false;
  std::int64_t bytes_ = 0, left_ = 0;
  double ns_ = 0;
  Scratch packed_;
};

}  // namespace tasuki::mpi
