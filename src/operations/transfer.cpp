// Transfer: one move between two layouts; a large one is cut into parts, so that paths may share it or pipeline it.
#include "tasuki/transfer.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "layout/sequence.hpp"
#include "memory/gpu.hpp"
#include "operations/state.hpp"
#include "shapes/transfer.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

// What the two ranks send each other first begins with this: what does not comes from a rank that makes something else.
constexpr std::string_view kOpening = "Transfer\n";

std::string pack_layout(const Layout& layout) {
  std::vector<std::int64_t> numbers;
  append(layout, numbers);
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(std::int64_t)};
}

Layout unpack_layout(const std::string& blob) {
  std::vector<std::int64_t> numbers(blob.size() / sizeof(std::int64_t));
  std::memcpy(numbers.data(), blob.data(), numbers.size() * sizeof(std::int64_t));
  std::span<const std::int64_t> left(numbers);
  auto layout = take_layout(left);
  if (!layout) throw Error("Transfer: the other rank tells no layout; two ranks must make the same transfer");
  return *std::move(layout);
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
std::string complaint_about(int me, const TransferSide& from, const TransferSide& to, const Layout& src,
                            const Layout& dst, bool on_gpu) {
  std::string unfit = tasuki::complaint_about(from.rank, src, to.rank, dst);
  if (src.size() != dst.size()) return unfit;
  for (const auto& [name, side] : {std::pair{"from", &from}, std::pair{"to", &to}}) {
    if (side->rank != me) continue;
    if (side->base == nullptr && src.size() > 0) return fmt::format("argument '{}.base' is null", name);
    if (memory_of(side->base) == Memory::device && !on_gpu)
      return fmt::format("argument '{}.base' is on a GPU; call use_gpu on all ranks first", name);
  }
  if (!unfit.empty()) return unfit;
  const std::int64_t apart = static_cast<const char*>(to.base) - static_cast<const char*>(from.base);
  if (from.rank == to.rank && meet(src, dst, apart)) return "source and destination overlap in memory";
  return {};
}

Description describe(const Context& context, const TransferSide& from, const TransferSide& to) {
  Runtime& runtime = runtime_of(context);
  const int me = runtime.rank();
  const bool source = me == from.rank;
  const bool target = me == to.rank;
  // The two ranks settle everything between them; others have no part in it.
  std::vector<int> peers;
  if (source != target) peers = {source ? to.rank : from.rank};
  std::string wrong = side_complaint("from", from, runtime.size());
  if (wrong.empty()) wrong = side_complaint("to", to, runtime.size());
  if (!wrong.empty()) throw Error(fmt::format("Transfer: rank {}: {}", me, wrong));
  Description d{{}, {}, Agreement(runtime, "Transfer", peers)};
  d.among = peers;
  d.problem.operation = transfer_name(from.rank, to.rank);
  d.agreement.same("from.rank", from.rank).same("to.rank", to.rank);
  Layout src = source ? from.layout : Layout();
  Layout dst = target ? to.layout : Layout();
  std::string given = source ? from.elements : std::string();
  std::string wanted = target ? to.elements : std::string();
  if (source != target) {
    const std::string layout = pack_layout(source ? src : dst);
    const std::array<std::string, 1> said{std::string(kOpening) + as_text(static_cast<std::int64_t>(layout.size())) +
                                          layout + (source ? given : wanted)};
    std::string answer = exchange(runtime, peers, said)[0];
    if (!answer.starts_with(kOpening))
      throw Error(
          fmt::format("the ranks do different things: rank {} makes {}, rank {} something else; two ranks must make "
                      "what they share in the same order",
                      me, d.problem.operation, peers[0]));
    answer.erase(0, kOpening.size());
    const auto bytes = static_cast<std::size_t>(from_text<std::int64_t>(answer));
    (source ? dst : src) = unpack_layout(answer.substr(sizeof(std::int64_t), bytes));
    (source ? wanted : given) = answer.substr(sizeof(std::int64_t) + bytes);
  }
  if (!given.empty() && !wanted.empty() && given != wanted)
    d.agreement.complain(
        fmt::format("'from' has {} on rank {}, but 'to' has {} on rank {}; give arrays of the same type and shape, or "
                    "bytes or a layout if their bytes are what is meant",
                    given, from.rank, wanted, to.rank));
  std::vector<UserBuffer> memory{user_buffer("from", Role::input, from, src, source),
                                 user_buffer("to", Role::output, to, dst, target)};
  try {
    const std::string complaint =
        source || target ? complaint_about(me, from, to, src, dst, runtime.gpus != nullptr) : std::string();
    d.agreement.complain(complaint);
    if (complaint.empty() && (source || target))
      d.problem = transfer_problem(runtime.machine.constants, me, from.rank, to.rank, src, dst);
  } catch (const std::exception& error) {
    d.agreement.complain(error);  // both ranks must throw, not only this one
  }
  d.problem.buffers = {{"from", Role::input}, {"to", Role::output}};
  d.buffers = std::move(memory);
  return d;
}

}  // namespace

Transfer::Transfer(const Context& context, const TransferSide& from, const TransferSide& to,
                   const OperationOptions& options)
    : Operation() {
  state_ = std::make_shared<State>(context, describe(context, from, to), options);
}

}  // namespace tasuki
