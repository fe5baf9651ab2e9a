// The normal form of a byte sequence: maximal contiguous runs, folded greedily into nests of at most kMaxDims levels.
// The same code folds one sequence (a layout, Sides = 1) and two in step (a copy: source and destination, Sides = 2).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "tasuki/layout.hpp"
#include "tasuki/strided_copy.hpp"

namespace tasuki {

/// A stream transducer. Runs go in at the bottom in sequence order and are joined if they touch on all sides. Level 1
/// takes runs and folds neighbours of equal length in arithmetic progression into one nest; level 2 does the same with
/// neighbouring equal nests from level 1, and so on. Each level depends only on the sequence that it receives, so equal
/// byte sequences give equal results however they were described.
///
/// A regular pattern need not be fed run by run. The rule does not depend on where the bytes are. So once a round of a
/// repetition has only moved the lower levels by the stride and lengthened one group, every further round does the
/// same, and the rest is added in one step (`repeat`). That makes a nest of 2^40 bytes as cheap as a small one, with
/// the same result.
template <int Sides>
class Normaliser {
 public:
  using Offsets = std::array<std::int64_t, Sides>;
  using Output = std::conditional_t<Sides == 1, Block, StridedCopy>;

  struct Step {  // one dimension
    std::int64_t count = 1;
    Offsets strides{};
    friend bool operator==(const Step&, const Step&) = default;
  };

  /// Throws Errors in the name of `operation`, which must outlive this object.
  explicit Normaliser(const char* operation) : operation_(operation) {}

  /// Appends `bytes` contiguous bytes.
  void run(const Offsets& at, std::int64_t bytes);

  /// Appends a nest of blocks; `steps` from the outermost to the innermost, any number of them.
  void nest(const Offsets& at, std::int64_t bytes, std::span<const Step> steps) {
    while (!steps.empty() && (steps.back().count == 1 || touches(steps.back().strides, bytes))) {
      bytes *= steps.back().count;
      steps = steps.first(steps.size() - 1);
    }
    if (steps.empty()) return run(at, bytes);
    repeat(steps.front(), [&](const Offsets& moved) { nest(sum(at, moved), bytes, steps.subspan(1)); });
  }

  /// Appends what `body(displacement)` appends, for displacement = 0, 1, … count-1 strides. `body` must append the same
  /// runs every time, apart from the displacement.
  template <class Body>
  void repeat(const Step& step, const Body& body) {
    // rounds after which a repetition that has not become regular never will; it takes two or three
    constexpr std::int64_t kRounds = 8;
    const bool may_skip = step.count > 3;
    State before;
    Offsets moved{};
    for (std::int64_t i = 0; i < step.count; ++i) {
      body(moved);
      if (may_skip && i < kRounds) {
        if (i > 0 && skip(before, step.strides, step.count - 1 - i)) return;
        before = state_;
      }
      if (i + 1 < step.count) moved = sum(moved, step.strides);
    }
  }

  /// How many outputs are settled, whatever follows.
  std::int64_t settled() const { return std::ssize(output_); }
  /// Returns these, and forgets them.
  std::vector<Output> take_settled() { return std::exchange(output_, {}); }
  /// Ends the sequence and returns its normal form, or what was not taken of it.
  std::vector<Output> finish();

 private:
  struct Nest {  // `bytes` at `at`, repeated by `ndims` dimensions, innermost first
    Offsets at{};
    std::int64_t bytes = 0;
    std::int32_t ndims = 0;
    std::array<Step, kMaxDims> dims;

    Nest() = default;
    Nest(const Nest& other) { *this = other; }
    Nest& operator=(const Nest& other) {  // most nests have few dimensions: leave the unused ones alone
      at = other.at;
      bytes = other.bytes;
      ndims = other.ndims;
      std::copy_n(other.dims.begin(), ndims, dims.begin());
      return *this;
    }
    bool same_shape(const Nest& other) const {
      return bytes == other.bytes && ndims == other.ndims &&
             std::equal(dims.begin(), dims.begin() + ndims, other.dims.begin());
    }
  };
  struct Group {  // `count` nests like `first`, `strides` apart; the strides are open while count is 1
    Nest first;
    std::int64_t count = 0;
    Offsets strides{};
    std::int64_t received = 0;  // nests ever received: shows whether a level was busy since, though it looks the same
  };
  struct State {
    Offsets run_at{};
    std::int64_t run_bytes = 0;
    std::array<Group, kMaxDims> levels;
    std::int64_t outputs = 0;
  };

  static bool touches(const Offsets& strides, std::int64_t bytes) {
    return std::all_of(strides.begin(), strides.end(), [bytes](std::int64_t stride) { return stride == bytes; });
  }
  static Offsets sum(const Offsets& a, const Offsets& b, std::int64_t times = 1);
  Offsets difference(const Offsets& a, const Offsets& b) const;
  void push(int level, const Nest& nest);
  void close(int level);
  void close_run();
  bool skip(const State& before, const Offsets& strides, std::int64_t rounds);
  bool idle_from(int level, const State& before) const;

  const char* operation_;
  std::int64_t fed_ = 0;
  State state_;
  std::vector<Output> output_;
};

extern template class Normaliser<1>;
extern template class Normaliser<2>;

}  // namespace tasuki
