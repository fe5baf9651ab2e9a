// GpuMemory: the GPUs of a context's ranks, and memory on them that ranks of one island map into each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "memory/gpu.hpp"

namespace tasuki {

class Runtime;

/// Names bytes of one rank's GPU memory to the other ranks of its host. Plain data, sent between ranks.
struct GpuAddress {
  GpuHandle handle;
  std::int64_t offset = 0;
  std::uint64_t pointer = 0;  ///< in the rank's process
  std::int32_t valid = 0;
};

class GpuMemory {
 public:
  explicit GpuMemory(Runtime& runtime);  ///< Collective: see `use_gpu`.
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  int ordinal() const { return ordinal_; }
  int processors() const;
  const std::string& name(int rank) const { return names_[static_cast<std::size_t>(rank)]; }
  /// Empty if this rank and `rank` can store into each other's memory (tried out when this was made); else why not.
  const std::string& why_not(int rank) const { return why_not_[static_cast<std::size_t>(rank)]; }

  /// Two ranks that use the same GPU, in words; empty if there are none. The same on every rank.
  std::string shared() const;
  /// True if the GPUs can add to each other's memory, not only store.
  bool atomics() const { return atomics_; }

  /// `bytes` zero-filled bytes (may differ per rank and be 0) on this rank's GPU. Collective. The last pointer gives
  /// the block up, locally; its memory is freed in a later `allocate`, or at the end, when all ranks of the host have
  /// given up theirs, so that a peer's late store never lands in memory that has a new owner.
  std::shared_ptr<std::byte> allocate(std::int64_t bytes);

  /// The name by which peers can map `p`; not valid if the memory cannot be shared, and then `why` says why.
  GpuAddress find(const void* p, std::string& why) const;
  /// Where this process sees `address` of `rank`. Lives as long as the pointer. Local.
  std::shared_ptr<std::byte> map(int rank, const GpuAddress& address);

  /// Whether two ranks reach each other; the same on every rank.
  bool reach(int a, int b) const { return reach_[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] == '1'; }
  /// True if all do.
  bool complete() const;

  /// Ends what waits for other ranks on the GPU: kernels, and whatever has said how. For failures.
  void abort();
  void on_abort(std::function<void()> action) { aborts_.push_back(std::move(action)); }
  /// `check` throws if what it watches over has failed; it is asked by `check` as long as the pointer lives.
  std::shared_ptr<void> watch(std::function<void()> check);
  void check() const;
  /// A word in host memory that kernels look at while they wait: not 0 tells them to give up.
  std::uint32_t* abort_word() const { return abort_.get(); }

 private:
  struct Retired {
    std::shared_ptr<std::byte> memory;
    std::shared_ptr<std::byte> flag;  // shared by the host's ranks: 1 once this rank has given the block up
    std::vector<std::byte*> flags;    // of all ranks of the host
  };
  void try_out();
  void sweep();

  Runtime& runtime_;
  Gpu& gpu_;
  int ordinal_ = 0;
  bool atomics_ = true;
  std::vector<std::string> reach_;  ///< a row a rank, '1' for those that it reaches
  std::vector<std::function<void()>> aborts_;
  std::list<std::function<void()>> checks_;
  std::vector<std::string> names_;
  std::vector<std::string> why_not_;
  std::shared_ptr<std::uint32_t> abort_;
  std::shared_ptr<std::vector<Retired>> retired_ = std::make_shared<std::vector<Retired>>();
  std::map<std::pair<int, std::array<std::uint8_t, 64>>, std::weak_ptr<std::byte>> open_;
};

/// The context's GPU memory, made when first asked for. Collective then.
GpuMemory& gpu_memory(Runtime& runtime);

}  // namespace tasuki
