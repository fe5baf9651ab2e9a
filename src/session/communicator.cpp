// What both kinds of communicator have in common.
#include "session/communicator.hpp"

#include <fmt/format.h>
#include <sched.h>

#include "tasuki/error.hpp"

namespace tasuki {

namespace {

void finish(const Communicator& communicator, Pending& pending) {
  while (!pending.ended()) {
    const std::string why = communicator.broken();
    if (!why.empty()) throw Error(fmt::format("Context: rank {}: {}", communicator.rank(), why));
    sched_yield();
  }
}

}  // namespace

std::vector<std::string> gather_now(Communicator& communicator, const std::string& text) {
  const auto pending = communicator.gather(text);
  finish(communicator, *pending);
  return std::move(pending->texts);
}

std::vector<std::uint64_t> combine_now(Communicator& communicator, const std::vector<std::uint64_t>& words) {
  const auto pending = communicator.combine(words);
  finish(communicator, *pending);
  return std::move(pending->words);
}

}  // namespace tasuki
