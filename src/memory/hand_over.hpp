// HandOver: open files handed from one process to another, where /proc does not show them to each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tasuki {

/// A mailbox: a socket without a name in any file system. What is sent lies in it until it is taken out, so a sender
/// need not wait for the receiver, and nobody has to answer later. All functions return at once.
class HandOver {
 public:
  explicit HandOver(std::uint64_t mailbox);  ///< Throws `Error` if there can be none.
  ~HandOver();
  HandOver(const HandOver&) = delete;
  HandOver& operator=(const HandOver&) = delete;

  enum class Sent { yes, full, no };
  /// Puts file `fd` with a token into another mailbox. `full`: try again, when its owner may have emptied it. `no`: it
  /// cannot be reached, and `why`.
  Sent send(std::uint64_t mailbox, std::uint64_t token, int fd, std::string& why) const;

  struct Letter {
    std::uint64_t token = 0;
    int fd = -1;  ///< the caller's to close
  };
  std::optional<Letter> receive() const;  ///< Nothing if the mailbox is empty.

 private:
  int socket_ = -1;
};

}  // namespace tasuki
