// Engine `stream`: for operations on GPU memory. An epoch is one kernel in the caller's stream, or two (start and
// wait), which run the lowered plan (program.hpp). Messages that are work of a stream lie between two kernels. If the
// caller may put other work between start and wait, the messages travel in a stream beside the caller's. The epoch's
// number is on the GPU, so that a captured graph can be replayed.
#include <algorithm>
#include <atomic>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "engines/engine.hpp"
#include "engines/gpu/clock.cuh"
#include "engines/gpu/host_streams.hpp"
#include "engines/gpu/launch.cuh"
#include "engines/gpu/program.hpp"
#include "engines/gpu/rows.cuh"
#include "engines/gpu/rows.hpp"
#include "memory/query.cuh"
#include "session/gpus.hpp"
#include "session/wait_until.hpp"
#include "tasuki/cuda.cuh"

namespace tasuki {
namespace {

constexpr int kFollowing = 4;  // blocks for each SM if they need not all be on the GPU at once

class StreamEngine final : public Engine {
 public:
  StreamEngine(Executor& executor, Runtime& runtime)
      : executor_(executor), runtime_(runtime), streams_(HostStreams::of(runtime.gpus->ordinal())) {
    // Blocks wait for other ranks, so all of them must be on the GPU at once. A block takes at most half of an SM, so
    // that each SM can have one. If messages travel in a stream and take SMs, half of the SMs are left to those who
    // carry them. If all commands only copy, blocks may follow each other.
    const int processors = runtime.gpus->processors();
    const auto& channels = executor.program().channels;
    const auto& commands = executor.plan().commands;
    const bool messages = std::any_of(channels.begin(), channels.end(), [](const Channel& c) {
      return c.stream != nullptr && c.stream->takes_processors();
    });
    const bool alone = std::all_of(commands.begin(), commands.end(),
                                   [](const auto& c) { return c.verb == Verb::copy && c.dep_count == 0; });
    const int most = messages ? std::max(1, processors / 2) : processors * (alone ? kFollowing : 1);
    const int wanted = executor.program().blocks;
    if (std::any_of(channels.begin(), channels.end(), [](const Channel& c) { return c.stream != nullptr; })) {
      const auto bytes = static_cast<std::int64_t>(commands.size() * sizeof(std::uint64_t));
      signal_words_ = {gpu()->allocate(bytes), [](std::byte* m) { gpu()->release(m); }};
    }
    const auto lowered = [&](int blocks) {
      return lower(executor.program(), wanted > 0 ? std::min(wanted, blocks) : blocks, runtime.gpus->atomics(),
                   static_cast<int>(kGpuWarps), {}, reinterpret_cast<std::uint64_t*>(signal_words_.get()), true);
    };
    program_ = lowered(most);
    if (program_.cooperative && most > processors) program_ = lowered(processors);
    for (const int parts : {kPartStart, kPartWait, kBoth}) {
      if (program_.messages.empty() && executor.recorder() == nullptr)
        in_rows_[parts] =
            rows_of(program_, program_.tasks[parts], wanted > 0 ? std::min(wanted, processors) : processors);
    }
    failure_ = {reinterpret_cast<PlanFailure*>(gpu()->allocate_mapped(sizeof(PlanFailure))),
                [](PlanFailure* p) { gpu()->release_mapped(reinterpret_cast<std::byte*>(p)); }};
    upload();
    load();
    for (cudaEvent_t* event : {&ended_, &begun_, &read_, &unpacked_}) {
      TASUKI_CUDA(cudaEventCreateWithFlags, event, cudaEventDisableTiming);
    }
    if (!program_.messages.empty() || executor.recorder() != nullptr) {
      int least = 0;
      int greatest = 0;
      TASUKI_CUDA(cudaDeviceGetStreamPriorityRange, &least, &greatest);
      TASUKI_CUDA(cudaStreamCreateWithPriority, &beside_, cudaStreamNonBlocking, greatest);
    }
    watched_ = runtime.gpus->watch([this] { complain(); });
  }

  ~StreamEngine() override {
    const bool failed = runtime_.failed();
    if (failed) runtime_.gpus->abort();  // the kernels may wait for ranks that are gone
    cudaDeviceSynchronize();             // whatever stream the last kernels are in, they use what is freed now
    try {
      if (!failed) complain();
    } catch (const Error& error) {
      runtime_.fail_untold(error.what());
    }
    try {
      if (launch_.events != nullptr) pass_on();
    } catch (const Error&) {  // the GPU has failed; another error says so
    }
    for (cudaEvent_t event : {ended_, begun_, read_, unpacked_}) cudaEventDestroy(event);
    if (beside_ != nullptr) cudaStreamDestroy(beside_);
    leave_stream();
  }

  void enqueue(Stream stream, StreamWork work) override {
    complain();
    if (stream == nullptr || stream != known_) {
      refuse_foreign(runtime_, who(), stream);
      known_ = stream;
    }
    if (!captured_ && gpu()->capturing(stream)) {
      captured_ = true;
      count_on_gpu();
    }
    if (starts_epoch(work)) {  // selects the copies that are current now, for the wait as well
      launch_.selection = 0;
      for (std::size_t p = 0; p < program_.pairs.size(); ++p) {
        if (*program_.pairs[p] != 0) launch_.selection |= std::uint64_t{1} << p;
      }
      ++epoch_;
    }
    if (!replayed_) launch_.epoch = epoch_;
    launch_.deadline = static_cast<std::uint64_t>(seconds_in_kernel(runtime_) * 1e9);
    // A copy engine's work in the default stream waits for the default stream of the destination's GPU, if this process
    // drives that one as well. The permission to copy is given there, so both would wait for each other.
    const bool default_stream = stream == nullptr || stream == cudaStreamLegacy;
    if (program_.in_line && work == StreamWork::run && !(default_stream && has_puts())) {
      launch(kBefore, stream);
      messages(stream);
      launch(kAfter, stream);
      return;
    }
    if (program_.wait_after && work == StreamWork::run) {
      go_on(StreamWork::start, stream);
      go_on(StreamWork::wait, stream);
    } else {
      go_on(work, stream);
    }
  }

  void admit() override {
    if (own_ == nullptr) own_ = streams_.take();
    if (own_ != nullptr) return;
    const std::string most = std::to_string(streams_.size());
    throw Error(who() + "start: " + most + " epochs that the host has started are active on this GPU, and CUDA runs " +
                most +
                " streams side by side; wait for one of them first, put the operations into a stream of yours, "
                "or set CUDA_DEVICE_MAX_CONNECTIONS (at most 32) before the program starts");
  }

  // Uses a stream that no other active epoch has, and begins after the work of the default stream. Operations may be
  // started in orders that differ between ranks, so none may have to wait for another one to end.
  void start() override {
    TASUKI_CUDA(cudaEventRecord, ended_, nullptr);
    TASUKI_CUDA(cudaStreamWaitEvent, own_, ended_, 0);
    enqueue(own_, StreamWork::run);
    TASUKI_CUDA(cudaEventRecord, ended_, own_);
  }

  bool test() override {
    if (!has_ended(cudaEventQuery(ended_), "cudaEventQuery")) return false;
    leave_stream();
    complain();
    runtime_.gpus->check();  // it may have followed an operation in a stream, whose result is half
    return true;
  }

  void finish() override {
    if (runtime_.failed()) return;
    check_cuda(cudaDeviceSynchronize(), "waiting for exchanges that are still running");
    complain();
  }

  void stop() override {
    runtime_.gpus->abort();
    cudaDeviceSynchronize();
    leave_stream();
  }

  bool captured() const override { return replayed_; }

  HostEpochs share_epochs(const KernelEpochs& kernels) override {
    if (captured_) {
      throw Error(who() +
                  "device: the operation is part of a graph already, which would not count the epochs of kernels; make "
                  "the handle before the capture");
    }
    count_on_gpu();
    if (launch_.ended != nullptr) {
      check_cuda(cudaDeviceSynchronize(), "waiting for kernels that have an older handle");
      complain();
      unsigned long long ended = 0;
      gpu()->copy(&ended, launch_.ended, sizeof ended);
      launch_.counted += ended / launch_.kernel_blocks;
      launch_.elsewhere += ended / launch_.kernel_blocks;
    }
    launch_.begun = kernels.begun;
    launch_.ended = kernels.ended;
    launch_.kernel_blocks = static_cast<unsigned long long>(kernels.blocks);
    return {launch_.counted, {counts_ + kBoth * most_blocks_, counts_ + kPartStart * most_blocks_}};
  }

  void tell() override {
    if (launch_.events == nullptr) return;
    check_cuda(cudaDeviceSynchronize(), "waiting for the kernels whose times are asked for");
    complain();
    pass_on();
  }

  // Does nothing. What has been enqueued ends by itself, at the latest at its deadline, and the destructor waits for
  // that. Ending it now would also end what other operations wait for.
  void abandon() override {}

 private:
  std::string who() const {
    const Plan& plan = executor_.plan();
    return "rank " + std::to_string(plan.rank) + ": " + plan.operation + ": ";
  }

  void leave_stream() {
    if (own_ != nullptr) streams_.give_back(own_);
    own_ = nullptr;
  }

  // From now on the host does not know how often it has run.
  void count_on_gpu() {
    if (replayed_) return;
    replayed_ = true;
    launch_.counted = epoch_;
    launch_.epoch = 0;
  }

  // Enqueues a start, a wait, or both of an operation whose messages, if any, travel in a stream beside the caller's.
  void go_on(StreamWork work, Stream stream) {
    const bool channels = !program_.messages.empty();
    if (channels && starts_epoch(work)) TASUKI_CUDA(cudaEventRecord, begun_, stream);
    if (program_.wait_after && work == StreamWork::wait) TASUKI_CUDA(cudaStreamWaitEvent, stream, unpacked_, 0);
    // The kernel comes before the channels' work, for which the host may have to wait: the peers' channels wait for
    // this kernel's signals.
    if (program_.direct) launch(parts_of(work), stream);
    if (channels && starts_epoch(work)) send_beside();
    if (channels && work == StreamWork::start) {
      TASUKI_CUDA(cudaStreamWaitEvent, stream, read_, 0);  // what was sent may change from here on
    }
    if (channels && ends_epoch(work)) TASUKI_CUDA(cudaStreamWaitEvent, stream, unpacked_, 0);
  }

  static int parts_of(StreamWork work) {
    return (starts_epoch(work) ? kPartStart : 0) | (ends_epoch(work) ? kPartWait : 0);
  }

  void launch(int parts, Stream stream) {
    const auto& tasks = program_.tasks[parts];
    const std::int32_t twin = twin_of(parts);
    launch_.counts = counts_ + parts * most_blocks_;
    launch_.twin = twin == 0 ? nullptr : counts_ + twin * most_blocks_;
    if (parts <= kBoth && in_rows_[parts]) {
      launch_rows(*in_rows_[parts], rows_[parts], stream);
      return;
    }
    const auto& rounds = program_.rounds[parts];
    std::copy(rounds.begin(), rounds.end(), launch_.round);
    launch_.rounds = static_cast<std::int32_t>(rounds.size());
    std::copy(tasks.begin(), tasks.end(), launch_.tasks);
    launch_early("launching an exchange", stream, static_cast<unsigned>(program_.blocks[parts]), kGpuThreads,
                 kernel_for(parts), launch_);
  }

  // CUDA loads a kernel when it is asked for first, and then waits for kernels that run: for ever, if such a kernel of
  // the user waits for what this one brings.
  //
  // An SM divides its memory into cache and shared memory, and changes that only when nothing runs on it. CUDA chooses
  // the division for a kernel by what its blocks need, which for rows is little. Beside rows with CUDA's choice the 132
  // blocks of another kernel were seen on 9 SMs. With the largest share of shared memory they run on 132.
  void load() const {
    cudaFuncAttributes ignored{};
    for (int parts = 0; parts < kParts; ++parts) {
      if (parts <= kBoth && in_rows_[parts]) {
        const auto kernel = row_kernel(*in_rows_[parts]);
        TASUKI_CUDA(cudaFuncGetAttributes, &ignored, kernel);
        TASUKI_CUDA(cudaFuncSetAttribute, kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                    cudaSharedmemCarveoutMaxShared);
      }
      if (program_.tasks[parts].empty()) continue;
      TASUKI_CUDA(cudaFuncGetAttributes, &ignored, kernel_for(parts));
    }
  }

  void launch_rows(const RowProgram& program, RowLaunch& launch, Stream stream) {
    static_cast<Counting&>(launch) = launch_;
    launch_early("launching an exchange", stream, static_cast<unsigned>(program.blocks()), kGpuThreads,
                 row_kernel(program), launch);
  }

  using Kernel = void (*)(Launch);

  Kernel kernel_for(int parts) const {
    const bool one = program_.rounds[parts].size() == 1;
    return program_.reduces ? kernel_of<true>(one) : kernel_of<false>(one);
  }

  // For one round or more. What is traced takes longer anyway: the kernel for several rounds does for one, too.
  template <bool kReduces>
  Kernel kernel_of(bool one) const {
    if (launch_.events != nullptr) return run_plan<true, kReduces, true>;
    return one ? run_plan<false, kReduces, false> : run_plan<true, kReduces, false>;
  }

  // The parts that may be launched instead of these: every epoch launches these parts or their twin.
  std::int32_t twin_of(int parts) const {
    const bool in_line = program_.in_line;
    switch (parts) {
      case kBoth:
        return kPartWait;
      case kPartStart:
        return in_line ? kBefore : kBoth;
      case kPartWait:
        return in_line ? kAfter : kBoth;
      case kPartPack:
        return in_line ? kBefore : 0;
      case kPartUnpack:
        return in_line ? kAfter : 0;
      case kBefore:
        return kPartPack;
      case kAfter:
        return kPartUnpack;
      default:
        return 0;
    }
  }

  // Whether a copy engine is among the channels.
  bool has_puts() const {
    const auto& commands = executor_.plan().commands;
    return std::any_of(program_.messages.begin(), program_.messages.end(), [&](std::int32_t command) {
      return commands[static_cast<std::size_t>(command)].verb == Verb::put;
    });
  }

  // Messages of a stream travel in a stream of their own, beside the kernel that serves the GPUs in reach.
  void send_beside() {
    TASUKI_CUDA(cudaStreamWaitEvent, beside_, begun_, 0);
    launch(kPartPack, beside_);
    const bool in_place = has_puts();
    if (!in_place) TASUKI_CUDA(cudaEventRecord, read_, beside_);
    messages(beside_);
    if (in_place) TASUKI_CUDA(cudaEventRecord, read_, beside_);
    launch(kPartUnpack, beside_);
    TASUKI_CUDA(cudaEventRecord, unpacked_, beside_);
  }

  // Signals that a put has ended, before the next one begins.
  void signal_after_put(std::int32_t command, Stream stream) {
    for (const StreamSignal& signal : program_.stream_signals) {
      if (signal.message != command) continue;
      TASUKI_CUDA(cudaMemcpyAsync, signal.counter, signal.word, sizeof *signal.word, cudaMemcpyDefault, stream);
      if (signal.end < 0) continue;
      TASUKI_CUDA(cudaMemcpyAsync, launch_.ends + signal.end, launch_.ends + signal.prepared, sizeof *launch_.ends,
                  cudaMemcpyDefault, stream);
    }
  }

  // One group for each path, in an order that is the same on all ranks.
  void messages(Stream stream) {
    const Plan& plan = executor_.plan();
    for (std::size_t path = 0; path < plan.paths.size(); ++path) {
      StreamChannel* first = nullptr;
      for (const auto command : program_.messages) {
        if (plan.commands[static_cast<std::size_t>(command)].path != static_cast<int>(path)) continue;
        StreamChannel& channel = *executor_.program().channels[static_cast<std::size_t>(command)].stream;
        if (first == nullptr) {
          first = &channel;
          first->begin_group();
        }
        channel.enqueue(stream);
        signal_after_put(command, stream);
      }
      if (first != nullptr) first->end_group();
    }
  }

  void upload() {
    const auto round_up = [](std::size_t bytes) { return static_cast<std::int64_t>((bytes + 127) / 128 * 128); };
    const std::int64_t program = round_up(program_.bytes.size());
    const std::size_t steps = executor_.plan().commands.size() + program_.more_ends.size();
    const std::int64_t ends = round_up(steps * sizeof(std::uint64_t));
    const std::int64_t state = round_up(sizeof(State));
    most_blocks_ = *std::max_element(std::begin(program_.blocks), std::end(program_.blocks));
    for (const auto& rows : in_rows_)
      if (rows) most_blocks_ = std::max(most_blocks_, rows->blocks());
    const std::int64_t counts = round_up(sizeof(std::uint64_t) * kParts * static_cast<std::size_t>(most_blocks_));
    const bool traced = executor_.recorder() != nullptr;
    const std::int64_t events = traced ? static_cast<std::int64_t>(kGpuEvents * sizeof(GpuEvent)) : 0;
    memory_ = {gpu()->allocate(program + ends + state + counts + events), [](std::byte* m) { gpu()->release(m); }};
    gpu()->copy(memory_.get(), program_.bytes.data(), static_cast<std::int64_t>(program_.bytes.size()));
    launch_.bytes = memory_.get();
    launch_.ends = reinterpret_cast<std::uint64_t*>(memory_.get() + program);
    state_ = reinterpret_cast<State*>(memory_.get() + program + ends);
    launch_.failed = &state_->failed;
    launch_.recorded = &state_->recorded;
    counts_ = reinterpret_cast<unsigned long long*>(memory_.get() + program + ends + state);
    if (traced) launch_.events = reinterpret_cast<GpuEvent*>(memory_.get() + program + ends + state + counts);
    launch_.failure = failure_.get();
    launch_.stop = {runtime_.gpus->abort_word(), runtime_.gpus->looked_word()};
    for (std::size_t parts = 0; parts < std::size(in_rows_); ++parts) {
      if (!in_rows_[parts]) continue;
      const RowProgram& rows = *in_rows_[parts];
      rows_[parts].rows = upload(rows.rows);
      rows_[parts].places = upload(rows.places);
      rows_[parts].operands = upload(rows.operands);
      rows_[parts].signals = upload(rows.signals);
      rows_[parts].given = upload(rows.ends);
      rows_[parts].given_count = static_cast<std::uint32_t>(rows.ends.size());
      rows_[parts].type = rows.type;
      rows_[parts].op = rows.op;
    }
  }

  // A copy on the GPU.
  template <class T>
  const T* upload(const std::vector<T>& all) {
    const auto bytes = static_cast<std::int64_t>(all.size() * sizeof(T));
    if (bytes == 0) return nullptr;
    tables_.emplace_back(gpu()->allocate(bytes), [](std::byte* m) { gpu()->release(m); });
    gpu()->copy(tables_.back().get(), all.data(), bytes);
    return reinterpret_cast<const T*>(tables_.back().get());
  }

  // Hands the events that kernels have recorded since the last time to the recorder, once the kernels have ended.
  void pass_on() {
    State state{};
    gpu()->copy(&state, state_, sizeof state);
    const std::uint64_t kept = std::min<std::uint64_t>(state.recorded, kGpuEvents);
    if (state.recorded == reported_) return;
    std::vector<GpuEvent> events(kept);
    gpu()->copy(events.data(), launch_.events, static_cast<std::int64_t>(kept * sizeof(GpuEvent)));
    const std::int64_t offset = gpu_clock_offset(beside_);
    for (std::uint64_t i = std::max<std::uint64_t>(reported_, state.recorded - kept); i < state.recorded; ++i) {
      const GpuEvent& e = events[i % kGpuEvents];
      executor_.recorder()->record_command(e.epoch, static_cast<std::int64_t>(e.begin) + offset,
                                           static_cast<std::int64_t>(e.end) + offset, e.command);
    }
    reported_ = state.recorded;
  }

  // Throws if a kernel has given up.
  void complain() {
    if (std::atomic_ref<std::uint32_t>(failure_->set).load() == 0) return;
    std::string text;
    for (const auto& channel : executor_.program().channels) {
      if (text.empty() && channel.thread != nullptr) text = channel.thread->failure();
    }
    if (text.empty() && failure_->why == Why::active) {
      text = who() + "start of epoch " + std::to_string(failure_->epoch) +
             " while an epoch that a kernel has started is active; wait for it in the kernel";
    }
    if (text.empty()) {
      const auto own = static_cast<std::int32_t>(executor_.plan().commands.size());
      const std::int32_t command = failure_->command < own
                                       ? failure_->command
                                       : program_.more_ends[static_cast<std::size_t>(failure_->command - own)];
      text = describe_failure(executor_.plan(), runtime_, command, failure_->epoch, failure_->value, failure_->target);
      if (const auto& channel = executor_.program().channels[static_cast<std::size_t>(command)];
          channel.thread != nullptr)
        text += "; " + channel.thread->standing();
      if (runtime_.gpus->watches() > 1 && !runtime_.starts)
        text +=
            "; operations that share a stream must be started in the same order on all ranks (TASUKI_CHECK=1 says "
            "those that were not)";
    }
    const ErrorKind kind = kind_of_ended_wait(runtime_);
    runtime_.fail(text, kind);
    throw Error(kind, text);
  }

  Executor& executor_;
  Runtime& runtime_;
  HostStreams& streams_;
  GpuProgram program_;
  std::shared_ptr<PlanFailure> failure_;
  std::shared_ptr<std::byte> signal_words_;  // on the GPU: see `lower`
  std::shared_ptr<std::byte> memory_;
  std::optional<RowProgram> in_rows_[kBoth + 1];  // by parts: those that are small enough
  std::vector<std::shared_ptr<std::byte>> tables_;
  Launch launch_{};
  RowLaunch rows_[kBoth + 1] = {};
  State* state_ = nullptr;                // on the GPU
  unsigned long long* counts_ = nullptr;  // on the GPU: by parts, then by block
  int most_blocks_ = 0;                   // of any parts
  std::uint64_t epoch_ = 0;               // as far as the host knows
  std::uint64_t reported_ = 0;            // events that the recorder has
  bool replayed_ = false;  // launches count themselves: part of a graph, or kernels of the user run epochs, too
  bool captured_ = false;  // part of a graph
  cudaEvent_t ended_ = nullptr;
  cudaEvent_t begun_ = nullptr;
  cudaEvent_t read_ = nullptr;
  cudaEvent_t unpacked_ = nullptr;
  cudaStream_t own_ = nullptr;     // of the active epoch, if the host has started it
  Stream known_ = nullptr;         // the stream of the last call, which belongs to this rank's GPU
  cudaStream_t beside_ = nullptr;  // for messages, and for looking at the clock
  std::shared_ptr<void> watched_;
};

const EngineRegistration registration{"stream", false,
                                      [](Executor& executor, Runtime& runtime) -> std::unique_ptr<Engine> {
                                        return std::make_unique<StreamEngine>(executor, runtime);
                                      },
                                      Memory::device};

}  // namespace
}  // namespace tasuki
