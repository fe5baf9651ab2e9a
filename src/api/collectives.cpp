// The C interface of the collectives but broadcast: making them from counts. Those of layouts are in
// collective_layouts.cpp.
#include "tasuki/collectives.hpp"

#include <fmt/format.h>

#include "api/collective_arguments.hpp"

using namespace tasuki;
using namespace tasuki::api;

namespace {

// Arguments as the collectives take them.
struct Read {
  DType type = DType::u8;
  Operator op = ReduceOp::sum;
  std::vector<std::int64_t> counts = {};
  CollectiveOptions options = {};
  Memory where = Memory::host;
};

// Reads the arguments on all ranks, then makes the operation. `op`: null where nothing is combined.
template <class Make>
tasuki_status create(const char* function, tasuki_context context, int type, const int* op, const std::int64_t* counts,
                     const tasuki_collective_options* options, tasuki_operation* result, const char* name,
                     Make&& make) {
  return guarded(function, [&] {
    const Context& ranks = get(context, "context");
    Read read_in;
    agree(function, ranks, [&] {
      given(result, name);
      read_in.type = collective_type_from(type, op != nullptr);
      if (op != nullptr) read_in.op = operator_from(*op, options);
      if (counts != nullptr) read_in.counts = list_from(counts, ranks.size(), "counts");
      read_in.options = collective_options_from(options);
      read_in.where = where_from(options);
    });
    *result = keep<tasuki_operation>(std::make_unique<AnyOperation>(make(ranks, read_in)));
  });
}

}  // namespace

tasuki_status tasuki_allreduce_create(tasuki_context context, const void* in, void* out, int64_t count, int type,
                                      int op, const tasuki_collective_options* options, tasuki_operation* allreduce) {
  return create("tasuki_allreduce_create", context, type, &op, nullptr, options, allreduce, "allreduce",
                [&](const Context& ranks, const Read& r) -> Operation {
                  return Allreduce(ranks, input(in), output(out), count, r.type, r.op, r.options);
                });
}

tasuki_status tasuki_reduce_create(tasuki_context context, int root, const void* in, void* out, int64_t count, int type,
                                   int op, const tasuki_collective_options* options, tasuki_operation* reduce) {
  return create("tasuki_reduce_create", context, type, &op, nullptr, options, reduce, "reduce",
                [&](const Context& ranks, const Read& r) -> Operation {
                  return Reduce(ranks, root, input(in), output(out), count, r.type, r.op, r.options);
                });
}

tasuki_status tasuki_reduce_scatter_create(tasuki_context context, const void* in, void* out, int64_t count,
                                           const int64_t* counts, int type, int op,
                                           const tasuki_collective_options* options, tasuki_operation* reduce_scatter) {
  return create("tasuki_reduce_scatter_create", context, type, &op, counts, options, reduce_scatter, "reduce_scatter",
                [&](const Context& ranks, const Read& r) -> Operation {
                  if (counts == nullptr)
                    return ReduceScatter(ranks, input(in), output(out), count, r.type, r.op, r.options);
                  return ReduceScatter(ranks, input(in), output(out), r.counts, r.type, r.op, r.options);
                });
}

tasuki_status tasuki_allgather_create(tasuki_context context, const void* in, void* out, int64_t count,
                                      const int64_t* counts, int type, const tasuki_collective_options* options,
                                      tasuki_operation* allgather) {
  return create("tasuki_allgather_create", context, type, nullptr, counts, options, allgather, "allgather",
                [&](const Context& ranks, const Read& r) -> Operation {
                  if (counts == nullptr) return Allgather(ranks, input(in), output(out), count, r.type, r.options);
                  return Allgather(ranks, input(in), output(out), r.counts, r.type, r.options);
                });
}

tasuki_status tasuki_gather_create(tasuki_context context, int root, const void* in, void* out, int64_t count,
                                   const int64_t* counts, int type, const tasuki_collective_options* options,
                                   tasuki_operation* gather) {
  return create("tasuki_gather_create", context, type, nullptr, counts, options, gather, "gather",
                [&](const Context& ranks, const Read& r) -> Operation {
                  if (counts == nullptr) return Gather(ranks, root, input(in), output(out), count, r.type, r.options);
                  return Gather(ranks, root, input(in), output(out), r.counts, r.type, r.options);
                });
}

tasuki_status tasuki_scatter_create(tasuki_context context, int root, const void* in, void* out, int64_t count,
                                    const int64_t* counts, int type, const tasuki_collective_options* options,
                                    tasuki_operation* scatter) {
  return create("tasuki_scatter_create", context, type, nullptr, counts, options, scatter, "scatter",
                [&](const Context& ranks, const Read& r) -> Operation {
                  if (counts == nullptr) return Scatter(ranks, root, input(in), output(out), count, r.type, r.options);
                  return Scatter(ranks, root, input(in), output(out), r.counts, r.type, r.options);
                });
}

tasuki_status tasuki_alltoall_create(tasuki_context context, const void* in, void* out, int64_t count,
                                     const int64_t* send_counts, const int64_t* receive_counts, int type,
                                     const tasuki_collective_options* options, tasuki_operation* alltoall) {
  return create("tasuki_alltoall_create", context, type, nullptr, send_counts, options, alltoall, "alltoall",
                [&](const Context& ranks, const Read& r) -> Operation {
                  std::vector<std::int64_t> from;
                  agree("tasuki_alltoall_create", ranks, [&] {
                    if ((send_counts == nullptr) != (receive_counts == nullptr))
                      throw Failure(TASUKI_BAD_ARGUMENT,
                                    fmt::format("argument '{}' is null and '{}' is not; give both or neither",
                                                send_counts == nullptr ? "send_counts" : "receive_counts",
                                                send_counts == nullptr ? "receive_counts" : "send_counts"));
                    if (receive_counts != nullptr) from = list_from(receive_counts, ranks.size(), "receive_counts");
                  });
                  if (send_counts == nullptr) return Alltoall(ranks, input(in), output(out), count, r.type, r.options);
                  return Alltoall(ranks, input(in), output(out), r.counts, from, r.type, r.options);
                });
}

tasuki_status tasuki_scan_create(tasuki_context context, const void* in, void* out, int64_t count, int type, int op,
                                 const tasuki_collective_options* options, tasuki_operation* scan) {
  return create("tasuki_scan_create", context, type, &op, nullptr, options, scan, "scan",
                [&](const Context& ranks, const Read& r) -> Operation {
                  return Scan(ranks, input(in), output(out), count, r.type, r.op, r.options);
                });
}

tasuki_status tasuki_exscan_create(tasuki_context context, const void* in, void* out, int64_t count, int type, int op,
                                   const tasuki_collective_options* options, tasuki_operation* exscan) {
  return create("tasuki_exscan_create", context, type, &op, nullptr, options, exscan, "exscan",
                [&](const Context& ranks, const Read& r) -> Operation {
                  return Exscan(ranks, input(in), output(out), count, r.type, r.op, r.options);
                });
}

tasuki_status tasuki_barrier_create(tasuki_context context, const tasuki_collective_options* options,
                                    tasuki_operation* barrier) {
  return create("tasuki_barrier_create", context, TASUKI_U8, nullptr, nullptr, options, barrier, "barrier",
                [&](const Context& ranks, const Read& r) -> Operation { return Barrier(ranks, r.where, r.options); });
}
