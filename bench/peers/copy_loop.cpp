// The bound for a transfer: plain loops that copy between the same two patterns in the memory of one process.
#include "peer.hpp"

namespace bench {
namespace {

class CopyLoop : public Runner {
 public:
  explicit CopyLoop(const TransferCase& t) : t_(t) {}
  void start() override {
    if (!t_.context.is_root()) return;
    copy(t_.block, t_.scratch);
    copy(t_.scratch, t_.back);
  }

 private:
  void copy(const double* from, double* __restrict to) const {
    for (std::int64_t i = 0; i < t_.rows; ++i, from += t_.stride, to += t_.stride) {
      for (std::int64_t k = 0; k < t_.columns; ++k) to[k] = from[k];
    }
  }

  TransferCase t_;
};

const RegisterPeer kPeer({.name = "copy_loop",
                          .halo = {},
                          .transfer = [](const TransferCase& t) { return std::make_unique<CopyLoop>(t); },
                          .broadcast = {},
                          .splits = false,
                          .solo = true});

}  // namespace
}  // namespace bench
