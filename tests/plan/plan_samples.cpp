// Plans written by hand; see the header.
#include "plan_samples.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <tuple>

#include "plan/passes/pass.hpp"

namespace tasuki::samples {

Hand::Hand(std::string operation, std::int32_t rank, std::int32_t ranks) {
  plan.operation = std::move(operation);
  plan.rank = rank;
  plan.ranks = ranks;
  plan.paths = {"shared"};
}

std::int32_t Hand::buffer(std::string name, std::int32_t rank, Role role, std::int64_t bytes, std::int32_t ring) {
  plan.buffers.push_back(
      {.name = std::move(name), .rank = rank, .role = role, .bytes = bytes, .ring = static_cast<std::int16_t>(ring)});
  return static_cast<std::int32_t>(plan.buffers.size()) - 1;
}

std::int32_t Hand::counter(std::string name, std::int32_t rank, std::int32_t per_epoch) {
  plan.buffers.push_back(
      {.name = std::move(name), .rank = rank, .role = Role::signal, .bytes = 8, .per_epoch = per_epoch});
  return static_cast<std::int32_t>(plan.buffers.size()) - 1;
}

void Hand::loop(std::int64_t count) {
  plan.loops.push_back({count});
  loop_ = static_cast<std::int32_t>(plan.loops.size()) - 1;
}

Command& Hand::add(Verb verb) {
  Command command;
  command.verb = verb;
  command.lane = lane_;
  command.loop = loop_;
  plan.commands.push_back(command);
  return plan.commands.back();
}

std::pair<std::int32_t, std::int32_t> Hand::range(const std::vector<StridedCopy>& copies) {
  const auto first = static_cast<std::int32_t>(plan.copies.size());
  plan.copies.insert(plan.copies.end(), copies.begin(), copies.end());
  return {first, static_cast<std::int32_t>(copies.size())};
}

std::int32_t Hand::wait(std::int32_t counter, std::int32_t lag, bool credit) {
  Command& c = add(Verb::wait);
  c.src = counter;
  c.lag = lag;
  c.credit = credit;
  return last();
}

std::int32_t Hand::signal(std::int32_t counter) {
  Command& c = add(Verb::signal);
  c.dst = counter;
  c.peer = plan.buffers[counter].rank;
  return last();
}

std::int32_t Hand::move(Verb verb, std::int32_t src, std::int32_t dst, std::vector<StridedCopy> copies,
                        std::int64_t step) {
  Command& c = add(verb);
  c.src = src;
  c.dst = dst;
  const std::int32_t there = plan.buffers[verb == Verb::put ? dst : src].rank;
  c.peer = there == plan.rank ? -1 : there;
  std::tie(c.first_copy, c.copy_count) = range(copies);
  for (const StridedCopy& copy : copies) c.bytes += copy.bytes();
  c.src_step = c.dst_step = step;
  return last();
}

std::int32_t Hand::reduce(std::int32_t src, std::int32_t dst, std::vector<StridedCopy> copies, DType dtype,
                          ReduceOp op) {
  const std::int32_t index = move(Verb::reduce, src, dst, std::move(copies));
  plan.commands[index].dtype = dtype;
  plan.commands[index].op = op;
  return index;
}

std::int32_t Hand::send(std::int32_t src, std::int64_t bytes, std::int32_t peer, std::int32_t tag) {
  Command& c = add(Verb::send);
  c.src = src;
  c.bytes = bytes;
  c.peer = peer;
  c.tag = tag;
  return last();
}

std::int32_t Hand::recv(std::int32_t dst, std::int64_t bytes, std::int32_t peer, std::int32_t tag) {
  Command& c = add(Verb::recv);
  c.dst = dst;
  c.bytes = bytes;
  c.peer = peer;
  c.tag = tag;
  return last();
}

void Hand::after(std::int32_t command, std::initializer_list<std::int32_t> deps) {
  plan.commands[command].first_dep = static_cast<std::int32_t>(plan.deps.size());
  plan.commands[command].dep_count = static_cast<std::int32_t>(deps.size());
  plan.deps.insert(plan.deps.end(), deps);
}

void Hand::expect(std::int32_t src, std::int32_t dst, std::vector<StridedCopy> copies, DType dtype, ReduceOp op,
                  bool in_order) {
  const auto [first, count] = range(copies);
  plan.expects.push_back({src, dst, first, count, dtype, op, in_order});
}

StridedCopy column(std::int64_t from, std::int64_t to) {
  StridedCopy copy;
  copy.src_offset = from * kCell;
  copy.dst_offset = to * kCell;
  copy.block = kCell;
  copy.ndims = 1;
  copy.dims[0] = {kRows, kRow, kRow};
  return copy;
}

namespace {

constexpr std::int64_t kFace = kRows * kCell;

/// Contiguous bytes from one offset to another.
StridedCopy piece(std::int64_t from, std::int64_t to, std::int64_t bytes) {
  StridedCopy copy;
  copy.src_offset = from;
  copy.dst_offset = to;
  copy.block = bytes;
  return copy;
}

/// The face that leaves in a direction, the halo column that it becomes.
std::int64_t face(int direction) {
  return direction == 0 ? 4 : 1;
}
std::int64_t halo(int direction) {
  return direction == 0 ? 0 : 5;
}

/// A column gathered into contiguous bytes, and the reverse.
StridedCopy packed(std::int64_t from) {
  StridedCopy copy = column(from, 0);
  copy.dims[0].dst_stride = kCell;
  return copy;
}
StridedCopy unpacked(std::int64_t to) {
  StridedCopy copy = column(0, to);
  copy.dims[0].src_stride = kCell;
  return copy;
}

/// One direction of the ring as one rank sees it.
struct Side {
  int direction = 0;
  std::int32_t to = 0, from = 0;                         ///< ranks
  std::int32_t field = 0, field_to = 0, field_from = 0;  ///< buffers
  std::string of(std::string what) const { return what + (direction == 0 ? " right" : " left"); }
};

/// How both ends of one direction work: `give` adds the commands of the sender, `take` those of the receiver.
struct Form {
  virtual ~Form() = default;
  virtual void give(Hand& hand, const Side& side) const = 0;
  virtual void take(Hand& hand, const Side& side) const = 0;
};

std::vector<Plan> ring_halo(std::int32_t ranks, std::int32_t ring, const Form& form) {
  std::vector<Plan> plans;
  for (std::int32_t r = 0; r < ranks; ++r) {
    Hand hand("halo p", r, ranks);
    std::vector<std::int32_t> fields;
    for (std::int32_t q = 0; q < ranks; ++q) fields.push_back(hand.buffer("p", q, Role::inout, kField, ring));
    for (int d = 0; d < 2; ++d) {
      const std::int32_t right = (r + 1) % ranks, left = (r + ranks - 1) % ranks;
      Side side{d, d == 0 ? right : left, d == 0 ? left : right, fields[r], 0, 0};
      side.field_to = fields[side.to];
      side.field_from = fields[side.from];
      hand.lane(2 * d);
      form.give(hand, side);
      hand.lane(2 * d + 1);
      form.take(hand, side);
      hand.expect(side.field_from, side.field, {column(face(d), halo(d))});
    }
    plans.push_back(std::move(hand.plan));
  }
  return plans;
}

std::vector<Plan> one_way(std::int32_t ring, const Form& form) {
  std::vector<Plan> plans;
  for (std::int32_t r = 0; r < 2; ++r) {
    Hand hand("transfer p", r, 2);
    const auto giver = hand.buffer("p", 0, Role::inout, kField, ring);
    const auto taker = hand.buffer("p", 1, Role::inout, kField, ring);
    if (r == 0) form.give(hand, {0, 1, 1, giver, taker, taker});
    if (r == 1) form.take(hand, {0, 0, 0, taker, giver, giver});
    if (r == 1) hand.expect(giver, taker, {column(face(0), halo(0))});
    plans.push_back(std::move(hand.plan));
  }
  return plans;
}

struct Put : Form {
  std::int32_t lag = 0;
  explicit Put(std::int32_t ready_lag) : lag(ready_lag) {}
  void give(Hand& hand, const Side& side) const override {
    hand.wait(hand.counter(side.of("ready"), hand.plan.rank), lag);
    hand.move(Verb::put, side.field, side.field_to, {column(face(side.direction), halo(side.direction))});
    hand.signal(hand.counter(side.of("arrived"), side.to));
  }
  void take(Hand& hand, const Side& side) const override {
    hand.signal(hand.counter(side.of("ready"), side.from));
    hand.wait(hand.counter(side.of("arrived"), hand.plan.rank));
  }
};

struct Pull : Form {
  void give(Hand& hand, const Side& side) const override {
    hand.signal(hand.counter(side.of("avail"), side.to));
    hand.wait(hand.counter(side.of("done"), hand.plan.rank));
  }
  void take(Hand& hand, const Side& side) const override {
    hand.wait(hand.counter(side.of("avail"), hand.plan.rank));
    hand.move(Verb::copy, side.field_from, side.field, {column(face(side.direction), halo(side.direction))});
    hand.signal(hand.counter(side.of("done"), side.from));
  }
};

struct Message : Form {
  void give(Hand& hand, const Side& side) const override {
    const auto out = hand.buffer(side.of("out"), hand.plan.rank, Role::scratch, kFace);
    hand.move(Verb::copy, side.field, out, {packed(face(side.direction))});
    hand.send(out, kFace, side.to, side.direction);
  }
  void take(Hand& hand, const Side& side) const override {
    const auto in = hand.buffer(side.of("in"), hand.plan.rank, Role::scratch, kFace);
    hand.recv(in, kFace, side.from, side.direction);
    hand.move(Verb::copy, in, side.field, {unpacked(halo(side.direction))});
  }
};

struct Eager : Form {
  std::int32_t ring, lag;
  Eager(std::int32_t copies, std::int32_t credit_lag) : ring(copies), lag(credit_lag) {}
  void give(Hand& hand, const Side& side) const override {
    const auto in = hand.buffer(side.of("in"), side.to, Role::scratch, kFace, ring);
    hand.wait(hand.counter(side.of("credit"), hand.plan.rank), lag, lag > 0);
    hand.move(Verb::put, side.field, in, {packed(face(side.direction))});
    hand.signal(hand.counter(side.of("arrived"), side.to));
  }
  void take(Hand& hand, const Side& side) const override {
    const auto in = hand.buffer(side.of("in"), hand.plan.rank, Role::scratch, kFace, ring);
    hand.wait(hand.counter(side.of("arrived"), hand.plan.rank));
    hand.move(Verb::copy, in, side.field, {unpacked(halo(side.direction))});
    hand.signal(hand.counter(side.of("credit"), side.from));
  }
};

}  // namespace

std::vector<Plan> put_halo(std::int32_t ranks) {
  return ring_halo(ranks, 1, Put(0));
}
std::vector<Plan> alternating_halo(std::int32_t ranks, std::int32_t lag) {
  return ring_halo(ranks, 2, Put(lag));
}
std::vector<Plan> pull_halo(std::int32_t ranks) {
  return ring_halo(ranks, 1, Pull());
}
std::vector<Plan> message_halo(std::int32_t ranks) {
  return ring_halo(ranks, 1, Message());
}
std::vector<Plan> eager_halo(std::int32_t ranks, std::int32_t ring, std::int32_t lag) {
  return ring_halo(ranks, 1, Eager(ring, lag));
}
std::vector<Plan> eager_transfer(std::int32_t ring, std::int32_t lag) {
  return one_way(1, Eager(ring, lag));
}
std::vector<Plan> alternating_transfer(std::int32_t lag) {
  return one_way(2, Put(lag));
}

std::vector<Plan> chain_broadcast() {
  constexpr std::int64_t kChunk = 64, kChunks = 4;
  std::vector<Plan> plans;
  for (std::int32_t r = 0; r < 3; ++r) {
    Hand hand("broadcast data", r, 3);
    const auto data = hand.buffer("data", r, Role::inout, kChunk * kChunks);
    const auto root = r == 0 ? data : hand.buffer("data", 0, Role::inout, kChunk * kChunks);
    if (r < 2) {
      const auto next = hand.buffer("data", r + 1, Role::inout, kChunk * kChunks);
      const auto arrived_next = hand.counter("arrived", r + 1, kChunks);
      hand.wait(hand.counter("ready", r));
      hand.loop(kChunks);
      if (r > 0) hand.wait(hand.counter("arrived", r, kChunks));
      hand.move(Verb::put, data, next, {piece(0, 0, kChunk)}, kChunk);
      hand.signal(arrived_next);
      hand.end_loop();
      hand.lane(1);
    }
    if (r > 0) hand.signal(hand.counter("ready", r - 1));
    if (r == 2) {
      hand.loop(kChunks);
      hand.wait(hand.counter("arrived", r, kChunks));
      hand.end_loop();
    }
    if (r > 0) hand.expect(root, data, {piece(0, 0, kChunk * kChunks)});
    plans.push_back(std::move(hand.plan));
  }
  return plans;
}

std::vector<Plan> reverse_add() {
  std::vector<Plan> plans;
  for (std::int32_t r = 0; r < 3; ++r) {
    Hand hand("halo add p", r, 3);
    const auto own = hand.buffer("p", r, Role::inout, kField);
    if (r != 1) {
      hand.signal(hand.counter(r == 0 ? "avail left" : "avail right", 1));
      hand.wait(hand.counter("done", r));
    } else {
      std::int32_t first = -1;
      for (const std::int32_t from : {0, 2}) {
        const auto there = hand.buffer("p", from, Role::inout, kField);
        const auto avail = hand.counter(from == 0 ? "avail left" : "avail right", 1);
        const auto done = hand.counter("done", from);
        hand.lane(from / 2);
        hand.wait(avail);
        const auto reduce = hand.reduce(there, own, {column(5, 1)}, DType::f64);
        hand.signal(done);
        if (first >= 0) hand.after(reduce, {first});
        first = reduce;
        hand.expect(there, own, {column(5, 1)}, DType::f64);
      }
    }
    plans.push_back(std::move(hand.plan));
  }
  return plans;
}

std::vector<Plan> parted(std::vector<Plan> plans) {
  for (Plan& plan : plans) message_order(plan, std::vector<bool>(plan.paths.size(), true));
  return plans;
}

std::vector<std::pair<std::string, std::vector<Plan>>> all() {
  std::vector<std::pair<std::string, std::vector<Plan>>> list;
  for (const std::int32_t ranks : {2, 3}) {
    const std::string on = " on " + std::to_string(ranks);
    list.emplace_back("put halo" + on, put_halo(ranks));
    list.emplace_back("pull halo" + on, pull_halo(ranks));
    list.emplace_back("message halo" + on, message_halo(ranks));
    list.emplace_back("parted message halo" + on, parted(message_halo(ranks)));
    list.emplace_back("eager halo" + on, eager_halo(ranks, 2, 1));
    list.emplace_back("alternating halo" + on, alternating_halo(ranks, 1));
  }
  list.emplace_back("eager transfer", eager_transfer(3, 2));
  list.emplace_back("alternating transfer", alternating_transfer(1));
  list.emplace_back("chain broadcast", chain_broadcast());
  list.emplace_back("reverse add", reverse_add());
  for (const std::int32_t ranks : {3, 4, 5}) {
    const std::string on = " on " + std::to_string(ranks);
    list.emplace_back("tree allreduce" + on, tree_allreduce(ranks));
    list.emplace_back("doubling allreduce" + on, doubling_allreduce(ranks));
    list.emplace_back("ring allreduce" + on, ring_allreduce(ranks));
  }
  list.emplace_back("chain reduce", chain_reduce(3));
  return list;
}

std::int32_t nth(const Plan& plan, Verb verb, std::int32_t n) {
  for (std::int32_t i = 0; i < std::ssize(plan.commands); ++i) {
    if (plan.commands[i].verb == verb && n-- == 0) return i;
  }
  FAIL("rank ", plan.rank, " has no such command");
  return -1;
}

void idle(Plan& plan, std::int32_t command) {
  Command& c = plan.commands[command];
  Command copy;
  copy.lane = c.lane;
  copy.loop = c.loop;
  copy.src = copy.dst = static_cast<std::int32_t>(plan.buffers.size());
  Buffer idle;
  idle.name = "idle " + std::to_string(plan.buffers.size());
  idle.rank = plan.rank;
  idle.bytes = 2 * kCell;
  plan.buffers.push_back(idle);
  copy.first_copy = static_cast<std::int32_t>(plan.copies.size());
  copy.copy_count = 1;
  copy.bytes = kCell;
  plan.copies.emplace_back().block = kCell;
  plan.copies.back().dst_offset = kCell;
  c = copy;
}

bool tells(const VerifyReport& report, std::initializer_list<std::string> words) {
  for (const std::string& problem : report.problems) {
    if (std::ranges::all_of(words, [&](const std::string& w) { return problem.find(w) != std::string::npos; })) {
      return true;
    }
  }
  std::string wanted;
  for (const std::string& word : words) wanted += " [" + word + "]";
  MESSAGE("no problem tells", wanted, " in\n", report.text());
  return false;
}

}  // namespace tasuki::samples
