// Collective: see collective.hpp.
#include "collectives/collective.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <limits>
#include <set>
#include <utility>

#include "tasuki/error.hpp"

namespace tasuki {

namespace {

constexpr std::array<std::pair<CollectiveKind, std::string_view>, 11> kNames{
    {{CollectiveKind::broadcast, "broadcast"},
     {CollectiveKind::allreduce, "allreduce"},
     {CollectiveKind::allgather, "allgather"},
     {CollectiveKind::reduce, "reduce"},
     {CollectiveKind::reduce_scatter, "reduce_scatter"},
     {CollectiveKind::alltoall, "alltoall"},
     {CollectiveKind::gather, "gather"},
     {CollectiveKind::scatter, "scatter"},
     {CollectiveKind::barrier, "barrier"},
     {CollectiveKind::scan, "scan"},
     {CollectiveKind::exscan, "exscan"}}};

// Of all blocks together: far from where sums of bytes overflow.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;
constexpr int kMostTrees = 16;
constexpr std::int64_t kMostRecord = std::int64_t{1} << 20;

void check_counts(const CollectiveShape& shape, std::int64_t blocks) {
  if (shape.count < 0) throw Error(fmt::format("argument 'count' is {}; it must not be negative", shape.count));
  if (shape.count > kMostBytes / size_of(shape.type) / shape.record)
    throw Error(fmt::format("argument 'count' is {}; more than can be moved", shape.count));
  if (shape.counts.empty()) return;
  if (std::ssize(shape.counts) != blocks)
    throw Error(fmt::format("argument 'counts' has {} entries, but there are {} blocks", shape.counts.size(), blocks));
  for (std::size_t i = 0; i < shape.counts.size(); ++i) {
    const std::int64_t count = shape.counts[i];
    if (count < 0) throw Error(fmt::format("argument 'counts' is {} for block {}; it must not be negative", count, i));
    if (count > kMostBytes / size_of(shape.type) / shape.record)
      throw Error(fmt::format("argument 'counts' is {} for block {}; more than can be moved", count, i));
  }
}

void check_options(const CollectiveShape& shape) {
  if (shape.trees < 0 || shape.trees > kMostTrees)
    throw Error(fmt::format("option 'trees' is {}; give 0 (chosen) to {}", shape.trees, kMostTrees));
  if (shape.arity < 0) throw Error(fmt::format("option 'arity' is {}; give 0 (chosen) or more", shape.arity));
  if (shape.chunk < 0) throw Error(fmt::format("option 'chunk' is {} bytes; give 0 (chosen) or more", shape.chunk));
}

HostTorus torus_of(const Machine& machine) {
  HostTorus torus;
  if (machine.outside.kind != Network::Kind::torus) return torus;
  std::set<int> hosts;
  for (const auto& rank : machine.ranks) hosts.insert(rank.host);
  std::int64_t points = 1;
  for (const int extent : machine.outside.extents) points *= extent;
  if (points != std::ssize(hosts) || points < 2) return torus;
  torus.extents = machine.outside.extents;
  torus.rails = machine.outside.rails;
  for (const auto& rank : machine.ranks)
    torus.point.push_back(static_cast<int>(std::distance(hosts.begin(), hosts.find(rank.host))));
  return torus;
}

}  // namespace

std::string_view to_string(CollectiveKind kind) {
  for (const auto& [known, name] : kNames)
    if (known == kind) return name;
  return "unknown";
}

CollectiveKind collective_from_string(std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& [kind, known] : kNames) {
    if (known == name) return kind;
    names.push_back(known);
  }
  throw Error(fmt::format("there is no collective '{}'; give one of {}", name, fmt::join(names, ", ")));
}

const std::vector<CollectiveKind>& all_collectives() {
  static const std::vector<CollectiveKind> all = [] {
    std::vector<CollectiveKind> kinds;
    for (const auto& [kind, name] : kNames) kinds.push_back(kind);
    return kinds;
  }();
  return all;
}

Collective::Collective(const Machine& machine, const CollectiveShape& shape) : shape_(shape) {
  for (const auto& rank : machine.ranks) island_.push_back(rank.island);
  torus_ = torus_of(machine);
  if (shape.record < 1 || shape.record > kMostRecord)
    throw Error(fmt::format("a record of {} numbers cannot be combined; give 1 to {}", shape.record, kMostRecord));
  if (shape.record > 1 && (!reduces() || op() != ReduceOp::own))
    throw Error(fmt::format("only an operator of the user's own combines records ({} numbers each)", shape.record));
  element_ = size_of(shape.type) * shape.record;
  if (shape.root < 0 || shape.root >= ranks())
    throw Error(fmt::format("argument 'root' is {}, but there are ranks 0 to {}", shape.root, ranks() - 1));
  check_options(shape);
  if (kind() == CollectiveKind::barrier) {
    begin_.assign(island_.size() + 1, 0);
    return;
  }
  if (element_ == 0) throw Error("argument 'type' is none; give the type of the elements");
  if (reduces() && !defined(op(), type()))
    throw Error(fmt::format("argument 'op' is {}, which has no meaning for elements of {}", to_string(op()),
                            to_string(type())));
  const bool matrix = kind() == CollectiveKind::alltoall;
  if (!shape.counts.empty() && !has_blocks(kind()))
    throw Error(fmt::format("argument 'counts' is given, but {} has no blocks; give 'count'", to_string(kind())));
  check_counts(shape, matrix ? std::int64_t{ranks()} * ranks() : ranks());
  matrix ? place_matrix() : place_blocks();
  if (has_layouts()) place_layouts();
}

void Collective::place_blocks() {
  begin_.push_back(0);
  for (int block = 0; block < ranks(); ++block) {
    if (!has_blocks(kind())) {
      // `count * (block + 1) / ranks` without its overflow.
      const std::int64_t n = ranks();
      const std::int64_t to = shape_.count / n * (block + 1) + shape_.count % n * (block + 1) / n;
      begin_.push_back(to * element_);
      continue;
    }
    const std::int64_t count = shape_.counts.empty() ? shape_.count : shape_.counts[static_cast<std::size_t>(block)];
    begin_.push_back(begin_.back() + count * element_);
    if (begin_.back() > kMostBytes) throw Error("argument 'counts' adds up to more than can be moved");
  }
}

void Collective::place_matrix() {
  const auto count = [this](int from, int to) {
    return shape_.counts.empty()
               ? shape_.count
               : shape_.counts[static_cast<std::size_t>(from) * island_.size() + static_cast<std::size_t>(to)];
  };
  sent_.assign(island_.size() * (island_.size() + 1), 0);
  received_ = sent_;
  begin_.assign(island_.size() + 1, 0);
  for (int rank = 0; rank < ranks(); ++rank) {
    for (int other = 0; other < ranks(); ++other) {
      sent_[place(rank, other + 1)] = sent_[place(rank, other)] + count(rank, other) * element_;
      received_[place(rank, other + 1)] = received_[place(rank, other)] + count(other, rank) * element_;
      if (both() && count(rank, other) != count(other, rank))
        throw Error(
            fmt::format("argument 'counts': in place, rank {} has {} elements for rank {}, which has {} for it; "
                        "they must be equal",
                        rank, count(rank, other), other, count(other, rank)));
    }
    begin_[static_cast<std::size_t>(rank) + 1] = begin(rank) + sent(rank, ranks());
    if (whole() > kMostBytes || begin(rank + 1) > kMostBytes)
      throw Error("argument 'counts' adds up to more than can be moved");
  }
}

bool rooted(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce || kind == CollectiveKind::gather ||
         kind == CollectiveKind::scatter;
}

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::allreduce || kind == CollectiveKind::reduce ||
         kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::scan || kind == CollectiveKind::exscan;
}

bool has_blocks(CollectiveKind kind) {
  return kind == CollectiveKind::allgather || kind == CollectiveKind::reduce_scatter ||
         kind == CollectiveKind::alltoall || kind == CollectiveKind::gather || kind == CollectiveKind::scatter;
}

std::int64_t Collective::cut_unit() const {
  constexpr std::int64_t kLine = 64;
  return (kLine + element_ - 1) / element_ * element_;
}

std::string Collective::name() const {
  const std::string by = shape_.own.empty() ? std::string() : fmt::format(" by {}", shape_.own);
  if (!rooted()) return std::string(to_string(kind())) + by;
  const bool gives = kind() == CollectiveKind::broadcast || kind() == CollectiveKind::scatter;
  return fmt::format("{} {} {}{}", to_string(kind()), gives ? "from" : "to", root(), by);
}

std::vector<UserRole> Collective::buffers() const {
  if (kind() == CollectiveKind::barrier) return {};
  if (both()) return {{"data", Role::inout}};
  // What a root reduces in place it both gives and gets.
  const bool gives = shape_.in_place && kind() == CollectiveKind::reduce;
  return {{"in", Role::input}, {"out", gives ? Role::inout : Role::output}};
}

std::int64_t Collective::bytes_of(int rank, int buffer) const {
  const bool is_root = rank == root();
  const bool is_in = buffer == in();
  const bool absent = rooted() && in_place(rank);  // the side that a root in place does without
  switch (kind()) {
    case CollectiveKind::barrier:
      return 0;
    case CollectiveKind::broadcast:
    case CollectiveKind::allreduce:
    case CollectiveKind::scan:
    case CollectiveKind::exscan:
      return whole();
    case CollectiveKind::reduce:
      if (is_in) return absent ? 0 : whole();
      return is_root ? whole() : 0;
    case CollectiveKind::allgather:
      return is_in && !both() ? block(rank) : whole();
    case CollectiveKind::reduce_scatter:
      return is_in ? whole() : block(rank);
    case CollectiveKind::alltoall:
      return is_in ? sent(rank, ranks()) : received(ranks(), rank);
    case CollectiveKind::gather:
      if (is_in) return absent ? 0 : block(rank);
      return is_root ? whole() : 0;
    case CollectiveKind::scatter:
      if (is_in) return is_root ? whole() : 0;
      return absent ? 0 : block(rank);
  }
  return 0;
}

namespace {

// The expectations of one rank's plan, source by source.
class Promises {
 public:
  Promises(const Collective& c, Composer& composer) : c_(c), composer_(composer), me_(composer.problem().rank) {}

  void copied(int from, Place src, Place dst, std::int64_t bytes) { add(from, src, dst, bytes, DType::none, false); }

  // What ranks `first` to `last` give, combined at `dst`: the value of the first, and the others behind it. In place
  // the value of the first may lie there already.
  void combined(int first, int last, Place dst, std::int64_t offset, std::int64_t bytes, bool in_order) {
    const Place own = c_.own(me_);
    const bool lies_there = me_ == first && own.buffer == dst.buffer && own.offset + offset == dst.offset;
    if (!lies_there) copied(first, from(first, offset), dst, bytes);
    for (int rank = first + 1; rank <= last; ++rank) add(rank, from(rank, offset), dst, bytes, c_.type(), in_order);
  }

 private:
  Place from(int rank, std::int64_t offset) const {
    const Place own = c_.own(rank);
    return {own.buffer, own.offset + offset};
  }

  void add(int from, Place src, Place dst, std::int64_t bytes, DType type, bool in_order) {
    if (bytes == 0) return;
    const std::vector<StridedCopy> copies = c_.copies(from, src, me_, dst, bytes);
    composer_.builder().expect(composer_.user_buffer(from, src.buffer), composer_.user_buffer(me_, dst.buffer), copies,
                               type, type == DType::none ? ReduceOp::sum : c_.op(), in_order);
  }

  const Collective& c_;
  Composer& composer_;
  int me_;
};

}  // namespace

void promise(const Collective& c, Composer& composer) {
  const int me = composer.problem().rank;
  const int last = c.ranks() - 1;
  Promises promises(c, composer);
  switch (c.kind()) {
    case CollectiveKind::barrier:
      return;
    case CollectiveKind::broadcast:
      if (me != c.root()) promises.copied(c.root(), {c.out(), 0}, {c.out(), 0}, c.whole());
      return;
    case CollectiveKind::allreduce:
      return promises.combined(0, last, {c.out(), 0}, 0, c.whole(), c.shape().ordered);
    case CollectiveKind::reduce:
      if (me == c.root()) promises.combined(0, last, {c.out(), 0}, 0, c.whole(), c.shape().ordered);
      return;
    case CollectiveKind::reduce_scatter:
      return promises.combined(0, last, {c.out(), 0}, c.begin(me), c.block(me), c.shape().ordered);
    case CollectiveKind::scan:
      return promises.combined(0, me, {c.out(), 0}, 0, c.whole(), true);
    case CollectiveKind::exscan:
      if (me > 0) promises.combined(0, me - 1, {c.out(), 0}, 0, c.whole(), true);
      return;
    case CollectiveKind::allgather:
      for (int r = 0; r <= last; ++r)
        if (!c.both() || r != me)
          promises.copied(r, {c.in(), c.both() ? c.begin(r) : 0}, {c.out(), c.begin(r)}, c.block(r));
      return;
    case CollectiveKind::alltoall:
      for (int r = 0; r <= last; ++r)
        if (!c.both() || r != me)
          promises.copied(r, {c.in(), c.sent(r, me)}, {c.out(), c.received(r, me)}, c.block(r, me));
      return;
    case CollectiveKind::gather:
      for (int r = 0; r <= last && me == c.root(); ++r)
        if (!c.in_place(r)) promises.copied(r, {c.in(), 0}, {c.out(), c.begin(r)}, c.block(r));
      return;
    case CollectiveKind::scatter:
      if (!c.in_place(me)) promises.copied(c.root(), {c.in(), c.begin(me)}, {c.out(), 0}, c.block(me));
      return;
  }
}

}  // namespace tasuki
