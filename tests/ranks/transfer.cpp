// Transfers: layouts of different shape on the two sides, on every path, between every kind of pair.
#include "tasuki/transfer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "host_paths.hpp"
#include "rank_test.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

// A random layout without overlaps of exactly `bytes` bytes (a multiple of 8): vector, list or negative stride.
Layout random_layout(std::int64_t bytes, std::mt19937& random) {
  const std::int64_t cells = bytes / 8;
  const Layout cell = Layout::of<double>();
  switch (random() % 4) {
    case 0:
      return Layout::contiguous(cells, cell);
    case 1:
      return Layout::vector(cells, 1, 2 + static_cast<std::int64_t>(random() % 5), cell);
    case 2:
      return Layout::hvector(cells, 1, -24, cell);
    default: {
      std::vector<std::int64_t> lengths;
      std::vector<std::int64_t> displacements;
      std::int64_t at = 0;
      for (std::int64_t left = cells; left > 0;) {
        const std::int64_t length = std::min<std::int64_t>(left, 1 + static_cast<std::int64_t>(random() % 9));
        at += static_cast<std::int64_t>(random() % 4);
        lengths.push_back(length);
        displacements.push_back(at);
        at += length;
        left -= length;
      }
      return Layout::indexed(lengths, displacements, cell);
    }
  }
}

}  // namespace

RANK_TEST("any layout arrives in any other of equal size, on every path, with new data every time, thread too") {
  std::mt19937 random(5);
  constexpr std::int64_t kRoom = 1 << 20;
  const auto shared = shared_alloc(ctx, 2 * kRoom);
  for (int i = 0; i < 24; ++i) {
    const std::int64_t bytes = 8 * (1 + static_cast<std::int64_t>(random() % (i % 4 == 0 ? 12000 : 300)));
    const Layout src = random_layout(bytes, random);
    const Layout dst = random_layout(bytes, random);
    const int from = static_cast<int>(random() % static_cast<unsigned>(ctx.size()));
    const int to = static_cast<int>(random() % static_cast<unsigned>(ctx.size()));
    const auto names = host_paths(ctx);
    OperationOptions options;
    options.path = from == to ? "auto" : names[random() % names.size()];
    options.engine = i % 3 == 0 ? "thread" : "inline";
    std::byte* out = shared.get() - src.true_lower_bound();
    std::byte* in = shared.get() + kRoom - dst.true_lower_bound();
    Transfer transfer(ctx, {from, out, src}, {to, in, dst}, options);
    CHECK(verify(transfer).ok());
    for (int iteration = 0; iteration < 3; ++iteration) {
      std::mt19937 noise(static_cast<unsigned>(i * 10 + iteration));
      std::vector<std::byte> sent(static_cast<std::size_t>(bytes));
      for (auto& byte : sent) byte = static_cast<std::byte>(noise());
      if (ctx.rank() == from) src.unpack(sent.data(), out);
      if (ctx.rank() == to) std::memset(shared.get() + kRoom, 0, kRoom);
      transfer.start();
      transfer.wait();
      if (ctx.rank() == to) {
        std::vector<std::byte> got(sent.size());
        dst.pack(in, got.data());
        CHECK(got == sent);
      }
    }
    ctx.barrier();
  }
}

RANK_TEST("a long column is handed over in slices, one unpacked while the next is packed") {
  constexpr std::int64_t kNumbers = 1117;
  constexpr std::int64_t kFrom = 37;  // numbers in a row
  constexpr std::int64_t kTo = 512;   // a page
  const int last = ctx.size() - 1;
  if (last == 0) return;
  const Layout src = Layout::vector(kNumbers, 1, kFrom, Layout::of<double>());
  const Layout dst = Layout::vector(kNumbers, 1, kTo, Layout::of<double>());
  std::vector<double> from(kNumbers * kFrom);
  std::vector<double> to(kNumbers * kTo);
  for (const char* engine : {"inline", "thread"}) {
    OperationOptions options;
    options.path = "shared:eager";
    options.engine = engine;
    Transfer transfer(ctx, {0, from.data() + 3, src}, {last, to.data() + 5, dst}, options);
    CHECK(verify(transfer).ok());
    const auto& commands = transfer.plan().commands;
    const auto count = [&](Verb verb) {
      return std::count_if(commands.begin(), commands.end(), [&](const Command& c) { return c.verb == verb; });
    };
    if (ctx.rank() == 0) CHECK(count(Verb::put) == 4);
    if (ctx.rank() == last) CHECK(count(Verb::copy) == 4);
    for (int iteration = 0; iteration < 5; ++iteration) {
      const auto value = [&](std::size_t n) {
        return static_cast<double>(n * 10 + static_cast<std::size_t>(iteration));
      };
      for (std::size_t n = 0; n < kNumbers; ++n) from[n * kFrom + 3] = value(n);
      std::fill(to.begin(), to.end(), -1.0);
      transfer.start();
      transfer.wait();
      int wrong = 0;
      for (std::size_t at = 0; at < to.size(); ++at) {
        const bool inside = ctx.rank() == last && at % kTo == 5;
        wrong += to[at] == (inside ? value(at / kTo) : -1.0) ? 0 : 1;
      }
      CHECK(wrong == 0);
    }
    ctx.barrier();
  }
}

RANK_TEST("private memory is transferred too, large and small") {
  const int last = ctx.size() - 1;
  for (const std::int64_t cells : {1, 100, 5000, 300000}) {
    std::vector<double> out(static_cast<std::size_t>(cells));
    std::vector<double> in(static_cast<std::size_t>(cells));
    Transfer transfer(ctx, {0, out.data(), Layout::of<double>(cells)}, {last, in.data(), Layout::of<double>(cells)});
    CHECK(verify(transfer).ok());
    for (int iteration = 0; iteration < 3; ++iteration) {
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(i) + 0.5 * iteration;
      transfer.start();
      transfer.wait();
      if (ctx.rank() == last) CHECK(in == out);
    }
  }
}

RANK_TEST("wrong arguments of a transfer are named on every rank") {
  const int last = ctx.size() - 1;
  std::vector<double> a(16);
  std::vector<double> b(16);
  const Layout eight = Layout::of<double>(8);
  CHECK(error_of([&] {
          Transfer t(ctx, {0, a.data(), eight}, {last, b.data(), Layout::of<double>(7)});
        }).find("layouts of unequal size: 'from' names 64 bytes on rank 0, 'to' names 56 bytes") != std::string::npos);
  CHECK(error_of([&] {
          Transfer t(ctx, {0, a.data(), eight}, {99, b.data(), eight});
        }).find("'to.rank' is 99") != std::string::npos);
  CHECK(error_of([&] {
          Transfer t(ctx, {0, a.data(), eight}, {last, b.data(), Layout::vector(8, 1, 0, Layout::of<double>())});
        }).find("names a byte twice") != std::string::npos);
  CHECK(error_of([&] {
          Transfer t(ctx, {0, nullptr, eight}, {last, b.data(), eight});
        }).find("'from.base' is null") != std::string::npos);
  CHECK(error_of([&] {
          Transfer t(ctx, {0, a.data(), eight}, {0, a.data() + 4, eight});
        }).find("source and destination overlap") != std::string::npos);
  // Both sides on one rank: each has its own base. A source may name a byte twice, but not what is written.
  CHECK(error_of([&] {
          Transfer t(ctx, {0, a.data(), eight}, {0, nullptr, eight});
        }).find("'to.base' is null") != std::string::npos);
  const Layout twice = Layout::vector(8, 1, 0, Layout::of<double>());
  CHECK(error_of([&] {
          Transfer t(ctx, {0, a.data() + 7, twice}, {0, a.data(), eight});
        }).find("source and destination overlap") != std::string::npos);
  a[0] = 4.5;
  Transfer spread(ctx, {0, a.data(), twice}, {0, a.data() + 1, eight});
  spread.start();
  spread.wait();
  if (ctx.is_root()) CHECK(a[8] == 4.5);
  if (ctx.size() > 1) {
    CHECK(error_of([&] {
            Transfer t(ctx, {ctx.rank() == 1 ? 1 : 0, a.data(), eight}, {last, b.data(), eight});
          }).find("from.rank") != std::string::npos);
  }
}
