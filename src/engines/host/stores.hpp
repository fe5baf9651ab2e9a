// Stores: whether what a rank puts into another rank's memory is stored through the caches or past them.
//
// Through the caches is faster where both cores share one: the other core then finds the bytes there. But a line that
// the other core holds has to be taken from it first. Between cores that share no cache, that takes ten to forty times
// as long as to store past the caches, and a hypervisor may move two cores of a virtual machine apart, or together
// again, at any time. So puts are timed, and this rank decides by itself: either way the same bytes are stored.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tasuki {

class Stores {
 public:
  static constexpr std::int64_t kLeast = 4 << 10;  ///< bytes of a put that is worth the time of two looks at a clock

  /// How the next put is to be stored.
  bool past_caches() const { return left_ > 0 ? past_ : !past_; }

  /// What the put has taken, which was stored as `past_caches` said.
  void took(bool past_caches, std::int64_t bytes, std::int64_t nanoseconds) {
    const double rate = static_cast<double>(nanoseconds) / static_cast<double>(bytes);
    (past_caches ? past_rate_ : through_rate_) = rate;
    const bool tried = past_caches != past_;
    const bool before = past_;
    // The reader then loads from memory what it would have found in a cache: past the caches has to gain more than
    // that.
    past_ = through_rate_ > kDear * past_rate_ && past_rate_ > 0;
    if (past_ != before) {
      pause_ = kFirstPause;
      left_ = pause_;
    } else if (tried) {
      pause_ = std::min(2 * pause_, kLongestPause);
      left_ = pause_;
    } else {
      --left_;
    }
  }

 private:
  static constexpr double kDear = 2;
  static constexpr int kFirstPause = 16;  // puts before the other kind is tried again; twice as many after each trial
  static constexpr int kLongestPause = 1024;

  bool past_ = false;
  int left_ = 2;  // puts until the other kind is tried; the first ones find memory that is new
  int pause_ = 2;
  double through_rate_ = 0;  // nanoseconds a byte, of the last put of the kind
  double past_rate_ = 0;
};

}  // namespace tasuki
