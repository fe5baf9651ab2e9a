// Profile: see profile.hpp. The file is `{"machine": "...", "version": 6, "paths": {"mpi": {"latency": 1e-6, ...}}}`.
#include "paths/profile.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "session/collective.hpp"
#include "session/mpi.hpp"
#include "support/text_file.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

constexpr int kVersion = 6;

// The MPI decides about latencies as much as the machine does: one file for each.
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

double Profile::get(const std::string& section, const std::string& key, double fallback) const {
  const auto s = sections_.find(section);
  if (s == sections_.end()) return fallback;
  const auto k = s->second.find(key);
  return k == s->second.end() ? fallback : k->second;
}

std::string Profile::to_json(const std::string& machine) const {
  nlohmann::json json{{"machine", machine}, {"version", kVersion}, {"paths", sections_}};
  return json.dump(2) + "\n";
}

Profile Profile::from_json(const std::string& text, const std::string& file) {
  const auto fail = [&](const std::string& what) {
    return Error(fmt::format(
        "machine profile {}: {}; delete the file to have it measured again, or set TASUKI_PROFILE to another", file,
        what));
  };
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    throw fail(fmt::format("not JSON at byte {}", error.byte));
  } catch (const nlohmann::json::exception& error) {
    throw fail(error.what());  // a number too large for a double, say
  }
  const bool numbered = json.is_object() && json.contains("version") && json["version"].is_number_integer();
  const int version = numbered ? json["version"].get<int>() : 0;
  if (version < 1 || version > kVersion) throw fail(fmt::format("no profile of version {} or before", kVersion));
  if (version < kVersion) return {};  // it lacks constants that plans are made with now
  if (!json.contains("paths") || !json["paths"].is_object()) throw fail("\"paths\" is missing or no object");
  Profile profile;
  for (const auto& [section, values] : json["paths"].items()) {
    if (!values.is_object()) throw fail(fmt::format("\"paths\".\"{}\" is no object", section));
    for (const auto& [key, value] : values.items()) {
      if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() <= 0) {
        throw fail(fmt::format("\"{}\".\"{}\" is {}, not a positive number", section, key, value.dump()));
      }
      profile.sections_[section][key] = value.get<double>();
    }
  }
  return profile;
}

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
