// Partial results of reductions, as expressions over what the users wrote. Commands that move bytes move tokens; only
// `reduce` makes new tokens.
//
// A token has 64 bits. 0 is nothing. A value that a user wrote is its cell and its epoch. A partial result is a number
// with the top bit set. Tokens of neighbouring cells mostly follow each other, so one `Sum` stands for a whole run of
// partial results: its k-th result combines the k-th token after `left` with the k-th token after `right`. What
// `negate` makes is a partial result of nothing and the source.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tasuki/dtype.hpp"

namespace tasuki::detail {

constexpr int kEpochBits = 20;
constexpr std::uint64_t kSum = std::uint64_t{1} << 63;
constexpr std::uint64_t kNext = std::uint64_t{1} << kEpochBits;  ///< between the tokens of neighbouring cells

/// The k-th token of a run that begins with `token`.
inline std::uint64_t following(std::uint64_t token, std::int64_t k) {
  return token == 0 ? 0 : token + static_cast<std::uint64_t>(k) * kNext;
}

/// What all steps of one reduction have in common.
struct Kind {
  ReduceOp op = ReduceOp::sum;
  DType dtype = DType::none;
  std::uint8_t phase = 0;  ///< the byte of an element at which the cell begins
  friend bool operator==(const Kind&, const Kind&) = default;

  /// The kind of the k-th cell after a cell of this kind, if cells have `unit` bytes.
  Kind after(std::int64_t k, std::int64_t unit) const {
    return {op, dtype, static_cast<std::uint8_t>((phase + k * unit) % size_of(dtype))};
  }
};

/// A run of partial results, and the command that made it.
struct Sum {
  std::int64_t first = 0;  ///< token number of its first result
  std::uint64_t left = 0, right = 0;
  std::int64_t terms = 0;  ///< contributions in each of its results
  std::uint32_t event = 0;
  Kind kind;
};

class Sums {
 public:
  explicit Sums(std::int64_t unit) : unit_(unit) {}

  /// Combines the tokens `to` with `from`, which begin an element. Throws `Error` if there are too many to follow.
  void combine(Kind kind, std::uint32_t event, std::span<std::uint64_t> to, std::span<const std::uint64_t> from);

  /// The run to which a partial result belongs, and its index there.
  const Sum& of(std::uint64_t token) const;
  std::int64_t place(std::uint64_t token) const;
  Kind kind(std::uint64_t token) const { return of(token).kind.after(place(token), unit_); }
  std::int64_t terms(std::uint64_t token) const { return token & kSum ? of(token).terms : 1; }

  struct Term {
    std::uint64_t token = 0;
    std::uint32_t event = 0;  ///< the reduction that added it
  };
  /// The contributions from left to right. Only for partial results of at most `kMostTerms` contributions.
  std::vector<Term> flat(std::uint64_t token) const;
  static constexpr std::int64_t kMostTerms = 1 << 12;

  /// A step of another kind than this one; nullptr if all steps are of this kind.
  const Sum* other_than(Kind kind, std::uint64_t token) const;
  /// The step that combines two partial results that contain the same contribution.
  const Sum& doubles(std::uint64_t token, std::uint64_t term) const;
  /// The contributions in brackets, in the form of `ReductionOrder::order`.
  std::string order(std::uint64_t token, const std::function<std::int32_t(std::uint64_t)>& rank_of) const;

 private:
  static std::int64_t number(std::uint64_t token) { return static_cast<std::int64_t>((token & ~kSum) >> kEpochBits); }
  std::pair<std::uint64_t, std::uint64_t> operands(std::uint64_t token) const;
  std::int64_t count(std::uint64_t token, std::uint64_t term) const;

  std::int64_t unit_;
  std::int64_t next_ = 0;
  std::vector<Sum> sums_;  ///< by `first`
};

}  // namespace tasuki::detail
