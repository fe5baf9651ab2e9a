// WaitHooks: what a program that embeds Tasuki does around waits: an interpreter gives up its lock and looks for
// signals.
#pragma once

namespace tasuki {

class Runtime;

/// Called by waits that do not end after a short spin, on the waiting thread. Null members are not called.
struct WaitHooks {
  void* (*begin)(Runtime& runtime) = nullptr;  ///< Before the first yield; what it returns is given to the others.
  void (*look)(void* token) = nullptr;         ///< Every few milliseconds. May throw `Interruption`.
  void (*end)(Runtime& runtime, void* token) = nullptr;  ///< However the wait ends. Must not throw.
};

/// For the whole process; call it before the first wait.
void set_wait_hooks(const WaitHooks& hooks);

}  // namespace tasuki
