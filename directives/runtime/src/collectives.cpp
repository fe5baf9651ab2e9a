// See collectives.hpp. Variables are wherever a program has them, also on its stack, and so travel through buffers that
// stay: which operation is there already then depends on the shape of the call alone, which is the same on all nodes.
#include "collectives.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gpu_work.hpp"
#include "guard.hpp"
#include "locations.hpp"
#include "tasuki/broadcast.hpp"
#include "tasuki/collectives.hpp"
#include "tasuki/device.hpp"
#include "tasuki/error.hpp"
#include "tasuki/grid.hpp"
#include "tasuki/memory.hpp"
#include "whereabouts.hpp"
#include "world.hpp"

namespace tasuki::xmp {

namespace {

// One prepared operation with its buffer. What is started before the one before has been waited for gets another one of
// several; there are as many as a program is likely to have under way.
constexpr int kSlots = 4;

std::int64_t bytes_of(const xmp_variable& v) {
  return v.count * size_of(static_cast<DType>(v.type));
}

void check(int count, const xmp_variable variables[], Memory where) {
  if (count < 1) refuse("argument 'count' is {}; give at least one variable", count);
  given(variables, "variables");
  for (int i = 0; i < count; ++i) {
    const xmp_variable& v = variables[i];
    const bool known = (v.type >= XMP_I8 && v.type <= XMP_F64) || v.type == XMP_C64 || v.type == XMP_C128;
    if (!known) refuse("the type of variable {} is {}, which is none", i, v.type);
    if (v.count < 0 || v.count > INT64_MAX / 16)
      refuse("variable {} has {} elements; it must have 0 or more", i, v.count);
    if (v.data == nullptr && v.count > 0) refuse("variable {} is null", i);
    if (where == Memory::device && v.count > 0 && !gpu_has(v.data))
      refuse("variable {} is in memory of the host; give its address on the GPU", i);
  }
}

ReduceOp operator_of(int op) {
  switch (op) {
    case XMP_SUM:
    case XMP_MINUS:
      return ReduceOp::sum;
    case XMP_PROD:
      return ReduceOp::product;
    case XMP_BAND:
      return ReduceOp::band;
    case XMP_BOR:
      return ReduceOp::bor;
    case XMP_BXOR:
      return ReduceOp::bxor;
    case XMP_LAND:
      return ReduceOp::land;
    case XMP_LOR:
      return ReduceOp::lor;
    case XMP_MAX:
    case XMP_FIRSTMAX:
    case XMP_LASTMAX:
      return ReduceOp::max;
    case XMP_MIN:
    case XMP_FIRSTMIN:
    case XMP_LASTMIN:
      return ReduceOp::min;
    default:
      refuse("argument 'op' is {}, which is no operator", op);
  }
}

// Memory that stays as long as its owner: shared memory of the host, or a field of bytes on the GPU. Collective there.
std::shared_ptr<void> buffer(const Context& context, std::int64_t bytes, Memory where, void*& at) {
  if (where == Memory::host) {
    std::shared_ptr<std::byte> memory = shared_alloc(context, bytes);
    at = memory.get();
    return memory;
  }
  const std::int64_t each = bytes > 0 ? bytes : 1;
  std::vector<std::int64_t> cuts;
  for (int rank = 0; rank <= context.size(); ++rank) cuts.push_back(rank * each);
  const Grid grid(context, {context.size() * each}, {.split = {context.size()}, .cuts = {cuts}});
  auto field = std::make_shared<Field<std::uint8_t>>(
      grid, FieldOptions{.name = "variables", .shadow = 0, .memory = Memory::device});
  at = field->data();
  return field;
}

void copy(void* to, const void* from, std::int64_t bytes, Memory where) {
  if (bytes == 0) return;
  if (where == Memory::device)
    copy_bytes(to, from, bytes);
  else
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

// The stream of a queue; without one, the default stream.
Stream stream_of(int queue) {
  return queue == XACC_SYNC ? nullptr : world().queue(queue);
}

// After what was put into the queue's stream.
void end_in(int queue) {
  if (queue == XACC_SYNC) synchronize(world().context(), nullptr);
}

// A variable's operation, and what it does before and after: for those that are under way, which have several slots.
class Staged {
 public:
  using Make = std::function<Operation(void* buffer)>;

  /// The operation of this call, over a buffer of so many bytes. `key` is the shape of the call. Every queue has
  /// buffers of its own, so that its stream orders all that uses them.
  static std::shared_ptr<Work> of(const NodeShape& nodes, std::vector<std::int64_t> key, Memory where, int queue,
                                  std::int64_t bytes, bool under_way, const Make& make, void*& at) {
    key.insert(key.begin(), {3, static_cast<std::int64_t>(where), queue});
    key.insert(key.end(), nodes.ranks.begin(), nodes.ranks.end());
    // All nodes count alike, so that they take the same slot, whatever has ended on which of them.
    key.push_back(under_way ? 1 + turns()[key]++ % kSlots : 0);
    const Key name{key, {}};
    std::shared_ptr<Work> work = world().find(name);
    if (!work) {
      const Context& context = world().context(nodes.ranks);
      work = std::make_shared<Work>();
      void* memory = nullptr;
      work->keep.push_back(buffer(context, bytes, where, memory));
      work->keep.push_back(std::make_shared<void*>(memory));
      work->operations.push_back(make(memory));
      world().keep(name, nodes.ranks, work);
    }
    if (work->active) work->wait();  // its turn has come again
    at = *static_cast<void**>(work->keep[1].get());
    return work;
  }

 private:
  static std::map<std::vector<std::int64_t>, int>& turns() {
    static std::map<std::vector<std::int64_t>, int> all;
    return all;
  }
};

}  // namespace

const NodeShape& nodes_on(xmp_desc_t on) {
  const NodeShape& nodes = on == nullptr ? world().executing() : nodes_of(on, "on").shape;
  doing_now->nodes = &nodes;
  return nodes;
}

void reduce(int op, int count, const xmp_variable variables[], xmp_desc_t on, Memory where, const Until& until) {
  const NodeShape& nodes = nodes_on(on);
  check(count, variables, where);
  doing_now->elements = variables[0].count;
  const ReduceOp with = operator_of(op);
  for (int i = 0; i < count; ++i)
    if (!defined(with, static_cast<DType>(variables[i].type)))
      refuse("operator {} has no meaning for variable {}, of type {}", to_string(with), i,
             to_string(static_cast<DType>(variables[i].type)));
  if (nodes.number_of(world().rank()) < 0) return;
  const bool in_stream = where == Memory::device && !until.id;
  const Stream stream = in_stream ? stream_of(until.queue) : nullptr;
  if (in_stream && nodes.size() == 1) return end_in(until.queue);  // what is there is the result
  const bool several = until.id.has_value() || (count > 1 && !in_stream);
  // All are started before the first is waited for.
  std::vector<std::shared_ptr<Work>> all;
  for (int i = 0; i < count; ++i) {
    const xmp_variable v = variables[i];
    const auto type = static_cast<DType>(v.type);
    const std::int64_t bytes = bytes_of(v);
    void* at = nullptr;
    const auto make = [&](void* memory) -> Operation {
      return Allreduce(world().context(nodes.ranks), in_place, memory, v.count, type, with);
    };
    auto work = Staged::of(nodes, {1, static_cast<std::int64_t>(with), v.type, v.count}, where, until.queue, bytes,
                           several, make, at);
    if (in_stream) {
      gpu_copy(at, v.data, bytes, stream);
      work->run(stream);
      gpu_copy(v.data, at, bytes, stream);
      continue;
    }
    copy(at, v.data, bytes, where);
    work->after = [v, bytes, at, where] { copy(v.data, at, bytes, where); };
    if (several) {
      work->start();
      all.push_back(std::move(work));
    } else {
      work->run();
    }
  }
  for (auto& work : all) {
    if (until.id)
      world().started(*until.id, work);
    else
      work->wait();
  }
  if (in_stream) end_in(until.queue);
}

void broadcast(int count, const xmp_variable variables[], int from, xmp_desc_t on, Memory where, const Until& until) {
  const NodeShape& nodes = nodes_on(on);
  check(count, variables, where);
  doing_now->elements = variables[0].count;
  if (from < 0 || from >= nodes.size())
    refuse("argument 'from' is {}; the nodes have the numbers 0 to {}", from, nodes.size() - 1);
  const int mine = nodes.number_of(world().rank());
  if (mine < 0) return;
  const bool in_stream = where == Memory::device && !until.id;
  const Stream stream = in_stream ? stream_of(until.queue) : nullptr;
  // One message for all variables.
  std::int64_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += bytes_of(variables[i]);
  void* at = nullptr;
  const auto make = [&](void* memory) -> Operation {
    return Broadcast(world().context(nodes.ranks), from, memory, bytes);
  };
  const auto work = Staged::of(nodes, {2, from, bytes}, where, until.queue, bytes, until.id.has_value(), make, at);
  const std::vector<xmp_variable> all(variables, variables + count);
  const auto each = [all, at, where, in_stream, stream](bool out) {
    auto* next = static_cast<std::byte*>(at);
    for (const xmp_variable& v : all) {
      void* const to = out ? v.data : next;
      const void* const source = out ? next : v.data;
      if (in_stream)
        gpu_copy(to, source, bytes_of(v), stream);
      else
        copy(to, source, bytes_of(v), where);
      next += bytes_of(v);
    }
  };
  if (mine == from) each(false);
  if (in_stream) {
    work->run(stream);
    if (mine != from) each(true);
    end_in(until.queue);
    return;
  }
  work->after = mine == from ? std::function<void()>() : [each] { each(true); };
  if (until.id)
    world().start(*until.id, work);
  else
    work->run();
}

void barrier(xmp_desc_t on) {
  const NodeShape& nodes = nodes_on(on);
  if (nodes.number_of(world().rank()) < 0) return;
  void* at = nullptr;
  const auto make = [&](void*) -> Operation { return Barrier(world().context(nodes.ranks)); };
  Staged::of(nodes, {4}, Memory::host, XACC_SYNC, 0, false, make, at)->run();
}

// Every node has the values and locations of all, and takes the same ones.
void reduce_with_locations(int op, const xmp_variable& v, int locations, const xmp_variable location[], xmp_desc_t on,
                           Memory where, const Until& until) {
  const NodeShape& nodes = nodes_on(on);
  check(1, &v, where);
  doing_now->elements = v.count;
  if (locations < 0) refuse("argument 'locations' is {}; it must be 0 or more", locations);
  if (locations > 0) check(locations, location, where);
  if (op < XMP_FIRSTMAX || op > XMP_LASTMIN)
    refuse("argument 'op' is {}; locations belong to XMP_FIRSTMAX, XMP_FIRSTMIN, XMP_LASTMAX and XMP_LASTMIN", op);
  std::vector<xmp_variable> parts{v};
  for (int i = 0; i < locations; ++i) {
    if (location[i].count != v.count)
      refuse("location {} has {} elements, but the variable has {}", i, location[i].count, v.count);
    parts.push_back(location[i]);
  }
  const auto type = static_cast<DType>(v.type);
  if (!defined(ReduceOp::max, type)) refuse("values of type {} have no order", to_string(type));
  const int mine = nodes.number_of(world().rank());
  if (mine < 0) return;
  const Stream stream = where == Memory::device ? stream_of(until.queue) : nullptr;
  std::int64_t bytes = 0;
  for (const xmp_variable& part : parts) bytes += bytes_of(part);
  void* at = nullptr;
  const auto make = [&](void* memory) -> Operation {
    return Allgather(world().context(nodes.ranks), in_place, memory, bytes, DType::u8);
  };
  const auto work = Staged::of(nodes, {3, bytes}, where, until.queue, bytes * nodes.size(), false, make, at);
  Gathered all{static_cast<const std::byte*>(at), nodes.size(), bytes, v.count};
  all.type = type;
  all.greatest = op == XMP_FIRSTMAX || op == XMP_LASTMAX;
  all.last = op == XMP_LASTMAX || op == XMP_LASTMIN;
  std::byte* next = static_cast<std::byte*>(at) + mine * bytes;
  for (const xmp_variable& part : parts) {
    if (where == Memory::device)
      gpu_copy(next, part.data, bytes_of(part), stream);
    else
      copy(next, part.data, bytes_of(part), where);
    next += bytes_of(part);
  }
  if (where == Memory::device)
    work->run(stream);
  else
    work->run();
  std::int64_t offset = 0;
  for (const xmp_variable& part : parts) {
    const Chosen chosen{part.data, offset, size_of(static_cast<DType>(part.type))};
    if (where == Memory::device)
      gpu_take_best(all, chosen, stream);
    else
      take_best(all, chosen);
    offset += bytes_of(part);
  }
  if (where == Memory::device) end_in(until.queue);
}

}  // namespace tasuki::xmp

using namespace tasuki::xmp;  // NOLINT(google-build-using-namespace)
using tasuki::Memory;

extern "C" {

int xmp_reduction(int op, int count, const xmp_variable variables[], xmp_desc_t on) {
  return guarded("xmp_reduction", [&] { reduce(op, count, variables, on, Memory::host, {}); });
}

int xmp_reduction_async(int op, int count, const xmp_variable variables[], xmp_desc_t on, int id) {
  return guarded("xmp_reduction_async", [&] { reduce(op, count, variables, on, Memory::host, {id}); });
}

int xmp_reduction_loc(int op, xmp_variable v, int locations, const xmp_variable location[], xmp_desc_t on) {
  return guarded("xmp_reduction_loc", [&] { reduce_with_locations(op, v, locations, location, on, Memory::host, {}); });
}

int xmp_bcast(int count, const xmp_variable variables[], int from, xmp_desc_t on) {
  return guarded("xmp_bcast", [&] { broadcast(count, variables, from, on, Memory::host, {}); });
}

int xmp_bcast_async(int count, const xmp_variable variables[], int from, xmp_desc_t on, int id) {
  return guarded("xmp_bcast_async", [&] { broadcast(count, variables, from, on, Memory::host, {id}); });
}

int xmp_barrier(xmp_desc_t on) {
  return guarded("xmp_barrier", [&] { barrier(on); });
}
}
