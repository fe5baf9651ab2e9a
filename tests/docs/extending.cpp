// The examples of docs/extending.md, which the build takes out of that page: a path with its transport, an engine and
// an operation, each verified and run with new data in every epoch.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rank_test.hpp"
#include "ranks/error_of.hpp"
#include "tasuki/shift.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

bool takes(const Operation& operation, const std::string& path) {
  const auto& paths = operation.plan().paths;
  return std::find(paths.begin(), paths.end(), path) != paths.end();
}

void check_plan(const Operation& operation) {
  const VerifyReport report = verify(operation);
  INFO(report.text());
  CHECK(report.ok());
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A halo of two cells of a field whose cells tell where they are and which epoch it is.
void check_halo(const Context& ctx, const std::string& path, const std::string& engine) {
  CAPTURE(path);
  CAPTURE(engine);
  constexpr std::int64_t kRows = 23;
  constexpr std::int64_t kColumns = 7;
  Grid grid(ctx, {kRows, kColumns}, {.split = {ctx.size(), 1}, .periodic = {true, true}});
  Field<std::int64_t> u(grid, {.name = "u", .shadow = 2});
  HaloOptions options;
  options.path = path;
  options.engine = engine;
  Halo halo(HaloField(u, 2), options);
  check_plan(halo);
  if (path != "auto" && ctx.size() > 1) CHECK(takes(halo, path));
  const auto value = [](std::int64_t i, std::int64_t j, std::int64_t epoch) {
    return ((i + kRows) % kRows * kColumns + (j + kColumns) % kColumns) * 100 + epoch;
  };
  const Box own = u.owned();
  const Index strides = u.strides();
  for (std::int64_t epoch = 1; epoch <= 5; ++epoch) {
    u.for_each([&](const Index& at, std::int64_t& cell) { cell = value(at[0], at[1], epoch); });
    halo.start();
    halo.wait();
    int wrong = 0;
    for (std::int64_t i = own.lo[0] - 2; i < own.hi[0] + 2; ++i) {
      for (std::int64_t j = -2; j < kColumns + 2; ++j) {
        // Local indices begin two cells before the first owned cell.
        if (u.data()[(i - own.lo[0] + 2) * strides[0] + (j + 2) * strides[1]] != value(i, j, epoch)) ++wrong;
      }
    }
    CHECK(wrong == 0);
    ctx.barrier();  // nobody writes the next epoch's numbers while they are compared
  }
}

// Blocks of `bytes` bytes go round the ring.
void check_shift(const Context& ctx, int by, std::int64_t bytes, const std::string& path) {
  CAPTURE(by);
  CAPTURE(bytes);
  CAPTURE(path);
  std::vector<std::uint8_t> from(static_cast<std::size_t>(bytes) + 1);
  std::vector<std::uint8_t> to(from.size());
  OperationOptions options;
  options.path = path;
  Shift shift(ctx, by, from.data(), to.data(), bytes, DType::u8, options);
  check_plan(shift);
  NamedShape named{"shift", {{"by", by}, {"count", bytes}, {"type", static_cast<std::int64_t>(DType::u8)}}};
  named.path = path;
  const Planned planned = plan(machine_of(ctx), named);
  CHECK(to_json(planned.plan(ctx.rank())) == to_json(shift.plan()));
  const int sender = ((ctx.rank() - by) % ctx.size() + ctx.size()) % ctx.size();
  const auto value = [](int rank, std::size_t i, int epoch) {
    return static_cast<std::uint8_t>(static_cast<std::size_t>(rank * 31 + epoch * 7) + i * 3);
  };
  for (int epoch = 1; epoch <= 5; ++epoch) {
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = value(ctx.rank(), i, epoch);
    std::fill(to.begin(), to.end(), std::uint8_t{0});
    shift.start();
    shift.wait();
    int wrong = 0;
    for (std::size_t i = 0; i + 1 < to.size(); ++i) wrong += to[i] == value(sender, i, epoch) ? 0 : 1;
    CHECK(wrong == 0);
    CHECK(to.back() == 0);  // beyond the block
  }
}

}  // namespace

RANK_TEST("the example of a path carries halos with every engine, thread too") {
  for (const char* engine : {"inline", "thread", "patient"}) check_halo(ctx, "mpi:plain", engine);
}

RANK_TEST("the example of an engine runs halos over every path") {
  std::vector<std::string> paths{"auto"};
  if (ctx.size() > 1) paths.insert(paths.end(), {"shared:put", "shared:pull", "shared:eager", "shared:read", "mpi"});
  for (const std::string& path : paths) check_halo(ctx, path == "mpi" ? "mpi:plain" : path, "patient");
}

RANK_TEST("the example of an operation shifts blocks of any size any way") {
  for (const int by : {0, 1, -1, 5}) {
    for (const std::int64_t bytes : {0, 1, 777, 70001}) {
      for (const char* path : {"auto", "mpi:plain", "shared:eager"}) check_shift(ctx, by, bytes, path);
    }
  }
}

RANK_TEST("the example of an operation refuses arguments that are wrong or differ, on every rank") {
  std::vector<std::byte> memory(64);
  std::byte* const at = memory.data();
  const auto error = [&](int by, std::byte* from, std::byte* to, std::int64_t bytes) {
    return error_of([&] { const Shift shift(ctx, by, from, to, bytes, DType::u8); });
  };
  CHECK(contains(error(1, at, at + 32, -1), "argument 'count' is -1"));
  CHECK(contains(error(1, nullptr, at, 8), "argument 'in' is null"));
  CHECK(contains(error(1, at, at + 7, 8), "overlap"));
  if (ctx.size() > 1) CHECK(contains(error(ctx.rank(), at, at + 32, 8), "argument 'by' differs between ranks"));
}
