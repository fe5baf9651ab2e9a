// Reads /proc/meminfo, and the limits of the control groups of both versions from the process's own up to the root.
#include "memory/memory_left.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "support/text_file.hpp"

namespace tasuki {
namespace {

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

/// The number after `key`, in the line that begins with `key`.
std::optional<std::int64_t> value_of(const std::string& text, const std::string& key) {
  const std::string lines = "\n" + text;
  const std::size_t at = lines.find("\n" + key);
  if (at == std::string::npos) return std::nullopt;
  return std::strtoll(lines.c_str() + at + 1 + key.size(), nullptr, 10);
}

struct GroupFiles {
  const char *root, *limit, *used, *reclaimable;
};
constexpr GroupFiles kFirst{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                            "total_inactive_file "};
constexpr GroupFiles kSecond{"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "};

/// What is left of a control group's limit; kUnlimited if it has none.
std::int64_t left_in(const GroupFiles& files, const std::string& path) {
  const std::string folder = files.root + path + "/";
  const std::string limit = read_text(folder + files.limit).value_or("max");
  const auto used = read_text(folder + files.used);
  if (limit.starts_with("max") || !used) return kUnlimited;
  const std::int64_t most = std::strtoll(limit.c_str(), nullptr, 10);
  const std::int64_t reclaimable =
      value_of(read_text(folder + "memory.stat").value_or(""), files.reclaimable).value_or(0);
  return std::max<std::int64_t>(0, most - std::strtoll(used->c_str(), nullptr, 10) + reclaimable);
}

std::int64_t left_in_groups() {
  const std::string groups = read_text("/proc/self/cgroup").value_or("");
  std::int64_t left = kUnlimited;
  for (std::size_t at = 0; at < groups.size();) {
    const std::size_t end = std::min(groups.find('\n', at), groups.size());
    const std::string line = groups.substr(at, end - at);  // a line reads number:controllers:path
    at = end + 1;
    const std::size_t path_at = line.find(":/");
    if (path_at == std::string::npos) continue;
    const std::string controllers = line.substr(0, path_at);
    const bool first = controllers.find(":memory") != std::string::npos;
    if (!first && controllers != "0:") continue;
    // In a container its own group may be mounted as the root, whatever the path says. So the root is read as well.
    for (std::string path = line.substr(path_at + 1);; path.resize(path.rfind('/'))) {
      left = std::min(left, left_in(first ? kFirst : kSecond, path));
      if (path.empty() || path.rfind('/') == std::string::npos) break;
    }
  }
  return left;
}

}  // namespace

MemoryLeft memory_left() {
  const std::string info = read_text("/proc/meminfo").value_or("");
  const auto available = value_of(info, "MemAvailable:");
  const std::int64_t host =
      available ? (*available + value_of(info, "SwapFree:").value_or(0)) * 1024 : kUnlimited;  // the file counts in KiB
  const std::int64_t group = left_in_groups();
  if (group < host)
    return {group, fmt::format("{} are left of the limit of the process's control group", describe_bytes(group))};
  return {host, host == kUnlimited ? "how much memory is left cannot be told"
                                   : fmt::format("{} of memory are left on this host", describe_bytes(host))};
}

MemoryLeft memory_left_for(std::int64_t bytes) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kLong = std::chrono::milliseconds(100);
  constexpr std::int64_t kMuch = 64;
  static std::mutex mutex;
  static MemoryLeft known;
  static Clock::time_point when;
  const std::lock_guard lock(mutex);
  const Clock::time_point now = Clock::now();
  if (known.bytes / kMuch > bytes && now - when < kLong) {
    known.bytes -= bytes;
    return known;
  }
  known = memory_left();
  when = now;
  return known;
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
