// The ledger of a rank's shared memory: a word for each block, which counts the ranks that have the block mapped.
//
// The upper half of a word is the entry's generation, the number of blocks that had the entry before. The lower half is
// the number of mappings. A rank that comes with the generation of an earlier block is refused.
#pragma once

#include <cstdint>

#include "memory/shared_file.hpp"

namespace tasuki {

std::uint32_t generation_of(std::uint64_t word);
std::uint32_t count_of(std::uint64_t word);

/// Adds a mapping. False if the entry has another generation by now.
bool count_in(SharedFile& file, std::uint32_t entry, std::uint32_t generation);
/// Ends a mapping. What this rank has stored into the block is visible to who closes the entry.
void count_out(SharedFile& file, std::uint32_t entry);

/// Begins the entry's next generation if there is no mapping. False if there is one.
bool close_entry(SharedFile& file, std::uint32_t entry);

}  // namespace tasuki
