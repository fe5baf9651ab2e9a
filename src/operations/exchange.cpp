// Exchange: ranks that name each other tell each other what they list; the moves are in shapes/exchange.hpp.
#include "tasuki/exchange.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "layout/sequence.hpp"
#include "operations/collective.hpp"
#include "operations/given_memory.hpp"
#include "operations/state.hpp"
#include "session/deliver.hpp"
#include "session/gpus.hpp"
#include "shapes/exchange.hpp"
#include "tasuki/collectives.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

constexpr const char* kOperation = "Exchange";
// What ranks tell each other begins with this; what does not comes from a rank that makes something else.
constexpr const char* kOpening = "exchange";

using Fields = std::vector<ExchangeField>;

std::vector<Cells> cells_of(const Fields& fields) {
  return {fields.begin(), fields.end()};
}

std::vector<Given> given(const Fields& fields, const ExchangeBlocks& blocks) {
  std::vector<Given> all;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const ByteRange& range = blocks.ranges[f];
    all.push_back({fields[f].name, fields[f].base, range.end - range.begin, range.begin});
  }
  return all;
}

Layout bytes_of(const std::vector<PeerBlock>& blocks, std::size_t field) {
  std::vector<Layout> parts;
  for (const PeerBlock& block : blocks) parts.push_back(block.parts[field]);
  return joined(parts);
}

// Whether what one field of this rank receives is sent or received of another one.
std::string complaint_about_memory(const Fields& fields, const ExchangeBlocks& blocks) {
  const std::vector<Given> memory = given(fields, blocks);
  for (const Given& one : memory) {
    if (one.bytes == 0) continue;
    if (one.base == nullptr) return fmt::format("field {}: the memory is null", one.name);
    if (one.base == in_place)
      return fmt::format("field {}: the memory is in_place, which exchanges do not know", one.name);
  }
  for (std::size_t f = 0; f < memory.size(); ++f) {
    for (std::size_t g = 0; g < memory.size(); ++g) {
      const auto* const a = static_cast<const std::byte*>(memory[f].at());
      const auto* const b = static_cast<const std::byte*>(memory[g].at());
      if (f == g || a >= b + memory[g].bytes || b >= a + memory[f].bytes) continue;
      const Layout written = bytes_of(blocks.blocks.received, f);
      if (meet(bytes_of(blocks.blocks.sent, g), written, a - b) ||
          meet(bytes_of(blocks.blocks.received, g), written, a - b))
        return fmt::format("fields {} and {} overlap in memory (or are the same field twice)", memory[f].name,
                           memory[g].name);
    }
  }
  return {};
}

std::string complaint_about(const Fields& fields, const std::vector<ExchangeEntry>& entries,
                            const ExchangeOptions& options, int ranks) {
  const std::vector<Cells> cells = cells_of(fields);
  if (std::string wrong = enumerator_complaint("op", options.op); !wrong.empty()) return wrong;
  for (const Cells& field : cells) {
    if (std::string wrong = enumerator_complaint("dtype", field.dtype); !wrong.empty()) return wrong;
    if (field.count < 0)
      return fmt::format("field {}: the number of cells is {}; it must not be negative", field.name, field.count);
  }
  if (std::string wrong = complaint_about(cells, entries, options.reverse, options.op, ranks); !wrong.empty())
    return wrong;
  return complaint_about_memory(fields, exchange_blocks(cells, entries, options.reverse));
}

// What rank `peer` must know of this rank's blocks; and back.
void tell(const PeerBlocks& blocks, int peer, Encoder& to) {
  to.text(kOpening);
  for (const auto* list : {&blocks.sent, &blocks.received}) {
    Encoder some;
    std::int64_t count = 0;
    for (const PeerBlock& block : *list) {
      if (block.rank != peer) continue;
      ++count;
      some.number(block.number);
      for (const Layout& part : block.parts) some.layout(part);
    }
    to.number(count).append(some);
  }
}

// Throws `Malformed` if they are none.
PeerBlocks heard(const std::string& message, int rank, std::size_t fields) {
  Decoder from(message);
  if (from.text() != kOpening) throw Malformed("no exchange");
  PeerBlocks blocks;
  for (auto* list : {&blocks.sent, &blocks.received}) {
    const std::int64_t count = from.number();
    for (std::int64_t i = 0; i < count; ++i) {
      PeerBlock& block = list->emplace_back();
      block.rank = rank;
      block.number = from.number();
      while (block.parts.size() < fields) block.parts.push_back(from.layout());
    }
  }
  from.end();
  return blocks;
}

std::vector<int> peers_of(const PeerBlocks& blocks, int rank) {
  std::map<int, bool> named;
  for (const auto* list : {&blocks.sent, &blocks.received})
    for (const PeerBlock& block : *list)
      if (block.rank != rank) named[block.rank] = true;
  std::vector<int> peers;
  for (const auto& [peer, is] : named) peers.push_back(peer);
  return peers;
}

Description describe(const Context& context, const Fields& fields, const std::vector<ExchangeEntry>& entries,
                     const ExchangeOptions& options) {
  Runtime& runtime = runtime_of(context);
  const int me = runtime.rank();
  Description d(runtime, kOperation);
  const std::vector<Cells> cells = cells_of(fields);
  Agreement agreement(runtime, kOperation);
  agreement.same("number of fields", std::ssize(fields));
  for (std::size_t f = 0; f < fields.size(); ++f) {
    agreement.same(fmt::format("name of field {}", f), fields[f].name);
    agreement.same(fmt::format("bytes of a cell of field {}", fields[f].name), fields[f].cell.size());
    if (options.reverse) agreement.same(fmt::format("type of field {}", fields[f].name), shown(fields[f].dtype));
  }
  agreement.same("reverse", options.reverse ? "true" : "false").same("op", shown(options.op));
  d.attempt.locally("checking arguments",
                    [&] { agreement.complain(complaint_about(fields, entries, options, runtime.size())); });
  d.attempt.complain_to(agreement, kOperation);
  agreement.check();
  std::map<int, PeerBlocks> blocks;  // of this rank and of those that it deals with: what concerns this rank
  ExchangeBlocks mine;
  std::vector<int> peers;
  d.attempt.locally("listing what is exchanged", [&] {
    mine = exchange_blocks(cells, entries, options.reverse);
    peers = peers_of(mine.blocks, me);
  });
  const auto told = deliver(
      runtime, d.attempt, kOperation, peers, [&](std::size_t p, Encoder& to) { tell(mine.blocks, peers[p], to); },
      "telling the ranks in the list");
  std::vector<Given> memory;
  d.attempt.locally("comparing lists with the ranks in them", [&] {
    memory = given(fields, mine);
    for (const int peer : peers) blocks[peer];  // who tells nothing lists nothing
    for (const auto& [peer, message] : told) {
      try {
        blocks[peer] = heard(message, me, fields.size());
      } catch (const Malformed&) {  // only where the ranks' calls are not compared
        throw Error(fmt::format("rank {} makes something else; all ranks must make the same operation", peer));
      }
    }
    blocks[me] = std::move(mine.blocks);
    const PeerBlocks& own = blocks[me];
    for (const auto& [peer, theirs] : blocks)
      for (const auto& wrong : {misfit(own, me, theirs, peer), misfit(theirs, peer, own, me)})
        if (wrong) throw Error(shown(*wrong, cells, options.reverse));
  });
  d.where = settle_memory(runtime, d.attempt, kOperation, memory, false).memory;
  if (*d.where == Memory::device) gpu_memory(runtime);  // says what to do where GPUs are not in use
  d.attempt.locally("listing the moves of an exchange", [&] {
    d.problem = exchange_problem(cells, options.reverse, options.op, me, mine.hint,
                                 [&](int rank) -> const PeerBlocks& { return blocks.at(rank); });
    for (std::size_t f = 0; f < fields.size(); ++f) {
      UserBuffer buffer;
      buffer.name = d.problem.buffers[f].name;
      buffer.bytes = memory[f].bytes;
      buffer.where = *d.where;
      if (buffer.bytes > 0) buffer.memory = {static_cast<std::byte*>(const_cast<void*>(memory[f].at()))};
      d.buffers.push_back(std::move(buffer));
    }
  });
  return d;
}

}  // namespace

Exchange::Exchange(const Context& context, const std::vector<ExchangeField>& fields,
                   const std::vector<ExchangeEntry>& entries, const ExchangeOptions& options) {
  state_ = std::make_shared<State>(context, describe(context, fields, entries, options), options);
}

}  // namespace tasuki
