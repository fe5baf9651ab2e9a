// Whole text files: see text_file.hpp.
#include "support/text_file.hpp"

#include <array>
#include <cstdio>
#include <memory>

namespace tasuki {

namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

}  // namespace

std::optional<std::string> read_text(const std::string& path) {
  const File file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) return std::nullopt;
  std::string text;
  std::array<char, 4096> part{};
  for (std::size_t got = part.size(); got == part.size();) {
    got = std::fread(part.data(), 1, part.size(), file.get());
    text.append(part.data(), got);
  }
  if (std::ferror(file.get()) != 0) return std::nullopt;
  return text;
}

bool write_text(const std::string& path, const std::string& text) {
  File file(std::fopen(path.c_str(), "wb"), std::fclose);
  if (!file) return false;
  const bool written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  return std::fclose(file.release()) == 0 && written;
}

}  // namespace tasuki
