/* A checksum of all bits of an array that does not depend on who has which element. */
#ifndef DIRECTIVES_CHECKSUM_H
#define DIRECTIVES_CHECKSUM_H

#include <stdint.h>
#include <string.h>

static inline uint64_t checksum(const void* element, size_t bytes, int64_t index) {
  uint64_t bits = 0;
  memcpy(&bits, element, bytes);
  bits ^= (uint64_t)index * 0x9e3779b97f4a7c15u;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return bits ^ (bits >> 31);
}

#endif
