// Composing steps: lanes of commands, and the dependencies that keep steps in order where they touch the same bytes.
// See steps.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "collectives/steps.hpp"
#include "paths/path.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

// When a step touches this rank's memory, in commands: not before `first` runs, no more when `last` has ended.
struct Touch {
  int first = -1;
  int last = -1;
};

// A link while its lane is emitted.
struct Open {
  Link link;
  const Path* path = nullptr;
  std::int64_t filled = 0;                    // bytes of the rounds so far
  std::size_t left = 0;                       // steps that are not emitted yet
  std::size_t first_step = 0, last_step = 0;  // all steps of the link are between these
  int opened = -1;                            // the first command of its opening, if that has any
  bool is_open = false;
};

class Lanes {
 public:
  Lanes(Composer& composer, const Steps::Listed& listed)
      : composer_(composer),
        builder_(composer.builder()),
        listed_(listed),
        lanes_(listed.lanes),
        touches_(listed.steps.size()),
        open_(listed.flows.size()) {
    for (const Steps::Step& step : listed.steps) {
      if (step.flow >= 0) {
        Open& o = open_[static_cast<std::size_t>(step.flow)];
        if (o.left++ == 0) o.first_step = lane_of_.size();
        o.last_step = lane_of_.size();
      }
      lane_of_.push_back(step.lane);
    }
    if (listed.collective->on_gpu()) part_by_starter();
  }

  void emit() {
    for (const Steps::LaneSteps& lane : lanes_) {
      builder_.begin_lane(lane.stage);
      lane.chunk > 0 ? chunks(lane) : rounds(lane);
    }
    order();
  }

 private:
  // In GPU memory messages lie between kernels, or a thread is asked for them: a lane has those of one kind, or none.
  void part_by_starter() {
    for (std::size_t l = 0; l < listed_.lanes.size(); ++l) {
      if (listed_.lanes[l].chunk > 0) continue;
      std::map<int, std::vector<std::size_t>> kinds;
      for (const std::size_t i : listed_.lanes[l].steps) kinds[starter_of(listed_.steps[i])].push_back(i);
      auto kind = kinds.begin();
      for (lanes_[l].steps = kind->second; ++kind != kinds.end();) {
        for (const std::size_t i : kind->second) lane_of_[i] = static_cast<int>(lanes_.size());
        lanes_.push_back({kind->second, 0, lanes_[l].group, lanes_[l].stage, lanes_[l].at_once});
      }
    }
  }
  int starter_of(const Steps::Step& step) const {
    if (step.flow < 0) return 0;
    const Path& path = composer_.path(static_cast<std::size_t>(step.flow));
    return path.transport.empty() ? 0 : path.in_background ? 1 : 2;
  }

  int next() const { return static_cast<int>(builder_.plan().commands.size()); }
  Open& open_of(const Steps::Step& step) { return open_[static_cast<std::size_t>(step.flow)]; }
  const Steps::Flow& flow_of(const Steps::Step& step) const {
    return listed_.flows[static_cast<std::size_t>(step.flow)];
  }

  const Protocol& enter(const Open& open) {
    builder_.set_path(open.path->name);
    return *open.path->protocol;
  }

  // Opens the step's link if it is not; at most once.
  void open(const Steps::Step& step) {
    Open& o = open_of(step);
    if (o.is_open) return;
    const Steps::Flow& flow = flow_of(step);
    const auto move = static_cast<std::size_t>(step.flow);
    o.link = composer_.link({move}, flow.number);
    o.path = &composer_.path(move);
    o.is_open = true;
    const int first = next();
    const Protocol& protocol = enter(o);
    flow.leaves ? protocol.open_send(builder_, o.link) : protocol.open_recv(builder_, o.link);
    o.opened = next() > first ? first : -1;
  }

  void close(const Steps::Step& step) {
    Open& o = open_of(step);
    if (!o.is_open) return;
    o.is_open = false;
    const bool leaves = flow_of(step).leaves;
    const int first = next();
    const Protocol& protocol = enter(o);
    leaves ? protocol.close_send(builder_, o.link) : protocol.close_recv(builder_, o.link);
    if (!leaves || next() == first) return;
    // A peer that reads this rank's memory tells here that it has.
    for (std::size_t i = o.first_step; i <= o.last_step; ++i)
      if (listed_.steps[i].flow == step.flow && touches_[i].last < 0) touches_[i].last = next() - 1;
  }

  // Where all of a lane's links are open from the start, those that arrive tell first.
  template <class Wanted>
  void each(const Steps::LaneSteps& lane, Wanted&& wanted, void (Lanes::*then)(const Steps::Step&)) {
    for (const std::size_t i : lane.steps)
      if (listed_.steps[i].flow >= 0 && wanted(listed_.steps[i])) (this->*then)(listed_.steps[i]);
  }

  // Whether an earlier step of the lane touches this rank's bytes that a step overwrites when it arrives.
  bool used_before(const Steps::LaneSteps& lane, const Steps::Step& step) const {
    if (step.combines) return false;
    for (const std::size_t i : lane.steps) {
      const Steps::Step& earlier = listed_.steps[i];
      if (&earlier == &step) return false;
      const auto meets = [&](const Place& place) {
        return place.buffer == step.dst.buffer && place.offset < step.dst.offset + step.bytes &&
               step.dst.offset < place.offset + earlier.bytes;
      };
      const bool arrives = earlier.flow >= 0 && !flow_of(earlier).leaves;
      if (earlier.flow != step.flow && ((!arrives && meets(earlier.src)) || meets(earlier.dst))) return true;
    }
    return false;
  }

  void rounds(const Steps::LaneSteps& lane) {
    const auto leaves = [this](const Steps::Step& step) { return flow_of(step).leaves; };
    each(
        lane, [&](const Steps::Step& step) { return !leaves(step) && !used_before(lane, step); }, &Lanes::open);
    // What several ranks send is added up in one pass, so that nothing is told between its parts.
    const bool late = lane.at_once;
    for (const std::size_t i : lane.steps) {
      const Steps::Step& step = listed_.steps[i];
      if (step.flow >= 0) open(step);
      run(i, 0, step.bytes);
      if (step.flow >= 0 && --open_of(step).left == 0 && !leaves(step) && !late) close(step);
    }
    each(
        lane, [&](const Steps::Step& step) { return late && !leaves(step); }, &Lanes::close);
    each(lane, leaves, &Lanes::close);
  }

  // Whether a link of the lane, all of which are open, has a ring of slots.
  bool has_slots(const Steps::LaneSteps& lane) const {
    return std::any_of(lane.steps.begin(), lane.steps.end(), [&](std::size_t i) {
      const int flow = listed_.steps[i].flow;
      return flow >= 0 && open_[static_cast<std::size_t>(flow)].link.slot > 0;
    });
  }

  void chunks(const Steps::LaneSteps& lane) {
    const auto leaves = [this](const Steps::Step& step) { return flow_of(step).leaves; };
    const auto arrives = [this](const Steps::Step& step) { return !flow_of(step).leaves; };
    each(lane, arrives, &Lanes::open);
    each(lane, leaves, &Lanes::open);
    const std::int64_t bytes = listed_.steps[lane.steps.front()].bytes;
    const std::int64_t count = bytes / lane.chunk;
    // A loop goes through memory at an even pace. Chunks of a layout do not, and slots are used in turn.
    const bool loops = count > 1 && !listed_.collective->has_layouts() && !has_slots(lane);
    if (loops) builder_.begin_loop(count, lane.chunk);
    for (std::int64_t chunk = 0; chunk < (loops ? 1 : count); ++chunk)
      for (const std::size_t i : lane.steps) run(i, chunk * lane.chunk, lane.chunk);
    if (loops) builder_.end_loop();
    const std::int64_t done = count * lane.chunk;
    for (const std::size_t i : lane.steps)
      if (bytes > done) run(i, done, bytes - done);
    each(lane, arrives, &Lanes::close);
    each(lane, leaves, &Lanes::close);
  }

  // Emits `bytes` of a step from byte `at` of it on.
  void run(std::size_t i, std::int64_t at, std::int64_t bytes) {
    const Steps::Step& step = listed_.steps[i];
    const int from = step.flow < 0 ? builder_.rank() : flow_of(step).move.src_rank;
    const int to = step.flow < 0 ? builder_.rank() : flow_of(step).move.dst_rank;
    const std::vector<StridedCopy> copies = listed_.collective->copies(
        from, {step.src.buffer, step.src.offset + at}, to, {step.dst.buffer, step.dst.offset + at}, bytes);
    const int first = next();
    if (step.flow < 0) {
      within(step, copies);
      return touched(i, {first, next() - 1});
    }
    Open& o = open_of(step);
    const Steps::Flow& flow = flow_of(step);
    Move move = flow.move;
    move.mutual = o.link.mutual;
    move.copies = copies;
    o.link.moves = {&move};
    o.link.filled = o.filled;
    o.link.commands.clear();
    o.link.first_commands.clear();
    const Protocol& protocol = enter(o);
    o.filled += packed_bytes(copies, protocol.grain()) * builder_.rounds();
    flow.leaves ? protocol.send(builder_, o.link) : protocol.recv(builder_, o.link);
    Touch touch;
    for (int c = first; c < next(); ++c) {
      if (!touches_own(builder_.plan().commands[static_cast<std::size_t>(c)])) continue;
      if (touch.first < 0) touch.first = c;
      touch.last = c;
    }
    // The peer touches this rank's memory. It may write as soon as the link is open, and has when that is known; it may
    // read when it has been told, and has read when the link is closed.
    if (touch.first < 0) touch = flow.leaves ? Touch{first, -1} : Touch{o.opened, next() - 1};
    touched(i, touch);
  }

  void within(const Steps::Step& step, const std::vector<StridedCopy>& copies) {
    const int src = composer_.user_buffer(builder_.rank(), step.src.buffer);
    const int dst = composer_.user_buffer(builder_.rank(), step.dst.buffer);
    builder_.set_path(listed_.collective->on_gpu() ? "self:gpu" : "self");
    const std::int64_t user = builder_.user_step();
    if (step.combines) {
      builder_.reduce(-1, src, dst, copies, user, user, listed_.collective->type(), listed_.collective->op());
    } else {
      builder_.copy(-1, src, dst, copies, user, user);
    }
  }

  void touched(std::size_t i, Touch touch) {
    if (touches_[i].first < 0) touches_[i].first = touch.first;
    touches_[i].last = touch.last;
  }

  // Whether a command of this rank touches what the algorithm speaks of, rather than what a link keeps.
  bool touches_own(const Command& c) const {
    for (const int b : {c.src, c.dst}) {
      if (b < 0) continue;
      const Buffer& buffer = builder_.plan().buffers[static_cast<std::size_t>(b)];
      if (buffer.rank == builder_.rank() && buffer.purpose == Purpose::user && buffer.role != Role::signal) return true;
    }
    return false;
  }

  // Bytes of a buffer of this rank that a step reads or writes.
  struct Access {
    std::size_t step = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    bool writes = false;
  };

  void order() {
    std::map<int, std::vector<Access>> buffers;
    for (std::size_t i = 0; i < listed_.steps.size(); ++i) {
      const Steps::Step& step = listed_.steps[i];
      const bool here = step.flow < 0;
      std::map<int, int> after;  // per lane: the last command that must have ended
      std::vector<std::pair<int, Access>> mine;
      if (here || flow_of(step).leaves)
        mine.push_back({step.src.buffer, {i, step.src.offset, step.src.offset + step.bytes, false}});
      if (here || !flow_of(step).leaves)
        mine.push_back({step.dst.buffer, {i, step.dst.offset, step.dst.offset + step.bytes, true}});
      for (const auto& [buffer, access] : mine) meet(buffers[buffer], access, after);
      for (const auto& [buffer, access] : mine) remember(buffers[buffer], access);
      depend(i, after);
    }
  }

  void meet(const std::vector<Access>& earlier, const Access& access, std::map<int, int>& after) const {
    for (const Access& other : earlier) {
      if (!(other.writes || access.writes) || other.end <= access.begin || access.end <= other.begin) continue;
      int& last = after.try_emplace(lane_of_[other.step], -1).first->second;
      last = std::max(last, touches_[other.step].last);
    }
  }

  // What is written over is ordered before all that comes later, by the step that writes.
  static void remember(std::vector<Access>& earlier, const Access& access) {
    if (access.writes)
      std::erase_if(earlier, [&](const Access& a) {
        return a.step != access.step && access.begin <= a.begin && a.end <= access.end;
      });
    earlier.push_back(access);
  }

  void depend(std::size_t i, const std::map<int, int>& after) {
    const int first = touches_[i].first;
    for (const auto& [lane, command] : after) {
      if (lane != lane_of_[i]) {
        builder_.depend(first, command);
      } else if (command >= first && lanes_[static_cast<std::size_t>(lane)].chunk == 0) {
        throw Error(
            fmt::format("rank {}: {}: a link is opened before its bytes are free: the algorithm must give '{}' "
                        "links of their own (a defect in Tasuki)",
                        builder_.rank(), listed_.collective->name(), flow_of(listed_.steps[i]).move.label));
      }
    }
  }

  Composer& composer_;
  Builder& builder_;
  const Steps::Listed& listed_;
  std::vector<Steps::LaneSteps> lanes_;
  std::vector<int> lane_of_;  // per step
  std::vector<Touch> touches_;
  std::vector<Open> open_;
};

}  // namespace

void compose_steps(Composer& composer, const Steps::Listed& listed) {
  Lanes(composer, listed).emit();
}

}  // namespace tasuki
