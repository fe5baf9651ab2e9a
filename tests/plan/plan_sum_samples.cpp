// Reductions written by hand, for the tests of the plan room: by a binomial tree, by recursive doubling, round a ring,
// along a chain in chunks. See plan_samples.hpp.
#include <algorithm>

#include "plan_samples.hpp"

namespace tasuki::samples {
namespace {

constexpr std::int64_t kBytes = kSummed * kCell;

StridedCopy piece(std::int64_t from, std::int64_t to, std::int64_t bytes = kBytes) {
  StridedCopy copy;
  copy.src_offset = from;
  copy.dst_offset = to;
  copy.block = bytes;
  return copy;
}

/// A rank with its `in` and `out`, who was promised everybody's sum.
struct Rank : Hand {
  std::int32_t in = -1, out = -1;
  Rank(std::int32_t rank, std::int32_t ranks, std::int64_t bytes) : Hand("allreduce", rank, ranks) {
    in = buffer("in", rank, Role::input, bytes);
    out = buffer("out", rank, Role::output, bytes);
    expect(in, out, {piece(0, 0, bytes)});
    for (std::int32_t q = 0; q < ranks; ++q) {
      if (q != rank) expect(of("in", q, Role::input, bytes), out, {piece(0, 0, bytes)}, DType::f64);
    }
  }
  std::int32_t scratch(const std::string& name, std::int64_t bytes = kBytes) {
    return buffer(name, plan.rank, Role::scratch, bytes);
  }
  /// A peer's buffer.
  std::int32_t of(const std::string& name, std::int32_t rank, Role role, std::int64_t bytes = kBytes) {
    for (std::int32_t b = 0; b < std::ssize(plan.buffers); ++b) {
      if (plan.buffers[b].name == name && plan.buffers[b].rank == rank) return b;
    }
    return buffer(name, rank, role, bytes);
  }
  std::int32_t copy(std::int32_t src, std::int32_t dst, StridedCopy c = piece(0, 0)) {
    return move(Verb::copy, src, dst, {c});
  }
};

/// Two words of one rank's about another: `name.owner<writer`.
std::string about(const std::string& name, std::int32_t owner, std::int32_t writer) {
  return name + '.' + std::to_string(owner) + '<' + std::to_string(writer);
}

}  // namespace

std::vector<Plan> tree_allreduce(std::int32_t ranks) {
  std::vector<Plan> plans;
  for (std::int32_t r = 0; r < ranks; ++r) {
    Rank rank(r, ranks, kBytes);
    const auto acc = rank.scratch("acc");
    rank.copy(rank.in, acc);
    std::vector<std::int32_t> children;
    std::int32_t parent = -1;
    for (std::int32_t m = 1; m < ranks && parent < 0; m *= 2) {
      if (r & m) {
        parent = r - m;
      } else if (r + m < ranks) {
        children.push_back(r + m);
      }
    }
    for (const std::int32_t child : children) {
      const auto slot = rank.scratch("slot " + std::to_string(child));
      rank.recv(slot, kBytes, child, 0);
      rank.reduce(slot, acc, {piece(0, 0)}, DType::f64);
    }
    if (parent >= 0) {
      rank.send(acc, kBytes, parent, 0);
      rank.recv(rank.out, kBytes, parent, 1);
    } else {
      rank.copy(acc, rank.out);
    }
    for (const std::int32_t child : children) rank.send(rank.out, kBytes, child, 1);
    plans.push_back(std::move(rank.plan));
  }
  return plans;
}

std::vector<Plan> doubling_allreduce(std::int32_t ranks) {
  std::int32_t pairs = 1;
  while (2 * pairs <= ranks) pairs *= 2;
  std::vector<Plan> plans;
  for (std::int32_t r = 0; r < ranks; ++r) {
    Rank rank(r, ranks, kBytes);
    const auto tell = [&](const std::string& what, std::int32_t to) {
      rank.signal(rank.counter(about(what, to, r), to));
    };
    const auto hear = [&](const std::string& what, std::int32_t from) {
      rank.wait(rank.counter(about(what, r, from), r));
    };
    if (r >= pairs) {
      const std::int32_t helper = r - pairs;
      tell("given", helper);
      hear("taken", helper);
      hear("result", helper);
      rank.copy(rank.of("out", helper, Role::output), rank.out);
      tell("got", helper);
      plans.push_back(std::move(rank.plan));
      continue;
    }
    auto partial = rank.scratch("sum 1");
    rank.copy(rank.in, partial);
    const std::int32_t helped = r + pairs < ranks ? r + pairs : -1;
    if (helped >= 0) {
      hear("given", helped);
      rank.reduce(rank.of("in", helped, Role::input), partial, {piece(0, 0)}, DType::f64);
      tell("taken", helped);
    }
    for (std::int32_t m = 1; m < pairs; m *= 2) {
      const std::int32_t peer = r ^ m;
      const auto next = rank.scratch("sum " + std::to_string(2 * m));
      tell("there " + std::to_string(m), peer);
      rank.copy(partial, next);
      hear("there " + std::to_string(m), peer);
      rank.reduce(rank.of("sum " + std::to_string(m), peer, Role::scratch), next, {piece(0, 0)}, DType::f64);
      tell("read " + std::to_string(m), peer);
      partial = next;
    }
    for (std::int32_t m = 1; m < pairs; m *= 2) hear("read " + std::to_string(m), r ^ m);
    rank.copy(partial, rank.out);
    if (helped >= 0) {
      tell("result", helped);
      hear("got", helped);
    }
    plans.push_back(std::move(rank.plan));
  }
  return plans;
}

std::vector<Plan> ring_allreduce(std::int32_t ranks) {
  std::vector<Plan> plans;
  const std::int64_t all = ranks * kBytes;
  const auto block = [&](std::int32_t b) { return (b + 2 * ranks) % ranks * kBytes; };
  for (std::int32_t r = 0; r < ranks; ++r) {
    const std::int32_t next = (r + 1) % ranks, before = (r + ranks - 1) % ranks;
    Rank rank(r, ranks, all);
    const auto acc = rank.scratch("acc", all);
    const auto out_next = rank.buffer("out", next, Role::output, all);
    const auto arrived = rank.counter("arrived", r, 2 * (ranks - 1));
    const auto arrived_next = rank.counter("arrived", next, 2 * (ranks - 1));
    std::int32_t told = 0, heard = 0;
    rank.copy(rank.in, acc, piece(0, 0, all));
    rank.wait(rank.counter("ready", r));
    for (std::int32_t s = 0; s + 1 < ranks; ++s) {
      const std::string slot = "slot " + std::to_string(s);
      rank.move(Verb::put, acc, rank.buffer(slot, next, Role::scratch, kBytes), {piece(block(r - s), 0)});
      rank.plan.commands[rank.signal(arrived_next)].index = told++;
      rank.plan.commands[rank.wait(arrived)].index = heard++;
      rank.reduce(rank.scratch(slot), acc, {piece(0, block(r - s - 1))}, DType::f64);
    }
    rank.copy(acc, rank.out, piece(block(r + 1), block(r + 1)));
    for (std::int32_t s = 0; s + 1 < ranks; ++s) {
      rank.move(Verb::put, rank.out, out_next, {piece(block(r + 1 - s), block(r + 1 - s))});
      rank.plan.commands[rank.signal(arrived_next)].index = told++;
      rank.plan.commands[rank.wait(arrived)].index = heard++;
    }
    rank.lane(1);
    rank.signal(rank.counter("ready", before));
    plans.push_back(std::move(rank.plan));
  }
  return plans;
}

std::vector<Plan> chain_reduce(std::int32_t ranks) {
  std::vector<Plan> plans;
  for (std::int32_t r = 0; r < ranks; ++r) {
    Hand hand("reduce", r, ranks);
    const auto in = hand.buffer("in", r, Role::input, kBytes);
    const auto sum =
        r == 0 ? hand.buffer("out", r, Role::output, kBytes) : hand.buffer("sum", r, Role::scratch, kBytes);
    if (r > 0) hand.wait(hand.counter("ready", r));
    const bool first = r + 1 == ranks;
    const auto slot = first ? -1 : hand.buffer("slot", r, Role::scratch, kBytes);
    const auto to = r == 0 ? -1 : hand.buffer("slot", r - 1, Role::scratch, kBytes);
    hand.loop(kSummed);
    hand.move(Verb::copy, in, sum, {piece(0, 0, kCell)}, kCell);
    if (!first) {
      hand.wait(hand.counter("arrived", r, kSummed));
      const auto reduce = hand.reduce(slot, sum, {piece(0, 0, kCell)}, DType::f64);
      hand.plan.commands[reduce].src_step = hand.plan.commands[reduce].dst_step = kCell;
    }
    if (r > 0) {
      hand.move(Verb::put, sum, to, {piece(0, 0, kCell)}, kCell);
      hand.signal(hand.counter("arrived", r - 1, kSummed));
    }
    hand.end_loop();
    if (!first) {
      hand.lane(1);
      hand.signal(hand.counter("ready", r + 1));
    }
    if (r == 0) {
      hand.expect(in, sum, {piece(0, 0)});
      for (std::int32_t q = 1; q < ranks; ++q) {
        hand.expect(hand.buffer("in", q, Role::input, kBytes), sum, {piece(0, 0)}, DType::f64, ReduceOp::sum, true);
      }
    }
    plans.push_back(std::move(hand.plan));
  }
  return plans;
}

}  // namespace tasuki::samples
