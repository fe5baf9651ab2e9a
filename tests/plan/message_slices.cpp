// Links that go as several messages: the slices hold every byte once and in order; the plans verify, in chunk loops
// too; and lowered, on two GPUs that the host imitates, with a thread that carries what is asked for, every byte
// arrives.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <random>

#include "gpu_view.hpp"
#include "paths/shapes.hpp"

using namespace tasuki;
using namespace gpu_view;

namespace {

class Sliced final : public MessagePath {
 public:
  Sliced(Home home, std::int64_t most) : MessagePath(home), most_(most) {}
  std::string name() const override { return "sliced"; }
  bool joins(const Topology&, int, int) const override { return true; }
  Offer offer(const Move&, const Place&, const Place&) const override { return Offer::yes(0, 0); }
  std::int64_t slice_of(std::int64_t) const override { return most_; }

 private:
  std::int64_t most_;
};

StridedCopy random_copy(std::mt19937& random, std::int64_t element) {
  StridedCopy copy;
  copy.block = element * static_cast<std::int64_t>(1 + random() % (random() % 4 == 0 ? 300 : 9));
  copy.ndims = static_cast<std::int32_t>(copy.block > 9 * element ? random() % 2 : random() % 4);
  std::int64_t src = copy.block;
  std::int64_t dst = copy.block;
  for (int d = copy.ndims - 1; d >= 0; --d) {
    const auto count = static_cast<std::int64_t>(1 + random() % 8);
    auto& dim = copy.dims[static_cast<std::size_t>(d)];
    dim = {count, src + element * static_cast<std::int64_t>(random() % 3), dst};
    src = dim.src_stride * count;
    dst = dim.dst_stride * count;
  }
  return copy;
}

// Moves one behind the other: from buffer to buffer, each with copies of its own.
std::vector<Move> random_moves(std::mt19937& random, std::int64_t element, DType add) {
  std::vector<Move> moves(1 + random() % 4);
  std::int64_t src = 0;
  std::int64_t dst = 0;
  for (Move& move : moves) {
    move.add = add;
    for (auto k = random() % 3; k < 3; ++k) {
      StridedCopy copy = random_copy(random, element);
      copy.src_offset = src;
      copy.dst_offset = dst;
      src += copy.block;
      dst += copy.bytes();
      for (int d = 0; d < copy.ndims; ++d) {
        const auto& dim = copy.dims[static_cast<std::size_t>(d)];
        src += (dim.count - 1) * dim.src_stride;
      }
      move.copies.push_back(copy);
    }
  }
  return moves;
}

Link link_of(const std::vector<Move>& moves, int peer, int src, int dst) {
  Link link;
  link.path = "sliced";
  link.peer = peer;
  for (const Move& move : moves) {
    link.moves.push_back(&move);
    link.src.push_back(src);
    link.dst.push_back(dst);
  }
  link.capacity = link.bytes();
  return link;
}

constexpr std::int64_t kRoom = 2 << 20;

std::vector<std::byte> noise(std::mt19937& random) {
  std::vector<std::byte> bytes(kRoom);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

}  // namespace

TEST_CASE("slices hold every byte of the moves once, in order, and are no larger than asked") {
  std::mt19937 random(31);
  const auto from = noise(random);
  for (int round = 0; round < 300; ++round) {
    const auto moves = random_moves(random, 1, DType::none);
    const Link link = link_of(moves, 1, 0, 1);
    const auto most = static_cast<std::int64_t>(1 + random() % (round % 2 == 0 ? 400 : 40000));
    std::vector<std::byte> packed(static_cast<std::size_t>(link.bytes()));
    std::int64_t at = 0;
    for (const Move& move : moves) {
      for (const auto& copy : pack_side(move.copies, at)) select_copy(copy)(copy, from.data(), packed.data());
      at += move.bytes();
    }
    std::vector<std::byte> got(packed.size());
    std::int64_t begin = 0;
    for (const Slice& slice : slices(link, most)) {
      CHECK(slice.begin == begin);
      CHECK(slice.bytes > 0);
      CHECK(slice.bytes <= std::max<std::int64_t>(most, 64));
      for (const auto& part : slice.parts) {
        CHECK(part.begin == begin);
        for (const auto& copy : pack_side(part.copies, part.begin)) {
          select_copy(copy)(copy, from.data(), got.data());
          begin += copy.bytes();
        }
      }
      CHECK(slice.begin + slice.bytes == begin);
    }
    CHECK(begin == link.bytes());
    CHECK(std::equal(got.begin(), got.end(), packed.begin()));
    CHECK(slices(link, link.bytes()).size() == 1);
  }
}

TEST_CASE("large pieces are cut evenly: a face of equal rows goes in sixteen equal slices") {
  Move face;
  StridedCopy copy;
  copy.block = 8;
  copy.ndims = 2;
  copy.dims[0] = {1024, 1 << 20, 8192};
  copy.dims[1] = {1024, 1024, 8};
  face.copies = {copy};
  const auto all = slices(link_of({face}, 1, 0, 1), copy.bytes() / 16);
  CHECK(all.size() == 16);
  for (const Slice& slice : all) CHECK(slice.bytes == copy.bytes() / 16);
}

TEST_CASE("a link larger than MPI's largest message goes in several, from where it lies or packed") {
  Move move;
  StridedCopy copy;
  copy.block = std::int64_t{5} << 30;
  move.copies = {copy};
  constexpr std::int64_t kMost = 0x7fffffff;
  const auto plain = slices(link_of({move}, 1, 0, 1), kMost);
  CHECK(plain.size() == 3);
  for (const Slice& slice : plain) CHECK(slice.bytes <= kMost);
}

namespace {

// One rank's plan: what comes from the other, then what goes there; or in `rounds` of a chunk loop.
Plan plan_of(const Sliced& path, int rank, const std::array<std::vector<Move>, 2>& sent, std::int64_t rounds = 1) {
  const int peer = 1 - rank;
  const auto mine = static_cast<std::size_t>(rank);
  const auto theirs = static_cast<std::size_t>(peer);
  Builder builder("slices", rank, 2);
  builder.set_path(path.name());
  const std::array<int, 2> from{builder.buffer("from", 0, Role::input, kRoom),
                                builder.buffer("from", 1, Role::input, kRoom)};
  const std::array<int, 2> to{builder.buffer("to", 0, Role::inout, kRoom), builder.buffer("to", 1, Role::inout, kRoom)};
  Link in = link_of(sent[theirs], peer, from[theirs], to[mine]);
  Link out = link_of(sent[mine], peer, from[mine], to[theirs]);
  for (Link* link : {&in, &out}) {
    link->capacity *= rounds;
    builder.begin_lane();
    if (rounds > 1) builder.begin_loop(rounds, kRoom / rounds);
    link == &in ? path.recv(builder, in) : path.send(builder, out);
    if (rounds > 1) builder.end_loop();
  }
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (Move move : sent[theirs]) {
      for (StridedCopy& copy : move.copies) {
        copy.src_offset += round * kRoom / rounds;
        copy.dst_offset += round * kRoom / rounds;
      }
      builder.expect(from[theirs], to[mine], move.copies, move.add);
    }
  }
  return builder.finish().plan;
}

}  // namespace

TEST_CASE("plans of sliced links verify, packed or as they lie, also in chunk loops") {
  std::mt19937 random(32);
  for (int round = 0; round < 12; ++round) {
    // The first as they lie: both sides in one run.
    std::array<std::vector<Move>, 2> sent;
    for (auto& moves : sent) {
      moves = random_moves(random, 8, round % 3 == 0 ? DType::f64 : DType::none);
      if (round > 3) continue;
      moves.resize(1);
      StridedCopy whole;
      whole.block = 5000 + 8 * round;
      moves[0].copies = {whole};
    }
    const Sliced path(Home::own, 1000);
    const std::int64_t rounds = round % 3 == 1 ? 2 : 1;  // what is added has no loops
    const std::vector<Plan> plans{plan_of(path, 0, sent, rounds), plan_of(path, 1, sent, rounds)};
    const auto sends = std::count_if(plans[0].commands.begin(), plans[0].commands.end(),
                                     [](const Command& c) { return c.verb == Verb::send; });
    std::int64_t bytes = 0;
    for (const Move& move : sent[0]) bytes += move.bytes();
    CHECK(sends >= bytes / 1000);
    const VerifyReport report = verify(plans);
    INFO(report.text());
    CHECK(report.ok());
  }
}

namespace {

class Told final : public Channel {
 public:
  explicit Told(std::uint64_t* words) : words_(words) {}
  const std::uint64_t* ended() const override { return words_; }
  std::uint64_t* asked() const override { return words_ + 1; }

 private:
  std::uint64_t* words_;
};

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
      program_.channels.push_back(message ? std::make_unique<Told>(&words_[2 * i]) : nullptr);
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
    const Sliced path(Home::pinned, round % 4 == 0 ? kRoom : 500);
    ImitatedGpu first(plan_of(path, 0, sent), random);
    ImitatedGpu second(plan_of(path, 1, sent), random);
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
            (adds ? select_add(copy, DType::f64) : select_copy(copy))(copy, gpus[1 - mine]->memory("from", 1 - rank),
                                                                      reinterpret_cast<std::byte*>(image.data()));
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
