// Settings: see settings.hpp.
#include "session/settings.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "collectives/algorithm.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

/// The variable's value; empty if it is unset.
std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string{} : std::string{value};
}

/// The number that the whole text is, whatever the locale; NaN if it is none.
double number(const std::string& text) {
  double value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = failed == std::errc() && end == text.data() + text.size();
  return whole ? value : std::numeric_limits<double>::quiet_NaN();
}

double deadline_from_environment() {
  const std::string text = variable("TASUKI_DEADLINE");
  if (text.empty()) return Settings{}.deadline;
  const double seconds = number(text);
  if (!(seconds > 0)) throw Error(fmt::format("TASUKI_DEADLINE is '{}'; it must be a number of seconds above 0", text));
  return seconds;
}

/// Throws `Error` if the value names an unknown collective or an unknown algorithm.
void check_algorithms(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string one = text.substr(at, end - at);
    at = end + 1;
    const std::size_t colon = one.find(':');
    if (colon == std::string::npos)
      throw Error(
          fmt::format("TASUKI_ALGORITHM has '{}'; give a collective and one of its algorithms, as in "
                      "'allreduce:ring', or several of these with commas between them",
                      one));
    try {
      check_algorithm(collective_from_string(one.substr(0, colon)), one.substr(colon + 1));
    } catch (const Error& error) {
      throw Error(fmt::format("TASUKI_ALGORITHM has '{}': {}", one, error.what()));
    }
  }
}

bool flag(const char* name, bool otherwise) {
  const std::string text = variable(name);
  if (!text.empty() && text != "0" && text != "1")
    throw Error(fmt::format("{} is '{}'; it must be 0 or 1", name, text));
  return text.empty() ? otherwise : text == "1";
}

}  // namespace

Settings settings_from_environment() {
  Settings settings;
  if (const std::string text = variable("TASUKI_ISLAND"); !text.empty()) {
    const double value = number(text);
    if (!(value >= 0 && value <= std::numeric_limits<int>::max() && value == std::floor(value)))
      throw Error(fmt::format("TASUKI_ISLAND is '{}'; it must be a number of ranks, 0 for whole hosts", text));
    settings.island = static_cast<int>(value);
  }
  settings.deadline = deadline_from_environment();
  if (const std::string text = variable("TASUKI_PATH"); !text.empty()) settings.path = text;
  if (const std::string text = variable("TASUKI_ENGINE"); !text.empty()) settings.engine = text;
  settings.algorithm = variable("TASUKI_ALGORITHM");
  check_algorithms(settings.algorithm);
  if (const std::string text = variable("TASUKI_PASSES"); !text.empty()) {
    if (text != "0" && text != "1") throw Error(fmt::format("TASUKI_PASSES is '{}'; it must be 0 or 1", text));
    settings.passes = text == "1";
  }
  settings.profile = variable("TASUKI_PROFILE");
  settings.trace = variable("TASUKI_TRACE");
  settings.agree = flag("TASUKI_AGREE", settings.agree);
  settings.check = flag("TASUKI_CHECK", settings.check);
  settings.correct = flag("TASUKI_CORRECT", settings.correct);
  settings.pmpi = flag("TASUKI_PMPI", settings.pmpi);
  return settings;
}

double creation_deadline() {
  try {
    return deadline_from_environment();
  } catch (const Error&) {
    return Settings{}.deadline;
  }
}

bool calls_pmpi() {
  return variable("TASUKI_PMPI") != "0";
}

}  // namespace tasuki
