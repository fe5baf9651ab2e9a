// Path `mpi:staged` with links of several messages, of odd sizes, driven in every way: what arrives is what other paths
// bring, bit for bit. On a rank that reaches its peers it is forced.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "common.hpp"
#include "session/runtime.hpp"
#include "tasuki/planning.hpp"

using namespace tasuki;
using namespace gpu_tests;

namespace {

std::int64_t messages(const Plan& plan) {
  return std::count_if(plan.commands.begin(), plan.commands.end(),
                       [](const Command& c) { return c.verb == Verb::send || c.verb == Verb::recv; });
}

// Ranks that are threads have no MPI, and a single one no messages.
bool sends_messages(const Context& ctx) {
  return ctx.comm() != MPI_COMM_NULL && ctx.size() > 1;
}

const std::string kBothNetworks = "peer:put,peer:eager,mpi";

// While one exists, stores and messages cost the same, so both networks carry half of what is large each.
class EqualPrices {
 public:
  explicit EqualPrices(const Context& ctx)
      : runtime_(runtime_of(ctx)), before_(runtime_.machine()), pricing_(runtime_.pricing) {
    runtime_.pricing = true;  // nothing is measured
    Machine cheap = before_;
    for (const char* name : {"peer:put", "peer:eager", "mpi:staged"}) {
      PathCost cost;
      cost.one_way.latency = 1e-5;
      cost.one_way.bandwidth = cost.one_way.bulk_bandwidth = 1e9;
      cost.mutual = cost.one_way;
      cost.measured = true;
      cheap.costs[name] = cost;
    }
    runtime_.replace_machine(std::move(cheap));
  }
  ~EqualPrices() {
    runtime_.replace_machine(std::move(before_));
    runtime_.pricing = pricing_;
  }
  EqualPrices(const EqualPrices&) = delete;
  EqualPrices& operator=(const EqualPrices&) = delete;

 private:
  Runtime& runtime_;
  Machine before_;
  bool pricing_;
};

void check_cut_as_off_line(const Context& ctx, const Halo& halo, const GridOptions& grid, bool reverse) {
  HaloShape shape;
  shape.extents = {8 * ctx.size() + 1, 701, 333};
  shape.grid = grid;
  shape.reverse = reverse;
  shape.path = kBothNetworks;
  shape.fields = {{.name = "u", .shadow = 2, .width = 2, .memory = Memory::device},
                  {.name = "v", .element_bytes = 4, .dtype = DType::f32, .memory = Memory::device}};
  const Planned planned = plan(machine_of(ctx), shape);
  CHECK(to_json(planned.plan(ctx.rank())) == to_json(halo.plan()));
  if (ctx.size() > 2) return;  // a rank in the middle has two faces
  CHECK(halo.explain().find(" part 1 ") != std::string::npos);
  CHECK(halo.explain().find(" part 2 ") != std::string::npos);
}

// What halos of large faces leave after some iterations, each with new data.
// `ring`: the last rank is beside the first one.
std::vector<double> after_halos(const Context& ctx, const std::string& path, const std::string& mode, bool reverse,
                                bool ring = true) {
  GridOptions torus;
  torus.periodic = {ring, true, true};
  torus.split = {ctx.size(), 1, 1};
  const Grid grid(ctx, {8 * ctx.size() + 1, 701, 333}, torus);
  const Field<double> u(grid, {.name = "u", .shadow = 2, .memory = Memory::device});
  const Field<float> v(grid, {.name = "v", .shadow = 1, .memory = Memory::device});
  HaloOptions options;
  options.path = path;
  options.reverse = reverse;
  Halo halo({HaloField(u), HaloField(v)}, options);
  if (path != "auto") {
    CHECK(messages(halo.plan()) > (path == "mpi" ? 8 : 0));
    const VerifyReport report = verify(halo);
    INFO(report.text());
    CHECK(report.ok());
  }
  if (path == kBothNetworks) check_cut_as_off_line(ctx, halo, torus, reverse);
  Driver drive(ctx, mode);
  std::vector<double> result;
  for (int iteration = 0; iteration < 4; ++iteration) {
    // Numbers whose sum depends on the order of adding.
    std::mt19937 random(static_cast<unsigned>(100 * ctx.rank() + iteration));
    std::vector<double> a(static_cast<std::size_t>(u.bytes()) / sizeof(double));
    std::vector<float> b(static_cast<std::size_t>(v.bytes()) / sizeof(float));
    for (double& x : a) x = std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 20));
    for (float& x : b) x = static_cast<float>(random());
    u.upload(a.data());
    v.upload(b.data());
    ctx.barrier();
    drive(halo, 0);
    u.download(a.data());
    v.download(b.data());
    result.insert(result.end(), a.begin(), a.end());
    result.insert(result.end(), b.begin(), b.end());
  }
  ctx.barrier();
  return result;
}

}  // namespace

RANK_TEST("large faces in slices through the host: the halo of the other paths, bit for bit, driven in every way") {
  if (!sends_messages(ctx)) return;
  use_gpu(ctx);
  for (const bool reverse : {false, true}) {
    const auto expected = after_halos(ctx, "auto", "host", reverse);
    for (const auto& mode : Driver::modes()) {
      CAPTURE(mode);
      CAPTURE(reverse);
      const auto got = after_halos(ctx, "mpi", mode, reverse);
      REQUIRE(got.size() == expected.size());
      CHECK(std::equal(got.begin(), got.end(), expected.begin()));
    }
  }
}

RANK_TEST(
    "large faces that stores and messages carry together: the halo of the other paths, bit for bit, cut as off line") {
  if (!sends_messages(ctx) || in_islands()) return;
  use_gpu(ctx);
  for (const bool reverse : {false, true}) {
    CAPTURE(reverse);
    // Of two ranks on a ring each network would carry a whole face.
    const auto expected = after_halos(ctx, "auto", "host", reverse, false);
    const EqualPrices equal(ctx);
    for (const auto& mode : Driver::modes()) {
      CAPTURE(mode);
      const auto got = after_halos(ctx, kBothNetworks, mode, reverse, false);
      REQUIRE(got.size() == expected.size());
      CHECK(std::equal(got.begin(), got.end(), expected.begin()));
    }
  }
}

RANK_TEST("transfers in slices through the host, one after the other in a stream without waits on the host") {
  if (!sends_messages(ctx)) return;
  use_gpu(ctx);
  const int last = ctx.size() - 1;
  constexpr int kEpochs = 6;
  // From just above one slice to slices of more than the least size; rows of an odd number of words, then of bytes.
  for (const auto& [rows, row] : {std::pair<std::int64_t, std::int64_t>{1049, 1004}, {50021, 516}, {7001, 3001}}) {
    const auto bytes = static_cast<std::size_t>(rows * row);
    const auto room = static_cast<std::size_t>(rows * (row + 20));
    const Layout scattered = Layout::hvector(rows, 1, row + 20, Layout::bytes(row));
    void* from = nullptr;
    void* to = nullptr;
    CUDA_OK(cudaMalloc(&from, room));
    CUDA_OK(cudaMalloc(&to, bytes * kEpochs));
    CUDA_OK(cudaMemset(to, 0xEE, bytes * kEpochs));
    CUDA_OK(cudaStreamSynchronize(nullptr));
    {
      const OwnStream stream;
      std::vector<Transfer> transfers;
      for (int epoch = 0; epoch < kEpochs; ++epoch) {
        transfers.emplace_back(ctx, TransferSide{0, from, scattered},
                               TransferSide{last, static_cast<std::byte*>(to) + static_cast<std::size_t>(epoch) * bytes,
                                            Layout::bytes(static_cast<std::int64_t>(bytes))},
                               OperationOptions{.path = "mpi"});
      }
      if (ctx.is_root() || ctx.rank() == last) CHECK(messages(transfers[0].plan()) > 1);
      // Twice each: the staging is used again.
      for (int epoch = 0; epoch < 2 * kEpochs; ++epoch) {
        if (ctx.is_root()) CUDA_OK(cudaMemsetAsync(from, epoch + 1, room, stream.get()));
        transfers[static_cast<std::size_t>(epoch % kEpochs)].run(stream.get());
      }
      synchronize(ctx, stream.get());
    }
    if (ctx.rank() == last) {
      std::vector<unsigned char> got(bytes * kEpochs);
      CUDA_OK(cudaMemcpy(got.data(), to, got.size(), cudaMemcpyDeviceToHost));
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i] == kEpochs + i / bytes + 1 ? 0 : 1;
      CAPTURE(rows);
      CHECK(wrong == 0);
    }
    ctx.barrier();
    CUDA_OK(cudaFree(from));
    CUDA_OK(cudaFree(to));
  }
}
