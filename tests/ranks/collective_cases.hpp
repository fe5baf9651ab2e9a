// Collectives for tests: what is to be done, the memory and data for it, and what plain loops say must come out.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "strided_blocks.hpp"
#include "tasuki/planning.hpp"
#include "tasuki/tasuki.hpp"

namespace collective_cases {

using namespace tasuki;  // NOLINT(google-build-using-namespace)

using strided_blocks::Strided;

using Random = std::mt19937;
using Counts = std::vector<std::int64_t>;

inline std::int64_t below(Random& random, std::int64_t n) {
  return static_cast<std::int64_t>(random() % static_cast<unsigned>(n));
}

// Memory of GPUs, for tests that have some.
struct DeviceMemory {
  std::shared_ptr<std::byte> (*allocate)(std::int64_t bytes) = nullptr;
  void (*copy)(void* to, const void* from, std::int64_t bytes) = nullptr;
};
inline DeviceMemory device_memory;

// What is to be done; equal on all ranks.
struct Wanted {
  CollectiveKind kind{};
  int number = 0;  // tells data of several apart
  int root = 0;
  std::int64_t count = 0;
  Counts counts;  // of blocks; alltoall: [from * ranks + to]
  ReduceOp op = ReduceOp::sum;
  bool in_place = false;
  bool shared = false;
  Memory memory = Memory::host;
  std::int64_t shift = 0;  // of memory of a GPU: bytes by which it begins after an aligned address
  unsigned layouts = 0;    // not 0: memory with layouts, drawn by this number
  CollectiveOptions options;
};

// Whether the rank's contribution lies in `out`, or its result in `in`.
inline bool here(const Wanted& w, int rank) {
  if (w.kind == CollectiveKind::broadcast) return true;
  return w.in_place && (!rooted(w.kind) || rank == w.root);
}

inline Strided laid(const Wanted& w, int ranks, int rank, bool of_in, std::int64_t element) {
  CollectiveShape shape;
  shape.kind = w.kind;
  shape.root = w.root;
  shape.count = w.count;
  shape.counts = w.counts;
  shape.in_place = w.in_place;
  Random random(w.layouts * 1000 + static_cast<unsigned>(rank * 2 + (of_in ? 1 : 0)));
  return strided_blocks::random_blocks(random, strided_blocks::blocks_of_side(shape, ranks, rank, of_in), element);
}

class Running {
 public:
  virtual ~Running() = default;
  virtual Operation& operation() = 0;
  virtual void fill(int iteration) = 0;
  virtual bool right(int iteration) const = 0;
};

// Numbers so small that sums of floats are exact.
template <class T>
T value(const Wanted& wanted, int iteration, int rank, std::int64_t index) {
  return static_cast<T>((index * 7 + rank * 3 + iteration * 5 + wanted.number) % 11);
}

template <class T>
T combined(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::min:
      return std::min(a, b);
    case ReduceOp::max:
      return std::max(a, b);
    default:
      return static_cast<T>(a + b);
  }
}

template <class T>
class Typed final : public Running {
 public:
  Typed(const Context& ctx, const Wanted& wanted, DType type)
      : ctx_(ctx), w_(wanted), in_(room(false) + 2), out_(room(true) + 2) {
    if (w_.layouts > 0) {
      laid_in_ = laid(w_, n(), me(), true, sizeof(T));
      laid_out_ = laid(w_, n(), me(), false, sizeof(T));
      memory_in_.resize(static_cast<std::size_t>(laid_in_.bytes));
      memory_out_.resize(static_cast<std::size_t>(laid_out_.bytes));
      private_in_.resize(memory_in_.size());
      private_out_.resize(memory_out_.size());
    }
    if (w_.shared) memory_ = shared_alloc(ctx, far() + bytes_out() + 16);
    if (w_.memory == Memory::device) on_gpu_ = device_memory.allocate(w_.shift + far() + bytes_out());
    make(type);
  }

  Operation& operation() override { return *operation_; }

  void fill(int iteration) override {
    fill_here(iteration);
    if (w_.layouts > 0) {
      scatter(in_, laid_in_, memory_in_);
      scatter(out_, laid_out_, memory_out_);
      if (!on_gpu_) {
        std::memcpy(place(false), memory_in_.data(), memory_in_.size());
        std::memcpy(place(true), memory_out_.data(), memory_out_.size());
      }
    }
    if (!on_gpu_) return;
    device_memory.copy(place(false), w_.layouts > 0 ? memory_in_.data() : static_cast<void*>(in_.data()), bytes_in());
    device_memory.copy(place(true), w_.layouts > 0 ? memory_out_.data() : static_cast<void*>(out_.data()), bytes_out());
  }

  bool right(int iteration) const override {
    if (on_gpu_) const_cast<Typed*>(this)->download();
    if (w_.layouts > 0 && !const_cast<Typed*>(this)->take_out()) return false;
    const std::vector<T> expected = oracle(iteration);
    const T* const got = out();
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (!(got[i] == expected[i])) return false;
    return got[static_cast<std::size_t>(result())] == static_cast<T>(77) || in_place_whole();
  }

 private:
  void fill_here(int iteration) {
    T* const from = here() ? out() : in();
    for (std::size_t i = 0; i < out_.size(); ++i) out()[i] = static_cast<T>(77);
    for (std::size_t i = 0; i < in_.size(); ++i) in()[i] = static_cast<T>(88);
    const std::int64_t at = here() && w_.kind == CollectiveKind::allgather ? begin(me()) : 0;
    if (here() && w_.kind == CollectiveKind::gather) {  // only the root's own block is there
      for (std::int64_t i = 0; i < block(me()); ++i) out()[begin(me()) + i] = given(iteration, me(), i);
      return;
    }
    T* const to = here() && w_.kind == CollectiveKind::scatter ? in() : from;
    if (w_.kind == CollectiveKind::broadcast && me() != w_.root) return;
    for (std::int64_t i = 0; i < gives(me()); ++i) to[at + i] = given(iteration, me(), i);
  }

  std::int64_t bytes_in() const {
    return static_cast<std::int64_t>(w_.layouts > 0 ? memory_in_.size() : in_.size() * sizeof(T));
  }
  std::int64_t bytes_out() const {
    return static_cast<std::int64_t>(w_.layouts > 0 ? memory_out_.size() : out_.size() * sizeof(T));
  }
  std::int64_t far() const { return (bytes_in() + 255) / 256 * 256; }  // from `in` to `out`
  void download() {
    void* const to = w_.layouts > 0 ? memory_out_.data() : static_cast<void*>(out_.data());
    device_memory.copy(to, place(true), bytes_out());
  }

  // Where the memory of a side begins: where the operation finds it, or a layout's base with it.
  std::byte* place(bool of_out) {
    if (on_gpu_) return on_gpu_.get() + w_.shift + (of_out ? far() : 0);
    if (memory_) return memory_.get() + (of_out ? far() : 0);
    if (w_.layouts > 0) return of_out ? private_out_.data() : private_in_.data();
    return reinterpret_cast<std::byte*>(of_out ? out_.data() : in_.data());
  }
  void* at_in() { return place(false) + laid_in_.base; }
  void* at_out() { return place(true) + laid_out_.base; }

  // With layouts `in_` and `out_` are what the operation shall see as sequences.
  static constexpr std::byte kGap{0x5A};
  static void scatter(const std::vector<T>& values, const Strided& laid, std::vector<std::byte>& memory) {
    std::fill(memory.begin(), memory.end(), kGap);
    for (std::size_t i = 0; i < laid.at.size(); ++i) std::memcpy(memory.data() + laid.at[i], &values[i], sizeof(T));
  }
  // False if a byte between the elements has changed.
  bool take_out() {
    if (!on_gpu_) std::memcpy(memory_out_.data(), place(true), memory_out_.size());
    for (std::size_t i = 0; i < laid_out_.at.size(); ++i) {
      std::memcpy(&out_[i], memory_out_.data() + laid_out_.at[i], sizeof(T));
      std::fill_n(memory_out_.begin() + laid_out_.at[i], sizeof(T), kGap);
    }
    return std::all_of(memory_out_.begin(), memory_out_.end(), [](std::byte b) { return b == kGap; });
  }

  int me() const { return ctx_.rank(); }
  int n() const { return ctx_.size(); }
  bool here() const { return collective_cases::here(w_, me()); }
  bool in_place_whole() const { return here() && w_.kind == CollectiveKind::reduce_scatter; }
  std::int64_t block(int r) const { return w_.counts.empty() ? w_.count : w_.counts[static_cast<std::size_t>(r)]; }
  std::int64_t block(int from, int to) const {
    return w_.counts.empty() ? w_.count : w_.counts[static_cast<std::size_t>(from * n() + to)];
  }
  std::int64_t begin(int r) const {
    std::int64_t sum = 0;
    for (int b = 0; b < r; ++b) sum += block(b);
    return sum;
  }
  std::int64_t sent(int from, int to) const {
    std::int64_t sum = 0;
    for (int b = 0; b < to; ++b) sum += block(from, b);
    return sum;
  }
  std::int64_t received(int from, int to) const {
    std::int64_t sum = 0;
    for (int b = 0; b < from; ++b) sum += block(b, to);
    return sum;
  }

  // Elements that a rank contributes.
  std::int64_t gives(int r) const {
    switch (w_.kind) {
      case CollectiveKind::reduce_scatter:
        return begin(n());
      case CollectiveKind::scatter:
        return r == w_.root ? begin(n()) : 0;
      case CollectiveKind::allgather:
      case CollectiveKind::gather:
        return block(r);
      case CollectiveKind::alltoall:
        return sent(r, n());
      case CollectiveKind::barrier:
        return 0;
      default:
        return w_.count;
    }
  }
  // Elements of this rank's result.
  std::int64_t result() const {
    switch (w_.kind) {
      case CollectiveKind::reduce:
        return me() == w_.root ? w_.count : 0;
      case CollectiveKind::reduce_scatter:
        return block(me());
      case CollectiveKind::scatter:
        return here() ? 0 : block(me());
      case CollectiveKind::allgather:
        return begin(n());
      case CollectiveKind::gather:
        return me() == w_.root ? begin(n()) : 0;
      case CollectiveKind::alltoall:
        return received(n(), me());
      case CollectiveKind::barrier:
        return 0;
      default:
        return w_.count;
    }
  }
  std::size_t room(bool of_out) const {
    const std::int64_t size = of_out ? std::max(result(), here() ? gives(me()) : 0) : gives(me());
    return static_cast<std::size_t>(size);
  }

  T given(int iteration, int rank, std::int64_t index) const { return value<T>(w_, iteration, rank, index); }

  std::vector<T> sum_of(int iteration, int first, int last, std::int64_t at, std::int64_t count) const {
    std::vector<T> sum;
    for (std::int64_t i = 0; i < count; ++i) {
      T s = given(iteration, first, at + i);
      for (int r = first + 1; r <= last; ++r) s = combined(w_.op, s, given(iteration, r, at + i));
      sum.push_back(s);
    }
    return sum;
  }

  std::vector<T> oracle(int iteration) const {
    std::vector<T> all;
    const auto take = [&](int rank, std::int64_t at, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) all.push_back(given(iteration, rank, at + i));
    };
    switch (w_.kind) {
      case CollectiveKind::broadcast:
        take(w_.root, 0, w_.count);
        break;
      case CollectiveKind::allreduce:
      case CollectiveKind::reduce:
        return sum_of(iteration, 0, n() - 1, 0, result());
      case CollectiveKind::reduce_scatter:
        return sum_of(iteration, 0, n() - 1, begin(me()), block(me()));
      case CollectiveKind::scan:
        return sum_of(iteration, 0, me(), 0, w_.count);
      case CollectiveKind::exscan:
        if (me() > 0) return sum_of(iteration, 0, me() - 1, 0, w_.count);
        for (std::int64_t i = 0; i < w_.count; ++i) all.push_back(here() ? given(iteration, 0, i) : static_cast<T>(77));
        break;
      case CollectiveKind::allgather:
      case CollectiveKind::gather:
        for (int r = 0; r < n() && result() > 0; ++r) take(r, 0, block(r));
        break;
      case CollectiveKind::alltoall:
        for (int r = 0; r < n(); ++r) take(r, sent(r, me()), block(r, me()));
        break;
      case CollectiveKind::scatter:
        take(w_.root, begin(me()), result());
        break;
      case CollectiveKind::barrier:
        break;
    }
    return all;
  }

  // The values: in place but for layouts and memory of a GPU.
  bool direct() const { return memory_ != nullptr && w_.layouts == 0; }
  T* in() { return direct() ? reinterpret_cast<T*>(place(false)) : in_.data(); }
  T* out() { return direct() ? reinterpret_cast<T*>(place(true)) : out_.data(); }
  const T* out() const { return const_cast<Typed*>(this)->out(); }

  void make(DType type) {
    const void* const from = here() && w_.kind != CollectiveKind::scatter ? in_place : at_in();
    void* const to = here() && w_.kind == CollectiveKind::scatter ? in_place : at_out();
    const CollectiveOptions& o = w_.options;
    if (w_.layouts > 0 && w_.kind != CollectiveKind::barrier) return make_laid(from, to, type);
    const auto with = [&](auto&& count) {
      switch (w_.kind) {
        case CollectiveKind::reduce_scatter:
          operation_ = ReduceScatter(ctx_, from, to, count, type, w_.op, o);
          break;
        case CollectiveKind::allgather:
          operation_ = Allgather(ctx_, from, to, count, type, o);
          break;
        case CollectiveKind::gather:
          operation_ = Gather(ctx_, w_.root, from, to, count, type, o);
          break;
        default:
          operation_ = Scatter(ctx_, w_.root, from, to, count, type, o);
          break;
      }
    };
    switch (w_.kind) {
      case CollectiveKind::broadcast:
        operation_ = Broadcast(ctx_, w_.root, at_out(), w_.count * static_cast<std::int64_t>(sizeof(T)), o);
        break;
      case CollectiveKind::allreduce:
        operation_ = Allreduce(ctx_, from, to, w_.count, type, w_.op, o);
        break;
      case CollectiveKind::reduce:
        operation_ = Reduce(ctx_, w_.root, from, to, w_.count, type, w_.op, o);
        break;
      case CollectiveKind::scan:
        operation_ = Scan(ctx_, from, to, w_.count, type, w_.op, o);
        break;
      case CollectiveKind::exscan:
        operation_ = Exscan(ctx_, from, to, w_.count, type, w_.op, o);
        break;
      case CollectiveKind::barrier:
        operation_ = Barrier(ctx_, w_.memory, o);
        break;
      case CollectiveKind::alltoall:
        if (w_.counts.empty()) {
          operation_ = Alltoall(ctx_, from, to, w_.count, type, o);
        } else {
          Counts send, receive;
          for (int r = 0; r < n(); ++r) {
            send.push_back(block(me(), r));
            receive.push_back(block(r, me()));
          }
          operation_ = Alltoall(ctx_, from, to, send, receive, type, o);
        }
        break;
      default:
        w_.counts.empty() ? with(w_.count) : with(w_.counts);
    }
  }

  void make_laid(const void* from, void* to, DType type) {
    const CollectiveOptions& o = w_.options;
    const std::vector<Layout>& ins = laid_in_.layouts;
    const std::vector<Layout>& outs = laid_out_.layouts;
    const Layout none;
    const Layout& in = ins.empty() ? none : ins.front();
    const Layout& out = outs.empty() ? none : outs.front();
    switch (w_.kind) {
      case CollectiveKind::broadcast:
        operation_ = Broadcast(ctx_, w_.root, at_out(), out, o);
        break;
      case CollectiveKind::allreduce:
        operation_ = Allreduce(ctx_, from, in, to, out, type, w_.op, o);
        break;
      case CollectiveKind::reduce:
        operation_ = Reduce(ctx_, w_.root, from, in, to, out, type, w_.op, o);
        break;
      case CollectiveKind::scan:
        operation_ = Scan(ctx_, from, in, to, out, type, w_.op, o);
        break;
      case CollectiveKind::exscan:
        operation_ = Exscan(ctx_, from, in, to, out, type, w_.op, o);
        break;
      case CollectiveKind::reduce_scatter:
        operation_ = ReduceScatter(ctx_, from, here() ? outs : ins, to, out, type, w_.op, o);
        break;
      case CollectiveKind::allgather:
        operation_ = Allgather(ctx_, from, in, to, outs, o);
        break;
      case CollectiveKind::gather:
        operation_ = Gather(ctx_, w_.root, from, in, to, outs, o);
        break;
      case CollectiveKind::scatter:
        operation_ = Scatter(ctx_, w_.root, from, ins, to, out, o);
        break;
      default:
        operation_ = Alltoall(ctx_, from, ins, to, outs, o);
        break;
    }
  }

  const Context& ctx_;
  Wanted w_;
  std::vector<T> in_, out_;
  Strided laid_in_, laid_out_;
  std::vector<std::byte> memory_in_, memory_out_;  // as they are filled, with their gaps
  std::vector<std::byte> private_in_, private_out_;
  std::shared_ptr<std::byte> memory_;
  std::shared_ptr<std::byte> on_gpu_;
  std::optional<Operation> operation_;
};

inline std::unique_ptr<Running> make(const Context& ctx, const Wanted& w, std::int64_t type) {
  switch (type) {
    case 0:
      return std::make_unique<Typed<double>>(ctx, w, DType::f64);
    case 1:
      return std::make_unique<Typed<std::int32_t>>(ctx, w, DType::i32);
    case 2:
      return std::make_unique<Typed<float>>(ctx, w, DType::f32);
    default:
      return std::make_unique<Typed<std::uint8_t>>(ctx, w, DType::u8);
  }
}

inline DType type_of(std::int64_t type) {
  const std::vector<DType> types{DType::f64, DType::i32, DType::f32, DType::u8};
  return types[static_cast<std::size_t>(type)];
}

inline CollectiveShape shape_of(const Wanted& w, DType type, int ranks) {
  CollectiveShape shape;
  shape.kind = w.kind;
  shape.root = w.root;
  shape.count = w.kind == CollectiveKind::broadcast ? w.count * size_of(type) : w.count;
  shape.counts = w.counts;
  shape.type = w.kind == CollectiveKind::broadcast ? DType::u8 : type;
  shape.op = w.op;
  shape.in_place = w.in_place;
  shape.memory = w.memory;
  shape.shared = w.shared || w.memory == Memory::device;
  shape.algorithm = w.options.algorithm;
  shape.trees = w.options.trees;
  shape.arity = w.options.arity;
  shape.chunk = w.options.chunk;
  shape.path = w.options.path;
  if (w.layouts > 0 && w.kind != CollectiveKind::barrier) {
    strided_blocks::add_layouts(shape, ranks,
                                [&](int rank, bool of_in) { return laid(w, ranks, rank, of_in, size_of(type)); });
    strided_blocks::count_in_units(shape);
  }
  return shape;
}

inline std::string described(const Wanted& w) {
  std::string counts;
  for (const std::int64_t count : w.counts) counts += " " + std::to_string(count);
  return std::string(to_string(w.kind)) + ":" + w.options.algorithm + " root " + std::to_string(w.root) + " count " +
         std::to_string(w.count) + " counts" + counts + " " + std::string(to_string(w.op)) +
         (w.in_place ? " in place" : "") + (w.shared ? " shared" : "") +
         (w.layouts > 0 ? " layouts " + std::to_string(w.layouts) : "") + " shift " + std::to_string(w.shift) +
         " path " + w.options.path + " engine " + w.options.engine + " trees " + std::to_string(w.options.trees) +
         " arity " + std::to_string(w.options.arity) + " chunk " + std::to_string(w.options.chunk);
}

}  // namespace collective_cases
