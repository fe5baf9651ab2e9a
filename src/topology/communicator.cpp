// What both kinds of communicator have in common.
#include "topology/communicator.hpp"

#include <fmt/format.h>
#include <sched.h>

#include "tasuki/error.hpp"

namespace tasuki {

std::vector<std::string> gather_now(Communicator& communicator, const std::string& text) {
  const auto pending = communicator.gather(text);
  while (!pending->ended()) {
    const std::string why = communicator.broken();
    if (!why.empty()) throw Error(fmt::format("Context: rank {}: {}", communicator.rank(), why));
    sched_yield();
  }
  return std::move(pending->texts);
}

}  // namespace tasuki
