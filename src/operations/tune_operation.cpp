// Option `tune`: candidates for an operation are made and timed on memory of their own, and the fastest is kept.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <utility>

#include "layout/encoding.hpp"
#include "memory/gpu.hpp"
#include "operations/state.hpp"
#include "session/collective.hpp"
#include "session/gpus.hpp"
#include "session/trace.hpp"
#include "tasuki/collectives.hpp"
#include "tasuki/error.hpp"
#include "tasuki/graph.hpp"

namespace tasuki {

namespace {

constexpr int kRounds = 9;
constexpr double kRoundSeconds = 1e-3;  // about
constexpr int kMostRepeats = 2000;
constexpr double kTie = 0.02;  // what is faster by less than this share is not worth another choice
constexpr std::int64_t kAlignment = 64;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The ranks that make an operation together.
class Makers {
 public:
  Makers(const Context& context, const std::optional<std::vector<int>>& among)
      : runtime_(runtime_of(context)), among_(among) {}

  bool all() const { return !among_; }
  Agreement agreement(const std::string& name) const {
    return among_ ? Agreement(runtime_, name, *among_) : Agreement(runtime_, name);
  }
  template <class T>
  std::vector<T> tell(const T& mine) const {
    std::vector<std::string> texts{encoded(mine)};
    if (!among_) {
      texts = gather_texts(runtime_, texts[0], "trying candidates");
    } else if (!among_->empty()) {
      const auto others = exchange(runtime_, *among_, std::vector<std::string>(among_->size(), texts[0]));
      texts.insert(texts.end(), others.begin(), others.end());
    }
    std::vector<T> told;
    for (const std::string& text : texts) told.push_back(decoded<T>(text));
    return told;
  }
  double largest(double mine) const {
    const auto told = tell(mine);
    return *std::max_element(told.begin(), told.end());
  }
  /// Returns when all have come.
  void meet() const { all() ? runtime_.barrier() : static_cast<void>(tell(0)); }

 private:
  Runtime& runtime_;
  const std::optional<std::vector<int>>& among_;
};

// Memory in the place of the user's: as much, of the same kind and alignment. The candidates share it.
class Stand {
 public:
  Stand(Runtime& runtime, const std::vector<UserBuffer>& users) {
    for (const UserBuffer& buffer : users)
      for (const std::byte* at : buffer.memory) places_[buffer.name].push_back(place(runtime, at, buffer));
  }
  std::vector<UserBuffer> instead_of(std::vector<UserBuffer> users) const {
    for (UserBuffer& buffer : users)
      if (!buffer.memory.empty()) buffer.memory = places_.at(buffer.name);
    return users;
  }

 private:
  std::byte* place(Runtime& runtime, const std::byte* like, const UserBuffer& buffer) {
    std::shared_ptr<std::byte> block;
    const std::int64_t bytes = buffer.bytes + kAlignment;
    if (buffer.where == Memory::device) {
      std::string why;
      if (buffer.bytes > 0 && runtime.gpus->find(like, why).valid == 0)
        throw Error(fmt::format("option 'tune' tries candidates on memory like that of '{}', but there is none: {}",
                                buffer.name, why));
      block = runtime.gpus->allocate(bytes);
    } else if (runtime.memory().find(like, buffer.bytes).valid()) {
      block = runtime.memory().allocate(bytes);
    } else {
      block = {new std::byte[static_cast<std::size_t>(bytes)](), std::default_delete<std::byte[]>()};
    }
    memory_.push_back(block);
    const auto offset = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(like) % kAlignment);
    const auto begins = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(block.get()) % kAlignment);
    return block.get() + (offset - begins + kAlignment) % kAlignment;
  }

  std::vector<std::shared_ptr<std::byte>> memory_;
  std::map<std::string, std::vector<std::byte*>> places_;  // by buffer
};

std::uint64_t hash_of(const std::string& text) {
  return std::hash<std::string>()(text);
}

double lower_quarter(std::vector<double> values) {
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 4);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

// Every path that the user allows, by itself and with messages for those ranks that it does not join.
std::vector<Alternative> by_path(const Machine& machine, const Problem& problem, const std::vector<UserBuffer>& buffers,
                                 Memory memory) {
  const auto named = [&](std::string name, const std::string& path) {
    return Alternative{std::move(name), path, problem, buffers, -1};
  };
  std::vector<Alternative> all{named("as predicted", problem.wanted)};
  const bool islands = std::ranges::any_of(
      machine.ranks, [&](const Machine::Rank& rank) { return rank.island != machine.ranks[0].island; });
  for (const Path& path : all_paths()) {
    if (path.memory != memory || path.name.starts_with("self") || machine.unusable.contains(path.name) ||
        !allows(problem.wanted, path))
      continue;
    all.push_back(named(path.name, path.name));
    if (!islands || path.transport == "mpi") continue;
    for (const Path& other : all_paths())
      if (other.memory == memory && other.preference == 3 && other.name != path.name && allows(problem.wanted, other))
        all.push_back(named(path.name + "," + other.name, path.name + "," + other.name));
  }
  return all;
}

CollectiveOptions inline_engine() {
  CollectiveOptions options;
  options.engine = "inline";
  options.correct = false;
  return options;
}

}  // namespace

// One candidate while it is tried.
class Operation::Trial {
 public:
  Trial(const Context& context, const Description& like, const Alternative& one, const Stand& stand,
        const OperationOptions& options)
      : context_(context) {
    Runtime& runtime = runtime_of(context);
    const std::string& name = like.problem.operation;
    Description d = like.among ? Description(runtime, name, *like.among) : Description(runtime, name);
    d.problem = one.problem;
    d.buffers = stand.instead_of(one.buffers);
    for (UserBuffer& buffer : d.buffers) {
      if (buffer.current == nullptr) continue;
      currents_.push_back(std::make_unique<int>(*buffer.current));
      buffer.current = currents_.back().get();
      if (buffer.alternating) alternating_.push_back(currents_.back().get());
    }
    d.keep = like.keep;
    d.combine = like.combine;
    d.cells = like.cells;
    d.where = like.where;
    OperationOptions own = options;
    own.tune = 0;
    own.correct = false;
    own.path = one.path;
    state_ = std::make_unique<State>(context, std::move(d), own);
    if (state_->where() == Memory::device) stream_ = fork_.emplace().branch(nullptr);
  }

  const Plan& plan() const { return state_->plan(); }
  double expected() const { return state_->expected(); }
  /// Seconds of so many epochs, each after one of `barrier` if there is one.
  double seconds(int epochs, Barrier* barrier) {
    const double begin = now();
    for (int i = 0; i < epochs; ++i) {
      if (barrier != nullptr) {
        barrier->start();
        barrier->wait();
      }
      if (fork_) {
        state_->enqueue(stream_, StreamWork::run);
      } else {
        state_->start();
        state_->wait();
      }
      for (int* current : alternating_) *current ^= 1;  // as the user swaps fields between two epochs
    }
    if (fork_) synchronize(context_, stream_);
    return now() - begin;
  }

  int repeats = 1;
  std::vector<double> samples;

 private:
  const Context& context_;
  std::vector<std::unique_ptr<int>> currents_;
  std::vector<int*> alternating_;
  std::optional<Fork> fork_;  // on GPUs
  Stream stream_{};
  std::unique_ptr<State> state_;
};

void Operation::State::choose_by_trial(Description& description, OperationOptions& options) {
  Runtime& runtime = runtime_of(context_);
  const TracePause pause;
  const Makers makers(context_, description.among);
  std::vector<Alternative> all = std::move(description.alternatives);
  if (all.empty()) {
    Problem problem = description.problem;
    const std::string forced = wanted_by(problem, options, runtime);
    if (forced != "auto") problem.wanted = forced;
    if (!description.among) machine_for(context_, problem.wanted);
    all = by_path(runtime.machine(), problem, description.buffers, where_);
  }
  std::optional<Stand> stand;
  Agreement outcome = makers.agreement(name_);
  try {
    stand.emplace(runtime, description.buffers);
  } catch (const std::exception& error) {  // the others must not wait for this rank
    outcome.complain(error);
  }
  outcome.settle();
  // All are made, for only then is known what they are predicted to take; the same plan under another name is left out.
  struct Made {
    std::size_t alternative;
    std::unique_ptr<Trial> trial;
    double predicted;
  };
  std::vector<Made> made;
  std::vector<std::vector<std::uint64_t>> plans;
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::unique_ptr<Trial> trial;
    try {
      trial = std::make_unique<Trial>(context_, description, all[i], *stand, options);
    } catch (const PathUnusable&) {  // on all ranks that make it
      continue;
    }
    struct Told {
      std::uint64_t plan;
      double expected;
    };
    const auto told = makers.tell(Told{hash_of(to_json(trial->plan())), trial->expected()});
    std::vector<std::uint64_t> plan;
    double expected = 0;
    for (const Told& one : told) {
      plan.push_back(one.plan);
      expected = std::max(expected, one.expected);
    }
    std::sort(plan.begin(), plan.end());  // a rank tells itself first where two make it
    if (std::find(plans.begin(), plans.end(), plan) != plans.end()) continue;
    plans.push_back(std::move(plan));
    made.push_back({i, std::move(trial), all[i].predicted >= 0 ? all[i].predicted : expected});
  }
  if (made.empty()) return;  // who makes the operation says why
  std::stable_sort(made.begin() + 1, made.end(),
                   [](const Made& a, const Made& b) { return a.predicted < b.predicted; });
  if (std::ssize(made) > options.tune) made.resize(static_cast<std::size_t>(options.tune));

  std::optional<Barrier> barrier;
  if (makers.all() && where_ == Memory::host && runtime.size() > 1) barrier.emplace(context_, inline_engine());
  Barrier* const before = barrier ? &*barrier : nullptr;
  for (Made& one : made) {
    (void)one.trial->seconds(2, before);
    makers.meet();
    const double epoch = makers.largest(one.trial->seconds(4, before)) / 4;
    one.trial->repeats = static_cast<int>(std::clamp(kRoundSeconds / std::max(epoch, 1e-9), 1.0, double{kMostRepeats}));
  }
  std::vector<double> base;
  for (int round = 0; round < kRounds; ++round) {
    for (Made& one : made) {
      makers.meet();
      const int repeats = one.trial->repeats;
      one.trial->samples.push_back(makers.largest(one.trial->seconds(repeats, before)) / repeats);
    }
    if (before == nullptr) continue;
    constexpr int kBarriers = 20;
    makers.meet();
    const double begin = now();
    for (int i = 0; i < kBarriers; ++i) {
      barrier->start();
      barrier->wait();
    }
    base.push_back(makers.largest((now() - begin) / kBarriers));
  }
  const double barrier_seconds = base.empty() ? 0 : lower_quarter(base);
  std::vector<double> times;
  std::size_t best = 0;
  for (const Made& one : made) {
    times.push_back(std::max(lower_quarter(one.trial->samples) - barrier_seconds, 1e-9));
    if (times.back() < times[best] * (1 - kTie)) best = times.size() - 1;
  }
  std::string remark = fmt::format("tried for option 'tune' on memory like this:\n{:<44} {:>12} {:>12}\n", "candidate",
                                   "us predicted", "us measured");
  for (std::size_t i = 0; i < made.size(); ++i)
    remark += fmt::format("{:<44} {:>12.2f} {:>12.2f}{}\n", all[made[i].alternative].name, made[i].predicted * 1e6,
                          times[i] * 1e6, i == best ? "  <- kept" : "");
  Alternative& kept = all[made[best].alternative];
  description.problem = std::move(kept.problem);
  description.problem.remark += remark;
  // Scratch may differ; the user's memory is the same.
  description.buffers = std::move(kept.buffers);
  options.path = kept.path;
  if (kept.predicted >= 0) description.predicted = kept.predicted;
}

}  // namespace tasuki
