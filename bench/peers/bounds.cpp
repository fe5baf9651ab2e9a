// Bounds for halos on two ranks of one host that are cut in the contiguous dimension: what plain loops and a flag in
// shared memory take, each written for this case alone. There, every row of cells has its two ends in cache lines of
// which nothing else travels.
//   bound: packed   packs into a ring in the receiver's shared memory, two planes at a time, and unpacks
//   bound: put      stores straight into the other rank's shadow
//   bound: pull     loads straight from the other rank's cells
// The shadow in the other dimensions is copied by whole rows and planes once both ends of the rows are there.
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "memory/shared_memory.hpp"
#include "peer.hpp"
#include "session/runtime.hpp"

namespace bench {
namespace {

using Flag = std::atomic<std::uint64_t>;

// A rank's part of one field. Strides are in numbers.
struct Part {
  double* data = nullptr;
  double* theirs = nullptr;  // the other rank's part, as this process sees it
  std::int64_t plane = 0;    // from one plane to the next
  std::int64_t row = 0;
  std::int64_t planes = 0;  // owned
  std::int64_t rows = 0;
  std::int64_t cells = 0;
  std::int64_t first = 0;  // the first owned cell, from the start of the memory
};

class Bound : public Runner {
 public:
  explicit Bound(const HaloCase& problem)
      : memory_(tasuki::runtime_of(problem.context).memory()),
        rank_(problem.context.rank()),
        comm_(problem.context.comm()),
        width_(problem.width.lo[2]),
        wraps_(problem.width.lo[0] > 0) {
    for (const auto& field : problem.fields) {
      const tasuki::Box own = field.local_owned();
      Part part;
      part.data = field.data();
      part.plane = field.strides()[0];
      part.row = field.strides()[1];
      part.planes = own.extent(0);
      part.rows = own.extent(1);
      part.cells = own.extent(2);
      part.first = own.lo[0] * part.plane + own.lo[1] * part.row + own.lo[2];
      auto* const bytes = reinterpret_cast<std::byte*>(part.data);
      part.theirs = reinterpret_cast<double*>(of_the_other(bytes, field.extents()[0] * part.plane * 8));
      ring_bytes_ += part.planes * part.rows * 2 * width_ * 8;
      parts_.push_back(part);
    }
    block_ = memory_.allocate(kFlags + 2 * ring_bytes_);
    mine_ = block_.get();
    theirs_ = of_the_other(mine_, kFlags + 2 * ring_bytes_);
  }

 protected:
  static constexpr std::int64_t kFlags = 1024;

  /// Both ranks have two flags, which the other one sets.
  void tell(int number, std::uint64_t value) { flag(theirs_, number).store(value, std::memory_order_release); }
  void await(int number, std::uint64_t value) {
    while (flag(mine_, number).load(std::memory_order_acquire) < value) {
    }
  }
  /// A ring holds two epochs. What came from the other rank in the last one says that it has unpacked the one before.
  double* ring(std::byte* at) const { return reinterpret_cast<double*>(at + kFlags + (epoch_ % 2) * ring_bytes_); }

  /// The shadow rows around the planes [from, to), which are this rank's own rows.
  void wrap_rows(const Part& p, std::int64_t from, std::int64_t to) const {
    if (!wraps_) return;
    const auto bytes = static_cast<std::size_t>(p.cells + 2 * width_) * sizeof(double);
    for (std::int64_t i = from; i < to; ++i) {
      double* const plane = p.data + p.first + i * p.plane - width_;
      for (std::int64_t w = 0; w < width_; ++w) {
        std::memcpy(plane + (w - width_) * p.row, plane + (p.rows - width_ + w) * p.row, bytes);
        std::memcpy(plane + (p.rows + w) * p.row, plane + w * p.row, bytes);
      }
    }
  }
  void wrap_planes(const Part& p) const {
    if (!wraps_) return;
    const auto bytes = static_cast<std::size_t>(p.plane) * sizeof(double);
    double* const first = p.data + p.first - width_ * p.row - width_;
    for (std::int64_t w = 0; w < width_; ++w) {
      std::memcpy(first + (w - width_) * p.plane, first + (p.planes - width_ + w) * p.plane, bytes);
      std::memcpy(first + (p.planes + w) * p.plane, first + w * p.plane, bytes);
    }
  }

  std::vector<Part> parts_;
  std::uint64_t epoch_ = 0;
  std::byte* mine_ = nullptr;
  std::byte* theirs_ = nullptr;

 private:
  static Flag& flag(std::byte* at, int number) { return *reinterpret_cast<Flag*>(at + 128 * number); }

  // Where this process sees what the other rank has in place of `at`. Collective.
  std::byte* of_the_other(const std::byte* at, std::int64_t bytes) {
    const tasuki::SharedAddress mine = memory_.find(at, bytes);
    tasuki::SharedAddress theirs;
    MPI_Sendrecv(&mine, sizeof mine, MPI_BYTE, 1 - rank_, 0, &theirs, sizeof theirs, MPI_BYTE, 1 - rank_, 0, comm_,
                 MPI_STATUS_IGNORE);
    mapped_.push_back(memory_.map(1 - rank_, theirs));
    return mapped_.back().get();
  }

  tasuki::SharedMemory& memory_;
  int rank_;
  MPI_Comm comm_;
  std::int64_t width_;
  bool wraps_;
  std::int64_t ring_bytes_ = 0;
  std::shared_ptr<std::byte> block_;
  std::vector<std::shared_ptr<std::byte>> mapped_;
};

template <int Width>
class Packed : public Bound {
 public:
  explicit Packed(const HaloCase& problem) : Bound(problem) {
    constexpr std::int64_t planes = 2;
    std::int64_t at = 0;
    for (const Part& part : parts_) {
      for (std::int64_t i = 0; i < part.planes; i += planes) {
        steps_.push_back({&part, i, std::min(i + planes, part.planes), at});
        at += (steps_.back().to - i) * part.rows * 2 * Width;
      }
    }
  }

  // Unpacks a step behind what it packs: into the lines from which it has packed just before.
  void start() override {
    const std::size_t n = steps_.size();
    double* const out = ring(theirs_);
    const double* const in = ring(mine_);
    for (std::size_t s = 0; s <= n; ++s) {
      if (s < n) {
        pack(steps_[s], out + steps_[s].at);
        tell(0, epoch_ * n + s + 1);
      }
      if (s == 0) continue;
      await(0, epoch_ * n + s);
      unpack(steps_[s - 1], in + steps_[s - 1].at);
    }
    for (const Part& part : parts_) wrap_planes(part);
    ++epoch_;
  }

 private:
  // Planes of a part, and where they begin in the ring.
  struct Step {
    const Part* part;
    std::int64_t from, to;
    std::int64_t at;
  };

  static void pack(const Step& step, double* __restrict to) {
    const Part& p = *step.part;
    const std::int64_t last = p.cells - Width;
    for (std::int64_t i = step.from; i < step.to; ++i) {
      const double* __restrict row = p.data + p.first + i * p.plane;
      for (std::int64_t j = 0; j < p.rows; ++j, row += p.row, to += 2 * Width) {
        for (int w = 0; w < Width; ++w) to[w] = row[w];
        for (int w = 0; w < Width; ++w) to[Width + w] = row[last + w];
      }
    }
  }
  void unpack(const Step& step, const double* __restrict from) const {
    const Part& p = *step.part;
    for (std::int64_t i = step.from; i < step.to; ++i) {
      double* __restrict row = p.data + p.first + i * p.plane;
      for (std::int64_t j = 0; j < p.rows; ++j, row += p.row, from += 2 * Width) {
        for (int w = 0; w < Width; ++w) row[p.cells + w] = from[w];
        for (int w = 0; w < Width; ++w) row[w - Width] = from[Width + w];
      }
    }
    wrap_rows(p, step.from, step.to);
  }

  std::vector<Step> steps_;
};

template <int Width>
class InPlace : public Bound {
 public:
  InPlace(const HaloCase& problem, bool put) : Bound(problem), put_(put) {}

  // Put: first the other rank has to have read its shadow. Pull: it has to have written its cells, and may write them
  // again only when they have been read. One flag each way says either, before and after.
  void start() override {
    ++epoch_;
    tell(1, epoch_);
    await(1, epoch_);
    for (const Part& p : parts_) put_ ? copy(p, p.data, p.theirs) : copy(p, p.theirs, p.data);
    tell(0, epoch_);
    await(0, epoch_);
    for (const Part& p : parts_) {
      wrap_rows(p, 0, p.planes);
      wrap_planes(p);
    }
  }

 private:
  static void copy(const Part& p, const double* __restrict from, double* __restrict to) {
    const std::int64_t last = p.cells - Width;
    for (std::int64_t i = 0; i < p.planes; ++i) {
      std::int64_t row = p.first + i * p.plane;
      for (std::int64_t j = 0; j < p.rows; ++j, row += p.row) {
        for (int w = 0; w < Width; ++w) to[row + p.cells + w] = from[row + w];
        for (int w = 0; w < Width; ++w) to[row + w - Width] = from[row + last + w];
      }
    }
  }

  bool put_;
};

// Two ranks that map each other's memory, cut in the contiguous dimension only, equal widths of 1 or 2, everything
// periodic that has a shadow.
bool suits(const HaloCase& problem) {
  const auto& [lo, hi] = problem.width;
  if (problem.context.size() != 2 || problem.grid.split(2) != 2 || !problem.grid.periodic(2)) return false;
  if (!tasuki::runtime_of(problem.context).memory().why_not(1 - problem.context.rank()).empty()) return false;
  for (int d = 0; d < 3; ++d) {
    if (lo[d] != hi[d] || (lo[d] != 0 && (lo[d] != lo[2] || !problem.grid.periodic(d)))) return false;
  }
  return lo[0] == lo[1] && (lo[2] == 1 || lo[2] == 2);
}

template <template <int> class Kind, class... Arguments>
Peer bound(const std::string& name, Arguments... arguments) {
  Peer peer;
  peer.name = "bound: " + name;
  peer.halo = [=](const HaloCase& problem) -> RunnerPtr {
    if (!suits(problem)) return nullptr;
    if (problem.width.lo[2] == 1) return std::make_unique<Kind<1>>(problem, arguments...);
    return std::make_unique<Kind<2>>(problem, arguments...);
  };
  return peer;
}

const RegisterPeer kPacked(bound<Packed>("packed"));
const RegisterPeer kPut(bound<InPlace>("put", true));
const RegisterPeer kPull(bound<InPlace>("pull", false));

}  // namespace
}  // namespace bench
