// What all protocols share: moves and links, packed sides, slices.
#include "protocols/protocol.hpp"

#include <algorithm>

#include "layout/cut.hpp"
#include "layout/transpose_kernels.hpp"

namespace tasuki {

namespace {

std::int64_t round_up(std::int64_t bytes, std::int64_t grain) {
  return (bytes + grain - 1) / grain * grain;
}

std::vector<StridedCopy> packed(std::span<const StridedCopy> copies, std::int64_t offset, std::int64_t grain,
                                std::int64_t pitch, bool pack_destination) {
  std::vector<StridedCopy> result(copies.begin(), copies.end());
  for (auto& copy : result) {
    (pack_destination ? copy.dst_offset : copy.src_offset) = offset;
    (pack_destination ? copy.dst_list : copy.src_list) = {};
    offset += round_up(copy.bytes(), grain);
    std::int64_t stride = pitch > 0 ? pitch : copy.block;
    for (int d = copy.ndims - 1; d >= 0; --d) {
      (pack_destination ? copy.dims[d].dst_stride : copy.dims[d].src_stride) = stride;
      stride *= copy.dims[d].count;
    }
  }
  return result;
}

}  // namespace

Home BufferFact::home() const {
  if (memory == Memory::device) return Home::device;
  return shared ? Home::shared : Home::own;
}

std::int64_t Move::bytes() const {
  return packed_bytes(copies);
}

std::int64_t Move::cut_unit() const {
  return record == 0 ? kCutUnit : round_up(kCutUnit, record);
}

std::int64_t Move::runs() const {
  std::int64_t sum = 0;
  for (const auto& copy : copies) sum += copy.blocks();
  return sum;
}

std::int64_t Move::turned_lines() const {
  constexpr std::int64_t kLine = 64;
  std::int64_t sum = 0;
  for (const auto& copy : copies) sum += turned(copy) ? (copy.bytes() + kLine - 1) / kLine : 0;
  return sum;
}

std::int64_t Move::other_runs() const {
  std::int64_t sum = 0;
  for (const auto& copy : copies) sum += turned(copy) ? 0 : copy.blocks();
  return sum;
}

std::int64_t Move::descriptors() const {
  std::int64_t sum = 0;
  for (const StridedCopy& copy : copies) {
    std::int64_t rows = copy.listed() && copy.ndims == 1 ? copy.dims[0].count : 1;
    for (int d = 0; d + 1 < copy.ndims; ++d) rows *= copy.dims[static_cast<std::size_t>(d)].count;
    sum += rows;
  }
  return sum;
}

void Link::delivers(std::size_t move, int command) {
  if (commands.empty()) {
    commands.assign(moves.size(), -1);
    first_commands = commands;
  }
  commands[move] = command;
  if (first_commands[move] < 0) first_commands[move] = command;
}

std::int64_t Link::bytes() const {
  std::int64_t sum = 0;
  for (const auto* move : moves) sum += move->bytes();
  return sum;
}

std::int64_t Link::cut_unit() const {
  std::int64_t unit = kCutUnit;
  for (const auto* move : moves) unit = std::max(unit, move->cut_unit());
  return unit;
}

std::int64_t packed_bytes(std::span<const StridedCopy> copies, std::int64_t grain) {
  std::int64_t sum = 0;
  for (const auto& copy : copies) sum += round_up(copy.bytes(), grain);
  return sum;
}

std::vector<StridedCopy> pack_side(std::span<const StridedCopy> copies, std::int64_t offset, std::int64_t grain,
                                   std::int64_t pitch) {
  return packed(copies, offset, grain, pitch, true);
}

std::vector<StridedCopy> unpack_side(std::span<const StridedCopy> copies, std::int64_t offset, std::int64_t grain,
                                     std::int64_t pitch) {
  return packed(copies, offset, grain, pitch, false);
}

int deliver(Builder& builder, const Link& link, std::size_t i, int source, std::span<const StridedCopy> copies,
            std::int64_t source_step) {
  const Move& move = *link.moves[i];
  if (move.add != DType::none) {
    return builder.reduce(link.peer, source, link.dst[i], copies, source_step, builder.user_step(), move.add, move.op);
  }
  return builder.copy(link.peer, source, link.dst[i], copies, source_step, builder.user_step());
}

std::int64_t slot_within(std::int64_t most) {
  return std::max(most / 2 / kCutUnit, std::int64_t{1}) * kCutUnit;
}

std::int64_t slots(const Link& link) {
  std::int64_t most = link.constants->eager_ring;
  if (link.scratch_most > 0) most = std::min(std::max(most, 2 * link.slot), link.scratch_most);
  return std::max<std::int64_t>(most / link.slot, 1);
}

std::int64_t place(Link& link, const Slice& slice) {
  if (link.slot == 0) return link.filled;
  return link.slices++ % slots(link) * link.slot - slice.begin;
}

std::vector<Slice> slices(const Link& link, std::int64_t most) {
  std::vector<Slice> all(1);
  most = std::max(most, link.cut_unit());
  for (std::size_t i = 0; i < link.moves.size(); ++i) {
    std::vector<StridedCopy> pieces;
    for (const StridedCopy& copy : link.moves[i]->copies) cut_by_bytes(copy, most, pieces, link.moves[i]->cut_unit());
    for (const StridedCopy& piece : pieces) {
      const std::int64_t begin = all.back().begin + all.back().bytes;
      if (all.back().bytes > 0 && all.back().bytes + piece.bytes() > most) all.push_back({begin, 0, {}});
      Slice& slice = all.back();
      if (slice.parts.empty() || slice.parts.back().move != i) slice.parts.push_back({i, begin, {}, 0});
      slice.parts.back().copies.push_back(piece);
      slice.bytes += piece.bytes();
    }
  }
  return all;
}

}  // namespace tasuki
