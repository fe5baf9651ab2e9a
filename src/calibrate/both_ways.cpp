// BothWays: see both_ways.hpp.
#include "calibrate/both_ways.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

#include "memory/gpu.hpp"
#include "operations/state.hpp"
#include "tasuki/memory.hpp"

namespace tasuki {

namespace {

UserBuffer whole(const char* name, Role role, std::byte* memory, const Layout& layout, bool here) {
  UserBuffer buffer;
  buffer.name = name;
  buffer.role = role;
  if (!here) return buffer;
  buffer.bytes = layout.true_upper_bound();
  buffer.memory = {memory};
  buffer.where = memory_of(memory);
  return buffer;
}

}  // namespace

BothWays::BothWays(const Context& context, int a, int b, std::byte* from, std::byte* to, const Layout& layout,
                   const OperationOptions& options)
    : Operation() {
  Runtime& runtime = runtime_of(context);
  const bool here = runtime.rank() == a || runtime.rank() == b;
  std::vector<int> peers;
  if (here && a != b) peers = {runtime.rank() == a ? b : a};
  Description d(runtime, "BothWays", peers);
  d.problem.operation = fmt::format("exchange {}<->{}", a, b);
  d.attempt.locally("describing an exchange", [&] {
    d.add(whole("from", Role::input, from, layout, here));
    d.add(whole("to", Role::output, to, layout, here));
    const std::array<std::pair<int, int>, 2> ways{std::pair{a, b}, std::pair{b, a}};
    for (const auto& [src, dst] : ways) {
      if (!here) break;
      Move move;
      move.src_rank = src;
      move.dst_rank = dst;
      move.src = 0;
      move.dst = 1;
      move.copies = zip(layout, layout);
      move.label = "all";
      d.problem.moves.push_back(std::move(move));
    }
    mark_mutual(d.problem.moves);
  });
  state_ = std::make_shared<State>(context, std::move(d), options);
}

}  // namespace tasuki
