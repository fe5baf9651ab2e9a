// Times of paths that cannot be true are told from those that can, and replaced by what plain copies take.
#include "calibrate/plausible.hpp"

#include <doctest/doctest.h>

#include "calibrate/fit.hpp"

using namespace tasuki;

namespace {

// What two cores take: 0.1 us for a word, 8 GB/s.
Times plain() {
  const Seconds copies{1e-7, 4e-6, 6e-6, 64e-6};
  return {copies, copies, 1e-7};
}

Times times(double word, double factor) {
  const Seconds copies{word, 4e-6 * factor, 6e-6 * factor, 64e-6 * factor};
  return {copies, copies, word};
}

}  // namespace

TEST_CASE("times near those of plain copies are believed, others are not") {
  const Times mpi = times(2.4e-7, 2);
  for (const char* name : {"shared:put", "shared:pull", "shared:eager", "shared:read", "mpi"}) {
    INFO(name);
    const Path& path = path_named(name);
    CHECK(implausible(path, times(3e-7, 1.2), plain(), &mpi).empty());
    CHECK(implausible(path, times(3e-7, 2), plain(), nullptr).empty());
    // Faster than any copy: then the copies were disturbed.
    CHECK(implausible(path, times(3e-7, 0.2), plain(), &mpi).empty());
    const bool by_library = path.name == "mpi";
    CHECK(implausible(path, times(3e-7, 9), plain(), nullptr).empty() == by_library);
    CHECK(implausible(path, times(22e-6, 1), plain(), nullptr).empty() == by_library);
  }
  // A word that is dearer than by MPI, though not beyond what an operation may take.
  CHECK(implausible(path_named("shared:put"), times(9e-7, 1), plain(), &mpi).find("by MPI 0.24 us") !=
        std::string::npos);
  CHECK(implausible(path_named("shared:read"), times(9e-7, 1), plain(), &mpi).empty());  // which calls the system
  // What was not measured is not judged.
  CHECK(implausible(path_named("self"), times(3e-7, 1), Times{}, nullptr).empty());
}

TEST_CASE("what is believed instead is the least of all that was measured, and is believed then") {
  const Times mpi = times(2.4e-7, 2);
  for (const char* name : {"shared:put", "shared:pull", "shared:eager"}) {
    INFO(name);
    const Path& path = path_named(name);
    const Times wrong = times(17e-6, 12);
    for (const Times& copies : {plain(), times(9e-6, 40)}) {  // those may have been disturbed as well
      CHECK(!implausible(path, wrong, copies, &mpi).empty());
      const Times found = derived(path, wrong, copies, &mpi);
      CHECK(implausible(path, found, copies, &mpi).empty());
      CHECK(found.one_way.word <= mpi.one_way.word);
      CHECK(found.one_way.bulk <= wrong.one_way.bulk);
      CHECK(constants_of(found, false, false).at("latency") < 1e-6);
    }
    const Times found = derived(path, times(22e-6, 1), plain(), nullptr);
    CHECK(found.one_way.word < 1e-6);
    CHECK(found.one_way.bulk == doctest::Approx(64e-6));  // as measured
  }
  CHECK(derived(path_named("shared:eager"), times(1e-6, 40), plain(), nullptr).one_way.bulk >
        1.9 * plain().one_way.bulk);
}

TEST_CASE("the least of several turns counts, and the spread is that of the two best") {
  std::vector<Times> turns{times(1e-6, 3)};
  CHECK(spread_of(turns) == 0);
  turns.push_back(times(2e-6, 1));
  CHECK(least_of(turns).one_way.word == 1e-6);
  CHECK(least_of(turns).both_ways.bulk == 64e-6);
  CHECK(spread_of(turns) == doctest::Approx(2));
  turns.push_back(times(1.01e-6, 1.02));
  CHECK(spread_of(turns) == doctest::Approx(0.02));
}
