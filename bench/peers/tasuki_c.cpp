// Tasuki through its C interface, where nothing is exchanged: what a call of it costs more than one of C++.
#include <cstddef>
#include <stdexcept>

#include "peer.hpp"
#include "tasuki/tasuki.h"

namespace bench {
namespace {

void check(tasuki_status status) {
  if (status != TASUKI_OK) throw std::runtime_error(tasuki_last_error());
}

class CRunner : public Runner {
 public:
  explicit CRunner(const HaloCase& problem) {
    check(tasuki_context_create(problem.context.comm(), &context_));
    const int ndims = problem.grid.ndims();
    std::vector<std::int64_t> extents;
    std::vector<int> split;
    std::vector<int> periodic;
    for (int d = 0; d < ndims; ++d) {
      extents.push_back(problem.grid.extent(d));
      split.push_back(problem.grid.split(d));
      periodic.push_back(problem.grid.periodic(d) ? 1 : 0);
    }
    tasuki_grid_options options = TASUKI_GRID_OPTIONS_INIT;
    options.split = split.data();
    options.periodic = periodic.data();
    check(tasuki_grid_create(context_, ndims, extents.data(), &options, &grid_));
    check(tasuki_field_create(grid_, TASUKI_F64, nullptr, &field_));
    const tasuki_width nothing = tasuki_width_of(0);
    check(tasuki_halo_create(1, &field_, &nothing, nullptr, &halo_));
  }
  CRunner(const CRunner&) = delete;
  CRunner& operator=(const CRunner&) = delete;
  ~CRunner() override {
    tasuki_operation_free(&halo_);
    tasuki_field_free(&field_);
    tasuki_grid_free(&grid_);
    tasuki_context_free(&context_);
  }
  void start() override { check(tasuki_start(halo_)); }
  void wait() override { check(tasuki_wait(halo_)); }

 private:
  tasuki_context context_ = nullptr;
  tasuki_grid grid_ = nullptr;
  tasuki_field field_ = nullptr;
  tasuki_operation halo_ = nullptr;
};

RunnerPtr halo(const HaloCase& problem) {
  if (!(problem.width == tasuki::Width(0)) || problem.fields.size() != 1) return nullptr;
  return std::make_unique<CRunner>(problem);
}

const RegisterPeer kPeer({.name = "tasuki_c", .halo = halo, .transfer = {}, .broadcast = {}, .splits = true});

}  // namespace
}  // namespace bench
