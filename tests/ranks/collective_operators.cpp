// Reductions of every element type by every operator that it has, each on several ranks: random collective, algorithm,
// path, engine, count, in place or not; against plain loops over whole numbers, with new data at every start.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collective_cases.hpp"
#include "host_paths.hpp"
#include "rank_test.hpp"
#include "tasuki/kernel/impl/reduce_ops.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;
using collective_cases::below;
using collective_cases::Random;

namespace {

// An element as two whole numbers: a number and 0, real and imaginary part, or value and index. They are so small that
// all types hold them, and what is made of them, exactly.
struct Element {
  std::int64_t first = 0;
  std::int64_t second = 0;
  friend bool operator==(const Element&, const Element&) = default;
};

bool is_complex(DType type) {
  return type == DType::c64 || type == DType::c128;
}
bool is_pair(DType type) {
  return type >= DType::f32_i32;
}
bool holds_negatives(DType type) {
  return type != DType::u8 && type != DType::u16 && type != DType::u32 && type != DType::u64;
}

template <class T>
void put(std::byte* to, std::int64_t number) {
  const auto value = static_cast<T>(number);
  std::memcpy(to, &value, sizeof value);
}
template <class Bits>
void put_half(std::byte* to, std::int64_t number) {
  Bits bits;
  element::from_f32(static_cast<float>(number), bits);
  std::memcpy(to, &bits, sizeof bits);
}

void put_number(DType type, std::byte* to, std::int64_t number) {
  switch (type) {
    case DType::i8:
      return put<std::int8_t>(to, number);
    case DType::u8:
      return put<std::uint8_t>(to, number);
    case DType::i16:
      return put<std::int16_t>(to, number);
    case DType::u16:
      return put<std::uint16_t>(to, number);
    case DType::i32:
      return put<std::int32_t>(to, number);
    case DType::u32:
      return put<std::uint32_t>(to, number);
    case DType::i64:
      return put<std::int64_t>(to, number);
    case DType::u64:
      return put<std::uint64_t>(to, number);
    case DType::f32:
      return put<float>(to, number);
    case DType::f64:
      return put<double>(to, number);
    case DType::f16:
      return put_half<element::F16>(to, number);
    case DType::bf16:
      return put_half<element::BF16>(to, number);
    default:
      FAIL("not the type of one number");
  }
}

// The two parts of an element that has two, and where the second is.
struct Parts {
  DType first;
  DType second;
  std::ptrdiff_t at;
};
Parts parts_of(DType type) {
  switch (type) {
    case DType::c64:
      return {DType::f32, DType::f32, 4};
    case DType::c128:
      return {DType::f64, DType::f64, 8};
    case DType::f32_i32:
      return {DType::f32, DType::i32, 4};
    case DType::f64_i32:
      return {DType::f64, DType::i32, 8};
    case DType::i32_i32:
      return {DType::i32, DType::i32, 4};
    case DType::i64_i32:
      return {DType::i64, DType::i32, 8};
    case DType::f64_i64:
      return {DType::f64, DType::i64, 8};
    default:
      return {DType::i64, DType::i64, 8};
  }
}

// Leaves padding as it is.
void put_element(DType type, std::byte* to, const Element& element) {
  if (!is_complex(type) && !is_pair(type)) return put_number(type, to, element.first);
  const Parts parts = parts_of(type);
  put_number(parts.first, to, element.first);
  put_number(parts.second, to + parts.at, element.second);
}

Element combined(DType type, ReduceOp op, Element a, Element b) {
  switch (op) {
    case ReduceOp::sum:
      return {a.first + b.first, a.second + b.second};
    case ReduceOp::product:
      if (!is_complex(type)) return {a.first * b.first, 0};
      return {a.first * b.first - a.second * b.second, a.first * b.second + a.second * b.first};
    case ReduceOp::min:
      return {std::min(a.first, b.first), 0};
    case ReduceOp::max:
      return {std::max(a.first, b.first), 0};
    case ReduceOp::band:
      return {a.first & b.first, 0};
    case ReduceOp::bor:
      return {a.first | b.first, 0};
    case ReduceOp::bxor:
      return {a.first ^ b.first, 0};
    case ReduceOp::land:
      return {a.first != 0 && b.first != 0 ? 1 : 0, 0};
    case ReduceOp::lor:
      return {a.first != 0 || b.first != 0 ? 1 : 0, 0};
    case ReduceOp::lxor:
      return {(a.first != 0) != (b.first != 0) ? 1 : 0, 0};
    default: {
      if (a.first == b.first) return {a.first, std::min(a.second, b.second)};
      const bool first = (a.first < b.first) == (op == ReduceOp::minloc);
      return first ? a : b;
    }
  }
}

// One reduction, its memory, and what must come out.
class Reduction {
 public:
  Reduction(const Context& ctx, DType type, ReduceOp op, Random& random)
      : me_(ctx.rank()), n_(ctx.size()), type_(type), op_(op), size_(size_of(type)) {
    constexpr std::array kKinds{CollectiveKind::allreduce, CollectiveKind::reduce, CollectiveKind::reduce_scatter,
                                CollectiveKind::scan, CollectiveKind::exscan};
    constexpr std::array<std::int64_t, 4> kCounts{1, 3, 17, 130};
    kind_ = kKinds[static_cast<std::size_t>(below(random, kKinds.size()))];
    count_ = kCounts[static_cast<std::size_t>(below(random, kCounts.size()))];
    root_ = static_cast<int>(below(random, n_));
    in_place_ = below(random, 3) == 0;
    CollectiveOptions options;
    options.engine = below(random, 4) == 0 ? "thread" : "inline";
    const auto paths = host_paths(ctx);
    options.path = paths[static_cast<std::size_t>(below(random, std::ssize(paths)))];
    if (options.path != "auto" && options.path != "mpi" && options.path != "shared:eager")
      options.path += ",shared:eager";
    text_ = std::string(to_string(kind_)) + " of " + std::string(to_string(type)) + " by " +
            std::string(to_string(op)) + " count " + std::to_string(count_) + " root " + std::to_string(root_) +
            (in_place_ ? " in place" : "") + " path " + options.path + " engine " + options.engine;
    in_.resize(static_cast<std::size_t>(given() * size_));
    out_.resize(static_cast<std::size_t>(given() * size_));
    make(ctx, options);
  }

  Operation& operation() { return *operation_; }
  const std::string& text() const { return text_; }

  void fill(int turn) {
    std::fill(in_.begin(), in_.end(), kUntouched);
    std::fill(out_.begin(), out_.end(), kUntouched);
    std::vector<std::byte>& to = here() ? out_ : in_;
    for (std::int64_t i = 0; i < given(); ++i) put_element(type_, to.data() + i * size_, value(me_, turn, i));
  }

  bool right(int turn) const {
    std::vector<std::byte> expected(out_.size(), kUntouched);
    const bool gets = kind_ != CollectiveKind::reduce || me_ == root_;
    const bool nothing = kind_ == CollectiveKind::exscan && me_ == 0;
    const std::int64_t at = kind_ == CollectiveKind::reduce_scatter ? me_ * count_ : 0;
    const int last = kind_ == CollectiveKind::scan ? me_ : kind_ == CollectiveKind::exscan ? me_ - 1 : n_ - 1;
    for (std::int64_t i = 0; i < given(); ++i) {
      std::byte* const to = expected.data() + i * size_;
      if (here()) put_element(type_, to, value(me_, turn, i));
      if (!gets || nothing || i >= count_) continue;
      Element sum = value(0, turn, at + i);
      for (int rank = 1; rank <= last; ++rank) sum = combined(type_, op_, sum, value(rank, turn, at + i));
      put_element(type_, to, sum);
    }
    // Of a reduce-scatter in place the rest of the vector is left as it may be.
    const bool rest = kind_ == CollectiveKind::reduce_scatter && here();
    const auto compared = static_cast<std::size_t>((rest ? count_ : given()) * size_);
    std::vector<std::byte> got = out_;
    if (type_ == DType::c64) without_minus_zeros<float>(got);
    if (type_ == DType::c128) without_minus_zeros<double>(got);
    return std::memcmp(got.data(), expected.data(), compared) == 0;
  }

 private:
  static constexpr std::byte kUntouched{0x33};  // also in the padding of pairs, on all ranks

  // Whole numbers do not tell which zero a product of complex numbers is.
  template <class T>
  static void without_minus_zeros(std::vector<std::byte>& numbers) {
    for (std::size_t at = 0; at < numbers.size(); at += sizeof(T)) {
      T number;
      std::memcpy(&number, numbers.data() + at, sizeof number);
      number += 0;
      std::memcpy(numbers.data() + at, &number, sizeof number);
    }
  }

  bool here() const { return in_place_ && (kind_ != CollectiveKind::reduce || me_ == root_); }
  std::int64_t given() const { return kind_ == CollectiveKind::reduce_scatter ? count_ * n_ : count_; }

  Element value(int rank, int turn, std::int64_t index) const {
    const std::int64_t x = (index * 7 + rank * 5 + turn * 3) % 11;
    if (is_pair(type_)) return {x % 4 - 1, (index + 3 * rank + turn) % 5};
    if (op_ == ReduceOp::product) {
      if (!is_complex(type_)) return {x % 3 == 0 ? 2 : 1, 0};
      constexpr std::array<Element, 4> kFactors{{{1, 0}, {0, 1}, {1, 1}, {-1, 0}}};
      return kFactors[static_cast<std::size_t>(x % 4)];
    }
    if (is_complex(type_)) return {x, 3 - x};
    if (op_ >= ReduceOp::land && op_ <= ReduceOp::lxor) return {x % 3, 0};
    return {holds_negatives(type_) ? x - 4 : x, 0};
  }

  void make(const Context& ctx, const CollectiveOptions& options) {
    const void* const in = here() ? in_place : static_cast<const void*>(in_.data());
    void* const out = out_.data();
    switch (kind_) {
      case CollectiveKind::allreduce:
        operation_ = Allreduce(ctx, in, out, count_, type_, op_, options);
        return;
      case CollectiveKind::reduce:
        operation_ = Reduce(ctx, root_, in, out, count_, type_, op_, options);
        return;
      case CollectiveKind::reduce_scatter:
        operation_ = ReduceScatter(ctx, in, out, count_, type_, op_, options);
        return;
      case CollectiveKind::scan:
        operation_ = Scan(ctx, in, out, count_, type_, op_, options);
        return;
      default:
        operation_ = Exscan(ctx, in, out, count_, type_, op_, options);
    }
  }

  int me_, n_;
  DType type_;
  ReduceOp op_;
  std::int64_t size_;
  CollectiveKind kind_{};
  std::int64_t count_ = 0;
  int root_ = 0;
  bool in_place_ = false;
  std::string text_;
  std::vector<std::byte> in_, out_;
  std::optional<Operation> operation_;
};

}  // namespace

RANK_TEST("every operator on every type that it has a meaning for gives what plain loops give") {
  Random random(71);
  Random own(static_cast<unsigned>(72 + ctx.rank()));  // orders differ between ranks
  int pairs = 0;
  std::vector<std::unique_ptr<Reduction>> active;
  const auto run = [&] {
    for (int turn = 0; turn < 3; ++turn) {
      for (const auto& one : active) one->fill(turn);
      std::shuffle(active.begin(), active.end(), own);
      for (const auto& one : active) one->operation().start();
      std::shuffle(active.begin(), active.end(), own);
      for (const auto& one : active) {
        INFO(one->text());
        CAPTURE(turn);
        one->operation().wait();
        CHECK(one->right(turn));
      }
    }
    active.clear();
  };
  for (int type = 1; type <= static_cast<int>(DType::i64_i64); ++type) {
    for (int op = 0; op < static_cast<int>(ReduceOp::own); ++op) {
      if (!defined(static_cast<ReduceOp>(op), static_cast<DType>(type))) continue;
      ++pairs;
      // Verifying takes long, where ranks share cores above all: other numbers of ranks have other pairs.
      if ((pairs + ctx.size()) % (ctx.size() < 3 ? 1 : ctx.size() < 7 ? 4 : 9) != 0) continue;
      active.push_back(std::make_unique<Reduction>(ctx, static_cast<DType>(type), static_cast<ReduceOp>(op), random));
      const VerifyReport report = verify(active.back()->operation());
      INFO(active.back()->text());
      INFO(report.text());
      CHECK(report.ok());
      if (active.size() == 4) run();
    }
  }
  run();
  CHECK(pairs == 112);
}
