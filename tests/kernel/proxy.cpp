// The ring to the host: many blocks ask at once, more than the ring and the answers have room for; answers come in
// another order than requests; who gets none for long keeps nobody else from getting his.
#include <algorithm>
#include <atomic>
#include <random>

#include "kernel_test.hpp"
#include "kernels/ring.hpp"
#include "memory/gpu.hpp"
#include "session/worker.hpp"

using namespace kernel_tests;
namespace device = tasuki::device;

namespace {

constexpr Word kSlow = 77;  // a request that is answered when nothing else has been asked for long

// As the kernel expects it.
Word answer_to(const device::detail::HostRequest& request) {
  return 31 * request.what + 7 * request.a + request.b;
}

/// Answers in an order that chance decides.
class Server final : public tasuki::Worker::Task {
 public:
  Server(tasuki::HostRing& ring, Word quick) : ring_(ring), quick_(quick) { tasuki::Worker::instance().add(this); }
  ~Server() override { tasuki::Worker::instance().remove(this); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  bool serve() override {
    tasuki::HostRing::Asked asked;
    while (ring_.next(asked)) (asked.request.what == kSlow ? slow_ : waiting_).push_back(asked);
    if (!waiting_.empty() && random_() % 3 != 0) {
      std::swap(waiting_[random_() % waiting_.size()], waiting_.back());
      ring_.answer(waiting_.back(), answer_to(waiting_.back().request));
      waiting_.pop_back();
      ++answered_;
    }
    while (answered_ >= quick_ && !slow_.empty()) {
      ring_.answer(slow_.back(), answer_to(slow_.back().request));
      slow_.pop_back();
    }
    return !waiting_.empty() || !slow_.empty();
  }
  bool asked() const override { return false; }
  bool asked_silently() const override { return true; }

 private:
  tasuki::HostRing& ring_;
  const Word quick_;  // requests that are answered before the slow ones
  Word answered_ = 0;
  std::vector<tasuki::HostRing::Asked> waiting_;
  std::vector<tasuki::HostRing::Asked> slow_;
  std::mt19937 random_{5};
};

/// By one thread; in another order than it has asked.
TASUKI_DEVICE bool ask_two(const device::Team& team, const device::Proxy& proxy, Word first, Word second,
                           Word* errors) {
  device::detail::HostRequest requests[2] = {{first, 0, 3 * first, 1}, {second, 0, 5 * second, 2}};
  Word numbers[2];
  for (int i = 0; i < 2; ++i) {
    device::detail::Deadline deadline(team);
    while (!device::detail::take_place(proxy, requests[i].place))
      if (!deadline.more()) return false;
    if (!device::detail::ask(team, proxy, requests[i], numbers[i], 0, 0)) return false;
  }
  for (int i = 1; i >= 0; --i) {
    device::detail::Deadline deadline(team);
    Word answer = 0;
    while (!device::detail::is_answered(proxy, requests[i].place, numbers[i], answer))
      if (!deadline.more()) return false;
    device::detail::give_back_place(proxy, requests[i].place);
    count(errors, answer == 31 * requests[i].what + 7 * requests[i].a + requests[i].b ? 0 : 1);
  }
  return true;
}

TASUKI_KERNEL void asks(device::Team team, device::Proxy proxy, int times, Word* errors) {
  const auto block = device::this_block();
  if (block.thread() != 0) return;
  const auto me = static_cast<Word>(block.block());
  if (block.block() == 0) {  // the slow one
    if (!ask_two(team, proxy, kSlow, kSlow, errors)) return;
  } else {
    for (int n = 0; n < times; ++n) {
      const Word what = 1000 * me + 2 * static_cast<Word>(n);
      if (!ask_two(team, proxy, what + 1000, what + 1001, errors)) return;
    }
  }
  device::detail::add_gpu(errors + 1, 1);
}

TASUKI_KERNEL void asks_in_vain(device::Team team, device::Proxy proxy, Word* errors) {
  Word number = 0;
  for (int n = 0; n < 5; ++n)
    if (!device::detail::ask(team, proxy, device::detail::HostRequest{1, 0, 0, 0}, number, 0, 0)) return;
  count(errors, 1);
}

}  // namespace

RANK_TEST("kernels on threads ask the process's thread, which answers in any order") {
  prepare(ctx);
  const tasuki::KernelTeam team(ctx);
  const bool on_gpu = kWhere == tasuki::Memory::device;
  for (const auto& room : {std::pair<Word, Word>{4, 16}, {64, 8}, {1, 8}}) {
    CAPTURE(room.first);
    constexpr int kBlocks = 3;  // of which each has at most two requests under way
    constexpr int kTimes = 100;
    tasuki::HostRing ring(on_gpu, room.first, room.second);
    const Server server(ring, 2 * (kBlocks - 1) * kTimes);
    const Buffer<Word> errors(2);
    const auto width = widths(kBlocks)[0];
    tasuki::launch_resident(ctx, width, asks, team.device(), ring.device(), kTimes, errors.get()).wait();
    CHECK(errors[0] == 0);
    CHECK(errors[1] == kBlocks);
  }
}

RANK_TEST("kernels on threads that ask more than the ring has room for, and nobody takes, say so") {
  tasuki::Context mine = ctx;
  prepare(mine);
  const tasuki::KernelTeam team(ctx);
  mine.barrier();
  mine.set_deadline(1);
  const tasuki::HostRing ring(kWhere == tasuki::Memory::device, 4, 8);
  const Buffer<Word> errors(1);
  auto running = tasuki::launch_resident(ctx, {}, asks_in_vain, team.device(), ring.device(), errors.get());
  const std::string error = error_of([&] { running.wait(); });
  INFO(error);
  CHECK(errors[0] == 0);
  CHECK(error.find("in block 0 of a kernel, isend to or irecv from rank 0 with tag 0: 4 messages through the host have "
                   "not ended") != std::string::npos);
}
