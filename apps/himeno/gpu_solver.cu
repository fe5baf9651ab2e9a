// The Himeno benchmark computed on GPUs: kernels and exchanges in one stream, or replayed as CUDA graphs.
#include <utility>

#include "common/gpu.hpp"
#include "himeno/gpu_kernel.hpp"
#include "himeno/solver.hpp"

namespace himeno {
namespace {

class GpuSolver final : public Solver {
 public:
  GpuSolver(const tasuki::Context& context, const apps::Options& options)
      : Solver(context, options, tasuki::Memory::device),
        queue_(context, options.engine == "graph"),
        exchanges_(!halo_.plan().commands.empty()),
        overlaps_(options.overlap && exchanges_),
        sides_(regions(overlaps_ ? p_.boundary(1) : std::vector<tasuki::Box>{})),
        rest_(regions({overlaps_ ? p_.interior(1) : p_.local_owned()})) {
    const auto cells = p_.bytes() / static_cast<std::int64_t>(sizeof(float));
    for (std::size_t n = 0; n < arrays_.size(); ++n) fill(arrays_[n].data(), cells, kArrays[n].value, queue_.stream());
    queue_.finish();
  }

  void initialise() override {
    p_.swap();  // once between two exchanges, as promised by `alternating`
    const tasuki::Box own = p_.local_owned();
    const Region all{
        {own.lo[0], own.lo[1], own.lo[2]}, {own.hi[0], own.hi[1], own.hi[2]}, p_.strides()[0], p_.strides()[1]};
    fill_initial(all, p_.owned().lo[0], grid_.extent(0), p_.data(), p_.next(), queue_.stream());
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
    if (exchange) p_.swap();  // from here on `now` is the pressure to compute
    const int now = exchange ? p_.current() : (unshown_ = 1 - unshown_);
    const auto sweep = [&](const GpuSweep& part, tasuki::Stream where) {
      if (compute) part.enqueue(coefficients_, p_.data(1 - now), p_.data(now), where);
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

  double local_gosa() const override { return sides_.gosa() + rest_.gosa(); }

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

}  // namespace himeno
