// The profile's file: see profile_file.hpp.
#include "calibrate/profile_file.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "session/collective.hpp"
#include "session/mpi.hpp"
#include "support/text_file.hpp"
#include "tasuki/error.hpp"

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

void save_profile(const Runtime& runtime, const Profile& profile) {
  if (runtime.rank() != 0) return;
  const std::string file = profile_file(runtime);
  if (file.empty()) return;
  if (const auto slash = file.rfind('/'); slash != file.npos && slash > 0) make_private_folders(file.substr(0, slash));
  const std::string machine = fmt::format("{}, {}", runtime.topology().processes[0].name, mpi_name());
  const std::string why = replace_text(file, profile.to_json(machine));
  if (!why.empty())
    fmt::print(stderr, "tasuki: cannot write the machine profile {}: {}; it will be measured again next time\n", file,
               why);
}

// Empty if there is no file that can be used. A damaged one counts as missing: it is only what this program can measure
// again.
std::string own_text(const std::string& file) {
  std::string why = irregular(file);
  std::string text;
  if (why.empty()) {
    const auto read = read_text(file);
    if (!read && errno == ENOENT) return {};
    if (!read) why = std::strerror(errno);
    if (read) text = *read;
  } else {
    why = "it is " + why;
  }
  if (why.empty()) {
    try {
      (void)Profile::parsed(text);
      return text;
    } catch (const Error& error) {
      why = text.empty() ? "it is empty" : error.what();
    }
  }
  fmt::print(stderr, "tasuki: the machine profile {} cannot be used: {}; the machine is measured again\n", file, why);
  return {};
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
  return (folder / "tasuki" / fmt::format("profile-{}-{}-{}.json", Profile::version(), host, mpi_name())).string();
}

Profile load_profile(Runtime& runtime) {
  const std::string file = profile_file(runtime);
  std::string text;
  all_do(runtime, "Context", [&] {
    if (runtime.rank() != 0 || file.empty()) return;
    if (runtime.settings().profile.empty()) {
      text = own_text(file);
      return;
    }
    if (const std::string what = irregular(file); !what.empty())
      throw Error(fmt::format(
          "the machine profile {} is {}; TASUKI_PROFILE must name a file, or one that does not exist yet", file, what));
    const auto read = read_text(file);
    if (read) text = read->empty() ? " " : *read;  // an empty file is a corrupt one, not a missing one
  });
  text = text_of_root(runtime, text, "reading the machine profile");
  return text.empty() ? Profile() : Profile::from_json(text, file);
}

bool crowded(const Runtime& runtime) {
  return runtime.topology().crowded(0);
}

Profile profile_of(const Runtime& runtime) {
  Profile profile;
  for (const auto& [path, cost] : runtime.machine().costs) profile.set(path, section_of(cost));
  profile.set_corrections(runtime.machine().corrections);
  profile.set_provenance(runtime.provenance);
  return profile;
}

bool keep_profile(Runtime& runtime) {
  if (crowded(runtime) || runtime.is_part()) return false;
  save_profile(runtime, profile_of(runtime));
  return true;
}

}  // namespace tasuki
