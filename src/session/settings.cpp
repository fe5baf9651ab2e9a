// Settings: see settings.hpp.
#include "session/settings.hpp"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "tasuki/error.hpp"

namespace tasuki {
namespace {

/// The variable's value; empty if it is unset or empty, which mean the same.
std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string{} : std::string{value};
}

/// The whole text as a number; NaN if it is not one.
double number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return end == text.c_str() + text.size() ? value : std::numeric_limits<double>::quiet_NaN();
}

double deadline_from_environment() {
  const std::string text = variable("TASUKI_DEADLINE");
  if (text.empty()) return Settings{}.deadline;
  const double seconds = number(text);
  if (!(seconds > 0)) throw Error(fmt::format("TASUKI_DEADLINE is '{}'; it must be a number of seconds above 0", text));
  return seconds;
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
  if (const std::string text = variable("TASUKI_PASSES"); !text.empty()) {
    if (text != "0" && text != "1") throw Error(fmt::format("TASUKI_PASSES is '{}'; it must be 0 or 1", text));
    settings.passes = text == "1";
  }
  settings.profile = variable("TASUKI_PROFILE");
  settings.trace = variable("TASUKI_TRACE");
  settings.agree = flag("TASUKI_AGREE", settings.agree);
  settings.check = flag("TASUKI_CHECK", settings.check);
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
