// The table behind Operation::explain: what was chosen for every piece, what it should cost, and why not otherwise.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "planner/planner.hpp"

namespace tasuki {

namespace {

// The pattern of the more scattered side, which is what a path has to cope with.
Pattern pattern_of(const Move& move) {
  Pattern worst = move.copies.size() > 1 ? Pattern::list : Pattern::empty;
  for (const auto& copy : move.copies) worst = std::max({worst, copy.src_pattern(), copy.dst_pattern()});
  return worst;
}

// Of the other paths for that kind of memory.
std::string others(const Planning& planning, const Choice& choice) {
  std::string text;
  for (const auto& [name, offer] : choice.offers) {
    if (choice.path->name() == name || choice.path->memory() != planning.paths.find(name).memory() ||
        (!offer.usable && (offer.why_not == "same rank" || offer.why_not == "another rank"))) {
      continue;
    }
    if (!text.empty()) text += "; ";
    text += offer.usable ? fmt::format("{} {:.2f}", name, (offer.latency + offer.seconds) * 1e6)
                         : fmt::format("{}: {}", name, offer.why_not);
  }
  return text;
}

}  // namespace

std::string explain(const Planning& planning, const Plan& plan) {
  const int me = planning.runtime.rank();
  std::string text =
      fmt::format("{} on rank {} of {}: {} pieces, {} commands, {} bytes of plan\n", planning.operation, me,
                  planning.runtime.size(), planning.moves.size(), plan.commands.size(), plan.memory());
  text += fmt::format("{:<26} {:>5} {:>5} {:>12} {:<12} {:<14} {:>9}  {}\n", "piece", "from", "to", "bytes", "pattern",
                      "path", "us", "others, us or why not");
  std::map<std::string, double> busy;
  std::set<std::pair<int, const Path*>> links;  // a link's latency is paid once
  for (std::size_t i = 0; i < planning.moves.size(); ++i) {
    const Move& move = planning.moves[i];
    const Choice& choice = planning.choices[i];
    const double seconds = choice.latency + choice.seconds;
    text += fmt::format("{:<26} {:>5} {:>5} {:>12} {:<12} {:<14} {:>9.2f}  {}\n", move.label, move.src_rank,
                        move.dst_rank, move.bytes(), to_string(pattern_of(move)), choice.path->name(), seconds * 1e6,
                        move.src_rank == me ? others(planning, choice) : "decided by the sender");
    if (move.src_rank != me) continue;
    busy[choice.path->resource()] += choice.seconds;
    if (links.emplace(move.dst_rank, choice.path).second) busy[choice.path->resource()] += choice.latency;
  }
  for (const auto& [resource, seconds] : busy) {
    text +=
        fmt::format("sending keeps {} busy for {:.2f} us (a link's latency counted once)\n", resource, seconds * 1e6);
  }
  return text;
}

}  // namespace tasuki
