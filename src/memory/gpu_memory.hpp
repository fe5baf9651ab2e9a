// GpuMemory: memory on a rank's GPU that it allocates by itself and other ranks map when they are told where it is.
#pragma once

#include <array>
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
#include "memory/shared_memory.hpp"

namespace tasuki {

/// Names bytes of one rank's GPU memory to the other ranks of its host. Plain data, sent between ranks.
struct GpuAddress {
  GpuHandle handle;
  std::int64_t offset = 0;
  std::uint64_t pointer = 0;  ///< in the rank's process
  SharedAddress guard;        ///< counts who has it mapped; not valid for memory that is not Tasuki's
  std::int32_t valid = 0;
};

class GpuMemory {
 public:
  /// Uses GPU `chosen` of the process; if that is -1, the one that the calling thread has current, or if that is the
  /// first, number `local` modulo how many there are. `same_process` says which ranks see this one's pointers. Throws
  /// `Error`.
  GpuMemory(SharedMemory& shared, int chosen, int local, std::function<bool(int)> same_process);
  virtual ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  int ordinal() const { return ordinal_; }
  int processors() const;

  /// `bytes` zero-filled bytes, may be 0, on this rank's GPU. Local. The last pointer gives the block up, locally; its
  /// memory is freed in a later `allocate`, or at the end, once no rank has it mapped, so that a peer's late store
  /// never lands in memory that has a new owner. Throws `Error`.
  std::shared_ptr<std::byte> allocate(std::int64_t bytes);

  /// The name by which peers can map `p`; not valid if the memory cannot be shared, and then `why` says why.
  GpuAddress find(const void* p, std::string& why) const;
  /// Where this process sees `address` of `rank`. Counted as mapped as long as the pointer lives. Local. Throws
  /// `Error`.
  std::shared_ptr<std::byte> map(int rank, const GpuAddress& address);

  /// Ends what waits for other ranks on the GPU: kernels, and whatever has said how. For failures.
  void abort();
  void on_abort(std::function<void()> action) { aborts_.push_back(std::move(action)); }
  /// `check` throws if what it watches over has failed; it is asked by `check` as long as the pointer lives.
  std::shared_ptr<void> watch(std::function<void()> check);
  void check() const;
  /// A word in host memory that kernels look at while they wait: not 0 tells them to give up.
  std::uint32_t* abort_word() const { return abort_.get(); }

 protected:
  Gpu& gpu_;
  int ordinal_ = 0;

 private:
  struct Block {
    std::shared_ptr<std::byte> memory;
    std::int64_t bytes = 0;
    std::shared_ptr<std::byte> guard;  // shared memory that peers map along with the block, and so are counted
  };
  struct Blocks {
    std::map<const std::byte*, Block> held;
    std::vector<Block> released;
  };
  void collect();

  SharedMemory& shared_;
  std::function<bool(int)> same_process_;
  std::vector<std::function<void()>> aborts_;
  std::list<std::function<void()>> checks_;
  std::shared_ptr<std::uint32_t> abort_;
  std::shared_ptr<Blocks> blocks_ = std::make_shared<Blocks>();
  std::map<std::pair<int, std::array<std::uint8_t, 64>>, std::weak_ptr<std::byte>> open_;
};

}  // namespace tasuki
