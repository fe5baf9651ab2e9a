// Whole text files, without C++ streams: a process that loads two copies of the C++ library (as Python's packages bring
// theirs) may mix up the parts of its locales, which every stream looks up.
#pragma once

#include <optional>
#include <string>

namespace tasuki {

/// Nothing if the file cannot be read; `errno` says why.
std::optional<std::string> read_text(const std::string& path);
/// What `path` is, if it is there and no regular file: "a folder", "a pipe" ...; else empty. Links are followed.
std::string irregular(const std::string& path);
/// Replaces the file, or makes it, at once: others see the old text or the new one. The text goes into a new file
/// beside it, which only this user can read, and which nobody can have planted; a link at `path` is replaced, not
/// followed. Empty, or why it cannot be done; then nothing is left behind.
std::string replace_text(const std::string& path, const std::string& text);
/// Makes the folder, and those above it that are missing, for this user only. What is there already stays as it is.
void make_private_folders(const std::string& path);

}  // namespace tasuki
