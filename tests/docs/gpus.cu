// The pieces of docs/gpus.md, line for line as tools/doc_blocks.py checks, each run and its result tested.
#include <cstdint>
#include <vector>

#include "gpu/common.hpp"
#include "tasuki/cuda.cuh"
#include "tasuki/tasuki.hpp"

namespace {

// Every owned cell gets its lower neighbour's value in the first dimension. A block a row, a thread a cell.
__global__ void step(const float* p, float* next, std::int64_t plane, std::int64_t row) {
  const std::int64_t at = (blockIdx.y + 1) * plane + (blockIdx.x + 1) * row + threadIdx.x + 1;
  next[at] = p[at - plane];
}

__global__ void halve(const float* p, float* next, std::int64_t cells) {
  tasuki::wait_for_stream();  // returns when earlier work of the stream has ended, the exchange too
  tasuki::let_next_begin();   // optional: the next kernel may be launched now
  const std::int64_t at = std::int64_t{256} * blockIdx.x + threadIdx.x;
  if (at < cells) next[at] = 0.5F * p[at];  // no __ldg: the shadows were written while the kernel was waiting
}

float value(std::int64_t i, std::int64_t j, std::int64_t k) {
  return static_cast<float>((i * 31 + j) * 17 + k % 97);
}

// The current copy with its shadow, cells outside the grid being 0, after so many steps.
std::vector<float> image(const tasuki::Field<float>& p, int steps, bool shadow) {
  const tasuki::Box own = p.owned();
  std::vector<float> cells(p.bytes() / sizeof(float));
  const int around = shadow ? 1 : 0;
  for (std::int64_t i = own.lo[0] - around; i < own.hi[0] + around; ++i) {
    for (std::int64_t j = own.lo[1] - around; j < own.hi[1] + around; ++j) {
      for (std::int64_t k = own.lo[2] - around; k < own.hi[2] + around; ++k) {
        const bool outside =
            i < 0 || i >= p.grid().extent(0) || j < 0 || j >= p.grid().extent(1) || k < 0 || k >= p.grid().extent(2);
        const std::int64_t at =
            (i - own.lo[0] + 1) * p.strides()[0] + (j - own.lo[1] + 1) * p.strides()[1] + (k - own.lo[2] + 1);
        if (!outside && i >= steps) cells[at] = value(i - steps, j, k);
      }
    }
  }
  return cells;
}

void check(const tasuki::Field<float>& p, int steps, float factor = 1) {
  std::vector<float> found(p.bytes() / sizeof(float));
  p.download(found.data());
  const std::vector<float> expected = image(p, steps, true);
  std::int64_t wrong = 0;
  for (std::size_t at = 0; at < found.size(); ++at) wrong += found[at] == factor * expected[at] ? 0 : 1;
  CHECK(wrong == 0);
}

void check_plan(const tasuki::Operation& operation) {
  const tasuki::VerifyReport report = tasuki::verify(operation);
  INFO(report.text());
  CHECK(report.ok());
}

// All pieces on the ranks of a context, processes or threads.
void use_the_page(const tasuki::Context& context) {
  tasuki::use_gpu(context);  // a stream belongs to the GPU that is current when it is made
  const gpu_tests::OwnStream own_stream;
  const tasuki::Stream stream = own_stream.get();
  int iterations = 6;

  tasuki::use_gpu(context);  // selects this rank's GPU; making a field on the device does it too
  tasuki::Grid grid(context, {128, 128, 256});
  tasuki::Field<float> p(grid, {.name = "p", .copies = 2, .memory = tasuki::Memory::device});
  tasuki::HaloOptions options;
  options.alternating = true;  // p is swapped once between two exchanges
  tasuki::Halo halo(tasuki::HaloField(p), options);

  check_plan(halo);
  const tasuki::Box own = p.owned();
  const dim3 blocks(static_cast<unsigned>(own.extent(1)), static_cast<unsigned>(own.extent(0)));
  const auto threads = static_cast<unsigned>(own.extent(2));
  p.upload(image(p, 0, false).data());
  context.barrier();

  halo.run(stream);  // one kernel; work that follows in the stream sees the new shadows
  for (int i = 0; i < iterations; ++i) {
    step<<<blocks, threads, 0, stream>>>(p.data(), p.next(), p.strides()[0], p.strides()[1]);
    p.swap();
    halo.run(stream);
  }
  tasuki::synchronize(context, stream);  // waits on the host, and notices a rank that has died

  check(p, 6);
  context.barrier();

  const auto iterate = [&](tasuki::Stream in) {
    step<<<blocks, threads, 0, in>>>(p.data(), p.next(), p.strides()[0], p.strides()[1]);
    p.swap();
    halo.run(in);
  };
  iterations = 40;

  tasuki::Graph graph(stream, [&] {
    for (int i = 0; i < 20; ++i) iterate(stream);  // kernels, swap, halo.run(stream): as without a graph
  });
  for (int i = 0; i < iterations; i += 20) graph.launch(stream);
  tasuki::synchronize(context, stream);

  check(p, 46);
  context.barrier();
}

void overlap_and_launch_early(const tasuki::Context& context) {
  tasuki::use_gpu(context);
  const gpu_tests::OwnStream own_stream;
  const tasuki::Stream stream = own_stream.get();
  tasuki::Grid grid(context, {64, 48, 64});
  tasuki::Field<float> p(grid, {.name = "p", .copies = 2, .memory = tasuki::Memory::device});
  p.upload(image(p, 0, false).data());
  context.barrier();
  const tasuki::Box own = p.owned();
  const auto plane = p.strides()[0];
  // Planes of the box, counted from its first, into the current copy.
  const auto planes = [&](tasuki::Stream in, std::int64_t first, std::int64_t count) {
    if (count <= 0) return;
    const dim3 blocks(static_cast<unsigned>(own.extent(1)), static_cast<unsigned>(count));
    step<<<blocks, static_cast<unsigned>(own.extent(2)), 0, in>>>(p.next() + first * plane, p.data() + first * plane,
                                                                  plane, p.strides()[1]);
  };
  // What travels: whole planes where the first dimension is cut; else everything comes first.
  const bool cut = grid.split(1) == 1 && grid.split(2) == 1 && own.extent(0) > 2;
  const auto sides = [&](tasuki::Stream in) {
    planes(in, 0, cut ? 1 : own.extent(0));
    if (cut) planes(in, own.extent(0) - 1, 1);
  };
  const auto interior = [&](tasuki::Stream in) {
    if (cut) planes(in, 1, own.extent(0) - 2);
  };
  tasuki::Halo before{tasuki::HaloField(p)};
  before.run(stream);
  p.swap();  // computed below, from the copy that has just been exchanged

  tasuki::Fork fork;
  tasuki::HaloOptions options;
  options.blocks = 32;  // for the exchange: fewer leave more SMs to the interior, which takes longer anyway
  tasuki::Halo halo(tasuki::HaloField(p), options);

  tasuki::Stream ahead = fork.branch(stream);
  sides(ahead);
  halo.run(ahead);
  interior(stream);
  fork.join(stream);

  check_plan(halo);
  tasuki::synchronize(context, stream);
  check(p, 1);
  const auto cells = static_cast<std::int64_t>(p.bytes() / sizeof(float));

  tasuki::launch_early("halving", stream, static_cast<unsigned>(cells / 256 + 1), 256, halve, p.data(), p.next(),
                       cells);

  tasuki::synchronize(context, stream);
  p.swap();
  check(p, 1, 0.5F);
  context.barrier();
}

}  // namespace

RANK_TEST("the page on GPUs: fields, streams and graphs") {
  use_the_page(ctx);
}

RANK_TEST("the page on GPUs: overlap and early launches") {
  overlap_and_launch_early(ctx);
}

TEST_CASE("the page on GPUs: one process") {
  int processes = 0;
  MPI_Initialized(&processes);
  int ranks = 1;
  if (processes != 0) MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks > 1) return;  // several processes would share the GPUs
  const auto solve = [](const tasuki::Context& each) { overlap_and_launch_early(each); };

  int gpus = 0;
  cudaGetDeviceCount(&gpus);
  tasuki::run_threads(gpus, [&](const tasuki::Context& each) {
    tasuki::use_gpu(each);  // GPU 0, 1, ... by rank, unless this thread has selected one
    solve(each);            // as above: grids, fields, halos, kernels and streams of this thread
  });                       // what a rank throws ends the waits of the others and comes out here
}
