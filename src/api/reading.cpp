// Reading the arguments of operations: see reading.hpp.
#include "api/reading.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tasuki::api {

static_assert(TASUKI_F16 == static_cast<int>(DType::f16) && TASUKI_C128 == static_cast<int>(DType::c128) &&
              TASUKI_F32_I32 == static_cast<int>(DType::f32_i32) && TASUKI_I64_I64 == static_cast<int>(DType::i64_i64));
static_assert(TASUKI_SUM == static_cast<int>(ReduceOp::sum) && TASUKI_MAX == static_cast<int>(ReduceOp::max) &&
              TASUKI_LAND == static_cast<int>(ReduceOp::land) && TASUKI_OWN == static_cast<int>(ReduceOp::own));

DType collective_type_from(int type, bool combined) {
  if (type < TASUKI_BYTES || type > TASUKI_I64_I64)
    throw Failure(TASUKI_BAD_ARGUMENT, fmt::format("argument 'type' is {}; it must be a tasuki_type, {} to {}", type,
                                                   static_cast<int>(TASUKI_BYTES), static_cast<int>(TASUKI_I64_I64)));
  if (type != TASUKI_BYTES) return static_cast<DType>(type);
  if (combined)
    throw Failure(TASUKI_BAD_ARGUMENT, "argument 'type' is TASUKI_BYTES, which cannot be combined; give a number's");
  return DType::u8;
}

Operator operator_from(int op, const tasuki_collective_options& options) {
  if (op < TASUKI_SUM || op > TASUKI_OWN)
    throw Failure(TASUKI_BAD_ARGUMENT, fmt::format("argument 'op' is {}; it must be a tasuki_op, {} to {}", op,
                                                   static_cast<int>(TASUKI_SUM), static_cast<int>(TASUKI_OWN)));
  if (op != TASUKI_OWN) {
    if (options.combine != nullptr)
      throw Failure(TASUKI_BAD_ARGUMENT, "option 'combine' is given, but argument 'op' is not TASUKI_OWN");
    return static_cast<ReduceOp>(op);
  }
  if (options.combine == nullptr || options.combine_name == nullptr)
    throw Failure(TASUKI_BAD_ARGUMENT, "argument 'op' is TASUKI_OWN; give the options 'combine' and 'combine_name'");
  return {options.combine_name,
          [function = options.combine, data = options.combine_data](const void* right, void* left, std::int64_t count) {
            function(right, left, count, data);
          },
          options.does_not_commute == 0, options.combine_record == 0 ? 1 : options.combine_record};
}

ReduceOp reduce_op_from(int op, const char* option) {
  if (op < TASUKI_SUM || op >= TASUKI_OWN)
    throw Failure(TASUKI_BAD_ARGUMENT, fmt::format("option '{}' is {}; it must be a tasuki_op, {} to {}", option, op,
                                                   static_cast<int>(TASUKI_SUM), static_cast<int>(TASUKI_MAXLOC)));
  return static_cast<ReduceOp>(op);
}

Memory where_from(int where) {
  if (where != TASUKI_HOST && where != TASUKI_DEVICE)
    throw Failure(TASUKI_BAD_ARGUMENT,
                  fmt::format("option 'where' is {}; it must be TASUKI_HOST ({}) or TASUKI_DEVICE ({})", where,
                              TASUKI_HOST, TASUKI_DEVICE));
  return where == TASUKI_DEVICE ? Memory::device : Memory::host;
}

Neighbours neighbours_from(const tasuki_neighbours& from) {
  if (value_of(from.grid) != 0) return Neighbours(get(from.grid, "neighbours.grid"));
  for (const auto& [count, name] : {std::pair{from.to_count, "to_count"}, std::pair{from.from_count, "from_count"}})
    if (count < 0)
      throw Failure(TASUKI_BAD_ARGUMENT,
                    fmt::format("argument 'neighbours.{}' is {}; it must not be negative", name, count));
  return {list_from(from.to, from.to_count, "neighbours.to"), list_from(from.from, from.from_count, "neighbours.from")};
}

Layout layout_from(tasuki_layout layout, const std::string& argument, bool used) {
  if (!used && value_of(layout) == 0) return {};
  return get(layout, argument.c_str());
}

std::vector<Layout> layouts_from(const tasuki_layout* layouts, std::int64_t count, const char* argument, bool used) {
  std::vector<Layout> list;
  if (!used && layouts == nullptr) return list;
  if (count > 0) given(layouts, argument);
  for (std::int64_t i = 0; i < count; ++i)
    list.push_back(layout_from(layouts[i], fmt::format("{}[{}]", argument, i), used));
  return list;
}

void both_or_neither(const void* a, const char* name_a, const void* b, const char* name_b) {
  if ((a == nullptr) == (b == nullptr)) return;
  throw Failure(TASUKI_BAD_ARGUMENT, fmt::format("argument '{}' is null and '{}' is not; give both or neither",
                                                 a == nullptr ? name_a : name_b, a == nullptr ? name_b : name_a));
}

const AnyField& some_field(int count, const tasuki_field* fields) {
  if (count < 1) throw Failure(TASUKI_BAD_ARGUMENT, fmt::format("argument 'count' is {}; it must be above 0", count));
  given(fields, "fields");
  for (int i = 0; i < count; ++i)
    if (find_slot(value_of(fields[i]), Kind::field) != nullptr) return get(fields[i], "fields");
  return get(fields[0], "fields");
}

std::vector<HaloField> fields_from(int count, const tasuki_field* fields, const tasuki_width* widths) {
  std::vector<HaloField> list;
  for (int i = 0; i < count; ++i) {
    const AnyField& field = get(fields[i], fmt::format("fields[{}]", i).c_str());
    widths == nullptr ? list.emplace_back(field) : list.emplace_back(field, width_from(widths[i]));
  }
  return list;
}

std::vector<ExchangeField> exchange_cells_from(int count, const tasuki_exchange_field* fields) {
  if (count > 0) given(fields, "fields");
  std::vector<ExchangeField> list;
  for (int f = 0; f < count; ++f) {
    const tasuki_exchange_field& from = fields[f];
    if (from.cells < 0 || from.numbers < 1)
      throw Failure(TASUKI_BAD_ARGUMENT,
                    fmt::format("argument 'fields[{}]' has {} cells of {} numbers; give 0 or more of 1 or more", f,
                                from.cells, from.numbers));
    const DType type = collective_type_from(from.type, false);
    const std::string name = from.name == nullptr ? "field" : from.name;
    Cells cells = from.levels_first != 0 ? Cells::levels_first(type, from.cells, from.numbers, name)
                                         : Cells::of(type, from.cells, from.numbers, name);
    if (from.type == TASUKI_BYTES) cells.dtype = DType::none;
    list.emplace_back(from.base, std::move(cells));
  }
  return list;
}

std::vector<ExchangeEntry> exchange_entries_from(std::int64_t count, const tasuki_exchange_entry* entries, int fields) {
  if (count < 0) throw Failure(TASUKI_BAD_ARGUMENT, fmt::format("argument 'entry_count' is {}", count));
  if (count > 0) given(entries, "entries");
  std::vector<ExchangeEntry> list;
  for (std::int64_t e = 0; e < count; ++e) {
    const tasuki_exchange_entry& from = entries[e];
    ExchangeEntry& to = list.emplace_back();
    to.peer = from.peer;
    const auto read = [&](const char* name, std::int64_t cells, const std::int64_t* listed,
                          const tasuki_layout* layouts, std::vector<std::int64_t>& numbers,
                          std::vector<Layout>& bytes) {
      const std::string argument = fmt::format("entries[{}].{}", e, name);
      if (cells < 0) throw Failure(TASUKI_BAD_ARGUMENT, fmt::format("argument '{}_count' is {}", argument, cells));
      if (cells > 0) numbers.assign(given(listed, argument.c_str()), listed + cells);
      if (layouts != nullptr) bytes = layouts_from(layouts, fields, (argument + "_layouts").c_str(), true);
    };
    read("send", from.send_count, from.send, from.send_layouts, to.send, to.send_layouts);
    read("receive", from.receive_count, from.receive, from.receive_layouts, to.receive, to.receive_layouts);
  }
  return list;
}

ArraySide array_side_from(const tasuki_distributed& from, const char* argument) {
  const auto member = [&](const char* name) { return fmt::format("{}.{}", argument, name); };
  if (from.ndims < 1 || from.ndims > kMaxDims)
    throw Failure(TASUKI_BAD_ARGUMENT,
                  fmt::format("argument '{}' is {}; 1 to {} are possible", member("ndims"), from.ndims, kMaxDims));
  ArraySide to;
  to.array.extents = list_from(from.extents, from.ndims, member("extents").c_str());
  given(from.split, member("split").c_str());
  for (int d = 0; d < from.ndims; ++d) {
    const int kind = from.kinds == nullptr ? TASUKI_BLOCK : from.kinds[d];
    DimDistribution& dim = to.array.dims.emplace_back(DimDistribution::block(from.split[d]));
    if (kind < TASUKI_BLOCK || kind > TASUKI_REPLICATED)
      throw Failure(TASUKI_BAD_ARGUMENT, fmt::format("argument '{}' has {} for dimension {}, which is no "
                                                     "tasuki_distribution",
                                                     member("kinds"), kind, d));
    if (kind == TASUKI_CYCLIC)
      dim = DimDistribution::cyclic(from.split[d], from.widths == nullptr ? 1 : from.widths[d]);
    if (kind == TASUKI_REPLICATED) dim = DimDistribution::replicated(from.split[d]);
    if (kind == TASUKI_CUTS) {
      const std::int64_t* const cuts = given(from.cuts, member("cuts").c_str())[d];
      dim = DimDistribution::between(list_from(cuts, std::int64_t{from.split[d]} + 1, member("cuts").c_str()));
    }
  }
  if (from.ranks != nullptr) to.array.ranks.assign(from.ranks, from.ranks + std::max(from.rank_count, 0));
  if (from.counts == nullptr) return to;
  for (int d = 0; d < from.ndims; ++d)
    to.sections.push_back(
        {from.starts == nullptr ? 0 : from.starts[d], from.counts[d], from.steps == nullptr ? 1 : from.steps[d]});
  return to;
}

std::vector<RedistributeArray> redistribute_arrays_from(int count, const tasuki_redistribute_array* arrays, int ndims) {
  if (count > 0) given(arrays, "arrays");
  std::vector<RedistributeArray> list;
  for (int a = 0; a < count; ++a) {
    const tasuki_redistribute_array& from = arrays[a];
    if (from.cell_bytes < 1)
      throw Failure(TASUKI_BAD_ARGUMENT,
                    fmt::format("argument 'arrays[{}].cell_bytes' is {}; it must be above 0", a, from.cell_bytes));
    MovedArray moved;
    if (from.name != nullptr) moved.name = from.name;
    for (MovedArray::Local* side : {&moved.source, &moved.target}) side->cell = Layout::bytes(from.cell_bytes);
    if (from.source_strides != nullptr) moved.source.strides.assign(from.source_strides, from.source_strides + ndims);
    if (from.target_strides != nullptr) moved.target.strides.assign(from.target_strides, from.target_strides + ndims);
    list.emplace_back(std::move(moved), from.source, from.target);
  }
  return list;
}

void check_side(const tasuki_side& side, const Context& ranks, const char* argument) {
  if (side.rank >= 0 && side.rank < ranks.size()) return;
  throw Error(fmt::format("rank {}: argument '{}.rank' is {}, but the context has ranks 0 to {}", ranks.rank(),
                          argument, side.rank, ranks.size() - 1));
}

TransferSide side_from(const tasuki_side& side, int rank, const char* argument) {
  TransferSide to;
  to.rank = side.rank;
  to.base = side.base;
  if (side.rank == rank || value_of(side.layout) != 0)
    to.layout = get(side.layout, fmt::format("{}.layout", argument).c_str());
  if (side.rank == rank && to.layout.size() > 0) given(side.base, fmt::format("{}.base", argument).c_str());
  return to;
}

void put(tasuki_operation* where, const Operation& made) {
  *where = keep<tasuki_operation>(std::make_unique<AnyOperation>(made));
}

void put(tasuki_operation* where, const Halo& made) {
  *where = keep<tasuki_operation>(std::make_unique<AnyOperation>(made));
}

}  // namespace tasuki::api
