// Redistribute: ranks that have cells in common tell each other how they lie in memory; the moves are in
// shapes/redistribute.hpp.
#include "tasuki/redistribute.hpp"

#include <fmt/format.h>

#include <utility>

#include "layout/sequence.hpp"
#include "operations/given_memory.hpp"
#include "operations/state.hpp"
#include "session/deliver.hpp"
#include "session/gpus.hpp"
#include "shapes/redistribute_rank.hpp"
#include "tasuki/collectives.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

constexpr const char* kOperation = "Redistribute";
// What ranks tell each other begins with this; what does not comes from a rank that makes something else.
constexpr const char* kOpening = "redistribute";

std::vector<Given> given(const RedistributeOfRank& shape, const std::vector<const void*>& memory) {
  std::vector<Given> all;
  for (std::size_t b = 0; b < memory.size(); ++b) {
    const ByteRange range = shape.range(b);
    all.push_back({shape.buffer_name(b), memory[b], range.end - range.begin, range.begin});
  }
  return all;
}

std::string complaint_about_memory(const RedistributeOfRank& shape, const std::vector<Given>& memory) {
  for (const Given& one : memory) {
    if (one.bytes == 0) continue;
    if (one.base == nullptr) return fmt::format("{} is null", one.name);
    if (one.base == in_place)
      return fmt::format("{} is in_place, which redistributions do not know; give two addresses", one.name);
  }
  for (std::size_t w = 1; w < memory.size(); w += 2) {  // targets
    for (std::size_t b = 0; b < memory.size(); ++b) {
      const auto* const written = static_cast<const std::byte*>(memory[w].at());
      const auto* const other = static_cast<const std::byte*>(memory[b].at());
      if (w == b || memory[w].bytes == 0 || memory[b].bytes == 0 || written >= other + memory[b].bytes ||
          other >= written + memory[w].bytes)
        continue;
      if (meet(shape.bytes_of(b), shape.bytes_of(w), written - other))
        return fmt::format(
            "{} and {} overlap in memory: this rank would receive into bytes that it sends or receives in the same "
            "operation; give memory that does not overlap",
            memory[w].name, memory[b].name);
    }
  }
  return {};
}

// Reads what the ranks tell that this one deals with. Throws `Error` if one tells something else, or nothing.
void hear_all(RedistributeOfRank& shape, const std::vector<int>& peers,
              const std::vector<std::pair<int, std::string>>& told) {
  std::vector<int> heard;
  for (const auto& [rank, message] : told) {
    try {
      Decoder from(message);
      if (from.text() != kOpening) throw Malformed("no redistribution");
      shape.hear(rank, from);
      from.end();
    } catch (const Malformed&) {  // only where the ranks' calls are not compared
      throw Error(fmt::format("rank {} makes something else; all ranks must make the same operation", rank));
    }
    heard.push_back(rank);
  }
  if (heard != peers) throw Error("ranks that have cells in common with this one make something else");
}

Description describe(const Context& context, RedistributeOfRank& shape, const std::vector<const void*>& memory) {
  Runtime& runtime = runtime_of(context);
  Description d(runtime, kOperation);
  Agreement agreement(runtime, kOperation);
  for (const auto& [name, value] : shape.agreed()) agreement.same(name, value);
  std::vector<Given> arguments;
  d.attempt.locally("checking arguments", [&] {
    std::string wrong = shape.complaint(runtime.size());
    if (wrong.empty()) {
      shape.list();
      arguments = given(shape, memory);
      wrong = complaint_about_memory(shape, arguments);
    }
    agreement.complain(wrong);
  });
  d.attempt.complain_to(agreement, kOperation);
  agreement.check();
  std::vector<int> peers;
  d.attempt.locally("listing the ranks to tell", [&] { peers = shape.named(); });
  const auto told = deliver(
      runtime, d.attempt, kOperation, peers, [&](std::size_t, Encoder& to) { shape.tell(to.text(kOpening)); },
      "telling the ranks that have cells in common");
  d.attempt.locally("reading what ranks tell", [&] { hear_all(shape, peers, told); });
  d.where = settle_memory(runtime, d.attempt, kOperation, arguments, false).memory;
  if (*d.where == Memory::device) gpu_memory(runtime);  // says what to do where GPUs are not in use
  d.attempt.locally("listing the moves of a redistribution", [&] {
    d.problem = shape.problem();
    for (std::size_t b = 0; b < arguments.size(); ++b) {
      UserBuffer buffer;
      buffer.name = d.problem.buffers[b].name;
      buffer.role = d.problem.buffers[b].role;
      buffer.bytes = arguments[b].bytes;
      buffer.where = *d.where;
      if (buffer.bytes > 0) buffer.memory = {static_cast<std::byte*>(const_cast<void*>(arguments[b].at()))};
      d.buffers.push_back(std::move(buffer));
    }
  });
  return d;
}

}  // namespace

Redistribute::Redistribute(const Context& context, const ArraySide& from, const ArraySide& to,
                           const std::vector<RedistributeArray>& arrays, const std::vector<int>& axes,
                           const OperationOptions& options) {
  std::vector<const void*> memory;
  for (const RedistributeArray& array : arrays) memory.insert(memory.end(), {array.from, array.to});
  RedistributeOfRank shape(context.rank(), from, to, axes, {arrays.begin(), arrays.end()});
  state_ = std::make_shared<State>(context, describe(context, shape, memory), options);
}

}  // namespace tasuki
