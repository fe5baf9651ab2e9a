// TASUKI_PROFILE names something that is no file: an error on every rank, at once, and nothing is left behind.
#include <doctest/doctest.h>
#include <mpi.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "error_of.hpp"
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
