// See filling.hpp.
#include "filling.hpp"

#include <chrono>
#include <cstring>

#include "tasuki/strided_copy.hpp"

namespace tasuki::mpi {

namespace {

void store_past_caches(const std::byte* from, std::int64_t bytes, std::byte* to) {
  StridedCopy copy;
  copy.block = bytes;
  select_copy(copy, CopyHint::streaming)(copy, from, to);
}

}  // namespace

Filling::Filling(FillPrices& prices, std::int64_t bytes) : bytes_(bytes), left_(bytes) {
  if (bytes < FillPrices::kLeast) return;
  prices_ = &prices;
  streams_ = prices.streams();
}

template <class Store>
void Filling::store(std::int64_t bytes, const Store& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  ns_ += took.count();
  left_ -= bytes;
  if (left_ == 0) prices_->took(streams_, ns_ / static_cast<double>(bytes_));
}

void Filling::pack(const Packer& segment, const std::byte* base, std::byte* to) {
  if (prices_ == nullptr) return segment.pack(base, to);
  if (streams_ && !packed_) {
    packed_ = Scratch(segment.size());  // the first segment is the largest
    streams_ = static_cast<bool>(packed_);
  }
  store(segment.size(), [&] {
    if (!streams_) return segment.pack(base, to);
    segment.pack(base, packed_.data());
    store_past_caches(packed_.data(), segment.size(), to);
  });
}

void Filling::copy(const std::byte* from, std::int64_t bytes, std::byte* to) {
  const auto copied = static_cast<std::size_t>(bytes);
  if (prices_ == nullptr) {
    std::memcpy(to, from, copied);
    return;
  }
  store(bytes, [&] {
    if (streams_)
      store_past_caches(from, bytes, to);
    else
      std::memcpy(to, from, copied);
  });
}

}  // namespace tasuki::mpi
