// Reading the arguments of collectives: see collective_arguments.hpp.
#include "api/collective_arguments.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

namespace tasuki::api {

namespace {

static_assert(TASUKI_F16 == static_cast<int>(DType::f16) && TASUKI_C128 == static_cast<int>(DType::c128) &&
              TASUKI_F32_I32 == static_cast<int>(DType::f32_i32) && TASUKI_I64_I64 == static_cast<int>(DType::i64_i64));
static_assert(TASUKI_SUM == static_cast<int>(ReduceOp::sum) && TASUKI_MAX == static_cast<int>(ReduceOp::max) &&
              TASUKI_LAND == static_cast<int>(ReduceOp::land) && TASUKI_OWN == static_cast<int>(ReduceOp::own));

constexpr std::size_t kFirstCollective = offsetof(tasuki_collective_options, where);
constexpr std::size_t kFirstBroadcast = offsetof(tasuki_broadcast_options, algorithm);
constexpr std::size_t kFirstTransfer = sizeof(tasuki_transfer_options);

// What the options of broadcast and of the other collectives have both.
template <class From>
CollectiveOptions common_from(const From& from) {
  CollectiveOptions to;
  set_common(to, from);
  if (from.algorithm != nullptr) to.algorithm = from.algorithm;
  to.trees = from.trees;
  to.arity = from.arity;
  to.chunk = from.chunk;
  return to;
}

}  // namespace

CollectiveOptions collective_options_from(const tasuki_collective_options* options) {
  const tasuki_collective_options from = read_options(options, TASUKI_COLLECTIVE_OPTIONS_INIT, kFirstCollective);
  CollectiveOptions to = common_from(from);
  to.ordered = from.ordered != 0;
  return to;
}

Memory where_from(const tasuki_collective_options* options) {
  const int where = read_options(options, TASUKI_COLLECTIVE_OPTIONS_INIT, kFirstCollective).where;
  if (where != TASUKI_HOST && where != TASUKI_DEVICE)
    throw Failure(TASUKI_BAD_ARGUMENT,
                  fmt::format("option 'where' is {}; it must be TASUKI_HOST ({}) or TASUKI_DEVICE ({})", where,
                              TASUKI_HOST, TASUKI_DEVICE));
  return where == TASUKI_DEVICE ? Memory::device : Memory::host;
}

BroadcastOptions broadcast_options_from(const tasuki_broadcast_options* options) {
  return common_from(read_options(options, TASUKI_BROADCAST_OPTIONS_INIT, kFirstBroadcast));
}

OperationOptions transfer_options_from(const tasuki_transfer_options* options) {
  OperationOptions to;
  set_common(to, read_options(options, TASUKI_TRANSFER_OPTIONS_INIT, kFirstTransfer));
  return to;
}

DType collective_type_from(int type, bool combined) {
  if (type < TASUKI_BYTES || type > TASUKI_I64_I64)
    throw Failure(TASUKI_BAD_ARGUMENT, fmt::format("argument 'type' is {}; it must be a tasuki_type, {} to {}", type,
                                                   static_cast<int>(TASUKI_BYTES), static_cast<int>(TASUKI_I64_I64)));
  if (type != TASUKI_BYTES) return static_cast<DType>(type);
  if (combined)
    throw Failure(TASUKI_BAD_ARGUMENT, "argument 'type' is TASUKI_BYTES, which cannot be combined; give a number's");
  return DType::u8;
}

Operator operator_from(int op, const tasuki_collective_options* options) {
  if (op < TASUKI_SUM || op > TASUKI_OWN)
    throw Failure(TASUKI_BAD_ARGUMENT, fmt::format("argument 'op' is {}; it must be a tasuki_op, {} to {}", op,
                                                   static_cast<int>(TASUKI_SUM), static_cast<int>(TASUKI_OWN)));
  const auto from = read_options(options, TASUKI_COLLECTIVE_OPTIONS_INIT, kFirstCollective);
  if (op != TASUKI_OWN) {
    if (from.combine != nullptr)
      throw Failure(TASUKI_BAD_ARGUMENT, "option 'combine' is given, but argument 'op' is not TASUKI_OWN");
    return static_cast<ReduceOp>(op);
  }
  if (from.combine == nullptr || from.combine_name == nullptr)
    throw Failure(TASUKI_BAD_ARGUMENT, "argument 'op' is TASUKI_OWN; give the options 'combine' and 'combine_name'");
  return {from.combine_name,
          [function = from.combine, data = from.combine_data](const void* right, void* left, std::int64_t count) {
            function(right, left, count, data);
          },
          from.does_not_commute == 0};
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

}  // namespace tasuki::api
