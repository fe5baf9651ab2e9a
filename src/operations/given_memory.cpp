// The kind of memory of a collective: see given_memory.hpp.
#include "operations/given_memory.hpp"

#include <fmt/format.h>

#include "memory/gpu.hpp"
#include "session/collective.hpp"
#include "tasuki/collectives.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

constexpr std::uint64_t kYes = ~std::uint64_t{0};

// The same text on every rank. Collective.
std::string mixed_memory(Runtime& runtime, const std::string& operation, std::span<const Given> arguments) {
  std::string mine;
  for (const Given& one : arguments)
    if (one.bytes > 0 && one.has_address())
      mine += fmt::format("{}'{}' is {} memory", mine.empty() ? "" : ", ", one.name, to_string(memory_of(one.at())));
  const auto told = gather_texts(runtime, mine, operation);
  std::string text = fmt::format("{}: memory of hosts and of GPUs in one call, which must be of one kind:", operation);
  constexpr int kShown = 8;
  int shown = 0;
  for (std::size_t rank = 0; rank < told.size() && shown < kShown; ++rank)
    if (!told[rank].empty()) text += fmt::format("{} rank {}: {}", shown++ == 0 ? "" : ";", rank, told[rank]);
  return text;
}

}  // namespace

bool Given::has_address() const {
  return base != nullptr && base != in_place;
}

Settled settle_memory(Runtime& runtime, Attempt& attempt, const std::string& operation,
                      std::span<const Given> arguments, bool hint, std::vector<std::uint64_t> also) {
  bool any[2] = {};  // memory of the host, of a GPU
  attempt.locally("looking at the memory of arguments", [&] {
    for (const Given& one : arguments) {
      if (!one.has_address()) continue;
      const bool device = memory_of(one.at()) == Memory::device;
      // What is not looked at may be anything, but where nobody uses any memory it tells what is meant.
      hint = hint || device;
      if (one.bytes > 0) any[device ? 1 : 0] = true;
    }
  });
  for (const bool what : {any[0], any[1], hint}) also.push_back(what ? 0 : kYes);
  Settled settled;
  settled.also = attempt.combine(operation, also, fmt::format("{}: comparing what memory it is", operation));
  const auto some = [&](std::size_t from_end) { return settled.also[settled.also.size() - from_end] != kYes; };
  const bool host = some(3);
  const bool device = some(2);
  if (host && device) throw Error(mixed_memory(runtime, operation, arguments));
  settled.memory = device || (!host && some(1)) ? Memory::device : Memory::host;
  settled.also.resize(settled.also.size() - 3);
  return settled;
}

}  // namespace tasuki
