// Collectives that are asked for what cannot be: every rank is told what is wrong, whatever the collective, and the
// next one is made as if nothing had been. And calls of an operation that come when they may not.
#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "checks.hpp"
#include "collective_cases.hpp"
#include "error_of.hpp"
#include "rank_test.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;
using collective_cases::Counts;

namespace {

using Kind = CollectiveKind;

struct Named {
  Kind kind;
  std::string name;  // as the error says it
};
const std::vector<Named> kAll{
    {Kind::broadcast, "Broadcast"}, {Kind::allreduce, "Allreduce"},
    {Kind::reduce, "Reduce"},       {Kind::reduce_scatter, "ReduceScatter"},
    {Kind::allgather, "Allgather"}, {Kind::gather, "Gather"},
    {Kind::scatter, "Scatter"},     {Kind::alltoall, "Alltoall"},
    {Kind::scan, "Scan"},           {Kind::exscan, "Exscan"},
    {Kind::barrier, "Barrier"},
};

// The arguments of any collective, each of which takes what it knows.
struct Arguments {
  const void* in = nullptr;
  void* out = nullptr;
  int root = 0;
  std::int64_t count = 3;
  Counts counts = {};          // of blocks
  Counts sent, received = {};  // of an alltoall
  DType type = DType::f64;
  ReduceOp op = ReduceOp::sum;
  CollectiveOptions options = {};
};

template <class Blocks, class... More>
Operation with_counts(const Context& ctx, const Arguments& a, const More&... more) {
  if (a.counts.empty()) return Blocks(ctx, a.in, a.out, a.count, a.type, more..., a.options);
  return Blocks(ctx, a.in, a.out, a.counts, a.type, more..., a.options);
}
template <class Blocks>
Operation with_root(const Context& ctx, const Arguments& a) {
  if (a.counts.empty()) return Blocks(ctx, a.root, a.in, a.out, a.count, a.type, a.options);
  return Blocks(ctx, a.root, a.in, a.out, a.counts, a.type, a.options);
}

Operation make(const Context& ctx, Kind kind, const Arguments& a) {
  switch (kind) {
    case Kind::broadcast:
      return Broadcast(ctx, a.root, a.out, a.count, a.options);
    case Kind::allreduce:
      return Allreduce(ctx, a.in, a.out, a.count, a.type, a.op, a.options);
    case Kind::reduce:
      return Reduce(ctx, a.root, a.in, a.out, a.count, a.type, a.op, a.options);
    case Kind::reduce_scatter:
      return with_counts<ReduceScatter>(ctx, a, Operator(a.op));
    case Kind::allgather:
      return with_counts<Allgather>(ctx, a);
    case Kind::gather:
      return with_root<Gather>(ctx, a);
    case Kind::scatter:
      return with_root<Scatter>(ctx, a);
    case Kind::alltoall:
      if (a.sent.empty()) return Alltoall(ctx, a.in, a.out, a.count, a.type, a.options);
      return Alltoall(ctx, a.in, a.out, a.sent, a.received, a.type, a.options);
    case Kind::scan:
      return Scan(ctx, a.in, a.out, a.count, a.type, a.op, a.options);
    case Kind::exscan:
      return Exscan(ctx, a.in, a.out, a.count, a.type, a.op, a.options);
    case Kind::barrier:
      break;
  }
  return Barrier(ctx, a.options);
}

// What ranks may get wrong, one of them otherwise than the others.
class Wrong {
 public:
  explicit Wrong(const Context& ctx)
      : ctx_(ctx), in_(static_cast<std::size_t>(8 * ctx.size())), out_(in_.size()), last_(ctx.size() - 1) {}

  Arguments good() {
    Arguments a;
    a.in = in_.data();
    a.out = out_.data();
    return a;
  }

  // On the last rank an argument is otherwise.
  template <class Change>
  void differs(const Named& what, const std::string& expected, Change&& change) {
    Arguments a = good();
    if (ctx_.rank() == last_) change(a);
    says(error_of([&] { make(ctx_, what.kind, a); }), what.name + ": " + expected);
  }
  std::string values(const std::string& argument, const std::string& first, const std::string& other) const {
    return "argument '" + argument + "' differs between ranks: rank 0 has " + first + ", rank " +
           std::to_string(last_) + " has " + other;
  }

  // It works afterwards.
  void once() {
    Arguments a = good();
    Operation sum = make(ctx_, Kind::allreduce, a);
    for (int turn = 1; turn < 3; ++turn) {
      for (std::size_t i = 0; i < 3; ++i) in_[i] = ctx_.rank() * turn + static_cast<double>(i);
      sum.start();
      sum.wait();
      for (std::size_t i = 0; i < 3; ++i)
        CHECK(out_[i] == turn * last_ * (last_ + 1) / 2 + static_cast<double>(i) * ctx_.size());
    }
  }

  std::vector<double>& in() { return in_; }
  std::vector<double>& out() { return out_; }
  int last() const { return last_; }

 private:
  const Context& ctx_;
  std::vector<double> in_, out_;
  int last_;
};

}  // namespace

RANK_TEST("an argument that differs between ranks is named with both values, whatever the collective") {
  if (ctx.size() == 1) return;
  Wrong wrong(ctx);
  for (std::size_t k = 0; k < kAll.size(); ++k) {
    const Named& what = kAll[k];
    const std::string L = std::to_string(wrong.last());
    if (rooted(what.kind)) wrong.differs(what, wrong.values("root", "0", L), [&](auto& a) { a.root = wrong.last(); });
    if (what.kind != Kind::barrier) {
      const std::string count = what.kind == Kind::broadcast ? "bytes" : "count";
      wrong.differs(what, wrong.values(count, "3", "2"), [](auto& a) { a.count = 2; });
    }
    if (what.kind != Kind::barrier && what.kind != Kind::broadcast)
      wrong.differs(what, wrong.values("type", "f64", "i32"), [](auto& a) { a.type = DType::i32; });
    if (reduces(what.kind)) {
      wrong.differs(what, wrong.values("op", "sum", "min"), [](auto& a) { a.op = ReduceOp::min; });
      wrong.differs(what, wrong.values("ordered", "false", "true"), [](auto& a) { a.options.ordered = true; });
    }
    if (!rooted(what.kind) && what.kind != Kind::barrier)
      wrong.differs(what, wrong.values("in_place", "false", "true"), [](auto& a) { a.in = in_place; });
    if (has_blocks(what.kind) && what.kind != Kind::alltoall) {
      wrong.differs(what, "the ranks pass different arguments: rank 0 'count', rank " + L + " 'counts'",
                    [&](auto& a) { a.counts.assign(static_cast<std::size_t>(ctx.size()), 3); });
      Arguments a = wrong.good();
      a.counts.assign(static_cast<std::size_t>(ctx.size()), 3);
      if (ctx.rank() == wrong.last()) a.counts[0] = 2;
      says(error_of([&] { make(ctx, what.kind, a); }), what.name + ": argument 'counts' differs between ranks");
    }
    if (what.kind == Kind::alltoall) {
      wrong.differs(what, wrong.values("individual counts", "false", "true"), [&](auto& a) {
        a.sent = a.received = Counts(static_cast<std::size_t>(ctx.size()), 3);
        a.count = 0;
      });
    }
    wrong.differs(what, wrong.values("path", "auto", "mpi"), [](auto& a) { a.options.path = "mpi"; });
    // What it is driven by is compared under the plan's name, `allreduce`.
    Arguments a = wrong.good();
    if (ctx.rank() == wrong.last()) a.options.engine = "thread";
    says(error_of([&] { make(ctx, what.kind, a); }), wrong.values("engine", "inline", "thread"));
    const Named& next = kAll[(k + 1) % kAll.size()];
    says(error_of([&] { make(ctx, ctx.rank() == wrong.last() ? next.kind : what.kind, wrong.good()); }),
         "the ranks do different things: rank 0 makes " + what.name + ", rank " + L + " makes " + next.name);
    wrong.once();
  }
}

RANK_TEST("one rank's wrong argument is told to all, whatever the collective") {
  Wrong wrong(ctx);
  const std::string of_last = "rank " + std::to_string(wrong.last()) + ": ";
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  const auto ranks = static_cast<std::size_t>(ctx.size());
  for (const Named& what : kAll) {
    const std::string count = what.kind == Kind::broadcast ? "bytes" : "count";
    if (what.kind == Kind::barrier) continue;
    wrong.differs(what, of_last + "argument '" + count + "' is -2", [](auto& a) { a.count = -2; });
    for (const std::int64_t huge : {kHuge, kHuge / 8, (std::int64_t{1} << 50) + 1}) {
      wrong.differs(what, of_last + "argument '" + count + "' is " + std::to_string(huge) + "; more than can be moved",
                    [&](auto& a) { a.count = huge; });
    }
    if (has_blocks(what.kind) && what.kind != Kind::alltoall) {
      wrong.differs(what, of_last + "argument 'counts' is -1 for block 0", [&](auto& a) {
        a.counts.assign(ranks, 1);
        a.counts[0] = -1;
      });
      wrong.differs(what, of_last + "argument 'counts' is " + std::to_string(kHuge) + " for block 0", [&](auto& a) {
        a.counts.assign(ranks, 1);
        a.counts[0] = kHuge;
      });
      wrong.differs(what, of_last + "argument 'counts' has " + std::to_string(ranks + 1) + " entries",
                    [&](auto& a) { a.counts.assign(ranks + 1, 1); });
      if (ranks > 1) {
        wrong.differs(what, of_last + "argument 'counts' adds up to more than can be moved", [&](auto& a) {
          a.counts.assign(ranks, std::int64_t{1} << 46);
          a.counts[0] = a.counts[1] = std::int64_t{1} << 47;
        });
      }
    }
    if (rooted(what.kind)) {
      for (const int root : {-1, ctx.size(), std::numeric_limits<int>::min()})
        wrong.differs(what, of_last + "argument 'root' is " + std::to_string(root), [&](auto& a) { a.root = root; });
    }
    if (what.kind != Kind::broadcast) {
      wrong.differs(what, of_last + "argument 'type' is none", [](auto& a) { a.type = DType::none; });
      wrong.differs(what, of_last + "argument 'type': DType: 200 is no number type",
                    [](auto& a) { a.type = static_cast<DType>(200); });
    }
    if (reduces(what.kind))
      wrong.differs(what, of_last + "argument 'op': ReduceOp: 99 is no operator",
                    [](auto& a) { a.op = static_cast<ReduceOp>(99); });
    wrong.differs(what, of_last + "there is no algorithm 'magic' for ", [](auto& a) { a.options.algorithm = "magic"; });
    wrong.differs(what, of_last + "option", [](auto& a) { a.options.trees = -1; });
  }
  const auto of_alltoall = [&](const std::string& expected, std::size_t entries, std::int64_t first) {
    Arguments a = wrong.good();
    a.sent = a.received = Counts(ranks, 1);
    if (ctx.rank() == wrong.last()) {
      a.sent.resize(entries);
      a.sent[0] = first;
    }
    says(error_of([&] { make(ctx, Kind::alltoall, a); }), "Alltoall: " + of_last + "argument " + expected);
  };
  of_alltoall("'send_counts' is -4 for rank 0", ranks, -4);
  of_alltoall("'send_counts' has " + std::to_string(ranks + 2) + " entries", ranks + 2, 1);
  wrong.once();
}

RANK_TEST("a barrier of streams needs a GPU on every rank, and is one on all ranks or on none") {
  if (ctx.size() > 1) {
    const bool last = ctx.rank() == ctx.size() - 1;
    says(error_of([&] { Barrier x(ctx, last ? Memory::device : Memory::host); }),
         "Barrier: argument 'where' differs between ranks: rank 0 has host, rank " + std::to_string(ctx.size() - 1) +
             " has device");
  }
  if (!why_no_gpu().empty()) says(error_of([&] { Barrier x(ctx, Memory::device); }), why_no_gpu());
}

RANK_TEST("buffers that are missing, or overlap by one element, are refused, and those that only touch are not") {
  Wrong wrong(ctx);
  const int n = ctx.size();
  std::vector<double> memory(static_cast<std::size_t>(8 * n));
  for (const Named& what : kAll) {
    if (what.kind == Kind::barrier || what.kind == Kind::broadcast) continue;
    // Elements that the root, or every rank, uses.
    const bool many_in = what.kind == Kind::reduce_scatter || what.kind == Kind::scatter || what.kind == Kind::alltoall;
    const bool many_out = what.kind == Kind::allgather || what.kind == Kind::gather || what.kind == Kind::alltoall;
    const std::ptrdiff_t in = many_in ? 3 * n : 3;
    const std::ptrdiff_t out = many_out ? 3 * n : 3;
    for (const bool in_first : {true, false}) {
      for (const std::ptrdiff_t shared : {1, 0}) {
        Arguments a = wrong.good();
        a.in = memory.data() + (in_first ? 0 : out - shared);
        a.out = memory.data() + (in_first ? in - shared : 0);
        const std::string error = error_of([&] { make(ctx, what.kind, a); });
        says(error,
             shared == 0 ? "no error" : what.name + ": rank 0: arguments 'in' and 'out' overlap in memory; work in ");
      }
    }
    const bool only_root_takes = what.kind == Kind::reduce || what.kind == Kind::gather;
    const auto without = [&](bool no_in) {
      Arguments a = wrong.good();
      a.root = n / 2;
      if (ctx.rank() == wrong.last() && no_in) a.in = nullptr;
      if (ctx.rank() == wrong.last() && !no_in) a.out = nullptr;
      return error_of([&] { make(ctx, what.kind, a); });
    };
    const bool last_is_root = wrong.last() == n / 2;
    const std::string null = what.name + ": rank " + std::to_string(wrong.last()) + ": argument '";
    says(without(true), what.kind != Kind::scatter || last_is_root ? null + "in' is null" : "no error");
    says(without(false), !only_root_takes || last_is_root ? null + "out' is null" : "no error");
  }
  // There is nothing beside a broadcast's data that could take the place of it.
  Arguments a = wrong.good();
  a.out = in_place;
  says(error_of([&] { make(ctx, Kind::broadcast, a); }), "Broadcast: rank 0: argument 'data' is in_place");
  wrong.once();
}

RANK_TEST("an operator on a type that has none is refused by every reduction") {
  Wrong wrong(ctx);
  const std::vector<Named> reductions{kAll[1], kAll[2], kAll[3], kAll[8], kAll[9]};
  std::size_t next = 0;
  for (int type = 1; type <= static_cast<int>(DType::i64_i64); ++type) {
    for (int op = 0; op < static_cast<int>(ReduceOp::own); ++op) {
      Arguments a = wrong.good();
      a.type = static_cast<DType>(type);
      a.op = static_cast<ReduceOp>(op);
      const bool of_bits = a.op >= ReduceOp::band && a.op <= ReduceOp::lxor;
      if (a.type == DType::f64 && of_bits) CHECK(!defined(a.op, a.type));
      if (defined(a.op, a.type)) continue;
      const Named& what = reductions[next++ % reductions.size()];
      says(error_of([&] { make(ctx, what.kind, a); }),
           what.name + ": rank 0: argument 'op' is " + std::string(to_string(a.op)) +
               ", which has no meaning for elements of " + std::string(to_string(a.type)));
    }
  }
  CHECK(next > 100);
  wrong.once();
}

RANK_TEST("calls of a collective that come when they may not are refused, and it goes on") {
  Wrong wrong(ctx);
  for (const std::string engine : {"inline", "thread"}) {
    for (const Named& what : kAll) {
      CAPTURE(engine);
      CAPTURE(what.name);
      Arguments a = wrong.good();
      a.options.engine = engine;
      a.root = wrong.last();
      Operation operation = make(ctx, what.kind, a);
      operation.wait();  // nothing is active: no effect
      CHECK(operation.test());
      CHECK(!operation.active());
      for (int epoch = 1; epoch < 4; ++epoch) {
        const std::string active = "while epoch " + std::to_string(epoch) + " is ";
        const std::string who = "rank " + std::to_string(ctx.rank()) + ": ";
        operation.start();
        CHECK(operation.active());
        says(error_of([&] { operation.start(); }), "start " + active + "still active");
        says(error_of([&] { operation.free(); }), "free " + active + "active");
        says(error_of([&] { operation.free(); }), who);
        says(error_of([&] { operation.start(nullptr); }), "streams are for operations on GPU memory");
        operation.wait();
        CHECK(!operation.active());
        operation.wait();
        CHECK(operation.test());
      }
      operation.free();
      operation.free();  // no effect
      says(error_of([&] { operation.start(); }), "start after free");
      says(error_of([&] { operation.test(); }), "test after free");
      says(error_of([&] { operation.wait(); }), "wait after free");
      CHECK(!operation.active());
    }
  }
  wrong.once();
}

RANK_TEST("what has nothing to do on any rank takes any stream, for its memory may be of any kind") {
  double here = 0;
  std::vector<double> there(static_cast<std::size_t>(ctx.size()));
  Allgather nothing(ctx, &here, there.data(), 0, DType::f64);
  nothing.run(nullptr);
  nothing.start(nullptr);
  nothing.wait(nullptr);
  nothing.start();
  nothing.wait();
  Allgather some(ctx, &here, there.data(), 1, DType::f64);
  CHECK(error_of([&] { some.start(nullptr); }).find("streams are for operations on GPU memory") != std::string::npos);
}
