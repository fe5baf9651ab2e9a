// Bind: see bind.hpp.
#include "engines/bind.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "paths/path.hpp"
#include "plan/label.hpp"
#include "session/gpus.hpp"
#include "support/fail_point.hpp"
#include "tasuki/error.hpp"
#include "transports/transport.hpp"

namespace tasuki {

namespace {

constexpr std::int64_t kLine = 64;  // a counter fills a cache line, so that no two writers share one
// A command that moves so many bytes evicts its destination from the cache anyway: source and destination of all ranks
// of the host do not fit. Never less than this.
constexpr std::int64_t kStreaming = std::int64_t{4} << 20;

std::int64_t streaming_from(const Runtime& runtime) {
  std::int64_t ranks = 0;
  for (int rank = 0; rank < runtime.size(); ++rank) ranks += runtime.topology().same_host(runtime.rank(), rank) ? 1 : 0;
  return std::max<std::int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE) / (2 * ranks), kStreaming);
}

// Bytes of all instances of a buffer.
std::int64_t room(const Buffer& buffer) {
  const std::int64_t lines = (buffer.bytes + kLLLineData - 1) / kLLLineData;
  const std::int64_t bytes = buffer.home == Home::ll ? lines * kLLLineBytes : buffer.bytes;
  return (bytes + kLine - 1) / kLine * kLine * buffer.ring;
}

bool is_user(const Buffer& buffer) {
  return buffer.role != Role::scratch && buffer.role != Role::signal;
}

// What a rank tells its peers about a buffer: the address of each copy of a user's buffer, or of the first instance of
// a link's buffer.
struct Told {
  std::int32_t copies = 1;
  std::array<SharedAddress, 2> shared{};
  std::array<GpuAddress, 2> gpu{};
  std::array<std::uint64_t, 2> address{};  // in the owner's address space
};

class Binding {
 public:
  Binding(Runtime& runtime, Program& program, const std::vector<UserBuffer>& users)
      : runtime_(runtime), program_(program), plan_(program.plan), users_(users), me_(program.plan.rank) {
    program.where.resize(plan_.buffers.size());
  }

  // Finds memory for this rank's buffers. Returns what to tell the peers.
  Encoder place_own() {
    Encoder told;
    place_own_scratch(told);
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      if (plan_.buffers[b].rank == me_ && is_user(plan_.buffers[b])) tell(told, plan_.buffers[b], user_address(b));
    }
    return told;
  }

  // Reads what the peers tell: the lowest number that each can give the operation, and its buffers.
  void hear(const std::vector<int>& peers, const std::vector<std::string>& answers) {
    for (std::size_t p = 0; p < answers.size(); ++p) {
      Decoder from(answers[p]);
      numbers_[peers[p]] = std::max(runtime_.channels().lowest(peers[p]), from.number());
      while (!from.empty()) {
        const auto purpose = static_cast<Purpose>(from.number());
        const auto link = static_cast<std::int32_t>(from.number());
        const auto writer = static_cast<std::int32_t>(from.number());
        detail::BufferKey key{purpose, link, writer, from.text()};
        const auto told = from.record<Told>();
        if (told.copies < 0 || told.copies > std::ssize(told.address))
          throw Error(fmt::format("rank {} tells {} copies of a buffer (a defect in Tasuki)", peers[p], told.copies));
        told_[{peers[p], std::move(key)}] = told;
      }
    }
  }

  void place_remote(const std::vector<int>& peers) {
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      // A plan may name, in an expectation, a buffer of a rank that it never touches.
      if (plan_.buffers[b].rank == me_ || !std::binary_search(peers.begin(), peers.end(), plan_.buffers[b].rank))
        continue;
      is_user(plan_.buffers[b]) ? place_remote_user(b) : place_remote_scratch(b);
    }
  }

  void open_channels(const std::vector<int>& peers, bool threaded) {
    for (const int peer : peers) take_number(peer, numbers_.at(peer));
    program_.channels.resize(plan_.commands.size());
    const std::int64_t streaming = streaming_from(runtime_);
    std::map<std::string, std::vector<CarriedCommand>> carried;  // by transport
    for (std::size_t i = 0; i < plan_.commands.size(); ++i) {
      const Command& c = plan_.commands[i];
      program_.first_function.push_back(static_cast<std::int32_t>(program_.functions.size()));
      const Path& path = path_named(plan_.paths[static_cast<std::size_t>(c.path)]);
      if (path.carries(c.verb)) {
        carried[path.transport].push_back(to_carry(static_cast<std::int32_t>(i)));
        continue;
      }
      const CopyHint hint = c.bytes >= streaming ? CopyHint::streaming : CopyHint::cached;
      for (std::int32_t k = c.first_copy; k < c.first_copy + c.copy_count; ++k) {
        const StridedCopy& copy = plan_.copies[static_cast<std::size_t>(k)];
        const bool own = c.verb == Verb::reduce && c.op == ReduceOp::own;
        program_.functions.push_back(own                      ? nullptr
                                     : c.verb == Verb::reduce ? select_reduce(copy, c.dtype, c.op)
                                                              : select_copy(copy, hint));
      }
    }
    for (const auto& [name, commands] : carried) {
      const auto number = [&](int peer) { return numbers_.at(peer); };
      auto channels =
          runtime_.transports->find(name).open({runtime_, plan_, program_.where, commands, number, threaded});
      for (std::size_t i = 0; i < commands.size(); ++i)
        program_.channels[static_cast<std::size_t>(commands[i].command)] = std::move(channels[i]);
    }
  }

 private:
  static void tell(Encoder& told, const Buffer& buffer, const Told& entry) {
    const auto [purpose, link, writer, name] = detail::key_of(buffer);
    told.number(static_cast<std::int64_t>(purpose)).number(link).number(writer).text(name).record(entry);
  }

  // The number is given back with the program.
  void take_number(int peer, std::int64_t number) {
    FailPoint::pass("taking a number with a peer");
    program_.memory.reserve(program_.memory.size() + 1);
    runtime_.channels().take(peer, number);
    program_.memory.emplace_back(
        nullptr, [&runtime = runtime_, peer, number](void*) { runtime.channels().give_back(peer, number); });
  }

  void place(std::size_t b, std::byte* at) {
    const Buffer& buffer = plan_.buffers[b];
    program_.where[b] = {at,     room(buffer) / buffer.ring, buffer.ring, buffer.ring > 1, buffer.home == Home::ll,
                         nullptr};
  }

  // All counters and scratch of this rank of one kind (`Home`) are in one block of memory.
  void place_own_scratch(Encoder& told) {
    const auto& buffers = plan_.buffers;
    for (const Home home : {Home::own, Home::shared, Home::device, Home::ll, Home::pinned}) {
      const auto mine = [&](const Buffer& b) { return b.rank == me_ && !is_user(b) && b.home == home; };
      std::int64_t total = 0;
      for (const Buffer& buffer : buffers) total += mine(buffer) ? room(buffer) : 0;
      if (total == 0) continue;
      const auto block = allocate(home, total);
      program_.memory.push_back(block);
      std::byte* at = block.get();
      for (std::size_t b = 0; b < buffers.size(); ++b) {
        if (!mine(buffers[b])) continue;
        place(b, at);
        // Counters begin at 0. What else a link keeps in shared memory is read only after it was written.
        if (home == Home::shared && buffers[b].role == Role::signal)
          std::memset(at, 0, static_cast<std::size_t>(room(buffers[b])));
        Told entry;
        entry.address[0] = reinterpret_cast<std::uint64_t>(at);
        if (home == Home::shared) entry.shared[0] = runtime_.memory().find(at, room(buffers[b]));
        std::string why;
        if (home == Home::device || home == Home::ll) entry.gpu[0] = runtime_.gpus->find(at, why);
        at += room(buffers[b]);
        if (home != Home::own && home != Home::pinned) tell(told, buffers[b], entry);
      }
    }
  }

  // Zero-filled, but for memory that is shared. Local.
  std::shared_ptr<std::byte> allocate(Home home, std::int64_t bytes) {
    FailPoint::pass("allocating scratch");
    if (home == Home::shared) return runtime_.memory().allocate(bytes, /*zeros=*/false);
    if (home == Home::device || home == Home::ll) return runtime_.gpus->allocate(bytes);
    if (home == Home::pinned) return {gpu()->allocate_mapped(bytes), [](std::byte* p) { gpu()->release_mapped(p); }};
    auto* const memory = static_cast<std::byte*>(std::aligned_alloc(kLine, static_cast<std::size_t>(bytes)));
    if (memory == nullptr) throw Error(ErrorKind::system, fmt::format("no memory for {} bytes of scratch", bytes));
    std::memset(memory, 0, static_cast<std::size_t>(bytes));
    return {memory, [](std::byte* p) { std::free(p); }};
  }

  const UserBuffer& user(const Buffer& buffer) const {
    const auto found =
        std::find_if(users_.begin(), users_.end(), [&](const UserBuffer& u) { return u.name == buffer.name; });
    if (found == users_.end())
      throw Error(fmt::format("rank {}: {}: the plan names buffer '{}', for which no memory was given", me_,
                              plan_.operation, buffer.name.view()));
    return *found;
  }

  // Records the addresses of one of this rank's user buffers and returns what to tell the peers.
  Told user_address(std::size_t b) {
    const Buffer& buffer = plan_.buffers[b];
    const UserBuffer& mine = user(buffer);
    Told entry;
    std::array<std::byte*, 2> at{};
    entry.copies = static_cast<std::int32_t>(mine.memory.size());
    for (std::size_t i = 0; i < std::min(mine.memory.size(), at.size()); ++i) {
      at[i] = mine.memory[i];
      entry.address[i] = reinterpret_cast<std::uint64_t>(at[i]);
      std::string why;
      if (buffer.home == Home::device && mine.bytes > 0) entry.gpu[i] = runtime_.gpus->find(at[i], why);
      if (buffer.home == Home::shared) entry.shared[i] = runtime_.memory().find(at[i], mine.bytes);
    }
    locate_user(b, at, entry.copies);
    return entry;
  }

  void locate_user(std::size_t b, const std::array<std::byte*, 2>& at, int copies) {
    const Buffer& buffer = plan_.buffers[b];
    // Both sides change copies alike (checked when the operation is made), so this rank's current copy is also the
    // peer's.
    program_.where[b] = {at[0], copies > 1 ? at[1] - at[0] : 0, copies, buffer.ring > 1, false, user(buffer).current};
  }

  // Whether a command of this rank that no transport carries loads from the buffer or stores into it.
  bool touches(std::size_t b) const {
    return std::any_of(plan_.commands.begin(), plan_.commands.end(), [&](const Command& c) {
      const auto buffer = static_cast<std::int32_t>(b);
      return (c.src == buffer || c.dst == buffer) &&
             !path_named(plan_.paths[static_cast<std::size_t>(c.path)]).carries(c.verb);
    });
  }

  const Told& told_of(const Buffer& buffer) const {
    const auto found = told_.find({buffer.rank, detail::key_of(buffer)});
    if (found == told_.end())
      throw Error(
          fmt::format("rank {}: {}: rank {} has no buffer '{}' in its plan, but this rank's plan names it; the "
                      "plans of the ranks do not belong together",
                      me_, plan_.operation, buffer.rank, buffer.label()));
    return found->second;
  }

  void place_remote_user(std::size_t b) {
    const Buffer& buffer = plan_.buffers[b];
    const Told& told = told_of(buffer);
    std::array<std::byte*, 2> at{};
    for (std::size_t i = 0; i < static_cast<std::size_t>(told.copies); ++i) {
      if (told.shared[i].valid()) at[i] = hold(runtime_.memory().map(buffer.rank, told.shared[i]));
      if (told.gpu[i].valid != 0 && runtime_.gpus->why_not(buffer.rank).empty())
        at[i] = hold(runtime_.gpus->map(buffer.rank, told.gpu[i]));
    }
    locate_user(b, at, told.copies);
  }

  void place_remote_scratch(std::size_t b) {
    const Buffer& buffer = plan_.buffers[b];
    const Told& told = told_of(buffer);
    std::byte* at = nullptr;
    if (told.gpu[0].valid == 0)
      at = hold(runtime_.memory().map(buffer.rank, told.shared[0]));
    else if (runtime_.gpus->why_not(buffer.rank).empty())
      at = hold(runtime_.gpus->map(buffer.rank, told.gpu[0]));
    // What a message leaves from, or arrives in, at a peer is named as well; this rank never touches it.
    if (at == nullptr && touches(b))
      throw Error(fmt::format("rank {}: {}: buffer {} of rank {} cannot be reached (a defect in Tasuki)", me_,
                              plan_.operation, buffer.label(), buffer.rank));
    place(b, at);
  }

  // Keeps the mapping: the owner does not reuse a block while this rank has it mapped. Null if it cannot be mapped.
  std::byte* hold(const std::shared_ptr<std::byte>& mapped) {
    FailPoint::pass("mapping memory of a peer");
    if (mapped) program_.memory.push_back(mapped);
    return mapped.get();
  }

  CarriedCommand to_carry(std::int32_t index) const {
    const Command& c = plan_.commands[static_cast<std::size_t>(index)];
    CarriedCommand carried;
    carried.command = index;
    carried.rounds = c.loop < 0 ? 1 : plan_.loops[static_cast<std::size_t>(c.loop)].count;
    const Located& own = program_.where[static_cast<std::size_t>(c.verb == Verb::send ? c.src : c.dst)];
    for (int copy = 0; copy < own.copies; ++copy) carried.local.push_back(own.copy(copy));
    if (c.verb == Verb::copy) {
      const Told& told = told_of(plan_.buffers[static_cast<std::size_t>(c.src)]);
      carried.remote.assign(told.address.begin(), told.address.begin() + told.copies);
    }
    return carried;
  }

  Runtime& runtime_;
  Program& program_;
  const Plan& plan_;
  const std::vector<UserBuffer>& users_;
  int me_;
  std::map<std::pair<int, detail::BufferKey>, Told> told_;
  std::map<int, std::int64_t> numbers_;  // of the operation with each peer
};

}  // namespace

std::vector<int> peers_of(const Plan& plan) {
  std::set<int> peers;
  for (const Command& c : plan.commands)
    if (c.peer >= 0 && c.peer != plan.rank) peers.insert(c.peer);
  return {peers.begin(), peers.end()};
}

Program bind(Runtime& runtime, Attempt& attempt, Plan plan, const std::vector<int>& peers,
             const std::vector<UserBuffer>& buffers, bool threaded) {
  Program program;
  program.plan = std::move(plan);
  std::optional<Binding> binding;
  Encoder told;
  attempt.locally("placing the buffers of this rank", [&] {
    for (const int peer : peers_of(program.plan))
      if (!std::ranges::binary_search(peers, peer))
        throw Error(fmt::format("rank {}: {}: the plan deals with rank {}, which takes no part (a defect in Tasuki)",
                                program.plan.rank, program.plan.operation, peer));
    binding.emplace(runtime, program, buffers);
    told = binding->place_own();
  });
  const auto answers = attempt.exchange(
      peers, [&](std::size_t p, Encoder& to) { to.number(runtime.channels().lowest(peers[p])).append(told); });
  attempt.locally("placing the buffers of peers", [&] {
    binding->hear(peers, answers);
    binding->place_remote(peers);
  });
  attempt.locally("opening channels", [&] { binding->open_channels(peers, threaded); });
  return program;
}

}  // namespace tasuki
