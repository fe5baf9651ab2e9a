// Measuring the machine: every path runs the same few transfers, and their times give its constants.
//
// All paths take turns, until each time was least in two turns, or the time for it is over. Plain copies between the
// same ranks take part: by them it is told what cannot be true. What is decided after a turn, all ranks decide alike,
// from what rank 0 has told.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "calibrate/curves.hpp"
#include "calibrate/disturbance.hpp"
#include "calibrate/fit.hpp"
#include "calibrate/plain_copies.hpp"
#include "calibrate/plausible.hpp"
#include "calibrate/process_prices.hpp"
#include "calibrate/profile_file.hpp"
#include "layout/encoding.hpp"
#include "machine/derived.hpp"
#include "operations/state.hpp"
#include "session/collective.hpp"
#include "session/gpus.hpp"
#include "session/trace.hpp"
#include "tasuki/error.hpp"
#include "tasuki/memory.hpp"
#include "tasuki/version.h"

namespace tasuki {

namespace {

constexpr std::size_t kLeastTurns = 3;
constexpr std::size_t kMostTurns = 40;
constexpr double kMostSeconds = 0.9;  // after which no further turn begins ...
constexpr double kMostBusy = 2;       // ... and where other processes use cores that the ranks need
constexpr int kLeastPasses = 3;       // over the curves of all paths
constexpr int kMostPasses = 40;
constexpr double kMostCurves = 2;  // seconds after which no further pass begins ...
constexpr double kMostBusyCurves = 4;
constexpr double kSettled = 0.05;   // a path's times are known when their two best turns differ by no more
constexpr double kDoubtful = 0.25;  // plain copies whose two best turns differ by more tell nothing of others
constexpr double kSlower = 1.25;    // a turn in which plain copies took so much longer is another machine's
constexpr const char* kDoing = "measuring the machine";

// The rank with which rank 0 measures the path: the farthest rank that the path joins with rank 0 (another host is
// farther than another island, that is farther than the same island). -1 if there is none.
int partner_for(const Context& context, const Path& path) {
  const Machine& machine = runtime_of(context).machine();
  if (machine.unusable.contains(path.name)) return -1;
  int best = -1;
  int farthest = -1;
  for (int rank = 0; rank < context.size(); ++rank) {
    if (!path.joins(machine, 0, rank)) continue;
    const int far = machine.same_host(0, rank) ? (machine.same_island(0, rank) ? 0 : 1) : 2;
    if (far > farthest) best = rank;
    farthest = std::max(far, farthest);
  }
  return best;
}

std::string date_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                     utc.tm_hour, utc.tm_min, utc.tm_sec);
}

// Whether the path, for this kind of memory, has no price yet, or a doubtful one, and some rank to be measured with.
bool lacks_price(const Context& context, const Path& path, Memory memory) {
  const Runtime& runtime = runtime_of(context);
  const bool known = runtime.machine().cost(path.name).measured && !runtime.doubtful.contains(path.name);
  return path.memory == memory && !known && partner_for(context, path) >= 0;
}

// The paths for one kind of memory that lack a price, while they are measured. It looks at the machine's load as soon
// as it is made, which takes longer than making an operation: it is made only if there are such paths. All functions
// are collective.
class Measuring {
 public:
  Measuring(const Context& context, Memory memory);
  void run();
  void tell(Profile& found) const;  ///< the constants
  Provenance provenance() const;
  std::string notice() const;  ///< What users should know; empty: nothing.

 private:
  struct Measured {
    const Path* path;
    int partner;
    std::vector<Times> turns = {};
    bool usable = true;  // if not, its offers will say why
    std::string wrong = {};
    Times instead = {};              // if it is wrong
    std::vector<Times> beside = {};  // plain copies of the same turns
    bool slowed = false;             // the machine was faster in other turns than in all of these
    bool settled() const { return !usable || (spread_of(turns) <= kSettled && wrong.empty() && !slowed); }
  };
  struct Plain {
    std::unique_ptr<PlainCopies> copies = nullptr;  // on the two ranks
    bool usable = true;
    std::vector<Times> turns = {};
  };

  Runtime& runtime() const { return runtime_of(context_); }
  bool on_gpu() const { return memory_ == Memory::device; }
  std::int64_t bytes() const {
    return on_gpu() ? std::max(kBulkOnGpu, kRunsOnGpu * kStrideOnGpu) : std::max(kBulk, kRuns * kStride);
  }
  std::shared_ptr<std::byte> room() const {
    return on_gpu() ? runtime().gpus->allocate(bytes()) : shared_alloc(context_, bytes());
  }
  bool plain_with(int partner) const { return !on_gpu() && runtime().machine().same_island(0, partner); }
  template <class Measure>
  std::optional<Times> told_by_root(const std::string& what, int partner, const Measure& measure) const;
  Times measure_between(const Path& path, int partner) const;
  void turn(bool all);
  void judge();
  void look_around();
  void measure_curves_of_hosts();

  const Context& context_;
  Memory memory_;
  std::vector<Measured> paths_;
  std::map<int, Plain> plain_;                 // by partner
  std::map<const Path*, CurvePasses> curves_;  // on hosts, of the usable ones
  std::shared_ptr<std::byte> from_, to_;
  UsageWatch usage_;
  Disturbance disturbance_;
  double load_ = load_of_last_minute();
  double seconds_ = 0;
};

Measuring::Measuring(const Context& context, Memory memory) : context_(context), memory_(memory) {
  for (const Path& path : all_paths()) {
    if (!lacks_price(context, path, memory)) continue;
    const int partner = partner_for(context, path);
    paths_.push_back({&path, partner});
    if (plain_with(partner)) plain_.try_emplace(partner);
  }
}

// The times that rank 0 has found together with its partner. Nothing if that path cannot be used. What fails otherwise
// is thrown by all ranks.
template <class Measure>
std::optional<Times> Measuring::told_by_root(const std::string& what, int partner, const Measure& measure) const {
  struct {
    bool usable = false;
    Times times;
  } found;
  Agreement outcome(runtime(), fmt::format("measuring {}", what));
  if (context_.rank() == 0 || context_.rank() == partner) {
    try {
      if (const std::optional<Times> times = measure()) found = {true, *times};
    } catch (const PathUnusable&) {  // on both ranks
      found.usable = false;
    } catch (const Interruption&) {
      throw;
    } catch (const std::exception& error) {
      if (runtime().failed()) throw;  // the other ranks know
      outcome.complain(error.what());
    }
  }
  outcome.settle();
  found = decoded<decltype(found)>(text_of_root(runtime(), encoded(found), kDoing));
  if (!found.usable) return {};
  return found.times;
}

// Between rank 0 and `partner`, which call it both.
Times Measuring::measure_between(const Path& path, int partner) const {
  const PathTimer timer(context_, path, 0, partner, from_.get(), to_.get());
  Times t;
  t.one_way = seconds_for([&](const Layout& layout) { return timer.there_and_back(layout); }, on_gpu());
  t.after = timer.one_after_another(Layout::bytes(8));
  if (partner != 0) t.both_ways = seconds_for([&](const Layout& layout) { return timer.both(layout); }, on_gpu());
  return t;
}

void Measuring::turn(bool all) {
  for (auto& entry : plain_) {
    const int partner = entry.first;
    Plain& plain = entry.second;
    if (!plain.usable) continue;
    const int other = context_.rank() == 0 ? partner : 0;
    const auto times = told_by_root("plain copies", partner, [&]() -> std::optional<Times> {
      if (!plain.copies)
        plain.copies = PlainCopies::between(runtime(), other, context_.rank() == 0, from_.get(), to_.get(), bytes());
      if (!plain.copies) return {};
      return plain.copies->measure();
    });
    plain.usable = times.has_value();
    if (times) plain.turns.push_back(*times);
  }
  for (Measured& one : paths_) {
    if (!one.usable || (!all && one.settled())) continue;
    const auto times = told_by_root(fmt::format("path {}", one.path->name), one.partner,
                                    [&] { return std::optional(measure_between(*one.path, one.partner)); });
    one.usable = times.has_value();
    if (!times) continue;
    one.turns.push_back(*times);
    const auto plain = plain_.find(one.partner);
    if (plain != plain_.end() && plain->second.usable) one.beside.push_back(plain->second.turns.back());
  }
}

// Which times cannot be true, after what was measured so far.
void Measuring::judge() {
  const auto mpi = std::ranges::find_if(paths_, [](const Measured& one) { return one.path->name == "mpi"; });
  for (Measured& one : paths_) {
    one.wrong.clear();
    one.slowed = false;
    const auto plain = plain_.find(one.partner);
    if (!one.usable || plain == plain_.end() || plain->second.turns.empty()) continue;
    // Cores of a virtual machine change places: for seconds their caches may be four times farther from each other.
    const Seconds best = least_of(plain->second.turns).one_way;
    const Seconds beside = least_of(one.beside).one_way;
    one.slowed = beside.word > kSlower * best.word || beside.large > kSlower * best.large;
    std::optional<Times> messages;
    if (mpi != paths_.end() && mpi->usable && mpi->partner == one.partner) messages = least_of(mpi->turns);
    // Plain copies that are not known themselves prove nothing.
    const Times copies = least_of(plain->second.turns);
    const bool known = spread_of(plain->second.turns) <= kDoubtful;
    const Times* const by_mpi = messages ? &*messages : nullptr;
    one.wrong = implausible(*one.path, least_of(one.turns), known ? copies : Times{}, by_mpi);
    if (!one.wrong.empty()) one.instead = derived(*one.path, least_of(one.turns), copies, by_mpi);
  }
}

void Measuring::run() {
  // A rank that gets none must not leave another waiting for it.
  all_do(runtime(), kDoing, [&] {
    const auto meets_us = [&](const Measured& one) { return one.partner == context_.rank(); };
    if (context_.rank() != 0 && std::ranges::none_of(paths_, meets_us)) return;
    from_ = room();
    to_ = room();
    if (on_gpu()) return;
    std::fill_n(from_.get(), kBulk, std::byte{1});
    std::fill_n(to_.get(), kBulk, std::byte{2});
  });
  for (std::size_t turns = 1; turns <= kMostTurns; ++turns) {
    turn(turns <= kLeastTurns);
    judge();
    look_around();
    const bool late = seconds_ > (provenance().busy() ? kMostBusy : kMostSeconds);
    if (turns < kLeastTurns && !late) continue;
    if (std::ranges::all_of(paths_, [](const Measured& one) { return one.settled(); })) break;
    if (late && turns > 1) break;
  }
  if (!on_gpu()) measure_curves_of_hosts();
}

// What others do beside the measuring, up to now.
void Measuring::look_around() {
  disturbance_ = disturbance(runtime(), usage_.so_far());
  seconds_ = disturbance_.seconds;
}

// What the paths do with pieces of every size, pass by pass: other processes may have a core for the whole of one.
void Measuring::measure_curves_of_hosts() {
  // The other rank of a path's curves: its partner, or for copies within a rank one that copies beside. -1: none.
  const auto other_of = [&](const Measured& one) {
    const Machine& machine = runtime().machine();
    for (int rank = 1; one.partner == 0 && rank < context_.size(); ++rank)
      if (machine.same_host(0, rank)) return rank;
    return one.partner > 0 ? one.partner : -1;
  };
  const auto takes_part = [&](const Measured& one) {
    return one.usable && (context_.rank() == 0 || context_.rank() == other_of(one));
  };
  // Where others use the cores, the largest sizes never have them for long enough.
  const std::string root = text_of_root(runtime(), crowded(runtime()) ? "crowded" : "", kDoing);
  const bool largest = root.empty() && !provenance().busy();
  const CurveRoom room = CurveRoom::on(context_, std::ranges::any_of(paths_, takes_part), largest);
  const double begin = seconds_;
  for (int pass = 0; pass < kMostPasses; ++pass) {
    for (const Measured& one : paths_) {
      if (!one.usable || (pass >= kLeastPasses && curves_[one.path].settled())) continue;
      Agreement outcome(runtime(), fmt::format("measuring path {}", one.path->name));
      Curves found;
      if (takes_part(one)) {
        try {
          found = measure_curves(context_, *one.path, other_of(one), room, room.largest && pass == 0);
        } catch (const Interruption&) {
          throw;
        } catch (const std::exception& error) {
          if (runtime().failed()) throw;  // the other ranks know
          outcome.complain(error.what());
        }
      }
      outcome.settle();
      found = decoded<Curves>(text_of_root(runtime(), encoded(found), kDoing));
      curves_[one.path].add(found);
    }
    look_around();
    const bool late = seconds_ - begin > (provenance().busy() ? kMostBusyCurves : kMostCurves);
    const auto settled = [&](const Measured& one) { return !one.usable || curves_[one.path].settled(); };
    if (late || (pass + 1 >= kLeastPasses && std::ranges::all_of(paths_, settled))) break;
  }
}

void Measuring::tell(Profile& found) const {
  for (const Measured& one : paths_) {
    if (!one.usable) continue;
    const Times times = one.wrong.empty() ? least_of(one.turns) : one.instead;
    CostSection section = constants_of(times, on_gpu(), one.partner == 0);
    // What was derived from plain copies is not mixed with what was measured and cannot be.
    if (const auto curves = curves_.find(one.path); curves != curves_.end() && one.wrong.empty())
      curves->second.least().tell(section);
    found.set(one.path->name, section);
  }
}

// But for what only rank 0 knows.
Provenance Measuring::provenance() const {
  Provenance p;
  p.host = runtime().topology().processes[0].name;
  p.version = TASUKI_VERSION_TEXT;
  p.ranks = disturbance_.ranks;
  p.cores = runtime().topology().processes[0].cores;
  p.seconds = seconds_;
  p.load = load_;
  p.others = disturbance_.others;
  p.switches = disturbance_.switches;
  for (const Measured& one : paths_) {
    if (!one.usable) continue;
    p.spread[one.path->name] = spread_of(one.turns);
    if (!one.wrong.empty()) p.derived[one.path->name] = one.wrong;
  }
  return p;
}

std::string Measuring::notice() const {
  std::string wrong;
  for (const Measured& one : paths_)
    if (one.usable && !one.wrong.empty())
      wrong += fmt::format("{}{}: {}", wrong.empty() ? "" : "; ", one.path->name, one.wrong);
  if (wrong.empty()) return {};
  return fmt::format(
      "tasuki: what was measured cannot be ({}), so these paths have prices derived from plain copies; "
      "`tasuki tune` measures again\n",
      wrong);
}

// Cores that other processes use at this moment; below 0: not known. Collective.
double others_now(Runtime& runtime) {
  constexpr auto kLook = std::chrono::milliseconds(60);
  const UsageWatch watch;
  std::this_thread::sleep_for(kLook);
  return disturbance(runtime, watch.so_far()).others;
}

// Prices of Tasuki's own profile that are uncertain are measured again where the machine does less besides than it did
// then. A process looks once whether it does, so as not to make each of its contexts wait. Collective.
void doubt_prices(Runtime& runtime) {
  static std::atomic<bool> looked = false;  // of ranks that are threads, too
  const auto may_improve = [&](double others) {
    return std::ranges::any_of(runtime.provenance, [&](const Provenance& one) { return one.may_improve(others); });
  };
  if (!may_improve(0)) return;
  // Rank 0 decides: other ranks' hosts may have other cores, and their processes may have looked in other contexts.
  const char* const mine = looked || crowded(runtime) ? "stay" : "look";
  if (text_of_root(runtime, mine, "reading the machine profile") != "look") return;
  looked = true;
  const double others = others_now(runtime);
  for (const Provenance& one : runtime.provenance)
    if (one.may_improve(others))
      for (const auto& [path, spread] : one.spread) runtime.doubtful.insert(path);
}

std::map<std::string, PathCost> costs_of(const Profile& profile) {
  std::map<std::string, PathCost> costs;
  for (const auto& [path, section] : profile.sections()) costs[path] = cost_of(section);
  return costs;
}

// Takes the prices of paths that have none. Local.
void add_prices(Runtime& runtime, const Profile& profile) {
  std::map<std::string, PathCost> costs = costs_of(profile);
  std::erase_if(costs, [&](const auto& one) { return runtime.machine().cost(one.first).measured; });
  if (costs.empty()) return;
  for (Provenance one : profile.provenance()) {
    const auto other = [&](const auto& entry) { return !costs.contains(entry.first); };
    std::erase_if(one.spread, other);
    std::erase_if(one.derived, other);
    if (!one.spread.empty()) add_provenance(runtime.provenance, std::move(one));
  }
  runtime.replace_machine(with_costs(runtime.machine(), costs, described(runtime.provenance)));
}

// Reads the profile that an earlier run has left, if there is one. A part has its parent's prices, and those that an
// earlier part of the same ranks has measured. Collective.
void read_profile(Runtime& runtime) {
  if (runtime.is_part()) {
    add_prices(runtime, remembered_prices(runtime));
    return;
  }
  const Profile kept = load_profile(runtime);
  runtime.provenance = kept.provenance();
  Machine known = with_costs(runtime.machine(), costs_of(kept), described(runtime.provenance));
  runtime.replace_machine(with_corrections(std::move(known), kept.corrections()));
  if (runtime.settings().profile.empty()) doubt_prices(runtime);
}

void calibrate(const Context& context) {
  Runtime& runtime = runtime_of(context);
  const TracePause pause;
  Profile found;
  std::vector<Provenance> newer;
  std::vector<Memory> replaced;
  for (const Memory memory : {Memory::host, Memory::device}) {
    const auto lacks = [&](const Path& path) { return lacks_price(context, path, memory); };
    if (std::ranges::none_of(all_paths(), lacks)) continue;
    Measuring measuring(context, memory);
    measuring.run();
    measuring.tell(found);
    Provenance provenance = measuring.provenance();
    provenance.date = date_now();
    // All ranks come to the same.
    for (const std::string& path : keep_surer(runtime.provenance, provenance)) found.remove(path);
    if (context.rank() == 0 && !provenance.derived.empty()) fmt::print(stderr, "{}", measuring.notice());
    if (provenance.spread.empty()) continue;
    newer.push_back(std::move(provenance));
    replaced.push_back(memory);
  }
  const bool again = !runtime.doubtful.empty();
  runtime.doubtful.clear();
  if (newer.empty() && !again) return;
  // They hold for the prices that were there.
  std::vector<Correction> corrections = runtime.machine().corrections;
  std::erase_if(corrections,
                [&](const Correction& one) { return std::ranges::find(replaced, one.memory) != replaced.end(); });
  // Date and load are rank 0's.
  const auto text = text_of_root(runtime, json_of(newer).dump(), kDoing);
  const auto fail = [](const std::string& place, const std::string& what) {
    throw Error(fmt::format("{}: rank 0 tells that {} {} (a defect in Tasuki)", kDoing, place, what));
  };
  for (Provenance& one : provenance_of(nlohmann::json::parse(text), "provenance", fail))
    add_provenance(runtime.provenance, std::move(one));
  // All new prices take effect together. Until then every measuring transfer is planned with the same ones.
  Machine known = with_costs(runtime.machine(), costs_of(found), described(runtime.provenance));
  runtime.replace_machine(with_corrections(std::move(known), std::move(corrections)));
  if (runtime.is_part())
    remember_prices(runtime);
  else
    keep_profile(runtime);
}

const RuntimePart profile{read_profile};
const CalibrationHook hook{calibrate};

}  // namespace
}  // namespace tasuki
