// A plan lowered for a group of blocks, in memory: see lowered.hpp.
#include "kernels/lowered.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "kernels/jobs.hpp"
#include "kernels/listed.hpp"
#include "memory/gpu.hpp"

namespace tasuki {
namespace {

using device::Word;

constexpr std::size_t kAligned = 128;

std::size_t round_up(std::size_t bytes) {
  return (bytes + kAligned - 1) / kAligned * kAligned;
}

// Memory that kernels run in, and memory that they and the host see: the same on a processor.
std::shared_ptr<std::byte> allocate(bool on_gpu, std::size_t bytes) {
  if (on_gpu) return {gpu()->allocate(static_cast<std::int64_t>(bytes)), [](std::byte* p) { gpu()->release(p); }};
  auto* const memory = static_cast<std::byte*>(::operator new(bytes, std::align_val_t(kAligned)));
  std::memset(memory, 0, bytes);
  return {memory, [](std::byte* p) { ::operator delete(p, std::align_val_t(kAligned)); }};
}

std::shared_ptr<PlanFailure> allocate_failure(bool on_gpu) {
  if (!on_gpu) return std::make_shared<PlanFailure>();
  return {reinterpret_cast<PlanFailure*>(gpu()->allocate_mapped(sizeof(PlanFailure))),
          [](PlanFailure* p) { gpu()->release_mapped(reinterpret_cast<std::byte*>(p)); }};
}

// The shares of each block of the group in a part, one row a block. A row that is shorter than others ends with an
// empty share.
struct Rows {
  std::vector<Share> shares;
  int turns = 1;
  int blocks = 0;  // that have something to do
};

GpuTaskHeader header_of(const GpuProgram& program, const GpuTask& task) {
  GpuTaskHeader header;
  std::memcpy(&header, program.bytes.data() + task.offset, sizeof header);
  return header;
}

// Whether a task unpacks LL lines, for which a block waits until they have come.
bool takes_lines(const GpuProgram& program, const GpuTask& task) {
  const GpuTaskHeader header = header_of(program, task);
  const std::byte* const at = program.bytes.data() + task.offset;
  std::int32_t steps = 0;
  std::memcpy(&steps, at + header.ends + static_cast<std::size_t>(header.lanes - 1) * sizeof steps, sizeof steps);
  for (std::int32_t s = 0; s < steps; ++s) {
    GpuStep step;
    std::memcpy(&step, at + header.steps + static_cast<std::size_t>(s) * sizeof step, sizeof step);
    if (step.ll_side == kLLSource) return true;
  }
  return false;
}

Rows rows_of(const GpuProgram& program, int part, int blocks) {
  const auto& tasks = program.tasks[part];
  const auto count = static_cast<int>(tasks.size());
  const int bare = header_of(program, tasks[0]).lanes == 0 ? 1 : 0;  // nothing for single threads: no block for it
  Rows rows;
  rows.blocks = program.blocks[part] - bare;
  const bool in_turns = rows.blocks > blocks;  // then each task has one block
  rows.blocks = std::min(rows.blocks, blocks);
  rows.turns = in_turns ? (count - bare + blocks - 1) / blocks : 1;
  rows.shares.resize(static_cast<std::size_t>(rows.turns) * static_cast<std::size_t>(blocks));
  const auto at = [&](int block, int turn) -> Share& {
    return rows.shares[static_cast<std::size_t>(block) * static_cast<std::size_t>(rows.turns) +
                       static_cast<std::size_t>(turn)];
  };
  if (in_turns) {
    // Single threads first, because others wait for their signals. Tasks that unpack lines last: then what the peers
    // wait for is on its way.
    std::vector<int> order;
    for (int t = bare; t < count; ++t) order.push_back(t);
    std::stable_sort(order.begin() + 1 - bare, order.end(), [&](int a, int b) {
      return takes_lines(program, tasks[static_cast<std::size_t>(a)]) <
             takes_lines(program, tasks[static_cast<std::size_t>(b)]);
    });
    for (int n = 0; n < static_cast<int>(order.size()); ++n) {
      const int t = order[static_cast<std::size_t>(n)];
      at(n % blocks, n / blocks) = {tasks[static_cast<std::size_t>(t)].offset, 0, 1, t == 0 ? 1u : 0u};
    }
    return rows;
  }
  for (int t = bare; t < count; ++t) {
    const GpuTask& task = tasks[static_cast<std::size_t>(t)];
    const int end = t + 1 < count ? tasks[static_cast<std::size_t>(t) + 1].first_block : program.blocks[part];
    for (int block = task.first_block; block < end; ++block) {
      at(block - bare, 0) = {task.offset, static_cast<std::uint32_t>(block - task.first_block),
                             static_cast<std::uint32_t>(end - task.first_block), t == 0 ? 1u : 0u};
    }
  }
  return rows;
}

// A part, for those that run it.
struct PartInMemory {
  std::vector<std::byte> bytes;   // listed moves, jobs or shares
  std::vector<std::byte> places;  // of listed moves
  int turns = 1;
  int working = 0;
};

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& all) {
  std::vector<std::byte> bytes(all.size() * sizeof(T));
  if (!all.empty()) std::memcpy(bytes.data(), all.data(), bytes.size());
  return bytes;
}

}  // namespace

Lowered::Lowered(const GpuProgram& program, std::size_t commands, const KernelGroup& group, int threads, bool on_gpu,
                 std::optional<ListedParts> barrier_free, std::string how)
    : blocks_(group.blocks),
      threads_(threads),
      cells_(group.cells),
      how_(std::move(how)),
      on_gpu_(on_gpu),
      failure_(allocate_failure(on_gpu)) {
  const int blocks = group.blocks;
  const int warps = on_gpu ? threads / static_cast<int>(device::lowered::kLanes) : threads;
  const bool barriers = !barrier_free;
  const auto listed = barriers ? listed_of(program, blocks, warps) : std::move(barrier_free);
  const auto jobs = listed ? std::nullopt : jobs_of(program, blocks, warps);
  handle_.only_moves = !barriers ? OnlyMoves::barrier_free
                       : listed  ? OnlyMoves::listed
                       : jobs    ? OnlyMoves::jobs
                                 : OnlyMoves::no;
  PartInMemory parts[kPartsOfHandle];
  for (int part = 0; part < kPartsOfHandle; ++part) {
    if (listed) {
      const DealtMoves& dealt = (*listed)[static_cast<std::size_t>(part)];
      parts[part] = {bytes_of(dealt.moves), bytes_of(dealt.places), dealt.turns, dealt.blocks};
      handle_.listed[part].rows = dealt.rows;
    } else if (jobs) {
      const DealtJobs& dealt = (*jobs)[static_cast<std::size_t>(part)];
      parts[part] = {bytes_of(dealt.jobs), {}, dealt.turns, dealt.blocks};
    } else if (program.rounds[kPartsLowered[part]].size() == 1) {  // else it is done part by part
      const Rows rows = rows_of(program, kPartsLowered[part], blocks);
      parts[part] = {bytes_of(rows.shares), {}, rows.turns, rows.blocks};
      turns_ = std::max(turns_, rows.turns);
    }
  }
  const bool in_rounds = handle_.only_moves == OnlyMoves::no && program.rounds[kBoth].size() > 1;
  if (in_rounds) parts[kRunPart].working = std::max(parts[kStartPart].working, parts[kWaitPart].working);

  std::size_t bytes = 0;
  const auto place = [&bytes](std::size_t of_it) {
    const std::size_t here = bytes;
    bytes += round_up(of_it);
    return here;
  };
  const std::size_t program_at = place(program.bytes.size());
  std::size_t parts_at[kPartsOfHandle];
  std::size_t places_at[kPartsOfHandle];
  for (int part = 0; part < kPartsOfHandle; ++part) {
    parts_at[part] = place(parts[part].bytes.size());
    places_at[part] = place(parts[part].places.size());
  }
  const std::size_t written = bytes;
  const std::size_t ends_at = place((commands + program.more_ends.size()) * sizeof(std::uint64_t));
  const std::size_t failed_at = place(kAligned);
  const std::size_t begun_at = place(kAligned);
  const std::size_t ended_at = place(kAligned);
  const std::size_t by_host_at = place(kAligned);
  const std::size_t phases_at = place(static_cast<std::size_t>(blocks) * sizeof(Word));
  memory_ = allocate(on_gpu, bytes);
  std::vector<std::byte> image(written);
  const auto put = [&image](const std::vector<std::byte>& of_it, std::size_t here) {
    std::copy(of_it.begin(), of_it.end(), image.begin() + static_cast<std::ptrdiff_t>(here));
  };
  put(program.bytes, program_at);
  for (int part = 0; part < kPartsOfHandle; ++part) {
    put(parts[part].bytes, parts_at[part]);
    put(parts[part].places, places_at[part]);
    std::byte* const at = memory_.get() + parts_at[part];
    if (listed) {
      ListedMoves& moves = handle_.listed[part];
      moves.first = reinterpret_cast<const ListedMove*>(at);
      moves.places = reinterpret_cast<const RowPlaces*>(memory_.get() + places_at[part]);
      moves.turns = parts[part].turns;
    } else if (jobs) {
      handle_.jobs[part] = {reinterpret_cast<const Job*>(at), parts[part].turns};
    } else {
      handle_.shares[part] = reinterpret_cast<const Share*>(at);
    }
    handle_.turns[part] = parts[part].turns;
    handle_.working[part] = parts[part].working;
  }
  if (on_gpu) {
    gpu()->copy(memory_.get(), image.data(), static_cast<std::int64_t>(image.size()));
  } else {
    std::copy(image.begin(), image.end(), memory_.get());
  }
  handle_.heading = {device::kKernelVersion, 0, &failure_->set};
  handle_.run.bytes = memory_.get() + program_at;
  handle_.run.ends = reinterpret_cast<std::uint64_t*>(memory_.get() + ends_at);
  handle_.run.failed = reinterpret_cast<std::uint32_t*>(memory_.get() + failed_at);
  handle_.run.failure = failure_.get();
  handle_.begun = reinterpret_cast<Word*>(memory_.get() + begun_at);
  handle_.ended = reinterpret_cast<Word*>(memory_.get() + ended_at);
  handle_.phases = reinterpret_cast<Word*>(memory_.get() + phases_at);
  by_host_ = reinterpret_cast<Word*>(memory_.get() + by_host_at);
  handle_.by_host[0] = by_host_;
  handle_.by_host[1] = by_host_ + 1;  // stays 0
  handle_.blocks = blocks;
  handle_.threads = threads;
  handle_.in_rounds = in_rounds ? 1 : 0;
  if (listed) {
    const auto& moves = (*listed)[kRunPart].moves;
    const auto copies = [](const ListedMove& move) { return move.kind == MoveKind::copy; };
    handle_.copies = std::any_of(moves.begin(), moves.end(), copies) ? 1 : 0;
  }
  pairs_ = program.pairs;
  more_ends_ = program.more_ends;
}

std::int32_t Lowered::command_of(std::int32_t end, std::size_t commands) const {
  const auto own = static_cast<std::int32_t>(commands);
  return end < own ? end : more_ends_[static_cast<std::size_t>(end - own)];
}

Word Lowered::begun() const {
  return std::atomic_ref<Word>(*handle_.begun).load(std::memory_order_acquire);
}
Word Lowered::ended() const {
  return std::atomic_ref<Word>(*handle_.ended).load(std::memory_order_acquire);
}
void Lowered::host_begins() const {
  std::atomic_ref<Word>(*by_host_).fetch_add(1, std::memory_order_release);
}

}  // namespace tasuki
