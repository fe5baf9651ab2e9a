// Collective calls among a context's ranks, polled by `wait_until`.
#include "session/collective.hpp"

#include <exception>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "tasuki/error.hpp"

namespace tasuki {
namespace {

void finish(Runtime& runtime, std::span<const int> needs, Pending& pending, const std::string& doing) {
  try {
    wait_until(
        runtime, needs, [&] { return pending.ended(); },
        [&] { return fmt::format("rank {}: {}", runtime.rank(), doing); });
  } catch (const std::exception& error) {
    runtime.fail(error.what());  // needed after an interruption; other failures have called it already
    throw;
  }
}

}  // namespace

std::vector<std::uint64_t> and_over_ranks(Runtime& runtime, const std::vector<std::uint64_t>& words,
                                          const std::string& doing) {
  runtime.refuse_if_failed(doing);
  const auto pending = runtime.communicator().combine(words);
  finish(runtime, runtime.everyone(), *pending, doing);
  return std::move(pending->words);
}

std::vector<std::string> gather_texts(Runtime& runtime, const std::string& text, const std::string& doing) {
  runtime.refuse_if_failed(doing);
  const auto pending = runtime.communicator().gather(text);
  finish(runtime, runtime.everyone(), *pending, doing);
  return std::move(pending->texts);
}

std::string text_of_root(Runtime& runtime, const std::string& text, const std::string& doing) {
  return gather_texts(runtime, runtime.rank() == 0 ? text : std::string(), doing)[0];
}

std::vector<std::string> exchange(Runtime& runtime, std::span<const int> peers, std::span<const std::string> blobs) {
  if (peers.size() != blobs.size())
    throw Error(fmt::format("exchange: rank {} has {} blobs for {} peers", runtime.rank(), blobs.size(), peers.size()));
  for (const std::string& blob : blobs) {
    if (blob.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
      throw Error(
          fmt::format("exchange: rank {} has a blob of {} bytes; 2 GiB are too many", runtime.rank(), blob.size()));
  }
  const std::string doing = "exchanging descriptions with neighbours";
  runtime.refuse_if_failed(doing);
  const auto pending = runtime.communicator().exchange(peers, blobs);
  finish(runtime, peers, *pending, doing);
  return std::move(pending->texts);
}

void all_do(Runtime& runtime, const std::string& operation, const std::function<void()>& local) {
  Agreement agreement(runtime, operation);
  try {
    local();
  } catch (const std::exception& error) {
    agreement.complain(error);
  }
  agreement.settle();
}

}  // namespace tasuki
