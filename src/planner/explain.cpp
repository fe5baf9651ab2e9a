// The table behind Operation::explain: for every piece the chosen path, its predicted time, and why others were not
// chosen.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "plan/label.hpp"
#include "planner/planner.hpp"

namespace tasuki {

namespace {

// The pattern of the more scattered side.
Pattern pattern_of(const Move& move) {
  Pattern worst = move.copies.size() > 1 ? Pattern::list : Pattern::empty;
  for (const auto& copy : move.copies) worst = std::max({worst, copy.src_pattern(), copy.dst_pattern()});
  return worst;
}

// The prices of the other paths for that kind of memory, or why they cannot be taken.
std::string others(const Machine& machine, const Problem& problem, const Facts& facts, const Move& move,
                   const Choice& choice, std::int64_t bytes_moved) {
  std::string text;
  const auto offers = offers_for(machine, problem, facts, move, bytes_moved);
  for (std::size_t p = 0; p < offers.size(); ++p) {
    const Path& path = all_paths()[p];
    const Offer& offer = offers[p];
    if (choice.path == &path || choice.path->memory != path.memory ||
        (!offer.usable && (offer.why_not == "same rank" || offer.why_not == "another rank"))) {
      continue;
    }
    if (!text.empty()) text += "; ";
    text += offer.usable ? fmt::format("{} {:.2f}{}", path.name, (offer.latency + offer.seconds) * 1e6,
                                       machine.cost(path.name).measured ? "" : "*")
                         : fmt::format("{}: {}", path.name, offer.why_not);
  }
  return text;
}

// Whether a network whose bandwidth is known moves the path's messages between the two ranks. The sender's core is then
// busy for a share of their latency only, as in predictions (docs/planning.md).
bool network_moves(const Machine& machine, const Path& path, int a, int b) {
  if (path.memory != Memory::host || !path.carries(Verb::send)) return false;
  const bool inside = !by_outside(machine, path, a, b);
  if (a == b || (!inside && machine.same_host(a, b))) return false;
  const Network& network = inside ? machine.inside : machine.outside;
  return network.kind != Network::Kind::none && network.bandwidth > 0;
}

}  // namespace

std::string explain(const Machine& machine, const Problem& problem, const Facts& facts,
                    const std::vector<Choice>& choices, const Plan& plan) {
  const int me = problem.rank;
  std::string text = fmt::format("{} on rank {} of {}: {} pieces, {} commands, {} bytes of plan\n", problem.operation,
                                 me, machine.size(), problem.moves.size(), plan.commands.size(), plan.memory());
  text += fmt::format("{:<26} {:>5} {:>5} {:>12} {:<12} {:<14} {:>9}   {}\n", "piece", "from", "to", "bytes", "pattern",
                      "path", "us", "others, us or why not");
  std::map<Resource, double> busy;
  std::set<std::pair<int, const Path*>> links;               // a link's latency is paid once
  std::map<std::pair<int, std::string>, double> by_network;  // latencies of messages that a network moves
  bool guessed = false;
  const std::int64_t bytes_moved = moved(problem);
  for (std::size_t i = 0; i < problem.moves.size(); ++i) {
    const Move& move = problem.moves[i];
    const Choice& choice = choices[i];
    const double seconds = choice.latency + choice.seconds;
    const bool measured = machine.cost(choice.path->name).measured;
    guessed = guessed || !measured;
    const std::string rest = move.src_rank == me ? others(machine, problem, facts, move, choice, bytes_moved)
                                                 : std::string("decided by the sender");
    guessed = guessed || rest.find('*') != std::string::npos;
    text += fmt::format("{:<26} {:>5} {:>5} {:>12} {:<12} {:<14} {:>9.2f}{}  {}\n", move.label, move.src_rank,
                        move.dst_rank, move.bytes(), to_string(pattern_of(move)), choice.path->name, seconds * 1e6,
                        measured ? " " : "*", rest);
    if (move.src_rank != me) continue;
    if (network_moves(machine, *choice.path, me, move.dst_rank)) {
      by_network[{move.dst_rank, choice.path->name}] = choice.latency;
      continue;
    }
    const Resource resource = resource_of(machine, *choice.path, me, move.dst_rank);
    busy[resource] += choice.seconds;
    if (links.emplace(move.dst_rank, choice.path).second) busy[resource] += choice.latency;
  }
  for (const auto& [resource, seconds] : busy) {
    text += fmt::format("sending keeps {} busy for {:.2f} us (a link's latency counted once)\n", to_string(resource),
                        seconds * 1e6);
  }
  for (const NetworkShare& share : balance(machine, problem, facts, choices))
    text += fmt::format("balance: {}: {} bytes, ends after {:.2f} us; {} it would take {:.2f} us\n",
                        to_string(share.network), share.bytes, share.seconds * 1e6,
                        share.carries_all ? "alone" : "for all that it can carry", share.alone * 1e6);
  std::int64_t messages = 0;
  double kept = 0;
  for (const Command& c : plan.commands) {
    if (c.verb != Verb::send) continue;
    const auto latency = by_network.find({c.peer, plan.paths[static_cast<std::size_t>(c.path)]});
    if (latency == by_network.end()) continue;
    const std::int64_t times = detail::chunks(plan, c);
    messages += times;
    kept += static_cast<double>(times) * machine.constants.second_link * latency->second;
  }
  if (messages > 0)
    text += fmt::format("the network moves {} messages; sending them keeps core busy for {:.2f} us\n", messages,
                        kept * 1e6);
  if (guessed) text += "* not measured on this machine: priced with 1 us and 5 GB/s\n";
  // How old they are, and how certain.
  if (!machine.source.empty()) text += fmt::format("prices: {}\n", machine.source);
  return text + problem.remark;
}

}  // namespace tasuki
