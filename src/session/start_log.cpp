// StartLog: see start_log.hpp.
#include "session/start_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <optional>
#include <random>

#include "layout/encoding.hpp"
#include "session/collective.hpp"
#include "session/mixed.hpp"
#include "session/runtime.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

constexpr std::uint64_t kEntries = 256;

// What a rank has started, in all of its contexts: operations of several may meet in one stream. A process has one, and
// so has each thread that is a rank.
struct Book {
  std::mutex mutex;
  std::uint64_t who = std::random_device{}() | (std::uint64_t{std::random_device{}()} << 32);
  std::uint64_t starts = 0;
  StartOrders orders;
  std::map<std::uint64_t, std::string> names;  // of the operations started here
};

Book& book(bool threads) {
  static auto* of_process = new Book;  // never destroyed: contexts may exist until the program ends
  thread_local Book of_thread;
  return threads ? of_thread : *of_process;
}

std::atomic<std::uint64_t> next_place = 1;

}  // namespace

/// Its rank writes it. Each entry is complete before `written` counts it, and is written again when so many others have
/// been.
struct alignas(64) StartLog::Page {
  struct Entry {
    std::atomic<std::uint64_t> operation{0}, epoch{0}, stream{0}, number{0};
  };
  std::atomic<std::uint64_t> who{0};
  std::atomic<std::uint64_t> written{0};
  Entry entries[kEntries];
};

StartLog::StartLog(Runtime& runtime)
    : runtime_(runtime),
      place_(next_place.fetch_add(1)),
      pages_(static_cast<std::size_t>(runtime.size())),
      seen_(static_cast<std::size_t>(runtime.size())) {
  SharedAddress own;
  all_do(runtime, "Context", [&] {
    page_ = runtime.memory().allocate(sizeof(Page));
    new (page_.get()) Page;
    reinterpret_cast<Page*>(page_.get())->who = book(runtime.topology().threads).who;
    own = runtime.memory().find(page_.get(), sizeof(Page));
  });
  const auto addresses = gather_texts(runtime, encoded(own), "telling where each rank says what it starts");
  for (int rank = 0; rank < runtime.size(); ++rank) {
    if (rank == runtime.rank() || !runtime.topology().same_host(rank, runtime.rank())) continue;
    const auto at = static_cast<std::size_t>(rank);
    const auto page = runtime.memory().map(rank, decoded<SharedAddress>(addresses[at]));
    if (page) pages_[at] = {page, reinterpret_cast<Page*>(page.get())};
  }
}

StartLog::~StartLog() = default;

void StartLog::begin(std::uint64_t operation, const std::string& name, std::uint64_t epoch, Stream stream) {
  Book& all = book(runtime_.topology().threads);
  {
    const std::lock_guard lock(all.mutex);
    const StartOrders::Start start{operation, epoch, reinterpret_cast<std::uint64_t>(stream), ++all.starts};
    Page& page = *reinterpret_cast<Page*>(page_.get());
    const std::uint64_t at = page.written.load(std::memory_order_relaxed);
    Page::Entry& entry = page.entries[at % kEntries];
    entry.operation.store(start.operation, std::memory_order_release);
    entry.epoch.store(start.epoch, std::memory_order_release);
    entry.stream.store(start.stream, std::memory_order_release);
    entry.number.store(start.number, std::memory_order_release);
    page.written.store(at + 1, std::memory_order_release);
    StartOrders::Start here = start;
    here.operation = mixed(place_, operation);
    all.names[here.operation] = name;
    if (const auto conflict = all.orders.mine(here)) complain(*conflict);
  }
  look();
}

void StartLog::complain(const StartOrders::Conflict& conflict) {
  std::string other = "another rank";
  for (std::size_t rank = 0; rank < pages_.size(); ++rank)
    if (pages_[rank] != nullptr && pages_[rank]->who.load(std::memory_order_relaxed) == conflict.rank)
      other = fmt::format("rank {}", rank);
  auto& names = book(runtime_.topology().threads).names;
  const std::string& first = names[conflict.first];
  const std::string& second = names[conflict.second];
  const std::string text = fmt::format(
      "rank {}: {} was started before {} in a stream here, but {} started {} before {} in one stream; start "
      "what shares a stream in the same order on all ranks",
      runtime_.rank(), first, second, other, second, first);
  runtime_.fail(text, ErrorKind::disagreement);
  throw Error(ErrorKind::disagreement, text);
}

void StartLog::look() {
  Book& all = book(runtime_.topology().threads);
  const std::lock_guard lock(all.mutex);
  for (std::size_t rank = 0; rank < pages_.size(); ++rank) {
    if (pages_[rank] == nullptr) continue;
    const Page& page = *pages_[rank];
    const std::uint64_t written = page.written.load(std::memory_order_acquire);
    const std::uint64_t who = page.who.load(std::memory_order_relaxed);
    for (std::uint64_t at = std::max(seen_[rank], written > kEntries ? written - kEntries : 0); at < written; ++at) {
      const Page::Entry& entry = page.entries[at % kEntries];
      StartOrders::Start start{
          entry.operation.load(std::memory_order_acquire), entry.epoch.load(std::memory_order_acquire),
          entry.stream.load(std::memory_order_acquire), entry.number.load(std::memory_order_acquire)};
      if (page.written.load(std::memory_order_relaxed) >= at + kEntries) continue;  // it is being written again
      start.operation = mixed(place_, start.operation);
      seen_[rank] = at + 1;
      if (const auto conflict = all.orders.theirs(who, start)) complain(*conflict);
    }
    seen_[rank] = written;
  }
}

namespace {
const RuntimePart made{[](Runtime& runtime) {
  if (runtime.settings().check) runtime.starts = std::make_shared<StartLog>(runtime);
}};
}  // namespace

}  // namespace tasuki
