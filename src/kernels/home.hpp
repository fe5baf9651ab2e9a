// KernelHome: what all kernels of a context that communicate by themselves share on the host.
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
#include "tasuki/kernel/stop.cuh"

namespace tasuki {

/// How many kernels on threads have a handle: its memory must stay until they have ended.
using HandleUsers = std::shared_ptr<std::atomic<int>>;

/// Knows what has failed in kernels, and how to end their waits: for those on a GPU as `GpuMemory` does, for those on
/// threads by a word of its own.
class KernelHome {
 public:
  /// The context's, made when first asked for.
  static KernelHome& of(Runtime& runtime);

  /// What kernels look at while they wait.
  device::Stop stop(bool on_gpu);
  /// Ends all kernels' waits on this rank, for good.
  void abort();
  /// Only of those that look at `stop(on_gpu)`. Any thread may call it.
  void tell_to_give_up(bool on_gpu);
  /// `check` throws if what it watches over has failed; it is asked as long as the pointer lives.
  std::shared_ptr<void> watch(bool on_gpu, std::function<void()> check);
  void check() const;

  /// As long as the pointer lives, kernels have something for which they ask the process's thread (session/worker.hpp):
  /// it stays awake while one runs on a GPU.
  std::shared_ptr<void> serve();
  bool serves() const { return served_.use_count() > 1; }

  /// What a handle of an operation was made for.
  struct HandleFacts {
    std::string operation;
    int blocks = 1;
    int threads = 1;
    std::function<bool()> active;  // the host is in an epoch
    HandleUsers users;
  };
  /// A number for a handle, known as long as the pointer lives.
  std::pair<std::uint64_t, std::shared_ptr<void>> add_handle(HandleFacts facts);
  /// Null if there is no such handle any more.
  const HandleFacts* handle(std::uint64_t id) const;

  explicit KernelHome(Runtime& runtime) : runtime_(runtime) {}

 private:
  Runtime& runtime_;
  std::uint32_t abort_ = 0;
  device::Word looked_ = 0;
  std::shared_ptr<int> served_ = std::make_shared<int>();
  std::shared_ptr<std::list<std::function<void()>>> checks_ = std::make_shared<std::list<std::function<void()>>>();
  std::shared_ptr<std::map<std::uint64_t, HandleFacts>> handles_ =
      std::make_shared<std::map<std::uint64_t, HandleFacts>>();
};

}  // namespace tasuki
