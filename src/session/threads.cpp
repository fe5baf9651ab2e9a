// Threads as ranks: see threads.hpp.
#include "tasuki/threads.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "session/deferred_release.hpp"
#include "session/generation.hpp"
#include "session/runtime.hpp"
#include "session/team.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

constexpr int kMostRanks = 1024;

std::string text_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "not one of the standard library's";
  }
}

}  // namespace

void run_threads(int ranks, const std::function<void(const Context&)>& body) {
  if (ranks < 1 || ranks > kMostRanks)
    throw Error(fmt::format("run_threads: argument 'ranks' is {}; it must be between 1 and {}", ranks, kMostRanks));
  if (Generation::forked())
    throw Error("run_threads: this process was forked from one that had made a context, and cannot make one");
  const auto team = std::make_shared<Team>(ranks);
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(ranks));
  const auto run = [&](int rank) {
    try {
      const Context context = ContextAccess::make(owned(std::make_unique<Runtime>(communicator_of(team, rank), false)));
      try {
        body(context);
      } catch (...) {
        // Called here and not left to the context's end: objects that the body has kept may hold the context.
        context.give_up(fmt::format("rank {} left with an exception: {}", rank, text_of(std::current_exception())));
        throw;
      }
    } catch (...) {
      thrown[static_cast<std::size_t>(rank)] = std::current_exception();
      team->fail(rank, text_of(std::current_exception()));
    }
    await_releases_of_this_thread();
  };
  std::vector<std::thread> threads;
  threads.reserve(thrown.size());
  for (int rank = 0; rank < ranks; ++rank) {
    try {
      threads.emplace_back(run, rank);
    } catch (const std::system_error& error) {
      const Error why(fmt::format("run_threads: thread {} of {} could not be started: {}", rank, ranks, error.what()));
      thrown[static_cast<std::size_t>(rank)] = std::make_exception_ptr(why);
      team->fail(rank, why.what());
      break;
    }
  }
  for (std::thread& thread : threads) thread.join();
  collect_released_of_threads();
  // The exception of the first rank that failed goes first. If that rank threw none, another rank's is rethrown.
  const int first = team->failed();
  if (first >= 0) std::rotate(thrown.begin(), thrown.begin() + first, thrown.begin() + first + 1);
  for (const std::exception_ptr& one : thrown)
    if (one) std::rethrow_exception(one);
}

}  // namespace tasuki
