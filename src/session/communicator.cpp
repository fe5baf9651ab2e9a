// Waits for the other ranks while a context is being made. Liveness does not exist yet: there is a deadline, and what
// the communicator knows of the ranks.
#include "session/communicator.hpp"

#include <fmt/format.h>
#include <sched.h>

#include "session/progress.hpp"
#include "session/settings.hpp"
#include "session/wait_clock.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

Communicator::Communicator() : making_deadline_(creation_deadline()) {}

namespace {

void finish(Communicator& communicator, Pending& pending, const std::string& doing,
            const std::function<void()>& meanwhile = {}) {
  const double seconds = communicator.making_deadline();
  WaitClock clock;
  while (!pending.ended()) {
    const std::string why = communicator.broken();
    if (!why.empty()) {
      communicator.abandon(why);  // freeing it would be one more collective call
      throw Error(ErrorKind::rank_died, fmt::format("Context: rank {}: {}: {}", communicator.rank(), doing, why));
    }
    const bool late = clock.read() > seconds;
    if (late && pending.ended()) return;
    if (late) {
      const std::string what = fmt::format("{}: the other ranks have not all come within {:g} s", doing, seconds);
      communicator.abandon(what);
      throw Error(ErrorKind::deadline,
                  fmt::format("Context: rank {}: {}; all ranks must make the context, and TASUKI_DEADLINE allows more",
                              communicator.rank(), what));
    }
    if (meanwhile) meanwhile();
    Progress::drive();
    sched_yield();
  }
}

}  // namespace

std::vector<std::string> gather_now(Communicator& communicator, const std::string& text, const std::string& doing) {
  const auto pending = communicator.gather(text);
  finish(communicator, *pending, doing);
  return std::move(pending->texts);
}

std::vector<std::uint64_t> combine_now(Communicator& communicator, const std::vector<std::uint64_t>& words,
                                       const std::string& doing) {
  const auto pending = communicator.combine(words);
  finish(communicator, *pending, doing);
  return std::move(pending->words);
}

std::vector<std::string> exchange_now(Communicator& communicator, std::span<const int> peers,
                                      std::span<const std::string> texts, const std::string& doing,
                                      const std::function<void()>& meanwhile) {
  const auto pending = communicator.exchange(peers, texts);
  finish(communicator, *pending, doing, meanwhile);
  return std::move(pending->texts);
}

}  // namespace tasuki
