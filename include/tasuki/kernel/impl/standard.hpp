// The few names of the standard library that the headers of kernels use. NVRTC has none of its headers: there the names
// are defined here, in a namespace of Tasuki's that nothing else sees. Part of tasuki/kernel.cuh.
#pragma once

#if !defined(__CUDACC_RTC__)

#include <cstddef>
#include <cstdint>
#include <cstring>

#else

#if __cplusplus < 202002L
#error "tasuki/kernel.cuh is C++20: give NVRTC the option --std=c++20"
#endif

namespace tasuki::std {

using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long;
using uintptr_t = unsigned long;
static_assert(sizeof(int64_t) == 8 && sizeof(void*) == 8);

enum class byte : unsigned char {};

template <bool kCondition, class A, class B>
struct Chosen {
  using type = A;
};
template <class A, class B>
struct Chosen<false, A, B> {
  using type = B;
};
template <bool kCondition, class A, class B>
using conditional_t = typename Chosen<kCondition, A, B>::type;

template <class A, class B>
inline constexpr bool kSame = false;
template <class A>
inline constexpr bool kSame<A, A> = true;
template <class A, class B>
concept same_as = kSame<A, B>;

template <class T, class... Kinds>
inline constexpr bool kOneOf = (kSame<T, Kinds> || ...);
template <class T>
concept integral = kOneOf<T, signed char, short, int, long, long long, unsigned char, unsigned short, unsigned int,
                          unsigned long, unsigned long long, char, bool>;
template <class T>
concept floating_point = kOneOf<T, float, double>;

template <class To, class From>
__device__ constexpr To bit_cast(const From& from) {
  return __builtin_bit_cast(To, from);
}

}  // namespace tasuki::std

#endif
