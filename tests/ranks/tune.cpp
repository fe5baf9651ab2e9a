// Tuning collectives: what is measured corrects what is chosen from then on, live as off line.
#include "tasuki/tune.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "rank_test.hpp"
#include "tasuki/planning.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

// All ranks, in a context of their own: what it learns stays with it, and is not kept.
Context apart(const Context& ctx) {
  std::vector<int> all(static_cast<std::size_t>(ctx.size()));
  std::iota(all.begin(), all.end(), 0);
  return ctx.subset(all);
}

TuneOptions quick() {
  TuneOptions options;
  options.rounds = 2;
  options.round_seconds = 1e-4;
  return options;
}

}  // namespace

RANK_TEST("tuned collectives: every rank knows the same, and makes the plans that are made off line") {
  if (ctx.size() == 1 || ctx.size() > 3 || std::getenv("TASUKI_PATH") != nullptr) return;
  const std::vector<Correction> before = machine_of(ctx).corrections;
  const Context own = apart(ctx);
  TuneOptions options = quick();
  options.kinds = {CollectiveKind::allreduce, CollectiveKind::broadcast, CollectiveKind::barrier};
  options.sizes = {40, 9000};
  const Tuned tuned = tune_collectives(own, options);
  CHECK(!tuned.kept);
  CHECK(tuned.cases.size() == 9);  // a barrier has one size, and no memory that ranks share or do not
  for (const bool shared : {true, false})
    CHECK(std::count_if(tuned.cases.begin(), tuned.cases.end(),
                        [&](const TunedCase& one) { return one.shared == shared; }) == (shared ? 5 : 4));
  // Of a case all but one may be predicted to take too long to be worth measuring.
  bool several = false;
  for (const TunedCase& one : tuned.cases) {
    std::string names;
    for (const TunedCandidate& c : one.candidates) names += c.name + ", ";
    INFO(to_string(one.kind) << " of " << one.bytes << " B, shared " << one.shared << ": " << names);
    CHECK(!one.candidates.empty());
    several = several || one.candidates.size() > 1;
    for (const TunedCandidate& c : one.candidates) {
      CHECK(c.predicted > 0);
      CHECK(c.again > 0);
    }
    CHECK(one.ratio(one.picked) >= 1);
    CHECK(one.ratio(one.best) == 1);
  }
  CHECK(several);
  CHECK((tuned.within() >= 0 && tuned.within() <= 1));
  for (const std::string& other : ctx.allgather(tuned.to_json())) CHECK(other == tuned.to_json());
  const Machine machine = machine_of(own);
  CHECK(!machine.corrections.empty());
  for (const std::string& other : ctx.allgather(machine.to_json())) CHECK(other == machine.to_json());
  CHECK(Machine::from_json(machine.to_json()) == machine);
  for (const std::int64_t count : {5, 700, 1125, 20000}) {
    std::vector<double> in(static_cast<std::size_t>(count), own.rank() + 1), out(in.size());
    Allreduce live(own, in.data(), out.data(), count, DType::f64);
    CHECK(live.explain().find("corrected") != std::string::npos);
    CollectiveShape shape;
    shape.count = count;
    shape.type = DType::f64;
    CHECK(to_json(plan(machine, shape).plan(own.rank())) == to_json(live.plan()));
    const VerifyReport report = verify(live);
    INFO(report.text());
    CHECK(report.ok());
    for (int turn = 0; turn < 3; ++turn) {
      for (double& number : in) number = own.rank() + turn;
      live.start();
      live.wait();
      CHECK(out.back() == own.size() * turn + own.size() * (own.size() - 1) / 2);
    }
  }
  CHECK(machine_of(ctx).corrections == before);
}

RANK_TEST("tuning refuses what cannot be, on every rank") {
  const auto says = [&](const TuneOptions& options) { return error_of([&] { tune_collectives(ctx, options); }); };
  const auto has = [](const std::string& text, const char* words) {
    INFO(text);
    return text.find(words) != std::string::npos;
  };
  if (ctx.size() == 1) {
    CHECK(has(says(quick()), "one rank alone"));
    return;
  }
  TuneOptions options = quick();
  options.sizes = {8, 0};
  CHECK(has(says(options), "option 'sizes' has 0 bytes"));
  options = quick();
  options.rounds = 0;
  CHECK(has(says(options), "option 'rounds' is 0"));
  options = quick();
  options.round_seconds = 0;
  CHECK(has(says(options), "option 'round_seconds' is 0"));
  options = quick();
  options.rounds = 2 + ctx.rank();
  CHECK(has(says(options), "'rounds' differs between ranks"));
}
