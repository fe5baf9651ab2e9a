// A layout made ready to be packed and unpacked many times: kernels are chosen once, and short runs far apart, of which
// a list has thousands, are kept as plain lists of offsets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "tasuki/layout.hpp"
#include "tasuki/strided_copy.hpp"

namespace tasuki {

class Packer {
 public:
  explicit Packer(const Layout& layout);

  std::int64_t size() const { return size_; }  ///< Bytes packed.
  /// As `Layout::pack` and `Layout::unpack`, byte for byte.
  void pack(const std::byte* base, std::byte* packed) const;
  void unpack(const std::byte* packed, std::byte* base) const;

 private:
  struct Nest {
    StridedCopy gather, scatter;
    CopyFunction pack, unpack;
  };
  struct Run {
    std::int64_t offset, bytes;
  };
  struct EqualRuns {  // each of `bytes`
    std::int64_t bytes;
    std::vector<std::int64_t> offsets;
  };
  using Runs = std::vector<Run>;
  struct Step {
    std::int64_t packed;  // where its bytes begin
    std::variant<Nest, EqualRuns, Runs> what;
  };

  Step& add_step();
  void add_nest(const Block& nest);
  void close_runs();

  std::int64_t size_ = 0;
  std::vector<Step> steps_;
  Runs open_;  // while it is made: runs of the next list
};

}  // namespace tasuki
