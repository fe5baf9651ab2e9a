// Each rank's kernel sends two messages with tags to the next rank, and receives two from the one before. As ordinary
// C++ its blocks are threads of the host; nvcc compiles it for GPUs (`nvcc -x cu`). Ranks of other islands and hosts
// get their messages by MPI, with the same calls.
#include <cstdio>

#include "tasuki/kernel.hpp"
#include "tasuki/tasuki.hpp"

namespace device = tasuki::device;

constexpr int kLetter = 1;  // tags
constexpr int kParcel = 2;
constexpr int kNumbers = 10'000;  // of a parcel

TASUKI_KERNEL void pass_on(device::Messages m, int* letter, const int* parcel, int* got_letter, int* got_parcel) {
  const auto group = device::this_block();
  const int next = (m.team.rank + 1) % m.team.ranks;
  const int before = (m.team.rank + m.team.ranks - 1) % m.team.ranks;
  device::Request requests[4];
  if (!device::irecv(m, group, before, got_parcel, kNumbers * sizeof(int), kParcel, requests[0]) ||
      !device::irecv(m, group, before, got_letter, sizeof(int), kLetter, requests[1]))
    return;
  if (group.thread() == 0) *letter = 100 + m.team.rank;
  // What the group's threads have written before `isend` is in the message.
  if (!device::isend(m, group, next, letter, sizeof(int), kLetter, requests[2]) ||
      !device::isend(m, group, next, parcel, kNumbers * sizeof(int), kParcel, requests[3]))
    return;
  for (device::Request& request : requests)  // each of them, before the kernel ends
    if (!device::wait(m, group, request)) return;
}

namespace {

// Memory that the host and the kernel see.
int* allocate(int count) {
#if defined(__CUDACC__)
  int* p = nullptr;
  TASUKI_CUDA(cudaMallocManaged, &p, static_cast<std::size_t>(count) * sizeof(int));
  return p;
#else
  return new int[static_cast<std::size_t>(count)];
#endif
}
void release(int* p) {
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
  int* const letters = allocate(2);
  int* const parcels = allocate(2 * kNumbers);
  for (int i = 0; i < kNumbers; ++i) parcels[i] = context.rank() + i;

  const tasuki::Messages messages(context);
  tasuki::launch_resident(context, {}, pass_on, messages.device(), letters, parcels, letters + 1, parcels + kNumbers)
      .wait();

  const int before = (context.rank() + context.size() - 1) % context.size();
  int wrong = letters[1] == 100 + before ? 0 : 1;
  for (int i = 0; i < kNumbers; ++i) wrong += parcels[kNumbers + i] == before + i ? 0 : 1;
  release(letters);
  release(parcels);
  int sum = 0;
  for (const int one : context.allgather(wrong)) sum += one;
  if (context.is_root())
    std::printf("messages around a ring of %d ranks: %s\n", context.size(), sum == 0 ? "all are right" : "WRONG");
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
