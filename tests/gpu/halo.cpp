// Halos on GPU memory: random grids, widths and splits on every path, driven in every way; every cell holds a number
// made from its global index and the iteration.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "common.hpp"
#include "random_split.hpp"
#include "ranks/error_of.hpp"

using namespace tasuki;
using namespace gpu_tests;

namespace {

constexpr double kUntouched = -1;

struct Case {
  std::vector<std::int64_t> extents;
  GridOptions grid;
  std::vector<Width> shadows;
  std::vector<int> copies;
  bool corners = true;
  bool alternating = false;
};

Case random_case(int ranks, std::mt19937& random) {
  Case c;
  const int dims = 1 + static_cast<int>(random() % 4);
  c.grid.split = random_split(ranks, dims, random);
  for (int d = 0; d < dims; ++d) {
    // Sometimes fewer cells than ranks, sometimes enough for several thread blocks.
    const unsigned most = dims == 1 ? 100000 : dims == 2 ? 700 : dims == 3 ? 60 : 15;
    c.extents.push_back(1 + static_cast<std::int64_t>(random() % 3 == 0 ? random() % 5 : random() % most));
    c.grid.periodic.push_back(random() % 2 == 0);
  }
  for (int f = 0; f < 1 + static_cast<int>(random() % 3); ++f) {
    Width shadow(0);
    for (std::size_t d = 0; d < static_cast<std::size_t>(dims); ++d) {
      shadow.lo[d] = static_cast<std::int64_t>(random() % 4);
      shadow.hi[d] = static_cast<std::int64_t>(random() % 4);
    }
    c.shadows.push_back(shadow);
    c.copies.push_back(1 + static_cast<int>(random() % 2));
  }
  c.corners = random() % 3 != 0;
  c.alternating = random() % 2 == 0;
  return c;
}

template <class T>
T value(const Grid& grid, const Index& at, int field, int iteration) {
  std::int64_t index = 0;
  for (int d = 0; d < grid.ndims(); ++d) {
    const std::int64_t n = grid.extent(d);
    index = index * n + ((at[static_cast<std::size_t>(d)] % n) + n) % n;
  }
  return static_cast<T>(1 + (index * 8 + field + 77777 * iteration) % 16000);
}

// Calls f(global index, sides outside, filled by a halo, element) for every allocated cell; `image` is the field's
// memory.
template <class T, class F>
void for_each_cell(const Field<T>& field, bool corners, std::vector<T>& image, F&& f) {
  const Box own = field.owned();
  if (own.empty()) return;
  const Grid& grid = field.grid();
  const Index extents = field.extents();
  const Index strides = field.strides();
  Index local{};
  for (;;) {
    Index at{};
    int sides = 0;
    bool inside = true;
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < static_cast<std::size_t>(own.ndims); ++d) {
      at[d] = own.lo[d] + local[d] - field.shadow().lo[d];
      offset += local[d] * strides[d];
      if (at[d] >= own.lo[d] && at[d] < own.hi[d]) continue;
      ++sides;
      const int dim = static_cast<int>(d);
      inside = inside && (grid.periodic(dim) || (at[d] >= 0 && at[d] < grid.extent(dim)));
    }
    f(at, sides, sides > 0 && inside && (corners || sides == 1), image[static_cast<std::size_t>(offset)]);
    int d = own.ndims - 1;
    for (; d >= 0 && ++local[static_cast<std::size_t>(d)] == extents[static_cast<std::size_t>(d)]; --d) {
      local[static_cast<std::size_t>(d)] = 0;
    }
    if (d < 0) return;
  }
}

template <class T>
void upload_owned(const Field<T>& field, const std::vector<T>& image) {
  const Box own = field.local_owned();
  if (own.empty()) return;
  const Index strides = field.strides();
  const auto last = own.ndims - 1;
  const std::int64_t length = own.extent(last);
  for (std::int64_t row = 0; row < own.cells() / length; ++row) {
    std::int64_t rest = row;
    std::int64_t offset = own.lo[static_cast<std::size_t>(last)];
    for (int d = last - 1; d >= 0; --d) {
      const auto i = static_cast<std::size_t>(d);
      offset += (own.lo[i] + rest % own.extent(d)) * strides[i];
      rest /= own.extent(d);
    }
    CUDA_OK(cudaMemcpy(field.data() + offset, image.data() + offset, static_cast<std::size_t>(length) * sizeof(T),
                       cudaMemcpyHostToDevice));
  }
  CUDA_OK(cudaStreamSynchronize(nullptr));
}

template <class T>
void run_case(const Context& ctx, const Case& c, const std::string& path, const std::string& mode) {
  const Grid grid(ctx, c.extents, c.grid);
  std::vector<Field<T>> fields;
  for (std::size_t f = 0; f < c.shadows.size(); ++f) {
    fields.emplace_back(grid, FieldOptions{.name = "f" + std::to_string(f),
                                           .shadow = c.shadows[f],
                                           .copies = c.copies[f],
                                           .pad = static_cast<std::int64_t>(f),
                                           .memory = Memory::device});
  }
  HaloOptions options;
  options.path = path;
  options.corners = c.corners;
  options.alternating = c.alternating;
  Halo halo(std::vector<HaloField>(fields.begin(), fields.end()), options);
  const VerifyReport report = verify(halo);
  INFO(report.text());
  CHECK(report.ok());
  Driver drive(ctx, mode);
  int wrong = 0;
  for (int iteration = 0; iteration < 5; ++iteration) {
    for (std::size_t f = 0; f < fields.size(); ++f) {
      std::vector<T> image(static_cast<std::size_t>(fields[f].bytes()) / sizeof(T));
      const bool alternates = c.alternating && c.copies[f] == 2;
      for_each_cell(fields[f], c.corners, image, [&](const Index& at, int sides, bool, T& cell) {
        if (sides == 0) {
          cell = value<T>(grid, at, static_cast<int>(f), iteration);
        } else {
          cell = static_cast<T>(kUntouched);
        }
      });
      // In alternation the shadow of the other copy is the halo's from the first start on.
      if (alternates && iteration == 0) {
        const std::vector<T> other(image.size(), static_cast<T>(kUntouched));
        fields[f].swap();
        fields[f].upload(other.data());
        fields[f].swap();
      }
      if (alternates && iteration > 0) {
        upload_owned(fields[f], image);  // a peer that is ahead may already have written the shadow
      } else {
        fields[f].upload(image.data());
      }
    }
    drive(halo, iteration % 2);
    for (std::size_t f = 0; f < fields.size(); ++f) {
      std::vector<T> image(static_cast<std::size_t>(fields[f].bytes()) / sizeof(T));
      fields[f].download(image.data());
      for_each_cell(fields[f], c.corners, image, [&](const Index& at, int sides, bool filled, T& cell) {
        const T expected =
            sides == 0 || filled ? value<T>(grid, at, static_cast<int>(f), iteration) : static_cast<T>(kUntouched);
        if (cell != expected) ++wrong;
      });
      if (c.copies[f] == 2) fields[f].swap();
    }
    ctx.barrier();
  }
  CHECK(wrong == 0);
}

}  // namespace

RANK_TEST("random halos on GPUs fill exactly the shadows asked for, on every path, driven in every way") {
  std::mt19937 random(4321);
  for (int i = 0; i < 10; ++i) {
    const Case c = random_case(ctx.size(), random);
    const int type = static_cast<int>(random() % 3);
    for (const auto& path : gpu_paths(ctx)) {
      if (path == "peer:ll" && type == 2) continue;  // for words of 4 bytes only
      for (const auto& mode : Driver::modes()) {
        CAPTURE(i);
        CAPTURE(path);
        CAPTURE(mode);
        CAPTURE(type);
        if (type == 0) run_case<double>(ctx, c, path, mode);
        if (type == 1) run_case<float>(ctx, c, path, mode);
        if (type == 2) run_case<std::int16_t>(ctx, c, path, mode);
      }
    }
  }
}

RANK_TEST("9 x 10 x 11 cells with halos 1, 3 and 2, and 65 x 66 x 67 with 2, all periodic") {
  std::mt19937 random(7);
  for (const auto& [extents, shadow] :
       {std::pair<std::vector<std::int64_t>, Width>{{9, 10, 11}, Width({1, 3, 2}, {1, 3, 2})},
        {{65, 66, 67}, Width(2)}}) {
    Case c;
    c.extents = extents;
    c.grid.split = random_split(ctx.size(), 3, random);
    c.grid.periodic = {true, true, true};
    c.shadows = {shadow, shadow};
    c.copies = {2, 1};
    c.alternating = true;
    for (const auto& mode : Driver::modes()) run_case<float>(ctx, c, "auto", mode);
  }
}

RANK_TEST("a reverse halo on GPUs equals the one on the host bit for bit") {
  std::mt19937 random(99);
  for (int i = 0; i < 6; ++i) {
    const Case c = random_case(ctx.size(), random);
    const Grid grid(ctx, c.extents, c.grid);
    const Field<double> host(grid, {.name = "f", .shadow = c.shadows[0]});
    const Field<double> device(grid, {.name = "f", .shadow = c.shadows[0], .memory = Memory::device});
    HaloOptions options;
    options.reverse = true;
    options.corners = c.corners;
    Halo on_host(HaloField(host), options);
    Halo on_device(HaloField(device), options);
    CHECK(verify(on_device).ok());
    for (int iteration = 0; iteration < 3; ++iteration) {
      std::mt19937 noise(static_cast<unsigned>(ctx.rank() + 1000 * iteration));
      std::vector<double> image(static_cast<std::size_t>(host.bytes()) / 8);
      for (double& cell : image) cell = std::ldexp(static_cast<double>(noise()), static_cast<int>(noise() % 40) - 20);
      host.upload(image.data());
      device.upload(image.data());
      on_host.start();
      on_host.wait();
      on_device.start();
      on_device.wait();
      std::vector<double> a(image.size());
      std::vector<double> b(image.size());
      host.download(a.data());
      device.download(b.data());
      CHECK(a == b);
    }
  }
}

RANK_TEST("the user's GPU memory is exchanged, also where it cannot be mapped by others") {
  use_gpu(ctx);
  GridOptions grid_options;
  grid_options.periodic = {true, true};
  const Grid grid(ctx, {131, 67}, grid_options);
  const Box own = grid.owned();
  const auto bytes = static_cast<std::size_t>((own.extent(0) + 2) * (own.extent(1) + 2)) * sizeof(float);
  for (const bool pool : {false, true}) {
    void* memory = nullptr;
    if (pool) {
      CUDA_OK(cudaMallocAsync(&memory, bytes + 64, nullptr));
      CUDA_OK(cudaStreamSynchronize(nullptr));
    } else {
      CUDA_OK(cudaMalloc(&memory, bytes + 64));
    }
    {
      auto* odd = reinterpret_cast<float*>(static_cast<std::byte*>(memory) + 20);
      const Field<float> field(grid, {odd}, {.name = "mine"});
      CHECK(field.memory() == Memory::device);
      if (pool && ctx.size() > 1 && !in_islands()) {
        HaloOptions options;
        options.path = "peer:put";
        CHECK(error_of([&] { Halo halo(HaloField(field), options); }).find("cannot be shared") != std::string::npos);
      }
      Halo halo{HaloField(field)};
      CHECK(verify(halo).ok());
      for (int iteration = 0; iteration < 3; ++iteration) {
        std::vector<float> image(bytes / sizeof(float), -1.0F);
        for_each_cell(field, true, image, [&](const Index& at, int sides, bool, float& cell) {
          if (sides == 0) cell = value<float>(grid, at, 0, iteration);
        });
        field.upload(image.data());
        halo.run(nullptr);
        synchronize(ctx, nullptr);
        field.download(image.data());
        int wrong = 0;
        for_each_cell(field, true, image, [&](const Index& at, int, bool, float& cell) {
          if (cell != value<float>(grid, at, 0, iteration)) ++wrong;
        });
        CHECK(wrong == 0);
        ctx.barrier();
      }
    }
    ctx.barrier();
    CUDA_OK(pool ? cudaFreeAsync(memory, nullptr) : cudaFree(memory));
  }
}

RANK_TEST("wrong uses of GPU memory are named on every rank") {
  const Grid grid(ctx, {40, 40});
  const Field<double> device(grid, {.name = "d", .memory = Memory::device});
  const Field<double> host(grid, {.name = "h"});
  HaloOptions options;
  options.engine = "inline";
  CHECK(error_of([&] { Halo halo(HaloField(device), options); }).find("engine 'inline' works on host memory") !=
        std::string::npos);
  options.engine = "stream";
  CHECK(error_of([&] { Halo halo(HaloField(host), options); }).find("engine 'stream' works on device memory") !=
        std::string::npos);
  Halo on_host{HaloField(host)};
  CHECK(error_of([&] { on_host.run(nullptr); }).find("streams are for operations on GPU memory") != std::string::npos);
  Halo halo{HaloField(device)};
  CHECK(error_of([&] { halo.wait(nullptr); }).find("without start(stream)") != std::string::npos);
  halo.start(nullptr);
  CHECK(error_of([&] { halo.start(nullptr); }).find("still active") != std::string::npos);
  CHECK(error_of([&] { halo.wait(); }).find("end it with wait(stream)") != std::string::npos);
  halo.wait(nullptr);
  synchronize(ctx, nullptr);
  CHECK(error_of([&] { device.for_each([](const Index&, double&) {}); }).find("needs host memory") !=
        std::string::npos);
  double somewhere = 0;
  CHECK(error_of([&] {
          const Field<double> wrong(Grid(ctx, {static_cast<std::int64_t>(ctx.size())}), {&somewhere},
                                    {.name = "w", .shadow = 0, .memory = Memory::device});
        }).find("points to host memory") != std::string::npos);
}
