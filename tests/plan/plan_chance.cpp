// What the verifier calls sound must be right whatever the schedule: a small executor with real bytes runs sample
// plans, whole and with random changes, in random order, and every plan that verified must end with the promised bytes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "plan_samples.hpp"

using namespace tasuki;

namespace {

using Bytes = std::vector<std::uint8_t>;
using Random = std::mt19937;

std::size_t below(Random& random, std::size_t n) {
  return static_cast<std::size_t>(random() % n);
}

/// Byte offsets of a copy, block by block, in order.
template <class Visit>
void each_block(const StridedCopy& copy, std::int64_t src, std::int64_t dst, std::int32_t dim, Visit visit) {
  if (dim == copy.ndims) return visit(src, dst, copy.block);
  for (std::int64_t i = 0; i < copy.dims[dim].count; ++i) {
    each_block(copy, src + i * copy.dims[dim].src_stride, dst + i * copy.dims[dim].dst_stride, dim + 1, visit);
  }
}

/// Runs plans with real bytes, one command of a random lane at a time.
class Chance {
 public:
  Chance(const std::vector<Plan>& plans, int epochs, unsigned seed) : plans_(plans), epochs_(epochs), random_(seed) {
    buffered_ = below(random_, 2) == 0;
    for (const Plan& plan : plans) {
      Rank& rank = ranks_.emplace_back();
      rank.ended.assign(plan.commands.size(), 0);
      for (std::int32_t i = 0; i < std::ssize(plan.commands); ++i) {
        if (i == 0 || plan.commands[i].lane != plan.commands[i - 1].lane) rank.lanes.push_back({i, i});
        rank.lanes.back().end = i + 1;
      }
      for (const Expect& e : plan.expects) {
        for (std::int32_t k = e.first_copy; e.dtype == DType::none && k < e.first_copy + e.copy_count; ++k) {
          each_block(plan.copies[k], plan.copies[k].src_offset, plan.copies[k].dst_offset, 0,
                     [&](auto, auto dst, auto n) {
                       for (std::int64_t i = dst; i < dst + n; ++i) copied_.insert({plan.rank, e.dst, i});
                     });
        }
      }
      for (const Buffer& b : plan.buffers) memory_[{b.rank, b.name}].assign(b.ring, Bytes(b.bytes));
    }
  }

  /// False if nothing could go on, or a promise was broken.
  bool run() {
    for (int idle = 0; idle < 3000; ++idle) {
      const std::size_t r = below(random_, ranks_.size());
      bool moved = false;
      if (!step(static_cast<std::int32_t>(r), moved)) return false;
      if (moved) idle = 0;
      bool all = true;
      for (const Rank& rank : ranks_) all = all && rank.epoch > epochs_;
      if (all) return true;
    }
    return false;
  }

 private:
  struct Lane {
    std::int32_t begin = 0, end = 0, at = 0;
    std::int64_t chunk = 0;
    bool posted = false, matched = false;
  };
  enum class Stage { writing, running, reading };
  struct Rank {
    int epoch = 1;
    Stage stage = Stage::writing;
    std::vector<Lane> lanes;
    std::vector<int> ended;
  };
  struct Post {
    Lane* lane;
    Bytes bytes;
    std::uint8_t* to;
    std::size_t room;
  };

  std::uint8_t* base(std::int32_t r, std::int32_t buffer) {
    const Buffer& b = plans_[r].buffers[buffer];
    return memory_.at({b.rank, b.name})[ranks_[r].epoch % b.ring].data();
  }

  bool step(std::int32_t r, bool& moved) {
    Rank& rank = ranks_[r];
    if (rank.epoch > epochs_) return true;
    if (rank.stage == Stage::writing) {
      write_inputs(r);
      for (Lane& lane : rank.lanes) lane.at = lane.begin;
      rank.stage = Stage::running;
      return moved = true;
    }
    if (rank.stage == Stage::reading) {
      if (!kept(r)) return false;
      ++rank.epoch;
      rank.stage = Stage::writing;
      return moved = true;
    }
    std::vector<Lane*> open;
    for (Lane& lane : rank.lanes) {
      if (lane.at < lane.end) open.push_back(&lane);
    }
    if (open.empty()) {
      rank.stage = Stage::reading;
      return moved = true;
    }
    moved = command(r, *open[below(random_, open.size())]);
    return true;
  }

  /// New random bytes in whatever anybody expects from this rank, or adds to; what they were is remembered.
  void write_inputs(std::int32_t r) {
    const int epoch = ranks_[r].epoch;
    for (const Plan& plan : plans_) {
      for (const Expect& e : plan.expects) {
        const auto fresh = [&](std::int32_t buffer, std::int64_t offset, std::int64_t n) {
          const Buffer& b = plan.buffers[buffer];
          if (b.rank != r) return;
          Bytes& copy = memory_.at({b.rank, b.name})[epoch % b.ring];
          for (std::int64_t i = offset; i < offset + n; ++i) copy[i] = static_cast<std::uint8_t>(random_());
        };
        for (std::int32_t k = e.first_copy; k < e.first_copy + e.copy_count; ++k) {
          const StridedCopy& copy = plan.copies[k];
          each_block(copy, copy.src_offset, copy.dst_offset, 0, [&](auto src, auto dst, auto n) {
            fresh(e.src, src, n);
            for (std::int64_t i = dst; e.dtype != DType::none && i < dst + n; ++i) {
              if (!copied_.contains({plan.rank, e.dst, i})) fresh(e.dst, i, 1);
            }
          });
        }
      }
    }
    for (const Buffer& b : plans_[r].buffers) {
      if (b.rank == r) written_[{r, b.name, epoch}] = memory_.at({r, b.name})[epoch % b.ring];
    }
  }

  /// Compares this rank's outputs with what the inputs were when their owners started.
  bool kept(std::int32_t r) {
    const Plan& plan = plans_[r];
    const int epoch = ranks_[r].epoch;
    std::map<std::int32_t, Bytes> wanted;
    // Copies first: reductions begin with what they bring.
    std::vector<Expect> expects = plan.expects;
    std::ranges::stable_partition(expects, [](const Expect& e) { return e.dtype == DType::none; });
    for (const Expect& e : expects) {
      const Buffer &from = plan.buffers[e.src], &to = plan.buffers[e.dst];
      const auto source = written_.find({from.rank, from.name, epoch});
      if (source == written_.end()) return false;
      Bytes& want = wanted.try_emplace(e.dst, memory_.at({r, to.name})[epoch % to.ring]).first->second;
      for (std::int32_t k = e.first_copy; k < e.first_copy + e.copy_count; ++k) {
        const StridedCopy& copy = plan.copies[k];
        each_block(copy, copy.src_offset, copy.dst_offset, 0, [&](auto src, auto dst, auto n) {
          const Bytes& own = written_.at({r, to.name, epoch});
          for (std::int64_t i = dst; i < dst + n; ++i) {
            if (promised_.insert({e.dst, i}).second && e.dtype != DType::none) want[i] = own[i];
          }
          put(&source->second[src], &want[dst], n, e.dtype != DType::none);
        });
      }
    }
    promised_.clear();
    for (const auto& [buffer, want] : wanted) {
      const Buffer& b = plan.buffers[buffer];
      if (memory_.at({r, b.name})[epoch % b.ring] != want) return false;
    }
    return true;
  }

  static void put(const std::uint8_t* from, std::uint8_t* to, std::int64_t n, bool add) {
    if (!add) std::memmove(to, from, n);
    for (std::int64_t i = 0; add && i < n; ++i) to[i] = static_cast<std::uint8_t>(to[i] + from[i]);
  }

  bool command(std::int32_t r, Lane& lane) {
    const Plan& plan = plans_[r];
    const Command& c = plan.commands[lane.at];
    Rank& rank = ranks_[r];
    for (std::int32_t d = c.first_dep; d < c.first_dep + c.dep_count; ++d) {
      if (rank.ended[plan.deps[d]] != rank.epoch) return false;
    }
    if (c.verb == Verb::wait || c.verb == Verb::signal) {
      const Buffer& counter = plan.buffers[c.verb == Verb::wait ? c.src : c.dst];
      const int epoch = rank.epoch - c.lag;
      const std::int64_t value = (std::max(epoch, 1) - 1) * counter.per_epoch + c.index + lane.chunk + 1;
      std::int64_t& stands = counters_[{counter.rank, counter.name}];
      if (c.verb == Verb::signal) stands = value;
      if (stands < value && !(c.credit && epoch < 1)) return false;
    } else if (c.verb == Verb::send || c.verb == Verb::recv) {
      if (!lane.posted) post(r, lane);
      if (!lane.matched) return false;
    } else {
      for (std::int32_t k = c.first_copy; k < c.first_copy + c.copy_count; ++k) {
        const StridedCopy& copy = plan.copies[k];
        each_block(copy, copy.src_offset + lane.chunk * c.src_step, copy.dst_offset + lane.chunk * c.dst_step, 0,
                   [&](auto src, auto dst, auto n) {
                     put(base(r, c.src) + src, base(r, c.dst) + dst, n, c.verb == Verb::reduce);
                   });
      }
    }
    advance(plan, rank, lane);
    return true;
  }

  void post(std::int32_t r, Lane& lane) {
    const Command& c = plans_[r].commands[lane.at];
    const bool sends = c.verb == Verb::send;
    lane.posted = true;
    auto& [out, in] = channels_[{sends ? r : c.peer, sends ? c.peer : r, c.tag}];
    if (sends) {
      const std::uint8_t* from = base(r, c.src) + c.offset + lane.chunk * c.src_step;
      out.push_back({&lane, Bytes(from, from + c.bytes), nullptr, 0});
      lane.matched = buffered_;
    } else {
      in.push_back({&lane, {}, base(r, c.dst) + c.offset + lane.chunk * c.dst_step, static_cast<std::size_t>(c.bytes)});
    }
    while (!out.empty() && !in.empty()) {
      std::memcpy(in.front().to, out.front().bytes.data(), std::min(in.front().room, out.front().bytes.size()));
      // A buffered sender may be far ahead; then its lane is not the message's any more.
      if (!buffered_) out.front().lane->matched = true;
      in.front().lane->matched = true;
      out.pop_front();
      in.pop_front();
    }
  }

  static void advance(const Plan& plan, Rank& rank, Lane& lane) {
    const std::int32_t loop = plan.commands[lane.at].loop;
    const bool last = loop < 0 || lane.chunk + 1 == plan.loops[loop].count;
    lane.posted = lane.matched = false;
    if (last) rank.ended[lane.at] = rank.epoch;
    const bool inside = lane.at + 1 < lane.end && loop >= 0 && plan.commands[lane.at + 1].loop == loop;
    if (inside || last) {
      ++lane.at;
      if (!inside) lane.chunk = 0;
    } else {
      while (lane.at > lane.begin && plan.commands[lane.at - 1].loop == loop) --lane.at;
      ++lane.chunk;
    }
  }

  const std::vector<Plan>& plans_;
  int epochs_;
  Random random_;
  bool buffered_ = false;
  std::vector<Rank> ranks_;
  std::map<std::pair<std::int32_t, std::string>, std::vector<Bytes>> memory_;
  std::map<std::tuple<std::int32_t, std::string, int>, Bytes> written_;
  std::map<std::pair<std::int32_t, std::string>, std::int64_t> counters_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::pair<std::deque<Post>, std::deque<Post>>>
      channels_;
  std::set<std::tuple<std::int32_t, std::int32_t, std::int64_t>> copied_;  // bytes that a copy is promised for
  std::set<std::pair<std::int32_t, std::int64_t>> promised_;               // bytes that an expectation has named so far
};

/// One small change somewhere.
void change(std::vector<Plan>& plans, Random& random) {
  Plan& plan = plans[below(random, plans.size())];
  const std::size_t i = below(random, plan.commands.size());
  Command& c = plan.commands[i];
  if (plan.copies.empty()) return;
  const auto other = below(random, plan.commands.size());
  const auto nudge = static_cast<std::int32_t>(below(random, 3)) - 1;
  switch (below(random, 12)) {
    case 0:
      c.lag += nudge;
      break;
    case 1:
      c.index += nudge;
      break;
    case 2:
      c.tag += nudge;
      break;
    case 3:
      c.credit = !c.credit;
      break;
    case 4:
      c.dep_count = 0;
      break;
    case 5: {
      samples::idle(plan, static_cast<std::int32_t>(i));
      break;
    }
    case 6:
      if (plan.commands[other].lane == c.lane && plan.commands[other].loop == c.loop)
        std::swap(c, plan.commands[other]);
      break;
    case 7:
      if (plan.commands[other].lane != c.lane) {
        plan.deps.push_back(static_cast<std::int32_t>(other));
        c.first_dep = static_cast<std::int32_t>(plan.deps.size()) - 1;
        c.dep_count = 1;
      }
      break;
    case 8:
      plan.copies[below(random, plan.copies.size())].src_offset += 8 * nudge;
      break;
    case 9:
      plan.copies[below(random, plan.copies.size())].dst_offset += 8 * nudge;
      break;
    case 10: {
      // Two lanes become one: more order, or a deadlock.
      const std::int32_t from = plan.commands.back().lane;
      for (Command& command : plan.commands) {
        if (command.lane == from) command.lane = std::max(from - 1, 0);
      }
      break;
    }
    default: {
      // A ring of another length, agreed by all.
      const std::string name = plan.buffers[below(random, plan.buffers.size())].name;
      const std::int32_t ring = 1 + static_cast<std::int32_t>(below(random, 3));
      for (Plan& p : plans) {
        for (Buffer& b : p.buffers) {
          if (b.name == name && b.role != Role::signal) b.ring = static_cast<std::int16_t>(ring);
        }
      }
    }
  }
}

bool survives(const std::vector<Plan>& plans, int schedules, unsigned seed) {
  for (int s = 0; s < schedules; ++s) {
    if (!Chance(plans, 6, seed + static_cast<unsigned>(s)).run()) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("sample plans give the promised bytes under random schedules") {
  for (const auto& [name, plans] : samples::all()) {
    CAPTURE(name);
    CHECK(survives(plans, 20, 1));
  }
}

TEST_CASE("changed plans that verify give the promised bytes under random schedules") {
  Random random(5);
  int sound = 0, unsound = 0, seen_to_fail = 0;
  for (int round = 0; round < 60; ++round) {
    for (const auto& [name, plans] : samples::all()) {
      auto changed = plans;
      for (std::size_t k = 1 + below(random, 2); k > 0; --k) change(changed, random);
      if (changed == plans) continue;
      bool complaints = false;
      for (const Plan& plan : changed) complaints |= !plan.complaints().empty();
      if (complaints) continue;
      const VerifyReport report = verify(changed);
      const bool survived = survives(changed, report.ok() ? 10 : 2, static_cast<unsigned>(round));
      ++(report.ok() ? sound : unsound);
      if (!report.ok() && !survived) ++seen_to_fail;
      if (report.ok() && !survived) {
        std::string all;
        for (const Plan& plan : changed) all += to_text(plan);
        FAIL_CHECK(name, " verifies but fails:\n", all);
      }
    }
  }
  // The changes were of both kinds, and many of the refused plans were seen to go wrong.
  CHECK(sound > 30);
  CHECK(unsound > 100);
  CHECK(seen_to_fail > 50);
  MESSAGE(sound, " sound, ", unsound, " refused, of which ", seen_to_fail, " seen to fail");
}
