// Neighbour collectives: the ranks tell each other their blocks; the moves are in shapes/neighbours.hpp.
#include "tasuki/neighbours.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "fields/placement_of.hpp"
#include "layout/sequence.hpp"
#include "operations/collective.hpp"
#include "operations/given_memory.hpp"
#include "operations/state.hpp"
#include "session/gpus.hpp"
#include "shapes/neighbours.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;

using Counts = std::vector<std::int64_t>;

// The arguments of either, as its class got them: a block to each neighbour and from each, as counts of elements that
// lie one after the other or as layouts.
struct Call {
  const char* operation = "";
  const char* plan_name = "";
  const Neighbours& neighbours;
  const void* in = nullptr;
  void* out = nullptr;
  Counts sent = {}, received = {};
  DType type = DType::none;
  bool same_block = false;  ///< all neighbours get the same
  bool has_layouts = false;
  std::vector<Layout> in_layouts = {}, out_layouts = {};
  const char* sent_name = "count";
  const char* received_name = "count";
};

// In a grid -1 is nobody.
std::string ranks_complaint(const char* name, const std::vector<int>& ranks, int least, int size) {
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i] < least || ranks[i] >= size)
      return fmt::format("argument '{}' names rank {} (entry {}), but the context has ranks 0 to {}", name, ranks[i], i,
                         size - 1);
  return {};
}

std::string counts_complaint(const char* name, const Counts& counts, std::size_t neighbours, std::int64_t element) {
  if (counts.size() != neighbours)
    return fmt::format("argument '{}' has {} entries for {} neighbours", name, counts.size(), neighbours);
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] < 0)
      return fmt::format("argument '{}' is {} for neighbour {}; it must not be negative", name, counts[i], i);
    if (counts[i] > kMostBytes / element || (bytes += counts[i] * element) > kMostBytes)
      return fmt::format("argument '{}' is {} for neighbour {}; more than can be moved", name, counts[i], i);
  }
  return {};
}

std::string layouts_complaint(const char* name, const std::vector<Layout>& layouts, std::size_t neighbours) {
  if (layouts.size() != neighbours)
    return fmt::format("argument '{}' has {} layouts for {} neighbours", name, layouts.size(), neighbours);
  return {};
}

// What is wrong with the ranks and the blocks of this rank by themselves.
std::string complaint_about_blocks(const Call& call, int size) {
  const Neighbours& whom = call.neighbours;
  const int least = whom.of_grid ? -1 : 0;
  for (std::string wrong :
       {ranks_complaint("to", whom.to, least, size), ranks_complaint("from", whom.from, least, size)})
    if (!wrong.empty()) return wrong;
  if (call.has_layouts) {
    std::string wrong = layouts_complaint("in_layouts", call.in_layouts, whom.to.size());
    return !wrong.empty() ? wrong : layouts_complaint("out_layouts", call.out_layouts, whom.from.size());
  }
  if (std::string wrong = enumerator_complaint("type", call.type); !wrong.empty()) return wrong;
  if (call.type == DType::none) return "argument 'type' is none; give the type of the elements";
  const std::int64_t element = size_of(call.type);
  std::string wrong = counts_complaint(call.sent_name, call.sent, whom.to.size(), element);
  return !wrong.empty() ? wrong : counts_complaint(call.received_name, call.received, whom.from.size(), element);
}

Counts in_bytes(Counts counts, std::int64_t element) {
  for (std::int64_t& count : counts) count *= element;
  return counts;
}

NeighbourBlocks blocks_of(const Call& call) {
  NeighbourBlocks blocks;
  blocks.to = call.neighbours.to;
  blocks.from = call.neighbours.from;
  blocks.of_grid = call.neighbours.of_grid;
  const std::int64_t element = call.has_layouts ? 1 : size_of(call.type);
  blocks.sent = call.has_layouts ? call.in_layouts : contiguous(in_bytes(call.sent, element), call.same_block);
  blocks.received = call.has_layouts ? call.out_layouts : contiguous(in_bytes(call.received, element), false);
  return blocks;
}

// The bytes of all blocks but those of nobody.
Layout all_of(const std::vector<Layout>& blocks, const std::vector<int>& ranks) {
  std::vector<Layout> some;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (ranks[i] >= 0) some.push_back(blocks[i]);
  return joined(some);
}

std::array<Given, 2> given(const Call& call, const NeighbourBlocks& blocks) {
  const ByteRange in = range_of(blocks.sent, blocks.to);
  const ByteRange out = range_of(blocks.received, blocks.from);
  return {Given{"in", call.in, in.end - in.begin, in.begin}, Given{"out", call.out, out.end - out.begin, out.begin}};
}

// What is wrong on this rank by itself.
std::string complaint_about(const Call& call, int size) {
  if (std::string wrong = complaint_about_blocks(call, size); !wrong.empty()) return wrong;
  const NeighbourBlocks blocks = blocks_of(call);
  const auto arguments = given(call, blocks);
  for (const Given& one : arguments) {
    if (one.bytes == 0) continue;
    if (one.base == nullptr) return fmt::format("argument '{}' is null", one.name);
    if (one.base == in_place)
      return fmt::format("argument '{}' is in_place, which neighbour collectives do not know; give two buffers",
                         one.name);
  }
  const Layout out = all_of(blocks.received, blocks.from);
  if (out.overlaps()) return "argument 'out_layouts' names a byte twice, which memory that is written must not";
  if (arguments[0].bytes > 0 && arguments[1].bytes > 0 &&
      meet(all_of(blocks.sent, blocks.to), out,
           static_cast<const std::byte*>(call.out) - static_cast<const std::byte*>(call.in)))
    return "arguments 'in' and 'out' overlap in memory";
  return {};
}

// What the other ranks must know; and back. The opening is one that no other collective tells.
constexpr const char* kOpening = "neighbours";

void tell(const NeighbourBlocks& blocks, Encoder& to) {
  to.text(kOpening).number(blocks.of_grid ? 1 : 0);
  for (const auto* ranks : {&blocks.to, &blocks.from}) to.numbers(Counts(ranks->begin(), ranks->end()));
  for (const auto* layouts : {&blocks.sent, &blocks.received})
    for (const Layout& layout : *layouts) to.layout(layout);
}

// Throws `Malformed` if they are none.
NeighbourBlocks heard(const std::string& message, int size) {
  Decoder from(message);
  if (from.text() != kOpening) throw Malformed("no neighbours");
  NeighbourBlocks blocks;
  blocks.of_grid = from.number(0, 1) == 1;
  for (auto* ranks : {&blocks.to, &blocks.from}) {
    for (const std::int64_t rank : from.numbers()) {
      if (rank < (blocks.of_grid ? -1 : 0) || rank >= size) throw Malformed("a rank that does not exist");
      ranks->push_back(static_cast<int>(rank));
    }
  }
  for (const auto& [layouts, ranks] : {std::pair{&blocks.sent, &blocks.to}, std::pair{&blocks.received, &blocks.from}})
    while (layouts->size() < ranks->size()) layouts->push_back(from.layout());
  from.end();
  return blocks;
}

Description describe(const Context& context, const Call& call) {
  Runtime& runtime = runtime_of(context);
  Description d(runtime, call.operation);
  Agreement agreement(runtime, call.operation);
  agreement.same("layouts", call.has_layouts ? "true" : "false");
  if (!call.has_layouts) agreement.same("type", shown(call.type));
  agreement.same("neighbours", call.neighbours.of_grid ? "of a grid" : "listed");
  d.attempt.locally("checking arguments", [&] { agreement.complain(complaint_about(call, runtime.size())); });
  d.attempt.complain_to(agreement, call.operation);
  agreement.check();
  NeighbourBlocks mine;
  std::array<Given, 2> arguments;
  d.attempt.locally("listing blocks", [&] {
    mine = blocks_of(call);
    arguments = given(call, mine);
  });
  const auto told = d.attempt.gather(
      call.operation, [&](Encoder& to) { tell(mine, to); }, fmt::format("{}: gathering neighbours", call.operation));
  std::vector<NeighbourBlocks> all;
  for (const std::string& message : told) {
    try {
      all.push_back(heard(message, runtime.size()));
    } catch (const Malformed&) {  // only where the ranks' calls are not compared
      throw Error(fmt::format("{}: rank {} tells no neighbours; all ranks must make the same collective",
                              call.operation, all.size()));
    }
  }
  // All ranks find the same.
  if (const std::string wrong = misfit_of(all); !wrong.empty())
    throw Error(fmt::format("{}: {}", call.operation, wrong));
  const Memory memory = settle_memory(runtime, d.attempt, call.operation, arguments, false).memory;
  if (memory == Memory::device) gpu_memory(runtime);  // says what to do where GPUs are not in use
  d.where = memory;
  d.attempt.locally("listing the moves between neighbours", [&] {
    d.problem = neighbour_problem(call.plan_name, all, runtime.rank());
    for (const Given& one : arguments) {
      UserBuffer buffer;
      buffer.name = one.name;
      buffer.role = one.name == "in" ? Role::input : Role::output;
      buffer.bytes = one.bytes;
      buffer.where = memory;
      if (one.bytes > 0) buffer.memory = {static_cast<std::byte*>(const_cast<void*>(one.at()))};
      d.buffers.push_back(std::move(buffer));
    }
  });
  return d;
}

Counts repeated(std::int64_t count, std::size_t times) {
  return Counts(times, count);
}

}  // namespace

Neighbours::Neighbours(std::vector<int> whom, std::vector<int> of_whom)
    : to(std::move(whom)), from(std::move(of_whom)) {}

Neighbours::Neighbours(const Grid& grid)
    : to(beside(placement_of(grid), grid.context().rank())), from(to), of_grid(true) {}

NeighbourAllgather::NeighbourAllgather(const Context& context, const Neighbours& neighbours, const void* in, void* out,
                                       std::int64_t count, DType type, const OperationOptions& options)
    : NeighbourAllgather(context, neighbours, in, out, count, repeated(count, neighbours.from.size()), type, options) {}

NeighbourAllgather::NeighbourAllgather(const Context& context, const Neighbours& neighbours, const void* in, void* out,
                                       std::int64_t count, const std::vector<std::int64_t>& receive_counts, DType type,
                                       const OperationOptions& options) {
  Call call{"NeighbourAllgather",
            "neighbour_allgather",
            neighbours,
            in,
            out,
            repeated(count, neighbours.to.size()),
            receive_counts,
            type,
            true};
  call.received_name = "receive_counts";
  state_ = std::make_shared<State>(context, describe(context, call), options);
}

NeighbourAlltoall::NeighbourAlltoall(const Context& context, const Neighbours& neighbours, const void* in, void* out,
                                     std::int64_t count, DType type, const OperationOptions& options) {
  const Call call{"NeighbourAlltoall",
                  "neighbour_alltoall",
                  neighbours,
                  in,
                  out,
                  repeated(count, neighbours.to.size()),
                  repeated(count, neighbours.from.size()),
                  type};
  state_ = std::make_shared<State>(context, describe(context, call), options);
}

NeighbourAlltoall::NeighbourAlltoall(const Context& context, const Neighbours& neighbours, const void* in, void* out,
                                     const std::vector<std::int64_t>& send_counts,
                                     const std::vector<std::int64_t>& receive_counts, DType type,
                                     const OperationOptions& options) {
  Call call{"NeighbourAlltoall", "neighbour_alltoall", neighbours, in, out, send_counts, receive_counts, type};
  call.sent_name = "send_counts";
  call.received_name = "receive_counts";
  state_ = std::make_shared<State>(context, describe(context, call), options);
}

NeighbourAllgather::NeighbourAllgather(const Context& context, const Neighbours& neighbours, const void* in,
                                       const Layout& in_layout, void* out, const std::vector<Layout>& out_layouts,
                                       const OperationOptions& options) {
  Call call{"NeighbourAllgather", "neighbour_allgather", neighbours, in, out};
  call.has_layouts = true;
  call.in_layouts.assign(neighbours.to.size(), in_layout);
  call.out_layouts = out_layouts;
  state_ = std::make_shared<State>(context, describe(context, call), options);
}

NeighbourAlltoall::NeighbourAlltoall(const Context& context, const Neighbours& neighbours, const void* in,
                                     const std::vector<Layout>& in_layouts, void* out,
                                     const std::vector<Layout>& out_layouts, const OperationOptions& options) {
  Call call{"NeighbourAlltoall", "neighbour_alltoall", neighbours, in, out};
  call.has_layouts = true;
  call.in_layouts = in_layouts;
  call.out_layouts = out_layouts;
  state_ = std::make_shared<State>(context, describe(context, call), options);
}

}  // namespace tasuki
