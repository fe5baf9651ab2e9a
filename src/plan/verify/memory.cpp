// Verifier, stage 3: shadow memory. Every access is checked against the last write and against the reads since then:
// two accesses to one cell, one of them a write, must be ordered by the clocks.
#include <fmt/format.h>

#include <algorithm>

#include "plan/label.hpp"
#include "plan/verify/verify.hpp"

namespace tasuki::detail {
namespace {

/// Maximal runs of cells with any of the bits in `use`.
template <class Visit>
void for_each_use(const Area& area, std::uint8_t use, Visit visit) {
  for (std::int64_t cell = 0; cell < area.cells;) {
    const std::int64_t begin = cell;
    while (cell < area.cells && (area.uses[cell] & use)) ++cell;
    if (cell > begin) visit(begin, cell - begin);
    if (cell == begin) ++cell;
  }
}

}  // namespace

Memory::Memory(const World& world, Findings& findings)
    : world_(world),
      findings_(findings),
      events_(1),
      content_(world.cells, 0),
      writer_(world.cells, 0),
      readers_(world.cells, 0),
      reader_sets_(1),
      sums_(world.unit),
      expected_(world.areas.size()),
      promised_(world.areas.size()) {}

std::uint32_t Memory::record(const Event& event) {
  events_.push_back(event);
  return static_cast<std::uint32_t>(events_.size() - 1);
}

std::span<const std::uint64_t> Memory::take(std::uint32_t event, const Clock& clock, std::int32_t area,
                                            std::span<const Run> runs) {
  taken_.clear();
  const std::int64_t base = world_.areas[area].copy_at(events_[event].epoch);
  Seen seen;
  for (const Run& run : runs) {
    read(event, clock, area, run.src, run.count, seen);
    taken_.insert(taken_.end(), content_.begin() + base + run.src, content_.begin() + base + run.src + run.count);
  }
  return taken_;
}

void Memory::store(std::uint32_t event, const Clock& clock, std::int32_t area, std::span<const Run> runs,
                   std::span<const std::uint64_t> contents, const Kind* reduces) {
  const std::int64_t base = world_.areas[area].copy_at(events_[event].epoch);
  Seen seen;
  for (const Run& run : runs) {
    // A message may be shorter than its receive; that is reported when the two meet.
    const auto count = std::min<std::int64_t>(run.count, std::ssize(contents));
    claim(event, clock, area, run.dst, count, seen);
    const std::span to = std::span(content_).subspan(base + run.dst, count);
    if (reduces != nullptr) {
      sums_.combine(*reduces, event, to, contents.first(count));
    } else {
      std::ranges::copy(contents.first(count), to.begin());
    }
    contents = contents.subspan(count);
  }
}

void Memory::user_writes(std::uint32_t event, const Clock& clock) {
  const Event now = events_[event];
  Seen seen;
  for (std::size_t a = 0; a < world_.areas.size(); ++a) {
    const Area& area = world_.areas[a];
    if (area.buffer.rank != now.rank) continue;
    const auto index = static_cast<std::int32_t>(a);
    for_each_use(area, Use::writes, [&](std::int64_t cell, std::int64_t count) {
      claim(event, clock, index, cell, count, seen);
      std::uint64_t* to = content_.data() + area.copy_at(now.epoch) + cell;
      for (std::int64_t k = 0; k < count; ++k) to[k] = token(index, cell + k, now.epoch);
    });
  }
}

void Memory::user_reads(std::uint32_t event, const Clock& clock) {
  const Event now = events_[event];
  Seen seen;
  for (std::size_t a = 0; a < world_.areas.size(); ++a) {
    const Area& area = world_.areas[a];
    if (area.buffer.rank != now.rank) continue;
    for_each_use(area, Use::reads, [&](std::int64_t cell, std::int64_t count) {
      read(event, clock, static_cast<std::int32_t>(a), cell, count, seen);
    });
  }
  expect_all(now.rank, now.epoch);
  for (std::size_t i = 0; i < world_.expects[now.rank].size(); ++i) compare(event, static_cast<std::int32_t>(i));
}

void Memory::read(std::uint32_t now, const Clock& clock, std::int32_t area, std::int64_t cell, std::int64_t count,
                  Seen& seen) {
  const std::int64_t base = world_.areas[area].copy_at(events_[now].epoch);
  for (std::int64_t k = cell; k < cell + count; ++k) {
    const std::uint32_t writer = writer_[base + k];
    if (writer != seen.writer) {
      if (ordered(writer, clock)) {
        seen.writer = writer;
      } else {
        report(Flaw::read_unordered, writer, now, area, k);
      }
    }
    std::uint32_t& readers = readers_[base + k];
    if (readers != seen.readers) {
      seen.readers = readers;
      seen.joined = with_reader(readers, now, clock);
    }
    readers = seen.joined;
  }
}

/// The readers in `set` and `now`, without those that happened before `now`: what is ordered after `now` is ordered
/// after them, too.
std::uint32_t Memory::with_reader(std::uint32_t set, std::uint32_t now, const Clock& clock) {
  if (joined_by_ != now) joined_.clear();
  joined_by_ = now;
  const auto [it, fresh] = joined_.try_emplace(set, 0);
  if (!fresh) return it->second;
  std::vector<std::uint32_t> readers;
  for (const std::uint32_t reader : reader_sets_[set]) {
    if (reader == now) return it->second = set;
    if (!ordered(reader, clock)) readers.push_back(reader);
  }
  readers.push_back(now);
  reader_sets_.push_back(std::move(readers));
  return it->second = static_cast<std::uint32_t>(reader_sets_.size() - 1);
}

/// Makes `now` the last writer of the cells, after checking that it may write them.
void Memory::claim(std::uint32_t now, const Clock& clock, std::int32_t area, std::int64_t cell, std::int64_t count,
                   Seen& seen) {
  const Area& a = world_.areas[area];
  const std::int64_t base = a.copy_at(events_[now].epoch);
  const bool by_user = events_[now].command < 0;
  for (std::int64_t k = cell; k < cell + count; ++k) {
    const std::uint32_t writer = writer_[base + k];
    if (writer != seen.writer) {
      if (writer == now) {
        report(Flaw::self_overlap, writer, now, area, k);
      } else if (!ordered(writer, clock)) {
        report(Flaw::writes_unordered, writer, now, area, k);
      } else {
        seen.writer = writer;
        seen.this_epoch = events_[writer].command >= 0 && events_[writer].epoch == events_[now].epoch;
      }
    }
    if (!by_user && user_owned(a.buffer.role)) {
      if (!(a.uses[k] & Use::reads)) {
        report(Flaw::unexpected, 0, now, area, k);
      } else if (writer != 0 && writer == seen.writer && seen.this_epoch && !(a.uses[k] & Use::accumulates)) {
        report(Flaw::written_twice, writer, now, area, k);
      }
    }
    if (const std::uint32_t set = readers_[base + k]; set != seen.readers) {
      bool clean = true;
      for (const std::uint32_t reader : reader_sets_[set]) {
        if (reader != now && ordered(reader, clock)) continue;
        report(reader == now ? Flaw::self_overlap : Flaw::overwrite_unordered, reader, now, area, k);
        clean = false;
      }
      if (clean) seen.readers = set;
    }
    writer_[base + k] = now;
    readers_[base + k] = 0;
  }
}

void Memory::report(Flaw flaw, std::uint32_t before, std::uint32_t now, std::int32_t area, std::int64_t cell) {
  const std::int32_t epoch = events_[now].epoch;
  findings_.add({flaw, party(before), party(now), area}, place(area, cell, epoch), [&]() -> Findings::Sentence {
    const std::string first = who(before, epoch), second = who(now, epoch);
    switch (flaw) {
      case Flaw::read_unordered:
        return {fmt::format("{} reads ", second),
                fmt::format(" that {} writes, and nothing orders the read after the write: let the reader wait for a "
                            "signal or a command that follows the write",
                            first)};
      case Flaw::overwrite_unordered:
        return {fmt::format("{} writes ", second),
                fmt::format(" that {} reads, and nothing orders the write after the read: let the writer wait until "
                            "the reader has said that it is done",
                            first)};
      case Flaw::writes_unordered:
        return {fmt::format("{} writes ", second),
                fmt::format(" that {} writes too, and nothing orders the two: the result depends on chance", first)};
      case Flaw::self_overlap:
        return {fmt::format("{} touches ", second), " twice itself, in no defined order: its copies overlap"};
      case Flaw::written_twice:
        return {fmt::format("{} writes ", second), fmt::format(" a second time, after {}", first)};
      default:
        return {fmt::format("{} writes ", second), ", which no expectation names: they belong to the user"};
    }
  });
}

std::string Memory::who(std::uint32_t event, std::int32_t epoch) const {
  const Event& e = events_[event];
  if (e.command == Event::kUserWrites) return fmt::format("the user of rank {} before epoch {}", e.rank, e.epoch);
  if (e.command == Event::kUserReads) return fmt::format("the user of rank {} after epoch {}", e.rank, e.epoch);
  const std::string name = label(world_.plans[e.rank], e.command);
  return e.epoch == epoch ? name : fmt::format("{} in epoch {}", name, e.epoch);
}

/// An identity of commands and users that does not depend on chunk and epoch.
std::int64_t Memory::party(std::uint32_t event) const {
  return std::int64_t{events_[event].rank} * (std::int64_t{1} << 32) + events_[event].command;
}

Findings::Place Memory::place(std::int32_t area, std::int64_t cell, std::int32_t epoch) const {
  const Area& a = world_.areas[area];
  return {&a, a.unit_of(cell) * world_.unit, world_.unit, epoch};
}

std::uint64_t Memory::token(std::int32_t area, std::int64_t cell, std::int32_t epoch) const {
  return static_cast<std::uint64_t>(world_.areas[area].first_cell + cell) << kEpochBits |
         static_cast<std::uint64_t>(epoch);
}

}  // namespace tasuki::detail
