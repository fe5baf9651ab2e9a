// Deferred release: see deferred_release.hpp.
#include "session/deferred_release.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "session/generation.hpp"
#include "session/runtime.hpp"
#include "session/wait_until.hpp"

namespace tasuki {
namespace {

struct Deferred {
  std::unique_ptr<Runtime> context;
  std::unique_ptr<Pending> others;  // ends when all other ranks have released the context
  std::thread::id thread;
  bool threads() const { return context->topology().threads; }
  /// Whether this thread may destroy it: of ranks that are threads, only that rank's.
  bool is_of(std::thread::id caller) const { return !threads() || thread == caller; }
};

struct List {
  std::mutex mutex;
  std::list<Deferred> all;
};

// Never destroyed: contexts may exist until the program ends.
List& list() {
  static auto* one = new List;
  return *one;
}

/// Removes the releases for which `is_due` is true from the list, and returns them. The caller destroys them without
/// the lock, because that may lead here again.
template <class Due>
std::list<Deferred> take(const Due& is_due) {
  List& waiting = list();
  std::list<Deferred> taken;
  const std::lock_guard lock(waiting.mutex);
  for (auto at = waiting.all.begin(); at != waiting.all.end();) {
    const auto next = std::next(at);
    if (is_due(*at)) taken.splice(taken.end(), waiting.all, at);
    at = next;
  }
  return taken;
}

/// Destroys the contexts for which `is_due` is true and which need not be waited for.
template <class Due>
void end(const Due& is_due) noexcept {
  const auto over = [&](const Deferred& one) {
    try {
      return is_due(one) && one.context->communicator().running() &&
             (one.others->ended() || !one.context->liveness().failure(one.context->everyone()).empty());
    } catch (const std::exception&) {
      return true;  // `have_left` gets the same exception and reports it
    }
  };
  for (Deferred& one : take(over))
    if (have_left(*one.context, *one.others)) one.context->left(*one.others);
}

template <class Due>
void await(const Due& is_due) noexcept {
  for (;;) {
    bool taken = false;
    std::list<Deferred> next = take([&](const Deferred& one) { return is_due(one) && !std::exchange(taken, true); });
    if (next.empty()) return;
    Deferred& one = next.front();
    if (one.context->communicator().running() && have_left(*one.context, *one.others)) one.context->left(*one.others);
  }
}

/// The last handle has gone.
void release(Runtime* released) noexcept {
  std::unique_ptr<Runtime> context(released);
  if (context->inherited()) return;  // nothing may be shared with the parent
  const bool threads = context->topology().threads;
  try {
    if (auto others = context->begin_leaving()) {
      Deferred deferred{std::move(context), std::move(others), std::this_thread::get_id()};
      const std::lock_guard lock(list().mutex);
      list().all.push_back(std::move(deferred));
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tasuki: releasing a context: %s\n", error.what());
  }
  context.reset();  // if a rank has failed there is nobody to wait for
  collect_released_with_gpus();
  if (!threads) end_session();
}

}  // namespace

std::shared_ptr<Runtime> owned(std::unique_ptr<Runtime> context) {
  return {context.release(), release};
}

bool have_left(Runtime& context, Pending& others) noexcept {
  try {
    wait_without_deadline(
        context, context.everyone(), [&] { return others.ended(); },
        [&] { return fmt::format("rank {}: waiting for the other ranks to release the context", context.rank()); });
    return true;
  } catch (const std::exception& error) {
    context.left_alone(error.what());
    return false;
  }
}

void collect_released() noexcept {
  if (Generation::forked()) return;
  end([me = std::this_thread::get_id()](const Deferred& one) { return one.is_of(me) && !one.context->gpus; });
}

void collect_released_with_gpus() noexcept {
  if (Generation::forked()) return;
  end([me = std::this_thread::get_id()](const Deferred& one) { return one.is_of(me); });
}

void collect_released_of_threads() noexcept {
  end([](const Deferred& one) { return one.threads(); });
}

int deferred_releases() {
  const std::lock_guard lock(list().mutex);
  return static_cast<int>(std::ranges::count_if(list().all, [](const Deferred& one) { return !one.threads(); }));
}

void await_releases() noexcept {
  await([](const Deferred& one) { return !one.threads(); });
}

void await_releases_of_this_thread() noexcept {
  await([me = std::this_thread::get_id()](const Deferred& one) { return one.threads() && one.thread == me; });
}

}  // namespace tasuki
