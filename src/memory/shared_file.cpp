// SharedFile: memfd_create and mmap. Memory is allocated before anything stores into it.
#include "memory/shared_file.hpp"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "memory/memory_left.hpp"
#include "tasuki/error.hpp"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U  // Linux 6.3, which can be set to require it; older kernels return EINVAL
#endif

namespace tasuki {
namespace {

// Most bytes that are allocated in one step. Each step looks again at what is left, because other ranks allocate at the
// same time.
constexpr std::int64_t kStep = 256 << 20;
constexpr std::int64_t kSpare = 32 << 20;  // bytes that stay free for the process itself

std::string failed(const char* call) {
  return fmt::format("{} failed: {}", call, std::strerror(errno));
}

// The files of this process by token: ranks that are threads share mappings.
struct Registry {
  std::mutex mutex;
  std::map<std::uint64_t, std::weak_ptr<SharedFile>> files;
};
Registry& registry() {
  static Registry& all = *new Registry;  // never destroyed: files may exist until the process ends
  return all;
}

std::string allocate_pages(int fd, std::int64_t offset, std::int64_t bytes) {
  while (fallocate(fd, 0, offset, bytes) != 0) {
    if (errno != EINTR) return failed("fallocate");
  }
  return {};
}

}  // namespace

std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) throw Error("SharedMemory: " + failed("getrandom"));
  return number;
}

std::shared_ptr<SharedFile> SharedFile::make() {
  int fd = memfd_create("tasuki", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
  if (fd < 0 && errno == EINVAL) fd = memfd_create("tasuki", MFD_CLOEXEC);
  if (fd < 0) throw Error("SharedMemory: " + failed("memfd_create") + "; every rank needs one open file (ulimit -n)");
  auto file = std::make_shared<SharedFile>(fd, random_number());
  std::string why = file->obtain(0, kHead);
  if (why.empty() && ftruncate(fd, kRegions) != 0) why = failed("ftruncate");
  if (why.empty() && pwrite(fd, &file->token_, sizeof file->token_, 0) != sizeof file->token_) why = failed("pwrite");
  if (why.empty()) why = file->open_ledger();
  if (!why.empty()) throw Error("SharedMemory: no shared memory can be made: " + why);
  const std::lock_guard lock(registry().mutex);
  registry().files[file->token_] = file;
  return file;
}

std::shared_ptr<SharedFile> SharedFile::adopt(int fd, std::uint64_t token, std::string& why) {
  auto file = std::make_shared<SharedFile>(fd, token);  // owns `fd` from here on, also on the errors below
  std::uint64_t found = 0;
  if (pread(fd, &found, sizeof found, 0) != sizeof found || found != token) {
    why = "what was opened is not its memory";
    return nullptr;
  }
  why = file->open_ledger();
  return why.empty() ? file : nullptr;
}

std::shared_ptr<SharedFile> SharedFile::of_this_process(std::uint64_t token) {
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().files.find(token);
  return found == registry().files.end() ? nullptr : found->second.lock();
}

SharedFile::~SharedFile() {
  {
    const std::lock_guard lock(registry().mutex);
    const auto found = registry().files.find(token_);
    if (found != registry().files.end() && found->second.expired()) registry().files.erase(found);
  }
  if (ledger_ != nullptr) munmap(ledger_, kRegions - kHead);
  close(fd_);
}

std::string SharedFile::open_ledger() {
  void* const at = mmap(nullptr, kRegions - kHead, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, kHead);
  if (at == MAP_FAILED) return failed("mmap");
  ledger_ = static_cast<std::byte*>(at);
  return {};
}

std::string SharedFile::obtain(std::int64_t offset, std::int64_t bytes) {
  rlimit most{};
  // A store beyond this limit does not fail: the kernel kills the process (SIGXFSZ). So the limit is checked first.
  if (getrlimit(RLIMIT_FSIZE, &most) == 0 && static_cast<rlim_t>(offset + bytes) > most.rlim_cur)
    return fmt::format("files of this process are limited to {} (ulimit -f)",
                       describe_bytes(static_cast<std::int64_t>(most.rlim_cur)));
  for (std::int64_t done = 0; done < bytes;) {
    const std::int64_t step = std::min(kStep, bytes - done);
    const MemoryLeft left = memory_left_for(step);
    std::string why = left.bytes - kSpare < bytes - done ? left.text : allocate_pages(fd_, offset + done, step);
    if (!why.empty()) {
      if (done > 0) give_back(offset, done);
      return why;
    }
    done += step;
  }
  return {};
}

bool SharedFile::give_back(std::int64_t offset, std::int64_t bytes) {
  return fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes) == 0;
}

std::shared_ptr<std::byte> SharedFile::map(std::int64_t offset, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  std::erase_if(mapped_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<std::byte>& entry = mapped_[{offset, bytes}];
  if (auto known = entry.lock()) return known;
  void* const at = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, offset);
  if (at == MAP_FAILED)
    throw Error(fmt::format("SharedMemory: {} could not be mapped: {}", describe_bytes(bytes), std::strerror(errno)));
  std::shared_ptr<std::byte> region(static_cast<std::byte*>(at),
                                    [bytes](std::byte* p) { munmap(p, static_cast<std::size_t>(bytes)); });
  entry = region;
  return region;
}

std::atomic_ref<std::uint64_t> SharedFile::entry(std::uint32_t index) const {
  static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free, "the ledger is shared between processes");
  return std::atomic_ref<std::uint64_t>(reinterpret_cast<std::uint64_t*>(ledger_)[index]);
}

}  // namespace tasuki
