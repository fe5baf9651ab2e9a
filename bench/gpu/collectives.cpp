// The group gpu-collectives: broadcast, reduce, allreduce, allgather, reduce-scatter and all-to-all on GPU memory, one
// after the other in a stream or in a graph. Tasuki, and a bound: the bytes that must cross, moved by the copy engines
// alone. And the group gpu-overlap: broadcast and allreduce beside a computation.
#include "gpu/collectives.hpp"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gpu/beside.hpp"
#include "gpu/device_memory.cuh"
#include "gpu/ipc.hpp"
#include "gpu/problem.hpp"
#include "tasuki/broadcast.hpp"
#include "tasuki/collectives.hpp"

namespace bench {
namespace {

using tasuki::CollectiveKind;

constexpr const char* kBound = "bound: copies";
constexpr const char* kCopies = "tasuki copies";  // beside a computation: by the copy engines, which take no SM

// So small that sums are exact.
float value_of(int rank, std::int64_t at, int round) {
  return static_cast<float>((at * 7 + rank * 3 + round * 5) % 11);
}

float sum_of(int ranks, std::int64_t at, int round) {
  float sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += value_of(rank, at, round);
  return sum;
}

// Element i of this rank's result.
float expected(const GpuCollectiveCase& c, std::int64_t i, int round) {
  const int me = c.context.rank();
  switch (c.kind) {
    case CollectiveKind::broadcast:
      return value_of(0, i, round);
    case CollectiveKind::allgather:
      return value_of(static_cast<int>(i / c.block()), i % c.block(), round);
    case CollectiveKind::alltoall:
      return value_of(static_cast<int>(i / c.block()), me * c.block() + i % c.block(), round);
    case CollectiveKind::reduce_scatter:
      return sum_of(c.context.size(), me * c.block() + i, round);
    default:
      return sum_of(c.context.size(), i, round);
  }
}

void copy(void* to, const void* from, std::int64_t floats) {
  TASUKI_CUDA(cudaMemcpy, to, from, static_cast<std::size_t>(floats) * sizeof(float), cudaMemcpyDefault);
  TASUKI_CUDA(cudaStreamSynchronize, nullptr);
}

// The elements of a buffer that are filled and looked at, as ranges: all, or of large blocks the beginning, the end and
// a few places between, the same in every block. The host would take seconds for all of them.
std::vector<std::pair<std::int64_t, std::int64_t>> looked_at(std::int64_t elements, std::int64_t block) {
  constexpr std::int64_t kWindow = 16 << 10;
  constexpr std::int64_t kWindows = 6;  // of a block
  if (block <= kWindow * kWindows) return {{0, elements}};
  std::vector<std::pair<std::int64_t, std::int64_t>> all;
  for (std::int64_t first = 0; first < elements; first += block) {
    for (std::int64_t w = 0; w < kWindows; ++w) {
      const std::int64_t begin = first + (block - kWindow) * w / (kWindows - 1);
      all.emplace_back(begin, begin + kWindow);
    }
  }
  return all;
}

std::string verify(const GpuCollectiveCase& c, const Peer& peer, Runner& runner, float* in, float* out) {
  if (peer.name.starts_with(kBound)) return {};  // it adds nothing up
  std::string complaint;
  const bool broadcast = c.kind == CollectiveKind::broadcast;
  const bool gets = c.kind != CollectiveKind::reduce || c.context.is_root();
  const auto given = looked_at(c.gives(), c.block());
  const auto got = looked_at(gets ? c.gets() : 0, c.block());
  std::vector<float> values;
  for (int round = 1; round <= 3; ++round) {
    for (const auto& [begin, end] : given) {
      values.clear();
      for (std::int64_t i = begin; i < end; ++i)
        values.push_back(broadcast && !c.context.is_root() ? -1.0F : value_of(c.context.rank(), i, round));
      copy(in + begin, values.data(), end - begin);
    }
    for (const auto& [begin, end] : got) {
      values.assign(static_cast<std::size_t>(end - begin), -1.0F);
      if (!broadcast) copy(out + begin, values.data(), end - begin);
    }
    c.context.barrier();
    runner.start();
    runner.wait();
    runner.finish();
    c.context.barrier();
    for (const auto& [begin, end] : got) {
      values.resize(static_cast<std::size_t>(end - begin));
      copy(values.data(), (broadcast ? in : out) + begin, end - begin);
      for (std::int64_t i = begin; i < end && complaint.empty(); ++i) {
        const float wanted = expected(c, i, round);
        const float value = values[static_cast<std::size_t>(i - begin)];
        if (value != wanted)
          complaint =
              fmt::format("rank {}, round {}, element {}: {} instead of {}", c.context.rank(), round, i, value, wanted);
      }
    }
  }
  return agree(c.context, complaint);
}

tasuki::CollectiveShape shape_of(const GpuCollectiveCase& c) {
  tasuki::CollectiveShape shape;
  shape.kind = c.kind;
  shape.memory = tasuki::Memory::device;
  shape.shared = true;
  shape.type = c.kind == CollectiveKind::broadcast ? tasuki::DType::u8 : tasuki::DType::f32;
  shape.count = c.kind == CollectiveKind::broadcast ? c.count * 4 : c.gives() == c.gets() ? c.count : c.block();
  if (c.kind == CollectiveKind::alltoall) shape.count = c.block();
  return shape;
}

class CollectiveRunner : public Runner {
 public:
  explicit CollectiveRunner(const GpuCollectiveCase& c, const std::string& path = "auto")
      : case_(c),
        stream_(c.stream()),
        in_(device_memory(static_cast<std::size_t>(c.gives()) * 4)),
        out_(device_memory(static_cast<std::size_t>(c.gets()) * 4)),
        operation_(make(path)) {}
  float* in() const { return reinterpret_cast<float*>(in_.get()); }
  float* out() const { return reinterpret_cast<float*>(out_.get()); }
  void start() override { operation_.run(stream_); }
  void finish() override { finish_stream(case_.context, stream_); }
  std::optional<std::int64_t> memory() const override { return operation_.memory(); }
  std::optional<double> predicted(bool together) const override {
    const auto prediction = tasuki::plan(tasuki::machine_of(case_.context), shape_of(case_)).predict();
    return together ? prediction.seconds : prediction.back_to_back;
  }

 private:
  tasuki::Operation make(const std::string& path) const {
    const tasuki::Context& context = case_.context;
    const auto f32 = tasuki::DType::f32;
    const tasuki::ReduceOp sum = tasuki::ReduceOp::sum;
    tasuki::CollectiveOptions how;
    how.path = path;
    switch (case_.kind) {
      case CollectiveKind::broadcast:
        return tasuki::Broadcast(context, 0, in(), case_.count * 4, how);
      case CollectiveKind::reduce:
        return tasuki::Reduce(context, 0, in(), out(), case_.count, f32, sum, how);
      case CollectiveKind::allreduce:
        return tasuki::Allreduce(context, in(), out(), case_.count, f32, sum, how);
      case CollectiveKind::allgather:
        return tasuki::Allgather(context, in(), out(), case_.block(), f32, how);
      case CollectiveKind::reduce_scatter:
        return tasuki::ReduceScatter(context, in(), out(), case_.block(), f32, sum, how);
      default:
        return tasuki::Alltoall(context, in(), out(), case_.block(), f32, how);
    }
  }

  GpuCollectiveCase case_;
  tasuki::Stream stream_;
  DeviceMemory in_;
  DeviceMemory out_;
  tasuki::Operation operation_;
};

// A barrier of the streams, then what another runner does.
class AfterBarrier : public Runner {
 public:
  AfterBarrier(const GpuCollectiveCase& c, RunnerPtr then)
      : stream_(c.stream()), barrier_(c.context, tasuki::Memory::device), then_(std::move(then)) {}
  void start() override {
    barrier_.run(stream_);
    then_->start();
  }
  void wait() override { then_->wait(); }
  void finish() override { then_->finish(); }

 private:
  tasuki::Stream stream_;
  tasuki::Barrier barrier_;
  RunnerPtr then_;
};

GpuCollectiveRun after_barrier(const GpuCollectiveCase& c, GpuCollectiveRun run) {
  if (run.runner) run.runner = std::make_unique<AfterBarrier>(c, std::move(run.runner));
  return run;
}

GpuCollectiveRun tasuki_collective(const GpuCollectiveCase& c, const std::string& path = "auto") {
  auto runner = std::make_unique<CollectiveRunner>(c, path);
  GpuCollectiveRun run{nullptr, runner->in(), runner->out()};
  run.runner = std::move(runner);
  return run;
}

// Beside a computation only: without one, the path that is chosen says what the copy engines are worth.
GpuCollectiveRun tasuki_copies(const GpuCollectiveCase& c) {
  if (c.branch == nullptr) return {};
  return unless_left_out(c, kCopies, [&] { return tasuki_collective(c, "peer:copy"); });
}

// Bytes that a rank must send, where all send as much as they must at least.
std::int64_t must_send(const GpuCollectiveCase& c) {
  const std::int64_t n = c.context.size();
  const std::int64_t whole = c.count * 4;
  switch (c.kind) {
    case CollectiveKind::broadcast:
      return c.context.is_root() ? whole : 0;
    case CollectiveKind::reduce:
      return c.context.is_root() ? 0 : whole;
    case CollectiveKind::allreduce:
      return 2 * (n - 1) * whole / n;
    default:
      return (n - 1) * whole / n;
  }
}

// To the next rank, by one call of the copy engine, while the rank before sends here.
class BoundRunner : public Runner {
 public:
  explicit BoundRunner(const GpuCollectiveCase& c)
      : context_(c.context),
        stream_(gpu_stream(c.context)),
        bytes_(static_cast<std::size_t>(must_send(c))),
        from_(device_memory(static_cast<std::size_t>(2 * c.count) * 4)),
        to_(device_memory(static_cast<std::size_t>(2 * c.count) * 4)),
        peers_(c.context, to_.get()) {}
  ~BoundRunner() override { context_.barrier(); }  // nobody gives up what another still writes
  void start() override {
    if (bytes_ == 0) return;
    std::byte* const there = peers_.of((context_.rank() + 1) % context_.size());
    TASUKI_CUDA(cudaMemcpyAsync, there, from_.get(), bytes_, cudaMemcpyDefault, static_cast<cudaStream_t>(stream_));
  }
  void finish() override { finish_stream(context_); }

 private:
  tasuki::Context context_;
  tasuki::Stream stream_;
  std::size_t bytes_;
  DeviceMemory from_;
  DeviceMemory to_;
  PeerMemory peers_;
};

GpuCollectiveRun bound(const GpuCollectiveCase& c) {
  return unless_left_out(c, kBound, [&] {
    return GpuCollectiveRun{std::make_unique<BoundRunner>(c), nullptr, nullptr};
  });
}

const RegisterPeer kTasuki(gpu_collective_peer(kReference,
                                               [](const GpuCollectiveCase& c) { return tasuki_collective(c); }));
const RegisterPeer kTasukiGraph(gpu_collective_peer(std::string(kReference) + kReplayed,
                                                    [](const GpuCollectiveCase& c) {
                                                      return replayed(c, tasuki_collective(c));
                                                    }));
const RegisterPeer kTasukiCopies(gpu_collective_peer(kCopies, tasuki_copies));
const RegisterPeer kTasukiCopiesGraph(gpu_collective_peer(std::string(kCopies) + kReplayed, tasuki_copies));
const RegisterPeer kBounds(gpu_collective_peer(kBound, bound));
const RegisterPeer kBoundsGraph(gpu_collective_peer(std::string(kBound) + kReplayed,
                                                    [](const GpuCollectiveCase& c) { return replayed(c, bound(c)); }));

// Where each runner of a case works.
struct Places {
  std::map<const Runner*, std::pair<float*, float*>> of;
};

// After a barrier: of every peer but the bounds, which wait for nobody. What is replayed has its barriers in the graph.
Problem problem_of(const GpuCollectiveCase& c) {
  gpu_stream(c.context);
  const auto places = std::make_shared<Places>();
  Problem problem;
  problem.make = [c, places](const Peer& peer) -> RunnerPtr {
    if (!peer.gpu_collective || (c.after_barrier && peer.silent)) return nullptr;
    GpuCollectiveRun run = peer.gpu_collective(c);
    if (c.after_barrier && !peer.name.ends_with(kReplayed)) run = after_barrier(c, std::move(run));
    if (run.runner) places->of[run.runner.get()] = {run.in, run.out};
    return std::move(run.runner);
  };
  problem.verify = [c, places](const Peer& peer, Runner& runner) {
    const auto [in, out] = places->of.at(&runner);
    return verify(c, peer, runner, in, out);
  };
  return problem;
}

// Of every peer but the bounds, which wait for nobody. `epochs`: in a turn.
Problem overlap_problem(const GpuCollectiveCase& c, int epochs) {
  gpu_stream(c.context);
  const auto places = std::make_shared<Places>();
  Problem problem;
  problem.make = [c, epochs, places](const Peer& peer) -> RunnerPtr {
    if (!peer.gpu_collective || peer.silent) return nullptr;
    std::pair<float*, float*> memory;
    const auto make = [&](tasuki::Stream branch) -> RunnerPtr {
      GpuCollectiveCase here = c;
      here.branch = branch;
      GpuCollectiveRun run = peer.gpu_collective(here);
      memory = {run.in, run.out};
      return std::move(run.runner);
    };
    RunnerPtr runner = beside(c.context, epochs, peer.name.ends_with(kReplayed), make);
    if (runner) places->of[runner.get()] = memory;
    return runner;
  };
  problem.verify = [c, places](const Peer& peer, Runner& runner) {
    const auto [in, out] = places->of.at(&runner);
    compute_beside(runner, true);
    const std::string complaint = verify(c, peer, runner, in, out);
    compute_beside(runner, false);
    return complaint.empty() ? verify(c, peer, runner, in, out) : complaint;
  };
  problem.overlap = overlap_beside;
  return problem;
}

std::string size_name(std::int64_t bytes) {
  if (bytes >= 1 << 20) return fmt::format("{} MiB", bytes >> 20);
  return bytes >= 1 << 10 ? fmt::format("{} KiB", bytes >> 10) : fmt::format("{} B", bytes);
}

}  // namespace

tasuki::Stream GpuCollectiveCase::stream() const {
  return branch != nullptr ? branch : gpu_stream(context);
}

std::int64_t GpuCollectiveCase::gives() const {
  return kind == CollectiveKind::allgather ? block() : count;
}

std::int64_t GpuCollectiveCase::gets() const {
  return kind == CollectiveKind::reduce_scatter ? block() : count;
}

Peer gpu_collective_peer(const std::string& name, std::function<GpuCollectiveRun(const GpuCollectiveCase&)> make) {
  Peer peer;
  peer.name = name;
  peer.silent = name.starts_with(kBound);
  peer.splits = true;  // work of a stream
  peer.gpu_collective = [make = std::move(make)](const GpuCollectiveCase& c) { return make(c); };
  return peer;
}

GpuCollectiveRun replayed(const GpuCollectiveCase& problem, GpuCollectiveRun run) {
  if (problem.after_barrier) run = after_barrier(problem, std::move(run));
  if (problem.branch == nullptr) run.runner = replayed(problem.context, std::move(run.runner));
  return run;
}

GpuCollectiveRun unless_left_out(const GpuCollectiveCase& problem, const std::string& peer,
                                 const std::function<GpuCollectiveRun()>& make) {
  GpuCollectiveRun run;
  run.runner = unless_left_out(problem.context, peer, [&] {
    run = make();
    return std::move(run.runner);
  });
  return run;
}

std::vector<Case> gpu_collective_cases(int ranks) {
  std::vector<Case> cases;
  if (ranks < 2) return cases;
  for (const CollectiveKind kind :
       {CollectiveKind::broadcast, CollectiveKind::reduce, CollectiveKind::allreduce, CollectiveKind::allgather,
        CollectiveKind::reduce_scatter, CollectiveKind::alltoall}) {
    for (const std::int64_t bytes : {std::int64_t{64}, std::int64_t{64} << 10, std::int64_t{1} << 20,
                                     std::int64_t{16} << 20, std::int64_t{256} << 20}) {
      const std::int64_t count = bytes / 4 / ranks * ranks;
      const std::int64_t arrives = kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce ? bytes
                                   : kind == CollectiveKind::allreduce ? 2 * (ranks - 1) * bytes / ranks
                                                                       : (ranks - 1) * bytes / ranks;
      cases.push_back({"gpu-collectives", fmt::format("{} {}", tasuki::to_string(kind), size_name(bytes)), arrives,
                       bytes <= 64 << 10, [kind, count](const tasuki::Context& context) {
                         return problem_of({context, kind, count});
                       }});
    }
  }
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::reduce}) {
    for (const std::int64_t bytes :
         {std::int64_t{64}, std::int64_t{1} << 20, std::int64_t{16} << 20, std::int64_t{256} << 20}) {
      const std::int64_t count = bytes / 4 / ranks * ranks;
      cases.push_back({"gpu-collectives-alone", fmt::format("{} {}", tasuki::to_string(kind), size_name(bytes)), bytes,
                       bytes == 64, [kind, count](const tasuki::Context& context) {
                         return problem_of({context, kind, count, nullptr, true});
                       }});
    }
  }
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::allreduce}) {
    for (const std::int64_t bytes : {std::int64_t{1} << 20, std::int64_t{16} << 20}) {
      for (const int epochs : {1, 10}) {
        const std::int64_t count = bytes / 4 / ranks * ranks;
        const std::string name = fmt::format("{} {}", tasuki::to_string(kind), size_name(bytes));
        cases.push_back({"gpu-overlap", epochs > 1 ? fmt::format("{} × {}", epochs, name) : name, bytes,
                         bytes == 1 << 20, [kind, count, epochs](const tasuki::Context& context) {
                           return overlap_problem({context, kind, count}, epochs);
                         }});
      }
    }
  }
  return cases;
}

}  // namespace bench
