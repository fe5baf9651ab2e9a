// The mesh group: ghost cells of a square mesh in a scrambled order, cut by wavy lines, with levels of doubles a cell.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "case.hpp"
#include "tasuki/memory.hpp"

namespace bench {
namespace {

// What one rank has: global numbers of its cells, owned ones first, and what it exchanges with each other rank.
struct Part {
  std::vector<std::int64_t> cells;
  std::int64_t owned = 0;
  std::vector<MeshCase::Entry> entries;
};

// All ranks come to the same parts, of which each keeps its own.
Part part_of(std::int64_t side, int ranks, int me) {
  const auto owner = [&](std::int64_t cell) {
    const std::int64_t row = cell / side;
    const double wave =
        static_cast<double>(side) / 8 * std::sin(31.4159265 * static_cast<double>(row) / static_cast<double>(side));
    const double at = (static_cast<double>(cell % side) + wave) * ranks / static_cast<double>(side);
    return std::clamp(static_cast<int>(std::floor(at)), 0, ranks - 1);
  };
  std::mt19937 random(7);
  std::vector<std::vector<std::int64_t>> owned(static_cast<std::size_t>(ranks)), ghosts(owned.size());
  for (std::int64_t cell = 0; cell < side * side; ++cell) {
    const int here = owner(cell);
    owned[static_cast<std::size_t>(here)].push_back(cell);
    std::vector<int> wanted;  // the ranks that own a cell beside it
    if (cell >= side) wanted.push_back(owner(cell - side));
    if (cell < side * (side - 1)) wanted.push_back(owner(cell + side));
    if (cell % side > 0) wanted.push_back(owner(cell - 1));
    if (cell % side < side - 1) wanted.push_back(owner(cell + 1));
    std::ranges::sort(wanted);
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    for (const int other : wanted)
      if (other != here) ghosts[static_cast<std::size_t>(other)].push_back(cell);
  }
  for (auto& list : owned) std::shuffle(list.begin(), list.end(), random);
  for (auto& list : ghosts) std::shuffle(list.begin(), list.end(), random);
  Part part;
  part.cells = owned[static_cast<std::size_t>(me)];
  part.owned = std::ssize(part.cells);
  std::map<std::int64_t, std::int64_t> number;  // of the owned cells
  for (std::int64_t i = 0; i < part.owned; ++i) number[part.cells[static_cast<std::size_t>(i)]] = i;
  std::map<int, MeshCase::Entry> entries;
  for (const std::int64_t cell : ghosts[static_cast<std::size_t>(me)]) {
    entries[owner(cell)].receive.push_back(std::ssize(part.cells));
    part.cells.push_back(cell);
  }
  for (int other = 0; other < ranks; ++other)
    for (const std::int64_t cell : ghosts[static_cast<std::size_t>(other)])
      if (owner(cell) == me) entries[other].send.push_back(number[cell]);
  for (auto& [peer, entry] : entries) {
    entry.peer = peer;
    part.entries.push_back(std::move(entry));
  }
  return part;
}

std::string verify_mesh(const MeshCase& mesh, const Part& part, Runner& runner) {
  std::string complaint;
  const auto value = [](std::int64_t cell, std::int64_t level, int round) {
    return static_cast<double>(cell * 100 + level) + 0.25 * round;
  };
  for (int round = 1; round <= 3; ++round) {
    for (std::int64_t i = 0; i < mesh.cells; ++i)
      for (std::int64_t level = 0; level < mesh.levels; ++level)
        mesh.field[i * mesh.levels + level] =
            i < part.owned ? value(part.cells[static_cast<std::size_t>(i)], level, round) : -1;
    runner.start();
    runner.wait();
    for (std::int64_t i = 0; i < mesh.cells && complaint.empty(); ++i)
      for (std::int64_t level = 0; level < mesh.levels && complaint.empty(); ++level)
        if (mesh.field[i * mesh.levels + level] != value(part.cells[static_cast<std::size_t>(i)], level, round))
          complaint = fmt::format("rank {}, round {}, cell {}, level {}: {}", mesh.context.rank(), round, i, level,
                                  mesh.field[i * mesh.levels + level]);
  }
  return agree(mesh.context, complaint);
}

Case mesh_case(std::int64_t side, std::int64_t levels, bool shared, int ranks) {
  // Nobody knows before the mesh is there how many ghosts a rank has: about five for each two rows.
  const std::int64_t bytes = 8 * levels * side * 5 / 2;
  return {"mesh",
          fmt::format("{} x {} cells, {} level{}, {} on {} ranks", side, side, levels, levels == 1 ? "" : "s",
                      shared ? "shared" : "own memory", ranks),
          bytes, side == 300, [=](const tasuki::Context& context) {
            const auto part = std::make_shared<const Part>(part_of(side, context.size(), context.rank()));
            MeshCase one{context, std::ssize(part->cells), levels, part->entries, nullptr};
            const std::int64_t size = 8 * one.cells * levels;
            const auto memory = shared ? tasuki::shared_alloc(context, size)
                                       : std::shared_ptr<std::byte>(new std::byte[static_cast<std::size_t>(size)],
                                                                    std::default_delete<std::byte[]>());
            one.field = reinterpret_cast<double*>(memory.get());
            std::fill_n(one.field, one.cells * levels, 0.0);
            Problem problem;
            problem.make = [one](const Peer& peer) { return peer.mesh ? peer.mesh(one) : nullptr; };
            // The memory lives as long as this function does.
            problem.verify = [one, part, memory](const Peer&, Runner& runner) {
              return verify_mesh(one, *part, runner);
            };
            return problem;
          }};
}

}  // namespace

std::vector<Case> mesh_cases(int ranks) {
  std::vector<Case> cases;
  if (ranks == 1) return cases;
  for (const bool shared : {true, false})
    for (const auto& [side, levels] : {std::pair{300, 1}, std::pair{300, 60}, std::pair{1000, 1}, std::pair{1000, 80}})
      cases.push_back(mesh_case(side, levels, shared, ranks));
  return cases;
}

}  // namespace bench
