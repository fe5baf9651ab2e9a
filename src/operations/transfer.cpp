// Transfer: one move between two layouts; a large one is cut into parts, so that paths may share it or pipeline it.
#include "tasuki/transfer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "operations/state.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

constexpr std::int64_t kPart = 8 << 10;  // parts are at least this large
constexpr std::int64_t kMostParts = 8;

// Layouts travel between the two ranks as numbers: for each block offset, bytes, dims and the dims themselves.
std::string pack_layout(const Layout& layout) {
  std::vector<std::int64_t> numbers;
  for (const Block& block : layout.blocks()) {
    numbers.insert(numbers.end(), {block.offset, block.bytes, static_cast<std::int64_t>(block.dims.size())});
    for (const Dim& dim : block.dims) numbers.insert(numbers.end(), {dim.count, dim.stride});
  }
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(std::int64_t)};
}

// The layout of a block that begins at its base.
Layout nest(const Block& block) {
  Layout layout = Layout::bytes(block.bytes);
  for (std::size_t d = block.dims.size(); d-- > 0;)
    layout = Layout::hvector(block.dims[d].count, 1, block.dims[d].stride, layout);
  return layout;
}

Layout unpack_layout(const std::string& blob) {
  std::vector<std::int64_t> numbers(blob.size() / sizeof(std::int64_t));
  std::memcpy(numbers.data(), blob.data(), numbers.size() * sizeof(std::int64_t));
  std::vector<Layout> parts;
  std::vector<std::int64_t> offsets;
  for (std::size_t i = 0; i < numbers.size();) {
    offsets.push_back(numbers[i]);
    Block block{0, numbers[i + 1], std::vector<Dim>(static_cast<std::size_t>(numbers[i + 2]))};
    i += 3;
    for (Dim& dim : block.dims) {
      dim = {numbers[i], numbers[i + 1]};
      i += 2;
    }
    parts.push_back(nest(block));
  }
  const std::vector<std::int64_t> ones(parts.size(), 1);
  return Layout::structure(ones, offsets, parts);
}

// Cuts the copies into lists of about equal bytes, each copy along its outermost dimension.
std::vector<std::vector<StridedCopy>> cut(const std::vector<StridedCopy>& copies, std::int64_t parts) {
  std::vector<std::vector<StridedCopy>> result(static_cast<std::size_t>(parts));
  for (const StridedCopy& copy : copies) {
    const bool rows = copy.ndims > 0;
    const std::int64_t unit = rows ? 1 : 64;  // whole cache lines of a contiguous block
    const std::int64_t units = rows ? copy.dims[0].count : (copy.block + unit - 1) / unit;
    for (std::int64_t p = 0; p < parts; ++p) {
      const std::int64_t begin = units * p / parts;
      const std::int64_t end = units * (p + 1) / parts;
      if (begin == end) continue;
      StridedCopy piece = copy;
      if (rows) {
        piece.dims[0].count = end - begin;
        piece.src_offset += begin * copy.dims[0].src_stride;
        piece.dst_offset += begin * copy.dims[0].dst_stride;
      } else {
        piece.block = std::min(end * unit, copy.block) - begin * unit;
        piece.src_offset += begin * unit;
        piece.dst_offset += begin * unit;
      }
      result[static_cast<std::size_t>(p)].push_back(piece);
    }
  }
  return result;
}

std::string side_complaint(const char* name, const TransferSide& side, int ranks) {
  if (side.rank >= 0 && side.rank < ranks) return {};
  return fmt::format("argument '{}.rank' is {}, but the context has ranks 0 to {}", name, side.rank, ranks - 1);
}

UserBuffer user_buffer(const char* name, Role role, const TransferSide& side, const Layout& layout, bool here) {
  UserBuffer buffer;
  buffer.name = name;
  buffer.role = role;
  if (!here) return buffer;
  buffer.bytes = layout.true_upper_bound() - layout.true_lower_bound();
  buffer.memory = {static_cast<std::byte*>(side.base) + layout.true_lower_bound()};
  buffer.where = memory_of(side.base);
  return buffer;
}

// The complaint of a rank that is one of the sides; empty if there is none.
std::string moves_between(Description& d, int me, const TransferSide& from, const TransferSide& to, const Layout& src,
                          const Layout& dst, bool on_gpu) {
  if (src.size() != dst.size()) {
    return fmt::format("layouts of unequal size: 'from' names {} bytes on rank {}, 'to' names {} bytes on rank {}",
                       src.size(), from.rank, dst.size(), to.rank);
  }
  for (const auto& [name, side] : {std::pair{"from", &from}, std::pair{"to", &to}}) {
    if (side->rank != me) continue;
    if (side->base == nullptr && src.size() > 0) return fmt::format("argument '{}.base' is null", name);
    if (memory_of(side->base) == Memory::device && !on_gpu)
      return fmt::format("argument '{}.base' is on a GPU; call use_gpu on all ranks first", name);
  }
  if (dst.overlaps()) return fmt::format("layout 'to' ({}) names a byte twice; a destination must not", dst.describe());
  if (from.rank == to.rank && src.size() > 0) {
    // Block by block, for the source may name a byte twice.
    const std::int64_t apart = static_cast<const char*>(to.base) - static_cast<const char*>(from.base);
    for (Block block : src.blocks()) {
      std::erase_if(block.dims, [](const Dim& dim) { return dim.stride == 0; });
      const std::array<std::int64_t, 2> ones{1, 1};
      const std::array<std::int64_t, 2> at{block.offset, apart};
      const std::array<Layout, 2> both{nest(block), dst};
      if (!both[0].overlaps() && Layout::structure(ones, at, both).overlaps())
        return "source and destination overlap in memory";
    }
  }
  std::vector<StridedCopy> copies;
  for (const auto& copy : zip(src, dst)) {
    copies.push_back(reordered(copy));
    copies.back().src_offset -= src.true_lower_bound();
    copies.back().dst_offset -= dst.true_lower_bound();
  }
  const std::int64_t wanted = from.rank == to.rank ? 1 : std::clamp<std::int64_t>(src.size() / kPart, 1, kMostParts);
  auto parts = cut(copies, wanted);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].empty()) continue;
    Move move;
    move.seq = static_cast<std::int64_t>(i);
    move.src_rank = from.rank;
    move.dst_rank = to.rank;
    move.src = 0;
    move.dst = 1;
    move.whole = src.size();
    move.label = wanted == 1 ? "all" : fmt::format("part {} of {}", i + 1, wanted);
    move.copies = std::move(parts[i]);
    if (move.bytes() > 0) d.moves.push_back(std::move(move));
  }
  return {};
}

Description describe(const Context& context, const TransferSide& from, const TransferSide& to) {
  Runtime& runtime = runtime_of(context);
  const int me = runtime.rank();
  Description d{
      fmt::format("transfer {}->{}", from.rank, to.rank), {}, {}, compose_links, Agreement(runtime, "Transfer"), {}};
  Agreement ranks(runtime, "Transfer");
  ranks.same("from.rank", from.rank).same("to.rank", to.rank);
  ranks.complain(side_complaint("from", from, runtime.size()));
  ranks.complain(side_complaint("to", to, runtime.size()));
  ranks.check();
  const bool source = me == from.rank;
  const bool target = me == to.rank;
  Layout src = source ? from.layout : Layout();
  Layout dst = target ? to.layout : Layout();
  if (source != target) {
    const std::array<int, 1> peer{source ? to.rank : from.rank};
    const std::array<std::string, 1> blob{pack_layout(source ? src : dst)};
    const auto answer = exchange(runtime, peer, blob);
    (source ? dst : src) = unpack_layout(answer[0]);
  }
  d.buffers.push_back(user_buffer("from", Role::input, from, src, source));
  d.buffers.push_back(user_buffer("to", Role::output, to, dst, target));
  try {
    if (source || target) d.agreement.complain(moves_between(d, me, from, to, src, dst, runtime.gpus != nullptr));
  } catch (const Error& error) {
    d.agreement.complain(error.what());  // every rank must throw, not only this one
  }
  return d;
}

}  // namespace

Transfer::Transfer(const Context& context, const TransferSide& from, const TransferSide& to,
                   const OperationOptions& options)
    : Operation() {
  state_ = std::make_shared<State>(context, describe(context, from, to), options);
}

}  // namespace tasuki
