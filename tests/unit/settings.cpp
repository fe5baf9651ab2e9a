// Environment variables: numbers in every locale, and names that have a slip.
#include "session/settings.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "ranks/error_of.hpp"
#include "session/variables.hpp"

using namespace tasuki;

namespace {

std::vector<std::string> complaints(const std::vector<std::string>& names) {
  return complaints_about_variables(names);
}

// One that the machine has, or one made for the test.
bool set_locale_with_comma() {
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "nl_NL.UTF-8"})
    if (std::setlocale(LC_ALL, name) != nullptr) return true;
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("tasuki-locale-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string make = "localedef -i de_DE -f UTF-8 " + (folder / "de_DE.UTF-8").string() + " > /dev/null 2>&1";
  const bool made = std::system(make.c_str()) == 0;
  setenv("LOCPATH", folder.c_str(), 1);
  const bool set = made && std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr;
  unsetenv("LOCPATH");
  std::filesystem::remove_all(folder);
  return set;
}

}  // namespace

TEST_CASE("numbers in variables have a decimal point, whatever the locale says") {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  if (!set_locale_with_comma()) MESSAGE("this machine has no locale with a decimal comma, and cannot make one");
  setenv("TASUKI_DEADLINE", "8.5", 1);
  CHECK(settings_from_environment().deadline == 8.5);
  CHECK(creation_deadline() == 8.5);
  setenv("TASUKI_DEADLINE", "1e3", 1);
  CHECK(creation_deadline() == 1000);
  for (const char* wrong : {"8,5", "8.5 s", "", "-1", "0", "nan", "ten"}) {
    setenv("TASUKI_DEADLINE", wrong, 1);
    const std::string text = error_of([] { (void)settings_from_environment(); });
    CHECK(text == (*wrong == 0
                       ? "no error"
                       : "TASUKI_DEADLINE is '" + std::string(wrong) + "'; it must be a number of seconds above 0"));
  }
  unsetenv("TASUKI_DEADLINE");
  std::setlocale(LC_ALL, before.c_str());
}

TEST_CASE("a variable with a slip in its name is complained of, with the nearest name") {
  CHECK(complaints({"TASUKI_ALGORITHM", "PATH", "tasuki_path", "TASUKI_TRACE", "MY_TASUKI_X"}).empty());
  const std::vector<std::string> one = complaints({"TASUKI_ALGORITM"});
  REQUIRE(one.size() == 1);
  CHECK(one[0] == "the environment variable TASUKI_ALGORITM means nothing to Tasuki; did you mean TASUKI_ALGORITHM?");
  CHECK(complaints({"TASUKI_ISLANDS", "TASUKI_DEADLIN", "TASUKI_Path"}).size() == 3);
  const std::vector<std::string> far = complaints({"TASUKI_SOMETHING_ELSE"});
  REQUIRE(far.size() == 1);
  CHECK(far[0].find("docs/environment.md has those that do") != std::string::npos);
}

TEST_CASE("every variable in docs/environment.md is known") {
  std::ifstream page(TASUKI_MACHINES "/../docs/environment.md");
  REQUIRE(page);
  std::vector<std::string> names;
  const std::regex variable("`(TASUKI_[A-Z_]+)`");
  for (std::string line; std::getline(page, line);)
    for (std::sregex_iterator at(line.begin(), line.end(), variable), end; at != end; ++at) names.push_back((*at)[1]);
  CHECK(names.size() > 20);
  CHECK(complaints(names).empty());
}
