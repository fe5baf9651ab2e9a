// The halo group: the cases, their fields, and the check that every halo cell came from the cell it stands for.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "case.hpp"

namespace bench {
namespace {

// A value that no other cell, field or round has (while cells * 64 * 1000 stays below 2^53).
double value_of(const tasuki::Grid& grid, const tasuki::Index& at, int field, int round) {
  double cell = 0;
  for (int d = 0; d < grid.ndims(); ++d) cell = cell * static_cast<double>(grid.extent(d)) + static_cast<double>(at[d]);
  return (cell * 64 + field) * 1000 + round;
}

// Calls `f(local offset, global index, is owned)` for every cell in memory, the shadow included.
template <class F>
void for_all_cells(const tasuki::Field<double>& field, F&& f) {
  const tasuki::Box own = field.local_owned();
  const tasuki::Index extents = field.extents();
  const tasuki::Index strides = field.strides();
  tasuki::Index at{};
  for (at[0] = 0; at[0] < extents[0]; ++at[0]) {
    for (at[1] = 0; at[1] < extents[1]; ++at[1]) {
      for (at[2] = 0; at[2] < extents[2]; ++at[2]) {
        tasuki::Index global{};
        bool owned = true;
        for (int d = 0; d < 3; ++d) {
          global[d] = field.owned().lo[d] + at[d] - own.lo[d];
          owned = owned && at[d] >= own.lo[d] && at[d] < own.hi[d];
        }
        f(at[0] * strides[0] + at[1] * strides[1] + at[2], global, owned);
      }
    }
  }
}

// What a cell must hold after the exchange: outside a non-periodic grid, what it held before.
double expected(const tasuki::Grid& grid, tasuki::Index at, bool owned, bool exchange, int field, int round) {
  constexpr double untouched = -1;
  if (!owned && !exchange) return untouched;
  for (int d = 0; d < grid.ndims(); ++d) {
    const bool outside = at[d] < 0 || at[d] >= grid.extent(d);
    if (outside && !grid.periodic(d)) return untouched;
    at[d] = (at[d] + grid.extent(d)) % grid.extent(d);
  }
  return value_of(grid, at, field, round);
}

std::string verify_halo(const HaloCase& problem, bool exchange, Runner& runner) {
  std::string complaint;
  // No barrier between the rounds: a peer that lets a rank run ahead into another's halo must be seen.
  for (int round = 1; round <= 4; ++round) {
    for (std::size_t f = 0; f < problem.fields.size(); ++f) {
      double* data = problem.fields[f].data();
      for_all_cells(problem.fields[f], [&](std::int64_t offset, const tasuki::Index& at, bool owned) {
        data[offset] = owned ? value_of(problem.grid, at, static_cast<int>(f), round) : -1;
      });
    }
    runner.start();
    runner.wait();
    for (std::size_t f = 0; f < problem.fields.size(); ++f) {
      const double* data = problem.fields[f].data();
      for_all_cells(problem.fields[f], [&](std::int64_t offset, const tasuki::Index& at, bool owned) {
        const double right = expected(problem.grid, at, owned, exchange, static_cast<int>(f), round);
        if (data[offset] == right || !complaint.empty()) return;
        complaint = fmt::format("rank {}, round {}, field {}, cell ({}, {}, {}): {} instead of {}",
                                problem.context.rank(), round, f, at[0], at[1], at[2], data[offset], right);
      });
    }
  }
  return agree(problem.context, complaint);
}

// Lines of 64 bytes (fields are aligned to them) that the halo lies in.
std::int64_t cache_lines_of_halo(const tasuki::Field<double>& field) {
  std::set<std::int64_t> lines;
  for_all_cells(field, [&](std::int64_t offset, const tasuki::Index& at, bool owned) {
    bool outside = false;
    for (int d = 0; d < 3; ++d) {
      outside = outside || ((at[d] < 0 || at[d] >= field.grid().extent(d)) && !field.grid().periodic(d));
    }
    if (!owned && !outside) lines.insert(offset * 8 / 64);
  });
  return static_cast<std::int64_t>(lines.size());
}

// One cell in each line of 64 bytes that is sent and one in each that is received: writing and reading these brings the
// lines to this rank's core as computing would.
struct Lines {
  std::vector<std::int64_t> sent;
  std::vector<std::int64_t> received;
};

Lines lines_of(const tasuki::Field<double>& field, const tasuki::Width& width) {
  Lines lines;
  std::int64_t last_sent = -1;
  std::int64_t last_received = -1;
  const tasuki::Box own = field.owned();
  for_all_cells(field, [&](std::int64_t offset, const tasuki::Index& at, bool owned) {
    bool boundary = false;
    for (int d = 0; d < 3; ++d) {
      boundary = boundary || at[d] < own.lo[d] + width.hi[d] || at[d] >= own.hi[d] - width.lo[d];
    }
    std::int64_t& last = owned ? last_sent : last_received;
    if ((owned && !boundary) || offset / 8 == last) return;
    last = offset / 8;
    (owned ? lines.sent : lines.received).push_back(offset);
  });
  return lines;
}

std::string shape(const std::vector<std::int64_t>& cells) {
  if (cells[0] == cells[1] && cells[1] == cells[2]) return fmt::format("{}^3", cells[0]);
  return fmt::format("{}", fmt::join(cells, "x"));
}

}  // namespace

Problem halo_problem(const tasuki::Context& context, const std::vector<std::int64_t>& cells, int fields,
                     const std::vector<int>& split, const tasuki::Width& shadow, const std::vector<bool>& periodic,
                     bool exchange, bool in_use) {
  std::vector<std::int64_t> extents;
  for (std::size_t d = 0; d < cells.size(); ++d) extents.push_back(cells[d] * split[d]);
  tasuki::GridOptions options;
  options.split = split;
  options.periodic = periodic;
  const tasuki::Grid grid(context, extents, options);
  auto halo = std::make_shared<HaloCase>(HaloCase{context, grid, {}, exchange ? shadow : tasuki::Width(0)});
  for (int f = 0; f < fields; ++f) halo->fields.emplace_back(grid, tasuki::FieldOptions{fmt::format("f{}", f), shadow});

  Problem problem;
  problem.make = [halo](const Peer& peer) { return peer.halo ? peer.halo(*halo) : nullptr; };
  problem.verify = [halo, exchange](const Peer&, Runner& runner) { return verify_halo(*halo, exchange, runner); };
  if (exchange) problem.cache_lines = cache_lines_of_halo(halo->fields[0]) * fields;
  if (in_use) {
    auto lines = std::make_shared<Lines>(lines_of(halo->fields[0], shadow));
    problem.before = [halo, lines] {
      for (auto& field : halo->fields) {
        for (const std::int64_t at : lines->sent) field.data()[at] += 1;
      }
    };
    problem.after = [halo, lines] {
      double sum = 0;
      for (auto& field : halo->fields) {
        for (const std::int64_t at : lines->received) sum += field.data()[at];
      }
      volatile double sink = sum;
      static_cast<void>(sink);
    };
  }
  return problem;
}

std::vector<Case> halo_cases(int ranks) {
  std::vector<Case> cases;
  struct Size {
    std::int64_t n;
    std::int64_t width;
    int fields;
    bool quick;
  };
  for (const Size& size : {Size{16, 1, 1, true}, Size{64, 1, 1, true}, Size{64, 1, 4, false}, Size{128, 2, 1, false}}) {
    const std::vector<std::int64_t> cells(3, size.n);
    for (int d = 0; d < 3; ++d) {
      std::vector<int> split(3, 1);
      split[d] = ranks;
      const std::int64_t padded = size.n + 2 * size.width;
      const std::string fields = size.fields > 1 ? fmt::format(" x {} fields", size.fields) : "";
      for (const bool in_use : {false, true}) {
        cases.push_back(
            {in_use ? "halo-in-use" : "halo",
             fmt::format("{} w{}{} split {}", shape(cells), size.width, fields, fmt::join(split, "x")),
             (padded * padded * padded - size.n * size.n * size.n) * 8 * size.fields, size.quick && d == 0,
             [=](const tasuki::Context& context) {
               return halo_problem(context, cells, size.fields, split, size.width, {true, true, true}, true, in_use);
             }});
      }
    }
  }
  // Only the two faces across one dimension: shows what a face costs that is one run, many runs, or single elements.
  for (const std::int64_t n : {64, 128}) {
    const std::vector<std::int64_t> cells(3, n);
    for (int d = 0; d < 3; ++d) {
      std::vector<int> split(3, 1);
      split[d] = ranks;
      std::vector<bool> periodic(3, false);
      periodic[d] = true;
      std::vector<std::int64_t> width(3, 0);
      width[d] = 1;
      cases.push_back({"face", fmt::format("{} w1 faces of dimension {}", shape(cells), d), 2 * n * n * 8, n == 64,
                       [=](const tasuki::Context& context) {
                         return halo_problem(context, cells, 1, split, tasuki::Width(width, width), periodic);
                       }});
    }
  }
  return cases;
}

}  // namespace bench
