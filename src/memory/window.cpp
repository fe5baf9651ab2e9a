// The free space in a window's part, and whether there is memory behind it before anyone stores into it.
#include "memory/window.hpp"

#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>

#include <fmt/format.h>

#include "support/text_file.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14; older headers do not name it, older kernels answer EINVAL
#endif

namespace tasuki {

std::int64_t Gaps::aligned(std::int64_t offset, std::int64_t alignment) const {
  const auto address = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(base_)) + offset;
  return offset + (alignment - address % alignment) % alignment;
}

Gaps::Map::const_iterator Gaps::first_fit(std::int64_t bytes, std::int64_t alignment) const {
  auto gap = gaps_.begin();
  while (gap != gaps_.end() && aligned(gap->first, alignment) - gap->first > gap->second - bytes) ++gap;
  return gap;
}

bool Gaps::fits(std::int64_t bytes, std::int64_t alignment) const {
  return first_fit(bytes, alignment) != gaps_.end();
}

std::int64_t Gaps::take(std::int64_t bytes, std::int64_t alignment) {
  const auto gap = first_fit(bytes, alignment);
  const auto [begin, size] = *gap;
  const std::int64_t offset = aligned(begin, alignment);
  gaps_.erase(gap);
  if (offset > begin) gaps_[begin] = offset - begin;
  if (offset + bytes < begin + size) gaps_[offset + bytes] = begin + size - (offset + bytes);
  return offset;
}

void Gaps::give_back(std::int64_t offset, std::int64_t bytes) {
  const auto next = gaps_.lower_bound(offset);
  if (next != gaps_.end() && next->first == offset + bytes) {
    bytes += next->second;
    gaps_.erase(next);
  }
  const auto after = gaps_.lower_bound(offset);
  if (after != gaps_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  if (bytes > 0) gaps_[offset] = bytes;
}

bool populate(std::byte* begin, std::int64_t bytes) {
  if (bytes == 0) return true;
  const std::intptr_t page = sysconf(_SC_PAGESIZE);
  const auto address = reinterpret_cast<std::intptr_t>(begin);
  const std::intptr_t first = address / page * page;
  if (madvise(reinterpret_cast<void*>(first), address + bytes - first, MADV_POPULATE_WRITE) == 0) return true;
  return errno == EINVAL;  // the kernel does not know the request: nothing can be said beforehand
}

std::string backing_folder(const void* p) {
  const std::string maps = read_text("/proc/self/maps").value_or("");
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  for (std::size_t at = 0; at < maps.size();) {
    const std::size_t line_end = std::min(maps.find('\n', at), maps.size());
    const std::string line = maps.substr(at, line_end - at);
    at = line_end + 1;
    // begin-end permissions offset device inode path
    unsigned long begin = 0;
    unsigned long end = 0;
    int path_at = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %*s %*s %*s %*s %n", &begin, &end, &path_at) != 2) continue;
    if (address < begin || address >= end) continue;
    const std::string path = line.substr(static_cast<std::size_t>(path_at));
    const std::size_t slash = path.rfind('/');
    return path.starts_with('/') && slash > 0 ? path.substr(0, slash) : std::string{};
  }
  return {};
}

Space space_for_windows(const std::string& folder) {
  struct statvfs system {};
  if (folder.empty() || statvfs(folder.c_str(), &system) != 0) {
    const std::int64_t memory = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
    return {memory, describe_bytes(memory) + " of memory"};
  }
  const auto free = static_cast<std::int64_t>(system.f_bavail * system.f_frsize);
  const auto all = static_cast<std::int64_t>(system.f_blocks * system.f_frsize);
  return {free, fmt::format("{} free of {} in {}", describe_bytes(free), describe_bytes(all), folder)};
}

std::string describe_bytes(std::int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace tasuki
