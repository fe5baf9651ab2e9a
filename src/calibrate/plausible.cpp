// Plausible: see plausible.hpp.
#include "calibrate/plausible.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace tasuki {

namespace {

constexpr double kFar = 3;          // times that are so often longer cannot be true
constexpr double kOverhead = 5e-7;  // seconds that an operation may take beside its copies and signals
constexpr double kCall = 4e-6;      // and with a call of the system
constexpr double kTypical = 2e-7;   // seconds that it does take
constexpr double kDearer = 1.5;     // a store into shared memory takes no longer than MPI, which makes one too ...
constexpr double kClock = 1e-7;     // ... but for this share and these seconds

bool by_library(const Path& path) {
  return path.carries(Verb::send);
}

// It moves bytes by loads and stores alone, between ranks.
bool stores(const Path& path) {
  return path.transport.empty() && !path.name.starts_with("self");
}

// Copies of every byte, one after the other.
double passes(const Path& path) {
  return path.preference == 2 && !path.name.starts_with("self") ? 2 : 1;
}

std::string us(double seconds) {
  return fmt::format("{:.2f} us", seconds * 1e6);
}

std::string too_far(const Path& path, const Seconds& times, const Seconds& plain, const char* ways) {
  for (const auto& [what, member] : {std::pair{"8 bytes", &Seconds::word},
                                     {"32 KiB", &Seconds::large},
                                     {"scattered runs", &Seconds::scattered},
                                     {"512 KiB", &Seconds::bulk}}) {
    const double seconds = times.*member;
    const double copy = plain.*member;
    if (seconds <= 0 || copy <= 0) continue;
    // What libraries and the system make of it is theirs to say.
    if (by_library(path) || (!path.transport.empty() && member == &Seconds::scattered)) continue;
    const double most = passes(path) * copy + kOverhead + (path.transport.empty() ? 0 : kCall);
    if (seconds > kFar * most) return fmt::format("{} {} took {}, plain copies {}", what, ways, us(seconds), us(copy));
  }
  return {};
}

Seconds derived(const Path& path, const Seconds& plain) {
  const auto of = [&](double copy) { return copy <= 0 ? 0 : passes(path) * copy + kTypical; };
  return {of(plain.word), of(plain.large), of(plain.scattered), of(plain.bulk)};
}

}  // namespace

std::string implausible(const Path& path, const Times& times, const Times& plain, const Times* mpi) {
  if (std::string wrong = too_far(path, times.one_way, plain.one_way, "one way"); !wrong.empty()) return wrong;
  if (std::string wrong = too_far(path, times.both_ways, plain.both_ways, "both ways"); !wrong.empty()) return wrong;
  if (mpi == nullptr || !stores(path)) return {};
  for (const auto& [ways, own, other] : {std::tuple{"", times.one_way.word, mpi->one_way.word},
                                         std::tuple{" both ways", times.both_ways.word, mpi->both_ways.word},
                                         std::tuple{" one after the other", times.after, mpi->after}})
    if (other > 0 && own > kDearer * other + kClock)
      return fmt::format("8 bytes{} took {}, by MPI {}", ways, us(own), us(other));
  return {};
}

Times derived(const Path& path, const Times& times, const Times& plain, const Times* mpi) {
  Times found = times;
  const auto lessen = [](double& seconds, double other) {
    if (seconds > 0 && other > 0) seconds = std::min(seconds, other);
  };
  for (const auto& [of, by] : {std::pair{&found.one_way, derived(path, plain.one_way)},
                               std::pair{&found.both_ways, derived(path, plain.both_ways)}})
    for (double Seconds::*member : {&Seconds::word, &Seconds::large, &Seconds::scattered, &Seconds::bulk})
      lessen(of->*member, by.*member);
  if (mpi != nullptr && stores(path)) {
    lessen(found.one_way.word, mpi->one_way.word);
    lessen(found.both_ways.word, mpi->both_ways.word);
  }
  lessen(found.after, found.one_way.word);
  return found;
}

}  // namespace tasuki
