// Broadcasts: every root, size, tree shape and path gives every rank the root's bytes of this iteration.
#include "tasuki/broadcast.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "collectives/trees.hpp"
#include "error_of.hpp"
#include "host_paths.hpp"
#include "rank_test.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

void run(const Context& ctx, int root, std::byte* data, std::int64_t bytes, const BroadcastOptions& options) {
  Broadcast broadcast(ctx, root, data, bytes, options);
  const VerifyReport report = verify(broadcast);
  INFO(report.text());
  CHECK(report.ok());
  for (int iteration = 0; iteration < 3; ++iteration) {
    std::mt19937 noise(static_cast<unsigned>(bytes + iteration));
    std::vector<std::byte> sent(static_cast<std::size_t>(bytes));
    for (auto& byte : sent) byte = static_cast<std::byte>(noise());
    for (std::size_t i = 0; i < sent.size(); ++i) data[i] = ctx.rank() == root ? sent[i] : std::byte{0};
    broadcast.start();
    broadcast.wait();
    CHECK(std::equal(sent.begin(), sent.end(), data));
  }
}

}  // namespace

RANK_TEST("every size, root, tree shape, chunk, path and engine delivers the root's bytes, thread too") {
  std::mt19937 random(11);
  const auto shared = shared_alloc(ctx, 1 << 20);
  std::vector<std::byte> own(1 << 20);
  const std::vector<std::string> paths = host_paths(ctx);
  for (const std::int64_t bytes : {0, 1, 8, 63, 4097, 65536, 300001}) {
    for (int i = 0; i < (ctx.size() > 6 ? 2 : 4); ++i) {
      BroadcastOptions options;
      options.path = paths[random() % paths.size()];
      options.engine = random() % 3 == 0 ? "thread" : "inline";
      options.trees = static_cast<int>(random() % 4);
      options.arity = static_cast<int>(random() % 4);
      options.chunk = random() % 2 == 0 ? 0 : 1 + static_cast<std::int64_t>(random() % 50000);
      if (options.chunk > 0 && bytes / options.chunk > 300) options.chunk = 4096;
      const int root = static_cast<int>(random() % static_cast<unsigned>(ctx.size()));
      const bool mapped = options.path == "shared:put" || options.path == "shared:pull" || random() % 2 == 0;
      CAPTURE(bytes);
      CAPTURE(options.path);
      CAPTURE(options.engine);
      CAPTURE(options.trees);
      CAPTURE(options.arity);
      CAPTURE(options.chunk);
      run(ctx, root, mapped ? shared.get() : own.data(), bytes, options);
    }
  }
}

RANK_TEST("the chunk loop of a broadcast stays symbolic: the plan's size does not grow with the message") {
  const auto shared = shared_alloc(ctx, 1 << 22);
  for (const auto& path : host_paths(ctx)) {
    if (path == "auto") continue;  // may choose another for more bytes
    CAPTURE(path);
    BroadcastOptions options;
    options.path = path;
    options.chunk = 4096;
    options.trees = 2;
    options.arity = 2;
    const Broadcast small(ctx, 0, shared.get(), 1 << 16, options);
    const Broadcast large(ctx, 0, shared.get(), 1 << 22, options);
    CHECK(small.plan().commands.size() == large.plan().commands.size());
    CHECK(!large.plan().loops.empty());
  }
}

RANK_TEST("wrong arguments of a broadcast are named on every rank") {
  std::vector<std::byte> data(64);
  CHECK(error_of([&] { Broadcast b(ctx, ctx.size(), data.data(), 64); }).find("argument 'root'") != std::string::npos);
  CHECK(error_of([&] { Broadcast b(ctx, 0, data.data(), -1); }).find("argument 'bytes' is -1") != std::string::npos);
  CHECK(error_of([&] { Broadcast b(ctx, 0, nullptr, 8); }).find("argument 'data' is null") != std::string::npos);
  BroadcastOptions options;
  options.trees = 99;
  CHECK(error_of([&] { Broadcast b(ctx, 0, data.data(), 64, options); }).find("option 'trees' is 99") !=
        std::string::npos);
  if (ctx.size() > 1) {
    CHECK(error_of([&] { Broadcast b(ctx, 0, data.data(), ctx.rank() == 1 ? 32 : 64); }).find("bytes") !=
          std::string::npos);
  }
}
