// The environment variables of a context, read in one place.
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "session/runtime.hpp"
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

}  // namespace

Settings settings_from_environment() {
  Settings settings;
  if (const std::string text = variable("TASUKI_ISLAND"); !text.empty()) {
    const double value = number(text);
    if (!(value >= 0 && value <= std::numeric_limits<int>::max() && value == std::floor(value)))
      throw Error(fmt::format("TASUKI_ISLAND is '{}'; it must be a number of ranks, 0 for whole hosts", text));
    settings.island = static_cast<int>(value);
  }
  if (const std::string text = variable("TASUKI_DEADLINE"); !text.empty()) {
    settings.deadline = number(text);
    if (!(settings.deadline > 0))
      throw Error(fmt::format("TASUKI_DEADLINE is '{}'; it must be a number of seconds above 0", text));
  }
  if (const std::string text = variable("TASUKI_PATH"); !text.empty()) settings.path = text;
  if (const std::string text = variable("TASUKI_ENGINE"); !text.empty()) settings.engine = text;
  if (const std::string text = variable("TASUKI_PASSES"); !text.empty()) {
    if (text != "0" && text != "1") throw Error(fmt::format("TASUKI_PASSES is '{}'; it must be 0 or 1", text));
    settings.passes = text == "1";
  }
  settings.profile = variable("TASUKI_PROFILE");
  settings.trace = variable("TASUKI_TRACE");
  return settings;
}

}  // namespace tasuki
