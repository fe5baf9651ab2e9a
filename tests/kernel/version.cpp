// Programs and kernels that were compiled with other headers than the library: the host refuses to hand anything to
// them, and a kernel that gets it all the same tells the numbers and touches nothing else.
#include "kernel_test.hpp"

using namespace kernel_tests;
namespace device = tasuki::device;

namespace {

constexpr std::uint32_t kOther = device::kKernelVersion + 41;

/// Something for a kernel inside of something else, where the launch does not find it.
template <class T>
struct Hidden {
  T value;
};

TASUKI_KERNEL void uses_handle(Hidden<device::Handle> hidden, Word* yes) {
  const device::Handle& h = hidden.value;
  const auto all = device::this_grid();
  count(yes, device::run(h, all) ? 1 : 0);
  count(yes, device::start(h, all) ? 1 : 0);
  count(yes, device::wait(h, all) ? 1 : 0);
  count(yes, device::failed(h) ? 0 : 1);
}
TASUKI_KERNEL void uses_steps(Hidden<device::Handle> hidden, Hidden<device::Neighbours> neighbours, Word* yes) {
  const device::Steps steps(neighbours.value);
  count(yes, steps.wait(hidden.value, 1) ? 1 : 0);
  steps.end(1);
}
TASUKI_KERNEL void uses_messages(Hidden<device::Messages> hidden, device::Shape shape, Byte* memory, Word* yes) {
  const device::Messages& m = hidden.value;
  const device::Team& team = m.team;
  const auto group = device::this_block();
  device::Request request;
  bool done = false;
  Word word = 0;
  count(yes, device::isend(m, group, 0, memory, 8, 1, request) ? 1 : 0);
  count(yes, device::irecv(m, group, 0, memory, 8, 1, request) ? 1 : 0);
  count(yes, device::irecv(m, group, 0, memory, shape, 1, request) ? 1 : 0);
  count(yes, device::wait(m, group, request) ? 1 : 0);
  count(yes, device::test(m, group, request, done) ? 1 : 0);
  count(yes, device::echo(m, group, 1, word) ? 1 : 0);
  count(yes, device::put(team, group, 0, 0, memory, 8) ? 1 : 0);
  count(yes, device::put_with_signal(team, group, 0, 0, memory, 8, 0, 1) ? 1 : 0);
  count(yes, device::signal(team, group, 0, 0, 1) ? 1 : 0);
  count(yes, device::wait_signal(team, group, 0, 0, 1) ? 1 : 0);
  count(yes, device::put_word(team, group, 0, 0, 1, 1) ? 1 : 0);
  count(yes, device::wait_word(team, group, 0, 0, 1, word) ? 1 : 0);
  count(yes, device::put_packet(team, group, 0, 0, 1, memory, 8) ? 1 : 0);
  count(yes, device::wait_packet(team, group, 0, 0, 1, memory, 8) ? 1 : 0);
  count(yes, device::all_to_all(team, group, &word, &word, 1) ? 1 : 0);
  count(yes, device::allreduce(team, group, word, device::Sum(), word) ? 1 : 0);
  count(yes, device::barrier(team, group) ? 1 : 0);
  count(yes, device::barrier(team, device::this_grid()) ? 1 : 0);
  count(yes, device::window(team, 0) != nullptr ? 1 : 0);
  count(yes, device::failed(m) ? 0 : 1);
}

TASUKI_KERNEL void takes(device::Handle, device::Team, device::Messages, device::Neighbours) {}

/// What is of another version has nothing else that a kernel of this one could use.
device::Handle of_other_version(const device::Handle& handle) {
  device::Handle other{};
  other.heading = {kOther, handle.heading.number, handle.heading.failure};
  return other;
}
device::Messages of_other_version(const device::Messages& messages) {
  device::Messages other{};
  other.team.heading = {kOther, messages.team.heading.number, messages.team.heading.failure};
  return other;
}

std::string at_rank(const tasuki::Context& ctx, const std::string& text) {
  return "rank " + std::to_string(ctx.rank()) + ": " + text;
}

const std::string kAdvice = "compile it again, with the headers of the libtasuki that it runs with";

}  // namespace

RANK_TEST("versions: a program of another version is refused by the host") {
  prepare(ctx);
  Ring ring(ctx);
  const tasuki::KernelTeam team(ctx);
  const tasuki::Messages messages(ctx);
  const std::string numbers = "device: this program was compiled with version " + std::to_string(kOther) +
                              " of tasuki/kernel.cuh, libtasuki has version " + std::to_string(device::kKernelVersion) +
                              "; " + kAdvice;
  CHECK(contains(error_of([&] { (void)ring.halo.device({}, kOther); }), at_rank(ctx, "halo u: " + numbers)));
  CHECK(contains(error_of([&] { (void)ring.halo.device_reducing({}, kOther); }), at_rank(ctx, "halo u: " + numbers)));
  CHECK(contains(error_of([&] { (void)team.device(kOther); }), at_rank(ctx, "KernelTeam: " + numbers)));
  CHECK(contains(error_of([&] { (void)messages.device(kOther); }), at_rank(ctx, "Messages: " + numbers)));

  const tasuki::BlockNeighbours alone(ctx, {{}});
  device::Handle h = ring.halo.device();
  device::Team t = team.device();
  device::Messages m = messages.device();
  device::Neighbours n = alone.device();
  tasuki::ResidentOptions options;
  const auto refused = [&](std::uint32_t& version) {
    version = kOther;
    const std::string error = error_of([&] { tasuki::launch_resident(ctx, options, takes, h, t, m, n).wait(); });
    version = device::kKernelVersion;
    CAPTURE(error);
    CHECK(contains(error, at_rank(ctx, "launch_resident: an argument is of version " + std::to_string(kOther))));
    CHECK(contains(error, "the kernel was compiled with version " + std::to_string(device::kKernelVersion)));
  };
  refused(h.heading.version);
  refused(t.heading.version);
  refused(m.team.heading.version);
  refused(n.version);
  tasuki::launch_resident(ctx, options, takes, h, t, m, n).wait();
}

namespace {

/// By one thing of a context, which has failed then.
template <class Launch>
void fails_in_kernel(const tasuki::Context& ctx, const std::string& of, Launch&& launch) {
  const Buffer<Word> yes(1);
  const std::string error = error_of([&] { launch(yes.get()).wait(); });
  CAPTURE(error);
  CHECK(yes[0] == 0);
  CHECK(contains(error, at_rank(ctx, of + ": a kernel that uses it was compiled with version " +
                                         std::to_string(device::kKernelVersion) +
                                         " of tasuki/kernel.cuh, libtasuki has version ")));
  CHECK(contains(error, kAdvice));
}

tasuki::ResidentOptions two_blocks() {
  tasuki::ResidentOptions options;
  options.blocks = 2;
  options.threads = 64;
  options.cpu_threads = 2;
  return options;
}

}  // namespace

RANK_TEST("versions: a kernel of another version says so and touches nothing") {
  prepare(ctx);
  Ring ring(ctx);
  const tasuki::KernelGroup group{.blocks = 2, .threads = 64, .cpu_threads = 2};
  const device::Handle h = of_other_version(ring.halo.device(group));
  fails_in_kernel(ctx, "halo u", [&](Word* yes) {
    return tasuki::launch_resident(ctx, two_blocks(), uses_handle, Hidden<device::Handle>{h}, yes);
  });
  CHECK(contains(error_of([&] { (void)ring.halo.device(group); }), "was compiled with version"));
}

RANK_TEST("versions: blocks that wait for each other by a handle of another version say so") {
  prepare(ctx);
  Ring ring(ctx);
  const tasuki::KernelGroup group{.blocks = 2, .threads = 64, .cpu_threads = 2};
  const device::Handle h = of_other_version(ring.halo.device(group));
  device::Neighbours n{};
  n.version = kOther;
  fails_in_kernel(ctx, "halo u", [&](Word* yes) {
    return tasuki::launch_resident(ctx, two_blocks(), uses_steps, Hidden<device::Handle>{h},
                                   Hidden<device::Neighbours>{n}, yes);
  });
}

RANK_TEST("versions: messages and primitives of another version say so") {
  prepare(ctx);
  const tasuki::Messages messages(ctx);
  const tasuki::MessageLayout layout(ctx, tasuki::Layout::bytes(8));
  const Buffer<Byte> memory(64);
  const device::Messages m = of_other_version(messages.device());
  fails_in_kernel(ctx, "Messages", [&](Word* yes) {
    return tasuki::launch_resident(ctx, two_blocks(), uses_messages, Hidden<device::Messages>{m}, layout.device(),
                                   memory.get(), yes);
  });
  CHECK(contains(error_of([&] { messages.check(); }), "was compiled with version"));
}
