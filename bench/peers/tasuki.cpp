// Tasuki itself.
#include "tasuki/tasuki.hpp"

#include <fmt/format.h>

#include <set>

#include "collectives/algorithm.hpp"
#include "paths/path.hpp"
#include "peer.hpp"
#ifdef TASUKI_HAVE_CUDA
#include "gpu/problem.hpp"
#endif

namespace bench {
namespace {

template <class Operation>
class OperationRunner : public Runner {
 public:
  explicit OperationRunner(Operation operation) : operation_(std::move(operation)) {}
  void start() override { operation_.start(); }
  void wait() override { operation_.wait(); }
  std::optional<std::int64_t> memory() const override { return operation_.memory(); }
  std::optional<double> predicted(bool together) const override {
    const tasuki::Prediction prediction = tasuki::predict(operation_);
    return together ? prediction.seconds : prediction.back_to_back;
  }

 private:
  Operation operation_;
};

RunnerPtr halo_by(const HaloCase& problem, const std::string& path) {
  std::vector<tasuki::HaloField> fields;
  for (const auto& field : problem.fields) fields.emplace_back(field, problem.width);
  tasuki::HaloOptions options;
  options.path = path;
  return std::make_unique<OperationRunner<tasuki::Halo>>(tasuki::Halo(fields, options));
}

RunnerPtr halo(const HaloCase& problem) {
  return halo_by(problem, "auto");
}

RunnerPtr transpose(const TransposeCase& t) {
  const auto number = tasuki::Layout::of<double>();
  const std::int64_t share = t.share();
  // What a rank sends, row by row, and where it goes.
  const auto sent = tasuki::Layout::vector(share, share, t.size, number);
  const auto column = tasuki::Layout::vector(share, 1, t.size, number);
  const auto received =
      t.turned ? tasuki::Layout::hvector(share, 1, 8, column) : tasuki::Layout::contiguous(share * share, number);
  const std::vector<std::int64_t> one{1};
  std::vector<tasuki::Layout> in, out;
  for (std::int64_t r = 0; r < t.context.size(); ++r) {
    in.push_back(tasuki::Layout::hindexed(one, std::vector{8 * t.at_in(0, r * share)}, sent));
    out.push_back(tasuki::Layout::hindexed(one, std::vector{8 * t.at_out(r * share, 0)}, received));
  }
  return std::make_unique<OperationRunner<tasuki::Alltoall>>(tasuki::Alltoall(t.context, t.in, in, t.out, out));
}

RunnerPtr mesh(const MeshCase& one) {
  std::vector<tasuki::ExchangeEntry> entries;
  for (const auto& entry : one.entries) entries.push_back({entry.peer, entry.send, entry.receive});
  const tasuki::ExchangeField field(one.field, one.cells, one.levels);
  return std::make_unique<OperationRunner<tasuki::Exchange>>(tasuki::Exchange(one.context, {field}, entries));
}

// Rank 0 starts both ways at once, as the other peers post their receive beforehand.
class ThereAndBack : public Runner {
 public:
  explicit ThereAndBack(const TransferCase& t)
      : rank_(t.context.rank()), there_(way(t, 0, t.block, 1, t.block)), back_(way(t, 1, t.block, 0, t.back)) {}

  void start() override {
    there_.start();
    if (rank_ != 1) back_.start();
    there_.wait();
    if (rank_ == 1) back_.start();
    back_.wait();
  }
  std::optional<std::int64_t> memory() const override { return there_.memory() + back_.memory(); }
  // One way follows the other.
  std::optional<double> predicted(bool) const override {
    return tasuki::predict(there_).seconds + tasuki::predict(back_).seconds;
  }

 private:
  static tasuki::Transfer way(const TransferCase& t, int from, double* source, int to, double* destination) {
    const auto block = tasuki::Layout::vector(t.rows, t.columns, t.stride, tasuki::Layout::of<double>());
    return tasuki::Transfer(t.context, {from, source, block}, {to, destination, block});
  }

  int rank_;
  tasuki::Transfer there_;
  tasuki::Transfer back_;
};

RunnerPtr transfer(const TransferCase& t) {
  return std::make_unique<ThereAndBack>(t);
}

RunnerPtr broadcast(const BroadcastCase& b) {
  return std::make_unique<OperationRunner<tasuki::Broadcast>>(tasuki::Broadcast(b.context, 0, b.data, b.bytes));
}

tasuki::Operation operation_of(const CollectiveCase& c, const tasuki::CollectiveOptions& options) {
  using tasuki::CollectiveKind;
  constexpr auto type = tasuki::DType::f64;
  constexpr auto sum = tasuki::ReduceOp::sum;
  if (c.ring) {
    const tasuki::Neighbours ring({c.next(), c.last()}, {c.last(), c.next()});
    if (c.kind == CollectiveKind::alltoall)
      return tasuki::NeighbourAlltoall(c.context, ring, c.in, c.out, c.count, type, options);
    return tasuki::NeighbourAllgather(c.context, ring, c.in, c.out, c.count, type, options);
  }
  switch (c.kind) {
    case CollectiveKind::broadcast:
      return tasuki::Broadcast(c.context, 0, c.in, c.count * 8, options);
    case CollectiveKind::reduce:
      return tasuki::Reduce(c.context, 0, c.in, c.out, c.count, type, sum, options);
    case CollectiveKind::reduce_scatter:
      return tasuki::ReduceScatter(c.context, c.in, c.out, c.count, type, sum, options);
    case CollectiveKind::allgather:
      return tasuki::Allgather(c.context, c.in, c.out, c.count, type, options);
    case CollectiveKind::alltoall:
      return tasuki::Alltoall(c.context, c.in, c.out, c.count, type, options);
    case CollectiveKind::gather:
      return tasuki::Gather(c.context, 0, c.in, c.out, c.count, type, options);
    case CollectiveKind::scatter:
      return tasuki::Scatter(c.context, 0, c.in, c.out, c.count, type, options);
    case CollectiveKind::scan:
      return tasuki::Scan(c.context, c.in, c.out, c.count, type, sum, options);
    case CollectiveKind::exscan:
      return tasuki::Exscan(c.context, c.in, c.out, c.count, type, sum, options);
    case CollectiveKind::barrier:
      return tasuki::Barrier(c.context, options);
    default:
      return tasuki::Allreduce(c.context, c.in, c.out, c.count, type, sum, options);
  }
}

RunnerPtr collective(const CollectiveCase& c) {
  return std::make_unique<OperationRunner<tasuki::Operation>>(operation_of(c, {}));
}

// Whether plans can be made for it, without making anything.
bool carried(const CollectiveCase& c, const std::string& path, const std::string& algorithm) {
  tasuki::CollectiveShape shape;
  shape.kind = c.kind;
  shape.type = c.kind == tasuki::CollectiveKind::broadcast ? tasuki::DType::u8 : tasuki::DType::f64;
  shape.count = c.kind == tasuki::CollectiveKind::broadcast ? 8 * c.count : c.count;
  shape.shared = c.shared;
  shape.path = path;
  shape.algorithm = algorithm;
  try {
    return !tasuki::plan(tasuki::machine_of(c.context), shape).plans().empty();
  } catch (const tasuki::Error&) {
    return false;
  }
}

Peer forced_peer(const std::string& path, const std::string& algorithm) {
  Peer peer;
  peer.name = fmt::format("{} {} {}", kReference, path, algorithm);
  peer.collective = [path, algorithm](const CollectiveCase& c) -> RunnerPtr {
    if (!carried(c, path, algorithm)) return nullptr;
    tasuki::CollectiveOptions options;
    options.path = path;
    options.correct = false;  // what it takes says nothing of what would be chosen
    options.algorithm = algorithm;
    return std::make_unique<OperationRunner<tasuki::Operation>>(operation_of(c, options));
  };
  return peer;
}

// By the progress thread, where it is asked what that hides.
RunnerPtr by_thread(const CollectiveCase& c) {
  if (!c.overlap) return nullptr;
  tasuki::CollectiveOptions options;
  options.engine = "thread";
  return std::make_unique<OperationRunner<tasuki::Operation>>(operation_of(c, options));
}

Peer thread_peer() {
  Peer peer;
  peer.name = std::string(kReference) + " thread";
  peer.splits = true;
  peer.collective = by_thread;
  return peer;
}

const RegisterPeer kPeer({.name = "tasuki",
                          .halo = halo,
                          .transfer = transfer,
                          .broadcast = broadcast,
                          .splits = true,
                          .solo = false,
#ifdef TASUKI_HAVE_CUDA
                          .gpu = tasuki_on_gpus,
#endif
                          .collective = collective,
                          .transpose = transpose,
                          .mesh = mesh});
const RegisterPeer kThread(thread_peer());

}  // namespace

void add_forced() {
  std::vector<std::string> paths;
  for (const tasuki::Path& path : tasuki::all_paths())
    if (path.memory == tasuki::Memory::host && path.name != "self") paths.push_back(path.name);
  std::set<std::string> algorithms;
  for (const tasuki::CollectiveKind kind : tasuki::all_collectives())
    for (const tasuki::Algorithm* one : tasuki::algorithms_of(kind)) algorithms.insert(one->name);
  for (const std::string& path : paths) {
    Peer peer;
    peer.name = fmt::format("{} {}", kReference, path);
    peer.halo = [path](const HaloCase& problem) { return halo_by(problem, path); };
    RegisterPeer{peer};
    for (const std::string& algorithm : algorithms) RegisterPeer{forced_peer(path, algorithm)};
  }
  for (const std::string& algorithm : algorithms) RegisterPeer{forced_peer("auto", algorithm)};
}

}  // namespace bench
