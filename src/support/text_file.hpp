// Reads and writes whole text files, without C++ streams. Every stream looks up parts of a locale. In a process that
// has loaded two copies of the C++ library, as Python packages cause, that look-up may find parts of the wrong copy.
#pragma once

#include <optional>
#include <string>

namespace tasuki {

/// The file's text; nothing if it cannot be read, and then `errno` says why.
std::optional<std::string> read_text(const std::string& path);
/// If `path` exists and is not a regular file, what it is: "a folder", "a pipe" ...; else empty. Follows links.
std::string irregular(const std::string& path);
/// Writes the file atomically: readers see the old text or the new one. The text is written to a new file in the same
/// folder, which is then renamed. That file is made with O_EXCL and a random name, and only this user can read it. A
/// link at `path` is replaced, not followed. Returns an empty text, or the reason for a failure; then no file is left
/// behind.
std::string replace_text(const std::string& path, const std::string& text);
/// Makes the folder and the missing ones above it, with access for this user only. Does not change existing folders.
void make_private_folders(const std::string& path);

}  // namespace tasuki
