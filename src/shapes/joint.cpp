// JointShape: what planning off line checks of a machine, and knows of memory. See joint.hpp.
#include "shapes/joint.hpp"

#include <fmt/format.h>

#include "tasuki/error.hpp"

namespace tasuki {

BufferFact allocated(std::int64_t bytes, Memory memory, bool shared) {
  BufferFact fact;
  fact.copies = 1;
  fact.ring = 1;
  fact.bytes = bytes;
  fact.memory = memory;
  fact.shared = shared && (memory == Memory::host || bytes > 0);
  fact.alignment = 16;
  return fact;
}

std::vector<BufferFact> facts_of(std::span<const ByteRange> ranges, Memory memory, bool shared) {
  std::vector<BufferFact> facts;
  for (const ByteRange& range : ranges) {
    facts.push_back(allocated(range.end - range.begin, memory, shared));
    if (facts.back().bytes > 0) continue;
    facts.back().copies = 0;
    facts.back().shared = false;
  }
  return facts;
}

void check_gpus(const Machine& machine, Memory memory) {
  if (memory != Memory::device) return;
  for (int rank = 0; rank < machine.size(); ++rank)
    if (machine.ranks[static_cast<std::size_t>(rank)].gpus < 0)
      throw Error(ErrorKind::not_possible,
                  fmt::format("machine {}: device memory was asked for, but rank {} has no GPU", machine.name, rank));
}

void check_rank(const Machine& machine, const char* argument, int rank) {
  if (rank < 0 || rank >= machine.size())
    throw Error(
        fmt::format("argument '{}' is {}, but the machine has ranks 0 to {}", argument, rank, machine.size() - 1));
}

}  // namespace tasuki
