// Reads /proc/<pid>/stat with plain system calls. This runs inside waits, so it must not allocate memory.
#include "session/process.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>

#include <fmt/format.h>

namespace tasuki {
namespace {

constexpr int kStateField = 3;  // numbered from 1 in proc(5); field 2 is the command's name in parentheses
constexpr int kBornField = 22;

struct StatText {
  std::array<char, 1024> bytes;
  ssize_t length = 0;
  int error = 0;
};

StatText read_stat(const char* path) {
  StatText text;
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    text.error = errno;
    return text;
  }
  text.length = ::read(fd, text.bytes.data(), text.bytes.size());
  if (text.length < 0) text.error = errno;
  ::close(fd);
  return text;
}

std::optional<ProcessStat> parse(const StatText& text) {
  return parse_process_stat({text.bytes.data(), static_cast<std::size_t>(text.length)});
}

}  // namespace

std::optional<ProcessStat> parse_process_stat(std::string_view text) {
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  text.remove_prefix(name_end + 1);
  ProcessStat stat;
  for (int field = kStateField; field <= kBornField; ++field) {
    const std::size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) return std::nullopt;
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, text.find_first_of(" \n"));
    if (field == kStateField) stat.state = word[0];
    if (field == kBornField) {
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), stat.born);
      if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
    }
    text.remove_prefix(word.size());
  }
  return stat;
}

std::uint64_t own_start_time() {
  const StatText text = read_stat("/proc/self/stat");
  if (text.error != 0) return 0;
  const auto stat = parse(text);
  return stat ? stat->born : 0;
}

Life life_of(std::int64_t pid, std::uint64_t born) {
  std::array<char, 40> path{};
  fmt::format_to_n(path.data(), path.size() - 1, "/proc/{}/stat", pid);
  const StatText text = read_stat(path.data());
  if (text.error == ENOENT || text.error == ESRCH) return Life::ended;
  if (text.error != 0) return Life::unknown;  // no descriptor left, no permission: this says nothing of the process
  const auto stat = parse(text);
  if (!stat) return Life::unknown;
  if (born != 0 && stat->born != born) return Life::ended;
  return stat->state == 'Z' || stat->state == 'X' ? Life::ended : Life::running;
}

}  // namespace tasuki
