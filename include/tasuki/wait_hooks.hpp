// WaitHooks: functions of a program that embeds Tasuki, called around waits. An interpreter releases its lock there and
// checks for signals.
#pragma once

namespace tasuki {

/// Called by waits that do not end after a short spin, on the waiting thread, and where a thread waits for Tasuki's
/// own, which may be in a function of the interpreter's. Null members are not called.
struct WaitHooks {
  /// Before the first yield. `context` is the `Context::id` of the context that waits, or null; `look` and `end` get
  /// the returned value as `token`. May be called inside another wait of the same thread.
  void* (*begin)(const void* context) = nullptr;
  void (*look)(void* token) = nullptr;                      ///< Every few milliseconds. May throw `Interruption`.
  void (*end)(const void* context, void* token) = nullptr;  ///< However the wait ends. Must not throw.
};

/// For the whole process; call it before the first wait.
void set_wait_hooks(const WaitHooks& hooks);

}  // namespace tasuki
