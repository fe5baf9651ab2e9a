// Liveness: pages in which ranks say that they have given up, and /proc for ranks that have died.
#include "session/liveness.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>

#include <fmt/format.h>

#include "layout/encoding.hpp"
#include "session/process.hpp"
#include "session/wait_clock.hpp"
#include "support/utf8.hpp"

namespace tasuki {
namespace {
constexpr std::string_view kBecause = " gave up because ";
}

/// Its rank writes it once. The others read the text only after they have seen `given_up`.
struct alignas(64) Liveness::Page {
  std::atomic<std::uint32_t> given_up{0};
  std::uint32_t length = 0;
  char why[504] = {};
  // Stores release and loads acquire, so that who reads a letter of a later text sees that `operation` has changed.
  struct Drop {
    std::atomic<std::uint64_t> operation{0};  // 0 while the text is written
    std::atomic<std::uint32_t> length{0};
    std::array<std::atomic<char>, 244> why{};
  };
  std::array<Drop, 8> drops;  // a ring
};

Liveness::Liveness(const Topology& topology, SharedMemory& memory, Communicator& communicator)
    : topology_(topology), memory_(memory), page_(memory.allocate(sizeof(Page))), pages_(topology.size()) {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "pages are shared between processes");
  new (page_.get()) Page;
  const SharedAddress own = memory_.find(page_.get(), sizeof(Page));
  // This is a barrier too: no rank reads a page before it has been made.
  const auto addresses = gather_now(communicator, encoded(own), "telling where each rank says that it has failed");
  for (int rank = 0; rank < topology_.size(); ++rank) {
    if (!topology_.same_host(rank, topology_.rank)) continue;
    const auto page = memory_.map(rank, decoded<SharedAddress>(addresses[rank]));
    pages_[rank] = {page, reinterpret_cast<const Page*>(page.get())};
  }
}

std::string Liveness::failure(std::span<const int> ranks, std::uint64_t operation) const {
  for (const int rank : ranks) {
    const Page* page = pages_[rank].get();
    if (rank == topology_.rank || page == nullptr || page->given_up.load(std::memory_order_acquire) == 0) continue;
    return fmt::format("rank {}{}{}", rank, kBecause,
                       std::string_view(page->why, std::min<std::size_t>(page->length, sizeof page->why)));
  }
  for (const int rank : ranks) {
    const Page* page = pages_[rank].get();
    if (operation == 0 || rank == topology_.rank || page == nullptr) continue;
    for (const Page::Drop& drop : page->drops) {
      if (drop.operation.load(std::memory_order_acquire) != operation) continue;
      std::string why(std::min<std::size_t>(drop.length.load(std::memory_order_acquire), drop.why.size()), ' ');
      for (std::size_t i = 0; i < why.size(); ++i) why[i] = drop.why[i].load(std::memory_order_acquire);
      if (drop.operation.load(std::memory_order_relaxed) == operation) return why;  // nothing was written meanwhile
    }
  }
  if (!topology_.visible) return {};
  for (const int rank : ranks) {
    const Process& process = topology_.processes[rank];
    if (rank == topology_.rank || !topology_.same_host(rank, topology_.rank)) continue;
    if (life_of(process.pid, process.born) == Life::ended)
      return fmt::format("rank {} (pid {} on host {}) has died", rank, process.pid, process.name);
  }
  return {};
}

std::string Liveness::failure_soon(std::span<const int> ranks) const {
  constexpr double kLongest = 1;  // seconds
  constexpr auto kPause = std::chrono::milliseconds(5);
  WaitClock clock;
  std::string why = failure(ranks);
  while (why.empty() && clock.read() < kLongest) {
    std::this_thread::sleep_for(kPause);
    why = failure(ranks);
  }
  return why;
}

void Liveness::drop(std::uint64_t operation, const std::string& why) {
  Page& page = *reinterpret_cast<Page*>(page_.get());
  Page::Drop& drop = page.drops[drops_++ % page.drops.size()];
  drop.operation.store(0, std::memory_order_relaxed);
  const std::size_t length = std::min(why.size(), drop.why.size());
  drop.length.store(static_cast<std::uint32_t>(length), std::memory_order_release);
  for (std::size_t i = 0; i < length; ++i) drop.why[i].store(why[i], std::memory_order_release);
  drop.operation.store(operation, std::memory_order_release);
}

void Liveness::give_up(const std::string& why) {
  Page& page = *reinterpret_cast<Page*>(page_.get());
  if (page.given_up.load(std::memory_order_relaxed) != 0) return;  // only the first reason counts
  // If ranks gave up because of each other, only the first cause helps the user.
  std::string_view root = why;
  if (const auto at = root.rfind(kBecause); at != root.npos) root.remove_prefix(at + kBecause.size());
  root = whole_characters(root, sizeof page.why);
  page.length = static_cast<std::uint32_t>(root.size());
  std::memcpy(page.why, root.data(), page.length);
  page.given_up.store(1, std::memory_order_release);
}

}  // namespace tasuki
