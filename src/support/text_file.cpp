// Whole text files: see text_file.hpp.
#include "support/text_file.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>

namespace tasuki {

namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

constexpr int kTrials = 100;  // random names that are tried until one is free

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

std::string irregular(const std::string& path) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0 || S_ISREG(about.st_mode)) return {};
  if (S_ISDIR(about.st_mode)) return "a folder";
  if (S_ISFIFO(about.st_mode)) return "a pipe";
  if (S_ISSOCK(about.st_mode)) return "a socket";
  return "a device";
}

std::string replace_text(const std::string& path, const std::string& text) {
  std::string draft;
  int fd = -1;
  for (int trial = 0; fd < 0; ++trial) {
    std::uint64_t number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number) return std::strerror(errno);
    draft = path + '.' + std::to_string(number);
    fd = open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd < 0 && (errno != EEXIST || trial == kTrials)) return std::strerror(errno);
  }
  const auto give_up = [&] {
    std::string why = std::strerror(errno);
    unlink(draft.c_str());
    return why;
  };
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = write(fd, text.data() + done, text.size() - done);
    if (wrote >= 0) {
      done += static_cast<std::size_t>(wrote);
    } else if (errno != EINTR) {
      std::string why = give_up();
      close(fd);
      return why;
    }
  }
  // Sets the mode whatever the umask is.
  const bool made = fchmod(fd, S_IRUSR | S_IWUSR) == 0;
  if (close(fd) != 0 || !made || std::rename(draft.c_str(), path.c_str()) != 0) return give_up();
  return {};
}

void make_private_folders(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    (void)mkdir(path.substr(0, end).c_str(), S_IRWXU);  // a failure shows when a file is written there
    if (end == path.npos) return;
  }
}

}  // namespace tasuki
