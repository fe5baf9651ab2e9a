// Who owns the ghosts of whom, from global numbers: a directory that is spread over the ranks knows the owner of every
// cell. Each rank tells the directory what it owns and asks for its ghosts, and then asks the owners for them.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "layout/encoding.hpp"
#include "session/attempt.hpp"
#include "session/deliver.hpp"
#include "tasuki/error.hpp"
#include "tasuki/exchange.hpp"

namespace tasuki {

namespace {

constexpr const char* kCall = "find_entries";
// So many numbers that follow each other are in the directory of one rank: what is numbered together is asked together.
constexpr std::int64_t kTogether = 1024;

using Numbers = std::vector<std::int64_t>;
using Told = std::vector<std::pair<int, std::string>>;

// What ranks tell each other, by rank: lists of numbers, the same number of lists for each.
using Letters = std::map<int, std::vector<Numbers>>;

Letters delivered(Runtime& runtime, Attempt& attempt, const Letters& letters, std::size_t lists, const char* doing) {
  std::vector<int> receivers;
  for (const auto& [rank, content] : letters) receivers.push_back(rank);
  const Told told = deliver(
      runtime, attempt, kCall, receivers,
      [&](std::size_t r, Encoder& to) {
        for (const Numbers& list : letters.at(receivers[r])) to.numbers(list);
      },
      doing);
  Letters heard;
  attempt.locally("reading numbers of cells", [&] {
    for (const auto& [rank, message] : told) {
      Decoder from(message);
      for (std::size_t i = 0; i < lists; ++i) heard[rank].push_back(from.numbers());
      from.end();
    }
  });
  return heard;
}

// A cell, and the rank that owns it or its number there.
using Entry = std::pair<std::int64_t, std::int64_t>;

// The second of the pair with this first one; -1: there is none.
std::int64_t found(const std::vector<Entry>& sorted, std::int64_t cell) {
  const auto at = std::ranges::lower_bound(sorted, cell, {}, &Entry::first);
  return at == sorted.end() || at->first != cell ? -1 : at->second;
}

// Answers from the part of the directory that this rank keeps: the owners of the ghosts of each rank that asks.
Letters looked_up(const Letters& asked) {
  std::vector<Entry> owners;
  for (const auto& [rank, lists] : asked)
    for (const std::int64_t cell : lists[0]) owners.emplace_back(cell, rank);
  std::ranges::sort(owners);
  for (std::size_t i = 1; i < owners.size(); ++i)
    if (owners[i - 1].first == owners[i].first)
      throw Error(owners[i - 1].second == owners[i].second
                      ? fmt::format("cell {} is named twice in 'owned' of rank {}", owners[i].first, owners[i].second)
                      : fmt::format("cell {} is owned by rank {} and by rank {}", owners[i].first, owners[i - 1].second,
                                    owners[i].second));
  Letters answers;
  for (const auto& [rank, lists] : asked) {
    if (lists[1].empty()) continue;
    Numbers& answer = answers[rank].emplace_back();
    for (const std::int64_t cell : lists[1]) {
      answer.push_back(found(owners, cell));
      if (answer.back() < 0) throw Error(fmt::format("cell {} is a ghost of rank {}, but no rank owns it", cell, rank));
    }
  }
  return answers;
}

std::string complaint_about(const char* name, std::span<const std::int64_t> cells) {
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (cells[i] < 0) return fmt::format("argument '{}' has {} (place {}); numbers begin at 0", name, cells[i], i);
  return {};
}

}  // namespace

std::vector<ExchangeEntry> find_entries(const Context& context, std::span<const std::int64_t> owned,
                                        std::span<const std::int64_t> ghosts) {
  Runtime& runtime = runtime_of(context);
  Agreement agreement(runtime, kCall);
  agreement.complain(complaint_about("owned", owned)).complain(complaint_about("ghosts", ghosts));
  agreement.check();
  Attempt attempt(runtime);
  const auto directory_of = [&](std::int64_t cell) { return static_cast<int>(cell / kTogether % runtime.size()); };
  Letters questions;
  std::map<int, Numbers> places;  // of the ghosts that each rank's directory is asked for
  attempt.locally("asking the directory", [&] {
    const auto letter_to = [&](int rank) -> std::vector<Numbers>& {
      std::vector<Numbers>& letter = questions[rank];
      letter.resize(2);
      return letter;
    };
    for (const std::int64_t cell : owned) letter_to(directory_of(cell))[0].push_back(cell);
    for (std::size_t i = 0; i < ghosts.size(); ++i) {
      letter_to(directory_of(ghosts[i]))[1].push_back(ghosts[i]);
      places[directory_of(ghosts[i])].push_back(static_cast<std::int64_t>(i));
    }
  });
  const Letters asked = delivered(runtime, attempt, questions, 2, "asking the directory");
  Letters answers;
  attempt.locally("looking up owners", [&] { answers = looked_up(asked); });
  const Letters known = delivered(runtime, attempt, answers, 1, "answering from the directory");
  std::map<int, ExchangeEntry> entries;
  Letters wanted;  // of each owner: the cells
  attempt.locally("sorting ghosts by owner", [&] {
    Numbers owner(ghosts.size());
    for (const auto& [directory, lists] : known) {
      const Numbers& where = places.at(directory);
      for (std::size_t i = 0; i < where.size(); ++i) owner[static_cast<std::size_t>(where[i])] = lists[0].at(i);
    }
    for (std::size_t i = 0; i < ghosts.size(); ++i) {
      const int rank = static_cast<int>(owner[i]);
      entries[rank].receive.push_back(static_cast<std::int64_t>(owned.size() + i));
      std::vector<Numbers>& letter = wanted[rank];
      letter.resize(1);
      letter[0].push_back(ghosts[i]);
    }
  });
  const Letters orders = delivered(runtime, attempt, wanted, 1, "asking owners for cells");
  attempt.locally("finding the cells that others want", [&] {
    std::vector<Entry> here;
    for (std::size_t i = 0; i < owned.size(); ++i) here.emplace_back(owned[i], static_cast<std::int64_t>(i));
    std::ranges::sort(here);
    for (const auto& [rank, lists] : orders)
      for (const std::int64_t cell : lists[0]) entries[rank].send.push_back(found(here, cell));
  });
  (void)attempt.combine(kCall, {}, fmt::format("{}: ending", kCall));
  std::vector<ExchangeEntry> all;
  for (auto& [rank, entry] : entries) {
    entry.peer = rank;
    all.push_back(std::move(entry));
  }
  return all;
}

}  // namespace tasuki
