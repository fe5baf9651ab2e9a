// Whole text files, without C++ streams: a process that loads two copies of the C++ library (as Python's packages bring
// theirs) may mix up the parts of its locales, which every stream looks up.
#pragma once

#include <optional>
#include <string>

namespace tasuki {

/// Nothing if the file cannot be read; `errno` says why.
std::optional<std::string> read_text(const std::string& path);
/// False if the file cannot be written; `errno` says why.
bool write_text(const std::string& path, const std::string& text);

}  // namespace tasuki
