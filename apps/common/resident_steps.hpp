// Jacobi steps of a field with two copies as one kernel for all of them, which exchanges by itself: no launch a step,
// and nothing for the host to do. For kernels on GPUs (resident.cuh) and on threads of the host (resident.hpp).
//
// The cells are cut into tiles, and a block has the same tiles in every step (deal.hpp). It waits for its neighbours
// alone, whose cells it reads. The halo is run by the blocks that have the sides; where nothing is to be exchanged, by
// none. So the whole grid has no barrier, unless all blocks have sides.
//
// The halo fits in with that: the cells that it sends and the cells that read its shadow are the group's alone. Where
// it can, each block of the group sends its own cells and takes what they read of the shadow, and has no barrier
// (KernelGroup::cells): neighbours have read the shadow when it comes to be written, for they have ended the step
// before. Else the group has barriers when the halo starts and when it ends. A block has ended a step when its cells
// are there: its neighbours need not wait for its halo.
#pragma once

#include <algorithm>

#include "common/deal.hpp"
#include "common/report.hpp"
#include "tasuki/kernel.hpp"
#include "tasuki/tasuki.hpp"

namespace apps {

template <class T>
struct ResidentSteps {
  const Share* shares;  // by block
  int group;            // blocks that run the halo, the first ones
  int beside;           // while it travels, one of them has something to do
  T* copies[2];
  int first;  // the copy that the first step computes
  int count;
  tasuki::device::Word before;  // steps of earlier launches
};

/// Calls `f(tile)` with this block's tiles: those of the sides, or the others.
template <class F>
TASUKI_DEVICE void each_tile(const Share& share, bool sides, const F& f) {
  const std::uint32_t end = sides ? share.side_end : share.rest_end;
  const std::uint32_t step = sides ? 1 : share.step;
  for (std::uint32_t tile = sides ? share.side : share.rest; tile < end; tile += step) f(tile);
}

/// Of a block: no halo, one of a group with barriers, or one of a barrier-free group, at once or beside other tiles.
enum class Exchange : std::uint8_t { none, barriers, barrier_free, barrier_free_beside };

/// What a block keeps of its halo in registers, if it does.
template <bool kKeeps>
struct OwnRun {
  template <class Group>
  TASUKI_DEVICE OwnRun(const tasuki::device::Handle&, const Group&) {}
};
template <>
struct OwnRun<true> : tasuki::device::BarrierFreeRun<> {
  using tasuki::device::BarrierFreeRun<>::BarrierFreeRun;
};

template <Exchange kExchange, class T, class Begin, class Sweep>
TASUKI_DEVICE bool run_steps_of(const tasuki::device::Handle& halo, const tasuki::device::Neighbours& neighbours,
                                const ResidentSteps<T>& steps, const Begin& begin, const Sweep& sweep) {
  namespace device = tasuki::device;
  constexpr bool kBarrierFree = kExchange == Exchange::barrier_free_beside;
  const device::Steps mine(neighbours);
  const auto group = device::blocks(0, steps.group);
  OwnRun<kExchange == Exchange::barrier_free> exchange(halo, group);
  const Share share = steps.shares[device::this_block().block()];
  if (!mine.wait(halo, steps.before)) return false;
  for (int n = 0; n < steps.count; ++n) {
    T* const to = steps.copies[(steps.first + n) % 2];
    const T* const from = steps.copies[(steps.first + n + 1) % 2];
    const auto swaps = static_cast<device::Word>(n) + 1;  // `to` is what is exchanged
    const device::Word done = steps.before + swaps;
    int turn = 0;
    const auto one = [&](std::uint32_t tile) { sweep(from, to, tile, turn++); };
    begin();
    each_tile(share, true, one);
    bool good = true;
    if constexpr (kExchange == Exchange::none) {
      each_tile(share, false, one);
      good = mine.next(halo, done);
    } else if constexpr (kExchange == Exchange::barrier_free) {
      good = mine.next_with(exchange, done, swaps);
    } else if (!kBarrierFree && steps.beside == 0) {
      good = mine.next_with_run(halo, group, done, swaps);
    } else {
      if (!device::start<kBarrierFree>(halo, group, swaps)) return false;
      each_tile(share, false, one);
      good = mine.next_with_wait<kBarrierFree>(halo, group, done, swaps);
    }
    if (!good) return false;
  }
  return true;
}

/// All steps: in each `begin()`, then `sweep(from, to, tile, turn)` for this block's tiles; `turn` is the tile's number
/// among these. False if an exchange or a wait has failed. `kExchanges`: blocks may run the halo.
///
/// What a thread holds while it exchanges is kept in memory, and a loop that has an exchange loads it from there, step
/// by step. So each way to exchange has a loop of its own, and a kernel in which no block exchanges has one loop.
template <bool kExchanges, class T, class Begin, class Sweep>
TASUKI_DEVICE bool run_steps(const tasuki::device::Handle& halo, const tasuki::device::Neighbours& neighbours,
                             const ResidentSteps<T>& steps, const Begin& begin, const Sweep& sweep) {
  if constexpr (kExchanges) {
    if (tasuki::device::blocks(0, steps.group).has_this_block()) {
      if (!tasuki::device::barrier_free(halo))
        return run_steps_of<Exchange::barriers>(halo, neighbours, steps, begin, sweep);
      return steps.beside == 0 ? run_steps_of<Exchange::barrier_free>(halo, neighbours, steps, begin, sweep)
                               : run_steps_of<Exchange::barrier_free_beside>(halo, neighbours, steps, begin, sweep);
    }
  }
  return run_steps_of<Exchange::none>(halo, neighbours, steps, begin, sweep);
}

/// The same, on the host: launches kernels that call `run_steps`.
template <class T>
class ResidentLaunches {
 public:
  /// `shares`: those of the deal, where kernels find them. `threads`: of a block on a GPU.
  ResidentLaunches(const tasuki::FieldBase& field, const Deal& deal, const Share* shares, int threads)
      : context_(field.grid().context()), neighbours_(context_, deal.neighbours) {
    steps_.shares = shares;
    steps_.group = deal.group;
    steps_.beside = deal.beside ? 1 : 0;
    group_.blocks = std::max(1, deal.group);  // one that nobody calls has the handle's deadline
    group_.threads = threads;
    group_.cells.resize(static_cast<std::size_t>(group_.blocks));
    for (std::size_t block = 0; block < deal.cells.size(); ++block)
      for (const tasuki::Box& box : deal.cells[block]) group_.cells[block].push_back(in_grid(field, box));
    launch_.blocks = static_cast<int>(deal.shares.size());
    launch_.threads = threads;
  }

  int blocks() const { return launch_.blocks; }
  /// Throws if no kernel can start the halo. The halo's first epoch must have been. Collective.
  void check(tasuki::Halo& halo) const { (void)halo.device(group_); }

  /// Runs `kernel(handle, neighbours, data, steps)` on a field with two copies and its alternating halo. Collective.
  template <class Data>
  Timing run(tasuki::Field<T>& field, tasuki::Halo& halo, int iterations,
             void (*kernel)(tasuki::device::Handle, tasuki::device::Neighbours, Data, ResidentSteps<T>),
             const Data& data, tasuki::Stream stream = nullptr, std::int64_t shared_bytes = 0) {
    steps_.copies[0] = field.data(0);
    steps_.copies[1] = field.data(1);
    steps_.first = 1 - field.current();
    steps_.count = iterations;
    launch_.stream = stream;
    launch_.shared_bytes = shared_bytes;
    const tasuki::device::Handle handle = halo.device(group_);
    context_.barrier();
    const double begin = now();
    tasuki::launch_resident(context_, launch_, kernel, handle, neighbours_.device(), data, steps_).wait();
    const double took = now() - begin;
    for (int n = 0; n < iterations; ++n) field.swap();  // as the kernel did
    steps_.before += static_cast<tasuki::device::Word>(iterations);
    return {took, took};
  }

 private:
  tasuki::Context context_;
  tasuki::BlockNeighbours neighbours_;
  tasuki::KernelGroup group_;
  tasuki::ResidentOptions launch_;
  ResidentSteps<T> steps_{};
};

}  // namespace apps
