// Names of environment variables: see variables.hpp.
#include "session/variables.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <numeric>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace tasuki {
namespace {

constexpr std::string_view kPrefix = "TASUKI_";

// docs/environment.md: those of the library, then those of building and testing, then options of CMake, which some
// keep in the environment.
constexpr std::string_view kNames[] = {
    "TASUKI_AGREE",       "TASUKI_ALGORITHM",   "TASUKI_CHECK",
    "TASUKI_CORRECT",     "TASUKI_DEADLINE",    "TASUKI_ENGINE",
    "TASUKI_ISLAND",      "TASUKI_PASSES",      "TASUKI_PATH",
    "TASUKI_PMPI",        "TASUKI_PROFILE",     "TASUKI_TRACE",
    "TASUKI_BIN",         "TASUKI_COMMIT",      "TASUKI_MPI",
    "TASUKI_MPIEXEC",     "TASUKI_MPI_ALWAYS",  "TASUKI_MPI_LAYERS",
    "TASUKI_MPI_REPORT",  "TASUKI_CUDA",        "TASUKI_TEST_SHARED_GPUS",
    "TASUKI_FORTRAN",     "TASUKI_PYTHON",      "TASUKI_GPU_PROGRAMS",
    "TASUKI_DOCS",        "TASUKI_SANITIZE",    "TASUKI_TESTS",
    "TASUKI_WERROR",      "TASUKI_APPS",        "TASUKI_DIRECTIVES",
    "TASUKI_INSTALL",     "TASUKI_MPI_LIBRARY", "TASUKI_THIRD_PARTY_INCLUDE",
    "TASUKI_DOXYGEN_XML",
};

// How many letters must be changed, added or left out to make one of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t before = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = before + (a[i - 1] == b[j - 1] ? 0 : 1);
      before = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> complaints_about_variables(std::span<const std::string> names) {
  constexpr std::size_t kNear = 3;
  std::vector<std::string> complaints;
  for (const std::string& name : names) {
    if (!name.starts_with(kPrefix) || std::ranges::find(kNames, name) != std::end(kNames)) continue;
    const auto* const near = std::ranges::min_element(kNames, {}, [&](std::string_view known) {
      return distance(known.substr(kPrefix.size()), name.substr(kPrefix.size()));
    });
    const bool is_near = distance(*near, name) <= kNear;
    complaints.push_back(
        fmt::format("the environment variable {} means nothing to Tasuki{}", name,
                    is_near ? fmt::format("; did you mean {}?", *near) : "; docs/environment.md has those that do"));
  }
  return complaints;
}

void complain_about_variables_once() {
  static bool done = false;
  if (std::exchange(done, true)) return;
  std::vector<std::string> names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    names.emplace_back(text.substr(0, text.find('=')));
  }
  for (const std::string& complaint : complaints_about_variables(names))
    std::fprintf(stderr, "tasuki: %s\n", complaint.c_str());
}

}  // namespace tasuki
