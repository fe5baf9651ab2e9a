// Compare: see compare.hpp.
#include "predict/compare.hpp"

#include <fmt/format.h>

#include "plan/label.hpp"
#include "predict/prices.hpp"

namespace tasuki {

std::string compared(const Plan& plan, const Machine& machine, const Measured& measured) {
  const detail::Prices prices = detail::priced_alone(plan, machine);
  std::string text = fmt::format(
      "measured: an epoch took {:.2f} us from its start to the end of its last command "
      "(median of the last {})\n",
      measured.epoch * 1e6, measured.epochs);
  text += fmt::format("{:>4} {:<8} {:>5} {:<14} {:>12} {:>7} {:>12} {:>11} {:>7}\n", "#", "command", "peer", "path",
                      "bytes", "rounds", "predicted us", "measured us", "ratio");
  for (std::size_t i = 0; i < plan.commands.size(); ++i) {
    const Command& c = plan.commands[i];
    const detail::Work& work = prices.work[i];
    const auto rounds = detail::chunks(plan, c);
    const bool keeps = c.verb == Verb::send || work.latency_keeps;
    const double seconds = static_cast<double>(rounds) * (work.seconds + (keeps ? work.latency : 0));
    const bool predicted = seconds > 0;
    text +=
        fmt::format("{:>4} {:<8} {:>5} {:<14} {:>12} {:>7} {:>12} {:>11.2f} {:>7}\n", i, to_string(c.verb),
                    c.peer >= 0 ? fmt::format("{}", c.peer) : "", plan.paths[static_cast<std::size_t>(c.path)],
                    c.bytes * rounds, rounds, predicted ? fmt::format("{:.2f}", seconds * 1e6) : "",
                    measured.commands[i] * 1e6, predicted ? fmt::format("{:.2f}", measured.commands[i] / seconds) : "");
  }
  return text;
}

}  // namespace tasuki
