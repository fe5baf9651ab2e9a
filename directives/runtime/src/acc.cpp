// xacc.h: the same communication on memory of GPUs.
#include "xacc.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "collectives.hpp"
#include "gmove.hpp"
#include "gpu_work.hpp"
#include "guard.hpp"
#include "matmul.hpp"
#include "objects.hpp"
#include "reflect.hpp"
#include "tasuki/device.hpp"
#include "tasuki/error.hpp"
#include "tasuki/field.hpp"
#include "tasuki/grid.hpp"
#include "world.hpp"
#include "xacc_translated.h"

namespace tasuki::xmp {

namespace {

void require_gpu() {
  world();
  if (const std::string why = why_no_gpu(); !why.empty())
    throw Error(ErrorKind::not_possible, fmt::format("rank {}: no GPU can be used: {}", world().rank(), why));
}

template <class Body>
int on_gpu(const char* call, Body&& body) {
  return guarded(call, [&] {
    require_gpu();
    body();
  });
}

// With a queue it becomes work of the queue's stream.
void go(Work* work, int queue) {
  if (work == nullptr) return;
  if (queue == XACC_SYNC)
    work->run();
  else
    work->run(world().queue(queue));
}

// In a stream beside all others, after what they have.
void go_beside(Work* work) {
  if (work == nullptr || !work->moves()) return;
  work->run(world().beside().branch(world().default_stream()));
  world().travels_beside = true;
}

// Waits for the default stream and all queues.
void settle() {
  const Context& context = world().context();
  synchronize(context, nullptr);
  for (const auto& [queue, stream] : world().queues()) synchronize(context, stream);
}

void update(Array& array, bool to_device) {
  if (array.bytes() == 0) return;
  void* const host = memory_of_array(array, Memory::host);
  void* const device = memory_of_array(array, Memory::device);
  copy_bytes(to_device ? device : host, to_device ? host : device, array.bytes());
}

std::shared_ptr<Work> assignment_on_gpu(xmp_desc_t to, const xmp_range to_section[], xmp_desc_t from,
                                        const xmp_range from_section[]) {
  Array& left = array_of(to, "to");
  Array& right = array_of(from, "from");
  return assignment("gmove acc", left, section_from(left, to_section), right, section_from(right, from_section),
                    Memory::device);
}

}  // namespace

// A field of bytes of which every node has as many as its part of the array takes.
void allocate_on_gpu(Array& array) {
  if (array.number < 0) return;
  const NodeShape& nodes = array.shape.nodes();
  std::vector<std::int64_t> cuts{0};
  for (int n = 0; n < nodes.size(); ++n) cuts.push_back(cuts.back() + array.shape.bytes(nodes.coordinates(n)));
  if (cuts.back() == 0) return;
  const Grid grid(world().context(nodes.ranks), {cuts.back()}, {.split = {nodes.size()}, .cuts = {cuts}});
  auto field = std::make_shared<Field<std::uint8_t>>(
      grid, FieldOptions{.name = array.name, .shadow = 0, .memory = Memory::device});
  void* const at = field->data();
  array.bind(Memory::device, at, std::move(field));
}

}  // namespace tasuki::xmp

using namespace tasuki::xmp;  // NOLINT(google-build-using-namespace)
using tasuki::Memory;

extern "C" {

int xacc_use_gpu(int* number) {
  return on_gpu("xacc_use_gpu", [&] {
    const int ordinal = use_gpu(world().context());
    if (number != nullptr) *number = ordinal;
  });
}

int xacc_set_queue(int queue, void* stream) {
  return on_gpu("xacc_set_queue", [&] {
    if (queue < 0) refuse("argument 'queue' is {}; it must be 0 or more", queue);
    world().set_queue(queue, static_cast<tasuki::Stream>(stream));
  });
}

int xacc_allocate(xmp_desc_t array, void** memory) {
  return on_gpu("xacc_allocate", [&] {
    Array& one = array_of(array, "array");
    allocate_on_gpu(one);
    if (memory != nullptr) *memory = one.place(Memory::device).memory;
  });
}

int xacc_bind(xmp_desc_t array, void* memory) {
  return on_gpu("xacc_bind", [&] {
    Array& one = array_of(array, "array");
    if (one.bytes() > 0 && !gpu_has(given(memory, "memory")))
      refuse("argument 'memory' points to memory of the host; give what cudaMalloc or acc_deviceptr gave");
    one.bind(Memory::device, memory, nullptr);
  });
}

int xacc_update_device(xmp_desc_t array) {
  return on_gpu("xacc_update_device", [&] { update(array_of(array, "array"), true); });
}

int xacc_update_self(xmp_desc_t array) {
  return on_gpu("xacc_update_self", [&] { update(array_of(array, "array"), false); });
}

int xacc_reflect(int count, const xmp_desc_t arrays[], const xmp_reflect_options* options, int queue) {
  return on_gpu("xacc_reflect",
                [&] { go(prepare("reflect acc", reflect_call(count, arrays, options), Memory::device).get(), queue); });
}

int xacc_reflect_async(int count, const xmp_desc_t arrays[], const xmp_reflect_options* options, int id) {
  return on_gpu("xacc_reflect_async", [&] {
    const auto work = prepare("reflect acc", reflect_call(count, arrays, options), Memory::device);
    if (work) world().start(id, work);
  });
}

int xacc_reflect_init(int count, const xmp_desc_t arrays[], const xmp_reflect_options* options) {
  return on_gpu("xacc_reflect_init",
                [&] { initialise("reflect_init acc", reflect_call(count, arrays, options), Memory::device); });
}

int xacc_reflect_do(int count, const xmp_desc_t arrays[], int queue) {
  // Whoever has a plan has a GPU.
  return guarded("xacc_reflect_do", [&] { go(initialised("reflect_do acc", count, arrays, Memory::device), queue); });
}

int xacc_reflect_do_async(int count, const xmp_desc_t arrays[], int id) {
  return guarded("xacc_reflect_do_async", [&] {
    const auto work = shared_initialised("reflect_do acc", count, arrays, Memory::device);
    if (work) world().start(id, work);
  });
}

int xacc_reflect_beside(int count, const xmp_desc_t arrays[], const xmp_reflect_options* options) {
  return on_gpu("xacc_reflect",
                [&] { go_beside(prepare("reflect acc", reflect_call(count, arrays, options), Memory::device).get()); });
}

int xacc_reflect_do_beside(int count, const xmp_desc_t arrays[]) {
  return on_gpu("xacc_reflect_do", [&] { go_beside(initialised("reflect_do acc", count, arrays, Memory::device)); });
}

int xacc_under_way(void) {
  int found = 0;
  guarded("xacc_reflect", [&] { found = world().travels_beside ? 1 : 0; });
  return found;
}

int xacc_join(void) {
  return on_gpu("xacc_reflect", [&] {
    if (world().travels_beside) world().beside().join(world().default_stream());
    world().travels_beside = false;
  });
}

int xacc_settle(void) {
  return on_gpu("wait", settle);
}

int xacc_reduce_shadow(int count, const xmp_desc_t arrays[], const xmp_reflect_options* options, int queue) {
  return on_gpu("xacc_reduce_shadow", [&] {
    go(prepare("reduce_shadow acc", reflect_call(count, arrays, options, true), Memory::device).get(), queue);
  });
}

const char* xacc_reflect_explain(xmp_desc_t array) {
  const char* text = nullptr;
  guarded("xacc_reflect_explain", [&] { text = explain_reflect("reflect_init acc", array, Memory::device); });
  return text;
}

int xacc_gmove(xmp_desc_t to, const xmp_range to_section[], xmp_desc_t from, const xmp_range from_section[],
               int queue) {
  return on_gpu("xacc_gmove", [&] { go(assignment_on_gpu(to, to_section, from, from_section).get(), queue); });
}

int xacc_gmove_async(xmp_desc_t to, const xmp_range to_section[], xmp_desc_t from, const xmp_range from_section[],
                     int id) {
  return on_gpu("xacc_gmove_async", [&] { world().start(id, assignment_on_gpu(to, to_section, from, from_section)); });
}

int xacc_transpose(xmp_desc_t to, xmp_desc_t from, int queue) {
  return on_gpu("xacc_transpose", [&] {
    go(transposition("transpose acc", array_of(to, "to"), array_of(from, "from"), Memory::device).get(), queue);
  });
}

int xacc_matmul(xmp_desc_t c, xmp_desc_t a, xmp_desc_t b, int queue) {
  return on_gpu("xacc_matmul",
                [&] { matmul(array_of(c, "c"), array_of(a, "a"), array_of(b, "b"), Memory::device, queue); });
}

int xacc_reduction(int op, int count, const xmp_variable variables[], xmp_desc_t on, int queue) {
  return on_gpu("xacc_reduction", [&] { reduce(op, count, variables, on, Memory::device, {{}, queue}); });
}

int xacc_clear(int op, int count, const xmp_variable variables[], xmp_desc_t on, int queue) {
  return on_gpu("reduction acc", [&] {
    // Of other operators, a value may be combined with itself.
    if (op != XMP_SUM && op != XMP_MINUS && op != XMP_BXOR && op != XMP_PROD) return;
    if (nodes_of(on, "on").shape.number_of(world().rank()) < 1) return;
    const auto stream = queue == XACC_SYNC ? nullptr : world().queue(queue);
    for (int i = 0; i < count; ++i) {
      const xmp_variable& v = variables[i];
      Element neutral;
      neutral.bytes = static_cast<int>(tasuki::size_of(static_cast<tasuki::DType>(v.type)));
      const xmp_variable of_host{&neutral.value, 1, v.type};
      xmp_clear(op, 1, &of_host, on);
      gpu_fill(v.data, neutral, v.count, stream);
    }
  });
}

int xacc_reduction_async(int op, int count, const xmp_variable variables[], xmp_desc_t on, int id) {
  return on_gpu("xacc_reduction_async", [&] { reduce(op, count, variables, on, Memory::device, {id}); });
}

int xacc_reduction_loc(int op, xmp_variable v, int locations, const xmp_variable location[], xmp_desc_t on, int queue) {
  return on_gpu("xacc_reduction_loc", [&] {
    reduce_with_locations(op, v, locations, location, on, Memory::device, {{}, queue});
  });
}

int xacc_bcast(int count, const xmp_variable variables[], int from, xmp_desc_t on, int queue) {
  return on_gpu("xacc_bcast", [&] { broadcast(count, variables, from, on, Memory::device, {{}, queue}); });
}

int xacc_bcast_async(int count, const xmp_variable variables[], int from, xmp_desc_t on, int id) {
  return on_gpu("xacc_bcast_async", [&] { broadcast(count, variables, from, on, Memory::device, {id}); });
}

int xacc_barrier(xmp_desc_t on) {
  return on_gpu("xacc_barrier", [&] {
    settle();
    barrier(on);
  });
}
}
