// The element types and operators of reductions: their names and sizes, and which of them go together.
#include "tasuki/dtype.hpp"

#include <fmt/format.h>

#include <string>

#include "tasuki/error.hpp"

namespace tasuki {
namespace {

enum class Kind : std::uint8_t { none, integer, real, complex, pair };

struct TypeEntry {
  DType value;
  std::string_view name;
  std::int64_t bytes;
  Kind kind;
};
constexpr TypeEntry kTypes[] = {
    {DType::none, "none", 0, Kind::none},        {DType::i8, "i8", 1, Kind::integer},
    {DType::i16, "i16", 2, Kind::integer},       {DType::i32, "i32", 4, Kind::integer},
    {DType::i64, "i64", 8, Kind::integer},       {DType::u8, "u8", 1, Kind::integer},
    {DType::u16, "u16", 2, Kind::integer},       {DType::u32, "u32", 4, Kind::integer},
    {DType::u64, "u64", 8, Kind::integer},       {DType::f32, "f32", 4, Kind::real},
    {DType::f64, "f64", 8, Kind::real},          {DType::f16, "f16", 2, Kind::real},
    {DType::bf16, "bf16", 2, Kind::real},        {DType::c64, "c64", 8, Kind::complex},
    {DType::c128, "c128", 16, Kind::complex},    {DType::f32_i32, "f32_i32", 8, Kind::pair},
    {DType::f64_i32, "f64_i32", 16, Kind::pair}, {DType::i32_i32, "i32_i32", 8, Kind::pair},
    {DType::i64_i32, "i64_i32", 16, Kind::pair}, {DType::f64_i64, "f64_i64", 16, Kind::pair},
    {DType::i64_i64, "i64_i64", 16, Kind::pair},
};

struct OpEntry {
  ReduceOp value;
  std::string_view name;
};
constexpr OpEntry kOps[] = {
    {ReduceOp::sum, "sum"},   {ReduceOp::product, "product"}, {ReduceOp::min, "min"},
    {ReduceOp::max, "max"},   {ReduceOp::band, "band"},       {ReduceOp::bor, "bor"},
    {ReduceOp::bxor, "bxor"}, {ReduceOp::land, "land"},       {ReduceOp::lor, "lor"},
    {ReduceOp::lxor, "lxor"}, {ReduceOp::minloc, "minloc"},   {ReduceOp::maxloc, "maxloc"},
    {ReduceOp::own, "own"},   {ReduceOp::negate, "negate"},
};

template <class Entry, std::size_t N>
constexpr bool in_order(const Entry (&entries)[N]) {
  for (std::size_t i = 0; i < N; ++i)
    if (static_cast<std::size_t>(entries[i].value) != i) return false;
  return true;
}
static_assert(in_order(kTypes) && in_order(kOps));

template <class Entry, std::size_t N, class Enum>
const Entry* find(const Entry (&entries)[N], Enum value) {
  const auto i = static_cast<std::size_t>(value);
  return i < N ? &entries[i] : nullptr;
}

const TypeEntry& entry(DType type) {
  if (const TypeEntry* e = find(kTypes, type)) return *e;
  throw Error(fmt::format("DType: {} is no number type; use one of the enumerators", static_cast<int>(type)));
}

template <class Entry, std::size_t N>
auto named(const Entry (&entries)[N], std::string_view name, std::string_view function, std::string_view what) {
  std::string known;
  for (const Entry& e : entries) {
    if (e.name == name) return e.value;
    known += fmt::format(" {}", e.name);
  }
  throw Error(fmt::format("{}: '{}' is no {}; known are{}", function, name, what, known));
}

}  // namespace

std::string_view to_string(DType type) {
  return entry(type).name;
}

std::string_view to_string(ReduceOp op) {
  if (const OpEntry* e = find(kOps, op)) return e->name;
  throw Error(fmt::format("ReduceOp: {} is no operator; use one of the enumerators", static_cast<int>(op)));
}

std::int64_t size_of(DType type) {
  return entry(type).bytes;
}

DType dtype_from_string(std::string_view name) {
  return named(kTypes, name, "dtype_from_string", "number type");
}

ReduceOp reduce_op_from_string(std::string_view name) {
  return named(kOps, name, "reduce_op_from_string", "operator of reductions");
}

bool defined(ReduceOp op, DType type) {
  const TypeEntry* e = find(kTypes, type);
  const Kind kind = e == nullptr ? Kind::none : e->kind;
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::product:
      return kind == Kind::integer || kind == Kind::real || kind == Kind::complex;
    case ReduceOp::min:
    case ReduceOp::max:
      return kind == Kind::integer || kind == Kind::real;
    case ReduceOp::band:
    case ReduceOp::bor:
    case ReduceOp::bxor:
    case ReduceOp::land:
    case ReduceOp::lor:
    case ReduceOp::lxor:
      return kind == Kind::integer;
    case ReduceOp::minloc:
    case ReduceOp::maxloc:
      return kind == Kind::pair;
    case ReduceOp::own:
      return kind != Kind::none;
    case ReduceOp::negate:
      return false;
  }
  return false;
}

bool has_sign(DType type) {
  const TypeEntry* e = find(kTypes, type);
  if (e == nullptr) return false;
  const bool is_unsigned = type >= DType::u8 && type <= DType::u64;
  return (e->kind == Kind::integer && !is_unsigned) || e->kind == Kind::real || e->kind == Kind::complex;
}

}  // namespace tasuki
