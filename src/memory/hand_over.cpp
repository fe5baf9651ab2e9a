// HandOver: datagrams of a Unix socket in the abstract name space; SCM_RIGHTS passes the descriptor.
#include "memory/hand_over.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include <fmt/format.h>

#include "tasuki/error.hpp"

namespace tasuki {
namespace {

struct Address {
  sockaddr_un name{};
  socklen_t length = 0;

  explicit Address(std::uint64_t mailbox) {
    const std::string text = fmt::format("tasuki-{:016x}", mailbox);
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path + 1, text.data(), text.size());  // the first byte stays 0, which makes the name abstract
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

/// A datagram: one token, and a control message with room for one descriptor.
struct Datagram {
  std::uint64_t token = 0;
  iovec part{&token, sizeof token};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};

  Datagram() {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }
};

}  // namespace

HandOver::HandOver(std::uint64_t mailbox) : socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
  const Address own(mailbox);
  if (socket_ >= 0 && bind(socket_, own.get(), own.length) == 0) return;
  const std::string why = std::strerror(errno);
  if (socket_ >= 0) close(socket_);
  throw Error("a Unix socket cannot be made: " + why);
}

HandOver::~HandOver() {
  close(socket_);
}

HandOver::Sent HandOver::send(std::uint64_t mailbox, std::uint64_t token, int fd, std::string& why) const {
  Address to(mailbox);
  Datagram datagram;
  datagram.token = token;
  datagram.header.msg_name = &to.name;
  datagram.header.msg_namelen = to.length;
  cmsghdr* const rights = CMSG_FIRSTHDR(&datagram.header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  while (sendmsg(socket_, &datagram.header, MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    // ETOOMANYREFS: too many descriptors are in flight. That also passes when receivers take some out.
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ETOOMANYREFS) return Sent::full;
    why = std::string("the Unix socket of the other rank: ") + std::strerror(errno);
    return Sent::no;
  }
  return Sent::yes;
}

std::optional<HandOver::Letter> HandOver::receive() const {
  for (;;) {
    Datagram datagram;
    const ssize_t got = recvmsg(socket_, &datagram.header, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    Letter letter{datagram.token, -1};
    const cmsghdr* const rights = CMSG_FIRSTHDR(&datagram.header);
    if (rights != nullptr && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS &&
        rights->cmsg_len == CMSG_LEN(sizeof letter.fd))
      std::memcpy(&letter.fd, CMSG_DATA(rights), sizeof letter.fd);
    if (got == sizeof datagram.token && letter.fd >= 0) return letter;
    if (letter.fd >= 0) close(letter.fd);  // a letter without a token of this form: not sent by Tasuki
  }
}

}  // namespace tasuki
