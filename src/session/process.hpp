// Reads from /proc whether a process still runs. The start time tells it from a later process with the same id.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tasuki {

struct ProcessStat {
  char state = '?';        ///< R running, S sleeping, ..., Z zombie, X dead
  std::uint64_t born = 0;  ///< start time in clock ticks since boot
};

/// Parses the text of /proc/<pid>/stat. The command's name in it may contain spaces and parentheses.
std::optional<ProcessStat> parse_process_stat(std::string_view text);

/// This process's start time as /proc shows it to other processes; 0 if /proc cannot be read.
std::uint64_t own_start_time();

enum class Life : std::uint8_t { running, ended, unknown };

/// Whether the process with this id and start time still runs. `ended`: it is gone, is a zombie, or another process has
/// its id now. `unknown`: /proc cannot be read. `born` = 0 matches any start time.
Life life_of(std::int64_t pid, std::uint64_t born);

}  // namespace tasuki
