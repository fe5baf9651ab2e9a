// Progress: which active operations a waiting thread drives.
//
// Ranks may start operations and wait for them in different orders, those of several contexts too. So a wait drives
// the active operations of all contexts that its thread was the last to use, not only its own. Two threads never drive
// the same operation: a thread that uses a context takes it over from the one that did before, after that one's round.
// As long as a context stays with its thread, that costs one comparison (Runtime::use).
#pragma once

#include <pthread.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace tasuki {

class Runtime;

/// An active operation, which makes progress while this rank waits for something else.
class Progressing {
 public:
  virtual void progress() = 0;

 protected:
  ~Progressing() = default;
};

/// A number of the calling thread that no other living thread has; never 0. No call where the compiler can do without:
/// it is asked for by every start and wait.
inline std::uintptr_t this_thread() {
#if __has_builtin(__builtin_thread_pointer)
  return reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
#else
  return (std::uintptr_t)pthread_self();  // a pointer or a number
#endif
}

/// The contexts of one thread. Ranks that are threads have one each.
class Progress {
 public:
  /// Drives the active operations of the calling thread's contexts once. Does nothing if it is called from inside an
  /// operation's `progress`.
  static void drive();

  /// A context's place among those of the thread that used it last.
  class Place {
   public:
    explicit Place(Runtime* context) : context_(context) {}
    ~Place() { leave(); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    /// Puts the context among those of the calling thread.
    void take();
    /// After it returns, no thread drives the context any more.
    void leave();
    /// In a forked child, which has no other threads.
    void forget() { among_.reset(); }

   private:
    Runtime* context_;
    std::shared_ptr<Progress> among_;
  };

 private:
  struct Keeper;
  static thread_local constinit Progress* threads_own;

  /// The calling thread's. Made by the first call.
  static std::shared_ptr<Progress> of_this_thread();
  void add(Runtime* context);
  void remove(Runtime* context);
  std::unique_lock<std::recursive_mutex> locked();

  std::recursive_mutex mutex_;  // an operation that is driven may call a user's function, and that may make a context
  std::vector<Runtime*> contexts_;
  bool driving_ = false;  // used by its own thread only
};

}  // namespace tasuki
