// Lowering messages: they are packed, asked and waited for if others than the stream carry them, and unpacked, in parts
// of their own.
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
  explicit Told(std::uint64_t* words) : words_(words) {}
  const std::uint64_t* ended() const override { return words_; }
  std::uint64_t* asked() const override { return words_ == nullptr ? nullptr : words_ + 1; }

 private:
  std::uint64_t* words_;
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
        CHECK((step.counter != nullptr) == (step.per_epoch == 1));
      }
      verbs += "| ";
    }
  }
};

// What is sent may depend on what is received.
GpuProgram lowered(std::uint64_t* sent, std::uint64_t* received, bool forward = false) {
  Builder builder("test", 0, 2);
  builder.set_path("some messages");
  const int from = builder.buffer("from", 0, Role::input, 64);
  const int to = builder.buffer("to", 0, Role::output, 64);
  const int out = builder.buffer("out", 0, Role::scratch, 16, 1, Home::pinned);
  const int in = builder.buffer("in", 0, Role::scratch, 16, 1, Home::pinned);
  StridedCopy copy;
  copy.block = 16;
  builder.begin_lane();
  const int recv = builder.recv(1, in, 0, 16, 0, 0);
  const int unpacked = builder.copy(1, in, to, std::array{copy}, 0, 0);
  builder.begin_lane();
  const int packed = builder.copy(1, from, out, std::array{copy}, 0, 0);
  if (forward) builder.depend(packed, unpacked);
  const int send = builder.send(1, out, 0, 16, 0, 0);
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
  std::uint64_t words[4] = {};
  const GpuProgram program = lowered(&words[0], &words[2]);
  CHECK(program.arrivals);
  CHECK(!program.direct);
  CHECK(program.messages.size() == 2);
  CHECK(program.blocks[kPartArrive] == 1);
  CHECK(Part(program, kPartPack).verbs == "| copy | ");
  CHECK(Part(program, kPartUnpack).verbs == "| copy | ");
  const Part arrive(program, kPartArrive);
  CHECK(arrive.verbs == "signal wait signal wait | ");
  CHECK(arrive.counters == std::vector<const std::uint64_t*>{&words[3], &words[2], &words[1], &words[0]});
}

TEST_CASE("messages in the order of the stream are not waited for") {
  const GpuProgram program = lowered(nullptr, nullptr);
  CHECK(!program.arrivals);
  CHECK(program.messages.size() == 2);
  CHECK(Part(program, kPartArrive).verbs == "| ");
  CHECK(Part(program, kPartPack).verbs == "| copy | ");
  CHECK(program.in_line);
  CHECK(Part(program, kBefore).verbs == "| copy | ");
  CHECK(Part(program, kAfter).verbs == "| copy | ");
}

TEST_CASE("a message that needs another cannot stand in one line with it") {
  CHECK(!lowered(nullptr, nullptr, true).in_line);
}
