// PathTimer: one path between two ranks while it is measured.
#pragma once

#include <cstddef>
#include <initializer_list>

#include "paths/path.hpp"
#include "tasuki/context.hpp"
#include "tasuki/layout.hpp"
#include "tasuki/operation.hpp"

namespace tasuki {

/// What is moved to measure a path.
constexpr std::int64_t kLarge = 32 << 10;  // about the size of a face
constexpr std::int64_t kLargeOnGpu = 1 << 20;
constexpr std::int64_t kBulk = 512 << 10;  // enough to show a path's full speed, and what it does to caches
constexpr std::int64_t kBulkOnGpu = 64 << 20;
constexpr std::int64_t kRuns = LinkCost::few_runs;
constexpr std::int64_t kRunsOnGpu = 64 << 10;
// Bytes between the runs of 8 bytes. Rows of 64 numbers and their shadows, as programs have them. 512 would put all
// runs into an eighth of a core's cache, which costs four times as much.
constexpr std::int64_t kStride = 528;
constexpr std::int64_t kStrideOnGpu = 512;

/// Called by both ranks alike, with operations of their own between them.
class PathTimer {
 public:
  PathTimer(const Context& context, const Path& path, int a, int b, std::byte* from, std::byte* to);

  /// Seconds of one transfer. What has arrived is sent back from the memory that it arrived in, so that the bytes
  /// really change caches, as they do in programs. A rank alone copies between two blocks of memory.
  double there_and_back(const Layout& layout) const;
  /// Seconds of one transfer, of transfers in one direction that follow each other.
  double one_after_another(const Layout& layout) const;
  /// Seconds in which both ranks get the other's bytes. These are then sent back in the same way.
  double both(const Layout& layout) const;

 private:
  double time(const Layout& layout, std::initializer_list<Operation*> operations) const;
  double time_until_it_fails(const Layout& layout, std::initializer_list<Operation*> operations) const;
  double time_on_gpu(int launches, std::initializer_list<Operation*> operations) const;

  const Context& context_;
  bool on_gpu_;
  int a_;
  int b_;
  std::byte* from_;
  std::byte* to_;
  OperationOptions options_;
};

}  // namespace tasuki
