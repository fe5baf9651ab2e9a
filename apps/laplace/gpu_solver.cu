// Laplace's equation solved on GPUs: kernels and exchanges in one stream, or replayed as CUDA graphs.
#include "common/gpu.hpp"
#include "laplace/gpu_kernel.hpp"
#include "laplace/solver.hpp"

namespace laplace {
namespace {

class GpuSolver final : public Solver {
 public:
  GpuSolver(const tasuki::Context& context, const apps::Options& options)
      : Solver(context, options, tasuki::Memory::device),
        queue_(context, options.engine == "graph"),
        exchanges_(!halo_.plan().commands.empty()),
        overlaps_(options.overlap && exchanges_),
        sides_(regions(overlaps_ ? u_.boundary(1) : std::vector<tasuki::Box>{})),
        rest_(regions({overlaps_ ? u_.interior(1) : u_.local_owned()})) {}

  void initialise() override {
    u_.swap();  // once between two exchanges, as promised by `alternating`
    const tasuki::Box own = u_.local_owned();
    const Region all{{own.lo[0], own.lo[1]}, {own.hi[0], own.hi[1]}, u_.strides()[0]};
    fill_initial(all, u_.owned().lo[0], u_.owned().lo[1], grid_.extent(0), u_.data(), u_.next(), queue_.stream());
    if (exchanges_) halo_.run(queue_.stream());
    queue_.finish();
  }

  apps::Timing run(int iterations) override {
    const double seconds = time(iterations, true, options_.communicate);
    return {seconds, seconds};
  }

  std::optional<apps::Split> split(int iterations) override {
    if (!options_.communicate) return {};
    const double compute = time(iterations, true, false);
    const double exchange = time(iterations, false, true);  // nearly nothing on a rank without neighbours
    return apps::Split{compute / iterations, exchange / iterations};
  }

 private:
  double time(int iterations, bool compute, bool exchange) {
    apps::Progress progress(grid_.context(), options_, iterations);
    int done = 0;
    return queue_.time(iterations, [&] {
      step(compute, exchange);
      progress.done(++done);
    });
  }

  // Puts an iteration into the stream.
  void step(bool compute, bool exchange) {
    const tasuki::Stream stream = queue_.stream();
    if (exchange) u_.swap();  // from here on `now` has the values to compute
    const int now = exchange ? u_.current() : (unshown_ = 1 - unshown_);
    const auto sweep = [&](const GpuSweep& part, tasuki::Stream where) {
      if (compute) part.enqueue(u_.data(1 - now), u_.data(now), where);
    };
    // The sides go ahead in a stream of their own, then the exchange that they need; the interior fills what is left.
    const tasuki::Stream ahead = overlaps_ && compute ? fork_.branch(stream) : stream;
    sweep(sides_, ahead);
    if (exchange && exchanges_ && overlaps_) halo_.run(ahead);
    sweep(rest_, stream);
    if (ahead != stream) fork_.join(stream);
    if (exchange && exchanges_ && !overlaps_) halo_.run(stream);
  }

  std::vector<Region> regions(const std::vector<tasuki::Box>& boxes) const {
    std::vector<Region> all;
    for (const tasuki::Box& box : boxes) all.push_back(region(box));
    return all;
  }

  double local_change() const override { return std::max(sides_.change(), rest_.change()); }

  apps::GpuQueue queue_;
  tasuki::Fork fork_;
  bool exchanges_;  // false on a rank without neighbours
  bool overlaps_;
  GpuSweep sides_;  // without overlap: nothing, and all the rest
  GpuSweep rest_;
  int unshown_ = 0;  // without exchanges the copies take turns behind the field's back: its swaps belong to the halo
};

}  // namespace

std::unique_ptr<Solver> make_gpu_solver(const tasuki::Context& context, const apps::Options& options) {
  return std::make_unique<GpuSolver>(context, options);
}

}  // namespace laplace
