// PathTimer: see path_timer.hpp.
#include "calibrate/path_timer.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

#include "calibrate/both_ways.hpp"
#include "session/runtime.hpp"
#include "tasuki/error.hpp"
#include "tasuki/graph.hpp"
#include "tasuki/transfer.hpp"

namespace tasuki {

namespace {

constexpr int kReplayed = 8;  // transfers, or pairs of them, in a graph

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Seconds of one of `rounds`, in the fastest batch. That one was disturbed least.
template <class Once, class Finish>
double least(int batches, int rounds, const Once& once, const Finish& finish) {
  double best = 1e9;
  for (int batch = 0; batch < batches; ++batch) {
    const double begin = now();
    for (int i = 0; i < rounds; ++i) once();
    finish();
    best = std::min(best, (now() - begin) / rounds);
  }
  return best;
}

}  // namespace

PathTimer::PathTimer(const Context& context, const Path& path, int a, int b, std::byte* from, std::byte* to)
    : context_(context), on_gpu_(path.memory == Memory::device), a_(a), b_(b), from_(from), to_(to) {
  options_.path = a == b ? "auto" : path.name;  // what stays on a rank cannot be forced
  options_.correct = false;
  if (!on_gpu_) options_.engine = "inline";
}

double PathTimer::there_and_back(const Layout& layout) const {
  std::byte* at = a_ == b_ ? to_ : from_;
  Transfer there(context_, {a_, from_, layout}, {b_, at, layout}, options_);
  Transfer back(context_, {b_, at, layout}, {a_, from_, layout}, options_);
  return time(layout, {&there, &back}) / 2;
}

double PathTimer::one_after_another(const Layout& layout) const {
  std::byte* at = a_ == b_ ? to_ : from_;
  Transfer there(context_, {a_, from_, layout}, {b_, at, layout}, options_);
  return time(layout, {&there});
}

double PathTimer::both(const Layout& layout) const {
  BothWays there(context_, a_, b_, from_, to_, layout, options_);
  BothWays back(context_, a_, b_, to_, from_, layout, options_);
  return time(layout, {&there, &back}) / 2;
}

double PathTimer::time(const Layout& layout, std::initializer_list<Operation*> operations) const {
  try {
    return time_until_it_fails(layout, operations);
  } catch (const std::exception& error) {
    runtime_of(context_).fail(error.what());  // the other end would wait
    throw;
  }
}

// Both ranks must do equally many rounds, so their number is fixed. On hosts there are many short batches, so that some
// of them fall between disturbances; on GPUs a batch is long compared with the time in which the host notices its end.
double PathTimer::time_until_it_fails(const Layout& layout, std::initializer_list<Operation*> operations) const {
  const bool word = layout.size() < 1024;
  if (on_gpu_) return time_on_gpu(word ? 20 : layout.size() <= kLargeOnGpu ? 4 : 1, operations);
  const auto once = [&] {
    for (Operation* operation : operations) {
      operation->start();
      operation->wait();
    }
  };
  for (int i = 0; i < 3; ++i) once();
  return least(word ? 40 : 8, word ? 10 : 2, once, [] {});
}

// Replayed as a graph, as a solver's iterations are. Launched one by one, short transfers would take as long as the
// launches.
double PathTimer::time_on_gpu(int launches, std::initializer_list<Operation*> operations) const {
  Fork fork;
  const Stream stream = fork.branch(nullptr);
  const auto several = [&] {
    for (int i = 0; i < kReplayed; ++i) {
      for (Operation* operation : operations) operation->run(stream);
    }
  };
  const auto finish = [&] { synchronize(context_, stream); };
  several();  // CUDA does some things lazily at first use, and these may not be captured
  finish();
  std::optional<Graph> graph;
  try {
    graph.emplace(stream, several);
  } catch (const Error&) {  // what CUDA cannot capture is launched one by one in programs too
  }
  return least(
             4, launches, [&] { graph ? graph->launch(stream) : several(); }, finish) /
         kReplayed;
}

}  // namespace tasuki
