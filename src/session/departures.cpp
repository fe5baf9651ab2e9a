// Departures: see departures.hpp.
#include "session/departures.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iterator>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "session/runtime.hpp"

namespace tasuki {
namespace {

struct Departure {
  std::unique_ptr<Runtime> part;
  std::unique_ptr<Pending> others;  // ends when all other ranks have released the part
  std::thread::id thread;
  bool threads() const { return part->topology().threads; }
};

struct List {
  std::mutex mutex;
  std::list<Departure> all;
};

// Never destroyed: contexts may exist until the program ends.
List& list() {
  static auto* one = new List;
  return *one;
}

/// Removes the departures for which `is_due` is true from the list, and returns them. The caller destroys them without
/// the lock, because that may lead here again.
template <class Due>
std::list<Departure> take(const Due& is_due) {
  List& waiting = list();
  std::list<Departure> taken;
  const std::lock_guard lock(waiting.mutex);
  for (auto at = waiting.all.begin(); at != waiting.all.end();) {
    const auto next = std::next(at);
    if (is_due(*at)) taken.splice(taken.end(), waiting.all, at);
    at = next;
  }
  return taken;
}

/// Destroys the parts for which `is_due` is true and which all ranks have released.
template <class Due>
void end(const Due& is_due) {
  const auto over = [&](const Departure& one) {
    try {
      return is_due(one) && one.part->communicator().running() && one.others->ended();
    } catch (const std::exception&) {
      return false;  // `have_left` will get the same exception and report it
    }
  };
  for (Departure& one : take(over)) one.part->left(*one.others);
}

/// Waits until all ranks have released the part: like every wait, but without a deadline.
bool have_left(Departure& departure) {
  Runtime& part = *departure.part;
  part.deadline = std::numeric_limits<double>::infinity();
  try {
    wait_until(
        part, part.everyone(), [&] { return departure.others->ended(); },
        [&] { return fmt::format("rank {}: waiting for the other ranks to let go", part.rank()); });
    return true;
  } catch (const std::exception& error) {
    part.fail(error.what());
    std::fprintf(stderr, "tasuki: leaving a part of a context without the other ranks: %s\n", error.what());
    return false;
  }
}

}  // namespace

void depart(Runtime* part) noexcept {
  const bool threads = part->topology().threads;
  try {
    Departure departure{std::unique_ptr<Runtime>(part), nullptr, std::this_thread::get_id()};
    departure.others = part->begin_leaving();
    if (departure.others == nullptr) return;  // the part is destroyed at the end of this function
    {
      const std::lock_guard lock(list().mutex);
      list().all.push_back(std::move(departure));
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tasuki: letting go of a part of a context: %s\n", error.what());
  }
  collect_departures_with_gpus();
  if (!threads) end_session();
}

void collect_departures() noexcept {
  end([me = std::this_thread::get_id()](const Departure& one) { return one.thread == me && !one.part->gpus; });
}

void collect_departures_with_gpus() noexcept {
  end([me = std::this_thread::get_id()](const Departure& one) { return one.thread == me; });
}

void collect_departures_of_threads() noexcept {
  end([](const Departure& one) { return one.threads(); });
}

int departing() {
  const std::lock_guard lock(list().mutex);
  return static_cast<int>(std::ranges::count_if(list().all, [](const Departure& one) { return !one.threads(); }));
}

void await_departures() noexcept {
  for (std::list<Departure> next; departing() > 0; next.clear()) {
    bool taken = false;
    next = take([&](const Departure& one) { return !one.threads() && !std::exchange(taken, true); });
    for (Departure& one : next)
      if (one.part->communicator().running() && have_left(one)) one.part->left(*one.others);
  }
}

}  // namespace tasuki
