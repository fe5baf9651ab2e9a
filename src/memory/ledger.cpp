// The ledger of a rank's shared memory: see ledger.hpp.
#include "memory/ledger.hpp"

#include <atomic>

namespace tasuki {

std::uint32_t generation_of(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> 32);
}
std::uint32_t count_of(std::uint64_t word) {
  return static_cast<std::uint32_t>(word);
}

bool count_in(SharedFile& file, std::uint32_t entry, std::uint32_t generation) {
  const auto word = file.entry(entry);
  std::uint64_t seen = word.load(std::memory_order_relaxed);
  while (generation_of(seen) == generation)
    if (word.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire)) return true;
  return false;
}

void count_out(SharedFile& file, std::uint32_t entry) {
  file.entry(entry).fetch_sub(1, std::memory_order_release);
}

bool close_entry(SharedFile& file, std::uint32_t entry) {
  const auto word = file.entry(entry);
  const std::uint32_t generation = generation_of(word.load(std::memory_order_relaxed));
  std::uint64_t nobody = std::uint64_t{generation} << 32;
  // Acquire: the stores of ranks that have ended their mappings are visible after this.
  return word.compare_exchange_strong(nobody, std::uint64_t{generation + 1} << 32, std::memory_order_acq_rel);
}

}  // namespace tasuki
