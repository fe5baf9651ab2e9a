// Transport `copy engine`: puts by the copy engine of the sender's GPU, as work of a stream.
#include <cstdint>
#include <memory>
#include <vector>

#include "layout/lists.hpp"
#include "layout/rows.hpp"
#include "tasuki/cuda.cuh"
#include "transports/transport.hpp"

namespace tasuki {
namespace {

class Copies final : public StreamChannel {
 public:
  Copies(const ChannelRequest& r, const Command& c)
      : from_(r.where[static_cast<std::size_t>(c.src)]), to_(r.where[static_cast<std::size_t>(c.dst)]) {
    for (std::int32_t k = c.first_copy; k < c.first_copy + c.copy_count; ++k) {
      const StridedCopy& copy = r.plan.copies[static_cast<std::size_t>(k)];
      copy.listed() ? append_steps(copy, copies_) : copies_.push_back(copy);
    }
  }

  void enqueue(Stream stream) override {
    const std::byte* from = shown(from_);
    std::byte* to = shown(to_);
    for (const StridedCopy& copy : copies_) enqueue(copy, 0, to + copy.dst_offset, from + copy.src_offset, stream);
  }
  bool takes_processors() const override { return false; }

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

class CopyEngine final : public Transport {
 public:
  std::vector<Channel> open(const ChannelRequest& r) override {
    std::vector<Channel> channels;
    for (const CarriedCommand& carried : r.commands)
      channels.push_back({nullptr, std::make_unique<Copies>(r, r.command(carried)), nullptr});
    return channels;
  }
};

const TransportRegistration registration{
    "copy engine", [](Runtime&) -> std::unique_ptr<Transport> { return std::make_unique<CopyEngine>(); }};

}  // namespace
}  // namespace tasuki
