// Planner: see planner.hpp. Choosing is in choose.cpp, the table in explain.cpp.
#include "planner/planner.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <tuple>

namespace tasuki {

std::vector<int> peers_of(const std::vector<Move>& moves, int rank) {
  std::set<int> peers;
  for (const auto& move : moves) {
    if (move.src_rank != rank) peers.insert(move.src_rank);
    if (move.dst_rank != rank) peers.insert(move.dst_rank);
  }
  return {peers.begin(), peers.end()};
}

void mark_mutual(std::vector<Move>& moves) {
  std::set<std::pair<int, int>> ways;
  for (const auto& move : moves) ways.emplace(move.src_rank, move.dst_rank);
  for (auto& move : moves) move.mutual = ways.contains({move.dst_rank, move.src_rank});
}

bool Planning::knows(int rank) const {
  return rank == runtime.rank() || std::binary_search(peers.begin(), peers.end(), rank);
}

const Place& Planning::place(int rank, int buffer) const {
  const auto it = std::lower_bound(peers.begin(), peers.end(), rank);
  const bool own = it == peers.end() || *it != rank;
  return (own ? places.back() : places[static_cast<std::size_t>(it - peers.begin())])[static_cast<std::size_t>(buffer)];
}

void exchange_places(Planning& planning) {
  std::vector<Place> mine;
  for (const auto& buffer : planning.buffers) {
    Place place;
    place.copies = static_cast<std::int32_t>(buffer.memory.size());
    place.ring = buffer.alternating ? 2 : 1;
    place.bytes = buffer.bytes;
    place.memory = buffer.where;
    for (std::size_t i = 0; i < std::min(buffer.memory.size(), place.gpu.size()); ++i) {
      if (buffer.where == Memory::device) {
        std::string why;
        if (buffer.bytes > 0) place.gpu[i] = planning.runtime.gpus->find(buffer.memory[i], why);
      } else {
        place.shared[i] = planning.runtime.memory().find(buffer.memory[i], buffer.bytes);
      }
      place.address[i] = reinterpret_cast<std::uint64_t>(buffer.memory[i]);
    }
    // A pair of which only one copy is shared counts as private: paths must serve both alike.
    if (buffer.memory.size() == 2 && !place.shared[1].valid()) place.shared[0] = {};
    if (buffer.memory.size() == 2 && place.gpu[1].valid == 0) place.gpu[0] = {};
    mine.push_back(place);
  }
  const std::string blob(reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(Place));
  const std::vector<std::string> blobs(planning.peers.size(), blob);
  planning.places.clear();
  for (const auto& answer : exchange(planning.runtime, planning.peers, blobs)) {
    std::vector<Place> theirs(answer.size() / sizeof(Place));
    std::memcpy(theirs.data(), answer.data(), theirs.size() * sizeof(Place));
    planning.places.push_back(std::move(theirs));
  }
  planning.places.push_back(std::move(mine));
}

int Composer::user_buffer(int rank, int buffer) {
  const auto& user = planning_.buffers[static_cast<std::size_t>(buffer)];
  const Place& place = planning_.place(rank, buffer);
  return builder_.buffer(user.name, rank, user.role, place.bytes, place.ring);
}

Link Composer::link(const std::vector<std::size_t>& moves, int number) {
  Link link;
  const Move& first = planning_.moves[moves.front()];
  link.path = path(moves.front()).name();
  link.peer = first.src_rank == builder_.rank() ? first.dst_rank : first.src_rank;
  link.number = number;
  link.mutual = first.mutual;
  link.alternating = true;
  for (const std::size_t i : moves) {
    const Move& move = planning_.moves[i];
    link.moves.push_back(&move);
    link.src.push_back(user_buffer(move.src_rank, move.src));
    link.dst.push_back(user_buffer(move.dst_rank, move.dst));
    link.alternating = link.alternating && planning_.place(move.dst_rank, move.dst).ring == 2;
  }
  link.capacity = link.bytes();
  return link;
}

void compose_links(Composer& composer) {
  const auto& moves = composer.planning().moves;
  Builder& builder = composer.builder();
  // Links by (kind, distance, path): lanes that only announce come before lanes that send, and what stays here last,
  // for nobody else waits for it. Every rank begins with the rank after itself, so that not all send to the same one
  // first.
  enum Kind { kReceives, kSends, kStays };
  std::map<std::tuple<Kind, int, std::string>, std::vector<std::size_t>> links;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    const Move& move = moves[i];
    const int distance = (move.dst_rank - move.src_rank + builder.ranks()) % builder.ranks();
    const Kind kind = distance == 0 ? kStays : composer.incoming(i) ? kReceives : kSends;
    if (composer.incoming(i) || composer.outgoing(i)) links[{kind, distance, composer.path(i).name()}].push_back(i);
  }
  std::vector<std::tuple<std::int64_t, int, int>> additions;  // seq, first and last command
  std::pair<Kind, int> before{kStays, -1};
  int number = 0;  // of the link among those between the same two ranks
  for (auto& [key, members] : links) {
    const std::pair ends{std::get<0>(key), std::get<1>(key)};
    number = ends == before ? number + 1 : 0;
    before = ends;
    std::sort(members.begin(), members.end(), [&](auto a, auto b) { return moves[a].seq < moves[b].seq; });
    Link link = composer.link(members, number);
    const Path& path = composer.path(members.front());
    builder.begin_lane();
    builder.set_path(link.path);
    if (std::get<0>(key) == kSends) {
      path.open_send(builder, link);
      path.send(builder, link);
      path.close_send(builder, link);
      continue;
    }
    path.open_recv(builder, link);
    path.recv(builder, link);
    path.close_recv(builder, link);
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (moves[members[i]].add == DType::none) continue;
      const int first = link.first_commands.empty() ? link.commands[i] : link.first_commands[i];
      additions.emplace_back(moves[members[i]].seq, first, link.commands[i]);
    }
  }
  for (std::size_t i = 0; i < moves.size(); ++i) {
    const Move& move = moves[i];
    if (!composer.incoming(i)) continue;
    builder.expect(composer.user_buffer(move.src_rank, move.src), composer.user_buffer(move.dst_rank, move.dst),
                   move.copies, move.add);
  }
  // Sums of floating-point numbers depend on their order: one fixed chain, whatever the paths are.
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

Draft make_plan(const Planning& planning, const std::function<void(Composer&)>& compose) {
  Builder builder(planning.operation, planning.runtime.rank(), planning.runtime.size());
  Composer composer(planning, builder);
  compose(composer);
  return builder.finish();
}

}  // namespace tasuki
