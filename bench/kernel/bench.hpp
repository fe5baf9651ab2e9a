// The stopwatch of tasuki-bench-kernel: runs a case several times and prints what it took.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cases.hpp"
#include "tasuki/kernel.hpp"
#include "tasuki/tasuki.hpp"

namespace {

constexpr int kMostBlocks = 1024;

struct Options {
  int iterations = 1000;
  int launches = 15;
  int threads = 256;
  int blocks = 16;
  int ranks = 0;  // threads of this process; 0: processes of MPI
  std::string only;
  int direct = 1;         // what does not go through the host
  int by_host = 1;        // what does
  int staging = 1 << 20;  // bytes, of a message that does
  int peers = 1;
};

/// Memory that kernels reach.
std::shared_ptr<std::byte> allocate(std::size_t bytes) {
#if defined(__CUDACC__)
  void* p = nullptr;
  TASUKI_CUDA(cudaMalloc, &p, bytes);
  TASUKI_CUDA(cudaMemset, p, 0, bytes);
  return {static_cast<std::byte*>(p), [](std::byte* q) { cudaFree(q); }};
#else
  return {static_cast<std::byte*>(std::calloc(bytes, 1)), [](std::byte* q) { std::free(q); }};
#endif
}
void fetch(void* to, const void* from, std::size_t bytes) {
#if defined(__CUDACC__)
  TASUKI_CUDA(cudaMemcpy, to, from, bytes, cudaMemcpyDefault);
#else
  std::memcpy(to, from, bytes);
#endif
}

class Bench {
 public:
  Bench(const tasuki::Context& context, const Options& options)
      : context_(context),
        options_(options),
        memory_(allocate(2 * kMost)),
        times_(allocate(sizeof(Word) * kMostBlocks)) {
#if defined(__CUDACC__)
    TASUKI_CUDA(cudaStreamCreateWithFlags, &stream_, cudaStreamNonBlocking);
#endif
  }
#if defined(__CUDACC__)
  ~Bench() {
    cudaStreamDestroy(stream_);
  }
#endif
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  bool wants(const std::string& name) const {
    return name.find(options_.only) != std::string::npos;
  }

  /// `ways` of an iteration; `launch` gets the launch's options and the run, and waits. Returns the median, or 0 if the
  /// case is left out, as the others.
  template <class Launch>
  double measure(const std::string& name, Word bytes, int blocks, double ways, Launch&& launch) {
    return measure(name, bytes, blocks, options_.threads, ways, launch);
  }
  template <class Launch>
  double measure(const std::string& name, Word bytes, int blocks, int threads, double ways, Launch&& launch) {
    if (!wants(name)) return 0;
    std::vector<double> all;
    for (int n = 0; n < options_.launches; ++n) {
      tasuki::ResidentOptions how;
      how.blocks = blocks;
      how.threads = threads;
      how.stream = stream_;
      const Run run = run_of(bytes, static_cast<Word>(iterations(bytes)));
      context_.barrier();
      launch(how, run);
      std::vector<Word> times(static_cast<std::size_t>(blocks));
      fetch(times.data(), times_.get(), times.size() * sizeof(Word));
      add(all, static_cast<double>(*std::max_element(times.begin(), times.end())) / ways, bytes);
      std::fill(times.begin(), times.end(), Word{0});  // of a rank that takes no part in the next case
      fetch(times_.get(), times.data(), times.size() * sizeof(Word));
    }
    return print(name, bytes, std::to_string(blocks) + " x " + std::to_string(threads), all);
  }

  /// `run` carries out so many epochs; `prepare`, before each time, is not timed.
  template <class Epochs>
  double measure_host(
      const std::string& name, Word bytes, Epochs&& run, const std::string& by = "host",
      const std::function<void()>& prepare = [] {}) {
    if (!wants(name)) return 0;
    std::vector<double> all;
    run(static_cast<int>(kWarmUp));
    for (int n = 0; n < options_.launches; ++n) {
      prepare();
      context_.barrier();
      const auto begin = std::chrono::steady_clock::now();
      run(iterations(bytes));
      add(all, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count(), bytes);
    }
    return print(name, bytes, by, all);
  }
  int iterations(Word bytes) const {
    return bytes < kLong ? options_.iterations : std::max(1, options_.iterations / 10);
  }
  Run run_of(Word bytes, Word iterations) {
    const Run run{bytes, iterations, first_, reinterpret_cast<Byte*>(memory_.get()),
                  reinterpret_cast<Word*>(times_.get())};
    first_ += iterations + kWarmUp;
    return run;
  }

 private:
  // The slowest rank's.
  void add(std::vector<double>& all, double mine, Word bytes) {
    double slowest = 0;
    for (const double one : context_.allgather(mine)) slowest = std::max(slowest, one);
    all.push_back(slowest * 1e-3 / iterations(bytes));
  }
  double print(const std::string& name, Word bytes, const std::string& by, std::vector<double>& all) {
    std::sort(all.begin(), all.end());
    const auto part = [&](double share) {
      return all[static_cast<std::size_t>(share * static_cast<double>(all.size() - 1))];
    };
    if (context_.is_root())
      std::printf("%-46s %8llu B %11s %10.2f us (%.2f-%.2f)\n", name.c_str(), bytes, by.c_str(), part(0.5), part(0.1),
                  part(0.9));
    std::fflush(stdout);
    return part(0.5);
  }

  const tasuki::Context& context_;
  const Options& options_;
  std::shared_ptr<std::byte> memory_;
  std::shared_ptr<std::byte> times_;
  tasuki::Stream stream_ = nullptr;
  Word first_ = 1;
};

}  // namespace
