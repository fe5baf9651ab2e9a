// The number types of reductions: their names and sizes.
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "tasuki/error.hpp"
#include "tasuki/strided_copy.hpp"

namespace tasuki {
namespace {

struct Entry {
  DType type;
  std::string_view name;
  std::int64_t bytes;
};
constexpr Entry kTypes[] = {
    {DType::none, "none", 0}, {DType::i8, "i8", 1},   {DType::i16, "i16", 2}, {DType::i32, "i32", 4},
    {DType::i64, "i64", 8},   {DType::u8, "u8", 1},   {DType::u16, "u16", 2}, {DType::u32, "u32", 4},
    {DType::u64, "u64", 8},   {DType::f32, "f32", 4}, {DType::f64, "f64", 8},
};

const Entry& entry(DType type) {
  for (const Entry& e : kTypes)
    if (e.type == type) return e;
  throw Error(fmt::format("DType: {} is no number type; use one of the enumerators", static_cast<int>(type)));
}

}  // namespace

std::string_view to_string(DType type) {
  return entry(type).name;
}

std::int64_t size_of(DType type) {
  return entry(type).bytes;
}

DType dtype_from_string(std::string_view name) {
  std::string known;
  for (const Entry& e : kTypes) {
    if (e.name == name) return e.type;
    known += fmt::format(" {}", e.name);
  }
  throw Error(fmt::format("dtype_from_string: '{}' is no number type; known are{}", name, known));
}

}  // namespace tasuki
