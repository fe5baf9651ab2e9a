// From a shape to a description: see description.hpp.
#include "operations/description.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>

#include "layout/sequence.hpp"
#include "memory/gpu.hpp"
#include "operations/given_memory.hpp"
#include "session/deliver.hpp"
#include "session/gpus.hpp"
#include "tasuki/collectives.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

using Addresses = std::vector<const void*>;

constexpr std::uint64_t kYes = ~std::uint64_t{0};

std::vector<Given> given(const std::vector<MemoryUse>& uses, const Addresses& memory) {
  std::vector<Given> all;
  for (std::size_t b = 0; b < uses.size(); ++b)
    all.push_back({uses[b].name, memory[b], uses[b].range.end - uses[b].range.begin, uses[b].range.begin});
  return all;
}

std::string complaint_about_memory(RankShape& shape, const std::vector<MemoryUse>& uses,
                                   const std::vector<Given>& memory) {
  for (std::size_t b = 0; b < uses.size(); ++b) {
    if (memory[b].bytes == 0) continue;
    if (memory[b].base == nullptr) return fmt::format("{} is null", uses[b].called);
    if (memory[b].base == in_place) return fmt::format("{} is in_place{}", uses[b].called, uses[b].not_in_place);
    if (!uses[b].not_on_gpu.empty() && memory_of(memory[b].at()) == Memory::device) return uses[b].not_on_gpu;
  }
  for (std::size_t b = 0; b < uses.size(); ++b)
    if (std::string wrong = shape.overlap_in(b); !wrong.empty()) return wrong;
  for (std::size_t w = 0; w < memory.size(); ++w) {
    for (std::size_t b = 0; b < memory.size(); ++b) {
      const auto* const written_at = static_cast<const std::byte*>(memory[w].at());
      const auto* const other_at = static_cast<const std::byte*>(memory[b].at());
      if (w == b || memory[w].bytes == 0 || memory[b].bytes == 0 || written_at >= other_at + memory[b].bytes ||
          other_at >= written_at + memory[w].bytes)
        continue;
      const Layout written = shape.bytes_of(w, true);
      for (const bool also_written : {false, true}) {
        if (!meet(shape.bytes_of(b, also_written), written, written_at - other_at)) continue;
        if (also_written || !shape.copies_first(w, b)) return shape.overlapping(w, b);
      }
    }
  }
  return {};
}

// Throws `Malformed` if the message is not of this kind of shape.
void hear(RankShape& shape, int rank, const std::string& message) {
  Decoder from(message);
  if (from.text() != shape.subject()) throw Malformed("something else is told");
  shape.hear(rank, from);
  from.end();
}

// Every rank hears the same, and so finds the same.
void hear_all(Runtime& runtime, Attempt& attempt, RankShape& shape) {
  const std::string operation = shape.operation();
  const auto told = attempt.gather(
      operation,
      [&](Encoder& to) {
        to.text(shape.subject());
        shape.tell(-1, to);
      },
      fmt::format("{}: gathering {}", operation, shape.subject()));
  for (int rank = 0; rank < runtime.size(); ++rank) {
    try {
      hear(shape, rank, told[static_cast<std::size_t>(rank)]);
    } catch (const Malformed&) {  // only where the ranks' calls are not compared
      throw Error(fmt::format("{}: rank {} tells no {}; all ranks must make the same collective", operation, rank,
                              shape.subject()));
    }
  }
  if (const std::string wrong = shape.misfit(); !wrong.empty()) throw Error(fmt::format("{}: {}", operation, wrong));
}

void hear_named(Runtime& runtime, Attempt& attempt, RankShape& shape) {
  std::vector<int> ranks;
  attempt.locally("listing the ranks to tell", [&] { ranks = shape.named(); });
  auto told = deliver(
      runtime, attempt, shape.operation(), ranks,
      [&](std::size_t r, Encoder& to) {
        to.text(shape.subject());
        shape.tell(ranks[r], to);
      },
      "telling the ranks in the list");
  attempt.locally("comparing lists with the ranks in them", [&] {
    for (auto& [rank, message] : told) {
      try {
        hear(shape, rank, message);
      } catch (const Malformed&) {  // only where the ranks' calls are not compared
        throw Error(fmt::format("rank {} makes something else; all ranks must make the same operation", rank));
      }
      message = {};  // long lists need not be there twice
    }
    if (const std::string wrong = shape.misfit(); !wrong.empty()) throw Error(wrong);
  });
}

// What a few ranks make they settle between them; the others of the context have no part in it.
void hear_peers(Runtime& runtime, Attempt& attempt, RankShape& shape, const std::vector<int>& peers) {
  if (peers.empty()) return;
  bool same = true;
  try {
    const auto told = attempt.exchange(peers, [&](std::size_t p, Encoder& to) {
      to.text(shape.subject());
      shape.tell(peers[p], to);
    });
    attempt.locally("reading what peers tell", [&] {
      try {
        for (std::size_t p = 0; p < peers.size(); ++p) hear(shape, peers[p], told[p]);
      } catch (const Malformed&) {
        same = false;
      }
    });
  } catch (const Malformed&) {
    same = false;
  }
  if (!same)
    throw Error(
        fmt::format("the ranks do different things: rank {} makes {}, rank {} something else; two ranks must make what "
                    "they share in the same order",
                    runtime.rank(), shape.name(), fmt::join(peers, ", ")));
}

// The buffers of a problem. `where`: the kind of memory, where all ranks know it.
std::vector<UserBuffer> buffers_of(const Problem& problem, const std::vector<MemoryUse>& uses,
                                   const std::vector<Given>& memory, std::optional<Memory> where) {
  std::vector<UserBuffer> buffers;
  for (const UserRole& role : problem.buffers) {
    UserBuffer& buffer = buffers.emplace_back();
    buffer.name = role.name;
    buffer.role = role.role;
    buffer.where = where.value_or(Memory::host);
    if (role.role == Role::scratch) buffer.bytes = role.bytes;
  }
  for (std::size_t u = 0; u < uses.size(); ++u) {
    if (memory[u].bytes == 0) continue;
    UserBuffer& buffer = buffers[uses[u].buffer < 0 ? u : static_cast<std::size_t>(uses[u].buffer)];
    buffer.bytes = memory[u].bytes;
    buffer.memory = {static_cast<std::byte*>(const_cast<void*>(memory[u].at()))};
    if (!where) buffer.where = memory_of(memory[u].at());
  }
  return buffers;
}

// The ranks that make it compare its arguments when they compare the options.
Description described_among(Runtime& runtime, RankShape& shape, const Addresses& memory,
                            const std::vector<int>& peers) {
  const std::string operation = shape.operation();
  if (const std::string wrong = shape.complaint(runtime.machine()); !wrong.empty())
    throw Error(fmt::format("{}: rank {}: {}", operation, runtime.rank(), wrong));
  Description d(runtime, operation, peers);
  d.problem.operation = shape.name();
  for (const auto& [name, value] : shape.agreed()) d.agreement.same(name, value);
  d.attempt.locally("listing what is told", [&] { shape.list(); });
  hear_peers(runtime, d.attempt, shape, peers);
  d.attempt.locally("listing what is moved", [&] {
    try {
      const std::vector<MemoryUse> uses = shape.memory();
      const std::vector<Given> arguments = given(uses, memory);
      std::string wrong = shape.misfit();
      if (wrong.empty()) wrong = complaint_about_memory(shape, uses, arguments);
      for (std::size_t b = 0; b < uses.size() && wrong.empty(); ++b)
        if (arguments[b].bytes > 0 && memory_of(arguments[b].at()) == Memory::device && runtime.gpus == nullptr)
          wrong = fmt::format("{} is on a GPU; call use_gpu on all ranks first", uses[b].called);
      d.agreement.complain(wrong);
      if (!wrong.empty()) return;
      d.problem = shape.problem(runtime.machine());
      d.buffers = buffers_of(d.problem, uses, arguments, {});
    } catch (const Error& error) {
      d.agreement.complain(error);
    }
  });
  return d;
}

// What the engines and peers can do with the memory, which all ranks must know to choose alike.
Memory settle_choosing(Runtime& runtime, Attempt& attempt, RankShape& shape, const Choosing& choosing,
                       const std::vector<Given>& memory) {
  const std::string operation = shape.operation();
  bool shared = true;
  attempt.locally("looking for shared memory", [&] {
    for (const Given& one : memory)
      if (one.has_address() && one.bytes > 0)
        shared =
            shared && (memory_of(one.at()) == Memory::device || runtime.memory().find(one.at(), one.bytes).valid());
  });
  const Settled settled = settle_memory(runtime, attempt, operation, memory, choosing.hint == Memory::device,
                                        {shared ? kYes : 0, choosing.holds ? kYes : 0});
  bool all_shared = settled.also[0] == kYes;
  if (settled.memory == Memory::device) {
    const GpuMemory& gpus = gpu_memory(runtime);
    attempt.locally("looking for memory that GPUs share", [&] {
      for (const Given& one : memory) {
        std::string why;
        shared = shared && (one.bytes == 0 || one.base == in_place || gpus.find(one.at(), why).valid != 0);
      }
    });
    const std::string doing = fmt::format("{}: comparing what memory it is", operation);
    all_shared = attempt.combine(operation, {shared ? kYes : 0}, doing)[0] == kYes;
  }
  shape.settle(settled.memory, all_shared, settled.also[1] == kYes);
  return settled.memory;
}

// A comparison of its own, before ranks that may have other arguments tell each other anything.
Description described(const Context& context, RankShape& shape, const Addresses& memory) {
  Runtime& runtime = runtime_of(context);
  const std::string operation = shape.operation();
  Description d(runtime, operation);
  d.problem.operation = shape.name();
  std::vector<MemoryUse> uses;
  std::vector<Given> arguments;
  const auto check_memory = [&](Agreement& agreement) {
    try {
      shape.list();
      uses = shape.memory();
      arguments = given(uses, memory);
      agreement.complain(complaint_about_memory(shape, uses, arguments));
    } catch (const Error& error) {
      agreement.complain(error);
    }
  };
  Agreement agreement(runtime, operation);
  for (const auto& [name, value] : shape.agreed()) agreement.same(name, value);
  d.attempt.locally("checking arguments", [&] {
    agreement.complain(shape.complaint(runtime.machine()));
    if (!agreement.complains() && !shape.hears_sizes()) check_memory(agreement);
  });
  d.attempt.complain_to(agreement, operation);
  agreement.check();
  if (shape.hearers() == Hearers::all) hear_all(runtime, d.attempt, shape);
  if (shape.hearers() == Hearers::named) hear_named(runtime, d.attempt, shape);
  if (shape.hears_sizes()) {
    Agreement of_memory(runtime, operation);
    d.attempt.locally("checking memory", [&] { check_memory(of_memory); });
    d.attempt.complain_to(of_memory, operation);
    of_memory.check();
  }
  OperationMachine own(runtime);
  const auto choosing = shape.choosing();
  if (choosing) {
    d.where = settle_choosing(runtime, d.attempt, shape, *choosing, arguments);
    (void)machine_for(context, choosing->path);
    if (*d.where == Memory::host) own.leave_to_engine(choosing->engine);
  } else {
    const Settled settled = settle_memory(runtime, d.attempt, operation, arguments, false, {shape.copies() ? 0 : kYes});
    d.where = settled.memory;
    if (settled.also[0] != kYes) shape.found_copies();
    if (*d.where == Memory::device) gpu_memory(runtime);  // says what to do where GPUs are not in use
  }
  d.attempt.locally("listing what is moved", [&] {
    try {
      std::vector<Arrangement> arrangements = shape.arrangements(*own);
      d.predicted = arrangements.front().predicted;
      for (Arrangement& one : arrangements) {
        std::vector<UserBuffer> buffers = buffers_of(one.problem, uses, arguments, d.where);
        if (arrangements.size() > 1)
          d.alternatives.push_back({one.name, one.path, one.problem, buffers, one.predicted.value_or(-1)});
        if (&one != &arrangements.front()) continue;
        d.problem = std::move(one.problem);
        d.buffers = std::move(buffers);
      }
    } catch (const Error& error) {
      d.agreement.complain(error);
    }
  });
  return d;
}

}  // namespace

Description description_of(const Context& context, RankShape& shape, const Addresses& memory) {
  Runtime& runtime = runtime_of(context);
  const auto peers = shape.among();
  return peers ? described_among(runtime, shape, memory, *peers) : described(context, shape, memory);
}

Description description_with(const Context& context, RankShape& shape, std::vector<UserBuffer> buffers) {
  Runtime& runtime = runtime_of(context);
  Description d(runtime, shape.operation());
  for (const auto& [name, value] : shape.agreed()) d.agreement.same(name, value);
  d.agreement.complain(shape.complaint(runtime.machine()));
  if (d.agreement.complains()) return d;
  d.attempt.locally("listing what is moved", [&] {
    try {
      d.problem = shape.problem(runtime.machine());
    } catch (const Error& error) {
      d.agreement.complain(error);
      return;
    }
    for (std::size_t b = 0; b < buffers.size(); ++b) buffers[b].name = d.problem.buffers[b].name;
    d.buffers = std::move(buffers);
  });
  return d;
}

}  // namespace tasuki
