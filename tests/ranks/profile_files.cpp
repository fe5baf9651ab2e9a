// The profile's file. TASUKI_PROFILE names something that is no file: an error on every rank, at once, and nothing is
// left behind. Tasuki's own file is damaged: it counts as missing.
#include <doctest/doctest.h>
#include <mpi.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "error_of.hpp"
#include "printed.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;
namespace fs = std::filesystem;

namespace {

// A folder that all ranks know.
fs::path common_folder() {
  char name[] = "/tmp/tasuki-profile-XXXXXX";
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) REQUIRE(mkdtemp(name) != nullptr);
  MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
  return name;
}

}  // namespace

TEST_CASE("a machine profile that is a pipe, a device or a folder is refused on every rank, and nothing blocks") {
  const fs::path folder = common_folder();
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  const char* before = std::getenv("TASUKI_PROFILE");
  const std::string kept = before != nullptr ? before : "";
  MPI_Barrier(MPI_COMM_WORLD);
  for (const auto& [path, what] :
       {std::pair<fs::path, const char*>{folder / "pipe", "a pipe"}, {"/dev/zero", "a device"}, {folder, "a folder"}}) {
    setenv("TASUKI_PROFILE", path.c_str(), 1);
    const std::string text = error_of([] { const Context ctx(MPI_COMM_WORLD); });
    CHECK(text == "Context: rank 0: the machine profile " + path.string() + " is " + what +
                      "; TASUKI_PROFILE must name a file, or one that does not exist yet");
  }
  // One that does not exist yet is made, with the folders above it, for this user only.
  const fs::path fresh = folder / "new" / "deep" / "profile.json";
  setenv("TASUKI_PROFILE", fresh.c_str(), 1);
  {
    const Context ctx(MPI_COMM_WORLD);
    if (ctx.size() <= 2) (void)machine_of(ctx);  // measuring takes seconds where more ranks share the cores
  }
  kept.empty() ? unsetenv("TASUKI_PROFILE") : setenv("TASUKI_PROFILE", kept.c_str(), 1);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    // Nothing is measured where one rank has no partner, and not kept where ranks outnumber the cores.
    if (fs::exists(fresh)) {
      CHECK(fs::status(fresh).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
      CHECK(fs::status(folder / "new").permissions() == fs::perms::owner_all);
      CHECK(std::distance(fs::directory_iterator(fresh.parent_path()), fs::directory_iterator()) == 1);
    }
    fs::remove_all(folder);
  }
}

namespace {

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// An environment variable while one exists.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    const char* before = std::getenv(name);
    had_ = before != nullptr;
    if (had_) before_ = before;
    value.empty() ? unsetenv(name) : setenv(name, value.c_str(), 1);
  }
  ~Variable() { had_ ? setenv(name_, before_.c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  bool had_ = false;
  std::string before_;
};

}  // namespace

TEST_CASE("a damaged profile in Tasuki's own cache counts as missing, one that the user named is an error") {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks > 2) return;  // nothing is kept where ranks outnumber the cores
  const fs::path folder = common_folder();
  const Variable cache("XDG_CACHE_HOME", folder.string());
  const Variable none("TASUKI_PROFILE", "");
  const auto use = [] { const Context ctx(MPI_COMM_WORLD); };
  const auto measure = [] {
    const Context ctx(MPI_COMM_WORLD);
    (void)machine_of(ctx);
  };
  measure();
  MPI_Barrier(MPI_COMM_WORLD);
  REQUIRE(std::distance(fs::directory_iterator(folder / "tasuki"), fs::directory_iterator()) == 1);
  const fs::path file = fs::directory_iterator(folder / "tasuki")->path();
  // Versions with other files do not share one.
  CHECK(file.filename().string().find("profile-13-") == 0);
  const std::string good = text_of(file);
  CHECK(good.find("\"measured\"") != std::string::npos);
  for (const std::string& bad : {std::string(), good.substr(0, good.size() / 2), std::string(good.size(), '\0'),
                                 std::string("{\"version\": 999, \"paths\": {}}"), std::string("<<<<<<< HEAD")}) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) std::ofstream(file) << bad;
    MPI_Barrier(MPI_COMM_WORLD);
    {
      const Variable named("TASUKI_PROFILE", file.string());
      CHECK(error_of(use).find("machine profile " + file.string()) != std::string::npos);
    }
    // Rank 0 says so in one line.
    const std::string said = printed([&] { CHECK(error_of(use) == "no error"); });
    CHECK(std::ranges::count(said, '\n') == (rank == 0 ? 1 : 0));
    CHECK((said.find(file.string()) != std::string::npos) == (rank == 0));
  }
  CHECK(error_of(measure) == "no error");
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(error_of([&] {
          const Variable named("TASUKI_PROFILE", file.string());
          use();
        }) == "no error");  // it was measured again
  // A folder in its place cannot be replaced, and is no reason to stop either.
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    fs::remove(file);
    fs::create_directory(file);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(error_of(use) == "no error");
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) fs::remove_all(folder);
}
