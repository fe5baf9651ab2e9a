// What /proc says about a process: whether the one that was meant is still running.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tasuki {

struct ProcessStat {
  char state = '?';        ///< R running, S sleeping, ..., Z zombie, X dead
  std::uint64_t born = 0;  ///< start time in clock ticks since boot
};

/// Reads the text of /proc/<pid>/stat. The command's name in it may hold spaces and parentheses.
std::optional<ProcessStat> parse_process_stat(std::string_view text);

/// When this process started, as other processes see it; 0 if /proc cannot be read.
std::uint64_t own_start_time();

enum class Life : std::uint8_t { running, ended, unknown };

/// Is the process with this id, started then, still running? `ended` if it is gone, a zombie, or another process has
/// its id now; `unknown` if /proc cannot say. `born` = 0 matches any start time.
Life life_of(std::int64_t pid, std::uint64_t born);

}  // namespace tasuki
