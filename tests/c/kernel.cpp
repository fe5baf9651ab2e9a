// A file in C++ of programs in C and in Fortran: it makes messages for kernels in a context of theirs, and launches
// one.
#include <cstddef>
#include <cstdio>
#include <exception>

#include "tasuki/handles.hpp"
#include "tasuki/kernel.hpp"

namespace device = tasuki::device;

namespace {

TASUKI_KERNEL void pass_on(device::Messages m, device::Shape shape, const double* from, double* to) {
  const auto group = device::this_block();
  const int next = (m.team.rank + 1) % m.team.ranks;
  const int before = (m.team.rank + m.team.ranks - 1) % m.team.ranks;
  device::Request send;
  device::Request receive;
  if (!device::irecv(m, group, before, to, shape.bytes, 1, receive)) return;
  if (!device::isend(m, group, next, from, shape, 1, send)) return;
  if (device::wait(m, group, send)) device::wait(m, group, receive);
}

}  // namespace

// An epoch of the operation, then what the layout says of `from` goes to the next rank's `to`. 0, or 1 and why not.
extern "C" int pass_on_by_kernel(tasuki_context ranks, tasuki_operation operation, tasuki_layout layout,
                                 const double* from, double* to, char* why, std::size_t room) {
  try {
    const tasuki::Context context = tasuki::context_of(ranks);
    tasuki::Operation first = tasuki::operation_of(operation);
    first.start();
    first.wait();
    const tasuki::MessageLayout sent(context, tasuki::layout_of(layout));
    const tasuki::Messages messages(context);
    tasuki::launch_resident(context, {}, pass_on, messages.device(), sent.device(), from, to).wait();
    return 0;
  } catch (const std::exception& error) {
    std::snprintf(why, room, "%s", error.what());
    return 1;
  }
}
