// The machine files that come with Tasuki, for tests.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tasuki/machine.hpp"

/// The machine of a file of `machines/`, by its name without `.json`.
inline tasuki::Machine shipped_machine(const std::string& name) {
  const std::filesystem::path file = std::filesystem::path(TASUKI_MACHINES) / (name + ".json");
  std::ifstream in(file);
  REQUIRE(in.good());
  std::ostringstream text;
  text << in.rdbuf();
  return tasuki::Machine::from_json(text.str(), file.string());
}
