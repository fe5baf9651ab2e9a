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
#include "paths/path.hpp"
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

// Only the two sides make a transfer, so only they hear of what is wrong with it.
RANK_TEST("wrong arguments of a transfer are named on both of its ranks, and concern nobody else") {
  const int last = ctx.size() - 1;
  const bool side = ctx.rank() == 0 || ctx.rank() == last;
  std::vector<double> a(16);
  std::vector<double> b(16);
  const Layout eight = Layout::of<double>(8);
  const auto complains = [&](bool concerned, const std::string& error, const char* about) {
    INFO(error);
    return concerned ? error.find(about) != std::string::npos : error == "no error";
  };
  CHECK(complains(side, error_of([&] {
                    Transfer t(ctx, {0, a.data(), eight}, {last, b.data(), Layout::of<double>(7)});
                  }),
                  "layouts of unequal size: 'from' names 64 bytes on rank 0, 'to' names 56 bytes"));
  CHECK(complains(true, error_of([&] {
                    Transfer t(ctx, {0, a.data(), eight}, {99, b.data(), eight});
                  }),
                  "'to.rank' is 99"));
  const Layout twice = Layout::vector(8, 1, 0, Layout::of<double>());
  CHECK(complains(side, error_of([&] {
                    Transfer t(ctx, {0, a.data(), eight}, {last, b.data(), twice});
                  }),
                  "names a byte twice"));
  CHECK(complains(side, error_of([&] {
                    Transfer t(ctx, {0, nullptr, eight}, {last, b.data(), eight});
                  }),
                  "'from.base' is null"));
  CHECK(complains(ctx.is_root(), error_of([&] {
                    Transfer t(ctx, {0, a.data(), eight}, {0, a.data() + 4, eight});
                  }),
                  "source and destination overlap"));
  // Both sides on one rank: each has its own base. A source may name a byte twice, but not what is written.
  CHECK(complains(ctx.is_root(), error_of([&] {
                    Transfer t(ctx, {0, a.data(), eight}, {0, nullptr, eight});
                  }),
                  "'to.base' is null"));
  CHECK(complains(ctx.is_root(), error_of([&] {
                    Transfer t(ctx, {0, a.data() + 7, twice}, {0, a.data(), eight});
                  }),
                  "source and destination overlap"));
  a[0] = 4.5;
  Transfer spread(ctx, {0, a.data(), twice}, {0, a.data() + 1, eight});
  spread.start();
  spread.wait();
  if (ctx.is_root()) CHECK(a[8] == 4.5);
  if (ctx.size() < 2) return;
  OperationOptions pull;
  pull.path = ctx.is_root() ? "shared:put" : "shared:eager";
  CHECK(complains(side, error_of([&] {
                    Transfer t(ctx, {0, a.data(), eight}, {last, b.data(), eight}, pull);
                  }),
                  "argument 'path' differs between ranks: rank 0 has shared:put"));
}

RANK_TEST("a path that cannot carry a transfer is told from a real failure, on both ranks") {
  if (ctx.size() < 2) return;
  std::vector<double> data(64);
  const auto make = [&] {
    Transfer transfer(ctx, {0, data.data(), Layout::of<double>(64)}, {1, data.data(), Layout::of<double>(64)},
                      {.path = "shared:put"});  // into memory that is not shared
  };
  if (ctx.rank() < 2) {
    CHECK_THROWS_AS(make(), PathUnusable);
  } else {
    make();
  }
  ctx.barrier();
}

RANK_TEST("two ranks make and run transfers while the others do nothing") {
  if (ctx.size() < 2) return;
  const int from = ctx.size() - 1;
  const int to = ctx.size() - 2;
  if (ctx.rank() == from || ctx.rank() == to) {
    std::vector<std::int32_t> data(1001, -1);
    for (int round = 0; round < 3; ++round) {
      Transfer transfer(ctx, {from, data.data(), Layout::of<std::int32_t>(1001)},
                        {to, data.data(), Layout::of<std::int32_t>(1001)});
      for (int epoch = 0; epoch < 3; ++epoch) {
        for (std::size_t i = 0; i < data.size() && ctx.rank() == from; ++i)
          data[i] = static_cast<std::int32_t>(i) + 7 * epoch + round;
        transfer.start();
        transfer.wait();
        CHECK(data[1000] == 1000 + 7 * epoch + round);
      }
    }
  }
  ctx.barrier();  // the others come here at once
}
