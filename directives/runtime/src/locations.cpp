// See locations.hpp.
#include "locations.hpp"

#include <cstring>
#include <string>

#include "tasuki/error.hpp"

namespace tasuki::xmp {

namespace {

template <class T>
int best_as(const std::byte* all, int nodes, std::int64_t stride, std::int64_t element, bool greatest, bool last) {
  const auto value = [&](int node) {
    T one;
    std::memcpy(&one, all + node * stride + element * static_cast<std::int64_t>(sizeof(T)), sizeof one);
    return one;
  };
  const auto better = [&](T a, T b) {  // not less, and nothing is better than a NaN
    if (a != a || b != b) return a != a && b == b;
    return greatest ? a > b : a < b;
  };
  int best = 0;
  for (int node = 1; node < nodes; ++node) {
    const T a = value(node);
    const T b = value(best);
    if (better(a, b) || (last && !better(b, a))) best = node;
  }
  return best;
}

}  // namespace

int best_of(const std::byte* all, int nodes, std::int64_t stride, std::int64_t element, DType type, bool greatest,
            bool last) {
  switch (type) {
    case DType::i8:
      return best_as<std::int8_t>(all, nodes, stride, element, greatest, last);
    case DType::i16:
      return best_as<std::int16_t>(all, nodes, stride, element, greatest, last);
    case DType::i32:
      return best_as<std::int32_t>(all, nodes, stride, element, greatest, last);
    case DType::i64:
      return best_as<std::int64_t>(all, nodes, stride, element, greatest, last);
    case DType::u8:
      return best_as<std::uint8_t>(all, nodes, stride, element, greatest, last);
    case DType::u16:
      return best_as<std::uint16_t>(all, nodes, stride, element, greatest, last);
    case DType::u32:
      return best_as<std::uint32_t>(all, nodes, stride, element, greatest, last);
    case DType::u64:
      return best_as<std::uint64_t>(all, nodes, stride, element, greatest, last);
    case DType::f32:
      return best_as<float>(all, nodes, stride, element, greatest, last);
    case DType::f64:
      return best_as<double>(all, nodes, stride, element, greatest, last);
    default:
      throw Error("values of type " + std::string(to_string(type)) + " have no order");
  }
}

}  // namespace tasuki::xmp
