// Files that others could tamper with: links are not followed, names cannot be foreseen, and only their user reads
// them.
#include "support/text_file.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

using namespace tasuki;
namespace fs = std::filesystem;

namespace {

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "tasuki-files-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::ptrdiff_t entries() const { return std::distance(fs::directory_iterator(path_), fs::directory_iterator()); }

 private:
  fs::path path_;
};

// The mask of the process, for as long as it lives.
class Mask {
 public:
  explicit Mask(mode_t mask) : old_(umask(mask)) {}
  ~Mask() { umask(old_); }

 private:
  mode_t old_;
};

mode_t mode_of(const std::string& path) {
  struct stat about {};
  REQUIRE(lstat(path.c_str(), &about) == 0);
  return about.st_mode & 07777;
}

}  // namespace

TEST_CASE("a file is replaced at once, is private whatever the mask, and leaves nothing beside it") {
  for (const mode_t mask : {0, 022, 0277}) {
    const Folder folder;
    const Mask set(mask);
    CHECK(replace_text(folder / "profile", "one").empty());
    CHECK(mode_of(folder / "profile") == 0600);
    CHECK(replace_text(folder / "profile", "another\n").empty());
    CHECK(read_text(folder / "profile") == "another\n");
    CHECK(folder.entries() == 1);
  }
}

TEST_CASE("a link that was planted in the place of a file is replaced, and what it points to stays as it is") {
  const Folder folder;
  REQUIRE(replace_text(folder / "precious", "mine").empty());
  fs::create_symlink(folder / "precious", folder / "profile");
  CHECK(replace_text(folder / "profile", "yours").empty());
  CHECK(read_text(folder / "precious") == "mine");
  CHECK(read_text(folder / "profile") == "yours");
  CHECK_FALSE(fs::is_symlink(folder / "profile"));
  CHECK(folder.entries() == 2);
}

TEST_CASE("the draft of a file has another name every time") {
  const Folder folder;
  fs::create_directory(folder / "target");  // onto which nothing can be renamed, so that errors say what was tried
  CHECK_FALSE(replace_text(folder / "target", "text").empty());
  CHECK(folder.entries() == 1);
  CHECK_FALSE(replace_text(folder / "missing/file", "text").empty());
  CHECK(folder.entries() == 1);
  CHECK_FALSE(replace_text("/dev/null/file", "text").empty());
}

TEST_CASE("what is no regular file is called by its name, without opening it") {
  const Folder folder;
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  fs::create_symlink(folder / "pipe", folder / "link");
  REQUIRE(replace_text(folder / "file", "").empty());
  CHECK(irregular(folder / "pipe") == "a pipe");
  CHECK(irregular(folder / "link") == "a pipe");
  CHECK(irregular("/dev/zero") == "a device");
  CHECK(irregular(folder / ".") == "a folder");
  CHECK(irregular(folder / "file").empty());
  CHECK(irregular(folder / "missing").empty());
}

TEST_CASE("folders are made for their user alone, whatever the mask, and those that exist stay as they are") {
  const Folder folder;
  const Mask set(0);
  REQUIRE(mkdir((folder / "open").c_str(), 0755) == 0);
  make_private_folders(folder / "open/a/b");
  CHECK(mode_of(folder / "open") == 0755);
  CHECK(mode_of(folder / "open/a") == 0700);
  CHECK(mode_of(folder / "open/a/b") == 0700);
}
