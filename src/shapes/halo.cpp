// Halo: see halo.hpp.
#include "shapes/halo.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "grid/placement.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

// More than a field has on any rank: its pieces stay together, so that paths can treat them together.
constexpr std::int64_t kPiecesPerField = std::int64_t{1} << 48;

// The order in memory of a field that is in C order.
MemoryOrder c_order(const Placement& placement, const HaloBuffer& field, int rank) {
  const std::vector<std::int64_t> extents = memory_extents(placement, field, rank);
  MemoryOrder order;
  std::int64_t stride = field.element_bytes;
  for (std::size_t d = extents.size(); d-- > 0; stride *= extents[d]) order.strides[d] = stride;
  return order;
}

// As `cells_of`, but from `at` down in the dimensions that are mirrored.
Layout mirrored_cells_of(const Placement& placement, const HaloBuffer& field, int rank, const Piece& piece) {
  MemoryOrder order = field.orders ? (*field.orders)[static_cast<std::size_t>(rank)] : c_order(placement, field, rank);
  for (std::size_t d = 0; d < kMaxDims; ++d) {
    if (!piece.mirrored[d]) continue;
    order.origin += 2 * piece.owner_at[d] * order.strides[d];
    order.strides[d] = -order.strides[d];
  }
  return box_layout(order, field.element_bytes, placement.ndims(), piece.owner_at, piece.count);
}

Layout cells_of(const Placement& placement, const HaloBuffer& field, int rank, const Index& at, const Index& count) {
  if (field.orders)
    return box_layout((*field.orders)[static_cast<std::size_t>(rank)], field.element_bytes, placement.ndims(), at,
                      count);
  const std::vector<std::int64_t> extents = memory_extents(placement, field, rank);
  return Layout::subarray(extents, std::span(count.data(), extents.size()), std::span(at.data(), extents.size()),
                          Layout::bytes(field.element_bytes));
}

// What is wrong with the edges of dimension d; empty: nothing.
std::string complaint_about_edges(const HaloBuffer& field, const Placement& placement, int d) {
  const auto i = static_cast<std::size_t>(d);
  for (const auto& [edge, width, side] : {std::tuple{field.edges.lo[i], field.width.lo[i], "below"},
                                          std::tuple{field.edges.hi[i], field.width.hi[i], "above"}}) {
    if (edge.mirror == Edge::Mirror::none) continue;
    if (d >= placement.ndims())
      return fmt::format("option 'edges' mirrors dimension {} of field {}, whose grid has {}", d, field.name,
                         placement.ndims());
    if (placement.cut.periodic[i])
      return fmt::format(
          "option 'edges' mirrors field {} in dimension {}, which is periodic and so has no edge; make the grid with "
          "periodic = false there, or leave the dimension out",
          field.name, d);
    const std::int64_t most = placement.cut.extents[i] - (edge.mirror == Edge::Mirror::cell ? 1 : 0);
    if (width > most)
      return fmt::format(
          "option 'edges' mirrors {} cells of field {} {} dimension {}, but the grid has {} that the mirror shows; "
          "give a "
          "smaller width",
          width, field.name, side, d, most);
  }
  return {};
}

}  // namespace

std::vector<std::int64_t> memory_extents(const Placement& placement, const HaloBuffer& field, int rank) {
  const Box box = placement.owned(rank);
  std::vector<std::int64_t> extents;
  for (int d = 0; d < box.ndims; ++d) {
    const auto i = static_cast<std::size_t>(d);
    extents.push_back(box.extent(d) + field.shadow.lo[i] + field.shadow.hi[i]);
  }
  // Where there are no cells there are no rows to pad.
  if (std::find(extents.begin(), extents.end(), 0) == extents.end()) extents.back() += field.pad;
  return extents;
}

namespace {

// What is wrong with cuts for a grid; empty: nothing.
std::string complaint_about(const Cuts& cuts, const Placement& placement) {
  const std::vector<std::int64_t>& extents = placement.cut.extents;
  if (cuts.size() > extents.size())
    return fmt::format("option 'cuts' has {} dimensions, but a grid has {}", cuts.size(), extents.size());
  for (std::size_t d = 0; d < cuts.size(); ++d) {
    const auto& mine = cuts[d];
    const bool inside = mine.empty() || (mine.front() >= 0 && mine.back() <= extents[d]);
    if (!std::is_sorted(mine.begin(), mine.end()) || !inside)
      return fmt::format("option 'cuts' is {} in dimension {}; it must be ascending, from 0 to {}",
                         fmt::join(mine, ","), d, extents[d]);
  }
  return {};
}

// What is wrong with a field's part in a halo; empty: nothing.
std::string complaint_about(const HaloBuffer& field, const Placement& placement, bool reverse) {
  for (int d = 0; d < placement.ndims(); ++d) {
    const auto i = static_cast<std::size_t>(d);
    const auto& [width, shadow] = std::pair{field.width, field.shadow};
    if (width.lo[i] < 0 || width.hi[i] < 0 || width.lo[i] > shadow.lo[i] || width.hi[i] > shadow.hi[i])
      return fmt::format(
          "width {}/{} (below/above) of field {} in dimension {} does not fit its shadow {}/{}; give a width "
          "from 0 to the shadow, or make the field with a wider shadow",
          width.lo[i], width.hi[i], field.name, d, shadow.lo[i], shadow.hi[i]);
  }
  if (reverse && field.dtype == DType::none)
    return fmt::format("reverse needs numbers to add, but the elements of field {} ({} bytes each) are not", field.name,
                       field.element_bytes);
  bool negates = false;
  for (int d = 0; d < kMaxDims; ++d) {
    if (std::string wrong = complaint_about_edges(field, placement, d); !wrong.empty()) return wrong;
    const auto i = static_cast<std::size_t>(d);
    negates = negates || field.edges.lo[i].negates || field.edges.hi[i].negates;
  }
  if (negates && !has_sign(field.dtype))
    return fmt::format(
        "option 'edges' changes the sign of field {}, whose elements ({} bytes each) are no numbers that have one",
        field.name, field.element_bytes);
  if (negates && reverse)
    return fmt::format(
        "option 'edges' changes the sign of field {}, which reverse cannot do: it adds; give face or "
        "cell, and subtract such shadows yourself",
        field.name);
  return {};
}

template <class Fields, class NameOf>
std::string halo_name(const Fields& fields, bool reverse, NameOf&& name_of) {
  std::vector<std::string> names;
  for (const auto& field : fields) names.push_back(name_of(field));
  return fmt::format("{} {}", reverse ? "reverse halo" : "halo", fmt::join(names, ","));
}

}  // namespace

HaloMoves::HaloMoves(const Machine& machine, std::vector<const Placement*> placements, std::vector<HaloBuffer> fields,
                     bool corners, bool reverse, const Cuts& cuts)
    : placements_(std::move(placements)), fields_(std::move(fields)), reverse_(reverse) {
  std::set<std::string> taken;
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    std::string name = fields_[f].name;
    for (std::size_t n = f; !taken.insert(name).second; ++n) name = fmt::format("{}#{}", fields_[f].name, n);
    names_.push_back(std::move(name));
    geometry_.emplace_back(*placements_[f], fields_[f].width, fields_[f].shadow, corners, cuts, fields_[f].edges);
  }
  if (decided_by_directions(machine)) busiest_ = std::make_shared<const Problem>(problem(busiest(machine)));
}

// The rank that sends most within its island, of equals the one that sends most at all.
int HaloMoves::busiest(const Machine& machine) const {
  std::pair<Wide, Wide> most{-1, -1};
  int found = 0;
  for (int rank = 0; rank < machine.size(); ++rank) {
    std::pair<Wide, Wide> sent{0, 0};
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      for (const Piece& piece : geometry_[f].pieces(rank)) {
        const int to = reverse_ ? piece.owner : piece.receiver;
        if (to == rank || (reverse_ ? piece.receiver : piece.owner) != rank) continue;
        Wide bytes = fields_[f].element_bytes;
        for (int d = 0; d < geometry_[f].ndims(); ++d) bytes *= piece.count[static_cast<std::size_t>(d)];
        sent.second += bytes;
        if (machine.same_island(rank, to)) sent.first += bytes;
      }
    }
    if (sent <= most) continue;
    most = sent;
    found = rank;
  }
  return found;
}

Problem HaloMoves::problem(int rank) const {
  Problem problem;
  problem.operation = halo_name(fields_, reverse_, [](const HaloBuffer& field) { return field.name; });
  problem.rank = rank;
  problem.busiest = busiest_;
  for (const HaloGeometry& one : geometry_) problem.directions = std::max(problem.directions, one.ndims());
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    const HaloBuffer& field = fields_[f];
    const Placement& placement = *placements_[f];
    const int index = static_cast<int>(f);
    problem.buffers.push_back({names_[f], Role::inout});
    for (const Piece& piece : geometry_[f].pieces(rank)) {
      Move move;
      move.seq = index * kPiecesPerField + piece.seq;
      move.src = move.dst = index;
      move.label = fmt::format("{} {}", names_[f], piece.direction);
      move.round = piece.round;
      move.direction = static_cast<int>(piece.direction.find_first_not_of('0'));
      const bool mirrored = std::ranges::count(piece.mirrored, true) > 0;
      const Layout own = mirrored ? mirrored_cells_of(placement, field, piece.owner, piece)
                                  : cells_of(placement, field, piece.owner, piece.owner_at, piece.count);
      const Layout shadow = cells_of(placement, field, piece.receiver, piece.receiver_at, piece.count);
      move.src_rank = reverse_ ? piece.receiver : piece.owner;
      move.dst_rank = reverse_ ? piece.owner : piece.receiver;
      move.copies = reverse_ ? zip(shadow, own) : zip(own, shadow);
      for (auto& copy : move.copies) copy = reordered(copy);
      if (reverse_ || piece.negated) move.add = field.dtype;
      if (piece.negated) move.op = ReduceOp::negate;
      problem.moves.push_back(std::move(move));
    }
  }
  mark_mutual(problem.moves);
  return problem;
}

std::string HaloOfRank::name() const {
  return halo_name(fields_, reverse_, [](const FieldOfRank& field) { return field.shape.name; });
}

Agreed HaloOfRank::agreed() const {
  const auto truth = [](bool is) { return is ? "true" : "false"; };
  Agreed all;
  all.reserve(7 + 4 * fields_.size());
  all.emplace_back("fields", fmt::format("{}", fmt::join(names(), ",")));
  all.emplace_back("number of fields", std::to_string(fields_.size()));
  all.emplace_back("corners", truth(corners_));
  all.emplace_back("reverse", truth(reverse_));
  all.emplace_back("alternating", truth(alternating_));
  all.emplace_back("cuts", fmt::format("{}", cuts_));
  all.emplace_back("edges", edges_);
  for (const FieldOfRank& field : fields_) {
    const HaloBuffer& shape = field.shape;
    const int dims = field.placement->ndims();
    all.emplace_back("width of field " + shape.name,
                     fmt::format("{}/{}", fmt::join(shape.width.lo.begin(), shape.width.lo.begin() + dims, ","),
                                 fmt::join(shape.width.hi.begin(), shape.width.hi.begin() + dims, ",")));
    all.emplace_back("field " + shape.name, fmt::format("the context's object {}", field.number));
    all.emplace_back("element size of field " + shape.name, std::to_string(shape.element_bytes));
    all.emplace_back("current copy of field " + shape.name, std::to_string(field.current));
  }
  return all;
}

std::vector<std::string> HaloOfRank::names() const {
  std::vector<std::string> all;
  for (const FieldOfRank& field : fields_) all.push_back(field.shape.name);
  return all;
}

std::string HaloOfRank::complaint(const Machine& /*machine*/) const {
  std::vector<Edges> edges;
  try {
    edges = edges_from(edges_, names());
  } catch (const Error& error) {
    return error.what();
  }
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    const FieldOfRank& field = fields_[f];
    if (field.freed) return fmt::format("field {} has been freed", field.shape.name);
    HaloBuffer shape = field.shape;
    shape.edges = edges[f];
    std::string wrong = complaint_about(shape, *field.placement, reverse_);
    if (wrong.empty()) wrong = complaint_about(cuts_, *field.placement);
    if (!wrong.empty()) return wrong;
  }
  return complaint_about_memory();
}

std::string HaloOfRank::complaint_about_memory() const {
  const auto overlap = [](const FieldOfRank& a, const std::byte* at_a, const FieldOfRank& b, const std::byte* at_b) {
    if (at_a >= at_b + b.bytes || at_b >= at_a + a.bytes || a.bytes == 0 || b.bytes == 0) return false;
    if (!a.shape.orders && !b.shape.orders) return true;
    const Layout layouts[] = {a.cells, b.cells};
    const std::int64_t counts[] = {1, 1};
    const std::int64_t places[] = {0, at_b - at_a};
    return Layout::structure(counts, places, layouts).overlaps();
  };
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const FieldOfRank& a = fields_[i];
    if (a.foreign)
      return fmt::format("field {} belongs to another context than field {}", a.shape.name, fields_[0].shape.name);
    for (std::size_t j = 0; j < i; ++j) {
      const FieldOfRank& b = fields_[j];
      for (const std::byte* p : a.copies)
        for (const std::byte* q : b.copies)
          if (overlap(a, p, b, q))
            return fmt::format(
                "fields {} and {} overlap in memory (or are the same field twice): their shadows would be written "
                "twice",
                a.shape.name, b.shape.name);
    }
  }
  return {};
}

Problem HaloOfRank::problem(const Machine& machine) const {
  std::vector<const Placement*> placements;
  std::vector<HaloBuffer> buffers;
  for (const FieldOfRank& field : fields_) {
    placements.push_back(field.placement);
    buffers.push_back(field.shape);
  }
  const std::vector<Edges> edges = edges_from(edges_, names());
  for (std::size_t f = 0; f < edges.size(); ++f) buffers[f].edges = edges[f];
  return HaloMoves(machine, std::move(placements), std::move(buffers), corners_, reverse_, cuts_).problem(rank_);
}

namespace {

HaloBuffer buffer_of(const FieldShape& field, const Edges& edges, const Placement& placement, bool reverse) {
  if (field.name.empty()) throw Error("a field has no name; plans name the field");
  if (field.element_bytes < 1)
    throw Error(
        fmt::format("field {}: the element has {} bytes; it must have at least 1", field.name, field.element_bytes));
  if (field.copies < 1 || field.copies > 2)
    throw Error(fmt::format("field {}: argument 'copies' is {}; it must be 1 or 2", field.name, field.copies));
  if (field.pad < 0)
    throw Error(fmt::format("field {}: argument 'pad' is {}; it must be 0 or more", field.name, field.pad));
  HaloBuffer buffer{field.name, field.element_bytes, field.dtype, field.width, field.shadow, field.pad};
  buffer.edges = edges;
  if (const std::string wrong = complaint_about(buffer, placement, reverse); !wrong.empty()) throw Error(wrong);
  return buffer;
}

class JointHalo final : public EachRank {
 public:
  JointHalo(const Machine& machine, Placement placement, std::vector<HaloBuffer> fields, HaloShape shape)
      : placement_(std::move(placement)),
        fields_(std::move(fields)),
        shape_(std::move(shape)),
        moves_(machine, std::vector<const Placement*>(fields_.size(), &placement_), fields_, shape_.corners,
               shape_.reverse, shape_.cuts) {}

  std::vector<BufferFact> facts(int rank) const override {
    std::vector<BufferFact> facts;
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      std::int64_t bytes = fields_[f].element_bytes;
      for (const std::int64_t extent : memory_extents(placement_, fields_[f], rank)) bytes *= extent;
      const FieldShape& field = shape_.fields[f];
      BufferFact& fact = facts.emplace_back(allocated(bytes, field.memory, field.shared));
      fact.copies = field.copies;
      fact.ring = shape_.alternating && field.copies > 1 ? 2 : 1;
    }
    return facts;
  }

 private:
  Problem problem_of(int rank) const override { return moves_.problem(rank); }

  Placement placement_;
  std::vector<HaloBuffer> fields_;
  HaloShape shape_;
  HaloMoves moves_;
};

}  // namespace

std::shared_ptr<const JointShape> joint(const Machine& machine, const HaloShape& halo) {
  if (halo.fields.empty()) throw Error("Halo: argument 'fields' is empty; give at least one field");
  Placement placement = placed(halo.extents, halo.grid, machine);
  std::vector<std::string> names;
  for (const FieldShape& field : halo.fields) names.push_back(field.name);
  const std::vector<Edges> edges = edges_from(halo.edges, names);
  std::vector<HaloBuffer> fields;
  for (const FieldShape& field : halo.fields) {
    fields.push_back(buffer_of(field, edges[fields.size()], placement, halo.reverse));
    check_gpus(machine, field.memory);
  }
  if (const std::string wrong = complaint_about(halo.cuts, placement); !wrong.empty()) throw Error("Halo: " + wrong);
  return std::make_shared<const JointHalo>(machine, std::move(placement), std::move(fields), halo);
}

}  // namespace tasuki
