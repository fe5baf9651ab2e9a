// Builder: see builder.hpp.
#include "plan/builder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "plan/share.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

// two strided copies that are joined into a pair have at most this many others between them
constexpr std::ptrdiff_t kClose = 128;

std::int16_t ring_of(int epochs) {
  constexpr int kMost = std::numeric_limits<std::int16_t>::max();
  if (epochs > kMost) throw Error(fmt::format("a ring of {} epochs is longer than {}", epochs, kMost));
  return static_cast<std::int16_t>(epochs);
}

}  // namespace

Builder::Builder(std::string operation, int rank, int ranks) {
  plan_.operation = std::move(operation);
  plan_.rank = rank;
  plan_.ranks = ranks;
}

int Builder::buffer(const Buffer& buffer) {
  auto& buffers = plan_.buffers;
  const auto [entry, added] =
      known_.try_emplace({buffer.rank, buffer.purpose, buffer.link, buffer.writer, buffer.name}, std::ssize(buffers));
  if (added) {
    buffers.push_back(buffer);
    waited_.push_back(0);
  }
  return entry->second;
}

int Builder::buffer(const std::string& name, int rank, Role role, std::int64_t bytes, int ring, Home home) {
  Buffer user;
  user.name = name;
  user.rank = rank;
  user.role = role;
  user.home = home;
  user.bytes = bytes;
  user.ring = ring_of(ring);
  return buffer(user);
}

int Builder::scratch(Purpose purpose, int link, int owner, int writer, std::int64_t bytes, int ring, Home home) {
  Buffer scratch;
  scratch.rank = owner;
  scratch.home = home;
  scratch.purpose = purpose;
  scratch.link = link;
  scratch.writer = writer;
  scratch.bytes = bytes;
  scratch.ring = ring_of(ring);
  return buffer(scratch);
}

int Builder::counter(Purpose purpose, int link, int owner, int writer, Home home) {
  Buffer counter;
  counter.rank = owner;
  counter.role = Role::signal;
  counter.home = home;
  counter.purpose = purpose;
  counter.link = link;
  counter.writer = writer;
  counter.bytes = sizeof(std::uint64_t);
  return buffer(counter);
}

int Builder::counter(const std::string& name, int rank, Home home) {
  return buffer(name, rank, Role::signal, sizeof(std::uint64_t), 1, home);
}

void Builder::begin_lane(int stage) {
  ++lane_;
  stage_ = stage;
}

void Builder::begin_loop(std::int64_t count, std::int64_t step) {
  loop_ = static_cast<int>(plan_.loops.size());
  plan_.loops.push_back({count});
  count_ = count;
  step_ = step;
}

void Builder::end_loop() {
  loop_ = -1;
  count_ = 1;
  step_ = 0;
}

void Builder::set_path(const std::string& name) {
  auto& paths = plan_.paths;
  auto it = std::find(paths.begin(), paths.end(), name);
  path_ = static_cast<int>(it - paths.begin());
  if (it == paths.end()) paths.push_back(name);
}

Command& Builder::add(Verb verb, int peer) {
  Command c;
  c.verb = verb;
  c.peer = peer;
  c.lane = lane_;
  c.stage = static_cast<std::int16_t>(stage_);
  c.path = static_cast<std::int16_t>(path_);
  c.loop = loop_;
  return plan_.commands.emplace_back(c);
}

int Builder::store(std::span<const StridedCopy> copies) {
  auto& all = plan_.copies;
  // Commands that follow each other often name the same copies: they share the last range if it is equal.
  if (all.size() >= copies.size() && std::equal(copies.begin(), copies.end(), all.end() - copies.size())) {
    return static_cast<int>(all.size() - copies.size());
  }
  all.insert(all.end(), copies.begin(), copies.end());
  return static_cast<int>(all.size() - copies.size());
}

// Appends strided copies to the last command if it is alike. Two of them become one if one continues the other or if
// joining them saves memory traffic.
bool Builder::append(Verb verb, int peer, int src, int dst, std::span<const StridedCopy> copies, std::int64_t src_step,
                     std::int64_t dst_step) {
  auto& all = plan_.copies;
  if (verb == Verb::reduce || plan_.commands.empty()) return false;  // additions keep their order
  Command& last = plan_.commands.back();
  if (last.verb != verb || last.lane != lane_ || last.path != path_ || last.peer != peer || last.loop != loop_ ||
      last.src != src || last.dst != dst || last.src_step != src_step || last.dst_step != dst_step) {
    return false;
  }
  const auto count = static_cast<std::size_t>(last.copy_count);
  const auto first = static_cast<std::size_t>(last.first_copy);
  const auto ll = [this](int buffer) { return plan_.buffers[static_cast<std::size_t>(buffer)].home == Home::ll; };
  // in LL memory every strided copy begins a line and fills it in its own order
  const bool may_join = !ll(src) && !ll(dst);
  if (!last_is_own_) {
    last.first_copy = static_cast<std::int32_t>(all.size());
    for (std::size_t k = 0; k < count; ++k) all.push_back(StridedCopy{all[first + k]});
    last_is_own_ = true;
  }
  for (const auto& copy : copies) {
    last.bytes += copy.bytes();
    if (may_join && std::ssize(all) > last.first_copy) {
      if (const auto whole = continued(all.back(), copy)) {
        all.back() = *whole;
        continue;
      }
    }
    // Copies that can be joined follow each other closely; looking at all of many thousands would take seconds.
    const auto begin = std::max(all.begin() + last.first_copy, all.end() - std::min(kClose, std::ssize(all)));
    std::optional<StridedCopy> joined;
    const auto partner = std::find_if(begin, all.end(),
                                      [&](const auto& c) { return may_join && (joined = fused(c, copy)).has_value(); });
    if (partner != all.end()) {
      *partner = *joined;
    } else {
      all.push_back(copy);
    }
  }
  last.copy_count = static_cast<std::int32_t>(all.size()) - last.first_copy;
  return true;
}

int Builder::move(Verb verb, int peer, int src, int dst, std::span<const StridedCopy> copies, std::int64_t src_step,
                  std::int64_t dst_step) {
  if (append(verb, peer, src, dst, copies, src_step, dst_step)) {
    return static_cast<int>(plan_.commands.size()) - 1;
  }
  const auto stored = plan_.copies.size();
  const int first = store(copies);
  last_is_own_ = static_cast<std::size_t>(first) == stored;
  Command& c = add(verb, peer);
  c.src = src;
  c.dst = dst;
  c.first_copy = first;
  c.copy_count = static_cast<std::int32_t>(copies.size());
  for (const auto& copy : copies) c.bytes += copy.bytes();
  c.src_step = src_step;
  c.dst_step = dst_step;
  return static_cast<int>(plan_.commands.size()) - 1;
}

int Builder::copy(int peer, int src, int dst, std::span<const StridedCopy> copies, std::int64_t src_step,
                  std::int64_t dst_step) {
  return move(Verb::copy, peer, src, dst, copies, src_step, dst_step);
}

int Builder::put(int peer, int src, int dst, std::span<const StridedCopy> copies, std::int64_t src_step,
                 std::int64_t dst_step) {
  return move(Verb::put, peer, src, dst, copies, src_step, dst_step);
}

int Builder::reduce(int peer, int src, int dst, std::span<const StridedCopy> copies, std::int64_t src_step,
                    std::int64_t dst_step, DType dtype, ReduceOp op) {
  const int index = move(Verb::reduce, peer, src, dst, copies, src_step, dst_step);
  plan_.commands[index].dtype = dtype;
  plan_.commands[index].op = op;
  return index;
}

int Builder::send(int peer, int src, std::int64_t offset, std::int64_t bytes, int tag, std::int64_t step) {
  Command& c = add(Verb::send, peer);
  c.src = src;
  c.offset = offset;
  c.bytes = bytes;
  c.tag = tag;
  c.src_step = step;
  return static_cast<int>(plan_.commands.size()) - 1;
}

int Builder::recv(int peer, int dst, std::int64_t offset, std::int64_t bytes, int tag, std::int64_t step) {
  Command& c = add(Verb::recv, peer);
  c.dst = dst;
  c.offset = offset;
  c.bytes = bytes;
  c.tag = tag;
  c.dst_step = step;
  return static_cast<int>(plan_.commands.size()) - 1;
}

int Builder::signal(int peer, int counter) {
  Command& c = add(Verb::signal, peer);
  c.dst = counter;
  auto& per_epoch = plan_.buffers[counter].per_epoch;
  c.index = per_epoch;
  per_epoch += static_cast<std::int32_t>(count_);
  return static_cast<int>(plan_.commands.size()) - 1;
}

int Builder::wait(int peer, int counter, int lag, bool credit) {
  Command& c = add(Verb::wait, peer);
  c.src = counter;
  c.lag = lag;
  c.credit = credit;
  c.index = waited_[counter];
  waited_[counter] += static_cast<std::int32_t>(count_);
  plan_.buffers[counter].per_epoch = waited_[counter];
  return static_cast<int>(plan_.commands.size()) - 1;
}

int Builder::wait_for_last(int peer, int counter) {
  Command& c = add(Verb::wait, peer);
  c.src = counter;
  c.lag = 1;
  c.credit = true;
  return static_cast<int>(plan_.commands.size()) - 1;
}

void Builder::number(int wait, int index) {
  Command& c = plan_.commands[static_cast<std::size_t>(wait)];
  c.index = index;
  auto& waited = waited_[static_cast<std::size_t>(c.src)];
  waited = std::max(waited, index + 1);
  plan_.buffers[static_cast<std::size_t>(c.src)].per_epoch = waited;
}

void Builder::depend(int command, int other) {
  deps_.emplace_back(command, other);
}

void Builder::expect(int src, int dst, std::span<const StridedCopy> copies, DType dtype, ReduceOp op, bool in_order) {
  const auto first = static_cast<std::int32_t>(promised_.size());
  promised_.insert(promised_.end(), copies.begin(), copies.end());
  plan_.expects.push_back({src, dst, first, static_cast<std::int32_t>(copies.size()), dtype, op, in_order});
}

Plan Builder::finish() {
  auto& plan = plan_;
  std::stable_sort(deps_.begin(), deps_.end());
  for (const auto& [command, other] : deps_) {
    Command& c = plan.commands[command];
    if (c.dep_count == 0) c.first_dep = static_cast<std::int32_t>(plan.deps.size());
    ++c.dep_count;
    plan.deps.push_back(other);
  }
  for (Expect& e : plan.expects) e.first_copy += static_cast<std::int32_t>(plan.copies.size());
  plan.copies.insert(plan.copies.end(), promised_.begin(), promised_.end());
  share(plan);
  for (auto* v : {&plan.deps}) v->shrink_to_fit();
  plan.buffers.shrink_to_fit();
  plan.commands.shrink_to_fit();
  plan.copies.shrink_to_fit();
  const auto complaints = plan.complaints();
  if (!complaints.empty()) {
    throw Error(fmt::format("rank {}: {}: Tasuki made an unsound plan (a defect in Tasuki): {}", plan.rank,
                            plan.operation, fmt::join(complaints, "; ")));
  }
  return std::move(plan_);
}

}  // namespace tasuki
