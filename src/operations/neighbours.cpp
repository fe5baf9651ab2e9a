// Neighbour collectives: the ranks tell each other their blocks; the moves are in collectives/neighbour_moves.hpp.
#include "tasuki/neighbours.hpp"

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <utility>

#include "collectives/neighbour_moves.hpp"
#include "memory/gpu.hpp"
#include "operations/collective.hpp"
#include "operations/state.hpp"
#include "session/collective.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;

using Counts = std::vector<std::int64_t>;

// The arguments of either, as its class got them: elements to each neighbour and from each.
struct Call {
  const char* operation = "";
  const char* plan_name = "";
  const Neighbours& neighbours;
  const void* in = nullptr;
  void* out = nullptr;
  Counts sent, received;
  DType type = DType::none;
  bool same_block = false;  ///< all neighbours get the same
  const char* sent_name = "count";
  const char* received_name = "count";
};

std::int64_t sum_of(const Counts& counts) {
  std::int64_t sum = 0;
  for (const std::int64_t count : counts) sum += count;
  return sum;
}

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

// What is wrong on this rank by itself.
std::string complaint_about(const Call& call, int size) {
  if (std::string wrong = enumerator_complaint("type", call.type); !wrong.empty()) return wrong;
  if (call.type == DType::none) return "argument 'type' is none; give the type of the elements";
  const std::int64_t element = size_of(call.type);
  const int least = call.neighbours.of_grid ? -1 : 0;
  for (std::string wrong : {ranks_complaint("to", call.neighbours.to, least, size),
                            ranks_complaint("from", call.neighbours.from, least, size),
                            counts_complaint(call.sent_name, call.sent, call.neighbours.to.size(), element),
                            counts_complaint(call.received_name, call.received, call.neighbours.from.size(), element)})
    if (!wrong.empty()) return wrong;
  const std::int64_t in_bytes =
      element * (call.same_block ? (call.sent.empty() ? 0 : call.sent.front()) : sum_of(call.sent));
  const std::int64_t out_bytes = element * sum_of(call.received);
  for (const auto& [name, memory, bytes] :
       {std::tuple{"in", call.in, in_bytes}, std::tuple{"out", static_cast<const void*>(call.out), out_bytes}}) {
    if (bytes == 0) continue;
    if (memory == nullptr) return fmt::format("argument '{}' is null", name);
    if (memory == in_place)
      return fmt::format("argument '{}' is in_place, which neighbour collectives do not know; give two buffers", name);
    if (memory_of(memory) == Memory::device)
      return fmt::format(
          "argument '{}' is on a GPU, which neighbour collectives do not know; copy it to host memory "
          "first, or use a Halo",
          name);
  }
  const auto* const in = static_cast<const std::byte*>(call.in);
  const auto* const out = static_cast<const std::byte*>(call.out);
  if (in_bytes > 0 && out_bytes > 0 && std::less<>()(in, out + out_bytes) && std::less<>()(out, in + in_bytes))
    return "arguments 'in' and 'out' overlap in memory";
  return {};
}

NeighbourBlocks blocks_of(const Call& call) {
  const std::int64_t element = size_of(call.type);
  NeighbourBlocks blocks;
  blocks.to = call.neighbours.to;
  blocks.from = call.neighbours.from;
  blocks.of_grid = call.neighbours.of_grid;
  std::int64_t at = 0;
  for (const std::int64_t count : call.sent) {
    blocks.sent.push_back(count * element);
    blocks.send_at.push_back(call.same_block ? 0 : at);
    at += count * element;
  }
  for (const std::int64_t count : call.received) blocks.received.push_back(count * element);
  return blocks;
}

// As numbers, for the other ranks; and back. The third is below 0, as no count is that another collective tells.
constexpr std::int64_t kListed = -1;
constexpr std::int64_t kOfGrid = -2;

std::string told(const NeighbourBlocks& blocks) {
  Counts numbers{std::ssize(blocks.to), std::ssize(blocks.from), blocks.of_grid ? kOfGrid : kListed};
  for (const auto* ranks : {&blocks.to, &blocks.from}) numbers.insert(numbers.end(), ranks->begin(), ranks->end());
  for (const Counts* counts : {&blocks.sent, &blocks.send_at, &blocks.received})
    numbers.insert(numbers.end(), counts->begin(), counts->end());
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(std::int64_t)};
}

// Empty if the text has another form: the other rank is in a different call, and calls are not compared.
std::optional<NeighbourBlocks> heard(const std::string& text) {
  Counts numbers(text.size() / sizeof(std::int64_t));
  std::memcpy(numbers.data(), text.data(), numbers.size() * sizeof(std::int64_t));
  const std::int64_t size = std::ssize(numbers);
  if (size < 3 || numbers[2] >= 0 || numbers[0] < 0 || numbers[1] < 0 || numbers[0] > size || numbers[1] > size ||
      size != 3 + 3 * numbers[0] + 2 * numbers[1])
    return {};
  std::size_t at = 3;
  const auto next = [&](std::int64_t count) {
    const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(at);
    at += static_cast<std::size_t>(count);
    return Counts(begin, begin + count);
  };
  const auto ranks = [&](std::int64_t count) {
    std::vector<int> list;
    for (const std::int64_t rank : next(count)) list.push_back(static_cast<int>(rank));
    return list;
  };
  NeighbourBlocks blocks;
  blocks.of_grid = numbers[2] == kOfGrid;
  blocks.to = ranks(numbers[0]);
  blocks.from = ranks(numbers[1]);
  blocks.sent = next(numbers[0]);
  blocks.send_at = next(numbers[0]);
  blocks.received = next(numbers[1]);
  return blocks;
}

Description describe(const Context& context, const Call& call) {
  Runtime& runtime = runtime_of(context);
  Agreement(runtime, call.operation)
      .same("type", shown(call.type))
      .same("neighbours", call.neighbours.of_grid ? "of a grid" : "listed")
      .complain(complaint_about(call, runtime.size()))
      .check();
  const NeighbourBlocks mine = blocks_of(call);
  std::vector<NeighbourBlocks> all;
  for (const std::string& text :
       gather_texts(runtime, told(mine), fmt::format("{}: gathering neighbours", call.operation)))
    if (auto blocks = heard(text)) {
      all.push_back(*std::move(blocks));
    } else {
      throw Error(fmt::format("{}: rank {} tells no neighbours; all ranks must make the same collective",
                              call.operation, all.size()));
    }
  // All ranks find the same.
  if (const std::string wrong = misfit_of(all); !wrong.empty())
    throw Error(fmt::format("{}: {}", call.operation, wrong));
  Description d{neighbour_problem(call.plan_name, all, runtime.rank()), {}, Agreement(runtime, call.operation)};
  std::int64_t in_bytes = 0;
  for (std::size_t i = 0; i < mine.sent.size(); ++i) in_bytes = std::max(in_bytes, mine.send_at[i] + mine.sent[i]);
  const auto add = [&](const char* name, Role role, std::int64_t bytes, const void* memory) {
    UserBuffer buffer;
    buffer.name = name;
    buffer.role = role;
    buffer.bytes = bytes;
    if (bytes > 0) buffer.memory = {static_cast<std::byte*>(const_cast<void*>(memory))};
    d.buffers.push_back(std::move(buffer));
  };
  add("in", Role::input, in_bytes, call.in);
  add("out", Role::output, sum_of(mine.received), call.out);
  return d;
}

Counts repeated(std::int64_t count, std::size_t times) {
  return Counts(times, count);
}

}  // namespace

Neighbours::Neighbours(std::vector<int> whom, std::vector<int> of_whom)
    : to(std::move(whom)), from(std::move(of_whom)) {}

Neighbours::Neighbours(const Grid& grid) : of_grid(true) {
  const auto here = grid.coords(grid.context().rank());
  for (int d = 0; d < grid.ndims(); ++d) {
    for (const int step : {-1, 1}) {
      auto there = here;
      int& coord = there[static_cast<std::size_t>(d)];
      coord += step;
      const int count = grid.split(d);
      const bool inside = coord >= 0 && coord < count;
      coord = (coord + count) % count;
      to.push_back(inside || grid.periodic(d) ? grid.rank_at(there) : -1);
    }
  }
  from = to;
}

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

}  // namespace tasuki
