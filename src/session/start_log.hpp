// StartLog: with TASUKI_CHECK=1 each rank writes down in shared memory what it starts in streams of its GPU, and reads
// what the other ranks of its host do, so that unlike orders become an error that names the operations.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "memory/gpu.hpp"
#include "session/start_orders.hpp"

namespace tasuki {

class Runtime;

class StartLog {
 public:
  explicit StartLog(Runtime& runtime);  ///< Collective.
  ~StartLog();
  StartLog(const StartLog&) = delete;
  StartLog& operator=(const StartLog&) = delete;

  /// This rank is about to start an epoch in the stream of an operation (`Runtime::number_of`). Throws `Error` if
  /// another rank has started it in another order relative to another operation that both have started in one stream.
  void begin(std::uint64_t operation, const std::string& name, std::uint64_t epoch, Stream stream);
  /// Looks at what the other ranks have started since. Throws as `begin` does.
  void look();

 private:
  struct Page;
  [[noreturn]] void complain(const StartOrders::Conflict& conflict);

  Runtime& runtime_;
  std::uint64_t place_ = 0;  // tells this process's contexts apart
  std::shared_ptr<std::byte> page_;
  std::vector<std::shared_ptr<Page>> pages_;  // by rank; null where there is none to read
  std::vector<std::uint64_t> seen_;           // by rank
};

}  // namespace tasuki
