// By which stores memory that another rank reads is filled.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "known.hpp"
#include "scratch.hpp"

namespace tasuki::mpi {

/// What filling such memory takes, in ns a byte: by usual stores, or past the caches. Two processors that share a cache
/// hand lines to each other fast (64 KiB in 8 B blocks: 3.4 µs one way, and 6.6 past the caches). If they share none,
/// each line that the receiver has had costs its sender a round trip (28 µs), and past the caches it is 6.6 still.
/// Which it is changes while a program runs, as processes are moved, so that the other way is tried now and then.
struct FillPrices {
  static constexpr std::int64_t kLeast = 8 << 10;  // bytes of a message
  double usual = 0, streamed = 0;
  unsigned messages = 0;
  bool streams() {
    constexpr unsigned kTried = 64;
    constexpr double kReceivers = 2;  // who reads them from the memory then
    if (usual == 0 || streamed == 0) return usual > 0;
    const bool better = usual > kReceivers * streamed;
    return ++messages % kTried == 0 ? !better : better;
  }
  void took(bool streaming, double ns) {
    double& price = streaming ? streamed : usual;
    constexpr double kOutlier = 4, kSlowly = 0.25;  // a sender may have lost its processor meanwhile
    price = price == 0 || ns < price ? ns : price + kSlowly * (std::min(ns, kOutlier * price) - price);
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
