// Predict: the prices, the walks, and the result made from them. See tasuki/predict.hpp.
#include "tasuki/predict.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "plan/label.hpp"
#include "predict/predict.hpp"
#include "predict/walk.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

using detail::Prices;
using detail::Walk;
using detail::Walked;

constexpr std::int64_t kRounds = 64;
constexpr std::int64_t kFewRounds = 12;
constexpr std::size_t kStepsShown = 12;

// Extrapolates every time to a walk with more rounds, from two walks with fewer: after the first rounds each further
// round adds as much as the one before.
void extrapolate(Walked& more, const Walked& less, double factor) {
  const auto onwards = [&](double& value, double before) { value += (value - before) * factor; };
  for (std::size_t r = 0; r < more.ranks.size(); ++r) onwards(more.ranks[r], less.ranks[r]);
  for (std::size_t i = 0; i < more.end.size(); ++i) {
    onwards(more.begin[i], less.begin[i]);
    onwards(more.end[i], less.end[i]);
  }
  onwards(more.back_to_back, less.back_to_back);
  for (std::size_t b = 0; b < more.busy.size() && b < less.busy.size(); ++b)
    if (more.busy[b].first == less.busy[b].first) onwards(more.busy[b].second, less.busy[b].second);
}

// Chunk loops with more than `rounds` rounds are walked in part.
Walked walk(std::span<const Plan> plans, const Machine& machine, const Prices& prices, std::int64_t rounds,
            std::int32_t epochs, bool& in_part, double beside = 0) {
  std::int64_t longest = 1;
  for (const Plan& plan : plans)
    for (const Loop& loop : plan.loops) longest = std::max(longest, loop.count);
  in_part = longest > rounds;
  if (in_part) {
    Walked more = Walk(plans, machine, prices, rounds, epochs, beside).run();
    const Walked less = Walk(plans, machine, prices, rounds / 2, epochs, beside).run();
    // If the loops of plans that exchange messages or signals differ in their numbers of rounds, they cannot be walked
    // in part.
    if (more.stuck.empty() && less.stuck.empty()) {
      extrapolate(more, less, static_cast<double>(longest - rounds) / static_cast<double>(rounds - (rounds >> 1)));
      return more;
    }
    in_part = false;
  }
  return Walk(plans, machine, prices, longest, epochs, beside).run();
}

// What choosing among plans needs.
Walked walk_quickly(std::span<const Plan> plans, const Machine& machine, double computation) {
  // A chain of all ranks is full after as many rounds as there are ranks, and what it then takes a round must show in
  // the second half of those that are walked.
  const std::int64_t rounds = std::max(kFewRounds, 2 * std::ssize(plans));
  bool in_part = false;
  Walked walked = walk(plans, machine, detail::priced(plans, machine), rounds, 1, in_part, computation);
  if (!walked.stuck.empty()) throw Error(fmt::format("predict: {} waits for ever; verify the plans", walked.stuck));
  return walked;
}

double slowest(const Walked& walked) {
  return *std::max_element(walked.ranks.begin(), walked.ranks.end());
}

std::vector<Prediction::Step> critical(std::span<const Plan> plans, const Prices& prices, const Walked& walked) {
  std::vector<Prediction::Step> steps;
  std::vector<bool> seen(prices.work.size());
  std::int32_t at = walked.last;
  while (at >= 0) {
    const auto i = static_cast<std::size_t>(at);
    seen[i] = true;
    const auto r = std::upper_bound(prices.first.begin(), prices.first.end(), at) - prices.first.begin() - 1;
    const std::int32_t command = at - prices.first[static_cast<std::size_t>(r)];
    steps.push_back({static_cast<std::int32_t>(r),
                     command,
                     detail::label(plans[static_cast<std::size_t>(r)], command),
                     {walked.begin[i], walked.end[i]}});
    at = walked.after[i];
    // A command of a loop may have waited only for the loop itself. Then what its first round waited for is reported.
    for (std::size_t steps_back = 0; at >= 0 && seen[static_cast<std::size_t>(at)]; ++steps_back)
      at = steps_back < seen.size() ? walked.first_after[static_cast<std::size_t>(at)] : -1;
  }
  return steps;
}

std::string microseconds(double seconds) {
  return fmt::format("{:.2f}", seconds * 1e6);
}

}  // namespace

void check_plans(std::span<const Plan> plans, const Machine& machine) {
  if (plans.empty()) throw Error("predict: there are no plans");
  if (std::ssize(plans) > machine.size())
    throw Error(fmt::format("predict: there are plans of {} ranks, but machine {} has {}", plans.size(), machine.name,
                            machine.size()));
  for (std::size_t r = 0; r < plans.size(); ++r) {
    if (plans[r].rank != static_cast<int>(r))
      throw Error(fmt::format("predict: plan {} is that of rank {}; give the plans of all ranks in their order", r,
                              plans[r].rank));
    if (const auto complaints = plans[r].complaints(); !complaints.empty())
      throw Error(fmt::format("predict: the plan of rank {} is not sound: {}", r, complaints.front()));
    for (const Command& c : plans[r].commands)
      if (c.peer >= std::ssize(plans))
        throw Error(fmt::format("predict: the plan of rank {} deals with rank {}, but there are plans of {} ranks", r,
                                c.peer, plans.size()));
    for (const Buffer& b : plans[r].buffers)
      if (b.rank >= std::ssize(plans))
        throw Error(
            fmt::format("predict: the plan of rank {} names a buffer of rank {}, but there are plans of {} "
                        "ranks",
                        r, b.rank, plans.size()));
  }
}

double predicted_seconds(std::span<const Plan> plans, const Machine& machine) {
  return predicted_beside(plans, machine, 0);
}

PredictedWork predicted_work(std::span<const Plan> plans, const Machine& machine) {
  const Walked walked = walk_quickly(plans, machine, 0);
  PredictedWork work{slowest(walked)};
  for (const auto& [name, seconds] : walked.busy)
    if (name.starts_with(detail::kCoreOf)) work.cores += seconds;
  return work;
}

double predicted_beside(std::span<const Plan> plans, const Machine& machine, double computation) {
  return slowest(walk_quickly(plans, machine, computation));
}

Prediction predict(std::span<const Plan> plans, const Machine& machine) {
  check_plans(plans, machine);
  return predict_made(plans, machine);
}

Prediction predict_made(std::span<const Plan> plans, const Machine& machine) {
  const Prices prices = detail::priced(plans, machine);
  Prediction prediction;
  Walked walked = walk(plans, machine, prices, kRounds, 0, prediction.extrapolated);
  if (!walked.stuck.empty()) throw Error(fmt::format("predict: {} waits for ever; verify the plans", walked.stuck));
  prediction.seconds = *std::max_element(walked.ranks.begin(), walked.ranks.end());
  prediction.ranks = std::move(walked.ranks);
  prediction.back_to_back = walked.back_to_back;
  prediction.guessed = prices.guessed;
  prediction.between_islands = prices.between_islands;
  for (auto& [name, seconds] : walked.busy) prediction.busy.push_back({std::move(name), seconds});
  std::stable_sort(prediction.busy.begin(), prediction.busy.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  for (std::size_t r = 0; r < plans.size(); ++r) {
    std::vector<Prediction::Span> spans;
    for (auto i = static_cast<std::size_t>(prices.first[r]); i < static_cast<std::size_t>(prices.first[r + 1]); ++i)
      spans.push_back({walked.begin[i], walked.end[i]});
    prediction.commands.push_back(std::move(spans));
  }
  prediction.critical = critical(plans, prices, walked);
  return prediction;
}

std::string Prediction::text() const {
  std::string text =
      fmt::format("predicted: an epoch takes {} us when all ranks start it together, {} us back to back\n",
                  microseconds(seconds), microseconds(back_to_back));
  if (between_islands > 0) text += fmt::format("{} bytes cross from island to island\n", between_islands);
  for (std::size_t b = 0; b < std::min<std::size_t>(busy.size(), 3); ++b)
    text += fmt::format("busy: {} for {} us\n", busy[b].resource, microseconds(busy[b].seconds));
  // Commands that ended when they were reached are left out.
  std::vector<const Step*> steps;
  for (const Step& step : critical)
    if (step.span.end > step.span.begin) steps.push_back(&step);
  if (!steps.empty()) text += "what takes so long, from the end back:\n";
  for (std::size_t s = 0; s < std::min(steps.size(), kStepsShown); ++s)
    text += fmt::format("  {:>9} to {:>9} us  {}\n", microseconds(steps[s]->span.begin),
                        microseconds(steps[s]->span.end), steps[s]->what);
  if (steps.size() > kStepsShown) text += fmt::format("  ... and {} commands before\n", steps.size() - kStepsShown);
  if (extrapolated) text += fmt::format("chunk loops were walked for {} rounds and extrapolated\n", kRounds);
  if (!guessed.empty()) text += fmt::format("not measured on this machine: {}\n", fmt::join(guessed, ", "));
  return text;
}

}  // namespace tasuki
