// Prices of commands: see prices.hpp.
#include "predict/prices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "paths/path.hpp"
#include "paths/peer.hpp"
#include "plan/label.hpp"
#include "predict/gpu_lanes.hpp"
#include "predict/touched_by_peers.hpp"
#include "tasuki/error.hpp"

namespace tasuki::detail {
namespace {

// Signals that grant something. Their time is part of the measured price of the data that follows.
bool only_permits(Purpose purpose) {
  return purpose == Purpose::ready || purpose == Purpose::credit || purpose == Purpose::done;
}

class Pricing {
 public:
  Pricing(std::span<const Plan> plans, const Machine& machine) : plans_(plans), machine_(machine) {}

  // The expectations of a rank say which ranks send to it.
  void expect(const Plan& plan) {
    for (const Expect& e : plan.expects) {
      const int from = plan.buffers[static_cast<std::size_t>(e.src)].rank;
      if (from != plan.rank) ways_.insert(way(from, plan.rank));
    }
  }

  Prices all() {
    for (const Plan& plan : plans_) {
      prices_.first.push_back(static_cast<std::int32_t>(prices_.work.size()));
      know_paths(plan);
      for (std::size_t i = 0; i < plan.commands.size(); ++i) prices_.work.push_back(crossing(plan, i));
    }
    prices_.first.push_back(static_cast<std::int32_t>(prices_.work.size()));
    for (const std::uint64_t one : ways_) {
      const auto from = static_cast<std::int32_t>(one >> 32);
      if (mutual(from, static_cast<std::int32_t>(one & 0xffffffff))) ++mutual_peers_[from];
    }
    for (std::size_t r = 0; r < plans_.size(); ++r) {
      const Plan& plan = plans_[r];
      know_paths(plan);
      for (std::size_t i = 0; i < plan.commands.size(); ++i)
        price(plan, i, *paths_[static_cast<std::size_t>(plan.commands[i].path)],
              prices_.work[static_cast<std::size_t>(prices_.first[r]) + i]);
    }
    prices_.counters = static_cast<std::int32_t>(counters_.size());
    prices_.channels = static_cast<std::int32_t>(channels_.size());
    prices_.guessed.assign(guessed_.begin(), guessed_.end());
    return std::move(prices_);
  }

 private:
  void know_paths(const Plan& plan) {
    paths_.clear();
    for (const std::string& name : plan.paths) paths_.push_back(&path_named(name));
    puts_.assign(paths_.size(), 0);
    came_.assign(plan.buffers.size(), false);
    for (const Command& c : plan.commands) puts_[static_cast<std::size_t>(c.path)] += c.verb == Verb::put ? 1 : 0;
  }

  // A few small numbers as one key of a hash table.
  static std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
    constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
    const std::uint64_t all = (a ^ (b * kOdd)) * kOdd;
    return all ^ (all >> 32);
  }
  struct Mixed {
    std::size_t operator()(std::uint64_t key) const { return mixed(key, 0); }
    std::size_t operator()(const std::pair<std::uint64_t, const Path*>& link) const {
      return mixed(link.first, reinterpret_cast<std::uintptr_t>(link.second));
    }
    std::size_t operator()(
        const std::tuple<std::int32_t, Purpose, std::int32_t, std::int32_t, std::string>& key) const {
      const auto& [rank, purpose, link, writer, name] = key;
      return mixed(mixed(way(rank, writer), static_cast<std::uint64_t>(purpose)),
                   way(link, static_cast<int>(name.size())));
    }
    std::size_t operator()(const std::tuple<std::int32_t, std::int32_t, std::int32_t>& key) const {
      const auto& [from, to, tag] = key;
      return mixed(way(from, to), static_cast<std::uint64_t>(tag));
    }
  };
  static std::uint64_t way(int from, int to) {
    return (std::uint64_t{static_cast<std::uint32_t>(from)} << 32) | static_cast<std::uint32_t>(to);
  }
  using Link = std::pair<std::uint64_t, const Path*>;

  // Adds what the command brings into a core's caches to what that rank moves. What is packed counts where it is
  // unpacked. Of what is combined with bytes that have come, only the other operand is new.
  void count(const Plan& plan, const Command& c) {
    if (c.dst < 0 || c.verb == Verb::send || c.verb == Verb::signal) return;
    const Buffer& dst = plan.buffers[static_cast<std::size_t>(c.dst)];
    const bool within = c.verb == Verb::copy || c.verb == Verb::reduce;
    if (!within && dst.role == Role::scratch) return;
    const std::int64_t bytes = c.bytes * chunks(plan, c);
    const auto came = came_.begin() + c.dst;
    moved_[dst.rank] += c.verb == Verb::reduce && *came ? bytes / 2 : bytes;
    const bool brings = c.verb == Verb::copy && plan.buffers[static_cast<std::size_t>(c.src)].rank != plan.rank;
    if (brings || c.verb == Verb::recv) *came = true;
  }

  // The ranks between which the command's bytes cross. Adds the bytes to the sums of that direction.
  Work crossing(const Plan& plan, std::size_t i) {
    const Command& c = plan.commands[i];
    Work work;
    const auto owner = [&](std::int32_t buffer) { return plan.buffers[static_cast<std::size_t>(buffer)].rank; };
    count(plan, c);
    if (!moves_bytes(c.verb)) return work;
    work.from = c.verb == Verb::copy || c.verb == Verb::reduce ? owner(c.src) : plan.rank;
    work.to = c.verb == Verb::put ? owner(c.dst) : c.verb == Verb::send ? c.peer : plan.rank;
    work.bytes = c.bytes;
    if (work.from == work.to) {
      work.from = work.to = -1;
      return work;
    }
    const std::int64_t bytes = c.bytes * chunks(plan, c);
    const bool on_host = paths_[static_cast<std::size_t>(c.path)]->memory == Memory::host;
    if (on_host && c.verb != Verb::send) touched_.note(plan, c);
    ways_.insert(way(work.from, work.to));
    whole_[{way(work.from, work.to), paths_[static_cast<std::size_t>(c.path)]}] += bytes;
    if (!machine_.same_island(work.from, work.to)) prices_.between_islands += bytes;
    return work;
  }

  std::int16_t hardware(const std::string& name) {
    const auto found = std::find(prices_.hardware.begin(), prices_.hardware.end(), name);
    if (found == prices_.hardware.end()) prices_.hardware.push_back(name);
    return static_cast<std::int16_t>(std::find(prices_.hardware.begin(), prices_.hardware.end(), name) -
                                     prices_.hardware.begin());
  }

  bool mutual(int a, int b) const { return ways_.contains(way(a, b)) && ways_.contains(way(b, a)); }

  void price(const Plan& plan, std::size_t i, const Path& path, Work& work) {
    const Command& c = plan.commands[i];
    if (c.peer >= 0 && c.peer != plan.rank && !machine_.cost(path.name).measured) guessed_.insert(path.name);
    work.on_core = path.memory == Memory::host;
    work.latency_keeps = work.on_core && !path.latencies_overlap;
    switch (c.verb) {
      case Verb::signal:
      case Verb::wait: {
        const Buffer& b = plan.buffers[static_cast<std::size_t>(c.verb == Verb::signal ? c.dst : c.src)];
        work.matched_by = number(counters_, std::tuple(b.rank, b.purpose, b.link, b.writer, std::string(b.name)));
        work.per_epoch = b.per_epoch;
        if (c.verb == Verb::signal && !only_permits(b.purpose)) {
          work.latency = latency(plan.rank, b.rank, path);
          if (!work.on_core) price_telling(plan, i, path, work);
        }
        break;
      }
      case Verb::send:
        work.latency = latency(plan.rank, c.peer, path);
        work.matched_by = number(channels_, std::tuple(plan.rank, c.peer, c.tag));
        work.by_receiver =
            work.on_core && machine_.same_host(plan.rank, c.peer) && c.bytes > machine_.constants.message_read;
        break;
      case Verb::recv:
        work.matched_by = number(channels_, std::tuple(c.peer, plan.rank, c.tag));
        break;
      default:
        break;
    }
    if (!moves_bytes(c.verb)) return;
    if (work.from < 0) {
      // Packing for a path of GPU memory is work of the GPU, all other packing is work of the core.
      if (in_lines(plan, c.src, c)) {
        const bool hides = hands_on(plan, i) || more_lines(plan, i);
        work.seconds = hides ? 0 : (1 - machine_.constants.line_start) * brought(plan, c, path);
        return;
      }
      if (!work.on_core && path.carries(Verb::send) && c.verb == Verb::copy) return price_packing(plan, c, work);
      work.seconds = std::max(within(plan, c, path, plan.rank), from_caches(plan, c, path));
      if (!work.on_core) work.seconds *= share_of_pass(plan, i);
      if (!work.on_core && c.loop >= 0 && ends_pass(plan, i)) work.seconds += machine_.constants.gpu_round;
      if (!work.on_core && c.dep_count > 0) work.seconds += machine_.constants.gpu_round;
      if (!work.on_core) work.resource = hardware("GPU");
      return;
    }
    work.outside = by_outside(machine_, path, work.from, work.to);
    work.seconds = between(plan, i, path, work);
    if (work.on_core) return;
    if (c.verb == Verb::put && !path.carries(Verb::put)) {
      work.seconds += more_of_put(plan, i, path, work);
      if (c.loop >= 0) work.seconds += machine_.constants.gpu_chunk;
    }
    if (c.verb == Verb::put && in_lines(plan, c.dst, c)) work.tail = (1 - machine_.constants.line_start) * work.seconds;
    // Its blocks wait for those of another lane.
    if (c.dep_count > 0) work.seconds += machine_.constants.gpu_round;
    // A fetch takes only the links into this rank: one pass fetches from all others at the same time, so that none of
    // their links is what takes longest.
    const bool fetches = work.to == plan.rank;
    const Resource resource = resource_of(machine_, path, work.from, work.to);
    const std::string name(to_string(resource));
    work.resource = hardware(resource == Resource::links ? name + (fetches ? ", in" : ", out") : name);
    if (path.both_ends && !fetches) work.into = hardware(name + ", in");
    if (resource == Resource::links) work.collision = machine_.inside.collision;
  }

  // The price of a message's path contains all but the additional time of scattered pieces.
  void price_packing(const Plan& plan, const Command& c, Work& work) {
    const Move move = move_of(plan, c, plan.rank, plan.rank);
    const bool scattered = std::any_of(move.copies.begin(), move.copies.end(), [](const StridedCopy& copy) {
      return std::max(copy.src_pattern(), copy.dst_pattern()) > Pattern::contiguous;
    });
    if (!machine_.cost("self:gpu").measured) guessed_.insert("self:gpu");
    work.seconds = scattered ? packing_seconds(machine_, move.bytes(), move.other_runs()) : 0;
    work.resource = hardware(std::string(to_string(Resource::gpu)));
  }

  // The seconds that a put by SMs takes more because it sends a sum, or because its rank exchanges with several others.
  double more_of_put(const Plan& plan, std::size_t i, const Path& path, const Work& work) const {
    const Constants& constants = machine_.constants;
    double more = 0;
    if (sends_sum(plan, i)) {
      const bool lines = in_lines(plan, plan.commands[i].dst, plan.commands[i]);
      const double copy = static_cast<double>(work.bytes) / copy_bandwidth(machine_);
      more += lines ? constants.line_sum * copy : constants.gpu_sum_on * work.seconds;
    }
    const auto peers = mutual_peers_.find(work.from);
    if (path.both_ends && peers != mutual_peers_.end() && peers->second > 1)
      more += constants.gpu_to_all * work.seconds;
    return more;
  }

  // What a signal costs GPUs.
  void price_telling(const Plan& plan, std::size_t i, const Path& path, Work& work) {
    const Constants& constants = machine_.constants;
    const Command& c = plan.commands[i];
    if (plan.buffers[static_cast<std::size_t>(c.dst)].home == Home::ll) {
      // LL lines need no signal. This one stands for the lines that have not come when the first are forwarded.
      // What is forwarded to several ranks is put to all of them at once.
      if (i == 0 || plan.commands[i - 1].verb != Verb::put || plan.commands[i - 1].lane != c.lane) return;
      work.seconds = puts_again(plan, i - 1) ? 0 : (&work)[-1].tail;
      if (sends_lines_on(plan, i - 1)) work.latency = std::min(work.latency, constants.line_hop);
      return;
    }
    // After one put of a copy engine the blocks signal, after each of several the engine itself.
    if (path.carries(Verb::put) && puts_[static_cast<std::size_t>(c.path)] > 1) {
      work.seconds = constants.copy_engine_signal;
      return;
    }
    // Blocks that share a lane signal together how far they have come. One warp does that while the others proceed.
    work.seconds = constants.gpu_signal;
    if (c.loop >= 0) work.latency += constants.gpu_hop;
  }

  // The price of the put that brought what the command unpacks from LL lines.
  double brought(const Plan& plan, const Command& c, const Path& path) const {
    Move move = move_of(plan, c, c.peer, plan.rank);
    move.add = DType::none;
    move.whole = whole_.contains({way(c.peer, plan.rank), &path}) ? whole_.at({way(c.peer, plan.rank), &path}) : 0;
    return ask(path, machine_.cost(path.name), move, plan, c, plan.rank);
  }

  double latency(int from, int to, const Path& path) const {
    if (from == to) return 0;
    const PathCost& cost = machine_.cost(path.name);
    const auto whole = whole_.find({way(from, to), &path});
    return latency_of(mutual(from, to) ? cost.mutual : cost.one_way, whole == whole_.end() ? 0 : whole->second);
  }

  Move move_of(const Plan& plan, const Command& c, int from, int to) const {
    Move move;
    move.src_rank = from;
    move.dst_rank = to;
    move.mutual = from != to && mutual(from, to);
    if (c.verb == Verb::send || c.verb == Verb::recv) {
      StridedCopy message;
      message.block = c.bytes;
      move.copies = {message};
    } else {
      const auto first = plan.copies.begin() + c.first_copy;
      move.copies.assign(first, first + c.copy_count);
    }
    move.add = c.dtype;
    return move;
  }

  // The time of a copy within the rank's memory. Where ranks exchange, their cores copy at the same time.
  // `at`: the rank whose bytes of the epoch count.
  double within(const Plan& plan, const Command& c, const Path& path, std::int32_t at) {
    const Memory memory = path.memory;
    const Path& self = path_named(memory == Memory::host ? "self" : "self:gpu");
    const PathCost& cost = machine_.cost(self.name);
    Move move = move_of(plan, c, plan.rank, plan.rank);
    if (memory == Memory::host) move.mutual = mutual_peers_.contains(plan.rank);
    if (!cost.measured) {
      guessed_.insert(self.name);
      if (memory == Memory::device) return static_cast<double>(move.bytes()) / machine_.constants.gpu_copy_bandwidth;
    }
    return ask(self, cost, move, plan, c, at);
  }

  // The time of a copy within the rank whose lines lie in another core's cache, because another rank loads them, too:
  // as long as that rank takes for them. 0: they do not.
  double from_caches(const Plan& plan, const Command& c, const Path& path) const {
    const bool within = c.verb == Verb::copy || c.verb == Verb::reduce;
    if (path.memory != Memory::host || !within || !touched_.fetches(plan, c)) return 0;
    const Path& pull = path_named("shared:pull");
    const PathCost& cost = machine_.cost(pull.name);
    if (!cost.measured) return 0;
    const double bytes = static_cast<double>(c.bytes);
    const auto moved = moved_.find(plan.rank);
    return seconds_of(cost, cost.mutual, bytes, moved == moved_.end() ? bytes : static_cast<double>(moved->second));
  }

  double between(const Plan& plan, std::size_t i, const Path& path, const Work& work) {
    const Command& c = plan.commands[i];
    if (!path.joins(machine_, work.from, work.to))
      throw Error(
          fmt::format("{}: path '{}' does not join ranks {} and {} of machine {}; the plans are another "
                      "machine's",
                      label(plan, static_cast<std::int64_t>(i)), path.name, work.from, work.to, machine_.name));
    Move move = move_of(plan, c, work.from, work.to);
    move.whole = whole_.at({way(work.from, work.to), &path});
    const double seconds = ask(path, machine_.cost(path.name), move, plan, c, work.to);
    const bool staged = c.verb == Verb::put && plan.buffers[static_cast<std::size_t>(c.dst)].purpose == Purpose::ring;
    const bool taken = staged && in_lines(plan, c.dst, c);
    if (!staged || taken) return seconds;
    // One way on hosts the receiver unpacks a slice while the sender packs the next one; the last one it unpacks alone.
    if (!move.mutual && path.memory == Memory::host) {
      const double slice = static_cast<double>(c.bytes) / static_cast<double>(std::max<std::int64_t>(move.whole, 1));
      return std::max(seconds - within(plan, c, path, work.to) * slice, seconds / 2);
    }
    if (!move.mutual) return seconds;
    return std::max(seconds - within(plan, c, path, plan.rank), seconds / 2);
  }

  double ask(const Path& path, const PathCost& cost, const Move& move, const Plan& plan, const Command& c,
             std::int32_t at) const {
    BufferFact fact;
    fact.memory = path.memory;
    fact.shared = true;
    fact.alignment = 16;
    const auto own = [&](std::int32_t buffer) {
      return buffer >= 0 && plan.buffers[static_cast<std::size_t>(buffer)].home == Home::own;
    };
    const bool own_memory = path.memory == Memory::host && (own(c.src) || own(c.dst));
    const auto moved = moved_.find(at);
    const std::int64_t bytes = path.memory == Memory::host && moved != moved_.end() ? moved->second : 0;
    const Offer offer = path.offer({machine_, cost, true, move, fact, fact, own_memory, bytes});
    if (!offer.usable)
      throw Error(fmt::format("rank {}: {}: path '{}' cannot carry a {} of {} bytes on machine {}: {}", plan.rank,
                              plan.operation, path.name, to_string(c.verb), move.bytes(), machine_.name,
                              offer.why_not));
    return offer.seconds;
  }

  template <class Key>
  static std::int32_t number(std::unordered_map<Key, std::int32_t, Mixed>& numbers, Key key) {
    return numbers.try_emplace(std::move(key), static_cast<std::int32_t>(numbers.size())).first->second;
  }

  std::span<const Plan> plans_;
  const Machine& machine_;
  Prices prices_;
  std::vector<const Path*> paths_;                        // of the plan that is looked at
  std::vector<int> puts_;                                 // of it by each of these paths
  std::vector<bool> came_;                                // its buffers that another rank's bytes have come to
  std::unordered_set<std::uint64_t, Mixed> ways_;         // ranks between which bytes cross
  std::unordered_map<std::int32_t, std::int64_t> moved_;  // bytes that a rank gets, or moves within, in an epoch
  std::unordered_map<std::int32_t, int> mutual_peers_;    // of a rank: how many it sends to that send to it
  std::unordered_map<Link, std::int64_t, Mixed> whole_;   // bytes of an epoch
  TouchedByPeers touched_;
  std::set<std::string> guessed_;
  std::unordered_map<std::tuple<std::int32_t, Purpose, std::int32_t, std::int32_t, std::string>, std::int32_t, Mixed>
      counters_;
  std::unordered_map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::int32_t, Mixed> channels_;
};

}  // namespace

Prices priced(std::span<const Plan> plans, const Machine& machine) {
  return Pricing(plans, machine).all();
}

Prices priced_alone(const Plan& plan, const Machine& machine) {
  Pricing pricing({&plan, 1}, machine);
  pricing.expect(plan);
  return pricing.all();
}

}  // namespace tasuki::detail
