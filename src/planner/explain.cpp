// Explanation: see explain.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "plan/label.hpp"
#include "planner/explain.hpp"

namespace tasuki {

namespace {

// The pattern of the more scattered side.
Pattern pattern_of(const Move& move) {
  Pattern worst = move.copies.size() > 1 ? Pattern::list : Pattern::empty;
  for (const auto& copy : move.copies) worst = std::max({worst, copy.src_pattern(), copy.dst_pattern()});
  return worst;
}

// The other paths for that kind of memory. Those for another kind are left out, so they need no reasons.
std::vector<Explanation::Other> others(const Machine& machine, const Problem& problem, const Facts& facts,
                                       const Move& move, const Choice& choice, std::int64_t bytes_moved) {
  std::vector<Explanation::Other> others;
  auto offers = offers_for(machine, problem, facts, move, bytes_moved, false);
  for (std::size_t p = 0; p < offers.size(); ++p) {
    const Path& path = all_paths()[p];
    Offer& offer = offers[p];
    if (choice.path == &path || choice.path->memory != path.memory ||
        (!offer.usable && (offer.why_not == "same rank" || offer.why_not == "another rank"))) {
      continue;
    }
    Explanation::Other& other = others.emplace_back();
    other.path = &path;
    other.why_not = std::move(offer.why_not);
    if (!offer.usable) continue;
    other.seconds = offer.latency + offer.seconds;
    other.reuse = offer.reuse;
    other.measured = machine.cost(path.name).measured;
  }
  return others;
}

std::string text_of(const std::vector<Explanation::Other>& others) {
  constexpr double kHardly = 1e-7;
  std::string text;
  for (const auto& [path, seconds, reuse, measured, why_not] : others) {
    if (!text.empty()) text += "; ";
    text += seconds >= 0 ? fmt::format("{} {:.2f}{}", path->name, seconds * 1e6, measured ? "" : "*")
                         : fmt::format("{}: {}", path->name, why_not);
    if (reuse > kHardly) text += fmt::format(" (later {:.2f})", reuse * 1e6);
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

Explanation explained(const Machine& machine, const Problem& problem, const Facts& facts,
                      const std::vector<Choice>& choices, const Plan& plan) {
  const int me = problem.rank;
  Explanation all;
  all.operation = problem.operation;
  all.rank = me;
  all.ranks = machine.size();
  all.commands = std::ssize(plan.commands);
  all.bytes_of_plan = plan.memory();
  all.source = machine.source;
  all.remark = problem.remark;
  std::set<std::pair<int, const Path*>> links;               // a link's latency is paid once
  std::map<std::pair<int, std::string>, double> by_network;  // latencies of messages that a network moves
  const std::int64_t bytes_moved = moved(problem);
  all.pieces.reserve(problem.moves.size());
  for (std::size_t i = 0; i < problem.moves.size(); ++i) {
    const Move& move = problem.moves[i];
    const Choice& choice = choices[i];
    Explanation::Piece& piece = all.pieces.emplace_back();
    piece.label = move.label;
    piece.from = move.src_rank;
    piece.to = move.dst_rank;
    piece.bytes = move.bytes();
    piece.pattern = pattern_of(move);
    piece.path = choice.path;
    piece.seconds = choice.latency + choice.seconds;
    piece.measured = machine.cost(choice.path->name).measured;
    if (move.src_rank != me) continue;
    piece.others = others(machine, problem, facts, move, choice, bytes_moved);
    if (network_moves(machine, *choice.path, me, move.dst_rank)) {
      by_network[{move.dst_rank, choice.path->name}] = choice.latency;
      continue;
    }
    const Resource resource = resource_of(machine, *choice.path, me, move.dst_rank);
    all.busy[resource] += choice.seconds;
    if (links.emplace(move.dst_rank, choice.path).second) all.busy[resource] += choice.latency;
  }
  all.shares = balance(machine, problem, facts, choices);
  if (by_network.empty()) return all;
  for (const Command& c : plan.commands) {
    if (c.verb != Verb::send) continue;
    const auto latency = by_network.find({c.peer, plan.paths[static_cast<std::size_t>(c.path)]});
    if (latency == by_network.end()) continue;
    const std::int64_t times = detail::chunks(plan, c);
    all.messages += times;
    all.kept += static_cast<double>(times) * machine.constants.second_link * latency->second;
  }
  return all;
}

std::string to_text(const Explanation& all) {
  std::string text = fmt::format("{} on rank {} of {}: {} pieces, {} commands, {} bytes of plan\n", all.operation,
                                 all.rank, all.ranks, all.pieces.size(), all.commands, all.bytes_of_plan);
  text += fmt::format("{:<26} {:>5} {:>5} {:>12} {:<12} {:<14} {:>9}   {}\n", "piece", "from", "to", "bytes", "pattern",
                      "path", "us", "others, us or why not");
  bool guessed = false;
  for (const Explanation::Piece& piece : all.pieces) {
    const std::string rest = piece.from == all.rank ? text_of(piece.others) : std::string("decided by the sender");
    guessed = guessed || !piece.measured || rest.find('*') != std::string::npos;
    text += fmt::format("{:<26} {:>5} {:>5} {:>12} {:<12} {:<14} {:>9.2f}{}  {}\n", piece.label, piece.from, piece.to,
                        piece.bytes, to_string(piece.pattern), piece.path->name, piece.seconds * 1e6,
                        piece.measured ? " " : "*", rest);
  }
  for (const auto& [resource, seconds] : all.busy) {
    text += fmt::format("sending keeps {} busy for {:.2f} us (a link's latency counted once)\n", to_string(resource),
                        seconds * 1e6);
  }
  for (const NetworkShare& share : all.shares)
    text += fmt::format("balance: {}: {} bytes, ends after {:.2f} us; {} it would take {:.2f} us\n",
                        to_string(share.network), share.bytes, share.seconds * 1e6,
                        share.carries_all ? "alone" : "for all that it can carry", share.alone * 1e6);
  if (all.messages > 0)
    text += fmt::format("the network moves {} messages; sending them keeps core busy for {:.2f} us\n", all.messages,
                        all.kept * 1e6);
  if (guessed) text += "* not measured on this machine: priced with 1 us and 5 GB/s\n";
  if (!all.source.empty()) text += fmt::format("prices: {}\n", all.source);
  return text + all.remark;
}

}  // namespace tasuki
