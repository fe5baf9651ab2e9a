// Shared memory between processes that are no ranks: one that died, sizes that are not there, and the handing over of
// files.
#include "memory/shared_memory.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "memory/hand_over.hpp"
#include "memory/memory_left.hpp"
#include "memory/shared_file.hpp"
#include "ranks/error_of.hpp"

using namespace tasuki;

namespace {

/// What `f` returns in a process of its own, which then ends without cleaning up.
template <class F>
int in_child(F&& f) {
  const pid_t child = fork();
  if (child == 0) _exit(f());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("what a process that died had mapped is not used again, and all else is") {
  SharedMemory memory(0, 2);
  std::shared_ptr<std::byte> block = memory.allocate(500);
  std::byte* const place = block.get();
  const SharedAddress address = memory.find(place, 500);
  const int seen = in_child([&] {
    const auto mapped = memory.map(0, address);
    std::memset(mapped.get(), 77, 500);
    _exit(mapped != nullptr ? 5 : 6);  // the count is not returned
    return 7;
  });
  CHECK(seen == 5);
  CHECK((block.get()[499] == std::byte{77}));
  CHECK(memory.mappers(place) == 1);
  block.reset();
  for (int i = 0; i < 100; ++i) CHECK(memory.allocate(500).get() != place);
  CHECK(memory.regions() == 1);
}

TEST_CASE("a process reaches another's memory by its file alone, and nothing is left when it has gone") {
  SharedMemory memory(0, 2);
  const auto block = memory.allocate(70001);
  std::memset(block.get(), 3, 70001);
  const SharedIdentity identity = memory.identity();
  std::string why;
  CHECK(SharedFile::adopt(dup(identity.fd), identity.token + 1, why) == nullptr);
  CHECK(why == "what was opened is not its memory");
  const auto file = SharedFile::adopt(dup(identity.fd), identity.token, why);
  REQUIRE(file != nullptr);
  const SharedAddress address = memory.find(block.get(), 70001);
  const auto region = file->map(address.region, address.region_bytes);
  CHECK(region.get() + address.offset != block.get());
  CHECK((region.get()[address.offset + 70000] == std::byte{3}));
  char link[64] = {};
  CHECK(readlink(("/proc/self/fd/" + std::to_string(identity.fd)).c_str(), link, sizeof link - 1) > 0);
  CHECK(std::string(link) == "/memfd:tasuki (deleted)");
}

TEST_CASE("more than is left is refused before any of it is taken") {
  SharedMemory memory(4, 5);
  const MemoryLeft before = memory_left();
  REQUIRE(before.bytes > 0);
  const std::string error = error_of([&] { (void)memory.allocate(before.bytes + (std::int64_t{8} << 30)); });
  CHECK(error.find("SharedMemory: rank 4 could not get ") == 0);
  CHECK(error.find(" left ") != std::string::npos);
  CHECK(error.find("; allocate less") != std::string::npos);
  CHECK(memory.regions() == 1);
  CHECK(memory.allocate(3 << 20) != nullptr);
}

TEST_CASE("a file is handed from mailbox to mailbox, and waits there") {
  const std::uint64_t name = random_number();
  const HandOver sender(name + 1);
  std::string why;
  SharedMemory memory(0, 1);
  const SharedIdentity identity = memory.identity();
  CHECK(sender.send(name, identity.token, identity.fd, why) == HandOver::Sent::no);
  CHECK(why.find("Connection refused") != std::string::npos);
  const HandOver receiver(name);
  CHECK_FALSE(receiver.receive());
  int sent = 0;
  while (sent < 5000 &&
         sender.send(name, identity.token + static_cast<unsigned>(sent), identity.fd, why) == HandOver::Sent::yes)
    ++sent;
  CHECK(sent > 0);
  CHECK(sent < 5000);  // it is full now, which is no failure
  for (int i = 0; i < sent; ++i) {
    const auto letter = receiver.receive();
    REQUIRE(letter);
    CHECK(letter->token == identity.token + static_cast<unsigned>(i));
    CHECK(letter->fd != identity.fd);
    close(letter->fd);
  }
  CHECK_FALSE(receiver.receive());
  CHECK(error_of([&] { const HandOver again(name); }).find("a Unix socket cannot be made: ") == 0);
}
