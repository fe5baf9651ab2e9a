// StartOrders: see start_orders.hpp.
#include "session/start_orders.hpp"

#include <iterator>

namespace tasuki {
namespace {
constexpr std::size_t kKept = 1024;  // starts of a rank
}

void StartOrders::Starts::add(const Start& start) {
  const Key key{start.operation, start.epoch};
  if (!all.emplace(key, start).second) return;
  order.push_back(key);
  if (order.size() <= kKept) return;
  all.erase(order.front());
  order.pop_front();
}

const StartOrders::Start* StartOrders::Starts::find(const Key& key) const {
  const auto found = all.find(key);
  return found == all.end() ? nullptr : &found->second;
}

std::optional<StartOrders::Conflict> StartOrders::match(std::uint64_t rank, Other& other, const Start& mine,
                                                        const Start& theirs) {
  auto& both = other.both[{mine.stream, theirs.stream}];
  const auto [at, fresh] = both.emplace(mine.number, Both{theirs.number, mine.operation});
  if (!fresh) return std::nullopt;
  std::optional<Conflict> conflict;
  if (at != both.begin()) {
    const Both& before = std::prev(at)->second;
    if (before.number > theirs.number) conflict = {before.operation, mine.operation, rank};
  }
  if (const auto after = std::next(at); after != both.end() && after->second.number < theirs.number)
    conflict = {mine.operation, after->second.operation, rank};
  if (both.size() > kKept) both.erase(both.begin());
  return conflict;
}

std::optional<StartOrders::Conflict> StartOrders::mine(const Start& start) {
  own_.add(start);
  for (auto& [rank, other] : others_)
    if (const Start* theirs = other.starts.find({start.operation, start.epoch}))
      if (const auto conflict = match(rank, other, start, *theirs)) return conflict;
  return std::nullopt;
}

std::optional<StartOrders::Conflict> StartOrders::theirs(std::uint64_t rank, const Start& start) {
  Other& other = others_[rank];
  other.starts.add(start);
  const Start* mine = own_.find({start.operation, start.epoch});
  return mine == nullptr ? std::nullopt : match(rank, other, *mine, start);
}

}  // namespace tasuki
