// The machine profile: reads back what it wrote, and says where a corrupt file is wrong.
#include "paths/profile.hpp"

#include <doctest/doctest.h>

#include <string>

#include "tasuki/error.hpp"

using namespace tasuki;

namespace {
std::string complaint(const std::string& text) {
  try {
    Profile::from_json(text, "p.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}
}  // namespace

TEST_CASE("a profile reads back and answers with measured values before fallbacks") {
  Profile profile;
  profile.set("mpi", {{"latency", 1.5e-6}, {"bandwidth", 3e9}});
  const Profile back = Profile::from_json(profile.to_json("a machine"), "p.json");
  CHECK(back.sections() == profile.sections());
  CHECK(back.get("mpi", "latency", 7) == 1.5e-6);
  CHECK(back.get("mpi", "per_run", 7) == 7);
  CHECK(back.get("shared:put", "latency", 7) == 7);
}

TEST_CASE("a corrupt profile is named with the place and what to do") {
  const std::string advice = "delete the file to have it measured again, or set TASUKI_PROFILE to another";
  CHECK(complaint("{\"version\": 1,").find("p.json: not JSON at byte") != std::string::npos);
  CHECK(complaint(" ").find(advice) != std::string::npos);
  CHECK(complaint("[]").find("no profile of version 1") != std::string::npos);
  CHECK(complaint("{\"version\": 2, \"paths\": {}}").find("no profile of version 1") != std::string::npos);
  CHECK(complaint("{\"version\": 1}").find("\"paths\" is missing") != std::string::npos);
  CHECK(complaint("{\"version\": 1, \"paths\": {\"mpi\": 3}}").find("\"mpi\" is no object") != std::string::npos);
  CHECK(complaint("{\"version\": 1, \"paths\": {\"mpi\": {\"latency\": -1}}}").find("\"mpi\".\"latency\" is -1") !=
        std::string::npos);
  CHECK(complaint("{\"version\": 1, \"paths\": {\"mpi\": {\"latency\": \"fast\"}}}").find("not a positive number") !=
        std::string::npos);
}
