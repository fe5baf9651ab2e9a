// Agreement: one AND of a hash when all is well; only otherwise do the ranks show each other their arguments.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "session/collective.hpp"
#include "session/runtime.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

using Arguments = std::vector<std::pair<std::string, std::string>>;

/// What one rank shows the others: complaint, operation, then names and values.
void put(std::string& text, const std::string& item) {
  text += fmt::format("{}:{}", item.size(), item);
}

std::vector<std::string> take_apart(const std::string& text) {
  std::vector<std::string> items;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t colon = text.find(':', at);
    const std::size_t size = std::stoul(text.substr(at, colon - at));
    items.push_back(text.substr(colon + 1, size));
    at = colon + 1 + size;
  }
  return items;
}

std::uint64_t hash_of(const std::string& text) {  // FNV-1a
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

std::string difference(int rank, const std::vector<std::string>& mine, int other,
                       const std::vector<std::string>& theirs) {
  const std::string& operation = mine[1];
  if (operation != theirs[1])
    return fmt::format(
        "the ranks do different things: rank {} makes {}, rank {} makes {}; all ranks of a context must "
        "make the same objects in the same order",
        rank, operation, other, theirs[1]);
  for (std::size_t i = 2; i + 1 < std::min(mine.size(), theirs.size()); i += 2) {
    if (mine[i] != theirs[i])
      return fmt::format("{}: the ranks pass different arguments: rank {} '{}', rank {} '{}'", operation, rank, mine[i],
                         other, theirs[i]);
    if (mine[i + 1] != theirs[i + 1])
      return fmt::format("{}: argument '{}' differs between ranks: rank {} has {}, rank {} has {}", operation, mine[i],
                         rank, mine[i + 1], other, theirs[i + 1]);
  }
  return fmt::format("{}: rank {} passes {} arguments, rank {} passes {}", operation, rank, mine.size() / 2 - 1, other,
                     theirs.size() / 2 - 1);
}

}  // namespace

Agreement::Agreement(Runtime& runtime, std::string operation) : runtime_(runtime), operation_(std::move(operation)) {}

Agreement::Agreement(Runtime& runtime, std::string operation, std::vector<int> peers)
    : runtime_(runtime), operation_(std::move(operation)), everyone_(false), peers_(std::move(peers)) {}

Agreement& Agreement::same(const std::string& argument, const std::string& value) {
  values_.emplace_back(argument, value);
  return *this;
}

Agreement& Agreement::same(const std::string& argument, std::int64_t value) {
  return same(argument, std::to_string(value));
}

Agreement& Agreement::complain(const std::string& text) {
  if (complaint_.empty()) complaint_ = text;
  return *this;
}

void Agreement::check() {
  if (runtime_.settings().agree) return settle();
  if (!complaint_.empty()) throw Error(fmt::format("{}: rank {}: {}", operation_, runtime_.rank(), complaint_));
}

void Agreement::settle() {
  std::string said;
  put(said, operation_);
  for (const auto& [name, value] : values_) {
    put(said, name);
    put(said, value);
  }
  std::string shown;
  put(shown, complaint_);
  shown += said;
  std::vector<int> ranks;
  if (!everyone_) {
    if (peers_.empty() && complaint_.empty()) return;
    const std::vector<std::string> mine(peers_.size(), shown);
    std::vector<std::string> texts = exchange(runtime_, peers_, mine);
    ranks = peers_;
    const auto place = std::lower_bound(ranks.begin(), ranks.end(), runtime_.rank()) - ranks.begin();
    ranks.insert(ranks.begin() + place, runtime_.rank());
    texts.insert(texts.begin() + place, shown);
    compare(ranks, texts);
    return;
  }
  const std::uint64_t hash = hash_of(said);
  const std::uint64_t content = complaint_.empty() ? ~std::uint64_t{0} : 0;
  const std::string doing = fmt::format("{}: comparing arguments with the other ranks", operation_);
  // A bit that differs between ranks is 0 in both ANDs, and so differs from what one of them was on every rank.
  const auto common = and_over_ranks(runtime_, {hash, ~hash, content}, doing);
  if (common[0] == hash && common[1] == ~hash && common[2] != 0) return;
  for (const int rank : runtime_.everyone()) ranks.push_back(rank);
  compare(ranks, gather_texts(runtime_, shown, doing));
}

// Throws what the ranks, ascending, should hear of what they have shown each other.
void Agreement::compare(const std::vector<int>& ranks, const std::vector<std::string>& shown) const {
  std::vector<std::vector<std::string>> all;
  for (const std::string& text : shown) all.push_back(take_apart(text));
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!all[i][0].empty()) throw Error(fmt::format("{}: rank {}: {}", all[i][1], ranks[i], all[i][0]));
  for (std::size_t i = 1; i < all.size(); ++i)
    if (!std::equal(all[0].begin() + 1, all[0].end(), all[i].begin() + 1, all[i].end()))
      throw Error(difference(ranks[0], all[0], ranks[i], all[i]));
}

}  // namespace tasuki
