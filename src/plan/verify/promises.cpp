// Verifier, stage 4: compares what the expectations promise with what the cells contain.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "plan/label.hpp"
#include "plan/verify/verify.hpp"
#include "tasuki/error.hpp"

namespace tasuki::detail {
namespace {

constexpr std::size_t kMostOrders = 256;

/// A contribution's share in the hash of all contributions. It is mixed, so that two different sets of contributions
/// practically never have equal hashes.
std::uint64_t share(std::uint64_t token) {
  std::uint64_t z = token + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (z ^ (z >> 31)) >> 1;
}

/// The same for a hash that depends on their order.
std::uint64_t then(std::uint64_t sequence, std::uint64_t token) {
  return sequence * 0xd1342543de82ef95u + share(token);
}

std::string name_of(Kind kind) {
  return fmt::format("{} of {}", to_string(kind.op), to_string(kind.dtype));
}

}  // namespace

std::vector<ReductionOrder> Memory::orders() const {
  std::vector<ReductionOrder> all;
  for (const auto& [key, order] : orders_) all.push_back(order);
  std::ranges::stable_sort(all, {}, [](const ReductionOrder& o) { return std::tuple(o.rank, o.buffer, o.offset); });
  if (all.size() > kMostOrders) all.resize(kMostOrders);
  return all;
}

/// Fills `expected_` for the cells that expectations of `rank` name. Copies come first, because reductions combine with
/// their results.
void Memory::expect_all(std::int32_t rank, std::int32_t epoch) {
  const auto& expects = world_.expects[rank];
  for (const Moves& moves : expects) expected_[moves.dst].assign(world_.areas[moves.dst].cells, 0);
  for (const bool reductions : {false, true}) {
    for (std::size_t i = 0; i < expects.size(); ++i) {
      const Moves& moves = expects[i];
      if ((world_.plans[rank].expects[i].dtype != DType::none) != reductions) continue;
      if (reductions) promised_[moves.dst].resize(world_.areas[moves.dst].cells);
      for (const Run& run : moves.runs) {
        if (reductions) {
          promise(rank, epoch, static_cast<std::int32_t>(i), run);
          continue;
        }
        for (std::int64_t k = 0; k < run.count; ++k) {
          std::uint64_t& to = expected_[moves.dst][run.dst + k];
          if (to != 0) {
            findings_.add({Flaw::promised_twice, rank, static_cast<std::int64_t>(i), moves.dst},
                          place(moves.dst, run.dst + k, epoch), [&]() -> Findings::Sentence {
                            return {fmt::format("rank {} expect {} promises ", rank, i),
                                    " that another expectation promises too"};
                          });
          }
          to = token(moves.src, run.src + k, epoch);
        }
      }
    }
  }
}

/// Adds one contribution to each cell of a run.
void Memory::promise(std::int32_t rank, std::int32_t epoch, std::int32_t expect, const Run& run) {
  const Moves& moves = world_.expects[rank][expect];
  const Expect& e = world_.plans[rank].expects[expect];
  for (std::int64_t k = 0; k < run.count; ++k) {
    const Kind kind = Kind{e.op, e.dtype, 0}.after(k, world_.unit);
    const bool replaces = !tasuki::accumulates(e.dtype, e.op);
    std::uint64_t& to = expected_[moves.dst][run.dst + k];
    Promise& more = promised_[moves.dst][run.dst + k];
    if (replaces && to != 0) {
      findings_.add(
          {Flaw::promised_twice, rank, expect, moves.dst}, place(moves.dst, run.dst + k, epoch),
          [&]() -> Findings::Sentence {
            return {fmt::format("rank {} expect {} promises ", rank, expect), " that another expectation promises too"};
          });
    }
    if (!(to & kSum)) {
      const std::uint64_t first = to != 0 || replaces ? to : token(moves.dst, run.dst + k, epoch);
      more = {then(0, first), 1, kind, false};
      to = kSum | share(first);
    } else if (more.kind != kind) {
      findings_.add({Flaw::promised_otherwise, rank, expect, moves.dst}, place(moves.dst, run.dst + k, epoch),
                    [&]() -> Findings::Sentence {
                      return {fmt::format("rank {} expect {} promises ", rank, expect),
                              fmt::format(" as the {}, while another expectation promises the {}{}", name_of(kind),
                                          name_of(more.kind),
                                          more.kind.op == kind.op && more.kind.dtype == kind.dtype
                                              ? ", cut into elements at other bytes"
                                              : "")};
                    });
    }
    const std::uint64_t source = token(moves.src, run.src + k, epoch);
    to = kSum | ((to & ~kSum) + share(source));
    more.sequence = then(more.sequence, source);
    more.in_order = more.in_order || e.in_order;
    ++more.terms;
  }
}

/// Whether a partial result is the promised one. `shown` keeps the run looked at last, because neighbouring cells
/// mostly belong to one run.
bool Memory::keeps(std::uint64_t actual, std::uint64_t want, const Promise& promise, Shown& shown) const {
  if (promise.terms > Sums::kMostTerms) {
    throw Error(fmt::format("a reduction of {} contributions is promised, more than the {} that the verifier follows",
                            promise.terms, Sums::kMostTerms));
  }
  if (!(actual & kSum)) return false;
  const Sum& sum = sums_.of(actual);
  if (sum.terms != promise.terms) return false;
  const std::int64_t k = sums_.place(actual);
  if (shown.sum != &sum) {
    const std::uint64_t first = actual - static_cast<std::uint64_t>(k) * kNext;
    shown = {&sum, sums_.flat(first), sums_.other_than(sum.kind, first) == nullptr, {}};
    shown.order = sums_.order(first, [this](std::uint64_t t) { return t == 0 ? -1 : area_of(t).buffer.rank; });
  }
  if (!shown.uniform || sum.kind.after(k, world_.unit) != promise.kind) return false;
  std::uint64_t hash = 0, sequence = 0;
  for (const Sums::Term& term : shown.terms) {
    const std::uint64_t token = following(term.token, k);
    hash += share(token);
    sequence = then(sequence, token);
  }
  return (kSum | hash) == want && (!promise.in_order || sequence == promise.sequence);
}

void Memory::tell_order(std::int32_t area, std::int64_t cell, const std::string& order) {
  const Area& a = world_.areas[area];
  const std::int64_t offset = a.unit_of(cell) * world_.unit;
  const auto [it, fresh] =
      orders_.try_emplace({area, order}, ReductionOrder{a.buffer.rank, a.buffer.name, offset, 0, order});
  it->second.offset = std::min(it->second.offset, offset);
  it->second.bytes += world_.unit;
}

void Memory::compare(std::uint32_t now, std::int32_t expect) {
  const std::int32_t rank = events_[now].rank, epoch = events_[now].epoch;
  const Moves& moves = world_.expects[rank][expect];
  const std::int64_t base = world_.areas[moves.dst].copy_at(epoch);
  Shown shown;
  for (const Run& run : moves.runs) {
    for (std::int64_t cell = run.dst; cell < run.dst + run.count; ++cell) {
      std::uint64_t& wanted = expected_[moves.dst][cell];
      const std::uint64_t actual = content_[base + cell], want = wanted;
      if (actual == want) continue;
      const bool reduction = (want & kSum) != 0;
      const bool kept = reduction && keeps(actual, want, promised_[moves.dst][cell], shown);
      if (kept && epoch == 1 && promised_[moves.dst][cell].kind.op != ReduceOp::negate)
        tell_order(moves.dst, cell, shown.order);
      wanted = actual;  // reported once, though several expectations may name the byte
      if (kept) continue;
      const std::uint32_t writer = writer_[base + cell];
      const Event& written = events_[writer];
      Flaw flaw = Flaw::wrong_source;
      if (reduction) {
        flaw = Flaw::wrong_result;
      } else if (writer == 0 || written.command < 0 || written.epoch != epoch) {
        flaw = Flaw::missing;
      } else if (actual >> kEpochBits == want >> kEpochBits) {
        flaw = Flaw::stale;
      }
      const std::int64_t detail = flaw == Flaw::missing ? 0 : party(writer);
      const std::int64_t by = std::int64_t{rank} * (std::int64_t{1} << 32) + expect;
      findings_.add({flaw, by, detail, moves.dst}, place(moves.dst, cell, epoch), [&]() -> Findings::Sentence {
        const std::string to = fmt::format("rank {} expect {}: ", rank, expect);
        if (reduction) return {to, " hold a wrong result: " + wrong_result(rank, epoch, moves.dst, cell)};
        const std::string from = fmt::format(" should come from {}, but ", value(want, epoch));
        if (flaw == Flaw::missing) return {to, from + "nothing writes them in this epoch"};
        return {to, from + fmt::format("{} puts {} there", who(writer, epoch), value(actual, epoch))};
      });
    }
  }
}

/// The contributions that are promised for a cell, in order.
std::vector<std::uint64_t> Memory::contributions(std::int32_t rank, std::int32_t epoch, std::int32_t area,
                                                 std::int64_t cell) const {
  std::vector<std::uint64_t> all;
  for (const bool reductions : {false, true}) {
    if (reductions && all.empty())
      all.push_back(promised_[area][cell].kind.op == ReduceOp::negate ? 0 : token(area, cell, epoch));
    for (std::size_t i = 0; i < world_.expects[rank].size(); ++i) {
      const Moves& moves = world_.expects[rank][i];
      if (moves.dst != area || (world_.plans[rank].expects[i].dtype != DType::none) != reductions) continue;
      for (const Run& run : moves.runs) {
        if (cell >= run.dst && cell < run.dst + run.count)
          all.push_back(token(moves.src, run.src + cell - run.dst, epoch));
      }
    }
  }
  return all;
}

/// Finds why a cell differs from the promised reduction: the first cause, with the command.
std::string Memory::wrong_result(std::int32_t rank, std::int32_t epoch, std::int32_t area, std::int64_t cell) const {
  const std::int64_t at = world_.areas[area].copy_at(epoch) + cell;
  const std::uint64_t actual = content_[at];
  const std::string last = writer_[at] == 0 ? "nobody wrote them" : "the last to write was " + who(writer_[at], epoch);
  const Kind kind = promised_[area][cell].kind;
  const std::vector<std::uint64_t> wanted = contributions(rank, epoch, area, cell);
  if (sums_.terms(actual) > Sums::kMostTerms) {
    return fmt::format("the {} of more than {} contributions where {} are promised; {}", name_of(kind),
                       Sums::kMostTerms, wanted.size(), last);
  }
  if (const Sum* other = actual & kSum ? sums_.other_than(kind, actual) : nullptr) {
    const bool phase = other->kind.op == kind.op && other->kind.dtype == kind.dtype;
    return fmt::format("{} takes the {}{}, where the {} is promised", who(other->event, epoch), name_of(other->kind),
                       phase ? ", cut into elements at other bytes" : "", name_of(kind));
  }
  const std::vector<Sums::Term> found = sums_.flat(actual);
  std::map<std::uint64_t, std::int64_t> missing;  // negative: too many
  for (const std::uint64_t t : wanted) ++missing[t];
  for (const Sums::Term& t : found) --missing[t.token];
  const auto by = [&](const Sums::Term& t) { return t.event == 0 ? last : who(t.event, epoch); };
  for (const Sums::Term& t : found) {
    if (missing[t.token] >= 0) continue;
    const std::string it = value(t.token, epoch);
    if (std::ranges::count(found, t.token, &Sums::Term::token) > 1 && t.token != 0) {
      return fmt::format("{} is combined twice, by {}", it, who(sums_.doubles(actual, t.token).event, epoch));
    }
    for (const std::uint64_t w : wanted) {
      if (t.token != 0 && w >> kEpochBits == t.token >> kEpochBits) {
        return fmt::format("{} is combined instead of the value of epoch {}, by {}", it, epoch, by(t));
      }
    }
    return fmt::format("{} {} combined, which no expectation names, by {}", it, t.token == 0 ? "are" : "is", by(t));
  }
  for (const std::uint64_t w : wanted) {
    if (missing[w] > 0) return fmt::format("{} is not combined; {}", value(w, epoch), last);
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (found[i].token == wanted[i]) continue;
    return fmt::format("contribution {} is {}, by {}, where the order promises {}", i, value(found[i].token, epoch),
                       by(found[i]), value(wanted[i], epoch));
  }
  return fmt::format("the contributions are as promised, but not where they begin; {}", last);
}

const Area& Memory::area_of(std::uint64_t token) const {
  const auto cell = static_cast<std::int64_t>(token >> kEpochBits);
  const auto after = std::upper_bound(world_.areas.begin(), world_.areas.end(), cell,
                                      [](std::int64_t c, const Area& area) { return c < area.first_cell; });
  return *(after - 1);
}

std::string Memory::value(std::uint64_t token, std::int32_t epoch) const {
  if (token == 0) return "bytes that nobody wrote";
  if (token & kSum) return fmt::format("the {} of {} values", name_of(sums_.kind(token)), sums_.terms(token));
  const Area& area = area_of(token);
  const std::int64_t cell = static_cast<std::int64_t>(token >> kEpochBits) - area.first_cell;
  const auto written = static_cast<std::int32_t>(token & (kNext - 1));
  return fmt::format("{} offset {}{}", label(area.buffer), area.unit_of(cell) * world_.unit,
                     written == epoch ? "" : fmt::format(" as it was in epoch {}", written));
}

}  // namespace tasuki::detail
