// Exchange: see exchange.hpp.
#include "shapes/exchange.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "layout/elements.hpp"
#include "layout/sequence.hpp"
#include "shapes/enumerators.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

using Entries = std::vector<ExchangeEntry>;

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

bool whole_numbers(const Layout& layout, DType dtype) {
  if (dtype == DType::none) return true;
  return std::ranges::all_of(layout.blocks(), [&](const Block& block) { return block.bytes % size_of(dtype) == 0; });
}

std::string complaint_about(const Cells& field, bool reverse, ReduceOp op) {
  if (field.count < -1)
    return fmt::format("field {}: the number of cells is {}; it must not be negative", field.name, field.count);
  if (field.cell.size() < 1) return fmt::format("field {}: a cell has no bytes", field.name);
  if (!whole_numbers(field.cell, field.dtype))
    return fmt::format("field {}: a cell ({}) is no whole number of elements of {}", field.name, field.cell.describe(),
                       to_string(field.dtype));
  // An array without elements may have any strides.
  if (field.count != 0 && Layout::contiguous(std::max<std::int64_t>(field.count, 1), field.cell).overlaps())
    return fmt::format("field {}: its {} cells ({}, {} bytes apart) share bytes", field.name, field.count,
                       field.cell.describe(), field.cell.extent());
  if (!reverse) return {};
  if (field.dtype == DType::none)
    return fmt::format("reverse needs numbers to combine, but the cells of field {} ({} bytes each) are not",
                       field.name, field.cell.size());
  if (op == ReduceOp::own || !defined(op, field.dtype))
    return fmt::format("argument 'op' is '{}', which reverse cannot do with elements of {} (field {})", to_string(op),
                       to_string(field.dtype), field.name);
  return {};
}

std::vector<std::int64_t> sorted(const Entries& entries, std::vector<std::int64_t> ExchangeEntry::*list) {
  std::size_t cells = 0;
  for (const ExchangeEntry& entry : entries) cells += (entry.*list).size();
  std::vector<std::int64_t> all;
  all.reserve(cells);
  for (const ExchangeEntry& entry : entries) all.insert(all.end(), (entry.*list).begin(), (entry.*list).end());
  std::ranges::sort(all);
  return all;
}

// The entries whose lists have the cell, once for each time.
std::vector<std::size_t> entries_with(std::int64_t cell, const Entries& entries,
                                      std::vector<std::int64_t> ExchangeEntry::*list) {
  std::vector<std::size_t> found;
  for (std::size_t e = 0; e < entries.size(); ++e)
    found.insert(found.end(), static_cast<std::size_t>(std::ranges::count(entries[e].*list, cell)), e);
  return found;
}

// A cell that is in both lists, which are sorted.
std::optional<std::int64_t> in_both(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  for (std::size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    if (a[i] == b[k]) return a[i];
    ++(a[i] < b[k] ? i : k);
  }
  return {};
}

std::string complaint_about_cells(const std::vector<Cells>& fields, const Entries& entries, bool reverse) {
  const Cells& least = *std::ranges::min_element(fields, {}, &Cells::count);
  for (std::size_t e = 0; e < entries.size(); ++e) {
    for (const auto& [name, list] : {std::pair{"send", &entries[e].send}, std::pair{"receive", &entries[e].receive}})
      for (std::size_t i = 0; i < list->size(); ++i)
        if ((*list)[i] < 0 || (least.count >= 0 && (*list)[i] >= least.count))
          return fmt::format("entry {}: '{}' names cell {} (place {}), but field {} has {} cells, from 0", e, name,
                             (*list)[i], i, least.name,
                             least.count < 0 ? "any number of" : std::to_string(least.count));
  }
  const std::vector<std::int64_t> received = sorted(entries, &ExchangeEntry::receive);
  if (const auto twice = std::ranges::adjacent_find(received); twice != received.end()) {
    const auto with = entries_with(*twice, entries, &ExchangeEntry::receive);
    return fmt::format("cell {} is received twice: in entry {} and in entry {}", *twice, with[0], with[1]);
  }
  const std::vector<std::int64_t> sent = sorted(entries, &ExchangeEntry::send);
  if (const auto both = in_both(sent, received))
    return fmt::format("cell {} is received (entry {}), but also sent (entry {}); a rank sends what it owns", *both,
                       entries_with(*both, entries, &ExchangeEntry::receive)[0],
                       entries_with(*both, entries, &ExchangeEntry::send)[0]);
  if (!reverse || std::ranges::adjacent_find(sent) == sent.end()) return {};
  for (std::size_t e = 0; e < entries.size(); ++e) {
    std::vector<std::int64_t> cells = entries[e].send;
    std::ranges::sort(cells);
    if (const auto twice = std::ranges::adjacent_find(cells); twice != cells.end())
      return fmt::format(
          "entry {}: 'send' names cell {} twice, which reverse would combine twice in one message; name it in another "
          "entry for the same rank",
          e, *twice);
  }
  return {};
}

// The cells of the entries' lists, numbered in the order in which they come first.
std::vector<CellList> numbered_anew(const Entries& entries, std::vector<std::int64_t> ExchangeEntry::*list) {
  std::vector<std::int64_t> numbers;
  // Ghosts are received once. A cell may be sent several times.
  if (list == &ExchangeEntry::send) {
    std::vector<std::pair<std::int64_t, std::int64_t>> places;  // each cell, and its place in all lists together
    for (const ExchangeEntry& entry : entries)
      for (const std::int64_t cell : entry.*list) places.emplace_back(cell, std::ssize(places));
    std::ranges::sort(places);
    numbers.resize(places.size());  // at first: the place at which the cell of a place comes first
    for (std::size_t i = 0; i < places.size(); ++i)
      numbers[at(places[i].second)] =
          i > 0 && places[i - 1].first == places[i].first ? numbers[at(places[i - 1].second)] : places[i].second;
  }
  std::int64_t next = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = numbers[i] == static_cast<std::int64_t>(i) ? next++ : numbers[at(numbers[i])];
  std::vector<CellList> anew;
  std::size_t place = 0;
  for (const ExchangeEntry& entry : entries) {
    const std::size_t cells = (entry.*list).size();
    if (numbers.empty())
      anew.emplace_back(static_cast<std::int64_t>(place), static_cast<std::int64_t>(cells));
    else
      anew.emplace_back(std::span(numbers).subspan(place, cells));
    place += cells;
  }
  return anew;
}

// What the cells of a list would gain by being numbered in the order in which they come first. `blocks` are those of
// the list.
std::string hint_for(const std::vector<Cells>& fields, const Entries& entries, std::string_view done,
                     std::vector<std::int64_t> ExchangeEntry::*list, const std::vector<PeerBlock>& blocks) {
  std::vector<std::int64_t> runs(fields.size());
  for (const PeerBlock& block : blocks)
    for (std::size_t f = 0; f < fields.size() && !(entries[at(block.number)].*list).empty(); ++f)
      runs[f] += block.parts[f].runs();
  if (std::ranges::all_of(runs, [&](std::int64_t n) { return n <= std::ssize(blocks); })) return {};
  std::string hint;
  const std::vector<CellList> anew = numbered_anew(entries, list);
  for (std::size_t f = 0; f < fields.size(); ++f) {
    std::int64_t least = 0;
    for (const CellList& cells : anew) least += Elements(fields[f].cell, cells).runs();
    if (runs[f] > least)
      hint += fmt::format(
          "hint: what is {0} of field {1} lies in {2} runs; with these cells numbered in the order in which they are "
          "{0} it would be {3}\n",
          done, fields[f].name, runs[f], least);
  }
  return hint;
}

// Of entries about which there is no complaint.
ExchangeBlocks exchange_blocks(const std::vector<Cells>& fields, const Entries& entries, bool reverse) {
  ExchangeBlocks made;
  made.ranges.resize(fields.size());
  const auto add = [&](std::size_t e, const std::vector<std::int64_t>& cells, const std::vector<Layout>& layouts,
                       std::vector<PeerBlock>& blocks) {
    PeerBlock block{entries[e].peer, static_cast<std::int64_t>(e), {layouts.begin(), layouts.end()}};
    if (layouts.empty()) {
      const CellList list(cells);
      for (const Cells& field : fields) block.parts.emplace_back(field.cell, list);
    }
    if (std::ranges::all_of(block.parts, [](const Elements& part) { return part.size() == 0; })) return;
    for (std::size_t f = 0; f < fields.size(); ++f) {
      const ByteRange range = block.parts[f].range();
      made.ranges[f].begin = std::min(made.ranges[f].begin, range.begin);
      made.ranges[f].end = std::max(made.ranges[f].end, range.end);
    }
    blocks.push_back(std::move(block));
  };
  PeerBlocks& all = made.blocks;
  for (std::size_t e = 0; e < entries.size(); ++e) {
    add(e, entries[e].send, entries[e].send_layouts, reverse ? all.received : all.sent);
    add(e, entries[e].receive, entries[e].receive_layouts, reverse ? all.sent : all.received);
  }
  for (auto* blocks : {&all.sent, &all.received})
    for (PeerBlock& block : *blocks)
      for (std::size_t f = 0; f < fields.size(); ++f) block.parts[f] = block.parts[f].moved(-made.ranges[f].begin);
  return made;
}

std::string hint_for(const std::vector<Cells>& fields, const Entries& entries, bool reverse, const PeerBlocks& all) {
  return hint_for(fields, entries, "received", &ExchangeEntry::receive, reverse ? all.sent : all.received) +
         hint_for(fields, entries, "sent", &ExchangeEntry::send, reverse ? all.received : all.sent);
}

std::string complaint_about_layouts(const std::vector<Cells>& fields, const Entries& entries, bool reverse) {
  bool any = false;
  for (std::size_t e = 0; e < entries.size(); ++e) {
    const ExchangeEntry& entry = entries[e];
    for (const auto& [name, cells, layouts] : {std::tuple{"send", &entry.send, &entry.send_layouts},
                                               std::tuple{"receive", &entry.receive, &entry.receive_layouts}}) {
      if (layouts->empty()) continue;
      any = true;
      if (!cells->empty()) return fmt::format("entry {}: '{}' has cells and layouts; give one of them", e, name);
      if (layouts->size() != fields.size())
        return fmt::format("entry {}: '{}' has {} layouts for {} fields", e, name, layouts->size(), fields.size());
      for (std::size_t f = 0; f < fields.size() && reverse; ++f)
        if (!whole_numbers((*layouts)[f], fields[f].dtype) || (*layouts)[f].overlaps())
          return fmt::format("entry {}: '{}' of field {} ({}) names a byte twice, or parts of elements of {}", e, name,
                             fields[f].name, (*layouts)[f].describe(), to_string(fields[f].dtype));
    }
  }
  if (!any) return {};
  const ExchangeBlocks all = exchange_blocks(fields, entries, false);
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const auto bytes = [&](const std::vector<PeerBlock>& blocks) {
      std::vector<Elements> parts;
      for (const PeerBlock& block : blocks) parts.push_back(block.parts[f]);
      return joined(parts);
    };
    const Layout received = bytes(all.blocks.received);
    if (received.overlaps()) return fmt::format("bytes of field {} are received twice", fields[f].name);
    if (meet(bytes(all.blocks.sent), received, 0))
      return fmt::format("bytes of field {} are sent and received; a rank sends what it owns", fields[f].name);
  }
  return {};
}

std::vector<std::string> unique_names(const std::vector<Cells>& fields) {
  std::vector<std::string> names;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    std::string name = fields[f].name;
    for (std::size_t n = f; std::ranges::count(names, name) > 0; ++n) name = fmt::format("{}#{}", fields[f].name, n);
    names.push_back(std::move(name));
  }
  return names;
}

// What plans call the operation: `exchange u,v`.
std::string exchange_name(const std::vector<Cells>& fields, bool reverse) {
  return fmt::format("{} {}", reverse ? "reverse exchange" : "exchange", fmt::join(unique_names(fields), ","));
}

// What is wrong with the fields and entries of a rank by themselves; empty: nothing.
std::string complaint_about(const std::vector<Cells>& fields, const Entries& entries, bool reverse, ReduceOp op,
                            int ranks) {
  if (fields.empty()) return "argument 'fields' is empty; give at least one field";
  for (const Cells& field : fields)
    if (std::string wrong = complaint_about(field, reverse, op); !wrong.empty()) return wrong;
  for (std::size_t e = 0; e < entries.size(); ++e)
    if (entries[e].peer < 0 || entries[e].peer >= ranks)
      return fmt::format("entry {} is for rank {}, but there are ranks 0 to {}", e, entries[e].peer, ranks - 1);
  std::string wrong = complaint_about_cells(fields, entries, reverse);
  return !wrong.empty() ? wrong : complaint_about_layouts(fields, entries, reverse);
}

// Says how the entries of two ranks do not fit together.
std::string shown(const BlockMisfit& misfit, const std::vector<Cells>& fields, bool reverse) {
  int owner = misfit.from;
  int other = misfit.to;
  std::int64_t sent = misfit.sent, received = misfit.received;
  std::int64_t sent_number = misfit.sent_number, received_number = misfit.received_number;
  if (reverse) {  // the lists are those of the way forward
    std::swap(owner, other);
    std::swap(sent, received);
    std::swap(sent_number, received_number);
  }
  if (misfit.part < 0)
    return fmt::format(
        "rank {} sends to rank {} in {} of its entries, but rank {} receives from rank {} in {} of its own; they must "
        "be equal",
        owner, other, sent, other, owner, received);
  const Cells& field = fields[at(misfit.part)];
  const std::int64_t cell = field.cell.size();
  const bool in_cells = sent % cell == 0 && received % cell == 0;
  return fmt::format(
      "rank {} sends {} {} of field {} to rank {} (its entry {}), which receives {} from it (its entry {}); they must "
      "be equal",
      owner, in_cells ? sent / cell : sent, in_cells ? "cells" : "bytes", field.name, other, sent_number,
      in_cells ? received / cell : received, received_number);
}

// The problem of a rank; the blocks of the ranks that it names fit to its own.
Problem exchange_problem(const std::vector<Cells>& fields, bool reverse, ReduceOp op, int rank, const std::string& hint,
                         const std::function<const PeerBlocks&(int rank)>& blocks_of) {
  Problem problem;
  problem.operation = exchange_name(fields, reverse);
  problem.rank = rank;
  const std::vector<std::string> names = unique_names(fields);
  BlockMoves moves;
  moves.lists = true;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    problem.buffers.push_back({names[f], Role::inout});
    const int buffer = static_cast<int>(f);
    moves.parts.push_back({buffer, buffer, names[f]});
    if (!reverse) continue;
    moves.parts.back().add = fields[f].dtype;
    moves.parts.back().op = op;
  }
  problem.moves = moves.of(rank, blocks_of);
  problem.remark = hint;
  return problem;
}

}  // namespace

std::string ExchangeOfRank::name() const {
  return exchange_name(fields_, reverse_);
}

Agreed ExchangeOfRank::agreed() const {
  Agreed all{{"number of fields", std::to_string(fields_.size())}};
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    const Cells& field = fields_[f];
    all.emplace_back(fmt::format("name of field {}", f), field.name);
    all.emplace_back(fmt::format("bytes of a cell of field {}", field.name), std::to_string(field.cell.size()));
    if (reverse_) all.emplace_back(fmt::format("type of field {}", field.name), tasuki::shown(field.dtype));
  }
  all.emplace_back("reverse", reverse_ ? "true" : "false");
  all.emplace_back("op", tasuki::shown(op_));
  return all;
}

std::string ExchangeOfRank::complaint(const Machine& machine) const {
  if (std::string wrong = enumerator_complaint("op", op_); !wrong.empty()) return wrong;
  for (const Cells& field : fields_) {
    if (std::string wrong = enumerator_complaint("dtype", field.dtype); !wrong.empty()) return wrong;
    if (field.count < 0)
      return fmt::format("field {}: the number of cells is {}; it must not be negative", field.name, field.count);
  }
  return complaint_about(fields_, entries_, reverse_, op_, machine.size());
}

void ExchangeOfRank::list() {
  own_ = exchange_blocks(fields_, entries_, reverse_);
  own_.hint = hint_for(fields_, entries_, reverse_, own_.blocks);
  for (const auto* list : {&own_.blocks.sent, &own_.blocks.received})
    for (const PeerBlock& block : *list) blocks_[block.rank];  // who tells nothing lists nothing
  blocks_[rank_] = std::move(own_.blocks);
}

std::vector<MemoryUse> ExchangeOfRank::memory() const {
  std::vector<MemoryUse> uses;
  for (std::size_t f = 0; f < fields_.size(); ++f)
    uses.push_back({fields_[f].name, fmt::format("field {}: the memory", fields_[f].name), own_.ranges[f],
                    ", which exchanges do not know"});
  return uses;
}

Layout ExchangeOfRank::bytes_of(std::size_t buffer, bool written) const {
  const PeerBlocks& own = blocks_.at(rank_);
  std::vector<Elements> parts;
  for (const PeerBlock& block : written ? own.received : own.sent) parts.push_back(block.parts[buffer]);
  return joined(parts);
}

std::string ExchangeOfRank::overlapping(std::size_t a, std::size_t b) const {
  return fmt::format("fields {} and {} overlap in memory (or are the same field twice)", fields_[a].name,
                     fields_[b].name);
}

std::vector<int> ExchangeOfRank::named() const {
  std::vector<int> ranks;
  for (const auto& [rank, blocks] : blocks_)
    if (rank != rank_) ranks.push_back(rank);
  return ranks;
}

void ExchangeOfRank::tell(int hearer, Encoder& to) const {
  const PeerBlocks& own = blocks_.at(rank_);
  for (const auto* list : {&own.sent, &own.received}) {
    to.number(std::ranges::count(*list, hearer, &PeerBlock::rank));
    for (const PeerBlock& block : *list) {
      if (block.rank != hearer) continue;
      to.number(block.number);
      tasuki::tell(block.parts, to);
    }
  }
}

void ExchangeOfRank::hear(int rank, Decoder& from) {
  PeerBlocks blocks;
  for (auto* list : {&blocks.sent, &blocks.received}) {
    const std::int64_t count = from.number();
    for (std::int64_t i = 0; i < count; ++i) {
      PeerBlock& block = list->emplace_back();
      block.rank = rank_;
      block.number = from.number();
      block.parts = hear_elements(from, fields_.size());
    }
  }
  blocks_[rank] = std::move(blocks);
}

std::string ExchangeOfRank::misfit() const {
  const PeerBlocks& own = blocks_.at(rank_);
  for (const auto& [rank, theirs] : blocks_)
    for (const auto& wrong : {tasuki::misfit(own, rank_, theirs, rank), tasuki::misfit(theirs, rank, own, rank_)})
      if (wrong) return shown(*wrong, fields_, reverse_);
  return {};
}

Problem ExchangeOfRank::problem(const Machine&) const {
  return exchange_problem(fields_, reverse_, op_, rank_, own_.hint,
                          [&](int rank) -> const PeerBlocks& { return blocks_.at(rank); });
}

namespace {

class JointExchange final : public EachRank {
 public:
  JointExchange(ExchangeShape shape, std::vector<ExchangeBlocks> ranks)
      : shape_(std::move(shape)), ranks_(std::move(ranks)) {
    shape_.entries.clear();  // which the blocks hold
  }

  std::vector<BufferFact> facts(int rank) const override {
    return facts_of(ranks_[at(rank)].ranges, shape_.memory, shape_.shared);
  }

 private:
  Problem problem_of(int rank) const override {
    return exchange_problem(shape_.fields, shape_.reverse, shape_.op, rank, ranks_[at(rank)].hint,
                            [&](int of) -> const PeerBlocks& { return ranks_[at(of)].blocks; });
  }

  ExchangeShape shape_;
  std::vector<ExchangeBlocks> ranks_;
};

}  // namespace

std::shared_ptr<const JointShape> joint(const Machine& machine, const ExchangeShape& exchange) {
  check_gpus(machine, exchange.memory);
  if (std::ssize(exchange.entries) != machine.size())
    throw Error(fmt::format("Exchange: argument 'entries' is of {} ranks, but the machine has {}",
                            exchange.entries.size(), machine.size()));
  std::vector<ExchangeBlocks> ranks;
  for (int rank = 0; rank < machine.size(); ++rank) {
    const Entries& entries = exchange.entries[at(rank)];
    const std::string wrong = complaint_about(exchange.fields, entries, exchange.reverse, exchange.op, machine.size());
    if (!wrong.empty()) throw Error(fmt::format("Exchange: rank {}: {}", rank, wrong));
    ranks.push_back(exchange_blocks(exchange.fields, entries, exchange.reverse));
    ranks.back().hint = hint_for(exchange.fields, entries, exchange.reverse, ranks.back().blocks);
  }
  const auto check = [&](int from, int to) {
    if (const auto wrong = misfit(ranks[at(from)].blocks, from, ranks[at(to)].blocks, to))
      throw Error("Exchange: " + shown(*wrong, exchange.fields, exchange.reverse));
  };
  for (int rank = 0; rank < machine.size(); ++rank) {
    const PeerBlocks& blocks = ranks[at(rank)].blocks;
    std::set<int> to, from;
    for (const PeerBlock& block : blocks.sent) to.insert(block.rank);
    for (const PeerBlock& block : blocks.received) from.insert(block.rank);
    for (const int other : to) check(rank, other);
    for (const int other : from) check(other, rank);
  }
  return std::make_shared<const JointExchange>(exchange, std::move(ranks));
}

}  // namespace tasuki
