// A case cut into one message for each pair of ranks: what peers that send packed messages have in common.
#pragma once

#include <vector>

#include "gpu/copy_list.hpp"

namespace bench {

/// The next multiple of 16: for wide loads and stores.
inline std::int64_t aligned_to_16(std::int64_t bytes) {
  return (bytes + 15) / 16 * 16;
}

/// All boxes that go from this rank to another, or come from it, in the same order on both.
struct PackedMessage {
  struct Box {
    std::byte* at = nullptr;  ///< its first row in the field
    GpuRows rows;
  };
  int peer = 0;
  bool sends = false;
  std::vector<Box> boxes;
  std::int64_t bytes = 0;  ///< packed, each box at a multiple of 16 bytes

  /// It lies in one piece in the field and need not be packed here.
  bool contiguous() const { return boxes.size() == 1 && boxes[0].rows.contiguous(); }
  /// Adds the copies between the fields and the message, which begins at `packed`.
  void add_copies(std::byte* packed, std::vector<StridedCopy>& copies) const;
};

/// This rank's messages, by rank of the other, each time what is sent before what is received.
std::vector<PackedMessage> messages_of(const GpuCase& problem);

/// What stays on this GPU and needs no message.
std::vector<StridedCopy> local_copies(const GpuCase& problem);

/// Whether no byte goes from a rank to another, here and everywhere. Collective.
bool all_local(const GpuCase& problem);

}  // namespace bench
