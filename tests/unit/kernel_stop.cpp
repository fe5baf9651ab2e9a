// How waiting threads of a kernel find out that the host ends their waits: one of them looks at its word at a time.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tasuki/kernel/impl/stop.cuh"

namespace device = tasuki::device;
using device::detail::kStopNs;
using device::detail::stop_requested;

TEST_CASE("kernel stop: the host's word is looked at if nobody has for some time") {
  unsigned told = 0;
  device::Word looked = 0;
  const device::Stop stop{&told, &looked};
  const device::Word first = 5 * kStopNs;
  CHECK_FALSE(stop_requested(stop, first));
  CHECK(looked == first);
  told = 1;
  CHECK_FALSE(stop_requested(stop, first + kStopNs - 1));
  CHECK(looked == first);
  CHECK(stop_requested(stop, first + kStopNs));
  CHECK(looked == first + kStopNs);
}

TEST_CASE("kernel stop: of threads that come at the same time one looks") {
  constexpr int kThreads = 4;
  constexpr device::Word kTimes = 200;
  const unsigned told = 1;
  device::Word looked = 0;
  const device::Stop stop{&told, &looked};
  std::vector<std::atomic<int>> looks(kTimes + 1);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (device::Word n = 1; n <= kTimes; ++n)
        if (stop_requested(stop, n * kStopNs)) ++looks[n];
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(looked == kTimes * kStopNs);
  CHECK(looks[kTimes] == 1);
  for (device::Word n = 1; n < kTimes; ++n) CHECK(looks[n] <= 1);  // a later look may have come before
}
