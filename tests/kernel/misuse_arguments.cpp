// Calls in kernels with a rank, a tag, a number or a layout that cannot be: each names its argument at once, without
// waiting for anybody, and all calls after it return false.
#include <climits>

#include "kernel_test.hpp"

using namespace kernel_tests;
namespace device = tasuki::device;

namespace {

enum class Asked {
  isend,
  irecv,
  signal,
  wait_signal,
  put,
  put_with_signal,
  put_word,
  wait_word,
  barrier,
  packet,
  wait_packet,
  all_to_all
};

/// One call, and what the host is to say of it.
struct Impossible {
  Asked asked;
  int rank;
  int index;  // a tag, or the number of a signal, word, ...
  const char* says;
};

TASUKI_DEVICE bool do_call(const device::Messages& m, Asked asked, int rank, int index, Byte* memory) {
  const auto group = device::this_block();
  const device::Team& team = m.team;
  device::Request request;
  Word word = 0;
  switch (asked) {
    case Asked::isend:
      return device::isend(m, group, rank, memory, 8, index, request);
    case Asked::irecv:
      return device::irecv(m, group, rank, memory, 8, index, request);
    case Asked::signal:
      return device::signal(team, group, rank, index, 1);
    case Asked::wait_signal:
      return device::wait_signal(team, group, rank, index, 1);
    case Asked::put:
      return device::put(team, group, rank, 0, memory, 8);
    case Asked::put_with_signal:
      return device::put_with_signal(team, group, rank, 0, memory, 8, index, 1);
    case Asked::put_word:
      return device::put_word(team, group, rank, index, 1, 1);
    case Asked::wait_word:
      return device::wait_word(team, group, rank, index, 1, word);
    case Asked::barrier:
      return device::barrier(team, group, index);
    case Asked::packet:
      return device::put_packet(team, group, rank, index, 1, memory, 8);
    case Asked::wait_packet:
      return device::wait_packet(team, group, rank, index, 1, memory, 8);
    case Asked::all_to_all:
      return device::all_to_all(team, group, reinterpret_cast<Word*>(memory), reinterpret_cast<Word*>(memory) + 64, 1,
                                index);
  }
  return true;
}

TASUKI_KERNEL void asks_for(device::Messages m, Asked asked, int rank, int index, Byte* memory, Word* yes) {
  const auto group = device::this_block();
  count(yes, do_call(m, asked, rank, index, memory) ? 1 : 0);
  // What could be before cannot be any more.
  count(yes, do_call(m, Asked::signal, m.team.rank, 0, memory) ? 1 : 0);
  count(yes, do_call(m, Asked::isend, m.team.rank, 1, memory) ? 1 : 0);
  count(yes, do_call(m, Asked::barrier, 0, 0, memory) ? 1 : 0);
  count(yes, device::failed(m) ? 0 : 1);
  group.sync();
}

constexpr int kRanks = -12345;  // stands for the number of ranks, the first that is none

const std::vector<Impossible> kOfMessages{
    {Asked::isend, kRanks, 3, "isend: argument 'to' is "},
    {Asked::isend, -1, 3, "isend: argument 'to' is -1, but the context has ranks 0 to "},
    {Asked::isend, 0, INT_MIN, "isend: argument 'tag' is -2147483648; it must be 0 or more"},
    {Asked::isend, 0, device::kAnyTag, "isend: argument 'tag' is -1; it must be 0 or more"},
    {Asked::irecv, kRanks, 3, "irecv: argument 'from' is "},
    {Asked::irecv, INT_MIN, 3, "irecv: argument 'from' is -2147483648, but the context has ranks 0 to "},
    {Asked::irecv, 0, -2, "irecv: argument 'tag' is -2; it must be 0 or more, or kAnyTag"},
};
const std::vector<Impossible> kOfTeams{
    {Asked::signal, -7, 0, "signal: argument 'to' is -7"},
    {Asked::signal, 0, -1, "signal: argument 'slot' is -1; it must be 0 or more"},
    {Asked::wait_signal, INT_MAX, 0, "wait_signal: argument 'from' is 2147483647"},
    {Asked::wait_signal, 0, 64,
     "wait_signal: argument 'slot' is 64, but there are 64 signals; raise 'signals' of the options"},
    {Asked::put_with_signal, kRanks, 0, "put_with_signal: argument 'to' is "},
    {Asked::wait_packet, 0, -1, "wait_packet: argument 'slot' is -1; it must be 0 or more"},
    {Asked::put, kRanks, 0, "put: argument 'to' is "},
    {Asked::put_word, kRanks, 0, "put_word: argument 'to' is "},
    {Asked::put_word, 0, 1 << 20, "put_word: argument 'slot' is 1048576, but there are 64 words; raise 'words'"},
    {Asked::wait_word, 0, -3, "wait_word: argument 'slot' is -3; it must be 0 or more"},
    {Asked::barrier, 0, 1 << 20, "barrier: argument 'which' is 1048576, but there are 4 barriers; raise 'barriers'"},
    {Asked::barrier, 0, -1, "barrier: argument 'which' is -1; it must be 0 or more"},
    {Asked::packet, -1, 0, "put_packet: argument 'to' is -1"},
    {Asked::packet, 0, 77, "put_packet: argument 'slot' is 77, but there are 0 packets; raise 'packets'"},
    {Asked::all_to_all, 0, 77, "all_to_all: argument 'which' is 77, but there are 1 exchanges; raise 'exchanges'"},
};

/// All ranks again: a context is spent once a call in a kernel has failed.
tasuki::Context fresh(const tasuki::Context& ctx) {
  std::vector<int> all;
  for (int rank = 0; rank < ctx.size(); ++rank) all.push_back(rank);
  tasuki::Context again = ctx.subset(all);
  prepare(again);
  return again;
}

void check_calls(const tasuki::Context& shared, const std::vector<Impossible>& calls, const std::string& path) {
  for (const Impossible& call : calls) {
    CAPTURE(call.says);
    const tasuki::Context ctx = fresh(shared);
    tasuki::MessagesOptions options;
    options.path = path;
    options.team.window = 64;
    const tasuki::Messages messages(ctx, options);
    const Buffer<Byte> memory(4096);
    const Buffer<Word> yes(1);
    const int rank = call.rank == kRanks ? ctx.size() : call.rank;
    auto running = tasuki::launch_resident(ctx, widths()[1], asks_for, messages.device(), call.asked, rank, call.index,
                                           memory.get(), yes.get());
    const std::string error = error_of([&] { running.wait(); });
    INFO(error);
    CHECK(yes[0] == 0);
    CHECK(error.find("rank " + std::to_string(ctx.rank()) + ": Messages: in block 0 of a kernel, " + call.says) !=
          std::string::npos);
    CHECK(error_of([&] { messages.check(); }) == error);
    shared.barrier();  // nobody's failure is to end the waits of who is not as far
  }
}

TASUKI_KERNEL void by_shapes(TASUKI_PARAMETER device::Messages m, TASUKI_PARAMETER device::Shape send,
                             TASUKI_PARAMETER device::Shape receive, Byte* memory, Word* yes) {
  const auto group = device::this_block();
  const int right = (m.team.rank + 1) % m.team.ranks;
  const int left = (m.team.rank + m.team.ranks - 1) % m.team.ranks;
  device::Request requests[2];
  if (!device::irecv(m, group, left, memory + 256, receive, 5, requests[0])) return;
  if (!device::isend(m, group, right, memory, send, 5, requests[1])) return;
  count(yes, device::wait(m, group, requests[0]) ? 1 : 0);
}

void check_layouts(const tasuki::Context& shared, const std::string& path) {
  using tasuki::Layout;
  const Layout cell = Layout::bytes(4);
  const std::string left = "rank " + std::to_string((shared.rank() + shared.size() - 1) % shared.size());
  const auto error = [&](const Layout& send, const Layout& receive) {
    const tasuki::Context ctx = fresh(shared);
    tasuki::MessagesOptions options;
    options.path = path;
    const tasuki::Messages messages(ctx, options);
    const tasuki::MessageLayout out(ctx, send);
    const tasuki::MessageLayout in(ctx, receive);
    const Buffer<Byte> memory(512);
    const Buffer<Word> yes(1);
    auto running = tasuki::launch_resident(ctx, widths()[1], by_shapes, messages.device(), out.device(), in.device(),
                                           memory.get(), yes.get());
    const std::string text = error_of([&] { running.wait(); });
    CHECK(yes[0] == 0);
    shared.barrier();
    return text;
  };
  // Twelve cells into eleven.
  std::string text = error(Layout::vector(4, 3, 5, cell), Layout::vector(11, 1, 2, cell));
  INFO(text);
  CHECK(text.find("wait for a message from " + left + ": the message with tag 5 has 48 bytes, its receive takes 44") !=
        std::string::npos);
  text = error(Layout::vector(4, 3, 5, cell), Layout::vector(4, 3, 2, cell));
  INFO(text);
  CHECK(text.find("irecv from " + left + " with tag 5: the layout of the receive names a byte twice") !=
        std::string::npos);
}

}  // namespace

RANK_TEST("kernels that name ranks, tags and numbers that are not there are told so at once") {
  prepare(ctx);
  check_calls(ctx, kOfMessages, "auto");
  check_calls(ctx, kOfTeams, "auto");
  check_layouts(ctx, "auto");
}

RANK_TEST("kernels that name ranks and tags that are not there are told so where messages go through the host") {
  if (ranks_are_threads() || ctx.size() == 1) return;
  prepare(ctx);
  check_calls(ctx, kOfMessages, "mpi");
  check_layouts(ctx, "mpi");
}
