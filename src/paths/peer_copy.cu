// Path `peer:copy`: puts by the copy engine of the sender's GPU, in a stream beside the kernel that waits and signals
// for them. As fast as the links, and no multiprocessor is kept busy; for large pieces whose rows are long, because
// every copy costs microseconds.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engines/host/executor.hpp"
#include "paths/peer.hpp"
#include "tasuki/cuda.cuh"

namespace tasuki {
namespace {

constexpr std::int64_t kMostCalls = 1024;  // of the copy engine for a piece
constexpr double kCall = 1.5e-6;           // seconds from one call to the next

// Whether a call can take the rows of the last dimension together: they ascend, do not overlap, and are not too far
// apart for CUDA's pitch.
bool in_rows(const StridedCopy& copy) {
  if (copy.ndims == 0) return false;
  const auto fits = [&](std::int64_t stride) { return stride >= copy.block && stride <= 0x7fffffff; };
  const auto& rows = copy.dims[copy.ndims - 1];
  return fits(rows.src_stride) && fits(rows.dst_stride);
}

std::int64_t calls(const StridedCopy& copy) {
  std::int64_t count = 1;
  for (int d = 0; d < copy.ndims - (in_rows(copy) ? 1 : 0); ++d) count *= copy.dims[d].count;
  return count;
}

class Copies final : public Channel {
 public:
  explicit Copies(const ChannelRequest& r)
      : from_(r.where[static_cast<std::size_t>(r.command.src)]), to_(r.where[static_cast<std::size_t>(r.command.dst)]) {
    const auto first = r.plan.copies.begin() + r.command.first_copy;
    copies_.assign(first, first + r.command.copy_count);
  }

  void enqueue(Stream stream) override {
    const std::byte* from = shown(from_);
    std::byte* to = shown(to_);
    for (const StridedCopy& copy : copies_) enqueue(copy, 0, to + copy.dst_offset, from + copy.src_offset, stream);
  }

 private:
  static std::byte* shown(const Located& where) {
    return where.copy(where.current != nullptr && where.copies > 1 ? *where.current : 0);
  }

  static void enqueue(const StridedCopy& copy, int d, std::byte* to, const std::byte* from, Stream stream) {
    const auto block = static_cast<std::size_t>(copy.block);
    if (d == copy.ndims) {
      TASUKI_CUDA(cudaMemcpyAsync, to, from, block, cudaMemcpyDefault, stream);
    } else if (d + 1 == copy.ndims && in_rows(copy)) {
      const auto& rows = copy.dims[d];
      TASUKI_CUDA(cudaMemcpy2DAsync, to, static_cast<std::size_t>(rows.dst_stride), from,
                  static_cast<std::size_t>(rows.src_stride), block, static_cast<std::size_t>(rows.count),
                  cudaMemcpyDefault, stream);
    } else {
      const auto& dim = copy.dims[d];
      for (std::int64_t i = 0; i < dim.count; ++i) {
        enqueue(copy, d + 1, to + i * dim.dst_stride, from + i * dim.src_stride, stream);
      }
    }
  }

  Located from_;
  Located to_;
  std::vector<StridedCopy> copies_;
};

class PeerCopy final : public Peer<PutPath> {
 public:
  PeerCopy(const Runtime& runtime, const Profile& profile) : Peer(runtime, profile, Home::device) {}
  std::string name() const override { return "peer:copy"; }
  Offer offer(const Move& move, const Place&, const Place& dst) const override {
    std::int64_t count = 0;
    for (const StridedCopy& copy : move.copies) count += calls(copy);
    if (count > kMostCalls) return Offer::no(std::to_string(count) + " calls of the copy engine are too many");
    Offer offer = into(move, dst);
    offer.seconds += static_cast<double>(count - 1) * kCall;
    return offer;
  }
  bool carries(const Command& command) const override { return command.verb == Verb::put; }
  std::unique_ptr<Channel> open(const ChannelRequest& request) const override {
    return std::make_unique<Copies>(request);
  }
};

const PathRegistration registration{[](Runtime& runtime, const Profile& profile) -> std::unique_ptr<Path> {
  return std::make_unique<PeerCopy>(runtime, profile);
}};

}  // namespace
}  // namespace tasuki
