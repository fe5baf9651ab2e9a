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
#include <utility>
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
  /// The calling thread's. Made by the first call.
  static std::shared_ptr<Progress> of_this_thread();
  /// Drives the active operations of the calling thread's contexts once. Does nothing if it is called from inside an
  /// operation's `progress`.
  static void drive();

  /// A context is among a thread's as long as this exists. Any thread may end it: `drive` does not use the context
  /// afterwards.
  class Member {
   public:
    Member(std::shared_ptr<Progress> of, Runtime* context) : of_(std::move(of)), context_(context) {
      of_->add(context_);
    }
    ~Member() { of_->remove(context_); }
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

   private:
    std::shared_ptr<Progress> of_;
    Runtime* context_;
  };

 private:
  void add(Runtime* context);
  void remove(Runtime* context);

  struct Keeper;
  static thread_local constinit Progress* mine_;

  std::unique_lock<std::recursive_mutex> locked();

  std::recursive_mutex mutex_;  // an operation that is driven may call a user's function, and that may make a context
  std::vector<Runtime*> contexts_;
  bool driving_ = false;  // used by its own thread only
};

}  // namespace tasuki
