// Path `mpi:staged` without a GPU: the test takes the GPU's part (it packs, asks, and waits for the words), so that
// what the host does is tested everywhere. And what `use_gpu` refuses. Needs a program of its own, for it replaces the
// process's GPUs.
#include <doctest/doctest.h>
#include <mpi.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engines/gpu/program.hpp"
#include "no_gpu.hpp"
#include "paths/path.hpp"
#include "session/gpus.hpp"
#include "session/runtime.hpp"
#include "tasuki/tasuki.hpp"
#include "transports/transport.hpp"

using namespace tasuki;

NoGpu& no_gpu() {
  static NoGpu gpu;
  return gpu;
}

namespace {

// Both ranks of a pair number what they share alike.
std::int64_t take(Runtime& runtime, int peer) {
  const std::int64_t number = runtime.channels().lowest(peer);
  runtime.channels().take(peer, number);
  return number;
}

const GpuSupport support{[](std::string&) -> Gpu* { return &no_gpu(); }};

// One operation's messages: from every rank to every other, `slices` of one link.
class Messages {
 public:
  Messages(const Context& context, std::int64_t out, std::int64_t in, int slices = 1)
      : ranks_(context.size()), me_(context.rank()), slices_(slices), out_(out), in_(in) {
    plan_.operation = "all to all";
    plan_.rank = me_;
    plan_.ranks = ranks_;
    plan_.paths = {"mpi:staged"};
    memory_.resize(static_cast<std::size_t>(ranks_ * slices * (out + in)));
    for (int peer = 0; peer < ranks_; ++peer) {
      for (const Verb verb : {Verb::send, Verb::recv}) {
        for (int slice = 0; slice < slices && peer != me_; ++slice) {
          Command c;
          c.verb = verb;
          c.peer = peer;
          c.offset = (verb == Verb::send ? at_out(peer, slice) : at_in(peer, slice)) - memory_.data();
          c.bytes = verb == Verb::send ? out : in;
          plan_.commands.push_back(c);
        }
      }
    }
    std::vector<CarriedCommand> carried;
    for (std::int32_t i = 0; i < std::ssize(plan_.commands); ++i) carried.push_back({i, 1, {memory_.data()}, {}});
    Runtime& runtime = runtime_of(context);
    std::vector<std::int64_t> numbers;
    for (int peer = 0; peer < ranks_; ++peer) numbers.push_back(peer == me_ ? -1 : take(runtime, peer));
    const std::vector<Located> nowhere;  // commands name no buffers here
    channels_ = runtime.transports->find(path_named("mpi:staged").transport)
                    .open({runtime, plan_, nowhere, carried,
                           [&](int peer) { return numbers[static_cast<std::size_t>(peer)]; }, false});
    REQUIRE(channels_.size() == carried.size());
    for (const Channel& channel : channels_) REQUIRE(channel.thread != nullptr);
  }

  void start(int epoch) {
    for (int peer = 0; peer < ranks_; ++peer) {
      for (int slice = 0; slice < slices_; ++slice) {
        std::fill_n(at_out(peer, slice), out_, letter(me_, peer, epoch, slice));
      }
    }
    // In the worst order that a thread may see: from behind, with pauses.
    for (std::size_t i = channels_.size(); i-- > 0;) {
      const std::atomic_ref<std::uint64_t> word(*channels_[i].thread->asked());
      word.store(static_cast<std::uint64_t>(epoch) * kSignal, std::memory_order_release);
      if (slices_ > 1 && epoch % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }

  // False if MPI has failed: then a word tells the GPU to give up.
  bool wait(const Context& context, int epoch) {
    const auto target = static_cast<std::uint64_t>(epoch) * kSignal;
    const std::atomic_ref<std::uint32_t> abort(*runtime_of(context).gpus->abort_word());
    for (const auto& channel : channels_) {
      const std::atomic_ref<std::uint64_t> word(*const_cast<std::uint64_t*>(channel.thread->ended()));
      while (word.load(std::memory_order_acquire) < target) {
        if (abort.load() != 0) return false;
        std::this_thread::yield();
      }
      CHECK(word.load() == target);
    }
    return true;
  }

  int wrong(int epoch) {
    int count = 0;
    for (int peer = 0; peer < ranks_; ++peer) {
      for (int slice = 0; slice < slices_ && peer != me_; ++slice) {
        for (std::int64_t i = 0; i < in_; ++i) {
          if (at_in(peer, slice)[i] != letter(peer, me_, epoch, slice)) ++count;
        }
      }
    }
    return count;
  }

  std::string standing(std::size_t message) const { return channels_[message].thread->standing(); }

  std::string failure() const {
    std::string text;
    for (const auto& channel : channels_) text += channel.thread->failure();
    return text;
  }

 private:
  static std::byte letter(int from, int to, int epoch, int slice) {
    return static_cast<std::byte>(from + 16 * to + 7 * epoch + 53 * slice);
  }
  std::byte* at_out(int peer, int slice) { return memory_.data() + (peer * slices_ + slice) * out_; }
  std::byte* at_in(int peer, int slice) {
    return memory_.data() + ranks_ * slices_ * out_ + (peer * slices_ + slice) * in_;
  }

  int ranks_;
  int me_;
  int slices_;
  std::int64_t out_;
  std::int64_t in_;
  Plan plan_;
  std::vector<std::byte> memory_;  // the staging; outlives the channels
  std::vector<Channel> channels_;
};

// As an operation does before it chooses paths.
void prepare(const Context& context, const std::string& wanted) {
  use_gpu(context);
  Transport& transport = runtime_of(context).transports->find(path_named("mpi:staged").transport);
  transport.prepare(runtime_of(context), wanted);
  REQUIRE(transport.why_not() == "");
}

}  // namespace

TEST_CASE("the progress thread carries staged messages, epoch for epoch, of several operations") {
  const Context ctx(MPI_COMM_WORLD);
  prepare(ctx, "auto");
  for (const std::int64_t bytes : {1, 40, 5000, 300000}) {
    Messages first(ctx, bytes, bytes);
    Messages second(ctx, 8, 8);
    for (int epoch = 1; epoch <= 20; ++epoch) {
      first.start(epoch);
      if (epoch % 2 == 1) second.start(epoch / 2 + 1);
      // Long enough for the thread to go to sleep, on some ranks.
      if (epoch % 5 == ctx.rank() % 5) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      REQUIRE(first.wait(ctx, epoch));
      CHECK(first.wrong(epoch) == 0);
      if (epoch % 2 == 0) continue;
      REQUIRE(second.wait(ctx, epoch / 2 + 1));
      CHECK(second.wrong(epoch / 2 + 1) == 0);
    }
    CHECK(first.failure().empty());
    CHECK(second.failure().empty());
  }
}

TEST_CASE("the slices of a link arrive in their places, in whatever order the progress thread sees them asked for") {
  const Context ctx(MPI_COMM_WORLD);
  prepare(ctx, "auto");
  for (const std::int64_t bytes : {8, 100000}) {
    Messages messages(ctx, bytes, bytes, 5);
    for (int epoch = 1; epoch <= 12; ++epoch) {
      messages.start(epoch);
      REQUIRE(messages.wait(ctx, epoch));
      CHECK(messages.wrong(epoch) == 0);
    }
    CHECK(messages.failure().empty());
  }
}

TEST_CASE("a staged message says who has asked for it, what MPI has been given, and that the progress thread goes on") {
  const Context ctx(MPI_COMM_WORLD);
  prepare(ctx, "auto");
  Messages messages(ctx, 300000, 300000);  // too much for MPI to send it before it is received
  const std::string alive = "; the progress thread goes on";
  const auto stands = [&](int asked, int given, int ended) {
    return "the GPU has asked for epoch " + std::to_string(asked) + " of the message, MPI has been given " +
           std::to_string(given) + " and has ended " + std::to_string(ended) + alive;
  };
  for (int epoch = 1; epoch <= 3; ++epoch) {
    CHECK(messages.standing(0) == stands(epoch - 1, epoch - 1, epoch - 1));
    ctx.barrier();
    if (ctx.is_root()) {
      messages.start(epoch);
      while (messages.standing(0) == stands(epoch, epoch - 1, epoch - 1)) std::this_thread::yield();
      CHECK(messages.standing(0) == stands(epoch, epoch, epoch - 1));
    }
    ctx.barrier();
    if (!ctx.is_root()) messages.start(epoch);
    REQUIRE(messages.wait(ctx, epoch));
    ctx.barrier();
  }
}

TEST_CASE("when MPI refuses a staged message on the progress thread, waits on the GPU are told to end, and why") {
  const Context ctx(MPI_COMM_WORLD);
  prepare(ctx, "mpi");
  // Sent short, as they should be, or longer than the receiver expects.
  Messages messages(ctx, ctx.is_root() ? 32 : 16, 16);
  messages.start(1);
  const bool arrived = messages.wait(ctx, 1);
  CHECK(arrived == ctx.is_root());
  const std::string text = messages.failure();
  INFO(text);
  if (ctx.is_root()) {
    CHECK(text.empty());
  } else {
    CHECK(text.find("rank " + std::to_string(ctx.rank()) +
                    ": all to all: epoch 1 did not end: #1 recv with rank 0: ") == 0);
    CHECK(text.find("MPI_Test failed: ") != std::string::npos);
  }
  ctx.barrier();
}

TEST_CASE("threads on one GPU are refused where it is first used, on every rank") {
  std::atomic<int> refused = 0;
  run_threads(3, [&](const Context& context) {
    try {
      use_gpu(context);
    } catch (const Error& error) {
      const std::string rank = "rank " + std::to_string(context.rank());
      if (std::string(error.what()).starts_with(rank + ": use_gpu: ranks 0 and 1 use the same GPU none, and are thr")) {
        ++refused;
      }
    }
  });
  CHECK(refused == 3);
  run_threads(1, [&](const Context& context) { CHECK(use_gpu(context) == 0); });
}
