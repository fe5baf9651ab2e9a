// KernelRegistry: what all kernels of a context that communicate by themselves share on the host.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "session/runtime.hpp"
#include "tasuki/kernel/impl/stop.cuh"

namespace tasuki {

/// How many kernels on threads have something that was passed to them: its memory must stay until they have ended.
using KernelUsers = std::shared_ptr<std::atomic<int>>;
void await_users(const KernelUsers& users);  ///< Returns when there are none.

/// What can be passed to kernels and has a number.
enum class Passed : std::uint32_t { handle, team, messages, neighbours };

/// Registers what is passed to kernels, knows what has failed in them, and ends their waits: of kernels on a GPU as
/// `GpuMemory` does, of kernels on threads by a word of its own.
class KernelRegistry {
 public:
  /// The context's, made when first asked for.
  static KernelRegistry& of(Runtime& runtime);

  /// What kernels look at while they wait.
  device::Stop stop(bool on_gpu);
  /// Ends all kernels' waits on this rank, for good.
  void abort();
  /// Only of those that look at `stop(on_gpu)`. Any thread may call it.
  void request_stop(bool on_gpu);
  /// `check` throws if what it watches has failed; it is called as long as the pointer lives.
  std::shared_ptr<void> watch(bool on_gpu, std::function<void()> check);
  void check() const;

  /// As long as the pointer lives, kernels have something for which they ask the process's thread (session/worker.hpp):
  /// it stays awake while one runs on a GPU.
  std::shared_ptr<void> serve();
  bool serves() const { return served_.use_count() > 1; }

  /// What launches ask of something that is passed to kernels.
  struct Facts {
    std::string of;  // a handle: its operation
    int blocks = 1;  // a handle: of its group; neighbours: of the launch
    int threads = 1;
    std::function<bool()> active;  // a handle: the host is in an epoch
    KernelUsers users = std::make_shared<std::atomic<int>>(0);
  };
  /// A number for it, known as long as the pointer lives.
  std::pair<std::uint32_t, std::shared_ptr<void>> add(Passed kind, Facts facts);
  /// Null if there is nothing of this number in the context any more.
  const Facts* find(std::uint32_t number) const;
  static bool is_number(std::uint32_t number);  ///< Some context has given it, if perhaps no longer.
  static Passed kind_of(std::uint32_t number);

  explicit KernelRegistry(Runtime& runtime) : runtime_(runtime) {}

 private:
  Runtime& runtime_;
  std::uint32_t abort_ = 0;
  device::Word looked_ = 0;
  std::shared_ptr<int> served_ = std::make_shared<int>();
  std::shared_ptr<std::list<std::function<void()>>> checks_ = std::make_shared<std::list<std::function<void()>>>();
  std::shared_ptr<std::map<std::uint32_t, Facts>> passed_ = std::make_shared<std::map<std::uint32_t, Facts>>();
};

}  // namespace tasuki
