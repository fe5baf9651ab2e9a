// Stores: what puts are stored by, on machines whose costs are made up.
#include "engines/host/stores.hpp"

#include <doctest/doctest.h>

using namespace tasuki;

namespace {

// Nanoseconds a byte.
struct Costs {
  double through;
  double past;
};
constexpr Costs kNear{0.025, 0.075};  // cores that share a cache
constexpr Costs kFar{1.0, 0.04};      // cores that do not

// How many of `puts` puts are stored past the caches.
int past_caches(Stores& stores, const Costs& costs, int puts) {
  constexpr std::int64_t kBytes = 64 << 10;
  int past = 0;
  for (int i = 0; i < puts; ++i) {
    const bool kind = stores.past_caches();
    past += kind ? 1 : 0;
    stores.took(kind, kBytes, static_cast<std::int64_t>((kind ? costs.past : costs.through) * kBytes));
  }
  return past;
}

}  // namespace

TEST_CASE("puts are stored through the caches where that is faster, and past them where it is not") {
  Stores near;
  CHECK(past_caches(near, kNear, 1000) < 20);
  Stores far;
  CHECK(past_caches(far, kFar, 1000) > 980);
}

TEST_CASE("what does not gain more than the reader loses is stored through the caches") {
  Stores stores;
  CHECK(past_caches(stores, {0.06, 0.04}, 1000) < 20);
}

TEST_CASE("cores that are moved apart are noticed with the next put, and later that they are together again") {
  Stores stores;
  past_caches(stores, kNear, 100);
  for (int i = 0; i < 3; ++i) {
    CHECK(past_caches(stores, kFar, 2000) > 1950);
    past_caches(stores, kNear, 1100);  // the longest pause between two trials
    CHECK(past_caches(stores, kNear, 1000) < 20);
  }
}

TEST_CASE("a put that was interrupted changes little") {
  Stores stores;
  past_caches(stores, kNear, 100);
  int past = 0;
  for (int i = 0; i < 10; ++i) past += past_caches(stores, kFar, 1) + past_caches(stores, kNear, 99);
  CHECK(past < 10 * 30);
}
