// Graphs: replays equal runs bit for bit while the data change at every iteration, with a branch that goes ahead; what
// ends a capture early leaves the stream, the fork and the operations usable.
#include <cstdint>
#include <string>
#include <vector>

#include "common.hpp"
#include "ranks/error_of.hpp"

using namespace tasuki;
using namespace gpu_tests;

namespace {

constexpr std::int64_t kRows = 37;
constexpr std::int64_t kColumns = 29;

Grid torus(const Context& ctx) {
  GridOptions options;
  options.periodic = {true, true};
  return {ctx, {kRows, kColumns}, options};
}

HaloOptions alternating(const std::string& path) {
  HaloOptions options;
  options.path = path;
  options.alternating = true;
  return options;
}

// A torus of numbered cells on which every iteration takes each cell from its neighbour below in both dimensions: the
// sides ahead and then the exchange, in a branch, the interior beside them.
class Drift {
 public:
  Drift(const Context& ctx, const std::string& path)
      : field_(torus(ctx), {.name = "drift", .copies = 2, .memory = Memory::device}),
        halo_(HaloField(field_), alternating(path)) {
    for (int copy = 0; copy < 2; ++copy) {
      field_.upload(expected(0).data());
      field_.swap();
    }
    halo_.run(nullptr);
    synchronize(ctx, nullptr);
    ctx.barrier();
  }

  void enqueue(Stream stream) {
    field_.swap();
    Stream ahead = fork_.branch(stream);
    for (const Box& side : field_.boundary(1)) move(side, ahead);
    halo_.run(ahead);
    move(field_.interior(1), stream);
    fork_.join(stream);
  }

  Fork& fork() { return fork_; }

  std::vector<double> image() const {
    std::vector<double> cells(size());
    field_.download(cells.data());
    return cells;
  }

  // The same after so many iterations, shadows included.
  std::vector<double> expected(std::int64_t iterations) const {
    std::vector<double> cells(size(), -1);
    const Box own = field_.owned();
    const Index extents = field_.extents();
    for (std::int64_t i = 0; i < extents[0]; ++i) {
      for (std::int64_t j = 0; j < extents[1]; ++j) {
        const std::int64_t row = (own.lo[0] + i - 1 + iterations + kRows) % kRows;
        const std::int64_t column = (own.lo[1] + j - 1 + iterations + kColumns) % kColumns;
        const std::int64_t at = i * field_.strides()[0] + j * field_.strides()[1];
        cells[static_cast<std::size_t>(at)] = 1.0 / static_cast<double>(1 + row * kColumns + column);
      }
    }
    return cells;
  }

 private:
  std::size_t size() const { return static_cast<std::size_t>(field_.bytes()) / sizeof(double); }

  void move(const Box& box, Stream stream) const {
    if (box.empty()) return;
    const std::int64_t row = field_.strides()[0];
    const std::int64_t first = box.lo[0] * row + box.lo[1];
    const std::size_t pitch = static_cast<std::size_t>(row) * sizeof(double);
    CUDA_OK(cudaMemcpy2DAsync(field_.data() + first, pitch, field_.next() + first + row + 1, pitch,
                              static_cast<std::size_t>(box.extent(1)) * sizeof(double),
                              static_cast<std::size_t>(box.extent(0)), cudaMemcpyDeviceToDevice, stream));
  }

  Field<double> field_;
  Halo halo_;
  Fork fork_;
};

bool is_capturing(Stream stream) {
  cudaStreamCaptureStatus status{};
  CUDA_OK(cudaStreamIsCapturing(stream, &status));
  return status != cudaStreamCaptureStatusNone;
}

}  // namespace

RANK_TEST("a replayed graph does what its work does by itself, bit for bit, on every path") {
  use_gpu(ctx);
  for (const auto& path : gpu_paths(ctx)) {
    CAPTURE(path);
    const OwnStream first;
    const OwnStream second;
    Drift by_itself(ctx, path);
    Drift captured(ctx, path);
    const Graph graph(first.get(), [&] {
      for (int n = 0; n < 2; ++n) captured.enqueue(first.get());
    });
    CHECK(captured.image() == captured.expected(0));  // nothing has run yet
    int done = 0;
    for (const int replays : {1, 3, 2, 4}) {
      Stream stream = (replays == 3 ? second : first).get();
      for (int n = 0; n < replays; ++n) graph.launch(stream);
      synchronize(ctx, stream);
      for (int n = 0; n < 2 * replays; ++n) by_itself.enqueue(first.get());
      synchronize(ctx, first.get());
      done += 2 * replays;
      CAPTURE(done);
      CHECK(captured.image() == by_itself.image());
      CHECK(captured.image() == captured.expected(done));
    }
    captured.enqueue(first.get());  // and on without the graph
    synchronize(ctx, first.get());
    CHECK(captured.image() == captured.expected(done + 1));
    ctx.barrier();
  }
}

RANK_TEST("an exception in a capture is passed on, and everything can be used on") {
  use_gpu(ctx);
  const OwnStream own;
  Stream stream = own.get();
  Drift drift(ctx, "auto");
  for (int turn = 0; turn < 2; ++turn) {
    CHECK(error_of([&] {
            const Graph graph(stream, [&] {
              for (int n = 0; n < 2; ++n) drift.enqueue(stream);
              drift.fork().branch(stream);  // never joined
              throw Error("no more of this");
            });
          }) == "no more of this");
    CHECK(!is_capturing(stream));
    CHECK(!is_capturing(drift.fork().branch(stream)));
    drift.fork().join(stream);
    CHECK(drift.image() == drift.expected(2 * turn));
    const Graph graph(stream, [&] {
      for (int n = 0; n < 2; ++n) drift.enqueue(stream);
    });
    graph.launch(stream);
    synchronize(ctx, stream);
    CHECK(drift.image() == drift.expected(2 * turn + 2));
  }
  ctx.barrier();
}

RANK_TEST("what cannot be captured is named, and an empty graph is one") {
  use_gpu(ctx);
  const OwnStream own;
  Stream stream = own.get();
  Fork fork;
  for (Stream unfit : {Stream(cudaStreamLegacy), Stream(nullptr)}) {
    CHECK(error_of([&] { const Graph graph(unfit, [] {}); }).find("is the default stream") != std::string::npos);
  }
  CHECK(error_of([&] {
          const Graph outer(stream, [&] { const Graph inner(stream, [] {}); });
        }).find("is being captured already") != std::string::npos);
  CHECK(error_of([&] {
          const Graph graph(stream, [&] { synchronize(ctx, stream); });
        }).find("the stream is being captured") != std::string::npos);
  CHECK(error_of([&] {
          const Graph graph(stream, [&] { CHECK(cudaStreamSynchronize(stream) != cudaSuccess); });
        }).find("could not be captured") != std::string::npos);
  cudaGetLastError();
  void* memory = nullptr;
  CUDA_OK(cudaMalloc(&memory, 64));
  CHECK(error_of([&] {
          const Graph graph(stream, [&] { CUDA_OK(cudaMemsetAsync(memory, 1, 64, fork.branch(stream))); });
        }).find("every branch must join") != std::string::npos);
  CHECK(!is_capturing(stream));
  const Graph empty(stream, [] {});
  empty.launch(stream);
  const Graph graph(stream, [&] { CUDA_OK(cudaMemsetAsync(memory, 7, 64, stream)); });
  graph.launch(nullptr);
  synchronize(ctx, nullptr);
  synchronize(ctx, stream);
  std::vector<unsigned char> got(64);
  CUDA_OK(cudaMemcpy(got.data(), memory, got.size(), cudaMemcpyDeviceToHost));
  CHECK(got == std::vector<unsigned char>(64, 7));
  CUDA_OK(cudaFree(memory));
}
