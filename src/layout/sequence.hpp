// A layout as a sequence of bytes: parts of it, several one after the other, and the numbers that tell another rank
// which bytes it names.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tasuki/layout.hpp"

namespace tasuki {

/// The bytes of the first layout, then those of the second, and so on; all relative to one base.
Layout joined(std::span<const Layout> layouts);

/// The same bytes, `by` bytes further on.
Layout moved(const Layout& layout, std::int64_t by);

/// Cuts a layout. Example: of 3 blocks of 8 bytes that lie 32 apart, the part of 10 bytes from byte 6 on is bytes 6 and
/// 7 of the first block and all of the second.
class Sequence {
 public:
  explicit Sequence(Layout layout);
  const Layout& whole() const { return layout_; }
  /// `bytes` bytes of the sequence from number `begin` on; they must be there.
  Layout part(std::int64_t begin, std::int64_t bytes) const;

 private:
  Layout layout_;
  std::vector<std::int64_t> begins_;  // of each nest in the sequence, and the end
};

/// Whether a byte that `a` names is named by `b`, whose base lies `apart` bytes after that of `a`. `b` names no byte
/// twice.
bool meet(const Layout& a, const Layout& b, std::int64_t apart);

/// Layouts travel between ranks as numbers: how many groups of nests that have one shape, and of each the shape (bytes,
/// number of dimensions and these), how many nests there are, and their offsets. Of a list that is little more than
/// the offsets.
void append(const Layout& layout, std::vector<std::int64_t>& numbers);
/// Takes one layout from the front of the numbers. Empty if they are none, as of a rank that tells something else.
std::optional<Layout> take_layout(std::span<const std::int64_t>& numbers);

}  // namespace tasuki
