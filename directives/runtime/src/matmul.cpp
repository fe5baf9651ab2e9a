// The language's product of matrices: panels of the factors come to the nodes that own the result's rows and columns,
// and every element is summed in the order of the inner index.
#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmove.hpp"
#include "guard.hpp"
#include "objects.hpp"
#include "tasuki/memory.hpp"
#include "world.hpp"
#include "xmp.h"

namespace tasuki::xmp {

namespace {

constexpr std::int64_t kPanel = 256;  // inner indices at a time

// Part of a factor, spread as one dimension of the result is and whole in the other.
class Panel {
 public:
  /// `spread`: the dimension that is as that of the result, 0 or 1.
  Panel(const Array& result, const Array& factor, int spread, std::int64_t width) {
    static std::int64_t serial = 0;
    array_.serial = --serial;  // those of the program's arrays are above 0
    array_.name = factor.name;
    array_.type = factor.type;
    std::vector<ArrayDim> dims(2);
    const auto d = static_cast<std::size_t>(spread);
    dims[d] = result.shape.dim(spread);
    dims[d].shadow = {};
    dims[d].full_shadow = false;
    dims[1 - d].extent = width;
    array_.shape = ArrayShape(result.shape.nodes(), result.spreads, dims, result.shape.element_bytes());
    array_.number = result.number;
    array_.at = result.at;
    std::shared_ptr<std::byte> memory = shared_alloc(world().context(), array_.bytes());
    void* const at = memory.get();
    array_.bind(Memory::host, at, std::move(memory));
  }
  ~Panel() {
    try {
      world().forget(array_.serial);
    } catch (const std::exception&) {  // it failed while it was under way, and the program has been told
    }
  }
  Panel(const Panel&) = delete;
  Panel& operator=(const Panel&) = delete;

  Array& array() { return array_; }
  const void* data() { return array_.place(Memory::host).memory; }

 private:
  Array array_;
};

// Where the elements that a node owns begin in a dimension of its memory; they lie one after the other.
std::int64_t first_local(const ArrayShape& shape, int d, int part) {
  if (shape.dim(d).full_shadow) return shape.begin_of(d, part);
  return shape.dim(d).shadow.below;
}

struct Extents {
  std::int64_t rows, inner, columns;  // here
  std::int64_t stride_c, stride_a, stride_b;
};

template <class T>
void multiply(void* c_at, const void* a_at, const void* b_at, const Extents& n) {
  auto* const c = static_cast<T*>(c_at);
  const auto* const a = static_cast<const T*>(a_at);
  const auto* const b = static_cast<const T*>(b_at);
  for (std::int64_t i = 0; i < n.rows; ++i) {
    for (std::int64_t k = 0; k < n.inner; ++k) {
      const T factor = a[i * n.stride_a + k];
      T* const row = c + i * n.stride_c;
      const T* const from = b + k * n.stride_b;
      for (std::int64_t j = 0; j < n.columns; ++j) row[j] = static_cast<T>(row[j] + factor * from[j]);
    }
  }
}

using Multiply = void (*)(void*, const void*, const void*, const Extents&);

// Integers wrap: they are multiplied without signs, of which the lower bits do not depend.
Multiply multiply_of(const Array& c) {
  switch (c.type) {
    case DType::i32:
    case DType::u32:
      return multiply<std::uint32_t>;
    case DType::i64:
    case DType::u64:
      return multiply<std::uint64_t>;
    case DType::f32:
      return multiply<float>;
    case DType::f64:
      return multiply<double>;
    case DType::c64:
      return multiply<std::complex<float>>;
    case DType::c128:
      return multiply<std::complex<double>>;
    default:
      refuse("array '{}' has elements of type {}, of which there is no product", c.name, to_string(c.type));
  }
}

void check(const Array& c, const Array& a, const Array& b) {
  for (const Array* const one : {&c, &a, &b}) {
    if (one->shape.ndims() != 2) refuse("array '{}' has {} dimensions; it must have 2", one->name, one->shape.ndims());
    if (one->type != c.type)
      refuse("array '{}' has elements of type {}, but array '{}' of type {}", one->name, to_string(one->type), c.name,
             to_string(c.type));
  }
  const auto extent = [](const Array& array, int d) { return array.shape.dim(d).extent; };
  if (extent(c, 0) != extent(a, 0) || extent(c, 1) != extent(b, 1) || extent(a, 1) != extent(b, 0))
    refuse("array '{}' is {} x {}, but '{}' is {} x {} and '{}' {} x {}, whose product it is not", c.name, extent(c, 0),
           extent(c, 1), a.name, extent(a, 0), extent(a, 1), b.name, extent(b, 0), extent(b, 1));
}

void matmul(Array& c, Array& a, Array& b) {
  check(c, a, b);
  const Multiply by = multiply_of(c);
  const std::int64_t inner = a.shape.dim(1).extent;
  const std::int64_t width = std::min(inner, kPanel);
  // The result may be one of the factors, so it is summed in memory of its own.
  Panel panel_a(c, a, 0, width);
  Panel panel_b(c, b, 1, width);
  Extents n{};
  std::int64_t element = c.shape.element_bytes();
  std::vector<std::byte> sum;
  if (c.number >= 0) {
    n.rows = c.shape.owned(0, c.shape.part(0, c.at));
    n.columns = c.shape.owned(1, c.shape.part(1, c.at));
    n.stride_a = width;
    n.stride_b = n.stride_c = n.columns;
    sum.resize(static_cast<std::size_t>(n.rows * n.columns * element));
  }
  for (std::int64_t k = 0; k < inner; k += width) {
    n.inner = std::min(width, inner - k);
    const Range some{0, n.inner};
    const Range here{k, k + n.inner};
    const Range rows{0, c.shape.dim(0).extent};
    const Range columns{0, c.shape.dim(1).extent};
    const auto first = assignment("matmul", panel_a.array(), {rows, some}, a, {rows, here}, Memory::host);
    const auto second = assignment("matmul", panel_b.array(), {some, columns}, b, {here, columns}, Memory::host);
    first->start();
    second->run();
    first->wait();
    if (c.number >= 0) by(sum.data(), panel_a.data(), panel_b.data(), n);
  }
  if (c.number < 0) return;
  const std::int64_t stride = c.shape.strides(c.at)[0];
  const std::int64_t row = first_local(c.shape, 0, c.shape.part(0, c.at));
  const std::int64_t column = first_local(c.shape, 1, c.shape.part(1, c.at));
  auto* const out = static_cast<std::byte*>(c.place(Memory::host).memory);
  const std::int64_t bytes = n.columns * element;
  for (std::int64_t i = 0; i < n.rows; ++i)
    std::copy_n(sum.data() + i * bytes, bytes, out + ((row + i) * stride + column) * element);
}

}  // namespace

}  // namespace tasuki::xmp

extern "C" int xmp_matmul(xmp_desc_t c, xmp_desc_t a, xmp_desc_t b) {
  using tasuki::xmp::array_of;
  return tasuki::xmp::guarded("xmp_matmul",
                              [&] { tasuki::xmp::matmul(array_of(c, "c"), array_of(a, "a"), array_of(b, "b")); });
}
