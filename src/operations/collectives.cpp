// The collectives' classes: each says what it is called and what it moves. Making one is in collective.cpp.
#include "tasuki/collectives.hpp"

#include <fmt/format.h>

#include "operations/collective.hpp"
#include "tasuki/broadcast.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

char place_of_marker = 0;

// The call, and the memory that it is given.
struct CollectiveArguments : CollectiveCall {
  const void* in = nullptr;
  void* out = nullptr;
  std::shared_ptr<const Operator::Combine> combine;
};

CollectiveArguments call_of(const char* operation, CollectiveKind kind, const void* in, void* out, DType type,
                            std::int64_t count, const Operator& op = ReduceOp::sum) {
  CollectiveArguments call;
  call.operation = operation;
  call.shape.kind = kind;
  call.shape.type = type;
  call.shape.op = op.op();
  call.shape.own = op.name();
  call.shape.record = op.record();
  call.shape.ordered = !op.commutes();
  call.combine = op.combine();
  call.shape.count = count;
  call.in = in;
  call.out = out;
  return call;
}

CollectiveArguments with_root(CollectiveArguments call, int root) {
  call.shape.root = root;
  return call;
}

CollectiveArguments with_counts(CollectiveArguments call, const std::vector<std::int64_t>& counts) {
  call.shape.counts = counts;
  call.has_counts = true;
  return call;
}

CollectiveArguments with_layouts(CollectiveArguments call, std::vector<Layout> in_layouts,
                                 std::vector<Layout> out_layouts) {
  call.in_layouts = std::move(in_layouts);
  call.out_layouts = std::move(out_layouts);
  call.has_layouts = true;
  return call;
}

/// What every constructor ends with. `state`: the operation's, whose type only operations may name.
template <class State>
void make(std::shared_ptr<State>& state, const Context& context, const CollectiveArguments& call,
          const CollectiveOptions& options) {
  state = std::make_shared<State>(context, describe(context, call, call.in, call.out, call.combine, options), options);
}

}  // namespace

void* const in_place = &place_of_marker;

Operator::Operator(std::string name, Combine combine, bool commutes, std::int64_t record)
    : name_(std::move(name)), commutes_(commutes), record_(record) {
  if (name_.empty()) throw Error("Operator: argument 'name' is empty; say what plans and errors shall call it");
  if (!combine) throw Error(fmt::format("Operator: argument 'combine' of '{}' is no function", name_));
  if (record < 1)
    throw Error(
        fmt::format("Operator: argument 'record' of '{}' is {}; a record has at least 1 number", name_, record));
  if (record > 1)  // who runs plans counts numbers
    combine = [combine = std::move(combine), record, name = name_](const void* right, void* left, std::int64_t count) {
      if (count % record != 0)
        throw Error(
            fmt::format("Operator '{}': the plan combines {} numbers, which is no whole number of records of {}", name,
                        count, record));
      combine(right, left, count / record);
    };
  combine_ = std::make_shared<const Combine>(std::move(combine));
}

Broadcast::Broadcast(const Context& context, int root, void* data, std::int64_t bytes,
                     const BroadcastOptions& options) {
  CollectiveArguments call =
      with_root(call_of("Broadcast", CollectiveKind::broadcast, data, nullptr, DType::u8, bytes), root);
  call.in_name = "data";
  call.count_name = "bytes";
  make(state_, context, call, options);
}

Broadcast::Broadcast(const Context& context, int root, void* data, const Layout& layout,
                     const BroadcastOptions& options) {
  CollectiveArguments call = with_layouts(
      with_root(call_of("Broadcast", CollectiveKind::broadcast, data, nullptr, DType::u8, 0), root), {layout}, {});
  call.in_name = "data";
  make(state_, context, call, options);
}

Allreduce::Allreduce(const Context& context, const void* in, void* out, std::int64_t count, DType type,
                     const Operator& op, const CollectiveOptions& options) {
  make(state_, context, call_of("Allreduce", CollectiveKind::allreduce, in, out, type, count, op), options);
}

Allreduce::Allreduce(const Context& context, const void* in, const Layout& in_layout, void* out,
                     const Layout& out_layout, DType type, const Operator& op, const CollectiveOptions& options) {
  make(state_, context,
       with_layouts(call_of("Allreduce", CollectiveKind::allreduce, in, out, type, 0, op), {in_layout}, {out_layout}),
       options);
}

Reduce::Reduce(const Context& context, int root, const void* in, void* out, std::int64_t count, DType type,
               const Operator& op, const CollectiveOptions& options) {
  make(state_, context, with_root(call_of("Reduce", CollectiveKind::reduce, in, out, type, count, op), root), options);
}

Reduce::Reduce(const Context& context, int root, const void* in, const Layout& in_layout, void* out,
               const Layout& out_layout, DType type, const Operator& op, const CollectiveOptions& options) {
  make(state_, context,
       with_layouts(with_root(call_of("Reduce", CollectiveKind::reduce, in, out, type, 0, op), root), {in_layout},
                    {out_layout}),
       options);
}

ReduceScatter::ReduceScatter(const Context& context, const void* in, void* out, std::int64_t count, DType type,
                             const Operator& op, const CollectiveOptions& options) {
  make(state_, context, call_of("ReduceScatter", CollectiveKind::reduce_scatter, in, out, type, count, op), options);
}

ReduceScatter::ReduceScatter(const Context& context, const void* in, void* out, const std::vector<std::int64_t>& counts,
                             DType type, const Operator& op, const CollectiveOptions& options) {
  make(state_, context,
       with_counts(call_of("ReduceScatter", CollectiveKind::reduce_scatter, in, out, type, 0, op), counts), options);
}

ReduceScatter::ReduceScatter(const Context& context, const void* in, const std::vector<Layout>& in_layouts, void* out,
                             const Layout& out_layout, DType type, const Operator& op,
                             const CollectiveOptions& options) {
  make(state_, context,
       with_layouts(call_of("ReduceScatter", CollectiveKind::reduce_scatter, in, out, type, 0, op), in_layouts,
                    {out_layout}),
       options);
}

Allgather::Allgather(const Context& context, const void* in, void* out, std::int64_t count, DType type,
                     const CollectiveOptions& options) {
  make(state_, context, call_of("Allgather", CollectiveKind::allgather, in, out, type, count), options);
}

Allgather::Allgather(const Context& context, const void* in, void* out, const std::vector<std::int64_t>& counts,
                     DType type, const CollectiveOptions& options) {
  make(state_, context, with_counts(call_of("Allgather", CollectiveKind::allgather, in, out, type, 0), counts),
       options);
}

Allgather::Allgather(const Context& context, const void* in, const Layout& in_layout, void* out,
                     const std::vector<Layout>& out_layouts, const CollectiveOptions& options) {
  make(state_, context,
       with_layouts(call_of("Allgather", CollectiveKind::allgather, in, out, DType::u8, 0), {in_layout}, out_layouts),
       options);
}

Gather::Gather(const Context& context, int root, const void* in, void* out, std::int64_t count, DType type,
               const CollectiveOptions& options) {
  make(state_, context, with_root(call_of("Gather", CollectiveKind::gather, in, out, type, count), root), options);
}

Gather::Gather(const Context& context, int root, const void* in, void* out, const std::vector<std::int64_t>& counts,
               DType type, const CollectiveOptions& options) {
  make(state_, context,
       with_counts(with_root(call_of("Gather", CollectiveKind::gather, in, out, type, 0), root), counts), options);
}

Gather::Gather(const Context& context, int root, const void* in, const Layout& in_layout, void* out,
               const std::vector<Layout>& out_layouts, const CollectiveOptions& options) {
  make(state_, context,
       with_layouts(with_root(call_of("Gather", CollectiveKind::gather, in, out, DType::u8, 0), root), {in_layout},
                    out_layouts),
       options);
}

Scatter::Scatter(const Context& context, int root, const void* in, void* out, std::int64_t count, DType type,
                 const CollectiveOptions& options) {
  make(state_, context, with_root(call_of("Scatter", CollectiveKind::scatter, in, out, type, count), root), options);
}

Scatter::Scatter(const Context& context, int root, const void* in, void* out, const std::vector<std::int64_t>& counts,
                 DType type, const CollectiveOptions& options) {
  make(state_, context,
       with_counts(with_root(call_of("Scatter", CollectiveKind::scatter, in, out, type, 0), root), counts), options);
}

Scatter::Scatter(const Context& context, int root, const void* in, const std::vector<Layout>& in_layouts, void* out,
                 const Layout& out_layout, const CollectiveOptions& options) {
  make(state_, context,
       with_layouts(with_root(call_of("Scatter", CollectiveKind::scatter, in, out, DType::u8, 0), root), in_layouts,
                    {out_layout}),
       options);
}

Alltoall::Alltoall(const Context& context, const void* in, void* out, std::int64_t count, DType type,
                   const CollectiveOptions& options) {
  make(state_, context, call_of("Alltoall", CollectiveKind::alltoall, in, out, type, count), options);
}

Alltoall::Alltoall(const Context& context, const void* in, void* out, const std::vector<std::int64_t>& send_counts,
                   const std::vector<std::int64_t>& receive_counts, DType type, const CollectiveOptions& options) {
  CollectiveArguments call = call_of("Alltoall", CollectiveKind::alltoall, in, out, type, 0);
  call.send_counts = send_counts;
  call.receive_counts = receive_counts;
  call.has_matrix = true;
  make(state_, context, call, options);
}

Alltoall::Alltoall(const Context& context, const void* in, const std::vector<Layout>& in_layouts, void* out,
                   const std::vector<Layout>& out_layouts, const CollectiveOptions& options) {
  make(state_, context,
       with_layouts(call_of("Alltoall", CollectiveKind::alltoall, in, out, DType::u8, 0), in_layouts, out_layouts),
       options);
}

Scan::Scan(const Context& context, const void* in, void* out, std::int64_t count, DType type, const Operator& op,
           const CollectiveOptions& options) {
  make(state_, context, call_of("Scan", CollectiveKind::scan, in, out, type, count, op), options);
}

Scan::Scan(const Context& context, const void* in, const Layout& in_layout, void* out, const Layout& out_layout,
           DType type, const Operator& op, const CollectiveOptions& options) {
  make(state_, context,
       with_layouts(call_of("Scan", CollectiveKind::scan, in, out, type, 0, op), {in_layout}, {out_layout}), options);
}

Exscan::Exscan(const Context& context, const void* in, void* out, std::int64_t count, DType type, const Operator& op,
               const CollectiveOptions& options) {
  make(state_, context, call_of("Exscan", CollectiveKind::exscan, in, out, type, count, op), options);
}

Exscan::Exscan(const Context& context, const void* in, const Layout& in_layout, void* out, const Layout& out_layout,
               DType type, const Operator& op, const CollectiveOptions& options) {
  make(state_, context,
       with_layouts(call_of("Exscan", CollectiveKind::exscan, in, out, type, 0, op), {in_layout}, {out_layout}),
       options);
}

Barrier::Barrier(const Context& context, const CollectiveOptions& options) : Barrier(context, Memory::host, options) {}

Barrier::Barrier(const Context& context, Memory where, const CollectiveOptions& options) {
  CollectiveArguments call = call_of("Barrier", CollectiveKind::barrier, nullptr, nullptr, DType::u8, 0);
  call.shape.memory = where;
  make(state_, context, call, options);
}

}  // namespace tasuki
