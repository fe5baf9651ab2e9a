// One number of a planner's plan is changed at a time: an offset, a stride, a peer. The verifier must notice each,
// whatever the path, for what is promised never shares copies with what is done.
#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "tasuki/planning.hpp"

using namespace tasuki;

namespace {

Planned planned(const std::string& path, bool reverse = false) {
  Machine machine = Machine::uniform(3, 3, 3);
  HaloShape halo;
  halo.extents = {6, 5, 4};
  halo.grid.split = {3, 1, 1};
  halo.grid.periodic = {true, false, true};
  halo.fields.push_back({.name = "p", .shadow = 2, .width = 2});
  halo.fields.push_back({.name = "q", .element_bytes = 4, .dtype = DType::f32, .shadow = 1, .width = 1, .pad = 3});
  halo.reverse = reverse;
  halo.path = path;
  return plan(machine, halo);
}

// What `text` says of a change that nobody noticed.
int unnoticed(const std::vector<Plan>& plans, std::size_t rank, const Plan& changed, const std::string& what) {
  std::vector<Plan> all = plans;
  all[rank] = changed;
  const bool found = !verify(all).ok();
  CHECK_MESSAGE(found, "unnoticed on rank ", rank, ": ", what);
  return found ? 0 : 1;
}

}  // namespace

TEST_CASE("an offset or a stride of any copy that is shifted is noticed, on every path") {
  for (const char* path : {"shared:put", "shared:pull", "shared:eager", "shared:read", "mpi"}) {
    for (const bool reverse : {false, true}) {
      // Only where the receiver works can it add.
      if (reverse && std::string(path) != "shared:eager" && std::string(path) != "mpi") continue;
      CAPTURE(path);
      CAPTURE(reverse);
      const std::vector<Plan> plans = planned(path, reverse).plans();
      REQUIRE(verify(plans).ok());
      int changes = 0;
      int missed = 0;
      for (const std::size_t rank : {std::size_t{0}, plans.size() - 1}) {  // the others do the same
        for (std::size_t k = 0; k < plans[rank].copies.size(); ++k) {
          const auto change = [&](const char* what, std::int64_t by, std::int64_t StridedCopy::*field) {
            Plan changed = plans[rank];
            changed.copies[k].*field += by;
            ++changes;
            missed += unnoticed(plans, rank, changed, what + (" of copy " + std::to_string(k)));
          };
          for (const std::int64_t by : {-8, 4, 8, 64}) {
            change("src_offset", by, &StridedCopy::src_offset);
            change("dst_offset", by, &StridedCopy::dst_offset);
          }
          for (int d = 0; d < plans[rank].copies[k].ndims; ++d) {
            if (plans[rank].copies[k].dims[d].count == 1) continue;
            for (std::int64_t StridedCopy::Dim::*stride :
                 {&StridedCopy::Dim::src_stride, &StridedCopy::Dim::dst_stride}) {
              Plan changed = plans[rank];
              changed.copies[k].dims[d].*stride += 8;
              ++changes;
              missed += unnoticed(plans, rank, changed, "a stride of copy " + std::to_string(k));
            }
          }
        }
      }
      CHECK(changes > 100);
      CHECK(missed == 0);
    }
  }
}

TEST_CASE("commands and expectations of a plan share no copies, on any path") {
  for (const char* path : {"shared:put", "shared:pull", "shared:eager", "shared:read", "mpi", "auto"}) {
    for (const Plan& one : planned(path).plans()) {
      std::set<std::int32_t> done;
      for (const Command& c : one.commands)
        for (std::int32_t k = c.first_copy; k < c.first_copy + c.copy_count; ++k) done.insert(k);
      for (const Expect& e : one.expects)
        for (std::int32_t k = e.first_copy; k < e.first_copy + e.copy_count; ++k) CHECK_FALSE(done.contains(k));
    }
  }
}

TEST_CASE("the peer of any command that is another is noticed: of waits, of copies that stay here, of all") {
  for (const char* path : {"shared:put", "shared:pull", "shared:eager", "shared:read", "mpi"}) {
    CAPTURE(path);
    const std::vector<Plan> plans = planned(path).plans();
    std::set<Verb> verbs;
    for (std::size_t rank = 0; rank < plans.size(); ++rank) {
      for (std::size_t i = 0; i < plans[rank].commands.size(); ++i) {
        const Command& c = plans[rank].commands[i];
        verbs.insert(c.verb);
        for (std::int32_t peer = -1; peer < 3; ++peer) {
          // What stays on a rank may name that rank or none.
          const bool stays = c.peer == plans[rank].rank;
          if (peer == c.peer || (stays && peer == -1)) continue;
          Plan changed = plans[rank];
          changed.commands[i].peer = peer;
          (void)unnoticed(plans, rank, changed,
                          "peer " + std::to_string(peer) + " of command " + std::to_string(i) + ", which is " +
                              std::string(to_string(c.verb)));
        }
      }
    }
    CHECK(verbs.contains(Verb::copy));
    CHECK(verbs.contains(std::string(path) == "mpi" ? Verb::recv : Verb::wait));
  }
}
