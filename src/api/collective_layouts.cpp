// The C interface of the collectives whose blocks have layouts: making them.
#include <utility>

#include "api/collective_arguments.hpp"

using namespace tasuki;
using namespace tasuki::api;

namespace {

// What a side has to have: nothing that is looked at, one layout, or one for each block.
struct Asked {
  const Context& ranks;
  bool in_place;  // `in` is TASUKI_IN_PLACE; of scatter, `out` is
  bool is_root(int root) const { return ranks.rank() == root; }
};

struct Read {
  DType type = DType::u8;
  Operator op = ReduceOp::sum;
  CollectiveOptions options = {};
};

// Reads the arguments on all ranks, layouts by `layouts(Asked)`; then makes the operation. `type`, `op`: null where
// nothing is combined. `marked`: the buffer that may be TASUKI_IN_PLACE.
template <class Layouts, class Make>
tasuki_status create(const char* function, tasuki_context context, const void* marked, const int* type, const int* op,
                     const tasuki_collective_options* options, tasuki_operation* result, const char* name,
                     Layouts&& layouts, Make&& make) {
  return guarded(function, [&] {
    const Context& ranks = get(context, "context");
    Read read;
    agree(function, ranks, [&] {
      given(result, name);
      if (type != nullptr) read.type = collective_type_from(*type, true);
      if (op != nullptr) read.op = operator_from(*op, options);
      layouts(Asked{ranks, marked == TASUKI_IN_PLACE});
      read.options = collective_options_from(options);
    });
    *result = keep<tasuki_operation>(std::make_unique<AnyOperation>(make(ranks, read)));
  });
}

// Those that combine a vector to one on every rank.
template <class Made>
tasuki_status create_vector(const char* function, tasuki_context context, const void* in, tasuki_layout in_layout,
                            void* out, tasuki_layout out_layout, int type, int op,
                            const tasuki_collective_options* options, tasuki_operation* result, const char* name) {
  Layout from;
  Layout to;
  return create(
      function, context, in, &type, &op, options, result, name,
      [&](const Asked& asked) {
        from = layout_from(in_layout, "in_layout", !asked.in_place);
        to = layout_from(out_layout, "out_layout", true);
      },
      [&](const Context& ranks, const Read& r) -> Operation {
        return Made(ranks, input(in), from, output(out), to, r.type, r.op, r.options);
      });
}

}  // namespace

tasuki_status tasuki_broadcast_create_layout(tasuki_context context, int root, void* data, tasuki_layout layout,
                                             const tasuki_broadcast_options* options, tasuki_operation* broadcast) {
  return guarded("tasuki_broadcast_create_layout", [&] {
    const Context& ranks = get(context, "context");
    BroadcastOptions chosen;
    Layout bytes;
    agree("tasuki_broadcast_create_layout", ranks, [&] {
      given(broadcast, "broadcast");
      bytes = layout_from(layout, "layout", true);
      if (bytes.size() > 0) given(data, "data");
      chosen = broadcast_options_from(options);
    });
    *broadcast =
        keep<tasuki_operation>(std::make_unique<AnyOperation>(Broadcast(ranks, root, output(data), bytes, chosen)));
  });
}

tasuki_status tasuki_allreduce_create_layouts(tasuki_context context, const void* in, tasuki_layout in_layout,
                                              void* out, tasuki_layout out_layout, int type, int op,
                                              const tasuki_collective_options* options, tasuki_operation* allreduce) {
  return create_vector<Allreduce>("tasuki_allreduce_create_layouts", context, in, in_layout, out, out_layout, type, op,
                                  options, allreduce, "allreduce");
}

tasuki_status tasuki_scan_create_layouts(tasuki_context context, const void* in, tasuki_layout in_layout, void* out,
                                         tasuki_layout out_layout, int type, int op,
                                         const tasuki_collective_options* options, tasuki_operation* scan) {
  return create_vector<Scan>("tasuki_scan_create_layouts", context, in, in_layout, out, out_layout, type, op, options,
                             scan, "scan");
}

tasuki_status tasuki_exscan_create_layouts(tasuki_context context, const void* in, tasuki_layout in_layout, void* out,
                                           tasuki_layout out_layout, int type, int op,
                                           const tasuki_collective_options* options, tasuki_operation* exscan) {
  return create_vector<Exscan>("tasuki_exscan_create_layouts", context, in, in_layout, out, out_layout, type, op,
                               options, exscan, "exscan");
}

tasuki_status tasuki_reduce_create_layouts(tasuki_context context, int root, const void* in, tasuki_layout in_layout,
                                           void* out, tasuki_layout out_layout, int type, int op,
                                           const tasuki_collective_options* options, tasuki_operation* reduce) {
  Layout from;
  Layout to;
  return create(
      "tasuki_reduce_create_layouts", context, in, &type, &op, options, reduce, "reduce",
      [&](const Asked& asked) {
        from = layout_from(in_layout, "in_layout", !asked.in_place);
        to = layout_from(out_layout, "out_layout", asked.is_root(root));
      },
      [&](const Context& ranks, const Read& r) -> Operation {
        return Reduce(ranks, root, input(in), from, output(out), to, r.type, r.op, r.options);
      });
}

tasuki_status tasuki_reduce_scatter_create_layouts(tasuki_context context, const void* in,
                                                   const tasuki_layout* in_layouts, void* out, tasuki_layout out_layout,
                                                   int type, int op, const tasuki_collective_options* options,
                                                   tasuki_operation* reduce_scatter) {
  std::vector<Layout> from;
  Layout to;
  return create(
      "tasuki_reduce_scatter_create_layouts", context, in, &type, &op, options, reduce_scatter, "reduce_scatter",
      [&](const Asked& asked) {
        from = layouts_from(in_layouts, asked.ranks.size(), "in_layouts", true);
        to = layout_from(out_layout, "out_layout", !asked.in_place);
      },
      [&](const Context& ranks, const Read& r) -> Operation {
        return ReduceScatter(ranks, input(in), from, output(out), to, r.type, r.op, r.options);
      });
}

tasuki_status tasuki_allgather_create_layouts(tasuki_context context, const void* in, tasuki_layout in_layout,
                                              void* out, const tasuki_layout* out_layouts,
                                              const tasuki_collective_options* options, tasuki_operation* allgather) {
  Layout from;
  std::vector<Layout> to;
  return create(
      "tasuki_allgather_create_layouts", context, in, nullptr, nullptr, options, allgather, "allgather",
      [&](const Asked& asked) {
        from = layout_from(in_layout, "in_layout", !asked.in_place);
        to = layouts_from(out_layouts, asked.ranks.size(), "out_layouts", true);
      },
      [&](const Context& ranks, const Read& r) -> Operation {
        return Allgather(ranks, input(in), from, output(out), to, r.options);
      });
}

tasuki_status tasuki_gather_create_layouts(tasuki_context context, int root, const void* in, tasuki_layout in_layout,
                                           void* out, const tasuki_layout* out_layouts,
                                           const tasuki_collective_options* options, tasuki_operation* gather) {
  Layout from;
  std::vector<Layout> to;
  return create(
      "tasuki_gather_create_layouts", context, in, nullptr, nullptr, options, gather, "gather",
      [&](const Asked& asked) {
        from = layout_from(in_layout, "in_layout", !asked.in_place);
        to = layouts_from(out_layouts, asked.ranks.size(), "out_layouts", asked.is_root(root));
      },
      [&](const Context& ranks, const Read& r) -> Operation {
        return Gather(ranks, root, input(in), from, output(out), to, r.options);
      });
}

tasuki_status tasuki_scatter_create_layouts(tasuki_context context, int root, const void* in,
                                            const tasuki_layout* in_layouts, void* out, tasuki_layout out_layout,
                                            const tasuki_collective_options* options, tasuki_operation* scatter) {
  std::vector<Layout> from;
  Layout to;
  return create(
      "tasuki_scatter_create_layouts", context, out, nullptr, nullptr, options, scatter, "scatter",
      [&](const Asked& asked) {
        from = layouts_from(in_layouts, asked.ranks.size(), "in_layouts", asked.is_root(root));
        to = layout_from(out_layout, "out_layout", !asked.in_place);
      },
      [&](const Context& ranks, const Read& r) -> Operation {
        return Scatter(ranks, root, input(in), from, output(out), to, r.options);
      });
}

tasuki_status tasuki_alltoall_create_layouts(tasuki_context context, const void* in, const tasuki_layout* in_layouts,
                                             void* out, const tasuki_layout* out_layouts,
                                             const tasuki_collective_options* options, tasuki_operation* alltoall) {
  std::vector<Layout> from;
  std::vector<Layout> to;
  return create(
      "tasuki_alltoall_create_layouts", context, in, nullptr, nullptr, options, alltoall, "alltoall",
      [&](const Asked& asked) {
        from = layouts_from(in_layouts, asked.ranks.size(), "in_layouts", !asked.in_place);
        to = layouts_from(out_layouts, asked.ranks.size(), "out_layouts", true);
      },
      [&](const Context& ranks, const Read& r) -> Operation {
        return Alltoall(ranks, input(in), from, output(out), to, r.options);
      });
}

tasuki_status tasuki_neighbour_allgather_create_layouts(tasuki_context context, const tasuki_neighbours* neighbours,
                                                        const void* in, tasuki_layout in_layout, void* out,
                                                        const tasuki_layout* out_layouts,
                                                        const tasuki_transfer_options* options,
                                                        tasuki_operation* allgather) {
  constexpr const char* kName = "tasuki_neighbour_allgather_create_layouts";
  return guarded(kName, [&] {
    const Context& ranks = get(context, "context");
    Neighbours whom{{}, {}};
    Layout from;
    std::vector<Layout> to;
    OperationOptions chosen;
    agree(kName, ranks, [&] {
      given(allgather, "allgather");
      whom = neighbours_from(*given(neighbours, "neighbours"));
      from = layout_from(in_layout, "in_layout", !whom.to.empty());
      to = layouts_from(out_layouts, std::ssize(whom.from), "out_layouts", true);
      chosen = transfer_options_from(options);
    });
    *allgather = keep<tasuki_operation>(
        std::make_unique<AnyOperation>(NeighbourAllgather(ranks, whom, input(in), from, output(out), to, chosen)));
  });
}

tasuki_status tasuki_neighbour_alltoall_create_layouts(tasuki_context context, const tasuki_neighbours* neighbours,
                                                       const void* in, const tasuki_layout* in_layouts, void* out,
                                                       const tasuki_layout* out_layouts,
                                                       const tasuki_transfer_options* options,
                                                       tasuki_operation* alltoall) {
  constexpr const char* kName = "tasuki_neighbour_alltoall_create_layouts";
  return guarded(kName, [&] {
    const Context& ranks = get(context, "context");
    Neighbours whom{{}, {}};
    std::vector<Layout> from;
    std::vector<Layout> to;
    OperationOptions chosen;
    agree(kName, ranks, [&] {
      given(alltoall, "alltoall");
      whom = neighbours_from(*given(neighbours, "neighbours"));
      from = layouts_from(in_layouts, std::ssize(whom.to), "in_layouts", true);
      to = layouts_from(out_layouts, std::ssize(whom.from), "out_layouts", true);
      chosen = transfer_options_from(options);
    });
    *alltoall = keep<tasuki_operation>(
        std::make_unique<AnyOperation>(NeighbourAlltoall(ranks, whom, input(in), from, output(out), to, chosen)));
  });
}
