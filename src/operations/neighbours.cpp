// The classes of the neighbour collectives. What one rank asks is in shapes/neighbours.hpp.
#include "tasuki/neighbours.hpp"

#include <utility>

#include "fields/placement_of.hpp"
#include "operations/description.hpp"
#include "shapes/neighbours.hpp"

namespace tasuki {

namespace {

using Counts = std::vector<std::int64_t>;

NeighbourCall call_of(bool allgather, const Neighbours& neighbours) {
  return {allgather, neighbours.to, neighbours.from, neighbours.of_grid};
}

NeighbourCall with_counts(NeighbourCall call, Counts sent, Counts received, DType type) {
  call.sent = std::move(sent);
  call.received = std::move(received);
  call.type = type;
  return call;
}

NeighbourCall with_layouts(NeighbourCall call, std::vector<Layout> in_layouts, std::vector<Layout> out_layouts) {
  call.has_layouts = true;
  call.in_layouts = std::move(in_layouts);
  call.out_layouts = std::move(out_layouts);
  return call;
}

Description describe(const Context& context, NeighbourCall call, const void* in, const void* out) {
  NeighboursOfRank shape(context.rank(), context.size(), std::move(call));
  return description_of(context, shape, {in, out});
}

Counts repeated(std::int64_t count, std::size_t times) {
  return Counts(times, count);
}

}  // namespace

Neighbours::Neighbours(std::vector<int> whom, std::vector<int> of_whom)
    : to(std::move(whom)), from(std::move(of_whom)) {}

Neighbours::Neighbours(const Grid& grid)
    : to(beside(placement_of(grid), grid.context().rank())), from(to), of_grid(true) {}

NeighbourAllgather::NeighbourAllgather(const Context& context, const Neighbours& neighbours, const void* in, void* out,
                                       std::int64_t count, DType type, const OperationOptions& options)
    : NeighbourAllgather(context, neighbours, in, out, count, repeated(count, neighbours.from.size()), type, options) {}

NeighbourAllgather::NeighbourAllgather(const Context& context, const Neighbours& neighbours, const void* in, void* out,
                                       std::int64_t count, const std::vector<std::int64_t>& receive_counts, DType type,
                                       const OperationOptions& options) {
  NeighbourCall call =
      with_counts(call_of(true, neighbours), repeated(count, neighbours.to.size()), receive_counts, type);
  call.received_name = "receive_counts";
  state_ = std::make_shared<State>(context, describe(context, std::move(call), in, out), options);
}

NeighbourAllgather::NeighbourAllgather(const Context& context, const Neighbours& neighbours, const void* in,
                                       const Layout& in_layout, void* out, const std::vector<Layout>& out_layouts,
                                       const OperationOptions& options) {
  NeighbourCall call =
      with_layouts(call_of(true, neighbours), std::vector<Layout>(neighbours.to.size(), in_layout), out_layouts);
  state_ = std::make_shared<State>(context, describe(context, std::move(call), in, out), options);
}

NeighbourAlltoall::NeighbourAlltoall(const Context& context, const Neighbours& neighbours, const void* in, void* out,
                                     std::int64_t count, DType type, const OperationOptions& options) {
  NeighbourCall call = with_counts(call_of(false, neighbours), repeated(count, neighbours.to.size()),
                                   repeated(count, neighbours.from.size()), type);
  state_ = std::make_shared<State>(context, describe(context, std::move(call), in, out), options);
}

NeighbourAlltoall::NeighbourAlltoall(const Context& context, const Neighbours& neighbours, const void* in, void* out,
                                     const std::vector<std::int64_t>& send_counts,
                                     const std::vector<std::int64_t>& receive_counts, DType type,
                                     const OperationOptions& options) {
  NeighbourCall call = with_counts(call_of(false, neighbours), send_counts, receive_counts, type);
  call.sent_name = "send_counts";
  call.received_name = "receive_counts";
  state_ = std::make_shared<State>(context, describe(context, std::move(call), in, out), options);
}

NeighbourAlltoall::NeighbourAlltoall(const Context& context, const Neighbours& neighbours, const void* in,
                                     const std::vector<Layout>& in_layouts, void* out,
                                     const std::vector<Layout>& out_layouts, const OperationOptions& options) {
  NeighbourCall call = with_layouts(call_of(false, neighbours), in_layouts, out_layouts);
  state_ = std::make_shared<State>(context, describe(context, std::move(call), in, out), options);
}

}  // namespace tasuki
