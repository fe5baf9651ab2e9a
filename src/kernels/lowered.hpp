// A plan lowered for a group of blocks, in memory: the program, and what the group's blocks and the host count.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engines/engine.hpp"
#include "engines/gpu/program.hpp"
#include "kernels/listed.hpp"
#include "tasuki/kernel/plan.cuh"
#include "tasuki/operation.hpp"

namespace tasuki {

/// A group's program in memory, and its handle without what changes from call to call.
class Lowered {
 public:
  /// `commands` of the plan; `threads` of a block. On a GPU, or on a processor, where a thread is a warp.
  /// `barrier_free`: the group is barrier-free. `how`: for device_group.
  Lowered(const GpuProgram& program, std::size_t commands, const KernelGroup& group, int threads, bool on_gpu,
          std::optional<ListedParts> barrier_free, std::string how);

  bool is_for(const KernelGroup& group, int threads) const {
    return group.blocks == blocks_ && threads == threads_ && group.cells == cells_;
  }
  const std::string& how() const { return how_; }
  int blocks() const { return blocks_; }
  int threads() const { return threads_; }
  bool on_gpu() const { return on_gpu_; }
  device::Handle& handle() { return handle_; }
  /// Tasks that a block does in turns, at most; 1 if it has jobs.
  int turns() const { return turns_; }
  const PlanFailure& failure() const { return *failure_; }
  const std::vector<const int*>& pairs() const { return pairs_; }
  /// The command of an end; `commands` as above.
  std::int32_t command_of(std::int32_t end, std::size_t commands) const;
  KernelEpochs epochs() const { return {handle_.begun, handle_.ended, blocks_}; }

  /// On a processor: how many blocks have come to the beginning and to the end of an epoch.
  device::Word begun() const;
  device::Word ended() const;
  void host_begins() const;  ///< Counts an epoch of the host.

  std::shared_ptr<void> registered;         ///< with KernelRegistry
  std::shared_ptr<std::atomic<int>> users;  ///< kernels on threads that have the handle

 private:
  int blocks_;
  int threads_;
  std::vector<std::vector<Box>> cells_;
  std::string how_;
  bool on_gpu_;
  int turns_ = 1;
  std::shared_ptr<PlanFailure> failure_;
  std::shared_ptr<std::byte> memory_;
  device::Word* by_host_ = nullptr;
  device::Handle handle_{};
  std::vector<const int*> pairs_;
  std::vector<std::int32_t> more_ends_;
};

}  // namespace tasuki
