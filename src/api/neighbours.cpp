// The C interface of the neighbour collectives: making them.
#include "tasuki/neighbours.hpp"

#include <fmt/format.h>

#include "api/nouns.hpp"

using namespace tasuki;
using namespace tasuki::api;

namespace {

constexpr std::size_t kFirstTransfer = sizeof(tasuki_transfer_options);

struct Read {
  Neighbours neighbours{{}, {}};
  DType type = DType::u8;
  std::vector<std::int64_t> sent = {}, received = {};
  OperationOptions options = {};
};

Neighbours neighbours_from(const tasuki_neighbours& from) {
  if (value_of(from.grid) != 0) return Neighbours(get(from.grid, "neighbours.grid"));
  for (const auto& [count, name] : {std::pair{from.to_count, "to_count"}, std::pair{from.from_count, "from_count"}})
    if (count < 0)
      throw Failure(TASUKI_BAD_ARGUMENT,
                    fmt::format("argument 'neighbours.{}' is {}; it must not be negative", name, count));
  return {list_from(from.to, from.to_count, "neighbours.to"), list_from(from.from, from.from_count, "neighbours.from")};
}

// Reads the arguments on all ranks, then makes the operation.
template <class Make>
tasuki_status create(const char* function, tasuki_context context, const tasuki_neighbours* neighbours,
                     std::int64_t count, const std::int64_t* sent, const std::int64_t* received, int type,
                     const tasuki_transfer_options* options, tasuki_operation* result, const char* name, Make&& make) {
  return guarded(function, [&] {
    const Context& ranks = get(context, "context");
    Read r;
    agree(function, ranks, [&] {
      given(result, name);
      if (type < TASUKI_BYTES || type > TASUKI_I64_I64)
        throw Failure(TASUKI_BAD_ARGUMENT,
                      fmt::format("argument 'type' is {}; it must be a tasuki_type, {} to {}", type,
                                  static_cast<int>(TASUKI_BYTES), static_cast<int>(TASUKI_I64_I64)));
      r.type = type == TASUKI_BYTES ? DType::u8 : static_cast<DType>(type);
      r.neighbours = neighbours_from(*given(neighbours, "neighbours"));
      r.sent.assign(r.neighbours.to.size(), count);
      r.received.assign(r.neighbours.from.size(), count);
      if (sent != nullptr) r.sent = list_from(sent, std::ssize(r.sent), "send_counts");
      if (received != nullptr) r.received = list_from(received, std::ssize(r.received), "receive_counts");
      set_common(r.options, read_options(options, TASUKI_TRANSFER_OPTIONS_INIT, kFirstTransfer));
    });
    *result = keep<tasuki_operation>(std::make_unique<AnyOperation>(make(ranks, r)));
  });
}

}  // namespace

tasuki_status tasuki_neighbour_allgather_create(tasuki_context context, const tasuki_neighbours* neighbours,
                                                const void* in, void* out, int64_t count, const int64_t* receive_counts,
                                                int type, const tasuki_transfer_options* options,
                                                tasuki_operation* allgather) {
  return create("tasuki_neighbour_allgather_create", context, neighbours, count, nullptr, receive_counts, type, options,
                allgather, "allgather", [&](const Context& ranks, const Read& r) -> Operation {
                  return NeighbourAllgather(ranks, r.neighbours, input(in), output(out), count, r.received, r.type,
                                            r.options);
                });
}

tasuki_status tasuki_neighbour_alltoall_create(tasuki_context context, const tasuki_neighbours* neighbours,
                                               const void* in, void* out, int64_t count, const int64_t* send_counts,
                                               const int64_t* receive_counts, int type,
                                               const tasuki_transfer_options* options, tasuki_operation* alltoall) {
  return create("tasuki_neighbour_alltoall_create", context, neighbours, count, send_counts, receive_counts, type,
                options, alltoall, "alltoall", [&](const Context& ranks, const Read& r) -> Operation {
                  return NeighbourAlltoall(ranks, r.neighbours, input(in), output(out), r.sent, r.received, r.type,
                                           r.options);
                });
}
