// PlainCopies: what copies and flags in shared memory take between two ranks without any operation, plan or protocol.
// Measured beside the paths, to tell times that cannot be true.
#pragma once

#include <cstdint>
#include <memory>

#include "calibrate/times.hpp"
#include "session/runtime.hpp"

namespace tasuki {

class PlainCopies {
 public:
  /// Between `other` and this rank, which both call it, in memory as large as calibration's. Null on both if they do
  /// not map each other's memory. `first` is true on one of them. A rank alone copies between `from` and `to`.
  static std::unique_ptr<PlainCopies> between(Runtime& runtime, int other, bool first, std::byte* from, std::byte* to,
                                              std::int64_t bytes);

  /// The same transfers as those of a path.
  Times measure();

 private:
  PlainCopies(Runtime& runtime, int other, bool first) : runtime_(runtime), other_(other), first_(first) {}
  double there_and_back(const Layout& layout);
  double both(const Layout& layout);
  template <class Once>
  static double least(const Layout& layout, const Once& once);
  void raise();  ///< the other rank's flag
  void await();  ///< this rank's flag, of the round that was raised last

  Runtime& runtime_;
  int other_;
  bool first_;
  std::byte* from_ = nullptr;
  std::byte* to_ = nullptr;
  std::byte* from_there_ = nullptr;  // the other rank's
  std::byte* to_there_ = nullptr;
  std::uint64_t* flag_ = nullptr;
  std::uint64_t* flag_there_ = nullptr;
  std::uint64_t raised_ = 0;
  std::uint64_t awaited_ = 0;
  std::shared_ptr<std::byte> flags_, flags_there_, mapped_from_, mapped_to_;
};

}  // namespace tasuki
