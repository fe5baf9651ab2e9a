// Broadcast: the memory and arguments; the algorithm is in collectives/broadcast_moves.cpp.
#include "tasuki/broadcast.hpp"

#include <fmt/format.h>

#include "collectives/broadcast_moves.hpp"
#include "memory/gpu.hpp"
#include "operations/state.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

constexpr int kMostTrees = 16;

std::string complaint_about(const Context& context, int root, const void* data, std::int64_t bytes,
                            const BroadcastOptions& o) {
  if (root < 0 || root >= context.size())
    return fmt::format("argument 'root' is {}, but the context has ranks 0 to {}", root, context.size() - 1);
  if (bytes < 0) return fmt::format("argument 'bytes' is {}; it must not be negative", bytes);
  if (data == nullptr && bytes > 0) return "argument 'data' is null";
  if (o.trees < 0 || o.trees > kMostTrees)
    return fmt::format("option 'trees' is {}; give 0 (chosen) to {}", o.trees, kMostTrees);
  if (o.arity < 0) return fmt::format("option 'arity' is {}; give 0 (chosen) or more", o.arity);
  if (o.chunk < 0) return fmt::format("option 'chunk' is {} bytes; give 0 (chosen) or more", o.chunk);
  return {};
}

Description describe(const Context& context, int root, void* data, std::int64_t bytes,
                     const BroadcastOptions& options) {
  Runtime& runtime = runtime_of(context);
  Agreement agreement(runtime, "Broadcast");
  agreement.same("root", root).same("bytes", bytes).same("trees", options.trees).same("arity", options.arity);
  agreement.same("chunk", options.chunk).complain(complaint_about(context, root, data, bytes, options)).check();
  Description d{{}, {}, Agreement(runtime, "Broadcast")};
  const BroadcastMoves moves(machine_for(context), root, bytes, {options.trees, options.arity, options.chunk});
  d.problem = moves.problem(runtime.rank());
  d.buffers.push_back({"data", Role::inout, bytes, {static_cast<std::byte*>(data)}, nullptr, false, Memory::host});
  if (bytes > 0 && memory_of(data) == Memory::device)
    d.agreement.complain("argument 'data' is on a GPU, which broadcasts do not know; copy it to host memory first");
  return d;
}

}  // namespace

Broadcast::Broadcast(const Context& context, int root, void* data, std::int64_t bytes,
                     const BroadcastOptions& options) {
  state_ = std::make_shared<State>(context, describe(context, root, data, bytes, options), options);
}

}  // namespace tasuki
