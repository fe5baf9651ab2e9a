// The heat equation on a ring of ranks, many steps in a launch of a kernel that exchanges by itself. As ordinary C++
// its blocks are threads of the host; nvcc compiles it for GPUs (`nvcc -x cu`). The result is bit for bit that of the
// serial run, which every rank makes itself to compare.
#include <cmath>
#include <cstdio>
#include <vector>

#include "tasuki/kernel.hpp"
#include "tasuki/tasuki.hpp"

namespace device = tasuki::device;

TASUKI_KERNEL void heat(device::Team team, float* now, float* next, int cells, device::Word first, int steps) {
  const auto group = device::this_block();
  const int left = (team.rank + team.ranks - 1) % team.ranks;
  const int right = (team.rank + 1) % team.ranks;
  auto* const from_left = static_cast<float*>(device::window(team, team.rank));  // two cells, in turn
  auto* const from_right = from_left + 2;
  const device::Word end = first + static_cast<device::Word>(steps);
  for (device::Word step = first; step < end; ++step) {  // the value of its signals, which only grow
    const auto turn = step % 2;
    // My first cell goes to the right side of my left neighbour, my last one to the left side of my right neighbour.
    if (!device::put_with_signal(team, group, left, (2 + turn) * sizeof(float), &now[0], sizeof(float), 0, step) ||
        !device::put_with_signal(team, group, right, turn * sizeof(float), &now[cells - 1], sizeof(float), 1, step))
      return;
    for (int i = 1 + group.thread(); i < cells - 1; i += group.threads())  // meanwhile, what needs no neighbour
      next[i] = 0.5f * now[i] + 0.25f * (now[i - 1] + now[i + 1]);
    if (!device::wait_signal(team, group, left, 1, step) || !device::wait_signal(team, group, right, 0, step)) return;
    if (group.thread() == 0) {
      next[0] = 0.5f * now[0] + 0.25f * (from_left[turn] + now[1]);
      next[cells - 1] = 0.5f * now[cells - 1] + 0.25f * (now[cells - 2] + from_right[turn]);
    }
    group.sync();  // all of `next` is there
    float* const old = now;
    now = next;
    next = old;
  }
}

namespace {

constexpr int kCells = 1001;  // of a rank
constexpr int kLaunches = 2;
constexpr int kSteps = 250;  // of a launch

float initial(int cell) {
  return static_cast<float>(cell * 37 % 101);
}

// Memory that the host and the kernel see.
float* allocate(int count) {
#if defined(__CUDACC__)
  float* p = nullptr;
  TASUKI_CUDA(cudaMallocManaged, &p, static_cast<std::size_t>(count) * sizeof(float));
  return p;
#else
  return new float[static_cast<std::size_t>(count)];
#endif
}
void release(float* p) {
#if defined(__CUDACC__)
  cudaFree(p);
#else
  delete[] p;
#endif
}

bool run(const tasuki::Context& context) {
#if defined(__CUDACC__)
  tasuki::use_gpu(context);
#endif
  float* const now = allocate(kCells);
  float* const next = allocate(kCells);
  for (int i = 0; i < kCells; ++i) now[i] = initial(context.rank() * kCells + i);

  tasuki::KernelTeamOptions options;
  options.window = 4 * sizeof(float);
  const tasuki::KernelTeam team(context, options);
  for (int launch = 0; launch < kLaunches; ++launch) {
    const device::Word first = 1 + static_cast<device::Word>(launch) * kSteps;  // the steps go on where they ended
    tasuki::launch_resident(context, {}, heat, team.device(), now, next, kCells, first, kSteps).wait();
  }

  const int all = kCells * context.size();
  std::vector<float> serial(static_cast<std::size_t>(all));
  for (int i = 0; i < all; ++i) serial[static_cast<std::size_t>(i)] = initial(i);
  for (int step = 0; step < kLaunches * kSteps; ++step) {
    const std::vector<float> old = serial;
    for (int i = 0; i < all; ++i)
      serial[static_cast<std::size_t>(i)] =
          0.5f * old[static_cast<std::size_t>(i)] +
          0.25f * (old[static_cast<std::size_t>((i + all - 1) % all)] + old[static_cast<std::size_t>((i + 1) % all)]);
  }
  int wrong = 0;
  for (int i = 0; i < kCells; ++i)
    if (now[i] != serial[static_cast<std::size_t>(context.rank() * kCells + i)]) ++wrong;  // an even number of steps
  release(now);
  release(next);
  int sum = 0;
  for (const int one : context.allgather(wrong)) sum += one;
  if (context.is_root())
    std::printf("heat: %d cells on %d ranks, %d steps in %d launches: %s\n", all, context.size(), kLaunches * kSteps,
                kLaunches, sum == 0 ? "every bit as in the serial run" : "DIFFERENT from the serial run");
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
