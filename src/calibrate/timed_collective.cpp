// TimedCollective: see timed_collective.hpp.
#include "calibrate/timed_collective.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "layout/encoding.hpp"
#include "memory/gpu_memory.hpp"
#include "session/collective.hpp"
#include "session/gpus.hpp"
#include "tasuki/broadcast.hpp"
#include "tasuki/error.hpp"
#include "tasuki/memory.hpp"

namespace tasuki {

namespace {

constexpr int kReplayed = 8;  // epochs in a graph
constexpr int kMostRepeats = 20000;
constexpr int kLeastBarriers = 20;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

CollectiveOptions options_of(const CollectiveShape& shape, const Collective& collective, const Candidate& candidate) {
  CollectiveOptions options;
  options.algorithm = candidate.algorithm->name;
  options.path = candidate.path;
  options.trees = candidate.parameters.trees;
  options.arity = candidate.parameters.arity;
  options.chunk = candidate.parameters.chunk;
  // Where other settings cut the message, this one is named by a chunk as large as all of it.
  if (options.chunk == 0 && candidate.algorithm->settings != nullptr)
    options.chunk = std::max<std::int64_t>(collective.whole(), 1);
  if (shape.memory == Memory::host) options.engine = "inline";
  return options;
}

Operation made(const Context& context, const CollectiveShape& s, const Room& room, const CollectiveOptions& options) {
  std::byte* const in = room.in.get();
  std::byte* const out = room.out.get();
  switch (s.kind) {
    case CollectiveKind::broadcast:
      return Broadcast(context, s.root, in, s.count, options);
    case CollectiveKind::allreduce:
      return Allreduce(context, in, out, s.count, s.type, s.op, options);
    case CollectiveKind::reduce:
      return Reduce(context, s.root, in, out, s.count, s.type, s.op, options);
    case CollectiveKind::reduce_scatter:
      return ReduceScatter(context, in, out, s.count, s.type, s.op, options);
    case CollectiveKind::allgather:
      return Allgather(context, in, out, s.count, s.type, options);
    case CollectiveKind::gather:
      return Gather(context, s.root, in, out, s.count, s.type, options);
    case CollectiveKind::scatter:
      return Scatter(context, s.root, in, out, s.count, s.type, options);
    case CollectiveKind::alltoall:
      return Alltoall(context, in, out, s.count, s.type, options);
    case CollectiveKind::scan:
      return Scan(context, in, out, s.count, s.type, s.op, options);
    case CollectiveKind::exscan:
      return Exscan(context, in, out, s.count, s.type, s.op, options);
    case CollectiveKind::barrier:
      break;
  }
  return Barrier(context, s.memory, options);
}

CollectiveOptions inline_engine() {
  CollectiveOptions options;
  options.engine = "inline";
  return options;
}

}  // namespace

Room::Room(const Context& context, Memory memory, std::int64_t bytes, bool is_shared) : shared(is_shared) {
  Runtime& runtime = runtime_of(context);
  all_do(runtime, "measuring collectives", [&] {
    if (memory == Memory::device && !runtime.gpus)
      throw Error("there is no GPU memory; call use_gpu on all ranks first");
  });
  for (auto* const block : {&in, &out}) {
    if (memory == Memory::device) {
      *block = runtime.gpus->allocate(bytes);
    } else {
      if (shared) {
        *block = shared_alloc(context, bytes);
      } else {
        *block = std::shared_ptr<std::byte>(new std::byte[static_cast<std::size_t>(bytes)],
                                            std::default_delete<std::byte[]>());
      }
      std::fill_n(block->get(), bytes, std::byte{0});
    }
  }
}

double largest(const Context& context, double mine) {
  double most = mine;
  for (const std::string& text : gather_texts(runtime_of(context), encoded(mine), "measuring collectives"))
    most = std::max(most, decoded<double>(text));
  return most;
}

TimedCollective::TimedCollective(const Context& context, const CollectiveShape& shape, const Candidate& candidate,
                                 const Room& room)
    : context_(context),
      operation_(
          made(context, shape, room, options_of(shape, Collective(runtime_of(context).machine(), shape), candidate))) {
  if (shape.memory == Memory::host) {
    barrier_.emplace(context, inline_engine());
    return;
  }
  stream_ = fork_.emplace().branch(nullptr);
  const auto several = [&] {
    for (int i = 0; i < kReplayed; ++i) operation_.run(stream_);
  };
  several();  // CUDA does some things lazily at first use, and these may not be captured
  synchronize(context, stream_);
  try {
    graph_.emplace(stream_, several);
  } catch (const Error&) {  // what CUDA cannot capture is launched one by one in programs too
  }
}

void TimedCollective::prepare(double seconds) {
  repeats_ = 1;
  for (;;) {
    const double epoch = once();
    const auto wanted = static_cast<int>(std::clamp(seconds / std::max(epoch, 1e-9), 1.0, double{kMostRepeats}));
    if (wanted <= 2 * repeats_ || repeats_ == kMostRepeats) {
      repeats_ = wanted;
      return;
    }
    repeats_ = std::min(wanted, 10 * repeats_);
  }
}

double TimedCollective::once() {
  runtime_of(context_).barrier();
  return largest(context_, barrier_ ? host_seconds(repeats_, false) : gpu_seconds(repeats_));
}

double TimedCollective::barrier_once() {
  if (!barrier_) return 0;
  runtime_of(context_).barrier();
  return largest(context_, host_seconds(std::max(repeats_, kLeastBarriers), true));
}

double TimedCollective::host_seconds(int epochs, bool barrier_only) {
  const double begin = now();
  for (int i = 0; i < epochs; ++i) {
    barrier_->start();
    barrier_->wait();
    if (barrier_only) continue;
    operation_.start();
    operation_.wait();
  }
  return (now() - begin) / epochs;
}

double TimedCollective::gpu_seconds(int launches) {
  const double begin = now();
  for (int i = 0; i < launches; ++i) {
    if (graph_) {
      graph_->launch(stream_);
    } else {
      for (int epoch = 0; epoch < kReplayed; ++epoch) operation_.run(stream_);
    }
  }
  synchronize(context_, stream_);
  return (now() - begin) / launches / kReplayed;
}

}  // namespace tasuki
