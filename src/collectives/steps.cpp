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

Steps::Steps(std::shared_ptr<const Collective> collective, int first, int last)
    : collective_(std::move(collective)), first_(first), last_(last), buffers_(collective_->buffers()) {
  parts_.resize(at(last - first));
  for (int rank = first; rank < last; ++rank) {
    part(rank).rank = rank;
    part(rank).listed.collective = collective_;
  }
  if (collective_->on_gpu()) arrived_ = std::make_unique<Touched>(collective_->ranks());
}

std::int64_t Steps::count() const {
  std::int64_t count = 0;
  for (const Part& part : parts_) count += std::ssize(part.listed.steps);
  return count;
}

int Steps::scratch(const std::string& name, std::int64_t bytes) {
  buffers_.push_back({name, Role::scratch, bytes});
  return static_cast<int>(buffers_.size()) - 1;
}

void Steps::begin_chunks(std::int64_t chunk) {
  const std::int64_t element = collective_->element();
  group_ = static_cast<int>(groups_.size());
  groups_.push_back({false, false, std::max(chunk / element, std::int64_t{1}) * element, {}});
}

void Steps::begin_rounds(bool in_parts) {
  group_ = static_cast<int>(groups_.size());
  groups_.push_back({true, in_parts, 0, {}});
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
void Steps::find_summed(const Ends& flow, int from, int to, Place dst, bool combines) {
  const auto summed = [&](const Ends& one, int sender) {
    if (one.from >= 0) part(sender).listed.flows[at(one.from)].move.summed = true;
    if (one.to >= 0) part(to).listed.flows[at(one.to)].move.summed = true;
  };
  auto& writers = groups_[at(group_)].writers;
  const std::tuple place{to, dst.buffer, dst.offset};
  if (combines) {
    if (const auto writer = writers.find(place); writer != writers.end()) summed(writer->second, writer->second.sender);
    summed(flow, from);
  } else if (flow.from >= 0 || flow.to >= 0) {
    writers[place] = {flow.from, flow.to, from};
  } else {
    writers.erase(place);
  }
}

// Returns the number of the flow that the step belongs to; -1 if it stays on the rank.
int Steps::add(Part& its, int from, Place src, int to, Place dst, std::int64_t bytes, int link, bool combines,
               bool relayed) {
  if (bytes == 0) return -1;
  Step step{src, dst, bytes, -1, 0, combines};
  if (from != to) {
    step.flow = flow_of(its, from, src, to, dst, link, combines);
    Move& move = its.listed.flows[at(step.flow)].move;
    move.relayed = move.relayed || relayed;
    const Collective& collective = *collective_;
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
  step.lane = lane_of(its, step);
  its.listed.lanes[at(step.lane)].steps.push_back(its.listed.steps.size());
  its.listed.steps.push_back(step);
  return step.flow;
}

int Steps::flow_of(Part& part, int from, Place src, int to, Place dst, int link, bool combines) {
  const auto [entry, added] = part.flows.try_emplace({from, to, src.buffer, dst.buffer, link, combines, group_, stage_},
                                                     std::ssize(part.listed.flows));
  if (!added) return entry->second;
  Flow& flow = part.listed.flows.emplace_back();
  flow.leaves = from == part.rank;
  flow.group = group_;
  flow.number = part.numbers[flow.leaves ? 0 : 1][flow.leaves ? to : from]++;
  Move& move = flow.move;
  move.seq = flow.number;
  move.src_rank = from;
  move.dst_rank = to;
  move.src = src.buffer;
  move.dst = dst.buffer;
  if (combines) {
    move.add = collective_->type();
    move.op = collective_->op();
    if (collective_->shape().record > 1) move.record = collective_->element();
  }
  move.label = phase_;
  return entry->second;
}

int Steps::lane_of(Part& part, const Step& step) {
  Listed& listed = part.listed;
  const auto next = static_cast<int>(listed.lanes.size());
  const bool leaves = step.flow >= 0 && listed.flows[at(step.flow)].leaves;
  int* known = nullptr;
  if (group_ >= 0) {
    part.group_lanes.resize(std::max(part.group_lanes.size(), at(group_) + 1), {-1, -1});
    known = &part.group_lanes[at(group_)][!groups_[at(group_)].rounds || leaves ? 0 : 1];
  } else if (step.flow >= 0) {
    known = &part.lanes.try_emplace(step.flow, -1).first->second;
  }
  if (known != nullptr && *known >= 0) return *known;
  listed.lanes.push_back({{}, group_ >= 0 ? groups_[at(group_)].chunk : 0, group_, stage_, false});
  if (known != nullptr) *known = next;
  return next;
}

std::vector<Problem> Steps::problems() {
  std::vector<Problem> all;
  for (Part& part : parts_) all.push_back(problem(part));
  return all;
}

Problem Steps::problem(Part& part) {
  Listed& listed = part.listed;
  // Values are loaded together only where they lie alike.
  const bool alike = !collective_->has_layouts();
  for (Flow& flow : listed.flows) flow.move.summed = flow.move.summed && alike && !groups_[at(flow.group)].in_turn;
  for (LaneSteps& lane : listed.lanes) {
    const bool rounds = lane.group >= 0 && groups_[at(lane.group)].rounds;
    lane.at_once = collective_->on_gpu() && rounds && !groups_[at(lane.group)].in_turn;
  }
  Problem problem;
  problem.operation = collective_->name();
  problem.rank = part.rank;
  problem.buffers = buffers_;
  for (const Flow& flow : listed.flows) problem.moves.push_back(flow.move);
  mark_mutual(problem.moves);
  problem.bytes_of = [collective = collective_](int rank, int buffer) { return collective->span_of(rank, buffer); };
  problem.compose = [listed = std::make_shared<const Listed>(std::move(listed))](Composer& composer) {
    compose_steps(composer, *listed);
    promise(*listed->collective, composer);
  };
  return problem;
}

}  // namespace tasuki
