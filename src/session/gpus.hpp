// Gpus: the GPUs of a context's ranks, and which of them can access each other's memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "memory/gpu_memory.hpp"

namespace tasuki {

class Runtime;

class Gpus : public GpuMemory {
 public:
  /// Makes it. Collective: the ranks of an island map and read each other's GPU memory to find out what works.
  static std::shared_ptr<Gpus> find_out(Runtime& runtime);

  /// For `find_out`, which also tries out what works.
  explicit Gpus(Runtime& runtime);
  ~Gpus() override;

  /// Of all contexts of this process: those that use this GPU. Work of them all meets in its streams.
  static std::vector<Gpus*> on(int ordinal);
  /// Whether any context of this process uses a GPU.
  static bool any();
  /// Throws the first failure that nobody has been told yet, of an operation of any context on this GPU. Never
  /// allocates unless it throws.
  void check_untold() const;
  /// If a rank of this context has died or given up, ends the kernels that may wait for it. Only where operations are
  /// left. Their failure is found by their checks.
  void end_waits_for_the_dead();
  /// With TASUKI_CHECK=1: throws if ranks have started operations of this context in unlike orders in streams.
  void compare_starts();
  bool failed() const;  ///< whether the context has

  /// Of the rank's GPU: see `Gpu::name`.
  const std::string& name(int rank) const { return names_[static_cast<std::size_t>(rank)]; }
  /// Why this rank and `rank` cannot store into each other's GPU memory; empty if they can.
  std::string why_not(int rank) const;
  /// Whether two ranks can access each other's GPU memory; the same on every rank.
  bool reach(int a, int b) const;
  /// Whether every two ranks can.
  bool complete() const { return complete_; }
  /// Two ranks that use the same GPU, in words; empty if there are none. The same on every rank.
  const std::string& shared() const { return shared_gpu_; }
  /// Whether the GPUs can do atomic additions in each other's memory.
  bool atomics() const { return atomics_; }

 private:
  void try_out();
  void find_shared();

  Runtime& runtime_;
  std::vector<std::string> names_;
  std::vector<std::string> why_not_;  ///< by rank within this host
  std::vector<std::string> reach_;    ///< for each rank a text of '0' and '1': which ranks of its host it can access
  std::string shared_gpu_;
  bool complete_ = true;
  bool atomics_ = true;
};

/// Throws if the stream is being captured: CUDA refuses to be asked how far it is. `call` waits for it.
void refuse_captured(const Runtime& runtime, const char* call, Stream stream);

/// Throws if the stream belongs to another GPU than this rank's. Kernels there would take this GPU's addresses for
/// their own. `who` begins the message. Of a stream that is being captured CUDA does not say to which GPU it belongs.
void refuse_foreign(const Runtime& runtime, const std::string& who, Stream stream);

/// The context's GPUs. The first call makes them and is collective.
Gpus& gpu_memory(Runtime& runtime);

}  // namespace tasuki
