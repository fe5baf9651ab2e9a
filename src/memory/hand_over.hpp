// HandOver: passes open file descriptors from one process to another. Used where the processes cannot open each
// other's files through /proc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tasuki {

/// A mailbox: a Unix socket in the abstract name space. A letter stays in it until the owner receives it, so the sender
/// does not wait for the receiver. No function blocks.
class HandOver {
 public:
  explicit HandOver(std::uint64_t mailbox);  ///< `mailbox` is its name. Throws `Error` if the socket cannot be made.
  ~HandOver();
  HandOver(const HandOver&) = delete;
  HandOver& operator=(const HandOver&) = delete;

  enum class Sent { yes, full, no };
  /// Sends descriptor `fd` with a token to another mailbox. `full`: the mailbox has no room; try again later. `no`: the
  /// mailbox cannot be reached, and `why` is set.
  Sent send(std::uint64_t mailbox, std::uint64_t token, int fd, std::string& why) const;

  struct Letter {
    std::uint64_t token = 0;
    int fd = -1;  ///< the caller closes it
  };
  std::optional<Letter> receive() const;  ///< Nothing if the mailbox is empty.

 private:
  int socket_ = -1;
};

}  // namespace tasuki
