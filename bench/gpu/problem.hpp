// What a case on GPUs asks of a peer: boxes of fields that go into boxes of other ranks' fields, in stream order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "peer.hpp"
#include "tasuki/tasuki.hpp"

namespace bench {

/// Cells of a three-dimensional field, in local indices.
struct GpuBox {
  std::int64_t lo[3];
  std::int64_t extent[3];
};

/// `from` on rank `source` goes to `to` on rank `target`, which may be the same, in field `field`. Boxes of one move
/// have the same extents, and all ranks' fields are laid out alike.
struct GpuMove {
  int source = 0;
  int target = 0;
  int field = 0;
  GpuBox from{};
  GpuBox to{};
};

struct GpuCase {
  tasuki::Context context;
  std::vector<tasuki::FieldBase> fields;  ///< on the device
  int copy = 0;                           ///< of each field, that is exchanged; Tasuki takes both in turn
  std::vector<GpuMove> moves;             ///< those that this rank has part in, everywhere in the same order
  /// The same as operations of Tasuki over the path of that name. Collective.
  std::function<std::vector<tasuki::Operation>(const std::string& path)> operations;
};

/// Selects this rank's GPU, first, and returns the stream in which all peers work. Collective the first time.
tasuki::Stream gpu_stream(const tasuki::Context& context);

/// Returns when the stream's work has ended; ends the job if it does not.
void finish_stream(const tasuki::Context& context);
void finish_stream(const tasuki::Context& context, tasuki::Stream stream);
/// For an exchange that does not end: giving back what it uses would wait for it.
[[noreturn]] void end_job(const tasuki::Context& context, const std::string& why);

/// A peer that only has an answer to cases on GPUs.
Peer gpu_peer(const std::string& name, std::function<RunnerPtr(const GpuCase&)> make);

/// The box as bytes in memory: rows of `row` bytes, `rows[1]` of them `stride[1]` bytes apart, and so `rows[0]` times.
struct GpuRows {
  std::int64_t offset = 0;  ///< of the first row, from the start of the field
  std::int64_t row = 0;
  std::int64_t rows[2] = {1, 1};
  std::int64_t stride[2] = {0, 0};  ///< 0 where there is one row only
  std::int64_t bytes() const { return row * rows[0] * rows[1]; }
  bool contiguous() const { return rows[0] == 1 && rows[1] == 1; }
};
/// Rows that follow each other without a gap are joined, a contiguous box is one row, and a single level of rows is
/// the inner one.
GpuRows rows_of(const tasuki::FieldBase& field, const GpuBox& box);

/// Local kernels that fill all of the fields, the shadows too, with values that depend on place, rank and round.
void fill_fields(const GpuCase& problem, int round);
/// What is wrong on this rank after the exchange of that round, in or beside the boxes that receive; empty: nothing.
/// Undoes the exchange.
std::string wrong_in_fields(const GpuCase& problem, int round);

/// Runs `act`, and throws on all ranks what it throws on any, with that rank's number. Collective.
void together(const tasuki::Context& context, const std::function<void()>& act);

/// True if it is on all ranks. Collective.
bool everywhere(const tasuki::Context& context, bool here);

/// What `make` makes; null on all ranks if it throws on any, which is reported with the peer's name, each reason once.
/// Collective.
RunnerPtr unless_left_out(const GpuCase& problem, const std::string& peer, const std::function<RunnerPtr()>& make);
RunnerPtr unless_left_out(const tasuki::Context& context, const std::string& peer,
                          const std::function<RunnerPtr()>& make);

/// The same runner with ten of its starts captured in a CUDA graph that is replayed at each start; null for null.
RunnerPtr replayed(const GpuCase& problem, RunnerPtr runner);
RunnerPtr replayed(const tasuki::Context& context, RunnerPtr runner);

/// Tasuki as it chooses by itself.
RunnerPtr tasuki_on_gpus(const GpuCase& problem);

/// GPU, driver, CUDA, NCCL and NVSHMEM, by what a report calls them. Collective.
std::vector<std::pair<std::string, std::string>> gpu_machine(const tasuki::Context& context);
/// Of the NCCL that the peer uses; else why there is none.
std::string nccl_version();
/// Of the NVSHMEM that the peer uses; empty: there is none.
std::string nvshmem_version();
/// Disconnects from NVSHMEM, if it was connected: before the process ends without an error. Collective.
void end_nvshmem();

}  // namespace bench
