// Verifier, before execution: whether the plans of all ranks agree about buffers, and whether every message and every
// signal has its counterpart.
#include <fmt/format.h>

#include <algorithm>

#include "plan/label.hpp"
#include "plan/verify/verify.hpp"

namespace tasuki::detail {
namespace {

const Buffer* find(const Plan& plan, const BufferKey& key) {
  const auto it = std::ranges::find_if(
      plan.buffers, [&](const Buffer& buffer) { return buffer.rank == plan.rank && key_of(buffer) == key; });
  return it == plan.buffers.end() ? nullptr : &*it;
}

std::string properties(const Buffer& b) {
  return fmt::format("{}, {} memory, {} bytes, ring {}, per_epoch {}, copies {}", to_string(b.role), to_string(b.home),
                     b.bytes, b.ring, b.per_epoch, b.copies);
}

/// Which buffers the plan's commands name. An expectation may name a buffer of a rank with which this one has no
/// commands; the plan then knows the buffer's size, but not where it is.
std::vector<bool> touched(const Plan& plan) {
  std::vector<bool> used(plan.buffers.size());
  for (const Command& c : plan.commands) {
    for (const std::int32_t buffer : {c.src, c.dst})
      if (buffer >= 0) used[static_cast<std::size_t>(buffer)] = true;
  }
  return used;
}

void compare_buffers(std::span<const Plan> plans, std::vector<std::string>& found) {
  for (const Plan& plan : plans) {
    const std::vector<bool> used = touched(plan);
    for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
      Buffer buffer = plan.buffers[b];
      const Buffer* own = find(plans[buffer.rank], key_of(buffer));
      if (own != nullptr && !used[b]) buffer.home = own->home;
      if (own == nullptr) {
        found.push_back(fmt::format("rank {} names {}, but rank {}'s plan has no such buffer", plan.rank, label(buffer),
                                    buffer.rank));
      } else if (*own != buffer) {
        found.push_back(fmt::format("rank {} takes {} to be {}, but its owner says {}", plan.rank, label(buffer),
                                    properties(buffer), properties(*own)));
      }
    }
  }
}

/// Commands that meet: `out` sends or signals, `in` receives or waits.
struct Pairing {
  struct End {
    std::int32_t rank = 0, command = 0;
  };
  std::vector<End> out, in;
};

class Pairs {
 public:
  explicit Pairs(std::span<const Plan> plans) : plans_(plans) {
    for (const Plan& plan : plans) {
      for (std::int32_t i = 0; i < std::ssize(plan.commands); ++i) {
        const Command& c = plan.commands[i];
        const Pairing::End end{plan.rank, i};
        if (c.verb == Verb::send) messages_[{plan.rank, c.peer, c.tag}].out.push_back(end);
        if (c.verb == Verb::recv) messages_[{c.peer, plan.rank, c.tag}].in.push_back(end);
        if (c.verb == Verb::signal) signals_[{c.peer, key_of(plan.buffers[c.dst])}].out.push_back(end);
        if (c.verb == Verb::wait) signals_[{plan.rank, key_of(plan.buffers[c.src])}].in.push_back(end);
      }
    }
  }

  std::vector<std::string> run() {
    for (const auto& [key, pairing] : messages_)
      messages(std::get<0>(key), std::get<1>(key), std::get<2>(key), pairing);
    for (const auto& [key, pairing] : signals_) signals(*find(plans_[key.first], key.second), pairing);
    return std::move(found_);
  }

 private:
  const Command& at(Pairing::End end) const { return plans_[end.rank].commands[end.command]; }
  std::int64_t count(Pairing::End end) const { return chunks(plans_[end.rank], at(end)); }
  std::string name(Pairing::End end) const { return label(plans_[end.rank], end.command); }
  std::string names(const std::vector<Pairing::End>& ends) const {
    std::string out;
    for (std::size_t i = 0; i < ends.size() && i < 4; ++i) out += (i ? ", " : "") + name(ends[i]);
    return out.empty() ? "none" : ends.size() > 4 ? out + ", ..." : out;
  }

  void messages(std::int32_t from, std::int32_t to, std::int32_t tag, const Pairing& pairing) {
    std::int64_t sent = 0, received = 0;
    for (const auto& end : pairing.out) sent += count(end);
    for (const auto& end : pairing.in) received += count(end);
    if (sent == received) return;
    found_.push_back(
        fmt::format("rank {} sends {} messages with tag {} to rank {} in an epoch ({}), but rank {} receives {} ({})",
                    from, sent, tag, to, names(pairing.out), to, received, names(pairing.in)));
  }

  void signals(const Buffer& counter, const Pairing& pairing) {
    if (pairing.out.empty()) {
      found_.push_back(fmt::format("{} waits for {}, which nobody signals", name(pairing.in[0]), label(counter)));
      return;
    }
    if (pairing.in.empty()) {
      found_.push_back(fmt::format("{} signals {}, for which nobody waits", name(pairing.out[0]), label(counter)));
    }
    for (const auto& end : pairing.out) {
      if (end.rank == pairing.out[0].rank) continue;
      found_.push_back(fmt::format("{} is signalled by two ranks ({}, {}); a counter has one writer", label(counter),
                                   name(pairing.out[0]), name(end)));
      return;
    }
    for (const auto& end : pairing.in) {
      if (at(end).peer == pairing.out[0].rank || at(end).peer == -1) continue;
      found_.push_back(fmt::format("{} waits for rank {}, but {} is signalled by rank {} ({})", name(end), at(end).peer,
                                   label(counter), pairing.out[0].rank, name(pairing.out[0])));
    }
    std::vector<Pairing::End> by_index = pairing.out;
    std::ranges::sort(by_index, {}, [&](const auto& end) { return at(end).index; });
    std::int64_t next = 0;
    for (const auto& end : by_index) {
      if (at(end).index != next) {
        found_.push_back(fmt::format("{} signals index {} of {}, but index {} would be next", name(end), at(end).index,
                                     label(counter), next));
        return;
      }
      next += count(end);
    }
    if (next != counter.per_epoch) {
      found_.push_back(fmt::format("{} is signalled {} times in an epoch ({}), but its per_epoch is {}", label(counter),
                                   next, names(pairing.out), counter.per_epoch));
    }
    std::int64_t awaited = 0;
    for (const auto& end : pairing.in) awaited = std::max(awaited, at(end).index + count(end));
    if (!pairing.in.empty() && awaited < next) {
      found_.push_back(fmt::format("{} is signalled {} times in an epoch ({}), but only {} are waited for ({})",
                                   label(counter), next, names(pairing.out), awaited, names(pairing.in)));
    }
  }

  std::span<const Plan> plans_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, Pairing> messages_;
  std::map<std::pair<std::int32_t, BufferKey>, Pairing> signals_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> disagreements(std::span<const Plan> plans) {
  std::vector<std::string> found;
  for (std::size_t r = 0; r < plans.size(); ++r) {
    const Plan& plan = plans[r];
    if (plan.rank != static_cast<std::int32_t>(r) || plan.ranks != std::ssize(plans)) {
      found.push_back(
          fmt::format("plan {} of {} says that it is rank {} of {}", r, plans.size(), plan.rank, plan.ranks));
    }
    if (plan.operation != plans[0].operation) {
      found.push_back(fmt::format("rank {} plans '{}' while rank 0 plans '{}'", r, plan.operation, plans[0].operation));
    }
    for (std::string& complaint : plan.complaints()) found.push_back(std::move(complaint));
  }
  if (found.empty()) compare_buffers(plans, found);
  return found;
}

std::vector<std::string> unpaired(std::span<const Plan> plans) {
  return Pairs(plans).run();
}

}  // namespace tasuki::detail
