// Lowering messages that others than the stream carry: they are packed, waited for and unpacked in parts of their own.
#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <memory>

#include "engines/gpu_program.hpp"
#include "plan/builder.hpp"

using namespace tasuki;

namespace {

class Told final : public Channel {
 public:
  explicit Told(const std::uint64_t* word) : word_(word) {}
  const std::uint64_t* ended() const override { return word_; }

 private:
  const std::uint64_t* word_;
};

// The verbs of all steps of a part, and the counters that they look at.
struct Part {
  std::string verbs;
  std::vector<const std::uint64_t*> counters;

  Part(const GpuProgram& program, int part) {
    for (const GpuTask& task : program.tasks[part]) {
      const std::byte* at = program.bytes.data() + task.offset;
      GpuTaskHeader header;
      std::memcpy(&header, at, sizeof header);
      const int count = (header.copies - header.steps) / static_cast<int>(sizeof(GpuStep));
      for (int s = 0; s < count; ++s) {
        GpuStep step;
        std::memcpy(&step, at + header.steps + s * static_cast<int>(sizeof step), sizeof step);
        verbs += std::string(to_string(step.verb)) + ' ';
        if (step.counter != nullptr) counters.push_back(step.counter);
        CHECK((step.verb == Verb::wait) == (step.per_epoch == 1));
      }
      verbs += "| ";
    }
  }
};

GpuProgram lowered(const std::uint64_t* sent, const std::uint64_t* received) {
  Builder builder("test", 0, 2);
  builder.set_path("some messages");
  const int from = builder.buffer("from", 0, Role::input, 64);
  const int to = builder.buffer("to", 0, Role::output, 64);
  const int out = builder.buffer("out", 0, Role::scratch, 16, 1, Home::pinned);
  const int in = builder.buffer("in", 0, Role::scratch, 16, 1, Home::pinned);
  StridedCopy copy;
  copy.block = 16;
  builder.begin_lane();
  builder.copy(1, from, out, std::array{copy}, 0, 0);
  const int send = builder.send(1, out, 0, 16, 0, 0);
  builder.begin_lane();
  const int recv = builder.recv(1, in, 0, 16, 0, 0);
  builder.copy(1, in, to, std::array{copy}, 0, 0);
  Program program;
  program.plan = builder.finish().plan;
  program.channels.resize(program.plan.commands.size());
  program.channels[static_cast<std::size_t>(send)] = std::make_unique<Told>(sent);
  program.channels[static_cast<std::size_t>(recv)] = std::make_unique<Told>(received);
  alignas(16) static std::byte memory[64];
  Located where;
  where.base = memory;
  program.where.assign(program.plan.buffers.size(), where);
  return lower(program, 8, true);
}

}  // namespace

TEST_CASE("messages that a word tells of are waited for between packing and unpacking, each by a thread") {
  std::uint64_t words[2] = {};
  const GpuProgram program = lowered(&words[0], &words[1]);
  CHECK(program.arrivals);
  CHECK(!program.direct);
  CHECK(program.messages.size() == 2);
  CHECK(program.blocks[kPartArrive] == 1);
  CHECK(Part(program, kPartPack).verbs == "| copy | ");
  CHECK(Part(program, kPartUnpack).verbs == "| copy | ");
  const Part arrive(program, kPartArrive);
  CHECK(arrive.verbs == "wait wait | ");
  CHECK(arrive.counters == std::vector<const std::uint64_t*>{&words[0], &words[1]});
}

TEST_CASE("messages in the order of the stream are not waited for") {
  const GpuProgram program = lowered(nullptr, nullptr);
  CHECK(!program.arrivals);
  CHECK(program.messages.size() == 2);
  CHECK(Part(program, kPartArrive).verbs == "| ");
  CHECK(Part(program, kPartPack).verbs == "| copy | ");
}
