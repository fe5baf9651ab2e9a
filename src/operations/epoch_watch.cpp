// What first epochs take: see epoch_watch.hpp.
#include "operations/epoch_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "layout/encoding.hpp"
#include "machine/derived.hpp"
#include "session/collective.hpp"

namespace tasuki {

namespace {

constexpr int kCounted = 8;             // then so many that end in a wait count ...
constexpr int kMostSeen = 96;           // ... of these
constexpr double kFar = 2;              // predictions are wrong by more
constexpr double kLittle = 2e-6;        // what calls take, too, is no matter of prices
constexpr int kMostFruitless = 4;       // exchanges in which the ranks had found different things
constexpr std::size_t kMostFound = 64;  // findings that a rank keeps for the others

void tell(Encoder& to, int operation, const Finding& one) {
  to.number(operation).text(one.operation).record(one.expected).record(one.least).text(one.path).record(one.price);
  to.record(one.move);
}

std::pair<int, Finding> heard(Decoder& from) {
  const auto operation = static_cast<int>(from.number());
  Finding one;
  one.operation = from.text();
  one.expected = from.record<double>();
  one.least = from.record<double>();
  one.path = from.text();
  one.price = from.record<double>();
  one.move = from.record<PricedMove>();
  return {operation, one};
}

double ratio(const Finding& one) {
  return one.least / one.expected;
}

// The same on every rank.
void correct(Runtime& runtime, const Finding& one) {
  const Machine& machine = runtime.machine();
  const Path& path = path_named(one.path);
  const double wanted = one.price * ratio(one);
  const PathCost cost = machine.cost(one.path);
  const PathCost better = corrected(machine, path, cost, one.move, wanted);
  if (better == cost) return;  // another operation has had it corrected
  const std::string source = fmt::format("{}; {} corrected: {} bytes take {:.2f} us, not {:.2f}", machine.source,
                                         one.path, one.move.bytes, wanted * 1e6, one.price * 1e6);
  runtime.replace_machine(with_costs(machine, {{one.path, better}}, source));
  if (runtime.rank() == 0)
    fmt::print(stderr,
               "tasuki: {} takes {:.2f} us or more where {:.2f} were predicted: for what is made from now on, {} bytes "
               "by path {} are priced with {:.2f} us instead of {:.2f} (TASUKI_CORRECT=0 turns this off)\n",
               one.operation, one.least * 1e6, one.expected * 1e6, one.move.bytes, one.path, wanted * 1e6,
               one.price * 1e6);
}

}  // namespace

void Findings::add(Runtime& runtime, int operation, Finding finding) {
  found_[operation] = std::move(finding);
  if (found_.size() > kMostFound) found_.erase(found_.begin());
  runtime.has_findings = true;
}

void Findings::settle(Runtime& runtime) {
  Encoder mine;
  for (const auto& [operation, finding] : found_) tell(mine, operation, finding);
  const auto texts = gather_texts(runtime, mine.bytes(), "comparing what operations have taken");
  std::map<int, std::vector<Finding>> all;
  for (const std::string& text : texts) {
    Decoder from(text);
    while (!from.empty()) {
      auto [operation, finding] = heard(from);
      all[operation].push_back(std::move(finding));
    }
  }
  bool fruitful = false;
  for (const auto& [operation, by_rank] : all) {
    if (by_rank.size() < texts.size()) continue;  // some have not seen it be slow, or not yet
    fruitful = true;
    found_.erase(operation);
    const Finding* least = nullptr;
    for (const Finding& one : by_rank)
      if (one.least > 0 && (least == nullptr || ratio(one) < ratio(*least))) least = &one;
    if (least != nullptr && !least->path.empty()) correct(runtime, *least);
  }
  fruitless_ = fruitful ? 0 : fruitless_ + 1;
  if (fruitless_ >= kMostFruitless) {
    found_.clear();
    fruitless_ = 0;
  }
  runtime.has_findings = !found_.empty();
  runtime.all_have_findings = false;
}

std::int64_t EpochWatch::now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool EpochWatch::ended(Runtime& runtime) {
  spent_ += now() - begin_;
  const bool counts = std::exchange(counts_, true);
  // Pages are new in the first epochs: a ring has memory for many of them, each with pages of its own.
  if (++seen_ <= runtime.machine().constants.eager_most_epochs) return true;
  if (counts) least_ = counted_++ == 0 ? spent_ : std::min(least_, spent_);
  if (counted_ < kCounted) return seen_ < kMostSeen;
  finding_.least = static_cast<double>(least_) * 1e-9;
  if (ratio(finding_) > kFar && finding_.least - finding_.expected > kLittle)
    runtime.findings->add(runtime, operation_, finding_);
  return false;
}

}  // namespace tasuki
