// Advise: which engine pays beside a computation. See tasuki/predict.hpp; what is assumed is in docs/planning.md.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "paths/path.hpp"
#include "plan/label.hpp"
#include "predict/predict.hpp"
#include "predict/prices.hpp"
#include "tasuki/error.hpp"
#include "tasuki/predict.hpp"

namespace tasuki {

namespace {

// An engine that is less simple is advised only if it is faster by at least this share.
constexpr double kTie = 0.03;

bool on_gpu(std::span<const Plan> plans) {
  return std::any_of(plans.begin(), plans.end(), [](const Plan& plan) {
    return std::any_of(plan.paths.begin(), plan.paths.end(),
                       [](const std::string& name) { return path_named(name).memory == Memory::device; });
  });
}

// Whether every host has a core more for each of its ranks.
bool cores_to_spare(std::size_t ranks, const Machine& machine) {
  std::map<int, int> ranks_of;
  for (std::size_t r = 0; r < ranks; ++r) ++ranks_of[machine.ranks[r].host];
  return std::all_of(ranks_of.begin(), ranks_of.end(),
                     [&](const auto& host) { return machine.cores >= 2 * host.second; });
}

// What of an epoch is done by kernels, which hold SMs, and what travels beside them by copy engines and messages.
struct Shares {
  double seconds = 0;     // of the epoch
  double background = 0;  // at most, of one rank
  double kernels = 0;     // the rest
  double sms = 0;         // share of a GPU that the kernels hold
};

Shares shares_of(std::span<const Plan> plans, const Machine& machine) {
  Shares shares;
  shares.seconds = predicted_seconds(plans, machine);
  const detail::Prices prices = detail::priced(plans, machine);
  double rate = 0;
  for (std::size_t r = 0; r < plans.size(); ++r) {
    double background = 0;
    double seconds = 0;
    double bytes = 0;
    for (std::size_t i = 0; i < plans[r].commands.size(); ++i) {
      const Command& c = plans[r].commands[i];
      const detail::Work& work = prices.work[static_cast<std::size_t>(prices.first[r]) + i];
      const auto rounds = static_cast<double>(detail::chunks(plans[r], c));
      const bool carried = path_named(plans[r].paths[static_cast<std::size_t>(c.path)]).carries(c.verb);
      (carried ? background : seconds) += rounds * work.seconds;
      if (!carried) bytes += rounds * static_cast<double>(work.bytes);
    }
    shares.background = std::max(shares.background, background);
    if (seconds > 0) rate = std::max(rate, bytes / seconds);
  }
  shares.background = std::min(shares.background, shares.seconds);
  shares.kernels = shares.seconds - shares.background;
  const auto all = static_cast<double>(machine.constants.gpu_sms);
  shares.sms = std::clamp(std::ceil(rate / machine.constants.gpu_sm_bandwidth), 1.0, all) / all;
  return shares;
}

std::string us(double seconds) {
  return fmt::format("{:.2f}", seconds * 1e6);
}

std::vector<Advice::Way> host_ways(std::span<const Plan> plans, const Machine& machine, double computation) {
  const double alone = predicted_seconds(plans, machine);
  const double hand_over = machine.constants.thread_hand_over;
  std::vector<Advice::Way> ways;
  ways.push_back({"inline", predicted_beside(plans, machine, computation), 0,
                  "start does what can be done at once, wait the rest; only what peers store, and messages under way, "
                  "come during the computation"});
  if (cores_to_spare(plans.size(), machine)) {
    ways.push_back(
        {"thread", hand_over + std::max(computation, hand_over + alone), 0,
         fmt::format(
             "the operation's {} us pass on another core; calling its thread takes {} us, and as long until it runs",
             us(alone), us(hand_over))});
  } else {
    ways.push_back(
        {"thread", std::max(ways.front().seconds, computation + alone) + 2 * hand_over, 0,
         fmt::format("no core to spare for it ({}): the thread takes the computation's, {} us to change there and back",
                     machine.cores > 0 ? fmt::format("a host has {}", machine.cores) : "the machine names none",
                     us(2 * hand_over))});
  }
  return ways;
}

std::vector<Advice::Way> gpu_ways(std::span<const Plan> plans, const Machine& machine, double computation,
                                  std::span<const Plan> by_copies) {
  const double launch = machine.constants.gpu_launch;
  const auto in_turn = [&](const Shares& s) { return std::max(computation, s.background) + s.kernels + launch; };
  const Shares own = shares_of(plans, machine);
  const double slowed = computation + own.sms * own.kernels;
  const auto sms = std::lround(own.sms * static_cast<double>(machine.constants.gpu_sms));
  std::vector<Advice::Way> ways;
  ways.push_back(
      {"stream", in_turn(own), 0,
       fmt::format("start, computation and wait in one stream: kernels in turn, {} us of copies and messages "
                   "beside",
                   us(own.background))});
  ways.push_back({"stream, beside", std::max(own.seconds, slowed) + launch, 0,
                  fmt::format("run in a stream, or branch of a graph, of its own: its kernel holds {} of {} SMs for {} "
                              "us",
                              sms, machine.constants.gpu_sms, us(own.kernels))});
  if (!by_copies.empty() && !std::ranges::equal(by_copies, plans)) {
    const Shares copied = shares_of(by_copies, machine);
    ways.push_back({"stream, copy engines", in_turn(copied), 0,
                    fmt::format("path peer:copy, start and wait around the computation: {} us of copies, which hold no "
                                "SM",
                                us(copied.background))});
  }
  const bool messages = std::any_of(plans.begin(), plans.end(), [](const Plan& plan) {
    return std::any_of(plan.paths.begin(), plan.paths.end(),
                       [](const std::string& name) { return !path_named(name).transport.empty(); });
  });
  if (!messages)
    ways.push_back(
        {"kernel", std::max(own.seconds - launch, computation + own.sms * std::max(own.kernels - launch, 0.0)), 0,
         "the computing kernel starts it by itself, and its other blocks proceed: as beside, less a launch"});
  return ways;
}

}  // namespace

Advice advise(std::span<const Plan> plans, const Machine& machine, double computation,
              std::span<const Plan> by_copies) {
  if (!(computation >= 0) || !std::isfinite(computation))
    throw Error(fmt::format("advise: argument 'computation' is {}; give seconds, 0 or more", computation));
  check_plans(plans, machine);
  if (!by_copies.empty()) check_plans(by_copies, machine);
  Advice advice;
  advice.computation = computation;
  advice.ways =
      on_gpu(plans) ? gpu_ways(plans, machine, computation, by_copies) : host_ways(plans, machine, computation);
  for (std::size_t w = 0; w < advice.ways.size(); ++w) {
    Advice::Way& way = advice.ways[w];
    way.seconds = std::max(way.seconds, computation);
    way.exposed = way.seconds - computation;
    if (way.seconds < advice.ways[advice.best].seconds * (1 - kTie)) advice.best = w;
  }
  return advice;
}

std::string Advice::text() const {
  std::string text = fmt::format("beside a computation of {} us\n{:<22} {:>15} {:>11}  {}\n", us(computation), "engine",
                                 "us an iteration", "us exposed", "how");
  for (const Way& way : ways)
    text += fmt::format("{:<22} {:>15} {:>11}  {}\n", way.engine, us(way.seconds), us(way.exposed), way.how);
  return text + fmt::format("pays: {}\n", ways[best].engine);
}

}  // namespace tasuki
