// The collective group: every collective but broadcast, which has a group of its own, on numbers in shared memory; back
// to back, with a barrier before each, and what a start alone costs. And what a computation beside broadcasts and
// allreduces hides. The collective-own group: large ones on numbers in the program's own memory. The collective-large
// group: the largest. The price group: by what prices are judged, at sizes at which no path was measured, in shared and
// in the program's own memory, between computations that write what is sent and read what has come. The neighbour
// group: neighbour collectives along a ring of all ranks.
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "case.hpp"
#include "collectives/bound.hpp"
#include "tasuki/memory.hpp"
#include "tasuki/operation.hpp"

namespace bench {
namespace {

using tasuki::CollectiveKind;

std::string size_name(std::int64_t bytes) {
  if (bytes >= 1 << 20) return fmt::format("{} MiB", bytes >> 20);
  if (bytes >= 1 << 10) return fmt::format("{} KiB", bytes >> 10);
  return fmt::format("{} B", bytes);
}

// Small whole numbers, whose sums are exact.
double value_of(int rank, std::int64_t at, int round) {
  return static_cast<double>((at * 7 + rank * 5 + round * 3) % 101);
}

double sum_of(int first, int last, std::int64_t at, int round) {
  double sum = 0;
  for (int rank = first; rank <= last; ++rank) sum += value_of(rank, at, round);
  return sum;
}

std::int64_t blocks_of(CollectiveKind kind, int ranks, bool ring) {
  return ring ? 2 : has_blocks(kind) ? ranks : 1;
}

// How many numbers a rank has to get; number `at` of them.
std::int64_t expected_count(const CollectiveCase& c) {
  const bool root = c.context.is_root();
  const std::int64_t ranks = c.ring ? 2 : c.context.size();
  switch (c.kind) {
    case CollectiveKind::reduce:
      return root ? c.count : 0;
    case CollectiveKind::gather:
      return root ? c.count * ranks : 0;
    case CollectiveKind::allgather:
    case CollectiveKind::alltoall:
      return c.count * ranks;
    case CollectiveKind::barrier:
      return 0;
    case CollectiveKind::exscan:
      return root ? 0 : c.count;
    default:
      return c.count;
  }
}

double expected(const CollectiveCase& c, std::int64_t at, int round) {
  const int me = c.context.rank();
  const int last = c.context.size() - 1;
  if (c.ring) {
    const std::int64_t block = at / c.count;  // of what comes, and of what that rank sends
    const bool each = c.kind == CollectiveKind::alltoall;
    return value_of(block == 0 ? c.last() : c.next(), (each ? block * c.count : 0) + at % c.count, round);
  }
  switch (c.kind) {
    case CollectiveKind::reduce_scatter:
      return sum_of(0, last, me * c.count + at, round);
    case CollectiveKind::scan:
      return sum_of(0, me, at, round);
    case CollectiveKind::exscan:
      return sum_of(0, me - 1, at, round);
    case CollectiveKind::gather:
    case CollectiveKind::allgather:
      return value_of(static_cast<int>(at / c.count), at % c.count, round);
    case CollectiveKind::alltoall:
      return value_of(static_cast<int>(at / c.count), me * c.count + at % c.count, round);
    case CollectiveKind::broadcast:
      return value_of(0, at, round);
    case CollectiveKind::scatter:
      return value_of(0, me * c.count + at, round);
    default:
      return sum_of(0, last, at, round);
  }
}

// Where a rank's result is.
const double* result_of(const CollectiveCase& c) {
  return c.kind == CollectiveKind::broadcast ? c.in : c.out;
}

std::string verify_collective(const CollectiveCase& c, Runner& runner) {
  std::string complaint;
  const std::int64_t room = c.count * blocks_of(c.kind, c.context.size(), c.ring);
  for (int round = 1; round <= 3; ++round) {
    for (std::int64_t i = 0; i < room; ++i) {
      c.in[i] = value_of(c.context.rank(), i, round);
      c.out[i] = -1;
    }
    runner.start();
    runner.wait();
    for (std::int64_t i = 0; i < expected_count(c) && complaint.empty(); ++i) {
      const double got = result_of(c)[i];
      if (got == expected(c, i, round)) continue;
      complaint = fmt::format("rank {}, round {}, number {}: {} instead of {}", c.context.rank(), round, i, got,
                              expected(c, i, round));
    }
  }
  return agree(c.context, complaint);
}

enum class Timed { back_to_back, after_barrier, start, overlap };
enum class Place { shared, own };

struct Form {
  std::string group = "collective";
  Timed timed = Timed::back_to_back;
  Place place = Place::shared;
  bool ring = false;
};

std::shared_ptr<std::byte> allocated(const tasuki::Context& context, std::int64_t bytes, Place place) {
  if (place == Place::shared) return tasuki::shared_alloc(context, bytes);
  constexpr std::align_val_t kPage{4096};
  std::shared_ptr<std::byte> memory(static_cast<std::byte*>(::operator new(static_cast<std::size_t>(bytes), kPage)),
                                    [](std::byte* p) { ::operator delete(p, kPage); });
  // As NumPy does for its arrays. That it may be refused changes nothing.
  if (bytes >= 4 << 20) static_cast<void>(madvise(memory.get(), static_cast<std::size_t>(bytes), MADV_HUGEPAGE));
  return memory;
}

// Writes to every line that is sent next, and reads every line that has come.
std::function<void()> computation(const CollectiveCase& c, std::int64_t numbers) {
  return [c, numbers, round = 0]() mutable {
    constexpr std::int64_t kLine = 8;  // numbers
    const bool in_place = c.kind == CollectiveKind::broadcast;
    ++round;
    if (!in_place || c.context.is_root())
      for (std::int64_t i = 0; i < numbers; i += kLine) c.in[i] = round;
    const double* got = result_of(c);
    double sum = 0;
    for (std::int64_t i = 0; i < numbers; i += kLine) sum += got[i];
    volatile double used = sum;
    static_cast<void>(used);
  };
}

Case collective_case(int ranks, CollectiveKind kind, std::int64_t bytes, const Form& form) {
  const Timed timed = form.timed;
  // Where there are blocks, all of them together are as large as that.
  const std::int64_t blocks = blocks_of(kind, ranks, form.ring);
  const std::int64_t count = kind == CollectiveKind::barrier ? 0 : std::max<std::int64_t>(bytes / 8 / blocks, 1);
  const bool often = timed == Timed::back_to_back || timed == Timed::after_barrier;
  const bool quick = often ? bytes == 8 || bytes == 256 << 10 : timed == Timed::overlap && bytes == 1 << 20;
  std::string name = (form.ring ? "neighbour " : "") + std::string(to_string(kind));
  if (kind != CollectiveKind::barrier) name += " " + size_name(std::max(bytes, 8 * blocks));
  if (form.group == "price") name += form.place == Place::shared ? " shared" : " own";
  if (timed == Timed::start) name = "start of " + name;
  if (timed == Timed::overlap) name = "overlap of " + name;
  if (timed == Timed::after_barrier) name += " after barrier";
  return {form.group, name, 8 * count * blocks, quick, [=](const tasuki::Context& context) {
            const auto room = 8 * std::max<std::int64_t>(count * blocks, 1);
            const auto in = allocated(context, room, form.place);
            const auto out = allocated(context, room, form.place);
            const CollectiveCase one{context,
                                     kind,
                                     count,
                                     reinterpret_cast<double*>(in.get()),
                                     reinterpret_cast<double*>(out.get()),
                                     timed == Timed::overlap,
                                     form.ring,
                                     form.place == Place::shared};
            Problem problem;
            problem.make = [one](const Peer& peer) { return peer.collective ? peer.collective(one) : nullptr; };
            // The memory lives as long as this function does.
            problem.verify = [one, in, out](const Peer&, Runner& runner) { return verify_collective(one, runner); };
            problem.barrier_between = timed != Timed::back_to_back;
            problem.time_start_only = timed == Timed::start;
            if (timed == Timed::overlap) {
              problem.overlap = [context](Runner& runner, int iterations, int rounds) {
                return overlap_of(context, runner, iterations, rounds);
              };
            }
            if (form.group == "price") problem.compute = computation(one, room / 8);
            if (often && !form.ring && form.group != "price")
              problem.bound = bound_of_collective(context, kind, count, tasuki::DType::f64);
            return problem;
          }};
}

}  // namespace

double bound_of_collective(const tasuki::Context& context, CollectiveKind kind, std::int64_t count,
                           tasuki::DType type) {
  const tasuki::Machine machine = tasuki::machine_of(context);
  tasuki::CollectiveShape shape;
  shape.kind = kind;
  shape.count = count;
  shape.type = type;
  return tasuki::bound_of(machine, tasuki::Collective(machine, shape)).seconds;
}

std::vector<Case> collective_cases(int ranks) {
  std::vector<Case> cases;
  if (ranks < 2) return cases;
  for (const CollectiveKind kind :
       {CollectiveKind::allreduce, CollectiveKind::reduce, CollectiveKind::allgather, CollectiveKind::reduce_scatter,
        CollectiveKind::alltoall, CollectiveKind::gather, CollectiveKind::scatter, CollectiveKind::scan,
        CollectiveKind::exscan, CollectiveKind::barrier}) {
    for (const Timed timed : {Timed::back_to_back, Timed::after_barrier}) {
      for (const std::int64_t bytes :
           {8LL, 64LL, 512LL, 4LL << 10, 32LL << 10, 256LL << 10, 1LL << 20, 4LL << 20, 16LL << 20}) {
        if (bytes > 8 && kind == CollectiveKind::barrier) continue;
        if (bytes < 8 * ranks && has_blocks(kind) && bytes > 8) continue;  // the same once more
        cases.push_back(collective_case(ranks, kind, bytes, {.timed = timed}));
      }
    }
    cases.push_back(collective_case(ranks, kind, 8, {.timed = Timed::start}));
  }
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::allreduce})
    for (const std::int64_t bytes : {1LL << 20, 16LL << 20})
      cases.push_back(collective_case(ranks, kind, bytes, {.timed = Timed::overlap}));
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::reduce, CollectiveKind::allreduce,
                                    CollectiveKind::allgather, CollectiveKind::alltoall})
    for (const std::int64_t bytes : {256LL << 10, 1LL << 20, 4LL << 20, 16LL << 20})
      cases.push_back(collective_case(ranks, kind, bytes, {.group = "collective-own", .place = Place::own}));
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::allreduce, CollectiveKind::reduce,
                                    CollectiveKind::allgather, CollectiveKind::reduce_scatter, CollectiveKind::alltoall,
                                    CollectiveKind::gather, CollectiveKind::scatter, CollectiveKind::scan})
    for (const std::int64_t bytes : {64LL << 20, 256LL << 20})
      cases.push_back(collective_case(ranks, kind, bytes, {.group = "collective-large"}));
  for (const CollectiveKind kind : tasuki::all_collectives())
    for (const Place place : {Place::shared, Place::own})
      for (const std::int64_t bytes :
           {64LL, 2LL << 10, 12LL << 10, 64LL << 10, 256LL << 10, 1LL << 20, 5LL << 20, 12LL << 20}) {
        if (kind == CollectiveKind::barrier && (bytes > 64 || place == Place::own)) continue;
        cases.push_back(
            collective_case(ranks, kind, bytes, {.group = "price", .timed = Timed::after_barrier, .place = place}));
      }
  for (const CollectiveKind kind : {CollectiveKind::allgather, CollectiveKind::alltoall})
    for (const Timed timed : {Timed::back_to_back, Timed::after_barrier})
      for (const std::int64_t bytes : {16LL, 4LL << 10, 256LL << 10, 4LL << 20, 16LL << 20})
        cases.push_back(collective_case(ranks, kind, bytes, {.group = "neighbour", .timed = timed, .ring = true}));
  return cases;
}

}  // namespace bench
