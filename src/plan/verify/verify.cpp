// The verifier: runs its stages and words the findings.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "plan/label.hpp"
#include "plan/verify/run.hpp"
#include "plan/verify/verify.hpp"
#include "tasuki/error.hpp"
#include "tasuki/plan.hpp"

namespace tasuki {
namespace {

constexpr std::size_t kMostProblems = 20;
/// Limit of commands run and units moved in all epochs: some seconds.
constexpr std::int64_t kMostWork = std::int64_t{1} << 29;
constexpr std::int64_t kMostEpochs = (std::int64_t{1} << 20) - 1;  ///< the largest epoch that a token can hold

/// Epochs for which every instance of every ring is used again, after as many epochs as the longest lag reaches back.
std::int64_t epochs_needed(std::span<const Plan> plans) {
  std::int64_t epochs = 2;
  for (const Plan& plan : plans) {
    for (const Buffer& buffer : plan.buffers) epochs = std::max(epochs, std::int64_t{buffer.ring} + 1);
    for (const Command& command : plan.commands) epochs = std::max(epochs, std::int64_t{command.lag} + 2);
  }
  return epochs;
}

/// The first problems, each only once.
std::vector<std::string> shortened(const std::vector<std::string>& all) {
  std::vector<std::string> problems;
  std::unordered_set<std::string_view> seen;
  std::size_t more = 0;
  for (const std::string& problem : all) {
    if (!seen.insert(problem).second) continue;
    if (problems.size() < kMostProblems) {
      problems.push_back(problem);
    } else {
      ++more;
    }
  }
  if (more > 0) problems.push_back(fmt::format("and {} more problems", more));
  return problems;
}

void run_stages(std::span<const Plan> plans, std::int64_t epochs, VerifyReport& report, std::vector<std::string>& all) {
  const detail::World world = detail::expand(plans);
  const std::int64_t work = world.instances + world.moved / world.unit + 1;
  if (epochs > kMostEpochs || epochs > kMostWork / work) {
    throw Error(
        fmt::format("'{}' would run {} epochs of {} commands and {} bytes, more than the verifier follows; "
                    "verify a smaller case, with shorter rings and lags",
                    plans[0].operation, epochs, world.instances, world.moved));
  }
  detail::Findings findings;
  detail::Memory memory(world, findings);
  detail::Runner runner(world, memory, static_cast<std::int32_t>(epochs));
  runner.run();
  for (std::string& problem : runner.problems()) all.push_back(std::move(problem));
  for (std::string& problem : findings.sentences()) all.push_back(std::move(problem));
  report.commands = runner.executed();
  report.bytes = world.moved;
  report.orders = memory.orders();
}

}  // namespace

VerifyReport verify(std::span<const Plan> plans, int epochs) {
  if (epochs < 0) throw Error(fmt::format("verify: epochs is {}; 0 or more are meant", epochs));
  VerifyReport report;
  std::vector<std::string> all;
  if (plans.empty()) {
    all.push_back("no plans to verify: pass the plan of every rank");
  } else if (all = detail::disagreements(plans); all.empty()) {
    all = detail::unpaired(plans);
    try {
      run_stages(plans, epochs > 0 ? epochs : epochs_needed(plans), report, all);
    } catch (const Error& error) {
      all.push_back(error.what());
    }
  }
  report.problems = shortened(all);
  return report;
}

std::string VerifyReport::text() const {
  if (ok()) return fmt::format("verified: {} commands run, {} bytes followed in each epoch\n", commands, bytes);
  std::string out = fmt::format("{} problems ({} commands run)\n", problems.size(), commands);
  for (const std::string& problem : problems) out += "  " + problem + "\n";
  return out;
}

namespace detail {

void Findings::extend(Place& known, const Place& more) {
  if (known.epoch != more.epoch) return;  // the same finding in a later epoch
  known.bytes += more.bytes;
  known.offset = std::min(known.offset, more.offset);
}

std::vector<std::string> Findings::sentences() const {
  std::vector<std::string> out;
  for (const auto& [place, words] : found_) {
    out.push_back(fmt::format("{}{} bytes of {} (from offset {}, epoch {}){}", words.first, place.bytes,
                              label(place.area->buffer), place.offset, place.epoch, words.second));
  }
  return out;
}

}  // namespace detail
}  // namespace tasuki
