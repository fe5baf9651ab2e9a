// Choosing a path for every move: offers from all paths, then the assignment that costs least (`Assignment::cost`).
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "planner/planner.hpp"

namespace tasuki {

namespace {

// Index of the path chosen for every outgoing move.
class Assignment {
 public:
  Assignment(const Planning& planning, std::vector<std::size_t> moves) : planning_(planning), moves_(std::move(moves)) {
    std::int64_t leaves = 0;
    std::int64_t arrives = 0;
    for (const auto& move : planning.moves) {
      if (move.dst_rank != planning.runtime.rank()) leaves += move.bytes();
      if (move.src_rank != planning.runtime.rank()) arrives += move.bytes();
    }
    // In an exchange the peers have to send as much as they get: their cores are no help then.
    const bool helped = 2 * arrives < leaves;
    for (const auto& path : planning.paths.all()) {
      const std::string resource = path->resource();
      resources_.push_back(resource == "peer core" && !helped ? "core" : resource);
    }
  }

  const Offer& offer(std::size_t move, std::size_t path) const {
    return planning_.choices[moves_[move]].offers[path].second;
  }

  // When the slowest resource ends, and a little of what all do together: a further resource that makes that hardly
  // sooner is not worth its latency. Then the sum of all.
  std::pair<double, double> cost(const std::vector<std::size_t>& chosen) const {
    std::map<std::string, double> busy;
    std::map<std::string, double> latency;  // of what passes at the same time
    std::set<std::pair<int, std::size_t>> links;
    std::set<int> served;  // peers that have a link
    double sum = 0;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const Offer& o = offer(i, chosen[i]);
      const std::string& resource = resources_[chosen[i]];
      double seconds = o.seconds;
      if (planning_.paths.all()[chosen[i]]->latencies_overlap()) {
        latency[resource] = std::max(latency[resource], o.latency);
        const int peer = planning_.moves[moves_[i]].dst_rank;
        if (links.emplace(peer, chosen[i]).second && !served.insert(peer).second) seconds += o.latency * kSecondLink;
      } else if (links.emplace(planning_.moves[moves_[i]].dst_rank, chosen[i]).second) {
        seconds += o.latency;
      }
      busy[resource] += seconds;
      sum += seconds;
    }
    for (const auto& [resource, seconds] : latency) {
      busy[resource] += seconds;
      sum += seconds;
    }
    double slowest = 0;
    for (const auto& [name, seconds] : busy) slowest = std::max(slowest, seconds);
    return {slowest + kOfSum * sum, sum};
  }

  // Starts from the best path of each move, then lets whole peers and single moves change while that helps.
  std::vector<std::size_t> solve() const {
    const std::size_t paths = resources_.size();
    std::vector<std::size_t> chosen(moves_.size());
    std::map<int, std::vector<std::size_t>> by_peer;
    for (std::size_t i = 0; i < moves_.size(); ++i) {
      chosen[i] = best_alone(i);
      by_peer[planning_.moves[moves_[i]].dst_rank].push_back(i);
    }
    auto best = cost(chosen);
    const auto consider = [&](const std::vector<std::size_t>& members, std::size_t path) {
      auto trial = chosen;
      // Where some pieces take the path already, the rest may join them for any gain: one link is simpler than two. But
      // whole lines not from one pass to two, of which the second is dearer where caches have more to hold than when it
      // was measured.
      const auto may_join = [&](std::size_t i) {
        return order(path) <= order(chosen[i]) || planning_.moves[moves_[i]].shares_lines();
      };
      const bool joins =
          members.size() > 1 &&
          std::any_of(members.begin(), members.end(), [&](std::size_t i) { return chosen[i] == path; }) &&
          std::all_of(members.begin(), members.end(), may_join);
      double least = 0;  // what another change must gain to be more than noise
      for (const std::size_t i : members) {
        if (!offer(i, path).usable) return false;
        // What becomes parallel is a gain of another kind.
        if (!joins && resources_[chosen[i]] == resources_[path]) least += offer(i, chosen[i]).seconds * noise(i);
        trial[i] = path;
      }
      const auto c = cost(trial);
      if (c >= best || (least > 0 && best.second - c.second < least)) return false;
      best = c;
      chosen = std::move(trial);
      return true;
    };
    bool better = true;
    for (int round = 0; better && round < 8; ++round) {
      better = false;
      for (const auto& [peer, members] : by_peer) {
        for (std::size_t p = 0; p < paths; ++p) better = consider(members, p) || better;
      }
      for (std::size_t i = 0; i < chosen.size(); ++i) {
        for (std::size_t p = 0; p < paths; ++p) better = consider({i}, p) || better;
      }
    }
    return chosen;
  }

 private:
  static constexpr double kOfSum = 0.05;
  // What a further link to a peer costs even where latencies pass at the same time, in its latencies.
  static constexpr double kSecondLink = 0.2;
  // Measured costs are good to about so much: processors have other work as well, GPUs have not.
  double noise(std::size_t move) const {
    const Move& m = planning_.moves[moves_[move]];
    return planning_.place(m.src_rank, m.src).memory == Memory::device ? 0.03 : 0.2;
  }

  // The cheapest path, or the preferred one of those that cost about the same.
  std::size_t best_alone(std::size_t move) const {
    const auto seconds = [&](std::size_t p) { return offer(move, p).latency + offer(move, p).seconds; };
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t p = 0; p < resources_.size(); ++p) {
      if (offer(move, p).usable) least = std::min(least, seconds(p));
    }
    std::size_t best = resources_.size();
    for (std::size_t p = 0; p < resources_.size(); ++p) {
      if (!offer(move, p).usable || seconds(p) > least * (1 + noise(move))) continue;
      if (best == resources_.size() || std::pair(order(p), seconds(p)) < std::pair(order(best), seconds(best)))
        best = p;
    }
    return best;
  }
  int order(std::size_t path) const { return planning_.paths.all()[path]->preference(); }

  const Planning& planning_;
  std::vector<std::size_t> moves_;
  std::vector<std::string> resources_;
};

// What the sender of a move tells its receiver. Paths are numbered as in the set, which is the same on all ranks. If it
// has a complaint instead, it says so once, and the text follows.
constexpr std::int64_t kComplaint = -1;
struct Decision {
  std::int64_t seq = 0;
  std::int64_t path = 0;
  double latency = 0;
  double seconds = 0;
};

std::int64_t number_of(const std::vector<std::unique_ptr<Path>>& paths, const Path* path) {
  return std::find_if(paths.begin(), paths.end(), [&](const auto& p) { return p.get() == path; }) - paths.begin();
}

std::string no_path(const Planning& planning, const Move& move, const Choice& choice) {
  std::string text =
      fmt::format("no path can carry '{}' from rank {} to rank {}", move.label, move.src_rank, move.dst_rank);
  if (planning.wanted != "auto") text += fmt::format(" when path '{}' is forced", planning.wanted);
  text += " (";
  const char* separator = "";
  for (const auto& [name, offer] : choice.offers) {
    if (name.starts_with("self")) continue;
    text += fmt::format("{}{}: {}", separator, name, offer.why_not);
    separator = "; ";
  }
  return text + ")";
}

}  // namespace

std::string choose(Planning& planning) {
  const int me = planning.runtime.rank();
  const auto& paths = planning.paths.all();
  planning.choices.assign(planning.moves.size(), {});
  std::string complaint;
  std::vector<std::size_t> leaving;
  for (std::size_t i = 0; i < planning.moves.size(); ++i) {
    const Move& move = planning.moves[i];
    if (move.src_rank != me) continue;
    Choice& choice = planning.choices[i];
    bool usable = false;
    for (const auto& path : paths) {
      const Place& src = planning.place(move.src_rank, move.src);
      const Place& dst = planning.place(move.dst_rank, move.dst);
      Offer offer =
          path->serves(src.memory, dst.memory)
              ? path->offer(move, src, dst)
              : Offer::no(fmt::format("not for {} to {} memory", to_string(src.memory), to_string(dst.memory)));
      // A piece that stays on its rank is never forced elsewhere.
      if (move.src_rank != move.dst_rank && offer.usable && !PathSet::allows(planning.wanted, *path)) {
        offer.usable = false;
        offer.why_not = "another path is forced";
      }
      usable = usable || offer.usable;
      choice.offers.emplace_back(path->name(), std::move(offer));
    }
    if (usable) {
      leaving.push_back(i);
    } else if (complaint.empty()) {
      complaint = no_path(planning, move, choice);
    }
  }
  // Ranks that complain still take part in the exchange; all throw together afterwards.
  if (complaint.empty()) {
    const auto chosen = Assignment(planning, leaving).solve();
    for (std::size_t i = 0; i < leaving.size(); ++i) {
      Choice& choice = planning.choices[leaving[i]];
      choice.path = paths[chosen[i]].get();
      choice.latency = choice.offers[chosen[i]].second.latency;
      choice.seconds = choice.offers[chosen[i]].second.seconds;
    }
  }
  std::vector<std::string> blobs;
  for (const int peer : planning.peers) {
    std::string blob;
    if (!complaint.empty()) blob = as_text(Decision{.seq = kComplaint}) + complaint;
    for (std::size_t i = 0; i < planning.moves.size(); ++i) {
      const Choice& choice = planning.choices[i];
      if (planning.moves[i].src_rank != me || planning.moves[i].dst_rank != peer || choice.path == nullptr) continue;
      const Decision decision{planning.moves[i].seq, number_of(paths, choice.path), choice.latency, choice.seconds};
      blob += as_text(decision);
    }
    blobs.push_back(std::move(blob));
  }
  const auto answers = exchange(planning.runtime, planning.peers, blobs);
  for (std::size_t p = 0; p < answers.size(); ++p) {
    std::map<std::int64_t, std::size_t> by_seq;
    for (std::size_t i = 0; i < planning.moves.size(); ++i) {
      if (planning.moves[i].src_rank == planning.peers[p]) by_seq[planning.moves[i].seq] = i;
    }
    for (std::size_t at = 0; at + sizeof(Decision) <= answers[p].size(); at += sizeof(Decision)) {
      const auto decision = from_text<Decision>(answers[p].substr(at, sizeof(Decision)));
      if (decision.seq == kComplaint) {
        if (complaint.empty()) complaint = answers[p].substr(at + sizeof decision);
        break;
      }
      const auto it = by_seq.find(decision.seq);
      if (it == by_seq.end()) continue;
      const Path* path = paths[static_cast<std::size_t>(decision.path)].get();
      planning.choices[it->second] = {path, decision.latency, decision.seconds, {}};
    }
  }
  for (std::size_t i = 0; i < planning.moves.size() && complaint.empty(); ++i) {
    if (planning.choices[i].path != nullptr) continue;
    complaint = fmt::format("rank {} has chosen no path for '{}' to rank {}", planning.moves[i].src_rank,
                            planning.moves[i].label, planning.moves[i].dst_rank);
  }
  return complaint;
}

}  // namespace tasuki
