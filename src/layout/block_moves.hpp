// How one block is moved: by registers of its size, or past the caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tasuki {

inline constexpr std::int64_t kCacheLine = 64;

// Prefetches a cache line for a store. A core waits for few lines of another core's cache at a time where numbers of a
// few bytes fill its store buffer: without this, packing 6 KiB into a peer's ring took twice as long.
[[gnu::always_inline]] inline void prefetch_for_store(const std::byte* at) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" ::"m"(*at));
#else
  __builtin_prefetch(at, 1);
#endif
}

typedef std::uint64_t Word16 __attribute__((vector_size(16)));

// The register type of 1, 2, 4, 8 or 16 bytes.
template <std::int64_t Bytes>
using BlockWord =
    std::conditional_t<Bytes == 1, std::uint8_t,
                       std::conditional_t<Bytes == 2, std::uint16_t,
                                          std::conditional_t<Bytes == 4, std::uint32_t,
                                                             std::conditional_t<Bytes == 8, std::uint64_t, Word16>>>>;

// Moves exactly Bytes bytes by the largest registers that fit. (Through one array they would go by way of the stack.)
template <std::int64_t Bytes>
[[gnu::always_inline]] inline void move_block(const std::byte* src, std::byte* dst) {
  constexpr std::int64_t kPart = Bytes >= 16 ? 16 : Bytes >= 8 ? 8 : Bytes >= 4 ? 4 : Bytes >= 2 ? 2 : 1;
  BlockWord<kPart> part;
  std::memcpy(&part, src, kPart);
  std::memcpy(dst, &part, kPart);
  if constexpr (Bytes > kPart) move_block<Bytes - kPart>(src + kPart, dst + kPart);
}

#if defined(__SSE2__)
// Fewer bytes than a cache line, any number of them.
[[gnu::always_inline]] inline void move_rest(const std::byte* src, std::byte* dst, std::int64_t bytes) {
  const auto piece = [&]<std::int64_t Bytes>() {
    if ((bytes & Bytes) == 0) return;
    move_block<Bytes>(src, dst);
    src += Bytes;
    dst += Bytes;
  };
  piece.template operator()<32>();
  piece.template operator()<16>();
  piece.template operator()<8>();
  piece.template operator()<4>();
  piece.template operator()<2>();
  piece.template operator()<1>();
}

// At least a cache line. Whole lines of the destination are stored past the cache, which saves reading them; the ends
// of the block are stored as usual. `end_streaming` must follow.
[[gnu::always_inline]] inline void stream_block(const std::byte* from, std::byte* to, std::int64_t bytes) {
  const std::int64_t head = static_cast<std::int64_t>(-reinterpret_cast<std::uintptr_t>(to) % kCacheLine);
  move_rest(from, to, head);
  std::int64_t done = head;
  for (; done + kCacheLine <= bytes; done += kCacheLine)
    for (std::int64_t i = 0; i < kCacheLine; i += 16) {
      const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + done + i));
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + done + i), part);
    }
  move_rest(from + done, to + done, bytes - done);
}

// Such stores are weakly ordered, but the signal of the arrival must come after them.
inline void end_streaming() {
  _mm_sfence();
}

#else
inline void stream_block(const std::byte* from, std::byte* to, std::int64_t bytes) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}
inline void end_streaming() {}
#endif

}  // namespace tasuki
