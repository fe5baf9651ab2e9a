// Steps: see steps.hpp.
#include "collectives/steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tasuki/error.hpp"

namespace tasuki {

namespace {

// Into which memory with a layout is cut at most, where a loop would do for contiguous memory.
constexpr std::int64_t kMostParts = 1024;

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

Steps::Steps(std::shared_ptr<const Collective> collective, int rank)
    : rank_(rank), listed_{std::move(collective), {}, {}, {}}, buffers_(listed_.collective->buffers()) {
  if (listed_.collective->on_gpu()) arrived_ = std::make_unique<Touched>(listed_.collective->ranks());
}

int Steps::scratch(const std::string& name, std::int64_t bytes) {
  buffers_.push_back({name, Role::scratch, bytes});
  return static_cast<int>(buffers_.size()) - 1;
}

void Steps::begin_chunks(std::int64_t chunk) {
  const std::int64_t element = listed_.collective->element();
  group_ = static_cast<int>(groups_.size());
  groups_.push_back({false, false, std::max(chunk / element, std::int64_t{1}) * element, {-1, -1}, {}});
}

void Steps::begin_rounds(bool in_parts) {
  group_ = static_cast<int>(groups_.size());
  groups_.push_back({true, in_parts, 0, {-1, -1}, {}});
}

// Whether a message of the step has to wait for earlier ones, on either rank. One that is combined arrives in memory of
// its link, whatever the state of its destination.
bool Steps::relays(int from, Place src, int to, Place dst, std::int64_t bytes, bool combines) {
  const bool source = arrived_->has(from, src.buffer, src.offset, src.offset + bytes);
  const bool target = arrived_->has(to, dst.buffer, dst.offset, dst.offset + bytes);
  const bool waits = source || (target && (from == to || !combines));
  if (from != to || waits) arrived_->add(to, dst.buffer, dst.offset, dst.offset + bytes);
  // What is read late can be overwritten only later. In rounds, so can all that stays on the rank: there it may be told
  // only when earlier messages have come that its place is free.
  if (waits || (from == to && group_ >= 0)) arrived_->add(from, src.buffer, src.offset, src.offset + bytes);
  return waits;
}

// Of messages in rounds, which ones their receiver combines with other values, where it could load them all together.
void Steps::find_summed(int flow, int to, Place dst, bool combines) {
  const auto summed = [&](int one) {
    if (one >= 0) listed_.flows[at(one)].move.summed = true;
  };
  auto& writers = groups_[at(group_)].writers;
  const std::tuple place{to, dst.buffer, dst.offset};
  if (combines) {
    if (const auto writer = writers.find(place); writer != writers.end()) summed(writer->second);
    summed(flow);
  } else if (flow >= 0) {
    writers[place] = flow;
  } else {
    writers.erase(place);
  }
}

void Steps::add(int from, Place src, int to, Place dst, std::int64_t bytes, int link, bool combines) {
  if (bytes == 0) return;
  Step step{src, dst, bytes, -1, 0, combines};
  if (from != to) {
    step.flow = flow_of(from, src, to, dst, link, combines);
    Move& move = listed_.flows[at(step.flow)].move;
    const Collective& collective = *listed_.collective;
    const std::int64_t chunk = group_ >= 0 ? groups_[at(group_)].chunk : 0;
    const bool chunked = chunk > 0 && bytes > chunk;
    if (chunked && !collective.has_layouts()) move.chunk = chunk;
    // Each part as the rank's lane will move it.
    const std::int64_t part = chunked && collective.has_layouts() ? chunk : bytes;
    if (bytes / part > kMostParts)
      throw Error(
          fmt::format("option 'chunk' is {} bytes, which cuts {} bytes into more than {} parts; memory with a layout "
                      "is not cut so often, for each part has a list of its own: give a larger one",
                      chunk, bytes, kMostParts));
    for (std::int64_t done = 0; done < bytes; done += part) {
      const auto copies = collective.copies(from, {src.buffer, src.offset + done}, to, {dst.buffer, dst.offset + done},
                                            std::min(part, bytes - done));
      move.copies.insert(move.copies.end(), copies.begin(), copies.end());
    }
  }
  step.lane = lane_of(step);
  listed_.lanes[at(step.lane)].steps.push_back(listed_.steps.size());
  listed_.steps.push_back(step);
}

int Steps::flow_of(int from, Place src, int to, Place dst, int link, bool combines) {
  const auto [entry, added] =
      flows_.try_emplace({from, to, src.buffer, dst.buffer, link, combines, group_}, std::ssize(listed_.flows));
  if (!added) return entry->second;
  Flow& flow = listed_.flows.emplace_back();
  flow.leaves = from == rank_;
  flow.group = group_;
  flow.number = numbers_[flow.leaves ? 0 : 1][flow.leaves ? to : from]++;
  Move& move = flow.move;
  move.seq = flow.number;
  move.src_rank = from;
  move.dst_rank = to;
  move.src = src.buffer;
  move.dst = dst.buffer;
  if (combines) {
    move.add = listed_.collective->type();
    move.op = listed_.collective->op();
  }
  move.label = phase_;
  return entry->second;
}

int Steps::lane_of(const Step& step) {
  const auto next = static_cast<int>(listed_.lanes.size());
  const bool leaves = step.flow >= 0 && listed_.flows[at(step.flow)].leaves;
  int* known = nullptr;
  if (group_ >= 0) {
    Group& group = groups_[at(group_)];
    known = &group.lanes[!group.rounds || leaves ? 0 : 1];
  } else if (step.flow >= 0) {
    known = &lanes_.try_emplace(step.flow, -1).first->second;
  }
  if (known != nullptr && *known >= 0) return *known;
  listed_.lanes.push_back({{}, group_ >= 0 ? groups_[at(group_)].chunk : 0, group_, false});
  if (known != nullptr) *known = next;
  return next;
}

Problem Steps::problem() {
  // Values are loaded together only where they lie alike.
  const bool alike = !listed_.collective->has_layouts();
  for (Flow& flow : listed_.flows) flow.move.summed = flow.move.summed && alike && !groups_[at(flow.group)].in_turn;
  for (Lane& lane : listed_.lanes) {
    const bool rounds = lane.group >= 0 && groups_[at(lane.group)].rounds;
    lane.at_once = listed_.collective->on_gpu() && rounds && !groups_[at(lane.group)].in_turn;
  }
  Problem problem;
  problem.operation = listed_.collective->name();
  problem.rank = rank_;
  problem.buffers = buffers_;
  for (const Flow& flow : listed_.flows) problem.moves.push_back(flow.move);
  mark_mutual(problem.moves);
  problem.bytes_of = [collective = listed_.collective](int rank, int buffer) {
    return collective->span_of(rank, buffer);
  };
  problem.compose = [listed = std::make_shared<const Listed>(std::move(listed_))](Composer& composer) {
    compose_steps(composer, *listed);
    promise(*listed->collective, composer);
  };
  return problem;
}

}  // namespace tasuki
