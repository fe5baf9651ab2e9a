// Partial results: see sums.hpp.
#include "plan/verify/sums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tasuki/error.hpp"

namespace tasuki::detail {
namespace {

constexpr std::size_t kMostSums = std::size_t{1} << 23;     // of 64 bytes: half a GB
constexpr std::int64_t kUncounted = std::int64_t{1} << 62;  // this number of contributions stands for any larger number
constexpr std::int64_t kMostShown = 64;                     // most contributions that are shown in brackets

}  // namespace

void Sums::combine(Kind kind, std::uint32_t event, std::span<std::uint64_t> to, std::span<const std::uint64_t> from) {
  const std::int64_t count = std::ssize(to);
  if (!tasuki::accumulates(kind.dtype, kind.op)) std::ranges::fill(to, 0);
  for (std::int64_t begin = 0; begin < count;) {
    const std::uint64_t left = to[begin], right = from[begin];
    std::int64_t n = 1;
    while (begin + n < count && to[begin + n] == following(left, n) && from[begin + n] == following(right, n)) ++n;
    if (sums_.size() == kMostSums) {
      throw Error(
          fmt::format("the plans make {} partial results that differ, more than the verifier follows; verify "
                      "a smaller case",
                      kMostSums));
    }
    const std::int64_t all = std::min(kUncounted, terms(left) + terms(right));
    sums_.push_back({next_, left, right, all, event, kind.after(begin, unit_)});
    for (std::int64_t k = 0; k < n; ++k) to[begin + k] = kSum | static_cast<std::uint64_t>(next_ + k) << kEpochBits;
    next_ += n + 1;  // one number is left out, so that tokens of two runs never follow each other
    begin += n;
  }
}

const Sum& Sums::of(std::uint64_t token) const {
  const auto after = std::upper_bound(sums_.begin(), sums_.end(), number(token),
                                      [](std::int64_t n, const Sum& sum) { return n < sum.first; });
  return *(after - 1);
}

std::int64_t Sums::place(std::uint64_t token) const {
  return number(token) - of(token).first;
}

std::pair<std::uint64_t, std::uint64_t> Sums::operands(std::uint64_t token) const {
  const Sum& sum = of(token);
  const std::int64_t k = number(token) - sum.first;
  return {following(sum.left, k), following(sum.right, k)};
}

std::vector<Sums::Term> Sums::flat(std::uint64_t token) const {
  std::vector<Term> found, open{{token, 0}};
  while (!open.empty()) {
    const Term next = open.back();
    open.pop_back();
    if (next.token & kSum) {
      const auto [left, right] = operands(next.token);
      const std::uint32_t event = of(next.token).event;
      open.push_back({right, event});
      open.push_back({left, event});
    } else {
      found.push_back(next);
    }
  }
  return found;
}

const Sum* Sums::other_than(Kind wanted, std::uint64_t token) const {
  std::vector<std::uint64_t> open{token};
  while (!open.empty()) {
    const std::uint64_t next = open.back();
    open.pop_back();
    if (!(next & kSum)) continue;
    if (kind(next) != wanted) return &of(next);
    const auto [left, right] = operands(next);
    open.push_back(right);
    open.push_back(left);
  }
  return nullptr;
}

std::int64_t Sums::count(std::uint64_t token, std::uint64_t term) const {
  return std::ranges::count(flat(token), term, &Term::token);
}

const Sum& Sums::doubles(std::uint64_t token, std::uint64_t term) const {
  for (;;) {
    const auto [left, right] = operands(token);
    if (count(left, term) > 1) {
      token = left;
    } else if (count(right, term) > 1) {
      token = right;
    } else {
      return of(token);
    }
  }
}

std::string Sums::order(std::uint64_t token, const std::function<std::int32_t(std::uint64_t)>& rank_of) const {
  if (terms(token) > kMostShown) return fmt::format("{} contributions", terms(token));
  const std::function<std::pair<std::int32_t, std::string>(std::uint64_t)> shown = [&](std::uint64_t t) {
    if (!(t & kSum)) return std::pair(rank_of(t), fmt::format("{}", rank_of(t)));
    const auto [left, right] = operands(t);
    auto first = shown(left), second = shown(right);
    if (second < first) std::swap(first, second);
    return std::pair(first.first, fmt::format("({} {})", first.second, second.second));
  };
  return shown(token).second;
}

}  // namespace tasuki::detail
