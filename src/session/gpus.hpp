// Gpus: the GPUs of a context's ranks, and which of them reach each other.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "memory/gpu_memory.hpp"

namespace tasuki {

class Runtime;

class Gpus : public GpuMemory {
 public:
  /// Collective: the ranks of an island try out whether they can map each other's GPU memory.
  static std::shared_ptr<Gpus> find_out(Runtime& runtime);

  /// Use `find_out`.
  explicit Gpus(Runtime& runtime);

  const std::string& name(int rank) const { return names_[static_cast<std::size_t>(rank)]; }
  /// Empty if this rank and `rank` can store into each other's memory; else why not.
  std::string why_not(int rank) const;
  /// Whether two ranks reach each other; the same on every rank.
  bool reach(int a, int b) const;
  /// True if all do.
  bool complete() const { return complete_; }
  /// Two ranks that use the same GPU, in words; empty if there are none. The same on every rank.
  const std::string& shared() const { return shared_gpu_; }
  /// True if the GPUs can add to each other's memory, not only store.
  bool atomics() const { return atomics_; }

 private:
  void try_out();
  void find_shared();

  Runtime& runtime_;
  std::vector<std::string> names_;
  std::vector<std::string> why_not_;  ///< by rank within this host
  std::vector<std::string> reach_;    ///< a row a rank: '1' for those of the ranks of its host that it reaches
  std::string shared_gpu_;
  bool complete_ = true;
  bool atomics_ = true;
};

/// The context's GPUs, found when first asked for. Collective then.
Gpus& gpu_memory(Runtime& runtime);

}  // namespace tasuki
