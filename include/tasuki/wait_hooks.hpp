// WaitHooks: what a program that embeds Tasuki does around waits: an interpreter gives up its lock and looks for
// signals.
#pragma once

namespace tasuki {

/// Called by waits that do not end after a short spin, on the waiting thread. Null members are not called.
struct WaitHooks {
  /// Before the first yield. `context` is the `Context::id` of the context that waits; what it returns is given to the
  /// others.
  void* (*begin)(const void* context) = nullptr;
  void (*look)(void* token) = nullptr;                      ///< Every few milliseconds. May throw `Interruption`.
  void (*end)(const void* context, void* token) = nullptr;  ///< However the wait ends. Must not throw.
};

/// For the whole process; call it before the first wait.
void set_wait_hooks(const WaitHooks& hooks);

}  // namespace tasuki
