// HostRing: see ring.hpp.
#include "kernels/ring.hpp"

#include <bit>
#include <cstring>
#include <new>

#include "memory/gpu.hpp"

namespace tasuki {
namespace {

using device::Line;
using device::Word;
using device::detail::kPlaceLines;
using device::detail::kSlotLines;

constexpr std::size_t kAligned = 128;

std::shared_ptr<std::byte> allocate_here(std::size_t bytes) {
  auto* const memory = static_cast<std::byte*>(::operator new(bytes, std::align_val_t(kAligned)));
  std::memset(memory, 0, bytes);
  return {memory, [](std::byte* p) { ::operator delete(p, std::align_val_t(kAligned)); }};
}

}  // namespace

std::shared_ptr<std::byte> allocate_for_host(bool on_gpu, std::size_t bytes) {
  if (!on_gpu) return allocate_here(bytes);
  return {gpu()->allocate_mapped(static_cast<std::int64_t>(bytes)), [](std::byte* p) { gpu()->release_mapped(p); }};
}

std::shared_ptr<std::byte> allocate_for_kernels(bool on_gpu, std::size_t bytes) {
  if (!on_gpu) return allocate_here(bytes);
  return {gpu()->allocate(static_cast<std::int64_t>(bytes)), [](std::byte* p) { gpu()->release(p); }};
}

HostRing::HostRing(bool on_gpu, Word slots, Word places) {
  const std::size_t slots_bytes = slots * kSlotLines * sizeof(Line);
  const std::size_t places_bytes = places * kPlaceLines * sizeof(Line);
  shared_ = allocate_for_host(on_gpu, kAligned + slots_bytes + places_bytes);
  kernels_ = allocate_for_kernels(on_gpu, 2 * kAligned + places * sizeof(Word));
  std::byte* const shared = shared_.get();
  std::byte* const own = kernels_.get();
  proxy_.consumed = reinterpret_cast<const Word*>(shared);
  proxy_.slots = reinterpret_cast<Line*>(shared + kAligned);
  proxy_.answers = reinterpret_cast<const Line*>(shared + kAligned + slots_bytes);
  proxy_.claimed = reinterpret_cast<Word*>(own);
  proxy_.seen = reinterpret_cast<Word*>(own + kAligned);
  proxy_.taken = reinterpret_cast<Word*>(own + 2 * kAligned);
  proxy_.log_slots = static_cast<Word>(std::bit_width(slots) - 1);
  proxy_.log_places = static_cast<Word>(std::bit_width(places) - 1);
}

bool HostRing::next(Asked& asked) {
  const Line* const slot = proxy_.slots + (taken_ & ((Word{1} << proxy_.log_slots) - 1)) * kSlotLines;
  Word words[kSlotLines];
  for (int i = 0; i < kSlotLines; ++i) {
    const Line line = device::detail::load_line(slot + i);
    if (line.number != taken_ + 1) return false;
    words[i] = line.data;
  }
  asked.number = taken_++;
  asked.request = {words[0], words[1], words[2], words[3]};
  device::detail::store_release(const_cast<Word*>(proxy_.consumed), taken_);
  return true;
}

void HostRing::answer(const Asked& asked, Word answer) {
  Line* const at = const_cast<Line*>(proxy_.answers) + asked.request.place * kPlaceLines;
  device::detail::store_line(at, Line{answer, asked.number + 1});
}

}  // namespace tasuki
