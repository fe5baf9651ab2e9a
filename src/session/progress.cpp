// Progress: see progress.hpp.
#include "session/progress.hpp"

#include <utility>

#include "session/runtime.hpp"
#include "session/wait_until.hpp"

namespace tasuki {
namespace {
thread_local constinit std::shared_ptr<Progress>* late = nullptr;  // for what is used after the thread's `Keeper`
thread_local constinit bool keeper_gone = false;
}  // namespace

thread_local constinit Progress* Progress::threads_own = nullptr;

/// Keeps a thread's `Progress` until the thread ends. Static objects are destroyed later; they get one that stays.
struct Progress::Keeper {
  std::shared_ptr<Progress> kept = std::make_shared<Progress>();
  ~Keeper() {
    threads_own = nullptr;
    keeper_gone = true;
    const auto lock = kept->locked();
    for (Runtime* context : kept->contexts_) context->forget_user();  // a later thread may get this one's number
  }
};

std::shared_ptr<Progress> Progress::of_this_thread() {
  if (keeper_gone) {
    if (late == nullptr) late = new std::shared_ptr<Progress>(std::make_shared<Progress>());
    threads_own = late->get();
    return *late;
  }
  static thread_local Keeper keeper;
  threads_own = keeper.kept.get();
  return keeper.kept;
}

void Progress::drive() {
  Progress* const mine = threads_own;
  if (mine == nullptr || mine->driving_) return;
  // Never waits: who has the lock may be waiting for an interpreter's lock, which this thread may hold.
  const std::unique_lock lock(mine->mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  struct Driving {
    bool& flag;
    explicit Driving(bool& one) : flag(one) { flag = true; }
    ~Driving() { flag = false; }
  } const driving(mine->driving_);
  // By index: a user's function may make a context, or end one.
  for (std::size_t i = mine->contexts_.size(); i-- > 0;)
    if (i < mine->contexts_.size()) mine->contexts_[i]->progress_active();
}

// The thread that holds the lock may be in a function of an interpreter: who waits for it gives up the interpreter's.
std::unique_lock<std::recursive_mutex> Progress::locked() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) return lock;
  const Unlocked unlocked(nullptr);
  lock.lock();
  return lock;
}

void Progress::add(Runtime* context) {
  const auto lock = locked();
  contexts_.push_back(context);
}

void Progress::remove(Runtime* context) {
  const auto lock = locked();
  std::erase(contexts_, context);
}

void Progress::Place::take() {
  leave();
  among_ = of_this_thread();
  among_->add(context_);
}

void Progress::Place::leave() {
  if (const auto among = std::exchange(among_, nullptr)) among->remove(context_);
}

}  // namespace tasuki
