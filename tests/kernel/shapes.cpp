// Messages with layouts: rows, columns, boxes and lists into others of as many bytes or into bytes, small and large.
// What arrives is compared with what the host packs and unpacks; the bytes between stay as they were.
#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "kernel_test.hpp"

using namespace kernel_tests;
namespace device = tasuki::device;
using tasuki::Layout;

namespace {

struct Ends {
  device::Shape send;
  device::Shape receive;
};

constexpr int kMostShapes = 12;

// All shapes at once to the right and from the left; `at` are places of each in the memory.
TASUKI_KERNEL void around(TASUKI_PARAMETER device::Messages m, const Ends* ends, const Word* at, int number, Byte* from,
                          Byte* to, int kind, Word* errors) {
  const auto block = device::this_block();
  const int right = (m.team.rank + 1) % m.team.ranks;
  const int left = (m.team.rank + m.team.ranks - 1) % m.team.ranks;
  const auto play = [&](const auto& group) {
    device::Request requests[2 * kMostShapes];
    for (int i = 0; i < number; ++i)
      if (!device::irecv(m, group, left, to + at[i], ends[i].receive, i, requests[i])) return;
    for (int i = number - 1; i >= 0; --i)
      if (!device::isend(m, group, right, from + at[i], ends[i].send, i, requests[number + i])) return;
    for (int i = 0; i < 2 * number; ++i)
      if (!device::wait(m, group, requests[i])) return;
    for (int i = 0; i < number; ++i)
      count(errors, requests[i].bytes == ends[i].send.bytes && requests[i].tag == i ? 0 : 1);
    if (group.thread() == 0) device::detail::add_gpu(errors + 1, 1);
  };
  if (kind == 0) play(block);
  if (kind == 1 && device::this_warp().warp() == 0) play(device::this_warp());
  if (kind == 2 && block.thread() == 0) play(device::this_thread());
}

// Layouts of the same number of bytes.
std::vector<Layout> layouts_of(int rows, int columns, std::int64_t unit) {
  const auto element = Layout::bytes(unit);
  const std::int64_t all = std::int64_t{rows} * columns;
  const std::vector<std::int64_t> sizes{rows + 2, columns + 3};
  const std::vector<std::int64_t> subsizes{rows, columns};
  const std::vector<std::int64_t> starts{1, 2};
  std::vector<std::int64_t> lengths;
  std::vector<std::int64_t> places;
  for (std::int64_t left = all, place = 3, n = 1; left > 0; ++n) {
    lengths.push_back(std::min(left, n % 4 + 1));
    places.push_back(place);
    left -= lengths.back();
    place += lengths.back() + n % 3;
  }
  return {Layout::contiguous(all, element), Layout::vector(rows, columns, columns + 1, element),
          Layout::vector(all, 1, 3, element), Layout::subarray(sizes, subsizes, starts, element),
          Layout::indexed(lengths, places, element)};
}

void exchange(const tasuki::Context& ctx, const tasuki::ResidentOptions& width, int kind, bool concurrent, int seed,
              const std::string& path = "auto", std::int64_t staging = tasuki::MessagesOptions().staging) {
  CAPTURE(seed);
  std::mt19937 random(static_cast<unsigned>(seed));
  std::vector<Layout> send;
  std::vector<Layout> receive;
  std::vector<Word> at;
  Word next = 0;
  for (int i = 0; i < kMostShapes; ++i) {
    const auto choices =
        layouts_of(1 + static_cast<int>(random() % 9), 1 + static_cast<int>(random() % (i < 8 ? 7 : 90)),
                   static_cast<std::int64_t>(1 + random() % 13));
    send.push_back(choices[random() % choices.size()]);
    receive.push_back(choices[random() % choices.size()]);
    at.push_back(next + random() % 5);
    next = at.back() + static_cast<Word>(std::max(send.back().true_upper_bound(), receive.back().true_upper_bound()));
  }
  tasuki::MessagesOptions options;
  options.depth = kMostShapes;
  options.eager = 300;
  options.concurrent = concurrent;
  options.path = path;
  options.staging = staging;
  const tasuki::Messages messages(ctx, options);
  std::vector<tasuki::MessageLayout> made;
  std::vector<Ends> ends;
  for (std::size_t i = 0; i < send.size(); ++i) {
    made.emplace_back(ctx, send[i]);
    made.emplace_back(ctx, receive[i]);
    ends.push_back({made[2 * i].device(), made[2 * i + 1].device()});
  }
  const auto byte = [](int rank, Word i) { return static_cast<Byte>(i * 7 + i / 251 + 31 * static_cast<Word>(rank)); };
  const int left = (ctx.rank() + ctx.size() - 1) % ctx.size();
  const Buffer<Ends> kernel_ends(ends);
  const Buffer<Word> places(at);
  const Buffer<Byte> from(next + 1);
  const Buffer<Byte> to(next + 1);
  std::vector<Byte> theirs(next + 1);
  std::vector<Byte> expected(next + 1);
  for (Word i = 0; i < next; ++i) {
    from[i] = byte(ctx.rank(), i);
    theirs[i] = byte(left, i);
    to[i] = expected[i] = static_cast<Byte>(i);
  }
  for (std::size_t i = 0; i < send.size(); ++i) {
    std::vector<Byte> packed(static_cast<std::size_t>(send[i].size()));
    send[i].pack(theirs.data() + at[i], packed.data());
    receive[i].unpack(packed.data(), expected.data() + at[i]);
  }
  const Buffer<Word> errors(2);
  tasuki::launch_resident(ctx, width, around, messages.device(), kernel_ends.get(), places.get(), kMostShapes,
                          from.get(), to.get(), kind, errors.get())
      .wait();
  CHECK(errors[0] == 0);
  CHECK(errors[1] == 1);
  Word wrong = 0;
  for (Word i = 0; i < next; ++i) wrong += to[i] == expected[i] ? 0 : 1;
  CHECK(wrong == 0);
}

TASUKI_KERNEL void into_overlap(TASUKI_PARAMETER device::Messages m, device::Shape shape, Byte* to) {
  device::Request request;
  device::irecv(m, device::this_block(), m.team.rank, to, shape, 4, request);
}

}  // namespace

RANK_TEST("kernels on threads send what lies in one layout into another") {
  prepare(ctx);
  int seed = 1;
  for (const auto& width : widths())
    for (const bool concurrent : {true, false})
      for (int kind = 0; kind < 3; ++kind) exchange(ctx, width, kind, concurrent, seed++);
}

RANK_TEST("layouts of kernels go through the host where that is asked for") {
  if (ranks_are_threads()) return;
  prepare(ctx);
  int seed = 101;
  for (const auto& width : widths())
    for (int kind = 0; kind < 3; ++kind) exchange(ctx, width, kind, kind != 1, seed++, "mpi");
  if (ctx.size() == 1) return;
  for (int kind = 0; kind < 3; ++kind) exchange(ctx, widths()[1], kind, kind != 1, seed++, "mpi", 64);  // in slices
}

TEST_CASE("layouts of kernels travel within islands and between them") {
  if (ranks_are_threads()) return;
  for (const int island : {1, 2}) {
    CAPTURE(island);
    with_islands(island, [] {
      on_ranks([](const tasuki::Context& ctx) {
        prepare(ctx);
        for (int kind = 0; kind < 3; ++kind) exchange(ctx, widths()[2], kind, kind != 2, 201 + kind);
      });
    });
  }
}

RANK_TEST("a receive of a kernel into a layout that names a byte twice is refused") {
  prepare(ctx);
  const tasuki::Messages messages(ctx);
  const tasuki::MessageLayout twice(ctx, Layout::hvector(3, 1, 4, Layout::bytes(8)));
  const Buffer<Byte> to(64);
  auto running = tasuki::launch_resident(ctx, widths()[1], into_overlap, messages.device(), twice.device(), to.get());
  const std::string error = error_of([&] { running.wait(); });
  INFO(error);
  CHECK(error.find("irecv from rank " + std::to_string(ctx.rank()) +
                   " with tag 4: the layout of the receive names a byte twice") != std::string::npos);
}
