// The profile's file: see profile_file.hpp.
#include "calibrate/profile_file.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "session/collective.hpp"
#include "session/mpi.hpp"
#include "support/text_file.hpp"

namespace tasuki {

namespace {

// Latencies depend on the MPI as much as on the machine, so each MPI has its own file.
std::string mpi_name() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  mpi::Get_library_version(text, &length);
  std::string name;
  for (const char c : std::string(text, static_cast<std::size_t>(length)).substr(0, 40)) {
    if (c == ',' || c == '\n') break;
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.') name += c;
  }
  return name;
}

}  // namespace

std::string profile_file(const Runtime& runtime) {
  if (!runtime.settings().profile.empty()) return runtime.settings().profile;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path folder;
  if (cache != nullptr && *cache != '\0') {
    folder = cache;
  } else if (home != nullptr && *home != '\0') {
    folder = std::filesystem::path(home) / ".cache";
  } else {
    return {};
  }
  const std::string& host = runtime.topology().processes[0].name;
  return (folder / "tasuki" / fmt::format("profile-{}-{}.json", host, mpi_name())).string();
}

Profile load_profile(Runtime& runtime) {
  const std::string file = profile_file(runtime);
  std::string text;
  if (runtime.rank() == 0 && !file.empty()) {
    const auto read = read_text(file);
    if (read) text = read->empty() ? " " : *read;  // an empty file is a corrupt one, not a missing one
  }
  text = text_of_root(runtime, text, "reading the machine profile");
  return text.empty() ? Profile() : Profile::from_json(text, file);
}

void save_profile(Runtime& runtime, const Profile& profile) {
  if (runtime.rank() != 0) return;
  const std::string file = profile_file(runtime);
  if (file.empty()) return;
  std::error_code error;
  const std::filesystem::path target(file);
  if (target.has_parent_path()) std::filesystem::create_directories(target.parent_path(), error);
  const std::string draft = fmt::format("{}.{}", file, getpid());
  const std::string machine = fmt::format("{}, {}", runtime.topology().processes[0].name, mpi_name());
  if (!write_text(draft, profile.to_json(machine))) {
    fmt::print(stderr, "tasuki: cannot write the machine profile {}; it will be measured again next time\n", draft);
    return;
  }
  std::filesystem::rename(draft, target, error);
  if (error) fmt::print(stderr, "tasuki: cannot write the machine profile {}: {}\n", file, error.message());
}

}  // namespace tasuki
