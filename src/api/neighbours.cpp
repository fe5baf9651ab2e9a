// The C interface of the neighbour collectives: making them from counts. Those of layouts are in
// collective_layouts.cpp.
#include "tasuki/neighbours.hpp"

#include "api/collective_arguments.hpp"

using namespace tasuki;
using namespace tasuki::api;

namespace {

struct Read {
  Neighbours neighbours{{}, {}};
  DType type = DType::u8;
  std::vector<std::int64_t> sent = {}, received = {};
  OperationOptions options = {};
};

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
      r.type = collective_type_from(type, false);
      r.neighbours = neighbours_from(*given(neighbours, "neighbours"));
      r.sent.assign(r.neighbours.to.size(), count);
      r.received.assign(r.neighbours.from.size(), count);
      if (sent != nullptr) r.sent = list_from(sent, std::ssize(r.sent), "send_counts");
      if (received != nullptr) r.received = list_from(received, std::ssize(r.received), "receive_counts");
      r.options = transfer_options_from(options);
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
