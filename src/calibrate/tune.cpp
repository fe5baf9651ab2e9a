// Tuning collectives: see tasuki/tune.hpp.
#include "tasuki/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "calibrate/profile_file.hpp"
#include "calibrate/timed_collective.hpp"
#include "collectives/bound.hpp"
#include "collectives/measuring.hpp"
#include "machine/derived.hpp"
#include "operations/state.hpp"
#include "session/trace.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;

// A collective of so many bytes on a rank, as near as whole numbers come to it.
CollectiveShape shape_of(CollectiveKind kind, std::int64_t bytes, int ranks, Memory memory, bool shared) {
  CollectiveShape shape;
  shape.kind = kind;
  shape.memory = memory;
  shape.shared = shared;
  if (kind == CollectiveKind::barrier) return shape;
  shape.type = kind == CollectiveKind::broadcast ? DType::u8 : DType::f64;
  shape.count = std::max<std::int64_t>(bytes / size_of(shape.type) / (has_blocks(kind) ? ranks : 1), 1);
  return shape;
}

void check(const Context& context, const TuneOptions& options) {
  Runtime& runtime = runtime_of(context);
  std::string kinds, sizes;
  for (const CollectiveKind kind : options.kinds) kinds += fmt::format("{} ", to_string(kind));
  for (const std::int64_t size : options.sizes) sizes += fmt::format("{} ", size);
  Agreement agreement(runtime, "tune_collectives");
  agreement.same("kinds", kinds).same("sizes", sizes).same("memory", std::string(to_string(options.memory)));
  agreement.same("rounds", options.rounds).same("round_seconds", fmt::format("{}", options.round_seconds));
  agreement.complain([&]() -> std::string {
    if (runtime.size() < 2) return "one rank alone has nobody to talk to; give 2 or more";
    for (const std::int64_t size : options.sizes)
      if (size < 1 || size > kMostBytes)
        return fmt::format("option 'sizes' has {} bytes; give 1 to {}", size, kMostBytes);
    if (options.rounds < 1) return fmt::format("option 'rounds' is {}; give 1 or more", options.rounds);
    if (!(options.round_seconds > 0 && options.round_seconds <= 10))
      return fmt::format("option 'round_seconds' is {}; give more than 0, at most 10", options.round_seconds);
    if (runtime.settings().path != "auto")
      return fmt::format("TASUKI_PATH is {}; unset it, for paths are among what is measured", runtime.settings().path);
    if (!runtime.settings().algorithm.empty())
      return fmt::format("TASUKI_ALGORITHM is {}; unset it, for algorithms are what is measured",
                         runtime.settings().algorithm);
    if (options.memory == Memory::device && !runtime.gpus)
      return "option 'memory' is device, but the context uses no GPUs; call use_gpu on all ranks first";
    return {};
  }());
  agreement.check();
}

// A quarter of the values are less. Whatever disturbs the machine makes them larger, never smaller.
double lower_quarter(std::vector<double> values) {
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 4);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

// Of candidates that take turns, so that what disturbs the machine disturbs them all.
std::vector<double> times_of(std::vector<std::unique_ptr<TimedCollective>>& all, int rounds) {
  constexpr double kLeast = 1e-9;
  std::vector<std::vector<double>> samples(all.size());
  std::vector<double> barrier;
  for (int round = 0; round < rounds; ++round) {
    barrier.push_back(all.front()->barrier_once());
    for (std::size_t i = 0; i < all.size(); ++i) samples[i].push_back(all[i]->once());
  }
  const double base = lower_quarter(std::move(barrier));
  std::vector<double> times;
  for (auto& values : samples) times.push_back(std::max(lower_quarter(std::move(values)) - base, kLeast));
  return times;
}

bool same(const Candidate& a, const Candidate& b) {
  return a.algorithm == b.algorithm && a.parameters == b.parameters && a.path == b.path;
}

class Tuner {
 public:
  Tuner(const Context& context, const TuneOptions& options)
      : context_(context), options_(options), machine_(runtime_of(context).machine()) {
    for (const auto& rank : machine_.ranks) islands_.insert(rank.island);
  }

  TunedCase tune(CollectiveKind kind, std::int64_t bytes, const Room& room) {
    const CollectiveShape shape = shape_of(kind, bytes, context_.size(), options_.memory, room.shared);
    const auto collective = std::make_shared<const Collective>(machine_, shape);
    Machine plain = machine_;
    plain.corrections.clear();
    std::vector<Candidate> candidates = worth_measuring(plain, collective);
    const std::vector<Candidate> by_model = candidates_of(plain, collective);
    const bool predicted = by_plans(candidates);
    TunedCase found;
    found.kind = kind;
    found.bytes = collective->whole();
    found.shared = room.shared;
    found.bound = bound_of(plain, *collective).seconds;
    found.by_model = place_of(best_of(by_model, shape.memory), candidates);
    const auto describe = [&](const Candidate& c) {
      TunedCandidate one;
      one.name = name_of(c);
      one.predicted = c.model(predicted);
      const Parameters& p = c.parameters;
      one.correction = {std::string(to_string(kind)),
                        options_.memory,
                        room.shared,
                        context_.size(),
                        static_cast<int>(islands_.size()),
                        c.algorithm->name,
                        p.trees,
                        p.arity,
                        p.chunk,
                        c.path,
                        found.bytes,
                        1};
      return one;
    };
    std::vector<std::unique_ptr<TimedCollective>> timed;
    for (const Candidate& c : candidates) add(timed, shape, c, room);
    const std::vector<double> first = times_of(timed, options_.rounds);
    std::vector<Correction> corrections;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      TunedCandidate& one = found.candidates.emplace_back(describe(candidates[i]));
      one.measured = first[i];
      one.correction.factor = one.measured / one.predicted;
      corrections.push_back(one.correction);
    }
    Machine corrected = plain;
    corrected.corrections = corrections;
    const std::vector<Candidate> all = candidates_of(corrected, collective);
    const std::size_t before = candidates.size();
    found.picked = place_of(best_of(all, shape.memory), candidates);
    if (candidates.size() > before) {  // one that was not measured
      add(timed, shape, candidates.back(), room);
      found.candidates.push_back(describe(candidates.back()));
    }
    const std::vector<double> again = times_of(timed, options_.rounds);
    for (std::size_t i = 0; i < again.size(); ++i) {
      found.candidates[i].again = again[i];
      if (again[i] < found.candidates[static_cast<std::size_t>(found.best)].again) found.best = static_cast<int>(i);
    }
    corrections_.insert(corrections_.end(), corrections.begin(), corrections.end());
    return found;
  }

  const std::vector<Correction>& corrections() const { return corrections_; }
  int islands() const { return static_cast<int>(islands_.size()); }

 private:
  void add(std::vector<std::unique_ptr<TimedCollective>>& timed, const CollectiveShape& shape, const Candidate& c,
           const Room& room) {
    timed.push_back(std::make_unique<TimedCollective>(context_, shape, c, room));
    timed.back()->prepare(options_.round_seconds);
  }
  // Where the candidate is among those that are measured; it is added if it is not.
  static int place_of(const Candidate& wanted, std::vector<Candidate>& candidates) {
    for (std::size_t i = 0; i < candidates.size(); ++i)
      if (same(candidates[i], wanted)) return static_cast<int>(i);
    candidates.push_back(wanted);
    return static_cast<int>(candidates.size()) - 1;
  }

  const Context& context_;
  const TuneOptions& options_;
  Machine machine_;
  std::set<int> islands_;
  std::vector<Correction> corrections_;
};

}  // namespace

Tuned tune_collectives(const Context& context, const TuneOptions& options) {
  Runtime& runtime = runtime_of(context);
  check(context, options);
  const TracePause pause;
  machine_for(context);  // prices come first
  const std::vector<CollectiveKind>& kinds = options.kinds.empty() ? all_collectives() : options.kinds;
  std::vector<std::int64_t> sizes = options.sizes;
  if (sizes.empty()) sizes = {8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20};
  const std::int64_t most = *std::max_element(sizes.begin(), sizes.end());
  const std::int64_t room_bytes = std::max<std::int64_t>(most, 8 * context.size());
  std::vector<Room> rooms;
  rooms.emplace_back(context, options.memory, room_bytes, true);
  if (options.memory == Memory::host) rooms.emplace_back(context, options.memory, room_bytes, false);
  // What is made to be measured is what its options say, whatever was known before.
  const std::vector<Correction> before = runtime.machine().corrections;
  const auto correct_by = [&](std::vector<Correction> corrections) {
    runtime.replace_machine(with_corrections(runtime.machine(), std::move(corrections)));
  };
  correct_by({});
  Tuned tuned;
  Tuner tuner(context, options);
  try {
    for (const CollectiveKind kind : kinds) {
      std::set<std::int64_t> seen;  // what is asked for as different sizes may be the same
      for (const std::int64_t size : sizes) {
        if (!seen.insert(shape_of(kind, size, context.size(), options.memory, true).count).second) continue;
        for (const Room& room : rooms)
          if (room.shared || kind != CollectiveKind::barrier) tuned.cases.push_back(tuner.tune(kind, size, room));
      }
    }
  } catch (...) {
    correct_by(before);
    throw;
  }
  const auto replaced = [&](const Correction& one) {
    return one.memory == options.memory && one.ranks == context.size() && one.islands == tuner.islands() &&
           std::any_of(kinds.begin(), kinds.end(),
                       [&](const CollectiveKind kind) { return one.collective == to_string(kind); });
  };
  std::vector<Correction> now = tuner.corrections();
  std::vector<Correction> kept = before;
  std::erase_if(kept, replaced);
  now.insert(now.begin(), kept.begin(), kept.end());
  correct_by(std::move(now));
  tuned.kept = keep_profile(runtime);
  return tuned;
}

}  // namespace tasuki
