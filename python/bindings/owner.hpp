// Owner: what the Python objects of one context share. It knows them all, so that they let go of MPI in the right order
// when the program ends, and it keeps other Python threads out while one waits without the interpreter's lock.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tasuki/context.hpp"

namespace tasuki::python {

namespace nb = nanobind;

class Owner;

/// A Python object that holds something of the core: `release` drops it, and the object is of no use afterwards.
class Member {
 public:
  explicit Member(std::shared_ptr<Owner> owner);
  virtual ~Member();
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  virtual void release() noexcept = 0;
  /// Why the context cannot be closed while this object is in use; empty if it can.
  virtual std::string in_use() const { return {}; }
  /// What `repr` says: that never raises, so `text` was made while the object was of use.
  std::string shown_as(const std::string& text) const;
  Owner& owner() const { return *owner_; }
  const std::shared_ptr<Owner>& shared_owner() const { return owner_; }

 protected:
  void set_freed() { freed_ = true; }

 private:
  std::shared_ptr<Owner> owner_;
  std::uint64_t number_;
  bool freed_ = false;
};

/// Values that must be equal on all ranks, by their arguments' names.
class Named {
 public:
  void same(const std::string& name, const std::string& value) { all_.emplace_back(name, value); }
  const std::vector<std::pair<std::string, std::string>>& all() const { return all_; }

 private:
  std::vector<std::pair<std::string, std::string>> all_;
};

class Owner {
 public:
  /// A context's owner, known to the process until `close`. Contexts never end by garbage collection, for their end is
  /// collective and the order in which ranks collect garbage is not.
  static std::shared_ptr<Owner> make(std::unique_ptr<Context> context);
  /// For the end of the program, in reverse order of making. A context that another thread waits for stays as it is:
  /// the other ranks are told, and the process ends as after an uncaught exception.
  static void close_all() noexcept;
  static void fail_all(const std::string& why);  ///< Tells the other ranks that this one will not go on.
  static Owner* of(const void* context);         ///< By `Context::id`; null if it is not one of Python's.
  static bool any_with_others();                 ///< True if a context has more than one rank, and none in a fork.

  /// While one exists, this thread is in a function that an operation calls, which must not use Tasuki.
  class InFunction {
   public:
    InFunction() { ++depth_; }
    ~InFunction() { --depth_; }
    InFunction(const InFunction&) = delete;
    InFunction& operator=(const InFunction&) = delete;
    static bool here() { return depth_ > 0; }

   private:
    static thread_local int depth_;
  };

  /// The context, for a call on behalf of Python. Throws `Error` if it was closed or another thread is waiting on it.
  Context& context() const {
    if (context_ == nullptr || waiting_ || InFunction::here()) refuse();
    return *context_;
  }
  /// Runs `check` on this rank; what it throws is thrown by all ranks, so that none goes on alone. Collective.
  void agree(const std::string& operation, const std::function<void()>& check) const;
  /// The same among `ranks` only, or on a rank that is not among them for itself.
  void agree(const std::string& operation, std::span<const int> ranks, const std::function<void()>& check) const;
  /// The same for a `check` that names values which must be equal on all ranks.
  void agree(const std::string& operation, const std::function<void(Named&)>& check) const;
  /// Throws, and does nothing, if something is in use. A second call does nothing.
  void close();
  bool closed() const { return context_ == nullptr; }
  std::string text() const;  ///< Of a Context's `repr`, in any state.

  /// Destroys `core` now, or when no thread waits any more and none of an operation's functions runs here. Never in a
  /// fork: what the core shares is the parent's.
  void retire(std::shared_ptr<void> core);
  void begin_wait() { waiting_ = true; }
  void end_wait();

 private:
  friend class Member;
  explicit Owner(std::unique_ptr<Context> context) : context_(std::move(context)) {}
  [[noreturn]] void refuse() const;
  static void check_and_settle(const std::function<void()>& check,
                               const std::function<void(const std::string&)>& settle);
  void let_go() noexcept;
  void bury() noexcept;

  std::unique_ptr<Context> context_;
  std::map<std::uint64_t, Member*> members_;  // in the order of making
  std::uint64_t next_ = 0;
  bool waiting_ = false;
  std::vector<std::shared_ptr<void>> graveyard_;
};

/// What Python calls a Context.
struct ContextHandle {
  std::shared_ptr<Owner> owner;
};

/// A member that holds one object of the core.
template <class T>
class Held : public Member {
 public:
  Held(std::shared_ptr<Owner> owner, T core) : Member(std::move(owner)), core_(std::make_shared<T>(std::move(core))) {}
  ~Held() override { owner().retire(std::move(core_)); }
  void release() noexcept override { core_.reset(); }
  T& core() const {
    (void)owner().context();
    return *core_;
  }

 private:
  std::shared_ptr<T> core_;
};

/// Gives up the interpreter's lock in waits and looks for signals there, and learns of forks. Called once, by the
/// module.
void install_wait_hooks();
/// After an uncaught exception, or where a thread still waits: ends the process at the very end of the interpreter's
/// own, before MPI_Finalize could wait for ranks that cannot come.
void end_without_mpi();

}  // namespace tasuki::python
