// Links that go as several messages on two GPUs that the host imitates, with a thread that carries what is asked for:
// every byte arrives.
#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <string>

#include "../plan/sliced_links.hpp"
#include "gpu_view.hpp"
#include "plan/passes/pass.hpp"

using namespace tasuki;
using namespace gpu_view;
using namespace sliced_links;

namespace {

// As an operation does it: the messages have lanes of their own.
Plan ordered_plan(const Sliced& sliced, int rank, const std::array<std::vector<Move>, 2>& sent) {
  Plan plan = plan_of(sliced, rank, sent);
  run_passes(plan, {true});
  return plan;
}

// A rank whose lowered plan is carried out lane by lane, in turns that chance decides: a step when all it waits for is
// there. What it waits for is told the same way as on a GPU, but all blocks of a lane are one.
class ImitatedGpu {
 public:
  ImitatedGpu(const Plan& plan, std::mt19937& random) {
    program_.plan = plan;
    for (const Buffer& buffer : plan.buffers) {
      memory_.emplace_back(static_cast<std::size_t>(buffer.bytes) + 16);
      Located where;
      where.base = memory_.back().data();
      program_.where.push_back(where);
    }
    words_.resize(2 * plan.commands.size());
    for (std::size_t i = 0; i < plan.commands.size(); ++i) {
      const Verb verb = plan.commands[i].verb;
      const bool message = verb == Verb::send || verb == Verb::recv;
      program_.channels.emplace_back();
      if (message) program_.channels.back().thread = std::make_unique<WordChannel>(&words_[2 * i]);
    }
    ends_.resize(plan.commands.size());
    lowered_ = lower(program_, 1 + static_cast<int>(random() % 40), true);
  }

  std::byte* memory(const char* name, int rank) {
    const auto& buffers = program_.plan.buffers;
    for (std::size_t b = 0; b < buffers.size(); ++b) {
      if (buffers[b].name == name && buffers[b].rank == rank) return memory_[b].data();
    }
    return nullptr;
  }
  const Plan& plan() const { return program_.plan; }
  std::byte* at(std::int32_t buffer, std::int64_t offset) {
    return memory_[static_cast<std::size_t>(buffer)].data() + offset;
  }
  std::uint64_t& ended(std::size_t command) { return words_[2 * command]; }
  std::uint64_t asked(std::size_t command) const { return words_[2 * command + 1]; }

  void launch(int part) {
    for (const GpuTask& task : lowered_.tasks[part]) {
      const View view(lowered_, task);
      for (auto& lane : view.lanes()) {
        if (!lane.empty()) running_.push_back({view, lane, 0});
      }
    }
  }
  bool idle() const { return running_.empty(); }

  // Does a step of some lane, if one can be done.
  bool step(std::uint64_t epoch, std::mt19937& random) {
    for (std::size_t k = 0, first = random(); k < running_.size(); ++k) {
      Lane& lane = running_[(first + k) % running_.size()];
      const GpuStep& s = lane.steps[lane.at];
      const std::uint64_t target = epoch * kSignal;
      bool ready = s.verb != Verb::wait || *s.counter >= target;
      for (const auto dep : lane.view.deps(s)) ready = ready && ends_[static_cast<std::size_t>(dep)] >= target;
      if (!ready) continue;
      if (s.tiles > 0) follow(lane.view, s);
      if (s.verb == Verb::signal) *s.counter = target;
      if (s.awaited != 0) ends_[static_cast<std::size_t>(s.command)] = target;
      if (++lane.at == lane.steps.size()) running_.erase(running_.begin() + (&lane - running_.data()));
      return true;
    }
    return false;
  }

 private:
  struct Lane {
    View view;
    std::vector<GpuStep> steps;
    std::size_t at;
  };
  Program program_;
  std::deque<std::vector<std::byte>> memory_;
  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> ends_;
  GpuProgram lowered_;
  std::vector<Lane> running_;
};

// Carries one message that both sides have asked for, if there is one: the n-th send of one to the n-th receive of the
// other. What has been sent is overwritten, so that nobody can send it once more.
bool carry(std::array<ImitatedGpu*, 2> gpus, std::uint64_t epoch) {
  for (const std::size_t from : {std::size_t{0}, std::size_t{1}}) {
    ImitatedGpu& sender = *gpus[from];
    ImitatedGpu& receiver = *gpus[1 - from];
    std::size_t in = 0;
    for (std::size_t out = 0; out < sender.plan().commands.size(); ++out) {
      const Command& send = sender.plan().commands[out];
      if (send.verb != Verb::send) continue;
      while (receiver.plan().commands[in].verb != Verb::recv) ++in;
      const Command& recv = receiver.plan().commands[in];
      REQUIRE(send.bytes == recv.bytes);
      const std::uint64_t target = epoch * kSignal;
      if (sender.asked(out) == target && receiver.asked(in) == target && sender.ended(out) < target) {
        std::byte* source = sender.at(send.src, send.offset);
        std::memcpy(receiver.at(recv.dst, recv.offset), source, static_cast<std::size_t>(send.bytes));
        std::memset(source, 0xAA, static_cast<std::size_t>(send.bytes));
        sender.ended(out) = receiver.ended(in) = target;
        return true;
      }
      ++in;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("sliced links on GPUs that are imitated: every byte arrives in every epoch, in one kernel or in two") {
  std::mt19937 random(33);
  for (int round = 0; round < 24; ++round) {
    std::array<std::vector<Move>, 2> sent;
    // Sums are numbers: bytes at random would be some that are none.
    const bool adds = round % 3 == 0;
    for (auto& moves : sent) moves = random_moves(random, 8, adds ? DType::f64 : DType::none);
    const Sliced sliced(Home::pinned, round % 4 == 0 ? kRoom : 500);
    ImitatedGpu first(ordered_plan(sliced, 0, sent), random);
    ImitatedGpu second(ordered_plan(sliced, 1, sent), random);
    const std::array<ImitatedGpu*, 2> gpus{&first, &second};
    for (std::uint64_t epoch = 1; epoch <= 4; ++epoch) {
      std::array<std::vector<double>, 2> expected;
      for (const int rank : {0, 1}) {
        ImitatedGpu& gpu = *gpus[static_cast<std::size_t>(rank)];
        auto* from = reinterpret_cast<double*>(gpu.memory("from", rank));
        for (std::int64_t i = 0; i < kRoom / 8; ++i) from[i] = static_cast<double>(random() % 1000) + 0.5;
      }
      for (const int rank : {0, 1}) {
        const auto mine = static_cast<std::size_t>(rank);
        auto& image = expected[mine];
        image.resize(kRoom / 8);
        std::memcpy(image.data(), gpus[mine]->memory("to", rank), kRoom);
        for (const Move& move : sent[1 - mine]) {
          for (const StridedCopy& copy : move.copies) {
            (adds ? select_reduce(copy, DType::f64, ReduceOp::sum) : select_copy(copy))(
                copy, gpus[1 - mine]->memory("from", 1 - rank), reinterpret_cast<std::byte*>(image.data()));
          }
        }
      }
      for (const auto& parts : round % 2 == 0 ? std::vector{kBoth} : std::vector{kPartStart, kPartWait}) {
        for (ImitatedGpu* gpu : gpus) gpu->launch(parts);
        // What is started ends without anything that has arrived.
        for (bool busy = true; busy;) {
          busy = random() % 2 == 0 && parts != kPartStart && carry(gpus, epoch);
          for (ImitatedGpu* gpu : gpus) busy = gpu->step(epoch, random) || busy;
          if (!busy && parts != kPartStart) busy = carry(gpus, epoch);
        }
        CHECK(first.idle());
        CHECK(second.idle());
      }
      for (const int rank : {0, 1}) {
        const auto mine = static_cast<std::size_t>(rank);
        CHECK(std::memcmp(expected[mine].data(), gpus[mine]->memory("to", rank), kRoom) == 0);
      }
    }
  }
}
