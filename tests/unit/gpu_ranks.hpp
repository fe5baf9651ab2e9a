// The ranks of a plan for GPUs without a GPU: each plan is lowered, and its kernels and streams are followed on the
// host, a step at a time, over several epochs with new data. After each the buffers must hold what the plan promises.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "gpu_view.hpp"
#include "paths/path.hpp"
#include "progress_thread.hpp"
#include "row_view.hpp"

namespace gpu_ranks {

using namespace tasuki;
using namespace gpu_view;

using Random = std::mt19937;
using Bytes = std::vector<std::byte>;

inline constexpr std::uint64_t kEpochs = 4;
inline int told = 0;     // puts of streams of which somebody was told by itself
inline int staged = 0;   // kernels in stages
inline int sent_on = 0;  // sums that were stored in two places at once
inline int in_rows = 0;  // ranks whose epochs ran in rows
inline int held = 0;     // epochs in which what has come by messages of a stream was for the wait
inline int carried = 0;  // messages that progress threads carry

class Enqueued final : public StreamChannel {
 public:
  void enqueue(Stream) override {}
};

/// What all ranks share: buffers by owner and label, and messages under way.
struct World {
  std::map<std::pair<int, std::string>, std::shared_ptr<Bytes>> memory;
  std::map<std::array<int, 3>, std::deque<Bytes>> messages;  // of streams: from, to, tag
  ImitatedMpi mpi;
  std::map<std::string, std::string> same_as;  // buffers that lie in the memory of another one, by names
  int ranks = 0;                               // of which all must come to a meeting
  std::map<std::uint64_t, int> came;           // by epoch

  Located where(const Buffer& b) {
    const std::int64_t lines = (b.bytes + kLLLineData - 1) / kLLLineData;
    const std::int64_t room = ((b.home == Home::ll ? lines * kLLLineBytes : b.bytes) + 63) / 64 * 64;
    const auto other = same_as.find(std::string(b.name));
    auto& found = memory[{b.rank, other != same_as.end() ? other->second : b.label()}];
    if (!found) found = std::make_shared<Bytes>(static_cast<std::size_t>(room * b.ring + 64));
    std::byte* base = found->data();
    base += (64 - reinterpret_cast<std::uintptr_t>(base) % 64) % 64;
    return {base, room, b.ring, b.ring > 1, b.home == Home::ll, nullptr};
  }
};

inline bool is_users(const Buffer& b) {
  return b.role != Role::signal && b.role != Role::scratch;
}

/// What a user has in a buffer when an epoch begins.
inline Bytes data_of(int rank, const std::string& name, std::int64_t bytes, std::uint64_t epoch) {
  Random random(static_cast<unsigned>(rank * 1000 + static_cast<int>(epoch) * 17 + static_cast<int>(name.size())));
  Bytes data(static_cast<std::size_t>(bytes));
  for (auto& byte : data) byte = static_cast<std::byte>(random());
  return data;
}

/// How an epoch is enqueued: as one piece of work (`run`), as a start and a wait, or now so, now so.
enum class Pieces { one, two, either };

/// What the hosts do between start and wait: nothing; each waits for its GPU, so that what the start has enqueued must
/// end first; or it does that, and then meets the others, as where they make another operation.
enum class Between { nothing, idle, meeting };

/// One rank's epochs.
class Rank {
 public:
  Rank(World& world, Plan plan, int blocks, Pieces pieces, bool by_rows = false, bool own = true,
       Between between = Between::nothing, std::uint64_t epochs = kEpochs)
      : world_(world), pieces_(pieces), between_(between), epochs_(epochs), thread_(world.mpi, plan.rank) {
    program_.plan = std::move(plan);
    for (const Buffer& b : program_.plan.buffers) program_.where.push_back(world.where(b));
    for (const Command& c : program_.plan.commands) {
      const Path& path = path_named(program_.plan.paths[static_cast<std::size_t>(c.path)]);
      Channel& channel = program_.channels.emplace_back();
      if (!path.carries(c.verb)) continue;
      if (path.transport != "mpi staged") {
        channel.stream = std::make_unique<Enqueued>();
        continue;
      }
      const auto buffer = static_cast<std::size_t>(c.verb == Verb::send ? c.src : c.dst);
      channel.thread = thread_.carry(c, program_.where[buffer].base + c.offset);
      ++carried;
    }
    told_.resize(program_.plan.commands.size());
    gpu_ = lower(program_, blocks, true, static_cast<int>(kGpuWarps), {}, told_.data(), own);
    if (by_rows && gpu_.messages.empty() && gpu_.direct)
      for (const int parts : {kPartStart, kPartWait, kBoth}) rows_[parts] = rows_of(gpu_, gpu_.tasks[parts], blocks);
    if (rows_[kBoth]) ++in_rows;
    ends_.resize(program_.plan.commands.size() + gpu_.more_ends.size());
    begin();
  }

  const GpuProgram& gpu() const { return gpu_; }
  const std::optional<RowProgram>& rows() const { return rows_[kBoth]; }
  bool done() const { return epoch_ > epochs_; }

  /// Goes on somewhere; false if that is not possible.
  bool advance(Random& random) {
    if (done()) return false;
    if (random() % 2 == 0 && thread_.serve(random)) return true;
    bool moved = false;
    const std::size_t first = random() % streams_.size();
    for (std::size_t s = 0; s < streams_.size() && !moved; ++s)
      moved = proceed(streams_[(first + s) % streams_.size()], random);
    if (std::all_of(streams_.begin(), streams_.end(), [](const Queue& queue) { return queue.empty(); })) {
      if (between_ == Between::meeting && split_ && !came_) {
        came_ = true;
        ++world_.came[epoch_];
      }
      if (came_ && world_.came[epoch_] < world_.ranks) return moved || thread_.serve(random);
      if (wait_is_left_) {
        wait();
        return true;
      }
      check();
      ++epoch_;
      came_ = false;
      if (!done()) begin();
      return true;
    }
    return moved || thread_.serve(random);
  }

  std::string blocked() const {
    std::string text;
    for (const auto& stream : streams_) {
      if (stream.empty()) continue;
      for (const auto& cursor : stream.front().lanes)
        if (cursor.at < cursor.steps.size())
          text += " #" + std::to_string(cursor.steps[cursor.at].command) + " " +
                  std::string(to_string(cursor.steps[cursor.at].verb));
      if (stream.front().messages) text += " messages";
    }
    return text;
  }

 private:
  struct Cursor {
    std::size_t task = 0;
    std::vector<GpuStep> steps;
    std::size_t at = 0;
    std::size_t round = 0;
    bool single = false;  // of single threads, which the rounds do not hold up
    bool ended() const { return at == steps.size(); }
  };
  struct Work {
    int part = 0;
    std::size_t round = 0;
    std::size_t last_round = 0;  // where blocks go from round to round while that of single threads serves them all
    bool messages = false;
    bool begun = false;
    std::size_t sent = 0;
    std::vector<Cursor> lanes = {};
    std::vector<std::size_t> rows = {};  // those that are left
  };
  using Queue = std::deque<Work>;

  void begin() {
    for (std::size_t b = 0; b < program_.plan.buffers.size(); ++b) {
      const Buffer& buffer = program_.plan.buffers[b];
      if (buffer.rank != program_.plan.rank || !is_users(buffer)) continue;
      const Bytes data = data_of(buffer.rank, buffer.name, buffer.bytes, epoch_);
      std::copy(data.begin(), data.end(), program_.where[b].base);
    }
    // Not the same on all ranks: that each of them may choose is part of what is promised.
    split_ = pieces_ == Pieces::two || (pieces_ == Pieces::either && choice_() % 2 == 0);
    if (gpu_.in_line && !split_) {
      kernel(streams_[0], kBefore);
      streams_[0].push_back({0, 0, 0, true});
      kernel(streams_[0], kAfter);
      return;
    }
    const bool parts = split_ || gpu_.wait_after;
    if (gpu_.direct) kernel(streams_[0], parts ? kPartStart : kBoth);
    if (!gpu_.messages.empty()) {
      kernel(streams_[1], kPartPack);
      streams_[1].push_back({0, 0, 0, true});
      kernel(streams_[1], kPartUnpack);
    }
    held += gpu_.wait_after ? 1 : 0;
    wait_is_left_ = gpu_.direct && parts;
    if (!(split_ && between_ != Between::nothing) && wait_is_left_) wait();
  }

  void wait() {
    wait_is_left_ = false;
    kernel(streams_[0], kPartWait);
  }

  void kernel(Queue& queue, int part) {
    if (part <= kBoth && rows_[part]) {
      Work work{part};
      for (std::size_t n = 0; n < rows_[part]->rows.size(); ++n) work.rows.push_back(n);
      if (!work.rows.empty()) queue.push_back(work);
      return;
    }
    const auto& rounds = gpu_.rounds[part];
    if (!rounds.empty() && !rounds.back().single) {
      queue.push_back({part, 0, rounds.size() - 1});
      ++staged;
      return;
    }
    for (std::size_t round = 0; round < rounds.size(); ++round) queue.push_back({part, round, round});
  }

  bool proceed(Queue& queue, Random& random) {
    if (queue.empty()) return false;
    Work& work = queue.front();
    if (!work.rows.empty()) {
      const std::size_t first = random() % work.rows.size();
      for (std::size_t i = 0; i < work.rows.size(); ++i) {
        const std::size_t n = (first + i) % work.rows.size();
        if (!RowView(*rows_[work.part]).run(work.rows[n], epoch_)) continue;
        work.rows.erase(work.rows.begin() + static_cast<std::ptrdiff_t>(n));
        if (!work.rows.empty()) return true;
        for (const auto end : rows_[work.part]->ends) ++ends_[static_cast<std::size_t>(end)];
        queue.pop_front();
        return true;
      }
      return false;
    }
    if (work.messages) {
      if (!exchange(work)) return false;
      queue.pop_front();
      return true;
    }
    if (work.part == kPartWait && gpu_.wait_after && !streams_[1].empty()) return false;
    if (!work.begun) {
      work.begun = true;
      for (std::size_t r = work.round; r <= work.last_round; ++r) {
        const GpuRound& round = gpu_.rounds[work.part][r];
        for (auto t = round.first_task; t < round.last_task; ++t) {
          const auto task = static_cast<std::size_t>(t);
          for (auto& steps : View(gpu_, gpu_.tasks[work.part][task]).lanes())
            if (!steps.empty())
              work.lanes.push_back({task, std::move(steps), 0, r, round.single && t == round.first_task});
        }
      }
    }
    const auto may_go_on = [&](const Cursor& lane) {
      return !lane.ended() &&
             (lane.single || std::all_of(work.lanes.begin(), work.lanes.end(), [&](const Cursor& other) {
                return other.single || other.ended() || other.round >= lane.round;
              }));
    };
    bool moved = false;
    bool left = false;
    const std::size_t first = work.lanes.empty() ? 0 : random() % work.lanes.size();
    for (std::size_t i = 0; i < work.lanes.size() && !moved; ++i) {
      Cursor& lane = work.lanes[(first + i) % work.lanes.size()];
      if (may_go_on(lane)) moved = step(View(gpu_, gpu_.tasks[work.part][lane.task]), lane, blocks_of(work.part, lane));
    }
    for (const Cursor& lane : work.lanes) left = left || !lane.ended();
    if (!left) queue.pop_front();
    return moved || !left;
  }

  std::uint64_t target_of(const GpuStep& step) const { return gpu_view::target_of(step, epoch_); }

  // How many blocks run the lane's task: each of several adds its share to the ends that it gives.
  std::int32_t blocks_of(int part, const Cursor& lane) const {
    const GpuRound& round = gpu_.rounds[part][lane.round];
    const auto next = static_cast<std::int32_t>(lane.task) + 1;
    if (lane.single) return 1;
    const std::int32_t end =
        next < round.last_task ? gpu_.tasks[part][static_cast<std::size_t>(next)].first_block : round.blocks;
    return end - gpu_.tasks[part][lane.task].first_block;
  }

  bool step(const View& view, Cursor& lane, std::int32_t blocks) {
    const GpuStep& s = lane.steps[lane.at];
    for (const auto dep : view.deps(s))
      if (ends_[static_cast<std::size_t>(dep)] < epoch_) return false;
    if (s.verb == Verb::wait && *s.counter < target_of(s)) return false;
    sent_on += s.sends;
    if (s.tiles > 0) {
      if (!flags(view, lane, false)) return false;
      follow(view, s, epoch_);
      flags(view, lane, true);
    }
    if (s.verb == Verb::signal) *s.counter = target_of(s);
    std::uint64_t& end = ends_[static_cast<std::size_t>(s.end)];
    if (s.awaited != 0) end = s.awaited == kAwaited && blocks > 1 ? end + 1 : epoch_;
    lane.at += 1 + static_cast<std::size_t>(s.followers) + static_cast<std::size_t>(s.joined);
    return true;
  }

  // Sets the flags of what a step and those with it fill, or says whether those are there that they take.
  bool flags(const View& view, const Cursor& lane, bool set) const {
    const GpuStep& head = lane.steps[lane.at];
    const auto flag = static_cast<std::byte>(epoch_ & 0xff);
    for (std::int32_t k = 0; k <= head.followers + head.joined; ++k) {
      const GpuStep& s = lane.steps[lane.at + static_cast<std::size_t>(k)];
      if (s.ll_side != (set ? kLLTarget : kLLSource)) continue;
      for (std::int32_t c = s.first_copy; c < s.first_copy + s.copies; ++c) {
        const auto copy = view.get<GpuCopy>(view.header.copies, c);
        std::byte* const lines = base_of(set ? s.dst : s.src, epoch_) + (set ? copy.dst_offset : copy.src_offset);
        for (std::uint32_t unit = 0; unit < copy.units; ++unit) {
          if (unit % kLineWords >= 32) continue;
          std::byte& there =
              lines[static_cast<std::size_t>(unit / kLineWords) * kLLLineBytes + unit % kLineWords * 16 + 15];
          if (set) there = flag;
          if (there != flag) return false;
        }
      }
    }
    return true;
  }

  // All messages of the epoch, in one group: what is sent first, then what is received. False if it has not ended.
  bool exchange(Work& work) {
    const Plan& plan = program_.plan;
    const auto at = [&](std::int32_t buffer, std::int64_t offset) {
      return program_.where[static_cast<std::size_t>(buffer)].base + offset;
    };
    if (!work.begun) {
      work.begun = true;
      for (const auto index : gpu_.messages) {
        const Command& c = plan.commands[static_cast<std::size_t>(index)];
        if (c.verb == Verb::send)
          world_.messages[{plan.rank, c.peer, c.tag}].emplace_back(at(c.src, c.offset), at(c.src, c.offset + c.bytes));
        for (auto k = c.first_copy; c.verb == Verb::put && k < c.first_copy + c.copy_count; ++k) {
          const StridedCopy& copy = plan.copies[static_cast<std::size_t>(k)];
          select_copy(copy)(copy, at(c.src, 0), at(c.dst, 0));
        }
        for (const StreamSignal& signal : gpu_.stream_signals) {
          if (signal.message != index) continue;
          *signal.counter = *signal.word;
          if (signal.end >= 0)
            ends_[static_cast<std::size_t>(signal.end)] = ends_[static_cast<std::size_t>(signal.prepared)];
          ++told;
        }
      }
    }
    for (; work.sent < gpu_.messages.size(); ++work.sent) {
      const Command& c = plan.commands[static_cast<std::size_t>(gpu_.messages[work.sent])];
      if (c.verb != Verb::recv) continue;
      auto& queue = world_.messages[{c.peer, plan.rank, c.tag}];
      if (queue.empty()) return false;
      std::copy(queue.front().begin(), queue.front().end(), at(c.dst, c.offset));
      queue.pop_front();
    }
    return true;
  }

  // The rank's buffers hold what its plan promises.
  void check() const {
    const Plan& plan = program_.plan;
    std::map<int, Bytes> expected;  // by buffer
    const auto given = [&](std::int32_t b) {
      const Buffer& buffer = plan.buffers[static_cast<std::size_t>(b)];
      return data_of(buffer.rank, buffer.name, buffer.bytes, epoch_);
    };
    for (const Expect& e : plan.expects) {
      const Bytes src = given(e.src);
      Bytes& dst = expected.try_emplace(e.dst, given(e.dst)).first->second;
      for (auto k = e.first_copy; k < e.first_copy + e.copy_count; ++k) {
        const StridedCopy& copy = plan.copies[static_cast<std::size_t>(k)];
        const auto f = e.dtype == DType::none ? select_copy(copy) : select_reduce(copy, e.dtype, e.op);
        f(copy, src.data(), dst.data());
      }
    }
    for (const auto& [b, bytes] : expected)
      CHECK(std::equal(bytes.begin(), bytes.end(), program_.where[static_cast<std::size_t>(b)].base));
  }

  World& world_;
  Pieces pieces_;
  bool split_ = false;  // this epoch
  Between between_;
  bool wait_is_left_ = false;
  bool came_ = false;  // to this epoch's meeting
  std::uint64_t epochs_;
  ProgressThread thread_;
  Program program_;
  GpuProgram gpu_;
  std::optional<RowProgram> rows_[kBoth + 1];  // by parts
  std::vector<std::uint64_t> told_;            // by command
  std::vector<std::uint64_t> ends_;
  std::uint64_t epoch_ = 1;
  Random choice_{static_cast<unsigned>(program_.plan.rank + 7)};
  std::array<Queue, 2> streams_;  // the caller's, that of messages
};

}  // namespace gpu_ranks
