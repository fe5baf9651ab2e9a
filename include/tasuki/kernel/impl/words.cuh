// Words and lines that other threads, GPUs and processes store or load at the same time, the clock, and what the same
// source needs to be compiled by nvcc, by NVRTC (without any header) and as ordinary C++20. Part of tasuki/kernel.cuh.
//
// On a GPU all accesses are of system scope unless a name says `gpu`. On a processor they are atomics.
#pragma once

#include "tasuki/kernel/impl/standard.hpp"
#include "tasuki/kernel/version.hpp"

#if defined(__CUDACC__)
#define TASUKI_DEVICE __device__ inline
/// What is rarely called: it is there once in a kernel, so that the rest of it stays short.
#define TASUKI_RARE inline __device__ __noinline__
/// Before a kernel's `void`: CUDA's __global__; an ordinary function where a kernel is run by threads of the host.
#define TASUKI_KERNEL __global__
/// Before a kernel's parameter that is a Team, Messages or Handle: nobody makes a copy of it.
#define TASUKI_PARAMETER const __grid_constant__
/// Before a loop over an array that is to be kept in registers.
#define TASUKI_UNROLLED _Pragma("unroll")
/// Before a loop whose turns are not to be put beside each other.
#define TASUKI_ROLLED _Pragma("unroll 1")
#else
#include <atomic>
#include <chrono>
#include <thread>
#define TASUKI_DEVICE inline
#define TASUKI_RARE inline
#define TASUKI_KERNEL inline
#define TASUKI_PARAMETER const
#define TASUKI_UNROLLED
#define TASUKI_ROLLED
#endif

namespace tasuki::device {

using Word = unsigned long long;  // 64 bits; NVRTC brings no <cstdint>
using Byte = unsigned char;

/// 16 bytes, stored at once: whoever sees the number sees the data that came with it, and nothing else is ordered.
struct alignas(16) Line {
  Word data;
  Word number;
};

namespace detail {

// `T` is Word or std::uint64_t, which is another type of 64 bits.

#if defined(__CUDACC__)

template <class T>
requires(sizeof(T) == sizeof(Word)) TASUKI_DEVICE T load_acquire(const T* p) {
  T value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
  return value;
}
template <class T>
requires(sizeof(T) == sizeof(Word)) TASUKI_DEVICE T load_relaxed(const T* p) {
  T value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
  return value;
}
template <class T>
requires(sizeof(T) == sizeof(Word)) TASUKI_DEVICE void store_release(T* p, Word value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory");
}
// For stores with nothing to release: a release takes more than a microsecond even then.
template <class T>
requires(sizeof(T) == sizeof(Word)) TASUKI_DEVICE void store_relaxed(T* p, Word value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory");
}
template <class T>
requires(sizeof(T) == sizeof(Word)) TASUKI_DEVICE void add_release(T* p, Word value) {
  asm volatile("red.release.sys.global.add.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory");
}
TASUKI_DEVICE unsigned load_relaxed(const unsigned* p) {
  unsigned value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
  return value;
}
TASUKI_DEVICE void store_release(unsigned* p, unsigned value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
}
// The value before. Between the threads of one GPU only.
TASUKI_DEVICE Word add_gpu(Word* p, Word value) {
  Word before;
  asm volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], %2;" : "=l"(before) : "l"(p), "l"(value) : "memory");
  return before;
}
// In no order with anything else.
TASUKI_DEVICE Word count_gpu(Word* p, Word value) {
  Word before;
  asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;" : "=l"(before) : "l"(p), "l"(value) : "memory");
  return before;
}
// Sets bits; in no order with anything else, or before all that comes after it.
TASUKI_DEVICE Word mark_gpu(Word* p, Word bits) {
  Word before;
  asm volatile("atom.relaxed.gpu.global.or.b64 %0, [%1], %2;" : "=l"(before) : "l"(p), "l"(bits) : "memory");
  return before;
}
TASUKI_DEVICE Word mark_acquire_gpu(Word* p, Word bits) {
  Word before;
  asm volatile("atom.acquire.gpu.global.or.b64 %0, [%1], %2;" : "=l"(before) : "l"(p), "l"(bits) : "memory");
  return before;
}
// Nobody waits for these; in no order with anything else, or after all that comes before it.
TASUKI_DEVICE void change_gpu(Word* p, Word by) {
  asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(p), "l"(by) : "memory");
}
TASUKI_DEVICE void change_release_gpu(Word* p, Word by) {
  asm volatile("red.release.gpu.global.add.u64 [%0], %1;" ::"l"(p), "l"(by) : "memory");
}
TASUKI_DEVICE Word exchange_gpu(Word* p, Word value) {
  Word before;
  asm volatile("atom.acq_rel.gpu.global.exch.b64 %0, [%1], %2;" : "=l"(before) : "l"(p), "l"(value) : "memory");
  return before;
}
TASUKI_DEVICE Word load_relaxed_gpu(const Word* p) {
  Word value;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
  return value;
}
// Whether the word was `old`, and so is `value` now; in no order with anything else.
TASUKI_DEVICE bool replace_gpu(Word* p, Word old, Word value) {
  Word before;
  asm volatile("atom.relaxed.gpu.global.cas.b64 %0, [%1], %2, %3;"
               : "=l"(before)
               : "l"(p), "l"(old), "l"(value)
               : "memory");
  return before == old;
}
TASUKI_DEVICE Word load_acquire_gpu(const Word* p) {
  Word value;
  asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
  return value;
}
TASUKI_DEVICE void store_release_gpu(Word* p, Word value) {
  asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory");
}
// Credit: permission to overwrite what has been read. The reader stores it after its loads have come, and the writer
// stores its data once it has seen it. A GPU begins no store before the loads and branches that it depends on have
// ended, so neither needs a fence.
TASUKI_DEVICE void store_leave(Word* p, Word value) {
  store_relaxed(p, value);
}
TASUKI_DEVICE Word load_leave(const Word* p) {
  return load_relaxed(p);
}
// For words that no other multiprocessor changes meanwhile: they may come from the L1 cache. In assembly, because the
// compiler puts a value that it knows to be equal in all threads into a uniform register and waits for it at once:
// loads would wait for each other.
TASUKI_DEVICE Word load_near(const Word* p) {
  Word value;
  asm volatile("ld.global.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
  return value;
}
// Two words at once, the first at a multiple of 16 bytes.
TASUKI_DEVICE void load_near_pair(const Word* p, Word& one, Word& two) {
  asm volatile("ld.global.v2.u64 {%0, %1}, [%2];" : "=l"(one), "=l"(two) : "l"(p) : "memory");
}
TASUKI_DEVICE unsigned load_near(const unsigned* p) {
  unsigned value;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
  return value;
}
/// Has the compiler compute an address here, and not where it is used.
TASUKI_DEVICE void compute_now(Word*& address) {
  asm volatile("" : "+l"(address));
}
// What this thread has stored or seen comes before the lines that it stores from here on.
TASUKI_DEVICE void fence() {
  asm volatile("fence.acq_rel.sys;" ::: "memory");
}
// After a fence.
TASUKI_DEVICE void store_arrival(Word* p, Word value) {
  store_relaxed(p, value);
}
TASUKI_DEVICE void store_line(Line* p, const Line& line) {
  asm volatile("{ .reg .b128 q; mov.b128 q, {%1, %2}; st.relaxed.sys.global.b128 [%0], q; }" ::"l"(p), "l"(line.data),
               "l"(line.number)
               : "memory");
}
TASUKI_DEVICE Line load_line(const Line* p) {
  Line line;
  asm volatile("{ .reg .b128 q; ld.relaxed.sys.global.b128 q, [%2]; mov.b128 {%0, %1}, q; }"
               : "=l"(line.data), "=l"(line.number)
               : "l"(p)
               : "memory");
  return line;
}
TASUKI_DEVICE Word now_ns() {
  Word t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

#else

#if defined(TASUKI_PAUSES)
/// For tests of what depends on who comes first: before an access a thread may give way, or sleep for up to 0.2 ms.
inline void pause_at_random() {
  static thread_local auto number =
      static_cast<unsigned>(std::chrono::steady_clock::now().time_since_epoch().count()) | 1;
  number ^= number << 13;  // Marsaglia's xorshift
  number ^= number >> 17;
  number ^= number << 5;
  if (number % 24 == 0) std::this_thread::yield();
  if (number % 1500 == 1) std::this_thread::sleep_for(std::chrono::microseconds(number / 1500 % 200));
}
#else
inline void pause_at_random() {}
#endif

template <class T>
requires(sizeof(T) == sizeof(Word)) inline T load_acquire(const T* p) {
  pause_at_random();
  return std::atomic_ref<T>(*const_cast<T*>(p)).load(std::memory_order_acquire);
}
template <class T>
requires(sizeof(T) == sizeof(Word)) inline T load_relaxed(const T* p) {
  pause_at_random();
  return std::atomic_ref<T>(*const_cast<T*>(p)).load(std::memory_order_relaxed);
}
template <class T>
requires(sizeof(T) == sizeof(Word)) inline void store_release(T* p, Word value) {
  pause_at_random();
  std::atomic_ref<T>(*p).store(value, std::memory_order_release);
}
template <class T>
requires(sizeof(T) == sizeof(Word)) inline void store_relaxed(T* p, Word value) {
  pause_at_random();
  std::atomic_ref<T>(*p).store(value, std::memory_order_relaxed);
}
template <class T>
requires(sizeof(T) == sizeof(Word)) inline void add_release(T* p, Word value) {
  std::atomic_ref<T>(*p).fetch_add(value, std::memory_order_release);
}
TASUKI_DEVICE unsigned load_relaxed(const unsigned* p) {
  return std::atomic_ref<unsigned>(*const_cast<unsigned*>(p)).load(std::memory_order_relaxed);
}
TASUKI_DEVICE void store_release(unsigned* p, unsigned value) {
  std::atomic_ref<unsigned>(*p).store(value, std::memory_order_release);
}
TASUKI_DEVICE Word add_gpu(Word* p, Word value) {
  return std::atomic_ref<Word>(*p).fetch_add(value, std::memory_order_acq_rel);
}
TASUKI_DEVICE Word count_gpu(Word* p, Word value) {
  return std::atomic_ref<Word>(*p).fetch_add(value, std::memory_order_relaxed);
}
TASUKI_DEVICE Word mark_gpu(Word* p, Word bits) {
  return std::atomic_ref<Word>(*p).fetch_or(bits, std::memory_order_acquire);
}
TASUKI_DEVICE Word mark_acquire_gpu(Word* p, Word bits) {
  return mark_gpu(p, bits);
}
TASUKI_DEVICE void change_gpu(Word* p, Word by) {
  std::atomic_ref<Word>(*p).fetch_add(by, std::memory_order_release);
}
TASUKI_DEVICE void change_release_gpu(Word* p, Word by) {
  change_gpu(p, by);
}
TASUKI_DEVICE Word exchange_gpu(Word* p, Word value) {
  return std::atomic_ref<Word>(*p).exchange(value, std::memory_order_acq_rel);
}
TASUKI_DEVICE Word load_relaxed_gpu(const Word* p) {
  return load_relaxed(p);
}
TASUKI_DEVICE bool replace_gpu(Word* p, Word old, Word value) {
  return std::atomic_ref<Word>(*p).compare_exchange_strong(old, value, std::memory_order_relaxed);
}
TASUKI_DEVICE Word load_acquire_gpu(const Word* p) {
  return load_acquire(p);
}
TASUKI_DEVICE void store_release_gpu(Word* p, Word value) {
  store_release(p, value);
}
TASUKI_DEVICE void store_leave(Word* p, Word value) {
  store_release(p, value);
}
TASUKI_DEVICE Word load_leave(const Word* p) {
  return load_acquire(p);
}
TASUKI_DEVICE void compute_now(Word*&) {}
TASUKI_DEVICE void fence() {}  // what is stored behind one is released by itself
TASUKI_DEVICE void store_arrival(Word* p, Word value) {
  store_release(p, value);
}
TASUKI_DEVICE void store_line(Line* p, const Line& line) {
  store_relaxed(&p->data, line.data);
  store_release(&p->number, line.number);
}
// The number first: the data is at least as new.
TASUKI_DEVICE Line load_line(const Line* p) {
  Line line;
  line.number = load_acquire(&p->number);
  line.data = load_relaxed(&p->data);
  return line;
}
TASUKI_DEVICE Word now_ns() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<Word>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}
/// Time for which the process did not run, because it was suspended, does not count towards a deadline: of the time
/// since the last look only so much. `begin` is when the wait began.
template <class Time>
void skip_pause(Time& begin, Time& last, Time now) {
  constexpr Time kMost = 100'000'000;
  if (last != 0 && now > last + kMost) begin += now - last - kMost;
  last = now;
}

#endif

/// Returns `function` (TASUKI_RARE) as an address that nvcc does not know. A function whose callers nvcc knows gets
/// registers that none of them uses: a kernel shares its 255 registers with all functions below the call, and keeps its
/// own values in memory, even where the call is not made. A function that is called by an unknown address saves the
/// registers that it uses, which takes a block of 256 threads about a microsecond. So this is for rare calls beside
/// quick code.
template <class F>
TASUKI_DEVICE F* by_address(F* function) {
#if defined(__CUDACC__)
  unsigned multiprocessor;
  asm("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
  return reinterpret_cast<F*>(reinterpret_cast<Word>(function) + (multiprocessor >> 24));  // 0 is added
#else
  return function;
#endif
}

/// Whether the structure that a call is given is of this kernel's version. If not, the host gets to know, and nothing
/// else of the structure is read. Inlined: a call here would take registers from the code around it.
TASUKI_DEVICE bool same_version(const Heading& heading) {
  if (heading.version == kKernelVersion) return true;
  store_release(heading.failure, kOtherVersion | kKernelVersion);
  return false;
}

}  // namespace detail
}  // namespace tasuki::device
