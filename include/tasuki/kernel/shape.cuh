// Shapes: where the bytes of a message lie in memory, one after the other or strided. Part of tasuki/kernel.cuh. Made
// on the host by tasuki::MessageLayout, and given to `isend` and `irecv` (messages.cuh).
#pragma once

#include "tasuki/kernel/impl/words.cuh"

namespace tasuki::device {

/// A part of a shape: runs of `unit` bytes, repeated by a nest of dimensions from the outermost to the innermost.
struct ShapeBlock {
  static constexpr int kMostDims = 7;
  Word begin;  // of the message's bytes
  Word end;
  Word unit;
  long long offset;
  int dims;
  Word count[kMostDims];
  long long stride[kMostDims];
};

/// Which bytes, relative to an address: a small plain value, passed to a kernel as it is.
struct Shape {
  Word bytes = 0;                      ///< of the message
  const ShapeBlock* blocks = nullptr;  // null: one byte after the other
  bool twice = false;                  // some byte is named twice
};

}  // namespace tasuki::device
