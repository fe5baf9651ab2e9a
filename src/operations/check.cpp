// What ranks tell each other with TASUKI_CHECK=1: see check.hpp.
#include "operations/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <set>
#include <utility>

namespace tasuki {

namespace {

constexpr std::int64_t kLine = 64;

/// A record begins with the epoch; a byte for each buffer follows.
constexpr std::int64_t kHead = sizeof(std::uint64_t);

std::byte shown(const UserBuffer& buffer) {
  return static_cast<std::byte>(buffer.current != nullptr ? *buffer.current : 0);
}

// What makes the names of the records differ from those that the user gave. The same on all ranks.
std::string free_suffix(const std::vector<UserRole>& buffers) {
  const auto taken = [&](const std::string& suffix) {
    return std::ranges::any_of(buffers, [&](const UserRole& buffer) {
      return buffer.name == kCheckOut + suffix || buffer.name == kCheckIn + suffix;
    });
  };
  std::string suffix;
  while (taken(suffix)) suffix += '#';
  return suffix;
}

bool has_pairs(const Description& description) {
  return !description.among && !description.problem.compose &&
         std::any_of(description.buffers.begin(), description.buffers.end(),
                     [](const UserBuffer& b) { return b.memory.size() > 1; }) &&
         std::all_of(description.buffers.begin(), description.buffers.end(),
                     [](const UserBuffer& b) { return b.where == Memory::host; });
}

}  // namespace

std::unique_ptr<OperationCheck> OperationCheck::of(Runtime& runtime, Description& description) {
  if (!runtime.settings().check) return nullptr;
  auto check = std::make_unique<OperationCheck>(runtime.rank());
  if (has_pairs(description)) check->add_records(runtime, description);
  return check;
}

void OperationCheck::add_records(Runtime& runtime, Description& description) {
  Problem& problem = description.problem;
  bytes_ = kHead + std::ssize(description.buffers);
  const std::int64_t room = (bytes_ + kLine - 1) / kLine * kLine;
  const auto memory = runtime.memory().allocate(room * (1 + runtime.size()));
  description.keep.push_back(memory);
  out_ = memory.get();
  in_ = out_ + room;
  std::set<std::pair<int, int>> ways;
  for (const Move& move : problem.moves)
    if (move.src_rank != move.dst_rank) ways.emplace(move.src_rank, move.dst_rank);
  const int own = static_cast<int>(problem.buffers.size());
  const std::string suffix = free_suffix(problem.buffers);
  description.add({kCheckOut + suffix, Role::input, room, {out_}, nullptr, false, Memory::host});
  description.add({kCheckIn + suffix, Role::output, room * runtime.size(), {in_}, nullptr, false, Memory::host});
  for (const auto& [from, to] : ways) {
    Move move;
    move.seq = std::numeric_limits<std::int64_t>::max();
    move.src_rank = from;
    move.dst_rank = to;
    move.src = own;
    move.dst = own + 1;
    move.label = "check";
    StridedCopy copy;
    copy.dst_offset = from * room;
    copy.block = bytes_;
    move.copies = {copy};
    problem.moves.push_back(std::move(move));
    if (to == runtime.rank()) sources_.push_back(from);
  }
  mark_mutual(problem.moves);
}

void OperationCheck::start(std::uint64_t epoch, const std::vector<UserBuffer>& buffers) {
  owed_ = true;
  if (out_ == nullptr) return;
  std::memcpy(out_, &epoch, kHead);
  for (std::int64_t b = 0; b < bytes_ - kHead; ++b) out_[kHead + b] = shown(buffers[static_cast<std::size_t>(b)]);
}

std::string OperationCheck::end(std::uint64_t epoch, const std::vector<UserBuffer>& buffers) const {
  const std::int64_t room = (bytes_ + kLine - 1) / kLine * kLine;
  for (const int source : sources_) {
    const std::byte* record = in_ + source * room;
    std::uint64_t theirs = 0;
    std::memcpy(&theirs, record, kHead);
    if (theirs != epoch)
      return fmt::format("rank {} is in epoch {}, and rank {} sent it the cells of epoch {}", rank_, epoch, source,
                         theirs);
    for (std::int64_t b = 0; b < bytes_ - kHead; ++b) {
      // What this rank showed when it started: it may have swapped since.
      if (record[kHead + b] == out_[kHead + b]) continue;
      return fmt::format(
          "at start {} rank {} showed copy {} of field {}, but rank {} showed copy {}: all ranks must "
          "call swap alike between two starts",
          epoch, rank_, static_cast<int>(out_[kHead + b]), buffers[static_cast<std::size_t>(b)].name, source,
          static_cast<int>(record[kHead + b]));
    }
  }
  return {};
}

bool OperationCheck::waited() {
  return std::exchange(owed_, false);
}

void OperationCheck::abandoned(const std::string& operation, std::uint64_t epoch) const {
  if (std::uncaught_exceptions() > 0) return;  // which say enough
  fmt::print(stderr, "tasuki: rank {}: {}: epoch {} was started and never waited for\n", rank_, operation, epoch);
}

}  // namespace tasuki
