// Bind: see bind.hpp.
#include "engines/bind.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <utility>

#include "session/collective.hpp"
#include "session/gpus.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

constexpr std::int64_t kLine = 64;  // a counter fills a cache line, so that no two writers share one
// From this size on a command's destination will not stay in the cache anyway.
constexpr std::int64_t kStreaming = std::int64_t{4} << 20;

// Of all copies of a buffer.
std::int64_t room(const Buffer& buffer, Home home) {
  const std::int64_t lines = (buffer.bytes + kStampedData - 1) / kStampedData;
  const std::int64_t bytes = home == Home::stamped ? lines * kStampedLine : buffer.bytes;
  return (bytes + kLine - 1) / kLine * kLine * buffer.ring;
}

// Where a rank has put a buffer that others touch.
struct Told {
  SharedAddress shared;
  GpuAddress gpu;
};

struct Binding {
  const Planning& planning;
  Program& program;
  const std::vector<Home>& homes;
  int me;
  std::string complaint;  // for when the peers have been told: they wait for that

  bool user(const Buffer& buffer) const { return buffer.role != Role::scratch && buffer.role != Role::signal; }

  std::int64_t room_of(std::size_t b) const { return room(program.plan.buffers[b], homes[b]); }

  void place(std::size_t b, std::byte* at) const {
    const Buffer& buffer = program.plan.buffers[b];
    program.where[b] = {at, room_of(b) / buffer.ring, buffer.ring, buffer.ring > 1, homes[b] == Home::stamped, nullptr};
  }

  // One block a home holds all of this rank's counters and scratch there. Returns what to tell the peers.
  std::string place_own() {
    const auto& buffers = program.plan.buffers;
    const auto mine = [&](std::size_t b, Home home) {
      return buffers[b].rank == me && !user(buffers[b]) && homes[b] == home;
    };
    std::string told;
    for (const Home home : {Home::own, Home::shared, Home::device, Home::stamped, Home::pinned}) {
      std::int64_t total = 0;
      for (std::size_t b = 0; b < buffers.size(); ++b) total += mine(b, home) ? room_of(b) : 0;
      const auto block = total > 0 ? allocate(home, total) : nullptr;
      if (block == nullptr) continue;
      std::byte* at = block.get();
      for (std::size_t b = 0; b < buffers.size(); ++b) {
        if (!mine(b, home)) continue;
        place(b, at);
        Told entry;
        if (home == Home::shared) entry.shared = planning.runtime.memory().find(at, room_of(b));
        std::string why;
        if (home == Home::device || home == Home::stamped) entry.gpu = planning.runtime.gpus->find(at, why);
        at += room_of(b);
        if (home == Home::own || home == Home::pinned) continue;
        told += buffers[b].name + '\n' + std::string(reinterpret_cast<const char*>(&entry), sizeof entry);
      }
      program.memory.push_back(block);
    }
    return told;
  }

  // Zero-filled. Null, with a complaint, if there is no room.
  std::shared_ptr<std::byte> allocate(Home home, std::int64_t bytes) {
    try {
      if (home == Home::shared) return planning.runtime.memory().allocate(bytes);
      if (home == Home::device || home == Home::stamped) return planning.runtime.gpus->allocate(bytes);
      if (home == Home::pinned) {
        return {gpu()->allocate_mapped(bytes), [](std::byte* p) { gpu()->release_mapped(p); }};
      }
      auto* const memory = static_cast<std::byte*>(std::aligned_alloc(kLine, static_cast<std::size_t>(bytes)));
      if (memory == nullptr) throw Error(fmt::format("no memory for {} bytes of scratch", bytes));
      std::memset(memory, 0, static_cast<std::size_t>(bytes));
      return {memory, [](std::byte* p) { std::free(p); }};
    } catch (const Error& error) {
      complaint = error.what();
      return nullptr;
    }
  }

  void place_user() {
    const auto& buffers = program.plan.buffers;
    for (std::size_t b = 0; b < buffers.size(); ++b) {
      // A plan may name a buffer of a rank it never touches (in an expectation).
      if (!user(buffers[b]) || !planning.knows(buffers[b].rank)) continue;
      std::size_t u = 0;
      while (planning.buffers[u].name != buffers[b].name) ++u;
      const UserBuffer& mine = planning.buffers[u];
      const Place& theirs = planning.place(buffers[b].rank, static_cast<int>(u));
      std::array<std::byte*, 2> at{};
      for (std::size_t i = 0; i < static_cast<std::size_t>(theirs.copies); ++i) {
        if (buffers[b].rank == me) at[i] = mine.memory[i];
        if (buffers[b].rank != me && theirs.shared[0].valid()) {
          at[i] = map(buffers[b].rank, theirs.shared[i]);
        }
        if (buffers[b].rank != me && theirs.gpu[0].valid != 0 && reachable(buffers[b].rank)) {
          at[i] = map(buffers[b].rank, theirs.gpu[i]);
        }
      }
      // Both sides change copies alike (checked when the operation is made), so this rank's choice is also the peer's.
      program.where[b] = {at[0],       theirs.copies > 1 ? at[1] - at[0] : 0, theirs.copies, theirs.ring > 1, false,
                          mine.current};
    }
  }

  bool reachable(int rank) const { return planning.runtime.gpus && planning.runtime.gpus->why_not(rank).empty(); }

  std::byte* map(int rank, const GpuAddress& address) { return hold(planning.runtime.gpus->map(rank, address)); }
  std::byte* map(int rank, const SharedAddress& address) {
    return hold(planning.runtime.memory().map(rank, address));  // null if the rank's memory cannot be mapped
  }

  // Its owner does not use a block for anything else while this rank has it mapped.
  std::byte* hold(const std::shared_ptr<std::byte>& mapped) const {
    if (mapped) program.memory.push_back(mapped);
    return mapped.get();
  }

  void place_remote(const std::map<std::pair<int, std::string>, Told>& told) {
    const auto& buffers = program.plan.buffers;
    for (std::size_t b = 0; b < buffers.size(); ++b) {
      if (buffers[b].rank == me || user(buffers[b])) continue;
      const auto it = told.find({buffers[b].rank, buffers[b].name});
      std::byte* at = nullptr;
      if (it != told.end()) {
        at = it->second.gpu.valid != 0 ? map(buffers[b].rank, it->second.gpu) : map(buffers[b].rank, it->second.shared);
      }
      if (at == nullptr) {
        throw Error(fmt::format("rank {}: {}: buffer {} of rank {} cannot be reached (a defect in Tasuki)", me,
                                program.plan.operation, buffers[b].name, buffers[b].rank));
      }
      place(b, at);
    }
  }

  std::vector<std::uint64_t> remote_addresses(const Command& c) const {
    const Buffer& buffer = program.plan.buffers[static_cast<std::size_t>(c.src)];
    std::size_t u = 0;
    while (planning.buffers[u].name != buffer.name) ++u;
    const Place& place = planning.place(buffer.rank, static_cast<int>(u));
    return {place.address.begin(), place.address.begin() + place.copies};
  }

  void lower(int operation, bool threaded) {
    const Plan& plan = program.plan;
    program.channels.resize(plan.commands.size());
    for (std::size_t i = 0; i < plan.commands.size(); ++i) {
      const Command& c = plan.commands[i];
      program.first_function.push_back(static_cast<std::int32_t>(program.functions.size()));
      const Path& path = planning.paths.find(plan.paths[static_cast<std::size_t>(c.path)]);
      if (path.carries(c)) {
        const Located& own = program.where[static_cast<std::size_t>(c.verb == Verb::send ? c.src : c.dst)];
        const std::int64_t rounds = c.loop < 0 ? 1 : plan.loops[static_cast<std::size_t>(c.loop)].count;
        ChannelRequest request{planning.runtime, plan, c, program.where, rounds, operation, {}, {}, threaded};
        for (int copy = 0; copy < own.copies; ++copy) request.local.push_back(own.copy(copy));
        if (c.verb == Verb::copy) request.remote = remote_addresses(c);
        program.channels[i] = path.open(request);
        continue;
      }
      const CopyHint hint = c.bytes >= kStreaming ? CopyHint::streaming : CopyHint::cached;
      for (std::int32_t k = c.first_copy; k < c.first_copy + c.copy_count; ++k) {
        const StridedCopy& copy = plan.copies[static_cast<std::size_t>(k)];
        program.functions.push_back(c.verb == Verb::reduce ? select_add(copy, c.dtype) : select_copy(copy, hint));
      }
    }
  }
};

}  // namespace

Program bind(const Planning& planning, Draft draft, int operation, bool threaded) {
  Runtime& runtime = planning.runtime;
  Program program;
  program.plan = std::move(draft.plan);
  program.where.resize(program.plan.buffers.size());
  Binding binding{planning, program, draft.home, runtime.rank(), {}};
  const std::vector<std::string> blobs(planning.peers.size(), binding.place_own());
  const auto answers = exchange(runtime, planning.peers, blobs);
  all_do(runtime, program.plan.operation, [&] {
    if (!binding.complaint.empty()) throw Error(binding.complaint);
    std::map<std::pair<int, std::string>, Told> told;
    for (std::size_t p = 0; p < answers.size(); ++p) {
      for (std::size_t at = 0; at < answers[p].size();) {
        const std::size_t end = answers[p].find('\n', at);
        Told& entry = told[{planning.peers[p], answers[p].substr(at, end - at)}];
        std::memcpy(&entry, answers[p].data() + end + 1, sizeof entry);
        at = end + 1 + sizeof entry;
      }
    }
    binding.place_user();
    binding.place_remote(told);
    binding.lower(operation, threaded);
  });
  return program;
}

}  // namespace tasuki
