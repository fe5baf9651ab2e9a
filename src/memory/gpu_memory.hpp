// GpuMemory: GPU memory that one rank allocates without communication. Other ranks of the host map it by its address,
// which they are sent.
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

/// Address of bytes in a rank's GPU memory, for the other ranks of its host. Plain data, sent between ranks.
struct GpuAddress {
  GpuHandle handle;
  std::int64_t offset = 0;
  std::uint64_t pointer = 0;  ///< address in the owner's process
  SharedAddress guard;  ///< word that counts the ranks that have mapped the block; invalid if the user owns the memory
  std::int32_t valid = 0;
};

class GpuMemory {
 public:
  /// Selects the GPU. If `chosen` is not -1, it is the ordinal. Otherwise the calling thread's current GPU is taken if
  /// it is not GPU 0, and else GPU `local` modulo the number of GPUs. `same_process(rank)` says whether that rank can
  /// use this rank's pointers. Throws `Error`.
  GpuMemory(SharedMemory& shared, int chosen, int local, std::function<bool(int)> same_process);
  virtual ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  int ordinal() const { return ordinal_; }
  int processors() const;

  /// Allocates `bytes` zero-filled bytes on this rank's GPU; `bytes` may be 0. Local. When the last pointer is
  /// destroyed the block is released. Its memory is freed in a later `allocate`, or in the destructor, once no rank has
  /// it mapped: so a late store of a peer cannot hit memory that has a new owner. Throws `Error`.
  std::shared_ptr<std::byte> allocate(std::int64_t bytes);

  /// The address with which peers map `p`. If the memory cannot be shared the address is invalid, and `why` is set.
  GpuAddress find(const void* p, std::string& why) const;
  /// Maps `address` of `rank` into this process. The block counts as mapped as long as the pointer exists. Local.
  /// Throws `Error`.
  std::shared_ptr<std::byte> map(int rank, const GpuAddress& address);

  /// After a failure: ends kernels of this GPU that wait for other ranks, and calls the actions given to `on_abort`.
  void abort();
  void on_abort(std::function<void()> action) { aborts_.push_back(std::move(action)); }
  /// Registers a check, which throws if something has failed. `check()` calls it as long as the returned pointer
  /// exists.
  std::shared_ptr<void> watch(std::function<void()> check);
  void check() const;                                     ///< calls all registered checks
  std::size_t watches() const { return checks_.size(); }  ///< how many there are
  /// Word in mapped host memory that waiting kernels read: they give up when it is not 0.
  std::uint32_t* abort_word() const { return abort_.get(); }
  /// Word in GPU memory in which these kernels note when one has read that word.
  unsigned long long* looked_word() const { return reinterpret_cast<unsigned long long*>(looked_.get()); }

 protected:
  Gpu& gpu_;
  int ordinal_ = 0;

 private:
  struct Block {
    std::shared_ptr<std::byte> memory;
    std::int64_t bytes = 0;
    std::shared_ptr<std::byte> guard;  // shared memory that peers map together with the block, which counts them
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
  std::shared_ptr<std::byte> looked_;
  std::shared_ptr<Blocks> blocks_ = std::make_shared<Blocks>();
  std::map<std::pair<int, std::array<std::uint8_t, 64>>, std::weak_ptr<std::byte>> open_;
};

}  // namespace tasuki
