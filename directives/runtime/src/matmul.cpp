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
#include "gpu_work.hpp"
#include "guard.hpp"
#include "matmul.hpp"
#include "objects.hpp"
#include "reflect.hpp"
#include "tasuki/device.hpp"
#include "tasuki/memory.hpp"
#include "whereabouts.hpp"
#include "world.hpp"
#include "xmp.h"

namespace tasuki::xmp {

namespace {

constexpr std::int64_t kPanel = 256;  // inner indices at a time

// Part of a factor, spread as one dimension of the result is and whole in the other.
class Panel {
 public:
  /// `spread`: the dimension that is as that of the result, 0 or 1. On GPUs collective over the result's nodes.
  Panel(const Array& result, const Array& factor, int spread, std::int64_t width, Memory where) : where_(where) {
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
    if (where == Memory::device) {
      allocate_on_gpu(array_);
      return;
    }
    std::shared_ptr<std::byte> memory = shared_alloc(world().context(), array_.bytes());
    void* const at = memory.get();
    array_.bind(Memory::host, at, std::move(memory));
  }

  Array& array() { return array_; }
  const void* data() { return array_.place(where_).memory; }

 private:
  Array array_;
  Memory where_;
};

// Where the elements that a node owns begin in a dimension of its memory; they lie one after the other.
std::int64_t first_local(const ArrayShape& shape, int d, int part) {
  if (shape.dim(d).full_shadow) return shape.begin_of(d, part);
  return shape.dim(d).shadow.below;
}

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

// A product that has been prepared: panels of the factors, what brings them here one after the other, and the sums.
// The result may be one of the factors, so it is summed in memory of its own.
class Product {
 public:
  Product(Array& c, Array& a, Array& b, Memory where)
      : where_(where),
        by_(multiply_of(c)),
        inner_(a.shape.dim(1).extent),
        width_(std::min(inner_, kPanel)),
        panel_a_(c, a, 0, width_, where),
        panel_b_(c, b, 1, width_, where) {
    if (c.number >= 0) {
      n_.rows = c.shape.owned(0, c.shape.part(0, c.at));
      n_.columns = c.shape.owned(1, c.shape.part(1, c.at));
      n_.stride_a = width_;
      n_.stride_b = n_.stride_c = n_.columns;
      const std::int64_t bytes = n_.rows * n_.columns * c.shape.element_bytes();
      if (where == Memory::device)
        on_gpu_ = gpu_memory(bytes);
      else
        on_host_.resize(static_cast<std::size_t>(bytes));
    }
    const Range rows{0, c.shape.dim(0).extent};
    const Range columns{0, c.shape.dim(1).extent};
    for (std::int64_t k = 0; k < inner_; k += width_) {
      const Range here{k, std::min(k + width_, inner_)};
      const Range some{0, here.count()};
      steps_.push_back({new_assignment("matmul", panel_a_.array(), {rows, some}, a, {rows, here}, where),
                        new_assignment("matmul", panel_b_.array(), {some, columns}, b, {here, columns}, where),
                        here.count()});
    }
  }

  std::vector<Operation> operations() const {
    std::vector<Operation> all;
    for (const Step& step : steps_) {
      all.insert(all.end(), step.first->operations.begin(), step.first->operations.end());
      all.insert(all.end(), step.second->operations.begin(), step.second->operations.end());
    }
    return all;
  }

  /// Of the result whose product it is.
  void run(Array& c) {
    std::fill(on_host_.begin(), on_host_.end(), std::byte{0});
    for (const Step& step : steps_) {
      step.first->start();
      step.second->run();
      step.first->wait();
      n_.inner = step.inner;
      if (c.number >= 0) by_(on_host_.data(), panel_a_.data(), panel_b_.data(), n_);
    }
    if (c.number < 0) return;
    const Result to(c, where_);
    const std::int64_t bytes = n_.columns * c.shape.element_bytes();
    for (std::int64_t i = 0; i < n_.rows; ++i) std::copy_n(on_host_.data() + i * bytes, bytes, to.first + i * to.pitch);
  }

  void run(Array& c, Stream stream) {
    bool more = false;
    for (const Step& step : steps_) {
      step.first->run(stream);
      step.second->run(stream);
      n_.inner = step.inner;
      if (c.number >= 0) gpu_multiply(c.type, on_gpu_.get(), panel_a_.data(), panel_b_.data(), n_, more, stream);
      more = true;
    }
    if (c.number < 0) return;
    const Result to(c, where_);
    const std::int64_t bytes = n_.columns * c.shape.element_bytes();
    gpu_copy_rows(to.first, to.pitch, on_gpu_.get(), bytes, bytes, n_.rows, stream);
  }

 private:
  struct Step {
    std::shared_ptr<Work> first, second;
    std::int64_t inner;
  };
  // Where the node's elements of the result are in its memory.
  struct Result {
    Result(Array& c, Memory where) {
      const std::int64_t element = c.shape.element_bytes();
      pitch = c.shape.strides(c.at)[0] * element;
      first = static_cast<std::byte*>(c.place(where).memory) + first_local(c.shape, 0, c.shape.part(0, c.at)) * pitch +
              first_local(c.shape, 1, c.shape.part(1, c.at)) * element;
    }
    std::byte* first;
    std::int64_t pitch;
  };

  Memory where_;
  Multiply by_;
  std::int64_t inner_;
  std::int64_t width_;
  Panel panel_a_;
  Panel panel_b_;
  Extents n_;
  std::vector<std::byte> on_host_;
  std::shared_ptr<void> on_gpu_;
  std::vector<Step> steps_;  // last, so that their operations are freed before the memory
};

}  // namespace

void matmul(Array& c, Array& a, Array& b, Memory where, int queue) {
  doing_now->array = &c.name;
  doing_now->from = &a.name;
  check(c, a, b);
  std::vector<std::int64_t> numbers{5, static_cast<std::int64_t>(where), queue};
  for (Array* const one : {&c, &a, &b}) numbers.insert(numbers.end(), {one->serial, one->place(where).generation});
  const std::vector<int>& ranks = world().executing().ranks;
  numbers.insert(numbers.end(), ranks.begin(), ranks.end());
  const Key key{numbers, {}};
  auto work = world().find(key);
  if (!work) {
    std::string complaint;
    try {
      for (Array* const one : {&c, &a, &b}) (void)memory_of_array(*one, where);
    } catch (const Error& error) {
      complaint = error.what();
    }
    agree(world().context(ranks), fmt::format("matmul of {} and {} to {}", a.name, b.name, c.name), complaint);
    const auto product = std::make_shared<Product>(c, a, b, where);
    work = std::make_shared<Work>();
    work->keep.push_back(product);
    work->operations = product->operations();
    work->arrays = {c.serial, a.serial, b.serial};
    world().keep(key, ranks, work);
  }
  auto& product = *static_cast<Product*>(work->keep[0].get());
  if (where == Memory::host)
    product.run(c);
  else
    product.run(c, queue == XACC_SYNC ? nullptr : world().queue(queue));
  if (where == Memory::device && queue == XACC_SYNC) synchronize(world().context(), nullptr);
}

}  // namespace tasuki::xmp

extern "C" int xmp_matmul(xmp_desc_t c, xmp_desc_t a, xmp_desc_t b) {
  using namespace tasuki::xmp;  // NOLINT(google-build-using-namespace)
  return guarded("xmp_matmul", [&] {
    matmul(array_of(c, "c"), array_of(a, "a"), array_of(b, "b"), tasuki::Memory::host, XACC_SYNC);
  });
}
