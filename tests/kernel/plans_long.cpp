// Very many epochs of a halo in one launch, each with new data that the next one must not overtake: a hundred thousand
// on GPUs, fewer on threads, which share cores.
#include "kernel_test.hpp"

using namespace kernel_tests;
namespace device = tasuki::device;

namespace {

TASUKI_DEVICE double edge_of(int rank, int side, int epoch) {
  return 4.0 * epoch + 2.0 * rank + side;
}

// Changes the cells at both ends before each epoch, and looks at what has come from the neighbours' ends after it. One
// block does that; the others run the epochs with it.
TASUKI_KERNEL void counts_epochs(device::Handle halo, double* cells, int owned, int rank, int ranks, int epochs,
                                 Word* errors) {
  const auto all = device::this_grid();
  const auto block = device::this_block();
  const int left = (rank + ranks - 1) % ranks;
  const int right = (rank + 1) % ranks;
  const bool mine = block.block() == block.blocks() - 1 && block.thread() == 0;
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    if (mine) {
      cells[0] = edge_of(rank, 0, epoch);
      cells[owned - 1] = edge_of(rank, 1, epoch);
    }
    if (!device::run(halo, all)) return;
    if (mine) {
      count(errors, cells[-1] == edge_of(left, 1, epoch) ? 0 : 1);
      count(errors, cells[owned] == edge_of(right, 0, epoch) ? 0 : 1);
    }
  }
  if (mine) count(errors + 1, 1);
}

}  // namespace

RANK_TEST("plans: very many epochs in one launch, and the next launch goes on") {
  prepare(ctx);
#if defined(__CUDACC__)
  constexpr int kEpochs = 100000;
#else
  const int kEpochs = ctx.size() < 3 ? 2000 : 200;
#endif
  const tasuki::Grid grid(ctx, {5L * ctx.size()}, {.periodic = {true}});
  const tasuki::Field<double> field(grid, {.name = "u", .shadow = 1, .memory = kWhere});
  tasuki::Halo halo{tasuki::HaloField(field)};
  const bool sound = tasuki::verify(halo).ok();
  CHECK(sound);
  double* const first = field.data() + field.local_owned().lo[0];
  const Buffer<Word> errors(2);
  for (const int blocks : {1, 3}) {
    const tasuki::KernelGroup group{.blocks = blocks, .threads = 64};
    tasuki::ResidentOptions options;
    options.blocks = blocks;
    options.threads = group.threads;
    tasuki::launch_resident(ctx, options, counts_epochs, halo.device(group), first, 5, ctx.rank(), ctx.size(),
                            blocks == 1 ? kEpochs : kEpochs / 10, errors.get())
        .wait();
  }
  CHECK(errors[0] == 0);
  CHECK(errors[1] == 2);
}
