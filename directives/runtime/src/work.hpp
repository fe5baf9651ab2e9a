// Communication that is prepared once and run as often as it is called.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tasuki/device.hpp"
#include "tasuki/operation.hpp"

namespace tasuki::xmp {

/// Operations that run together. What is moved may lie in between: it is packed before and unpacked after.
struct Work {
  std::vector<std::shared_ptr<void>> keep;  ///< memory in between, which outlives the operations
  std::vector<Operation> operations;
  std::function<void(Stream)> before;  ///< on GPUs work of the stream
  std::function<void()> after;
  std::vector<std::int64_t> arrays;  ///< serial numbers of the arrays that take part
  bool active = false;
  bool verified = false;
  bool stale = false;  ///< memory of an array has been replaced since

  /// Whether this rank has anything to do in it. Others may have.
  bool moves() const {
    const auto has_commands = [](const Operation& one) { return !one.plan().commands.empty(); };
    return before || std::any_of(operations.begin(), operations.end(), has_commands);
  }
  void start() {
    if (before && !active) before(nullptr);  // if it is active, what follows says so
    for (Operation& one : operations) one.start();
    active = true;
  }
  void wait() {
    for (Operation& one : operations) one.wait();
    ended();
  }
  bool test() {
    bool all = true;
    for (Operation& one : operations) all = one.test() && all;
    if (all) ended();
    return all;
  }
  void run() {
    start();
    wait();
  }
  void run(Stream stream) {
    if (before) before(stream);
    for (Operation& one : operations) one.run(stream);
  }

 private:
  void ended() {
    if (active && after) after();
    active = false;
  }
};

}  // namespace tasuki::xmp
