// Reductions by a function of the user's, and in rank order: against plain loops, with new data at every start.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "checks.hpp"
#include "error_of.hpp"
#include "host_paths.hpp"
#include "rank_test.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

// x -> a x + b, modulo 2^32: composing such functions is associative and does not commute. A pair of i32 each.
struct Affine {
  std::uint32_t a = 1;
  std::uint32_t b = 0;
  friend bool operator==(const Affine&, const Affine&) = default;
};

Affine then(Affine first, Affine second) {
  return {first.a * second.a, second.a * first.b + second.b};
}

void compose(const void* right, void* left, std::int64_t count) {
  const auto* const second = static_cast<const Affine*>(right);
  auto* const first = static_cast<Affine*>(left);
  for (std::int64_t i = 0; i < count; ++i) first[i] = then(first[i], second[i]);
}

Affine value(int rank, int turn, std::size_t i) {
  return {static_cast<std::uint32_t>(2 * rank + 3 + static_cast<int>(i)), static_cast<std::uint32_t>(turn * 7 + rank)};
}

Affine all_of(int first, int last, int turn, std::size_t i) {
  Affine sum = value(first, turn, i);
  for (int rank = first + 1; rank <= last; ++rank) sum = then(sum, value(rank, turn, i));
  return sum;
}

void check_plan(const Operation& operation, const std::string& name) {
  ::check_plan(operation);
  CHECK(operation.plan().operation.find("by " + name) != std::string::npos);
}

}  // namespace

RANK_TEST("a function of the user's that does not commute combines in rank order, in place or not, on every path") {
  const Operator composed("composition", compose, false);
  const int n = ctx.size();
  for (const std::string& path : host_paths(ctx)) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{5}, std::size_t{2077}}) {
      if (n > 6 && count != 5) continue;  // verifying takes long
      CollectiveOptions options;
      options.path = path;
      if (path == "shared:put" || path == "shared:read" || path == "shared:pull") options.path += ",shared:eager";
      const auto elements = static_cast<std::int64_t>(count);
      std::vector<Affine> in(count), out(count), here(count), one(count), up_to(count);
      std::vector<Affine> whole(count * static_cast<std::size_t>(n)), block(count);
      std::vector<Affine> in_scan(count), in_exscan(count), in_root(count), in_blocks(whole.size());
      const int middle = n / 2;
      Allreduce all(ctx, in.data(), out.data(), elements, DType::i32_i32, composed, options);
      Allreduce in_one(ctx, in_place, here.data(), elements, DType::i32_i32, composed, options);
      Reduce to_last(ctx, n - 1, in.data(), one.data(), elements, DType::i32_i32, composed, options);
      Scan scan(ctx, in.data(), up_to.data(), elements, DType::i32_i32, composed, options);
      ReduceScatter blocks(ctx, whole.data(), block.data(), elements, DType::i32_i32, composed, options);
      Scan scan_here(ctx, in_place, in_scan.data(), elements, DType::i32_i32, composed, options);
      Exscan exscan_here(ctx, in_place, in_exscan.data(), elements, DType::i32_i32, composed, options);
      Reduce to_middle(ctx, middle, ctx.rank() == middle ? in_place : in.data(), in_root.data(), elements,
                       DType::i32_i32, composed, options);
      ReduceScatter blocks_here(ctx, in_place, in_blocks.data(), elements, DType::i32_i32, composed, options);
      const std::vector<Operation*> operations{&all,       &in_one,      &to_last,   &scan,       &blocks,
                                               &scan_here, &exscan_here, &to_middle, &blocks_here};
      for (Operation* operation : operations) check_plan(*operation, "composition");
      for (int turn = 0; turn < 3; ++turn) {
        for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = in_blocks[i] = value(ctx.rank(), turn, i);
        for (std::size_t i = 0; i < count; ++i)
          in[i] = here[i] = in_scan[i] = in_exscan[i] = in_root[i] = value(ctx.rank(), turn, i);
        for (Operation* operation : operations) operation->start();
        for (auto operation = operations.rbegin(); operation != operations.rend(); ++operation) (*operation)->wait();
        bool right = true;
        const std::size_t mine = count * static_cast<std::size_t>(ctx.rank());
        for (std::size_t i = 0; i < count; ++i) {
          const Affine sum = all_of(0, n - 1, turn, i);
          right = right && out[i] == sum && here[i] == sum && (ctx.rank() != n - 1 || one[i] == sum) &&
                  up_to[i] == all_of(0, ctx.rank(), turn, i) && block[i] == all_of(0, n - 1, turn, mine + i);
          right = right && in_scan[i] == all_of(0, ctx.rank(), turn, i) &&
                  (ctx.is_root() || in_exscan[i] == all_of(0, ctx.rank() - 1, turn, i)) &&
                  (ctx.rank() != middle || in_root[i] == sum) && in_blocks[i] == all_of(0, n - 1, turn, mine + i);
        }
        CAPTURE(path);
        CAPTURE(count);
        CHECK(right);
      }
    }
  }
}

RANK_TEST("a function of the user's that commutes may be combined by any algorithm") {
  const Operator larger("largest magnitude", [](const void* right, void* left, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const double x = static_cast<const double*>(right)[i];
      double& y = static_cast<double*>(left)[i];
      if (x * x > y * y) y = x;
    }
  });
  for (const std::string algorithm : {"auto", "exchange", "direct", "doubling", "ring", "halving", "hierarchical"}) {
    CollectiveOptions options;
    options.algorithm = algorithm;
    std::vector<double> in(301), out(in.size());
    Allreduce all(ctx, in.data(), out.data(), 301, DType::f64, larger, options);
    check_plan(all, "largest magnitude");
    for (int turn = 0; turn < 3; ++turn) {
      for (double& number : in) number = ((ctx.rank() + turn) % 2 == 0 ? -1.0 : 1.0) * (ctx.rank() + turn + 1);
      all.start();
      all.wait();
      const int last = ctx.size() - 1;
      for (const double number : out) CHECK(number == ((last + turn) % 2 == 0 ? -1.0 : 1.0) * (last + turn + 1));
    }
  }
}

RANK_TEST("records of several numbers are combined whole, wherever the vector is cut") {
  struct Statistics {  // 20 bytes, which no cache line holds whole
    std::uint32_t sum, squares, number, most, product;
    bool operator==(const Statistics&) const = default;
  };
  const auto join = [](Statistics& into, const Statistics& other) {
    into.sum += other.sum;
    into.squares += other.squares;
    into.number += other.number;
    into.most = std::max(into.most, other.most);
    into.product *= other.product;
  };
  const auto combine = [&](const void* right, void* left, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
      join(static_cast<Statistics*>(left)[i], static_cast<const Statistics*>(right)[i]);
  };
  const Operator statistics("statistics", combine, true, 5);
  const auto number = [](int rank, int turn, std::size_t i) {
    const auto x = static_cast<std::uint32_t>(31 * rank + 7 * turn) + static_cast<std::uint32_t>(i % 1009);
    return Statistics{x, x * x, 1, x ^ 341U, 2 * x + 1};
  };
  struct Setting {
    const char* algorithm;
    std::int64_t chunk;
    std::size_t count;
  };
  for (const Setting& setting :
       {Setting{"auto", 0, 1}, Setting{"auto", 0, 20011}, Setting{"doubling", 1000, 1777}, Setting{"ring", 0, 1777},
        Setting{"halving", 0, 1777}, Setting{"exchange", 0, 3001}, Setting{"hierarchical", 0, 1777}}) {
    const bool cut = setting.chunk > 0 || setting.algorithm == std::string("hierarchical");
    if (ctx.size() > 4 && !cut) continue;  // verifying takes long
    CollectiveOptions options;
    options.algorithm = setting.algorithm;
    options.chunk = setting.chunk;
    CollectiveOptions to_root;  // other algorithms than those of an allreduce
    to_root.algorithm = setting.chunk > 0 ? "collect" : "trees";
    to_root.trees = setting.chunk > 0 ? 0 : 2;
    to_root.chunk = 777;
    std::vector<Statistics> in(setting.count), out(in.size()), at_root(in.size());
    const auto count = static_cast<std::int64_t>(in.size());
    Allreduce all(ctx, in.data(), out.data(), count, DType::u32, statistics, options);
    Reduce one(ctx, 0, in.data(), at_root.data(), count, DType::u32, statistics, to_root);
    check_plan(all, "statistics");
    check_plan(one, "statistics");
    for (int turn = 0; turn < 3; ++turn) {
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = number(ctx.rank(), turn, i);
      all.start();
      one.start();
      one.wait();
      all.wait();
      bool right = true;
      for (std::size_t i = 0; i < in.size(); ++i) {
        Statistics sum = number(0, turn, i);
        for (int rank = 1; rank < ctx.size(); ++rank) join(sum, number(rank, turn, i));
        right = right && out[i] == sum && (!ctx.is_root() || at_root[i] == sum);
      }
      CAPTURE(setting.algorithm);
      CAPTURE(setting.count);
      CHECK(right);
    }
  }
}

RANK_TEST("what a function of the user's throws ends its operation, by thread too, and the other ranks hear of it") {
  std::vector<int> everybody;
  for (int rank = 0; rank < ctx.size(); ++rank) everybody.push_back(rank);
  if (ctx.size() == 1) return;
  for (const std::string engine : {"inline", "thread"}) {
    for (const bool others_first : {false, true}) {
      Context apart = ctx.subset(everybody);  // it fails as a whole
      const Operator careful("careful sum", [&](const void* right, void* left, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) {
          static_cast<double*>(left)[i] += static_cast<const double*>(right)[i];
          if (apart.is_root() && static_cast<double*>(left)[i] > 1e6) throw std::runtime_error("a sum is too large");
        }
      });
      CollectiveOptions options;
      options.engine = engine;
      options.algorithm = "exchange";  // every rank combines
      std::vector<double> in(35), out(in.size());
      Allreduce all(apart, in.data(), out.data(), 35, DType::f64, careful, options);
      Barrier barrier(apart,
                      options.engine == "thread" ? CollectiveOptions{} : CollectiveOptions{{.engine = "thread"}});
      check_plan(all, "careful sum");
      const auto run = [&](double number) {
        for (double& each : in) each = number + apart.rank();
        all.start();
        if (others_first) {
          barrier.start();
          (void)error_of([&] { barrier.wait(); });  // it may end, or hear of the failure
        }
        all.wait();
      };
      run(1);
      const double ranks = apart.size();
      CHECK(out[7] == ranks + ranks * (ranks - 1) / 2);
      CAPTURE(engine);
      CAPTURE(others_first);
      // Other ranks may have got all that they need of the epoch that failed, but not of the next one.
      const std::string met = error_of([&] {
        run(1e6);
        run(2);
      });
      CHECK(says(met, "a sum is too large"));
      CHECK(!all.active());
    }
  }
}

RANK_TEST("ordered reductions combine floats from the left to the right") {
  for (const std::string algorithm : {"auto", "exchange", "direct"}) {
    CollectiveOptions options;
    options.ordered = true;
    options.algorithm = algorithm;
    std::vector<double> in(77), out(in.size());
    Allreduce all(ctx, in.data(), out.data(), 77, DType::f64, ReduceOp::sum, options);
    CHECK(verify(all).ok());
    for (int turn = 0; turn < 3; ++turn) {
      const auto number = [turn](int rank, std::size_t i) {
        return 1.0 / (3 + rank + 5 * turn) + static_cast<double>(i) * 1e7 * rank;
      };
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = number(ctx.rank(), i);
      all.start();
      all.wait();
      for (std::size_t i = 0; i < in.size(); ++i) {
        double sum = number(0, i);
        for (int rank = 1; rank < ctx.size(); ++rank) sum += number(rank, i);
        CHECK(out[i] == sum);
      }
    }
  }
}

RANK_TEST("what is wrong with an operator is said on every rank") {
  double in = 0;
  double out = 0;
  const auto nothing = [](const void*, void*, std::int64_t) {};
  CHECK(says(error_of([&] { Operator op("", nothing); }), "argument 'name' is empty"));
  CHECK(says(error_of([&] { Operator op("none", nullptr); }), "'none' is no function"));
  CHECK(says(error_of([&] { Allreduce x(ctx, &in, &out, 1, DType::f64, ReduceOp::own); }), "give an Operator"));
  CollectiveOptions options;
  options.ordered = true;
  options.algorithm = "ring";
  CHECK(says(error_of([&] { Allreduce x(ctx, &in, &out, 1, DType::f64, ReduceOp::sum, options); }),
             "allreduce with algorithm 'ring' does not combine in rank order"));
  CHECK(says(error_of([&] { Allreduce x(ctx, &in, &out, 1, DType::f64, ReduceOp::sum, options); }),
             "those that do are exchange, direct"));
  options.algorithm = "auto";
  CHECK(says(error_of([&] { Allgather x(ctx, &in, &out, 0, DType::f64, options); }),
             "option 'ordered' is for reductions; allgather is none"));
  CHECK(says(error_of([&] { Operator op("none", nothing, true, 0); }), "a record has at least 1 number"));
  std::vector<double> pieces(8), whole(4);
  const Operator pairs("pairs", nothing, true, 2);
  const Layout apart = Layout::vector(4, 1, 2, Layout::of<double>());
  const Layout together = Layout::vector(1, 4, 4, Layout::of<double>());
  CHECK(says(error_of([&] { Allreduce x(ctx, pieces.data(), apart, whole.data(), together, DType::f64, pairs); }),
             "has runs of 8 bytes, but operator 'pairs' combines records of 16 bytes"));
  if (ctx.size() == 1) return;
  const Operator mine(ctx.is_root() ? "a" : "b", nothing);
  CHECK(says(error_of([&] { Allreduce x(ctx, &in, &out, 1, DType::f64, mine); }),
             "argument 'op' differs between ranks: rank 0 has own 'a', rank 1 has own 'b'"));
  const Operator sizes("sizes", nothing, true, ctx.is_root() ? 8 : 4);
  CHECK(says(error_of([&] { Allreduce x(ctx, &in, &out, 1, DType::u8, sizes); }),
             "argument 'record' differs between ranks"));
}
