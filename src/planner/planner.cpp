// Planner: facts, and the plan of independent moves. Choosing is in choose.cpp, the table in explain.cpp.
#include "planner/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "tasuki/error.hpp"

namespace tasuki {

namespace {

template <class Ranks>
auto place_of(Ranks& ranks, int rank) {
  return std::lower_bound(ranks.begin(), ranks.end(), rank,
                          [](const auto& entry, int wanted) { return entry.first < wanted; });
}

}  // namespace

void Facts::set(int rank, std::shared_ptr<const std::vector<BufferFact>> facts) {
  const auto at = place_of(ranks_, rank);
  if (at != ranks_.end() && at->first == rank) {
    at->second = std::move(facts);
  } else {
    ranks_.emplace(at, rank, std::move(facts));
  }
}

bool Facts::knows(int rank) const {
  const auto at = place_of(ranks_, rank);
  return at != ranks_.end() && at->first == rank;
}

const BufferFact& Facts::of(int rank, int buffer) const {
  const auto at = place_of(ranks_, rank);
  if (at == ranks_.end() || at->first != rank || buffer < 0 || buffer >= std::ssize(*at->second))
    throw Error(fmt::format("planning knows nothing of buffer {} of rank {} (a defect in Tasuki)", buffer, rank));
  return (*at->second)[static_cast<std::size_t>(buffer)];
}

std::vector<int> peers_of(const std::vector<Move>& moves, int rank) {
  std::vector<int> peers;
  for (const auto& move : moves) {
    if (move.src_rank != rank) peers.push_back(move.src_rank);
    if (move.dst_rank != rank) peers.push_back(move.dst_rank);
  }
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  return peers;
}

void mark_mutual(std::vector<Move>& moves) {
  std::vector<std::pair<int, int>> ways;
  ways.reserve(moves.size());
  for (const auto& move : moves) ways.emplace_back(move.src_rank, move.dst_rank);
  std::sort(ways.begin(), ways.end());
  for (auto& move : moves)
    move.mutual = std::binary_search(ways.begin(), ways.end(), std::pair{move.dst_rank, move.src_rank});
}

namespace {

// Copies what is to be copied before anything else, in a lane of its own. Returns the last command; -1: there is none.
int copy_first(Composer& composer) {
  Builder& builder = composer.builder();
  const std::vector<UserRole>& buffers = composer.problem().buffers;
  int last = -1;
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    if (buffers[b].copies.empty()) continue;
    if (last < 0) {
      builder.begin_lane();
      builder.set_path("self");
    }
    const int rank = builder.rank();
    const int from = composer.user_buffer(rank, buffers[b].copy_of);
    last = builder.copy(rank, from, composer.user_buffer(rank, static_cast<int>(b)), buffers[b].copies, 0, 0);
  }
  return last;
}

// The lanes after the one of the command wait for it.
void after(Builder& builder, int command) {
  const std::vector<Command>& commands = builder.plan().commands;
  for (std::size_t i = static_cast<std::size_t>(command) + 1; i < commands.size(); ++i)
    if (commands[i].lane != commands[i - 1].lane) builder.depend(static_cast<int>(i), command);
}

// The first put from command `begin` on waits for the last one of the round before.
void put_in_turn(Builder& builder, std::ptrdiff_t begin, int& last_put) {
  const auto is_put = [&](std::ptrdiff_t i) {
    return builder.plan().commands[static_cast<std::size_t>(i)].verb == Verb::put;
  };
  std::ptrdiff_t first = begin;
  const std::ptrdiff_t end = std::ssize(builder.plan().commands);
  while (first < end && !is_put(first)) ++first;
  if (first == end) return;
  if (last_put >= 0) builder.depend(static_cast<int>(first), last_put);
  for (std::ptrdiff_t i = first; i < end; ++i)
    if (is_put(i)) last_put = static_cast<int>(i);
}

}  // namespace

std::map<int, std::int64_t> Composer::rounds() const {
  std::map<int, std::int64_t> rounds;
  if (machine_.inside.collision >= 1 && machine_.outside.collision >= 1) return rounds;
  for (const Move& move : problem_.moves) {
    if (move.src_rank != problem_.rank || move.dst_rank == problem_.rank) continue;
    const auto [entry, first] = rounds.try_emplace(move.dst_rank, move.round);
    if (!first) entry->second = std::min(entry->second, move.round);
  }
  return rounds;
}

std::int64_t Problem::scratch_to(int peer) const {
  const auto found = scratch_with.find(peer);
  return found == scratch_with.end() ? 0 : found->second;
}

// Links in one direction between two ranks share what scratch they may have. Both ranks know the choices for it.
std::int64_t Composer::scratch_of_link(const Move& first, int peer) const {
  const std::int64_t all = problem_.scratch_to(peer);
  if (all == 0) return 0;
  std::set<const Path*> paths;
  for (std::size_t i = 0; i < problem_.moves.size(); ++i)
    if (problem_.moves[i].src_rank == first.src_rank && problem_.moves[i].dst_rank == first.dst_rank)
      paths.insert(choices_[i].path);
  return std::max<std::int64_t>(all / std::ssize(paths), 1);
}

int Composer::user_buffer(int rank, int buffer) {
  const UserRole& user = problem_.buffers[static_cast<std::size_t>(buffer)];
  Buffer b;
  b.name = user.name;
  b.rank = rank;
  b.role = user.role;
  // An expectation may name a buffer of a rank that is not a peer.
  const bool known = facts_.knows(rank);
  const BufferFact& fact = facts_.of(known ? rank : problem_.rank, buffer);
  b.bytes = known || !problem_.bytes_of ? fact.bytes : problem_.bytes_of(rank, buffer);
  if (known) {
    b.home = fact.home();
    b.ring = static_cast<std::int16_t>(fact.ring);
    b.copies = static_cast<std::int16_t>(std::max(fact.copies, 1));
  }
  return builder_.buffer(b);
}

int Composer::promised_source(const Move& move) {
  const int copied = problem_.buffers[static_cast<std::size_t>(move.src)].copy_of;
  return user_buffer(move.src_rank, copied < 0 ? move.src : copied);
}

Link Composer::link(const std::vector<std::size_t>& moves, int number) {
  Link link;
  const Move& first = problem_.moves[moves.front()];
  link.peer = first.src_rank == builder_.rank() ? first.dst_rank : first.src_rank;
  link.number = number;
  link.constants = &machine_.constants;
  link.mutual = first.mutual;
  link.alternating = true;
  for (const std::size_t i : moves) {
    const Move& move = problem_.moves[i];
    link.moves.push_back(&move);
    link.src.push_back(user_buffer(move.src_rank, move.src));
    link.dst.push_back(user_buffer(move.dst_rank, move.dst));
    link.alternating = link.alternating && facts_.of(move.dst_rank, move.dst).ring == 2;
  }
  link.capacity = link.bytes();
  link.scratch_most = scratch_of_link(first, link.peer);
  return link;
}

void compose_links(Composer& composer) {
  const auto& moves = composer.problem().moves;
  Builder& builder = composer.builder();
  // Links sorted by (kind, distance, path). Lanes that receive come first, because they begin with signals for which
  // peers wait; lanes that send follow; what stays on the rank comes last, because nobody else waits for it. Every rank
  // begins with the rank after itself, so that not all ranks send to the same one first.
  // Where the network loses by collisions, sends go by rounds.
  enum Kind { kReceives, kSends, kStays };
  std::map<std::tuple<Kind, std::int64_t, int, std::string>, std::vector<std::size_t>> links;
  const std::map<int, std::int64_t> rounds = composer.rounds();
  const int copied = copy_first(composer);
  for (std::size_t i = 0; i < moves.size(); ++i) {
    const Move& move = moves[i];
    const int distance = (move.dst_rank - move.src_rank + builder.ranks()) % builder.ranks();
    const Kind kind = distance == 0 ? kStays : composer.incoming(i) ? kReceives : kSends;
    const auto round = kind == kSends ? rounds.find(move.dst_rank) : rounds.end();
    if (composer.incoming(i) || composer.outgoing(i))
      links[{kind, round == rounds.end() ? 0 : round->second, distance, composer.path(i).name}].push_back(i);
  }
  std::vector<std::tuple<std::int64_t, int, int>> additions;  // seq, first and last command
  std::pair<Kind, int> before{kStays, -1};
  int last_put = -1;  // of the rounds so far
  int number = 0;     // of the link among those between the same two ranks
  for (auto& [key, members] : links) {
    const std::pair ends{std::get<0>(key), std::get<2>(key)};
    number = ends == before ? number + 1 : 0;
    before = ends;
    std::sort(members.begin(), members.end(), [&](auto a, auto b) { return moves[a].seq < moves[b].seq; });
    Link link = composer.link(members, number);
    const Path& path = composer.path(members.front());
    const Protocol& protocol = *path.protocol;
    builder.begin_lane();
    builder.set_path(path.name);
    if (std::get<0>(key) == kSends) {
      const auto begin = std::ssize(builder.plan().commands);
      protocol.open_send(builder, link);
      protocol.send(builder, link);
      protocol.close_send(builder, link);
      if (!rounds.empty()) put_in_turn(builder, begin, last_put);
      continue;
    }
    protocol.open_recv(builder, link);
    protocol.recv(builder, link);
    protocol.close_recv(builder, link);
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (!accumulates(moves[members[i]].add, moves[members[i]].op)) continue;
      const int first = link.first_commands.empty() ? link.commands[i] : link.first_commands[i];
      additions.emplace_back(moves[members[i]].seq, first, link.commands[i]);
    }
  }
  if (copied >= 0) after(builder, copied);
  std::vector<std::size_t> arriving;
  for (std::size_t i = 0; i < moves.size(); ++i)
    if (composer.incoming(i)) arriving.push_back(i);
  // In the order of the additions below: of equal numbers by distance, and what stays on the rank last.
  const auto turn = [&](std::size_t i) {
    const int distance = (moves[i].dst_rank - moves[i].src_rank + builder.ranks()) % builder.ranks();
    return std::tuple{moves[i].seq, distance == 0, distance};
  };
  std::ranges::stable_sort(arriving, {}, turn);
  for (const std::size_t i : arriving) {
    const Move& move = moves[i];
    builder.expect(composer.promised_source(move), composer.user_buffer(move.dst_rank, move.dst), move.copies, move.add,
                   move.op, accumulates(move.add, move.op));
  }
  // Floating-point sums depend on their order. So all additions form one fixed chain, whatever their paths are.
  std::sort(additions.begin(), additions.end());
  for (std::size_t i = 1; i < additions.size(); ++i) {
    const auto& commands = builder.plan().commands;
    const int next = std::get<1>(additions[i]);
    const int last = std::get<2>(additions[i - 1]);
    if (commands[static_cast<std::size_t>(next)].lane != commands[static_cast<std::size_t>(last)].lane) {
      builder.depend(next, last);
    }
  }
}

namespace {

void check_scratch(const Plan& plan, const Problem& problem) {
  if (problem.scratch == 0) return;
  std::int64_t bytes = 0;
  for (const Buffer& buffer : plan.buffers)
    if (buffer.role == Role::scratch && buffer.rank == plan.rank) bytes += buffer.bytes * buffer.ring;
  if (bytes > problem.scratch)
    throw Error(
        fmt::format("rank {} needs {} bytes of scratch at least, but argument 'scratch' allows {}; allow more, or give "
                    "memory that peers can map and a path that needs none (docs/paths.md)",
                    plan.rank, bytes, problem.scratch));
}

}  // namespace

Plan emit(const Machine& machine, const Problem& problem, const Facts& facts, const std::vector<Choice>& choices,
          const PassObserver& observer) {
  Builder builder(problem.operation, problem.rank, machine.size());
  Composer composer(machine, problem, facts, choices, builder);
  problem.compose ? problem.compose(composer) : compose_links(composer);
  Plan plan = builder.finish();
  std::vector<bool> in_background;
  for (const std::string& name : plan.paths) in_background.push_back(path_named(name).in_background);
  run_passes(plan, in_background, observer);
  check_scratch(plan, problem);
  return plan;
}

}  // namespace tasuki
