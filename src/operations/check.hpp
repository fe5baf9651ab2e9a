// Check: what TASUKI_CHECK=1 adds to an operation. Misuse that passes unnoticed otherwise becomes an error.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "operations/state.hpp"

namespace tasuki {

/// The buffers of records, which the user knows nothing of.
inline constexpr const char* kCheckOut = "check out";
inline constexpr const char* kCheckIn = "check in";

/// In a halo over pairs of copies in host memory every rank sends a record to those that it sends cells to, as one more
/// piece of the plan: epoch and copies shown. Who has got the cells compares it with what it shows itself.
class OperationCheck {
 public:
  /// Null unless the context checks. Adds the records to the description of an operation that needs them; the same on
  /// all ranks.
  static std::unique_ptr<OperationCheck> of(Runtime& runtime, Description& description);

  explicit OperationCheck(int rank) : rank_(rank) {}

  void start(std::uint64_t epoch, const std::vector<UserBuffer>& buffers);
  /// The epoch has ended. Empty, or how this rank and another differ.
  std::string end(std::uint64_t epoch, const std::vector<UserBuffer>& buffers) const;
  /// A wait has ended, or found no epoch active. False if there was none to wait for.
  bool waited();
  /// Says on stderr that an epoch was never waited for.
  void abandoned(const std::string& operation, std::uint64_t epoch) const;

 private:
  void add_records(Runtime& runtime, Description& description);

  int rank_;
  bool owed_ = false;  // a wait, since the last start
  std::vector<int> sources_;
  std::int64_t bytes_ = 0;  // of a record
  std::byte* out_ = nullptr;
  std::byte* in_ = nullptr;  // a record a rank
};

}  // namespace tasuki
