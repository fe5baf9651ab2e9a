// The heat equation on a grid of ranks in two dimensions: a halo that a kernel of several blocks runs by itself, all
// steps in one launch. As ordinary C++ the blocks are threads of the host; nvcc compiles it for GPUs (`nvcc -x cu`).
// The result is bit for bit that of the serial run, which every rank makes itself to compare.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "tasuki/kernel.hpp"
#include "tasuki/tasuki.hpp"

namespace device = tasuki::device;

struct Shape {
  int rows, columns;  // of this rank
  int stride;         // elements from a row to the next
};

TASUKI_KERNEL void heat(device::Handle halo, float* now, float* next, Shape shape, int steps) {
  const auto grid = device::this_grid();
  const auto block = device::this_block();
  for (int step = 0; step < steps; ++step) {
    if (!device::run(halo, grid, step)) return;  // the shadow of `now`, when all blocks have come
    for (int i = block.block(); i < shape.rows; i += block.blocks()) {
      for (int j = block.thread(); j < shape.columns; j += block.threads()) {
        const float* const at = now + i * shape.stride + j;
        const float around = (at[-shape.stride] + at[shape.stride]) + (at[-1] + at[1]);
        next[i * shape.stride + j] = 0.5f * at[0] + 0.125f * around;
      }
    }
    float* const old = now;
    now = next;
    next = old;
  }
}

namespace {

constexpr int kRows = 101;
constexpr int kColumns = 67;
constexpr int kSteps = 100;

float initial(std::int64_t i, std::int64_t j) {
  return static_cast<float>((i * 37 + j * 11) % 101);
}

std::vector<float> serial() {
  const auto at = [](int i, int j) {
    return static_cast<std::size_t>((i + kRows) % kRows) * kColumns +
           static_cast<std::size_t>((j + kColumns) % kColumns);
  };
  std::vector<float> now(std::size_t{kRows} * kColumns);
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kColumns; ++j) now[at(i, j)] = initial(i, j);
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<float> old = now;
    for (int i = 0; i < kRows; ++i)
      for (int j = 0; j < kColumns; ++j)
        now[at(i, j)] = 0.5f * old[at(i, j)] +
                        0.125f * ((old[at(i - 1, j)] + old[at(i + 1, j)]) + (old[at(i, j - 1)] + old[at(i, j + 1)]));
  }
  return now;
}

bool run(const tasuki::Context& context) {
  tasuki::FieldOptions layout{.name = "u", .shadow = 1, .copies = 2};
#if defined(__CUDACC__)
  tasuki::use_gpu(context);
  layout.memory = tasuki::Memory::device;
#endif
  const tasuki::Grid grid(context, {kRows, kColumns}, {.periodic = {true, true}});
  tasuki::Field<float> u(grid, layout);
  tasuki::HaloOptions options;
  options.corners = false;
  options.alternating = true;  // the kernel swaps once a step
  tasuki::Halo halo(u, options);

  const tasuki::Box own = u.owned();
  const Shape shape{static_cast<int>(own.extent(0)), static_cast<int>(own.extent(1)), static_cast<int>(u.strides()[0])};
  const auto offset = [&](std::int64_t i, std::int64_t j) { return (i + 1) * shape.stride + j + 1; };
  std::vector<float> image(static_cast<std::size_t>(u.bytes()) / sizeof(float));
  for (int i = 0; i < shape.rows; ++i)
    for (int j = 0; j < shape.columns; ++j)
      image[static_cast<std::size_t>(offset(i, j))] = initial(own.lo[0] + i, own.lo[1] + j);
  u.upload(image.data());

  const tasuki::KernelGroup group{.blocks = 4, .threads = 128};
  tasuki::ResidentOptions launch;
  launch.blocks = group.blocks;
  launch.threads = group.threads;
  tasuki::launch_resident(context, launch, heat, halo.device(group), u.data() + offset(0, 0), u.next() + offset(0, 0),
                          shape, kSteps)
      .wait();
  for (int step = 0; step < kSteps; ++step) u.swap();  // as the kernel did

  u.download(image.data());
  const std::vector<float> expected = serial();
  int wrong = 0;
  for (int i = 0; i < shape.rows; ++i)
    for (int j = 0; j < shape.columns; ++j)
      if (image[static_cast<std::size_t>(offset(i, j))] !=
          expected[static_cast<std::size_t>((own.lo[0] + i) * kColumns + own.lo[1] + j)])
        ++wrong;
  int sum = 0;
  for (const int one : context.allgather(wrong)) sum += one;
  if (context.is_root())
    std::printf("heat: %d x %d cells on %d ranks, %d steps in one launch: %s\n", kRows, kColumns, context.size(),
                kSteps, sum == 0 ? "every bit as in the serial run" : "DIFFERENT from the serial run");
  return sum == 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const tasuki::Context context(argc, argv);
    return run(context) ? 0 : 1;
  } catch (const tasuki::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
