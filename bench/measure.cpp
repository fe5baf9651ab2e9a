// Interleaved timing.
#include "measure.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace bench {
namespace {

// A contender: a peer that is prepared for the case and has passed the check.
struct Contender {
  const Peer* peer = nullptr;
  RunnerPtr runner;
  double init = 0;
  int iterations = 1;
  std::vector<double> samples;
};

double max_over_ranks(const tasuki::Context& context, double value) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, context.comm());
  return value;
}

// A barrier in which nobody spins: while rank 0 works alone, the others leave it the machine.
void sleepy_barrier(const tasuki::Context& context) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(context.comm(), &request);
  for (int done = 0;;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0) return;
    usleep(200);
  }
}

bool on_one_host(const tasuki::Context& context) {
  MPI_Comm here = MPI_COMM_NULL;
  MPI_Comm_split_type(context.comm(), MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
  int ranks = 0;
  MPI_Comm_size(here, &ranks);
  MPI_Comm_free(&here);
  return ranks == context.size();
}

// Ranks of one host go on at the same time by its clock: a barrier lets them go one after the other.
void start_together(const tasuki::Context& context, bool one_host) {
  using Clock = std::chrono::steady_clock;
  const auto now = [] { return static_cast<long long>(Clock::now().time_since_epoch().count()); };
  constexpr long long kAhead = 1000;  // ns
  MPI_Barrier(context.comm());
  if (!one_host) return;
  long long begin = now() + kAhead;
  MPI_Allreduce(MPI_IN_PLACE, &begin, 1, MPI_LONG_LONG, MPI_MAX, context.comm());
  while (now() < begin) continue;
}

// Seconds of this rank for so many iterations.
double run(const tasuki::Context& context, const Problem& problem, Runner& runner, int iterations) {
  const bool whole = !problem.time_start_only && !problem.compute;
  const bool one_host = problem.compute && on_one_host(context);
  double counted = 0;
  MPI_Barrier(context.comm());
  const double begin = MPI_Wtime();
  for (int n = 0; n < iterations; ++n) {
    if (problem.compute) {
      problem.compute();
      start_together(context, one_host);
    } else if (problem.barrier_between) {
      MPI_Barrier(context.comm());
    }
    if (problem.before) problem.before();
    const double since = whole ? 0 : MPI_Wtime();
    runner.start();
    if (problem.time_start_only) counted += MPI_Wtime() - since;
    runner.wait();
    if (problem.compute) counted += MPI_Wtime() - since;
    if (problem.after) problem.after();
  }
  runner.finish();
  return whole ? MPI_Wtime() - begin : counted;
}

double slowest(const tasuki::Context& context, const Problem& problem, const Contender& contender) {
  if (!contender.peer->solo) {
    return max_over_ranks(context, run(context, problem, *contender.runner, contender.iterations));
  }
  double seconds = 0;
  if (context.is_root()) {
    const double begin = MPI_Wtime();
    for (int n = 0; n < contender.iterations; ++n) {
      contender.runner->start();
      contender.runner->wait();
    }
    contender.runner->finish();
    seconds = MPI_Wtime() - begin;
  }
  sleepy_barrier(context);
  return max_over_ranks(context, seconds);
}

// Iterations for a round, by trials that become longer; these also warm the peer up. The best of three trials counts,
// since the first touches everything for the first time and any may be interrupted.
void calibrate(const tasuki::Context& context, const Problem& problem, Contender& contender, double seconds) {
  for (;;) {
    double taken = std::numeric_limits<double>::max();
    for (int trial = 0; trial < 3; ++trial) {
      const double begin = MPI_Wtime();
      slowest(context, problem, contender);
      taken = std::min(taken, max_over_ranks(context, MPI_Wtime() - begin));
    }
    const double fitting = contender.iterations * seconds / std::max(taken, 1e-7);
    if (taken >= seconds / 4) {
      contender.iterations = std::max(1, static_cast<int>(std::lround(fitting)));
      return;
    }
    contender.iterations =
        static_cast<int>(std::clamp(fitting, 2.0 * contender.iterations, 10.0 * contender.iterations));
  }
}

// What `before` and `after` take when no bytes travel; ranks keep step as an exchange would make them.
double use_microseconds(const tasuki::Context& context, const Problem& problem, int rounds) {
  struct Nothing final : Runner {
    void start() override {}
  };
  constexpr int iterations = 200;
  Nothing nothing;
  std::vector<double> samples;
  for (int round = 0; round < rounds; ++round) {
    samples.push_back(max_over_ranks(context, run(context, problem, nothing, iterations)) / iterations * 1e6);
  }
  return percentile(samples, 0.5);
}

// What the times of a case contain that has a barrier before each start.
double barrier_microseconds(const tasuki::Context& context) {
  constexpr int repetitions = 500;
  MPI_Barrier(context.comm());
  const double begin = MPI_Wtime();
  for (int n = 0; n < repetitions; ++n) MPI_Barrier(context.comm());
  return max_over_ranks(context, MPI_Wtime() - begin) / repetitions * 1e6;
}

}  // namespace

double percentile(std::vector<double> samples, double p) {
  std::sort(samples.begin(), samples.end());
  const double at = p * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, samples.size() - 1);
  return samples[below] + (samples[above] - samples[below]) * (at - static_cast<double>(below));
}

std::string agree(const tasuki::Context& context, const std::string& complaint) {
  int who = complaint.empty() ? context.size() : context.rank();
  MPI_Allreduce(MPI_IN_PLACE, &who, 1, MPI_INT, MPI_MIN, context.comm());
  if (who == context.size()) return {};
  auto length = static_cast<int>(complaint.size());
  MPI_Bcast(&length, 1, MPI_INT, who, context.comm());
  std::string text = context.rank() == who ? complaint : std::string(length, ' ');
  MPI_Bcast(text.data(), length, MPI_CHAR, who, context.comm());
  return text;
}

CaseResult measure(const tasuki::Context& context, const Case& one, const std::vector<std::string>& names,
                   const Settings& settings) {
  const Problem problem = one.make(context);
  CaseResult result;
  result.cache_lines = problem.cache_lines;
  result.bound = problem.bound * 1e6;
  std::vector<Contender> contenders;
  for (const Peer& peer : peers()) {
    if (!names.empty() && std::find(names.begin(), names.end(), peer.name) == names.end()) continue;
    if ((problem.time_start_only || problem.overlap) && !peer.splits) continue;
    MPI_Barrier(context.comm());
    const double begin = MPI_Wtime();
    RunnerPtr runner = problem.make(peer);
    if (!runner) continue;
    Contender contender{&peer, std::move(runner), max_over_ranks(context, MPI_Wtime() - begin) * 1e6, 1, {}};
    const std::string complaint = problem.verify(peer, *contender.runner);
    if (!complaint.empty()) {
      result.complaints.push_back(fmt::format("{}/{}: {}: {}", one.group, one.name, peer.name, complaint));
      continue;
    }
    calibrate(context, problem, contender, settings.round_seconds);
    contenders.push_back(std::move(contender));
  }
  const bool barriers = problem.barrier_between && !problem.time_start_only && !problem.compute;
  std::vector<double> barrier;
  for (int round = 0; round < settings.rounds; ++round) {
    if (barriers) barrier.push_back(barrier_microseconds(context));
    // Every round begins with another peer: none always follows the same one.
    for (std::size_t turn = 0; turn < contenders.size(); ++turn) {
      Contender& contender = contenders[(turn + round) % contenders.size()];
      const double seconds = slowest(context, problem, contender);
      contender.samples.push_back(seconds * 1e6 / contender.iterations / contender.runner->exchanges() /
                                  problem.iterations_per_run);
    }
  }
  if (problem.before) {
    result.use = use_microseconds(context, problem, settings.rounds);
    for (Contender& contender : contenders) {
      for (double& sample : contender.samples) sample -= result.use;
    }
  }
  if (barriers) result.barrier = percentile(barrier, 0.5);
  for (const Contender& contender : contenders) {
    Times times{
        contender.peer->name,       0,  0, 0, contender.init, contender.iterations * contender.runner->exchanges(),
        contender.runner->memory(), {}, {}};
    if (const auto seconds = contender.runner->predicted(problem.barrier_between))
      times.predicted = *seconds * 1e6 / problem.iterations_per_run;
    if (problem.overlap) {
      const int iterations = std::max(contender.iterations / 3, 1);
      times.overlap = problem.overlap(*contender.runner, iterations, settings.rounds);
    }
    times.p10 = percentile(contender.samples, 0.1);
    times.median = percentile(contender.samples, 0.5);
    times.p90 = percentile(contender.samples, 0.9);
    result.times.push_back(times);
  }
  return result;
}

}  // namespace bench
