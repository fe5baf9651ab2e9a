// The order in which the executor does what is ready.
#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engines/host/executor.hpp"
#include "plan/builder.hpp"

using namespace tasuki;

namespace {

// Notes its start, and ends when it is tested after `tests` other tests.
class Noted final : public HostChannel {
 public:
  Noted(std::vector<std::string>& order, std::string name, int tests)
      : order_(order), name_(std::move(name)), tests_(tests) {}
  void start(std::int64_t /*round*/, int /*copy*/) override {
    order_.push_back(name_);
    left_ = tests_;
  }
  bool test() override { return left_-- == 0; }

 private:
  std::vector<std::string>& order_;
  std::string name_;
  int tests_;
  int left_ = 0;
};

// Messages of these bytes in one lane each, receives first; a send that waits for the first receive comes last.
std::vector<std::string> order_of(std::int64_t bytes, int epochs) {
  Builder builder("order", 0, 3);
  builder.set_path("mpi");
  const int data = builder.buffer("data", 0, Role::inout, 4 * bytes);
  std::vector<std::string> names;
  std::int64_t at = 0;
  int first = -1;
  for (const char* name : {"receive 1", "receive 2", "send 1", "send 2"}) {
    builder.begin_lane();
    const int peer = name[std::string(name).size() - 1] - '0';
    const int command = std::string(name).starts_with("send") ? builder.send(peer, data, at, bytes, 0, 0)
                                                              : builder.recv(peer, data, at, bytes, 0, 0);
    if (first < 0) first = command;
    names.emplace_back(name);
    at += bytes;
  }
  builder.begin_lane();
  builder.depend(builder.send(2, data, 0, bytes, 1, 0), first);
  names.emplace_back("sent on");
  Program program;
  program.plan = builder.finish();
  const Plan& plan = program.plan;
  std::vector<std::byte> memory(static_cast<std::size_t>(4 * bytes));
  std::vector<std::string> order;
  program.where.resize(plan.buffers.size(), {memory.data(), 0, 1, false, false, nullptr});
  program.first_function.resize(plan.commands.size());
  for (std::size_t i = 0; i < plan.commands.size(); ++i) {
    program.channels.emplace_back();
    program.channels.back().host = std::make_unique<Noted>(order, names[i], i == 1 ? 3 : 1);
  }
  Executor executor(std::move(program));
  for (int epoch = 0; epoch < epochs; ++epoch) {
    executor.begin();
    while (!executor.progress()) {
    }
  }
  return order;
}

}  // namespace

TEST_CASE("long sends start before receives are posted, short ones after; what waits starts when it can") {
  using Order = std::vector<std::string>;
  const Order sends_first{"send 1", "send 2", "receive 1", "receive 2", "sent on"};
  const Order receives_first{"receive 1", "receive 2", "send 1", "send 2", "sent on"};
  CHECK(order_of(16 << 10, 1) == receives_first);
  CHECK(order_of((16 << 10) + 8, 1) == sends_first);
  Order twice = sends_first;
  twice.insert(twice.end(), sends_first.begin(), sends_first.end());
  CHECK(order_of(1 << 20, 2) == twice);
}

TEST_CASE("all slices are handed over before the rank copies what it keeps") {
  constexpr std::int64_t bytes = 64;
  Builder builder("order", 0, 2);
  StridedCopy copy;
  copy.block = bytes;
  const std::array block{copy};
  const int from = builder.buffer("from", 0, Role::input, bytes);
  const int to = builder.buffer("to", 0, Role::output, bytes);
  const int ring = builder.scratch(Purpose::ring, 0, 1, 0, bytes, 1, Home::shared);
  const int filled = builder.counter(Purpose::filled, 0, 1, 0, Home::shared);
  builder.begin_lane();
  builder.set_path("shared:eager");
  for (int slice = 0; slice < 2; ++slice) {
    builder.put(1, from, ring, block, 0, 0);
    builder.signal(1, filled);
  }
  builder.begin_lane();
  builder.set_path("self");
  builder.copy(0, from, to, block, 0, 0);
  Program program;
  program.plan = builder.finish();
  const Plan& plan = program.plan;
  std::vector<std::vector<double>> memory;
  for (const Buffer& b : plan.buffers) {
    auto& bytes_of = memory.emplace_back(static_cast<std::size_t>(b.bytes) / sizeof(double));
    program.where.push_back({reinterpret_cast<std::byte*>(bytes_of.data()), 0, 1, false, false, nullptr});
  }
  for (const Command& c : plan.commands) {
    program.channels.emplace_back();
    program.first_function.push_back(static_cast<std::int32_t>(program.functions.size()));
    if (c.copy_count > 0) program.functions.push_back(select_copy(plan.copies[static_cast<std::size_t>(c.first_copy)]));
  }
  double& kept = memory[static_cast<std::size_t>(to)].front();
  double& sent = memory[static_cast<std::size_t>(from)].front();
  Executor executor(std::move(program));
  for (int epoch = 1; epoch <= 3; ++epoch) {
    sent = epoch;
    executor.begin();
    CHECK(!executor.progress());
    CHECK(kept != epoch);
    while (!executor.progress()) {
    }
    CHECK(kept == epoch);
  }
}
