// Collectives on GPU memory: random ones, driven in every way, several at once, with new data at every start, against
// plain loops; every plan verified, and equal to the one made off line. Dependent epochs in a graph; bits; what is
// refused.
#include "tasuki/collectives.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "common.hpp"
#include "ranks/collective_cases.hpp"
#include "ranks/error_of.hpp"
#include "tasuki/kernel/impl/reduce_ops.hpp"
#include "tasuki/planning.hpp"

using namespace tasuki;
using namespace gpu_tests;
using namespace collective_cases;

namespace {

std::shared_ptr<std::byte> allocate(std::int64_t bytes) {
  void* memory = nullptr;
  CUDA_OK(cudaMalloc(&memory, static_cast<std::size_t>(bytes)));
  return {static_cast<std::byte*>(memory), [](std::byte* p) { cudaFree(p); }};
}

void copy(void* to, const void* from, std::int64_t bytes) {
  CUDA_OK(cudaMemcpy(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault));
  CUDA_OK(cudaStreamSynchronize(nullptr));
}

const bool device_memory_set = [] {
  device_memory = {allocate, copy};
  return true;
}();

// Numbers of 16 bits; complex ones, whose order is only for compilers. All that tests make of them is exact.
template <class Bits>
struct Half {
  Bits value{};
  Half() = default;
  explicit Half(std::int64_t number) { element::from_f32(static_cast<float>(number), value); }
  float number() const { return element::to_f32(value); }
  friend Half operator+(Half a, Half b) { return Half(static_cast<std::int64_t>(a.number() + b.number())); }
  friend bool operator<(Half a, Half b) { return a.number() < b.number(); }
  friend bool operator==(Half a, Half b) { return a.value.bits == b.value.bits; }
};
template <class Real>
struct Complex {
  Real re{}, im{};
  Complex() = default;
  explicit Complex(std::int64_t number) : re(static_cast<Real>(number)), im(static_cast<Real>(3 * number + 1)) {}
  friend Complex operator+(Complex a, Complex b) {
    Complex sum;
    sum.re = a.re + b.re;
    sum.im = a.im + b.im;
    return sum;
  }
  friend bool operator<(Complex a, Complex b) { return a.re < b.re; }
  friend bool operator==(Complex a, Complex b) { return a.re == b.re && a.im == b.im; }
};

constexpr int kTypes = 8;

std::unique_ptr<Running> make_typed(const Context& ctx, const Wanted& w, std::int64_t type) {
  switch (type) {
    case 4:
      return std::make_unique<Typed<Half<element::F16>>>(ctx, w, DType::f16);
    case 5:
      return std::make_unique<Typed<Half<element::BF16>>>(ctx, w, DType::bf16);
    case 6:
      return std::make_unique<Typed<Complex<float>>>(ctx, w, DType::c64);
    case 7:
      return std::make_unique<Typed<Complex<double>>>(ctx, w, DType::c128);
    default:
      return make(ctx, w, type);
  }
}

DType dtype_of(std::int64_t type) {
  const std::vector<DType> more{DType::f16, DType::bf16, DType::c64, DType::c128};
  return type < 4 ? type_of(type) : more[static_cast<std::size_t>(type - 4)];
}

template <class All>
const auto& one_of(const All& all, Random& random) {
  return all[static_cast<std::size_t>(below(random, std::ssize(all)))];
}

std::vector<std::string> paths_for(const Context& ctx) {
  std::vector<std::string> paths{"auto", "auto"};
  for (const std::string& path : gpu_paths(ctx)) {
    if (path == "auto") continue;
    // Puts cannot add, lines hold words only.
    const bool one_pass = path == "peer:put" || path == "peer:copy" || path == "peer:ll";
    paths.push_back(path == "peer:copy" ? "peer:copy,peer:put,peer:eager" : one_pass ? path + ",peer:eager" : path);
    if (one_pass) paths.push_back("peer:pull,peer:eager," + path);
  }
  return paths;
}

// `auto` and all algorithms for one island, as the error says that names them.
std::vector<std::string> names_of(CollectiveKind kind) {
  std::vector<std::string> names{"auto"};
  CollectiveShape shape;
  shape.kind = kind;
  shape.algorithm = "no such";
  const auto text = error_of([&] { plan(Machine::uniform(2, 2, 0), shape); });
  for (const char* name : {"exchange", "doubling", "ring", "halving", "direct", "bruck", "pairwise", "binomial",
                           "trees", "dissemination", "collect"})
    if (text.find(name, text.find("one of")) != std::string::npos) names.emplace_back(name);
  return names;
}

Wanted random_wanted(const Context& ctx, int number, std::int64_t type, Random& random) {
  const int n = ctx.size();
  Wanted w;
  w.memory = Memory::device;
  w.kind = one_of(all_collectives(), random);
  w.number = number;
  w.root = static_cast<int>(below(random, n));
  w.count = one_of(Counts{0, 1, 2, 7, n + 1, 101, 4099, 70000}, random);
  if (has_blocks(w.kind) && below(random, 2) == 0) {
    const bool matrix = w.kind == CollectiveKind::alltoall;
    w.counts.resize(static_cast<std::size_t>(matrix ? n * n : n));
    for (auto& count : w.counts) count = below(random, 3) == 0 ? 0 : below(random, 3000);
  }
  w.op = type >= 6 ? ReduceOp::sum : one_of(std::vector{ReduceOp::sum, ReduceOp::min, ReduceOp::max}, random);
  w.in_place = w.kind != CollectiveKind::broadcast && w.kind != CollectiveKind::barrier && below(random, 2) == 0;
  for (int a = 0; a < n && w.in_place && w.kind == CollectiveKind::alltoall && !w.counts.empty(); ++a)
    for (int b = 0; b < a; ++b)
      w.counts[static_cast<std::size_t>(a * n + b)] = w.counts[static_cast<std::size_t>(b * n + a)];
  w.shift = below(random, 3) == 0 ? size_of(dtype_of(type)) * below(random, 5) : 0;
  w.options.algorithm = one_of(names_of(w.kind), random);
  const bool cuts = w.options.algorithm == "trees" || w.options.algorithm == "collect" ||
                    (w.options.algorithm == "doubling" && w.kind == CollectiveKind::allreduce);
  if (cuts && below(random, 2) == 0) w.options.chunk = 512 + below(random, 50000);
  if (below(random, 4) == 0 && w.count < 5000) w.layouts = 1 + static_cast<unsigned>(below(random, 100000));
  w.options.path = one_of(paths_for(ctx), random);
  return w;
}

// Null if nothing that is allowed can carry it, which all ranks are told.
std::unique_ptr<Running> make_some(const Context& ctx, const Wanted& w, std::int64_t type) {
  std::unique_ptr<Running> running;
  const std::string error = error_of([&] { running = make_typed(ctx, w, type); });
  if (running) return running;
  INFO(error);
  // NCCL cannot be asked to wait, and chunks are for paths that stores take.
  CHECK(error.find("no path can carry") != std::string::npos);
  CHECK((w.options.path == "nccl" || w.options.chunk > 0 || w.options.algorithm == "trees"));
  return nullptr;
}

void check_plan(const Context& ctx, const Wanted& w, std::int64_t type, const Operation& operation) {
  const VerifyReport report = verify(operation);
  INFO(report.text());
  CHECK(report.ok());
  if (w.shift % 16 != 0) return;  // off line all memory is aligned
  const Machine machine = Machine::from_json(machine_of(ctx).to_json());
  const Plan off_line = plan(machine, shape_of(w, dtype_of(type), ctx.size())).plan(ctx.rank());
  CHECK(to_json(off_line) == to_json(operation.plan()));
}

}  // namespace

RANK_TEST("random collectives on GPUs give what plain loops give, driven in every way") {
  use_gpu(ctx);
  Random random(61);
  for (int i = 0; i < 60; ++i) {
    const std::int64_t type = below(random, kTypes);
    const Wanted w = random_wanted(ctx, i, type, random);
    INFO(described(w));
    CAPTURE(to_string(dtype_of(type)));
    const auto running = make_some(ctx, w, type);
    if (!running) continue;
    check_plan(ctx, w, type, running->operation());
    int iteration = 0;
    for (const std::string& mode : Driver::modes()) {
      CAPTURE(mode);
      Driver drive(ctx, mode);
      for (int turn = 0; turn < 3; ++turn, ++iteration) {
        running->fill(iteration);
        drive(running->operation(), 0);
        CHECK(running->right(iteration));
      }
    }
    running->operation().wait();  // nothing is active: no effect
  }
}

RANK_TEST("steps so large that several blocks share them, by every algorithm") {
  use_gpu(ctx);
  int number = 0;
  for (const CollectiveKind kind : all_collectives()) {
    if (kind == CollectiveKind::barrier) continue;
    for (const std::string& name : names_of(kind)) {
      Wanted w;
      w.memory = Memory::device;
      w.kind = kind;
      w.number = number++;
      w.root = ctx.size() - 1;
      w.count = has_blocks(kind) ? 60001 : 200003;  // some hundred KiB a step
      w.options.algorithm = name;
      if (name == "trees" || name == "collect") w.options.chunk = 160000;
      const std::int64_t type = number % 2;
      INFO(described(w));
      const auto running = make_some(ctx, w, type);
      if (!running) continue;
      check_plan(ctx, w, type, running->operation());
      Driver run(ctx, "run");
      Driver graph(ctx, "graph");
      for (int turn = 0; turn < 4; ++turn) {
        running->fill(turn);
        (turn % 2 == 0 ? run : graph)(running->operation(), 0);
        CHECK(running->right(turn));
      }
    }
  }
}

RANK_TEST("several collectives on GPUs at once, started in any order by the host, or one after the other in a stream") {
  use_gpu(ctx);
  Random random(62);
  Random own(63 + static_cast<unsigned>(ctx.rank()));
  const OwnStream stream;
  for (int group = 0; group < 10; ++group) {
    std::vector<std::unique_ptr<Running>> all;
    std::vector<std::string> names;
    for (int i = 0; i < 1 + static_cast<int>(below(random, 4)); ++i) {
      const std::int64_t type = below(random, kTypes);
      Wanted w = random_wanted(ctx, i, type, random);
      w.options.blocks = 24;  // all that are active must find room on the GPU, in whatever order they are started
      INFO(described(w));
      if (auto running = make_some(ctx, w, type)) {
        names.push_back(described(w));
        all.push_back(std::move(running));
      }
    }
    std::vector<std::size_t> order(all.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (int iteration = 0; iteration < 6; ++iteration) {
      for (const auto& one : all) one->fill(iteration);
      if (iteration % 3 == 0) {
        std::shuffle(order.begin(), order.end(), own);
        for (const std::size_t i : order) all[i]->operation().start();
        std::shuffle(order.begin(), order.end(), own);
        for (const std::size_t i : order) {
          while (below(own, 2) == 0 && !all[i]->operation().test()) continue;
          all[i]->operation().wait();
        }
      } else {
        // All begin, then all end; or one after the other.
        for (const auto& one : all)
          iteration % 3 == 1 ? one->operation().start(stream.get()) : one->operation().run(stream.get());
        for (const auto& one : all)
          if (iteration % 3 == 1) one->operation().wait(stream.get());
        synchronize(ctx, stream.get());
      }
      for (std::size_t i = 0; i < all.size(); ++i) {
        INFO(names[i]);
        CAPTURE(iteration);
        CHECK(all[i]->right(iteration));
      }
    }
  }
}

RANK_TEST("dependent collectives follow each other in a graph, and each sees what the one before has made") {
  use_gpu(ctx);
  constexpr std::int64_t kCount = 1031;
  const int n = ctx.size();
  const auto bytes = static_cast<std::size_t>(kCount) * 8;
  const auto memory = allocate(static_cast<std::int64_t>(bytes) * (n + 1));
  auto* const x = reinterpret_cast<std::uint64_t*>(memory.get());
  auto* const all = x + kCount;
  for (const std::string algorithm : {"auto", "exchange", "doubling", "ring"}) {
    CAPTURE(algorithm);
    CollectiveOptions options;
    options.algorithm = algorithm;
    Allreduce sum(ctx, in_place, x, kCount, DType::u64, ReduceOp::sum, options);
    Allgather gather(ctx, x, all, kCount, DType::u64);
    ReduceScatter scatter(ctx, all, x, kCount, DType::u64, ReduceOp::sum);
    CHECK(verify(sum).ok());
    std::vector<std::uint64_t> mine(kCount), expected(kCount);
    for (std::int64_t i = 0; i < kCount; ++i) {
      mine[static_cast<std::size_t>(i)] = static_cast<std::uint64_t>(i + 1000 * ctx.rank());
      for (int r = 0; r < n; ++r) expected[static_cast<std::size_t>(i)] += static_cast<std::uint64_t>(i + 1000 * r);
    }
    copy(x, mine.data(), static_cast<std::int64_t>(bytes));
    const OwnStream stream;
    for (Operation* operation : {static_cast<Operation*>(&sum), static_cast<Operation*>(&gather)})
      CHECK(!operation->active());
    const Graph graph(stream.get(), [&] {
      for (int i = 0; i < 3; ++i) {
        sum.run(stream.get());      // all have s
        gather.run(stream.get());   // n times s
        scatter.run(stream.get());  // n s
      }
    });
    std::uint64_t factor = 1;
    for (int launch = 0; launch < 4; ++launch) {
      graph.launch(stream.get());
      synchronize(ctx, stream.get());
      for (int i = 0; i < 3; ++i)
        factor *= (launch == 0 && i == 0 ? 1 : static_cast<std::uint64_t>(n)) * static_cast<std::uint64_t>(n);
      std::vector<std::uint64_t> got(kCount);
      copy(got.data(), x, static_cast<std::int64_t>(bytes));
      int wrong = 0;
      for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i] == expected[i] * factor ? 0 : 1;
      CHECK(wrong == 0);
    }
    ctx.barrier();
  }
}

RANK_TEST("an allreduce on GPUs has the bits of the one on hosts, on every rank, path and repetition") {
  use_gpu(ctx);
  for (const std::int64_t count : {std::int64_t{5}, std::int64_t{1003}, std::int64_t{300001}}) {
    const std::int64_t bytes = 4 * count;
    const auto memory = allocate(2 * bytes + 256);
    std::byte* const result = memory.get() + (bytes + 255) / 256 * 256;
    std::vector<float> in(static_cast<std::size_t>(count)), out(in.size());
    Random noise(static_cast<unsigned>(ctx.rank()) + 5);
    for (float& number : in) number = std::ldexp(static_cast<float>(noise()), static_cast<int>(noise() % 40) - 20);
    copy(memory.get(), in.data(), bytes);
    for (const std::string algorithm : {"exchange", "doubling", "ring"}) {
      CollectiveOptions options;
      options.algorithm = algorithm;
      Allreduce on_host(ctx, in.data(), out.data(), count, DType::f32, ReduceOp::sum, options);
      on_host.start();
      on_host.wait();
      for (const std::string& path : paths_for(ctx)) {
        CAPTURE(algorithm);
        CAPTURE(path);
        options.path = path;
        std::unique_ptr<Allreduce> on_gpu;
        const std::string error = error_of([&] {
          on_gpu = std::make_unique<Allreduce>(ctx, memory.get(), result, count, DType::f32, ReduceOp::sum, options);
        });
        if (path == "nccl" && !on_gpu) continue;
        INFO(error);
        REQUIRE(on_gpu);
        for (int repetition = 0; repetition < 2; ++repetition) {
          CUDA_OK(cudaMemset(result, 0xff, static_cast<std::size_t>(bytes)));
          on_gpu->run(nullptr);
          synchronize(ctx, nullptr);
          std::vector<float> got(in.size());
          copy(got.data(), result, bytes);
          CHECK(std::memcmp(got.data(), out.data(), static_cast<std::size_t>(bytes)) == 0);
        }
      }
    }
  }
}

RANK_TEST("the host may wait for the GPU between start and wait: what a start has enqueued ends by itself") {
  use_gpu(ctx);
  constexpr std::int64_t kCount = 1021;
  const auto memory = allocate(kCount * ctx.size());
  const OwnStream stream;
  std::vector<std::int8_t> numbers(static_cast<std::size_t>(kCount * ctx.size()));
  for (const std::string& path : paths_for(ctx)) {
    CAPTURE(path);
    CollectiveOptions options;
    options.path = path;
    options.algorithm = "exchange";
    std::unique_ptr<Operation> operations[2];
    const std::string errors[2] = {
        error_of([&] {
          operations[0] =
              std::make_unique<Allreduce>(ctx, in_place, memory.get(), kCount, DType::i8, ReduceOp::sum, options);
        }),
        error_of([&] {
          options.algorithm = "auto";
          operations[1] = std::make_unique<Alltoall>(ctx, in_place, memory.get(), kCount, DType::i8, options);
        })};
    for (int kind = 0; kind < 2; ++kind) {
      if (!operations[kind]) {
        INFO(errors[kind]);
        CHECK((path == "nccl" || path == "peer:ll"));  // which cannot carry all
        continue;
      }
      for (int turn = 1; turn < 4; ++turn) {
        for (std::size_t i = 0; i < numbers.size(); ++i)
          numbers[i] = static_cast<std::int8_t>((turn + ctx.rank() + static_cast<int>(i % kCount)) % 13);
        copy(memory.get(), numbers.data(), kCount * ctx.size());
        operations[kind]->start(stream.get());
        CUDA_OK(cudaDeviceSynchronize());
        operations[kind]->wait(stream.get());
        synchronize(ctx, stream.get());
        copy(numbers.data(), memory.get(), kCount * ctx.size());
        bool right = true;
        for (std::size_t i = 0; i < (kind == 0 ? static_cast<std::size_t>(kCount) : numbers.size()); ++i) {
          int expected = 0;
          const int from = static_cast<int>(i / kCount);
          for (int r = kind == 0 ? 0 : from; r < (kind == 0 ? ctx.size() : from + 1); ++r)
            expected += (turn + r + static_cast<int>(i % kCount)) % 13;
          right = right && numbers[i] == expected;
        }
        CHECK(right);
      }
    }
  }
}

RANK_TEST("a barrier of streams is passed when all have come to it") {
  use_gpu(ctx);
  Barrier barrier(ctx, Memory::device);
  CHECK(verify(barrier).ok());
  CHECK(barrier.where() == Memory::device);
  const OwnStream stream;
  for (int turn = 0; turn < 8; ++turn) {
    const bool last = turn % ctx.size() == ctx.rank();
    if (!last) barrier.run(stream.get());
    ctx.barrier();
    if (!last && ctx.size() > 1) CHECK(cudaStreamQuery(stream.get()) == cudaErrorNotReady);
    ctx.barrier();
    if (last) barrier.run(stream.get());
    synchronize(ctx, stream.get());
  }
}

RANK_TEST("memory of hosts and GPUs in one collective is refused on every rank; nothing at all may be on a GPU") {
  use_gpu(ctx);
  const auto device = allocate(4096);
  std::vector<double> host(64);
  const auto says = [](const std::string& error, const char* words) {
    INFO(error);
    return error.find(words) != std::string::npos;
  };
  CHECK(says(error_of([&] { Allreduce x(ctx, device.get(), host.data(), 4, DType::f64); }), "must be of one kind"));
  CHECK(says(error_of([&] { Barrier x(ctx, ctx.rank() == 0 && ctx.size() > 1 ? Memory::host : Memory::device); }),
             "differs between ranks") == (ctx.size() > 1));
  if (ctx.size() > 1) {
    void* const mine = ctx.rank() == 0 ? static_cast<void*>(host.data()) : device.get();
    const std::string error = error_of([&] { Broadcast x(ctx, 0, mine, 64); });
    CHECK(says(error, "must be of one kind: rank 0: 'data' is host memory; rank 1: 'data' is device memory"));
  }
  CHECK(says(error_of([&] { Allreduce x(ctx, device.get(), device.get() + 8, 4, DType::f64); }), "overlap in memory"));
  Allreduce none(ctx, device.get(), device.get() + 64, 0, DType::f64);
  CHECK(none.where() == Memory::device);
  none.run(nullptr);
  synchronize(ctx, nullptr);
  // A root that others give to need not be looked at on them.
  Gather gather(ctx, 0, device.get(), ctx.rank() == 0 ? device.get() + 1024 : nullptr, 4, DType::f64);
  gather.run(nullptr);
  synchronize(ctx, nullptr);
}
