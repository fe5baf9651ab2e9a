// Names of any bytes, wherever a user may give one: they must not disturb what ranks tell each other.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "checks.hpp"
#include "error_of.hpp"
#include "host_paths.hpp"
#include "rank_test.hpp"
#include "tasuki/saved_plan.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

const std::vector<std::string> kNames{"p\nq",
                                      "\n",
                                      std::string("\0z", 2),
                                      std::string("a\0b", 3),
                                      "\xff\xfe\n",
                                      "ü→☃",
                                      "12:34",
                                      " ",
                                      "u \"v\" # '\\",
                                      "arrived.0<1",
                                      "check out",
                                      "{} %s %n",
                                      "end",
                                      std::string(100001, 'x')};

// As errors show it: their texts hold no NUL.
std::string shown(std::string name) {
  for (std::size_t at = name.find('\0'); at != std::string::npos; at = name.find('\0', at)) name.replace(at, 1, "\\0");
  return name;
}

}  // namespace

RANK_TEST("fields of any name: halos on every path, their plans written, read back and loaded") {
  const int n = ctx.size();
  const Grid grid(ctx, {4 * n, 5}, {.split = {n, 1}, .periodic = {true, false}});
  const auto paths = host_paths(ctx);
  std::size_t turn = 0;
  for (const std::string& name : kNames) {
    CAPTURE(name.substr(0, 20));
    Field<double> u(grid, {.name = name, .shadow = 1, .copies = 2});
    Field<double> v(grid, {.name = name + "2", .shadow = 1});
    HaloOptions options;
    options.path = paths[turn++ % paths.size()];
    Halo halo({u, v}, options);
    check_plan(halo);
    const Plan plan = halo.plan();
    CHECK(plan_from_text(to_text(plan)) == plan);
    CHECK(halo.explain().find(name) != std::string::npos);
    SavedPlan loaded(ctx, plan, {PlanMemory(u), PlanMemory(v)});
    for (int epoch = 0; epoch < 3; ++epoch) {
      Operation& operation = epoch == 1 ? static_cast<Operation&>(loaded) : halo;
      const auto value = [&](int rank) { return 100.0 * epoch + rank; };
      u.for_each([&](const Index&, double& cell) { cell = value(ctx.rank()); });
      v.for_each([&](const Index&, double& cell) { cell = -value(ctx.rank()); });
      operation.start();
      operation.wait();
      CHECK(u.data()[2] == value((ctx.rank() + n - 1) % n));  // of the first row, and of the last
      CHECK(v.data()[5 * v.strides()[0] + 3] == -value((ctx.rank() + 1) % n));
    }
  }
  says(error_of([&] { Field<double> u(grid, {.name = ""}); }), "option 'name' is empty");
}

RANK_TEST("operators, options and values of any name: the same is run or refused on all ranks, what differs is named") {
  const int n = ctx.size();
  std::vector<double> in(9), out(9);
  for (const std::string& name : kNames) {
    CAPTURE(name.substr(0, 20));
    const Operator sum(name, [](const void* right, void* left, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) static_cast<double*>(left)[i] += static_cast<const double*>(right)[i];
    });
    Allreduce all(ctx, in.data(), out.data(), 9, DType::f64, sum);
    check_plan(all);
    for (int epoch = 0; epoch < 2; ++epoch) {
      in.assign(9, ctx.rank() + 10.0 * epoch);
      all.start();
      all.wait();
      CHECK(out[8] == n * (n - 1) / 2 + 10.0 * epoch * n);
    }
    CollectiveOptions wrong;
    wrong.path = name;
    says(error_of([&] { Allreduce x(ctx, in.data(), out.data(), 9, DType::f64, sum, wrong); }), "path");
    wrong.path = "auto";
    wrong.engine = name;
    says(error_of([&] { Allreduce x(ctx, in.data(), out.data(), 9, DType::f64, sum, wrong); }), "no engine");
    wrong.engine = "auto";
    wrong.algorithm = name;
    says(error_of([&] { Allreduce x(ctx, in.data(), out.data(), 9, DType::f64, sum, wrong); }), "no algorithm");
    ctx.agree(name, {{name, name}, {"", name}});
    CHECK(ctx.allgather(name)[static_cast<std::size_t>(n - 1)] == name);
    if (n == 1) continue;
    const std::string mine = ctx.is_root() ? name : name + "\n";
    says(error_of([&] { ctx.agree("sum", {{"name", mine}}); }), "argument 'name' differs between ranks");
    // Where one text ends and the next begins is told as well.
    const bool root = ctx.is_root();
    says(error_of([&] {
           ctx.agree("sum", {{root ? name : name + "\n", root ? "\n" + name : name}});
         }),
         "the ranks pass different arguments");
    says(error_of([&] { ctx.agree("sum", {{"x", "1"}}, root ? name : ""); }), "sum: rank 0: " + shown(name));
    const Operator other(mine, [](const void*, void*, std::int64_t) {});
    says(error_of([&] { Allreduce x(ctx, in.data(), out.data(), 9, DType::f64, other); }), "argument 'op' differs");
  }
}

RANK_TEST("what a transfer moves may be called anything") {
  const int n = ctx.size();
  std::vector<double> from(5), to(5);
  for (const std::string& name : kNames) {
    CAPTURE(name.substr(0, 20));
    Transfer transfer(ctx, {0, from.data(), Layout::bytes(40), name}, {n - 1, to.data(), Layout::bytes(40), name});
    for (int epoch = 0; epoch < 2; ++epoch) {
      from.assign(5, 3.0 + epoch);
      transfer.start();
      transfer.wait();
      if (ctx.rank() == n - 1) CHECK(to[4] == 3.0 + epoch);
    }
    if (n == 1 || (ctx.rank() > 0 && ctx.rank() < n - 1)) continue;
    says(error_of([&] {
           Transfer x(ctx, {0, from.data(), Layout::bytes(40), name},
                      {n - 1, to.data(), Layout::bytes(40), name + "\n"});
         }),
         "but 'to' has " + shown(name));
  }
}
