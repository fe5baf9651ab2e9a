// Agreement: the ranks compare a hash of their arguments by one AND. Only if it differs, or a rank has a complaint, do
// they exchange the arguments themselves.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "layout/encoding.hpp"
#include "paths/path.hpp"
#include "session/collective.hpp"
#include "session/runtime.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

constexpr const char* kOpening = "agreement";

ErrorKind kind_from(const std::string& text) {
  for (const ErrorKind kind :
       {ErrorKind::disagreement, ErrorKind::not_possible, ErrorKind::rank_died, ErrorKind::deadline, ErrorKind::system})
    if (text == to_string(kind)) return kind;
  return ErrorKind::argument;
}

struct Shown {
  std::string complaint;
  bool unusable = false;  // the complaint is of a path that cannot be used
  ErrorKind kind = ErrorKind::argument;
  std::string members;
  std::vector<std::string> said;  // operation, then names and values
};

/// Reads what a rank shows: complaint, its kind, the ranks that take part, operation, then names and values. Empty if
/// it has another form: the other rank is in a different call.
std::optional<Shown> read(const std::string& message) {
  try {
    Decoder from(message);
    if (from.text() != kOpening) return {};
    Shown shown;
    shown.complaint = from.text();
    shown.unusable = from.number(0, 1) == 1;
    shown.kind = kind_from(from.text());
    shown.members = from.text();
    shown.said.push_back(from.text());
    while (!from.empty()) shown.said.push_back(from.text());
    return shown;
  } catch (const Malformed&) {
    return {};
  }
}

// FNV-1a of texts and their lengths.
class TextHash {
 public:
  void add(const std::string& text) {
    mix(text.size());
    for (const char c : text) mix(static_cast<unsigned char>(c));
  }
  std::uint64_t value() const { return value_; }

 private:
  void mix(std::uint64_t part) { value_ = (value_ ^ part) * 0x100000001b3U; }

  std::uint64_t value_ = 0xcbf29ce484222325U;
};

/// An error's text ends at its first NUL for most who read it, so those in names are written out.
std::string readable(std::string text) {
  for (std::size_t at = text.find('\0'); at != std::string::npos; at = text.find('\0', at)) text.replace(at, 1, "\\0");
  return text;
}

std::string different_things(int rank, const std::string& mine, int other, const std::string& theirs) {
  return fmt::format(
      "the ranks do different things: rank {} makes {}, rank {} makes {}; all ranks of a context must "
      "make the same objects in the same order",
      rank, mine, other, theirs);
}

std::string difference(int rank, const Shown& shown, int other, const Shown& theirs_shown) {
  const std::vector<std::string>& mine = shown.said;
  const std::vector<std::string>& theirs = theirs_shown.said;
  const std::string& operation = mine[0];
  if (operation != theirs[0]) return different_things(rank, operation, other, theirs[0]);
  for (std::size_t i = 1; i + 1 < std::min(mine.size(), theirs.size()); i += 2) {
    if (mine[i] != theirs[i])
      return fmt::format("{}: the ranks pass different arguments: rank {} '{}', rank {} '{}'", operation, rank, mine[i],
                         other, theirs[i]);
    if (mine[i + 1] != theirs[i + 1])
      return fmt::format("{}: argument '{}' differs between ranks: rank {} has {}, rank {} has {}", operation, mine[i],
                         rank, mine[i + 1], other, theirs[i + 1]);
  }
  return fmt::format("{}: rank {} passes {} arguments, rank {} passes {}", operation, rank, mine.size() / 2, other,
                     theirs.size() / 2);
}

}  // namespace

Agreement::Agreement(Runtime& runtime, std::string operation) : runtime_(runtime), operation_(std::move(operation)) {}

Agreement::Agreement(Runtime& runtime, std::string operation, std::vector<int> peers)
    : runtime_(runtime), operation_(std::move(operation)), everyone_(false), peers_(std::move(peers)) {}

Agreement& Agreement::same(const std::string& argument, const std::string& value) {
  if (values_.empty()) values_.reserve(16);
  values_.emplace_back(argument, value);
  return *this;
}

Agreement& Agreement::same(const std::string& argument, std::int64_t value) {
  return same(argument, std::to_string(value));
}

Agreement& Agreement::named(const std::string& name) {
  if (name.empty()) return *this;
  operation_ = fmt::format("{} '{}'", operation_, name);
  return *this;
}

Agreement& Agreement::complain(const std::string& text, ErrorKind kind) {
  if (!complaint_.empty()) return *this;
  complaint_ = text;
  kind_ = kind;
  unusable_ = false;
  return *this;
}

Agreement& Agreement::complain(const std::exception& error) {
  const bool first = complaint_.empty();
  const auto* const known = dynamic_cast<const Error*>(&error);
  complain(std::string(error.what()), known == nullptr ? ErrorKind::system : known->kind());
  if (first) unusable_ = dynamic_cast<const PathUnusable*>(&error) != nullptr;
  return *this;
}

void Agreement::check() {
  if (runtime_.settings().agree) return settle();
  if (complaint_.empty()) return;
  const std::string text = readable(fmt::format("{}: rank {}: {}", operation_, runtime_.rank(), complaint_));
  if (unusable_) throw PathUnusable(text);
  throw Error(kind_, text);
}

void Agreement::settle() {
  std::vector<int> ranks;
  if (everyone_) {
    ranks.assign(runtime_.everyone().begin(), runtime_.everyone().end());
  } else {
    ranks = peers_;
    ranks.insert(std::ranges::lower_bound(ranks, runtime_.rank()), runtime_.rank());
  }
  const auto shown = [&] {
    Encoder to;
    to.text(kOpening).text(complaint_).number(unusable_ ? 1 : 0).text(std::string(to_string(kind_)));
    to.text(everyone_ ? "all" : fmt::format("{}", fmt::join(ranks, ", "))).text(operation_);
    for (const auto& [name, value] : values_) to.text(name).text(value);
    return to.bytes();
  };
  if (!everyone_) {
    if (peers_.empty() && complaint_.empty()) return;
    return compare(ranks, show_to_peers(ranks, shown()));
  }
  TextHash all;
  all.add(operation_);
  for (const auto& [name, value] : values_) {
    all.add(name);
    all.add(value);
  }
  const std::uint64_t hash = all.value();
  const std::uint64_t content = complaint_.empty() ? ~std::uint64_t{0} : 0;
  const std::string doing = operation_ + ": comparing arguments with the other ranks";
  // A bit that differs between ranks is 0 in the AND of `hash` and in that of `~hash`. So every rank sees a difference.
  const std::uint64_t findings = runtime_.has_findings ? ~std::uint64_t{0} : 0;
  const auto common = and_over_ranks(runtime_, {hash, ~hash, content, findings}, doing);
  runtime_.all_have_findings = common[3] != 0;
  if (common[0] == hash && common[1] == ~hash && common[2] != 0) return;
  compare(ranks, gather_texts(runtime_, shown(), doing));
}

// Exchanges `shown` among `ranks`, which include this one.
std::vector<std::string> Agreement::show_to_peers(const std::vector<int>& ranks, const std::string& shown) {
  runtime_.refuse_if_failed(operation_);
  std::vector<std::string> texts(ranks.size(), shown);
  std::vector<std::unique_ptr<Pending>> pending(ranks.size());
  std::vector<int> missing = peers_;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i] != runtime_.rank()) pending[i] = runtime_.communicator().exchange({&ranks[i], 1}, {&shown, 1});
  const auto all_have_come = [&] {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (pending[i] == nullptr || !pending[i]->ended()) continue;
      texts[i] = std::move(pending[i]->texts[0]);
      pending[i].reset();
      std::erase(missing, ranks[i]);
      check_members(shown, ranks[i], texts[i]);
    }
    return missing.empty();
  };
  try {
    wait_until(runtime_, peers_, all_have_come, [&] {
      return fmt::format("rank {}: {}: comparing arguments with rank{} {}", runtime_.rank(), operation_,
                         missing.size() == 1 ? "" : "s", fmt::join(missing, ", "));
    });
  } catch (const std::exception& error) {
    runtime_.fail(error.what());  // needed after an interruption; other failures have called it already
    throw;
  }
  return texts;
}

// Throws if the other rank names different ranks or makes a different operation. Such ranks would wait for some that do
// not take part, so the rank that notices it ends the others' waits.
void Agreement::check_members(const std::string& shown, int other, const std::string& text) const {
  const auto mine = read(shown);
  const auto theirs = read(text);
  // If the text has another form the ranks are in different calls, which `compare` reports.
  if (!theirs || theirs->members == mine->members) return;
  if (mine->said[0] != theirs->said[0])
    throw Error(ErrorKind::disagreement,
                readable(different_things(runtime_.rank(), mine->said[0], other, theirs->said[0])));
  throw Error(ErrorKind::disagreement,
              fmt::format("{}: the ranks that take part differ: rank {} names {}, rank {} names {}", operation_,
                          runtime_.rank(), mine->members, other, theirs->members));
}

// Compares what `ranks` (ascending) have shown, and throws the first complaint or difference.
void Agreement::compare(const std::vector<int>& ranks, const std::vector<std::string>& shown) const {
  std::vector<Shown> all;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    auto one = read(shown[i]);
    if (!one)
      throw Error(ErrorKind::disagreement,
                  readable(different_things(runtime_.rank(), operation_, ranks[i], "something else")));
    all.push_back(std::move(*one));
  }
  // Other complaints go before those of a path that cannot be used.
  for (const bool unusable : {false, true}) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].complaint.empty() || all[i].unusable != unusable) continue;
      const std::string text = readable(fmt::format("{}: rank {}: {}", all[i].said[0], ranks[i], all[i].complaint));
      if (unusable) throw PathUnusable(text);
      throw Error(all[i].kind, text);
    }
  }
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[0].said != all[i].said)
      throw Error(ErrorKind::disagreement, readable(difference(ranks[0], all[0], ranks[i], all[i])));
}

}  // namespace tasuki
