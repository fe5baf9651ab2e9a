// GpuMemory: see gpu_memory.hpp.
#include "memory/gpu_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iterator>

#include "tasuki/error.hpp"

namespace tasuki {

GpuMemory::GpuMemory(SharedMemory& shared, int chosen, int local, std::function<bool(int)> same_process)
    : gpu_(*gpu()), shared_(shared), same_process_(std::move(same_process)) {
  ordinal_ = chosen >= 0 ? chosen : gpu_.current();
  if (chosen < 0 && ordinal_ == 0) ordinal_ = local % gpu_.count();
  gpu_.select(ordinal_);
  abort_ = {reinterpret_cast<std::uint32_t*>(gpu_.allocate_mapped(64)),
            [&gpu = gpu_](std::uint32_t* p) { gpu.release_mapped(reinterpret_cast<std::byte*>(p)); }};
  looked_ = {gpu_.allocate(sizeof(*looked_word())), [&gpu = gpu_](std::byte* p) { gpu.release(p); }};
}

GpuMemory::~GpuMemory() {
  std::atomic_ref<std::uint32_t>(*abort_).store(1);  // cudaFree waits for kernels: none may wait for other ranks
  open_.clear();
  blocks_->released.clear();
}

int GpuMemory::processors() const {
  return gpu_.processors(ordinal_);
}

std::shared_ptr<std::byte> GpuMemory::allocate(std::int64_t bytes) {
  collect();
  Block block;
  // CUDA may put small blocks into one allocation, which has one handle, and few drivers let a process open a handle
  // twice. `open_` therefore keeps one mapping for each handle.
  block.bytes = std::max<std::int64_t>(bytes, 64);
  block.memory = {gpu_.allocate(block.bytes), [&gpu = gpu_](std::byte* p) { gpu.release(p); }};
  block.guard = shared_.allocate(0);
  std::byte* const begin = block.memory.get();
  blocks_->held[begin] = std::move(block);
  return {begin, [blocks = blocks_](std::byte* p) {
            auto given_up = blocks->held.extract(p);
            blocks->released.push_back(std::move(given_up.mapped()));
          }};
}

// Frees the released blocks that no rank has mapped any more.
void GpuMemory::collect() {
  std::erase_if(blocks_->released, [this](Block& block) { return shared_.retire(block.guard); });
}

void GpuMemory::abort() {
  std::atomic_ref<std::uint32_t>(*abort_).store(1);
  for (const auto& action : aborts_) action();
}

std::shared_ptr<void> GpuMemory::watch(std::function<void()> check) {
  const auto at = checks_.insert(checks_.end(), std::move(check));
  return {&*at, [this, at](void*) { checks_.erase(at); }};
}

void GpuMemory::check() const {
  for (const auto& check : checks_) check();
}

GpuAddress GpuMemory::find(const void* p, std::string& why) const {
  GpuAddress address;
  why = gpu_.share(p, address.handle, address.offset);
  address.pointer = reinterpret_cast<std::uint64_t>(p);
  address.valid = why.empty() ? 1 : 0;
  const auto* const begin = static_cast<const std::byte*>(p);
  const auto after = blocks_->held.upper_bound(begin);
  if (after == blocks_->held.begin()) return address;
  const auto& [base, block] = *std::prev(after);
  if (begin - base < block.bytes) address.guard = shared_.find(block.guard.get(), 0);
  return address;
}

std::shared_ptr<std::byte> GpuMemory::map(int rank, const GpuAddress& address) {
  if (address.valid == 0) throw Error(fmt::format("rank {} has not shared that GPU memory", rank));
  const auto guard = shared_.map(rank, address.guard);  // first: its owner cannot free the block from here on
  if (address.guard.valid() && !guard)
    throw Error(fmt::format("the GPU memory of rank {} cannot be mapped: {}", rank, shared_.why_not(rank)));
  if (same_process_(rank)) {
    auto* const p = reinterpret_cast<std::byte*>(address.pointer);  // NOLINT: pointer of this process
    gpu_.reach(p);
    return {p, [guard](std::byte*) {}};
  }
  auto& known = open_[{rank, address.handle.bytes}];
  auto base = known.lock();
  if (!base) {
    base = {gpu_.open(address.handle), [](std::byte* p) { gpu()->close(p); }};
    known = base;
  }
  // Members are destroyed in reverse order: the mapping ends before the count goes down.
  struct Held {
    std::shared_ptr<std::byte> guard;
    std::shared_ptr<std::byte> base;
  };
  const auto held = std::make_shared<Held>(Held{guard, base});
  return {held, base.get() + address.offset};
}

}  // namespace tasuki
