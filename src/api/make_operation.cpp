// The C interface of Halo, Transfer and Broadcast: making them.
#include <fmt/format.h>

#include "api/collective_arguments.hpp"
#include "tasuki/transfer.hpp"

using namespace tasuki;
using namespace tasuki::api;

namespace {

constexpr std::size_t kFirstHalo = sizeof(tasuki_halo_options);

HaloOptions read(const tasuki_halo_options* options) {
  const tasuki_halo_options from = read_options(options, TASUKI_HALO_OPTIONS_INIT, kFirstHalo);
  HaloOptions to;
  set_common(to, from);
  to.corners = from.corners != 0;
  to.reverse = from.reverse != 0;
  to.alternating = from.alternating != 0;
  return to;
}

// The context of the first field that is one: the others' complaints can then reach all ranks.
const AnyField& some_field(int count, const tasuki_field* fields) {
  if (count < 1) throw Failure(TASUKI_BAD_ARGUMENT, fmt::format("argument 'count' is {}; it must be above 0", count));
  given(fields, "fields");
  for (int i = 0; i < count; ++i)
    if (find_slot(value_of(fields[i]), Kind::field) != nullptr) return get(fields[i], "fields");
  return get(fields[0], "fields");
}

// Without the sides' ranks nobody knows who is to hear of what else is wrong.
void check_side(const tasuki_side& side, const Context& ranks, const char* argument) {
  if (side.rank >= 0 && side.rank < ranks.size()) return;
  throw Error(fmt::format("rank {}: argument '{}.rank' is {}, but the context has ranks 0 to {}", ranks.rank(),
                          argument, side.rank, ranks.size() - 1));
}

TransferSide side_from(const tasuki_side& side, int rank, const char* argument) {
  TransferSide to;
  to.rank = side.rank;
  to.base = side.base;
  if (side.rank == rank || value_of(side.layout) != 0) to.layout = get(side.layout, argument);
  if (side.rank == rank && to.layout.size() > 0) given(side.base, argument);
  return to;
}

}  // namespace

tasuki_status tasuki_halo_create(int count, const tasuki_field* fields, const tasuki_width* widths,
                                 const tasuki_halo_options* options, tasuki_operation* halo) {
  return guarded("tasuki_halo_create", [&] {
    const Context context = some_field(count, fields).grid().context();
    std::vector<HaloField> parts;
    HaloOptions chosen;
    agree("tasuki_halo_create", context, [&] {
      given(halo, "halo");
      for (int i = 0; i < count; ++i) {
        const AnyField& field = get(fields[i], fmt::format("fields[{}]", i).c_str());
        widths == nullptr ? parts.emplace_back(field) : parts.emplace_back(field, width_from(widths[i]));
      }
      chosen = read(options);
    });
    *halo = keep<tasuki_operation>(std::make_unique<AnyOperation>(Halo(parts, chosen)));
  });
}

tasuki_status tasuki_transfer_create(tasuki_context context, const tasuki_side* from, const tasuki_side* to,
                                     const tasuki_transfer_options* options, tasuki_operation* transfer) {
  return guarded("tasuki_transfer_create", [&] {
    const Context& ranks = get(context, "context");
    given(from, "from");
    given(to, "to");
    check_side(*from, ranks, "from");
    check_side(*to, ranks, "to");
    TransferSide source;
    TransferSide destination;
    OperationOptions chosen;
    const int sides[] = {from->rank, to->rank};
    agree("tasuki_transfer_create", ranks, sides, [&] {
      given(transfer, "transfer");
      chosen = transfer_options_from(options);
      source = side_from(*from, ranks.rank(), "from");
      destination = side_from(*to, ranks.rank(), "to");
    });
    *transfer = keep<tasuki_operation>(std::make_unique<AnyOperation>(Transfer(ranks, source, destination, chosen)));
  });
}

tasuki_status tasuki_broadcast_create(tasuki_context context, int root, void* data, int64_t bytes,
                                      const tasuki_broadcast_options* options, tasuki_operation* broadcast) {
  return guarded("tasuki_broadcast_create", [&] {
    const Context& ranks = get(context, "context");
    BroadcastOptions chosen;
    agree("tasuki_broadcast_create", ranks, [&] {
      given(broadcast, "broadcast");
      if (bytes > 0) given(data, "data");
      chosen = broadcast_options_from(options);
    });
    *broadcast =
        keep<tasuki_operation>(std::make_unique<AnyOperation>(Broadcast(ranks, root, output(data), bytes, chosen)));
  });
}
