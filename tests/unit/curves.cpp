// What measured times of contiguous pieces become in a profile.
#include "calibrate/curves.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "calibrate/fit.hpp"
#include "machine/profile.hpp"

using namespace tasuki;

TEST_CASE("a small piece that was disturbed in one kind of memory has the price that it has in the other") {
  const auto times = [](double of_small) {
    Curves::Times all{};
    all.front() = 4e-7;
    for (std::size_t i = 0; i < kCurveSizes.size(); ++i) all[i + 1] = 4e-7 + static_cast<double>(kCurveSizes[i]) / 5e9;
    all[1] += of_small;
    return all;
  };
  const auto section_of = [&](double in_shared, double in_own) {
    Curves curves;
    curves.both = times(in_shared);
    curves.own_both = times(in_own);
    CostSection section;
    curves.tell(section);
    return section;
  };
  const CostSection quiet = section_of(0, 0);
  const auto near = [](double a, double b) { return std::abs(a - b) < 1e-6 * b; };
  CHECK(near(quiet.at("mutual_bandwidth_of_512"), 5e9));
  CHECK(section_of(4e-7, 0) == quiet);
  CHECK(section_of(0, 4e-7) == quiet);
  CHECK(near(section_of(4e-7, 4e-7).at("mutual_bandwidth_of_512"), 2.5e9));  // half of that of the next size at least
  CHECK(near(section_of(-5e-8, 0).at("mutual_bandwidth_of_512"), 5e9));      // and no more than that
}

TEST_CASE("pieces do not seem to take no time where the word was disturbed in every pass") {
  Curves curves;
  curves.one_way.front() = 4e-5;
  for (std::size_t i = 0; i < kCurveSizes.size(); ++i)
    curves.one_way[i + 1] = 4e-7 + static_cast<double>(kCurveSizes[i]) / 5e9;
  CostSection section;
  curves.tell(section);
  for (const std::int64_t size : kCurveSizes) {
    CAPTURE(size);
    const double bandwidth = section.at("bandwidth_of_" + std::to_string(size));
    CHECK(bandwidth > 4e9);
    CHECK(bandwidth < 6e9);
  }
}

TEST_CASE("a program loses what its first stores and loads take more than the same ones again") {
  Curves curves;
  for (std::size_t i = 0; i < kCurveSizes.size(); ++i) {
    curves.use[i + 1] = 5e-6;
    curves.again[i + 1] = 2e-6;
  }
  curves.use[2] = 1e-6;  // disturbed less than the other
  curves.again[3] = 0;   // not measured
  curves.own_again[1] = 1e-6;
  CostSection section;
  curves.tell(section);
  const auto near = [](double a, double b) { return std::abs(a - b) < 1e-6 * b; };
  CHECK(near(section.at("reuse_of_512"), 3e-6));
  CHECK(section.at("reuse_of_4096") > 0);
  CHECK(section.at("reuse_of_4096") < 1e-8);
  CHECK(!section.contains("reuse_of_8192"));
  CHECK(near(section.at("reuse_of_2097152"), 3e-6));
  CHECK(!section.contains("reuse_of_8388608"));  // caches keep nothing of it
  CHECK(section.contains("own_reuse_of_512"));
}
