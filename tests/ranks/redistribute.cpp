// Redistributions: random arrays over random ranks, permuted, in sections, in any memory order, over every path and
// engine, with new data at every start, against plain loops; and what is said of wrong arguments.
#include "tasuki/redistribute.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "checks.hpp"
#include "error_of.hpp"
#include "host_paths.hpp"
#include "rank_test.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

using Numbers = std::vector<std::int64_t>;
using Random = std::mt19937;

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

int below(Random& random, std::int64_t n) {
  return static_cast<int>(random() % static_cast<unsigned>(n));
}

ArrayDistribution random_array(Random& random, const Numbers& extents, int ranks) {
  ArrayDistribution array{extents, {}};
  int left = ranks;
  for (const std::int64_t extent : extents) {
    const int parts = 1 + below(random, left);
    left /= parts;
    switch (below(random, 4)) {
      case 0:
        array.dims.push_back(DimDistribution::cyclic(parts, 1 + below(random, 3)));
        break;
      case 1:
        array.dims.push_back(DimDistribution::replicated(parts));
        break;
      case 2: {
        Numbers cuts{0, extent};
        while (std::ssize(cuts) <= parts) cuts.push_back(below(random, extent + 1));
        std::ranges::sort(cuts);
        array.dims.push_back(DimDistribution::between(cuts));
        break;
      }
      default:
        array.dims.push_back(DimDistribution::block(parts));
    }
  }
  if (below(random, 2) == 0) return array;
  std::vector<int> all(at(ranks));
  std::iota(all.begin(), all.end(), 0);
  std::ranges::shuffle(all, random);
  array.ranks.assign(all.begin(), all.begin() + array.grid_size());
  return array;
}

// A rank's local array in a memory order of its own: strides in elements, some elements are nobody's.
struct LocalDoubles {
  Numbers extents, strides;
  std::vector<double> values;

  LocalDoubles(Random& random, Numbers local) : extents(std::move(local)), strides(extents.size()) {
    std::vector<std::size_t> order(extents.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::shuffle(order, random);
    std::int64_t stride = 1 + below(random, 2);
    for (const std::size_t d : order) {
      strides[d] = stride;
      stride *= extents[d] + below(random, 2);
    }
    values.resize(at(stride + 1), -1);
  }
  MovedArray::Local local() const {
    MovedArray::Local how;
    for (const std::int64_t stride : strides) how.strides.push_back(8 * stride);
    how.bytes = 8 * std::ssize(values);
    return how;
  }
  // Calls `f` with local indices and the element.
  template <class F>
  void for_each(F&& f) {
    if (std::ranges::count(extents, 0) > 0) return;
    Numbers index(extents.size(), 0);
    for (;;) {
      f(index, values[at(std::inner_product(index.begin(), index.end(), strides.begin(), std::int64_t{0}))]);
      std::size_t d = index.size();
      while (d > 0 && ++index[d - 1] == extents[d - 1]) index[--d] = 0;
      if (d == 0) return;
    }
  }
};

Numbers global_index(const ArrayDistribution& array, int rank, const Numbers& local) {
  Numbers global;
  for (std::size_t d = 0; d < local.size(); ++d)
    global.push_back(array.indices(rank, static_cast<int>(d))[at(local[d])]);
  return global;
}

double value_at(const Numbers& source_index, int epoch) {
  double value = epoch;
  for (const std::int64_t index : source_index) value = 31 * value + static_cast<double>(index);
  return value;
}

}  // namespace

RANK_TEST("random arrays move to random distributions, over every path and engine, some in place") {
  Random random(451);
  const auto paths = host_paths(ctx);
  for (std::size_t number = 0; number < 5 * paths.size(); ++number) {
    const bool here = number % 4 == 1;  // in place
    const std::size_t dims = 1 + at(below(random, 3));
    std::vector<int> axes(dims);
    std::iota(axes.begin(), axes.end(), 0);
    std::ranges::shuffle(axes, random);
    Numbers counts, from_extents(dims), to_extents;
    std::vector<Section> from_sections(dims), to_sections;
    for (std::size_t d = 0; d < dims; ++d) {
      const std::int64_t count = 1 + below(random, 9);
      const auto a = at(axes[d]);
      const std::int64_t step = 1 + below(random, 2);
      to_sections.push_back({below(random, 3), count, step});
      to_extents.push_back(to_sections[d].start + (count - 1) * step + 1 + below(random, 2));
      from_sections[a] = {count - 1, count, -1};
      from_extents[a] = count + below(random, 3);
    }
    ArraySide from{random_array(random, from_extents, ctx.size()), from_sections};
    ArraySide to{random_array(random, to_extents, ctx.size()), to_sections};
    Random own(static_cast<unsigned>(number) * 100 + static_cast<unsigned>(ctx.rank()));
    LocalDoubles before(own, from.array.local(ctx.rank()));
    LocalDoubles after(own, to.array.local(ctx.rank()));
    RedistributeOptions options;
    options.path = paths[number % paths.size()];
    if (number % 3 == 2) options.scratch = here ? 1 << 16 : 4096;  // less than rings take
    if (options.path != "auto" && options.path != "mpi") options.path += ",shared:eager";
    options.engine = number % 2 == 0 ? "inline" : "thread";
    CAPTURE(number);
    CAPTURE(options.path);
    INFO(from.array.describe() << " to " << to.array.describe());
    const MovedArray how{"u", before.local(), after.local()};
    if (here) before.values.resize(std::max(before.values.size(), after.values.size()));
    const RedistributeArray array(how, before.values.data(), here ? before.values.data() : after.values.data());
    Redistribute operation(ctx, from, to, {array}, axes, options);
    check_plan(operation);
    for (int epoch = 1; epoch <= 3; ++epoch) {
      std::ranges::fill(before.values, -2.0);
      before.for_each([&](const Numbers& local, double& value) {
        value = value_at(global_index(from.array, ctx.rank(), local), epoch);
      });
      std::ranges::fill(after.values, -1.0);
      operation.start();
      operation.wait();
      if (here) before.values.swap(after.values);
      bool right = true;
      std::int64_t inside = 0;
      after.for_each([&](const Numbers& local, double& value) {
        const Numbers global = global_index(to.array, ctx.rank(), local);
        Numbers source(dims);
        bool in_section = true;
        for (std::size_t d = 0; d < dims; ++d) {
          const Section& taken = to_sections[d];
          const std::int64_t away = global[d] - taken.start;
          in_section = in_section && away >= 0 && away % taken.step == 0 && away / taken.step < taken.count;
          const Section& given = from_sections[at(axes[d])];
          source[at(axes[d])] = given.start + away / taken.step * given.step;
        }
        right = right && ((here && !in_section) || value == (in_section ? value_at(source, epoch) : -1.0));
        inside += in_section ? 1 : 0;
      });
      CHECK(right);
      if (here)
        before.values.swap(after.values);
      else
        CHECK(std::ranges::count_if(after.values, [](double value) { return value != -1; }) == inside);
    }
  }
}

RANK_TEST("random permuted arrays move with little scratch, as with much") {
  Random random(90);
  const int n = ctx.size();
  const ArraySide slabs{{{20, 11, 6}, {DimDistribution::block(n), DimDistribution::whole(), DimDistribution::whole()}}};
  const ArraySide dealt{
      {{11, 6, 20}, {DimDistribution::cyclic(n, 3), DimDistribution::whole(), DimDistribution::whole()}}};
  const std::vector<int> axes{1, 2, 0};
  for (const std::string& path : host_paths(ctx)) {
    for (const std::int64_t scratch : {std::int64_t{2} * n * 64, std::int64_t{2} * n * 500, std::int64_t{1} << 20}) {
      CAPTURE(path);
      CAPTURE(scratch);
      LocalDoubles before(random, slabs.array.local(ctx.rank()));
      LocalDoubles after(random, dealt.array.local(ctx.rank()));
      RedistributeOptions options;
      options.path = path == "auto" || path == "mpi" ? path : path + ",shared:eager";
      options.scratch = scratch;
      const RedistributeArray array(MovedArray{"u", before.local(), after.local()}, before.values.data(),
                                    after.values.data());
      Redistribute operation(ctx, slabs, dealt, {array}, axes, options);
      check_plan(operation);
      std::int64_t taken = 0;
      for (const Buffer& buffer : operation.plan().buffers)
        if (buffer.role == Role::scratch && buffer.rank == ctx.rank()) taken += buffer.bytes * buffer.ring;
      CHECK(taken <= scratch);
      for (int epoch = 1; epoch <= 3; ++epoch) {
        before.for_each([&](const Numbers& local, double& value) {
          value = value_at(global_index(slabs.array, ctx.rank(), local), epoch);
        });
        std::ranges::fill(after.values, -1.0);
        operation.start();
        operation.wait();
        bool right = true;
        after.for_each([&](const Numbers& local, double& value) {
          const Numbers at_target = global_index(dealt.array, ctx.rank(), local);
          right = right && value == value_at({at_target[2], at_target[0], at_target[1]}, epoch);
        });
        CHECK(right);
      }
    }
  }
}

RANK_TEST("several arrays of different types move in one operation, to one rank and back") {
  const std::int64_t rows = 5 * ctx.size() + 2;
  const ArraySide slabs{{{rows, 3}, {DimDistribution::block(ctx.size()), DimDistribution::whole()}}};
  const int root = ctx.size() - 1;
  const ArraySide whole{{{rows, 3}, {DimDistribution::whole(), DimDistribution::whole()}, {root}}};
  const Numbers indices = slabs.array.indices(ctx.rank(), 0);
  std::vector<float> u(indices.size() * 3), all_u(ctx.rank() == root ? at(rows) * 3 : 0);
  std::vector<std::int16_t> v(u.size()), all_v(all_u.size());
  Redistribute gather(ctx, slabs, whole, {{u, all_u, "u"}, {v, all_v, "v"}});
  Redistribute scatter(ctx, whole, slabs, {{all_u, u, "u"}, {all_v, v, "v"}});
  check_plan(gather);
  check_plan(scatter);
  CHECK(gather.plan().operation == "redistribute u,v");
  for (int epoch = 1; epoch <= 3; ++epoch) {
    for (std::size_t i = 0; i < u.size(); ++i) {
      u[i] = static_cast<float>(100 * epoch + 3 * indices[i / 3] + static_cast<std::int64_t>(i % 3));
      v[i] = static_cast<std::int16_t>(-u[i]);
    }
    const auto kept = u;
    gather.start();
    gather.wait();
    for (std::size_t i = 0; i < all_u.size(); ++i) {
      REQUIRE(all_u[i] == static_cast<float>(100 * epoch + static_cast<int>(i)));
      REQUIRE(all_v[i] == static_cast<std::int16_t>(-all_u[i]));
      all_u[i] += 1;
    }
    scatter.start();
    scatter.wait();
    for (std::size_t i = 0; i < u.size(); ++i) REQUIRE(u[i] == kept[i] + 1);
  }
}

RANK_TEST("redistributions that cannot be are named on every rank") {
  const int n = ctx.size();
  const ArraySide slabs{{{4 * n, 3}, {DimDistribution::block(n), DimDistribution::whole()}}};
  const ArraySide dealt{{{4 * n, 3}, {DimDistribution::cyclic(n), DimDistribution::whole()}}};
  std::vector<double> in(12), out(12);
  const auto said = [&](const ArraySide& from, const ArraySide& to, const std::vector<RedistributeArray>& arrays,
                        const std::vector<int>& axes = {}) {
    return error_of([&] { Redistribute(ctx, from, to, arrays, axes); });
  };
  const std::vector<RedistributeArray> plain{{in, out}};
  ArraySide other = dealt;
  other.array.extents = {4 * n, 4};
  CHECK(said(slabs, other, plain).find("but that of 'to' is") != std::string::npos);
  CHECK(said(slabs, dealt, plain, {0, 0}).find("argument 'axes' is (0, 0)") != std::string::npos);
  other = dealt;
  other.array.ranks.assign(at(n), 0);
  other.array.ranks.back() = n;
  CHECK(said(slabs, other, plain).find("is named, but there are ranks 0 to") != std::string::npos);
  other = dealt;
  other.sections = {{0, 2 * n, 2}, {0, 3, 1}};
  CHECK(said(slabs, other, plain).find("the section of argument 'from' is") != std::string::npos);
  // What only the last rank does wrong is heard by all.
  const bool last = ctx.rank() == n - 1;
  std::vector<double> small(last ? 11 : 12);
  const std::string who = "Redistribute: rank " + std::to_string(n - 1) + ": array array: ";
  CHECK(said(slabs, dealt, {{in, small}}) ==
        who +
            "the memory of the target is too small: the local array of 4 x 3 cells has bytes 0 to 95, but the memory "
            "88 bytes");
  RedistributeArray twice(in, out);
  if (last) twice.target.strides = {16, 8};
  CHECK(said(slabs, dealt, {twice}).find(who + "cells of the target share bytes, which would be written twice") !=
        std::string::npos);
  RedistributeArray nothing(in, out);
  if (last) nothing.to = nullptr;
  CHECK(said(slabs, dealt, {nothing}).find("the target of array array is null") != std::string::npos);
  RedistributeOptions little;
  little.scratch = 1;
  little.path = "mpi";
  if (n > 1 && !runtime_of(ctx).topology().threads) {
    const ArraySide blocks{{{40 * n}, {DimDistribution::block(n)}}};
    const ArraySide turns{{{40 * n}, {DimDistribution::cyclic(n)}}};
    const std::vector<double> before(40);
    std::vector<double> after(40);
    CHECK(error_of([&] {
            Redistribute(ctx, blocks, turns, {{before, after}}, {}, little);
          }).find("of scratch") != std::string::npos);
  }
  little.scratch = -3;
  CHECK(error_of([&] { Redistribute(ctx, slabs, dealt, plain, {}, little); }).find("argument 'scratch' is -3") !=
        std::string::npos);
  std::vector<double> again(12);
  RedistributeArray same(in, again, "other");
  if (last) same.to = out.data();
  CHECK(said(slabs, dealt, {{in, out}, same}).find("overlap in memory: this rank would receive two things") !=
        std::string::npos);
  if (n > 1) {
    CHECK(said(last ? dealt : slabs, dealt, plain).find("'from'") != std::string::npos);
    RedistributeArray shorter(in, out);
    if (last) shorter.source.cell = shorter.target.cell = Layout::bytes(4);
    CHECK(said(slabs, dealt, {shorter}).find("bytes of a cell of array array") != std::string::npos);
  }
  Redistribute works(ctx, slabs, dealt, plain);
  works.start();
  works.wait();
}
