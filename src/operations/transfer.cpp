// Transfer: one move between two layouts; a large one is cut into parts, so that paths may share it or pipeline it.
#include "tasuki/transfer.hpp"

#include <fmt/format.h>

#include <utility>

#include "layout/sequence.hpp"
#include "memory/gpu.hpp"
#include "operations/state.hpp"
#include "shapes/transfer.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

// What the two ranks tell each other first begins with this; what does not comes from a rank that makes something else.
constexpr const char* kOpening = "Transfer";

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
  Description d(runtime, "Transfer", peers);
  d.problem.operation = transfer_name(from.rank, to.rank);
  d.agreement.same("from.rank", from.rank).same("to.rank", to.rank);
  Layout src = source ? from.layout : Layout();
  Layout dst = target ? to.layout : Layout();
  std::string given = source ? from.elements : std::string();
  std::string wanted = target ? to.elements : std::string();
  if (source != target) {
    bool same = true;
    try {
      const auto answers = d.attempt.exchange(peers, [&](std::size_t, Encoder& mine) {
        mine.text(kOpening).layout(source ? src : dst).text(source ? given : wanted);
      });
      d.attempt.locally("reading the other rank's layout", [&] {
        try {
          Decoder theirs(answers[0]);
          same = theirs.text() == kOpening;
          (source ? dst : src) = theirs.layout();
          (source ? wanted : given) = theirs.text();
          theirs.end();
        } catch (const Malformed&) {
          same = false;
        }
      });
    } catch (const Malformed&) {
      same = false;
    }
    if (!same)
      throw Error(
          fmt::format("the ranks do different things: rank {} makes {}, rank {} something else; two ranks must make "
                      "what they share in the same order",
                      me, d.problem.operation, peers[0]));
  }
  if (!given.empty() && !wanted.empty() && given != wanted)
    d.agreement.complain(
        fmt::format("'from' has {} on rank {}, but 'to' has {} on rank {}; give arrays of the same type and shape, or "
                    "bytes or a layout if their bytes are what is meant",
                    given, from.rank, wanted, to.rank));
  d.problem.buffers = {{"from", Role::input}, {"to", Role::output}};
  d.attempt.locally("listing the parts of a transfer", [&] {
    d.buffers = {user_buffer("from", Role::input, from, src, source), user_buffer("to", Role::output, to, dst, target)};
    if (!source && !target) return;
    try {
      const std::string complaint = complaint_about(me, from, to, src, dst, runtime.gpus != nullptr);
      d.agreement.complain(complaint);
      if (!complaint.empty()) return;
      d.problem = transfer_problem(runtime.machine.constants, me, from.rank, to.rank, src, dst);
    } catch (const Error& error) {
      d.agreement.complain(error);
    }
  });
  return d;
}

}  // namespace

Transfer::Transfer(const Context& context, const TransferSide& from, const TransferSide& to,
                   const OperationOptions& options)
    : Operation() {
  state_ = std::make_shared<State>(context, describe(context, from, to), options);
}

}  // namespace tasuki
