// Halo: fills the shadows of fields from the ranks that own the cells, or adds shadows into their owners.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tasuki/field.hpp"
#include "tasuki/operation.hpp"

namespace tasuki {

/// A field and how much of its shadow takes part. The default is the whole shadow.
struct HaloField {
  HaloField(const FieldBase& f) : field(f), width(f.shadow()) {}  // NOLINT(google-explicit-constructor)
  HaloField(const FieldBase& f, const Width& w) : field(f), width(w) {}
  FieldBase field;
  Width width;  ///< At most the shadow on every side. May exceed a neighbour's box: the owner, however far, serves it.
};

struct HaloOptions : OperationOptions {
  bool corners = true;  ///< Also the cells that lie outside the owned box in two or more dimensions.
  /// Add every shadow cell into the cell's owner instead (the adjoint; elements must be numbers). Shadows keep their
  /// values. Additions to one cell happen in a fixed order, so the result does not depend on path or engine; it does
  /// depend on the split.
  bool reverse = false;
  /// A promise for fields with two copies: the user swaps each of them exactly once between two starts. Ranks can then
  /// permit the writes into their shadows one epoch earlier, which hides the latency of that signal. From the first
  /// `start` on, the shadow of the copy that is not current belongs to the halo: neither read nor write it.
  bool alternating = false;
  /// Where what travels is cut, besides at the ranks' boxes: global indices by dimension, ascending; dimensions that
  /// are missing have none. Each piece is packed apart, which costs a few bytes a piece. For kernels whose blocks
  /// exchange barrier-free (KernelGroup::cells): cut where the cells of two blocks meet, on all ranks.
  std::vector<std::vector<std::int64_t>> cuts = {};
  /// What fills shadows outside the grid, by field and dimension: `u: i=-cell, j=face; p: i=face/none`. Fields are
  /// named as they were made, with `;` between them; a list that names none is that of the others. Dimensions are `i`
  /// (0, the slowest in memory) to `o`; two words with `/` between them are the lower and the upper side. `face`:
  /// mirrored about the outer face of the outermost cell (shadow cell -1 gets cell 0). `cell`: about the middle of that
  /// cell (shadow cell -1 gets cell 1), for values that lie on the wall. `-face`, `-cell`: the same with the sign
  /// changed; twice changed, in a corner of two such edges, is not changed. `none`, and what is left out: left alone.
  /// Elements that change their sign are signed integers, floats or complex numbers. Of a dimension that is not
  /// periodic, with at least as many cells as are mirrored. In `reverse` mirrored shadows are added into the cells that
  /// they are images of, and no sign can change. The same text on all ranks.
  std::string edges = {};
};

/// What `overlap` does if its width is narrower than what the halo sends or adds to.
enum class Narrow : std::uint8_t {
  refused,  ///< it throws: the halo would send cells that have not been computed yet
  meant,    ///< the caller knows that it is right, for example that `compute` does not write what is sent
};

/// Exchanges the halos of any number of fields (on any grids of one context) in one operation. Cells outside a
/// non-periodic grid are not written. Of a field with two copies, the copy that is current at `start` is exchanged; it
/// must be the same one on all ranks. Making it is collective.
class Halo : public Operation {
 public:
  Halo(const std::vector<HaloField>& fields, const HaloOptions& options = {});
  explicit Halo(const HaloField& field, const HaloOptions& options = {})
      : Halo(std::vector<HaloField>{field}, options) {}

 private:
  friend void overlap(Halo& halo, const FieldBase& field, const Width& width,
                      const std::function<void(const Box&)>& compute, Narrow narrow);
  struct Reach {
    int number = -1;  // of the context's object that is the field
    Width width;
    Width mirrored;  // the owned cells from each side on that an edge mirrors; 0: it mirrors none
  };
  Reach reach(const FieldBase& field) const;
  std::vector<Reach> reaches_;
};

/// Helper for overlap: calls `compute` for every boundary box of `field` (cells within `width` of a side), starts the
/// halo, calls `compute` for the interior box while the halo travels, and waits. The boxes are in local indices,
/// disjoint, and together all owned cells. `compute` must not call operations of the same context. For a field with two
/// copies call it after `swap`: `compute` then writes the current copy. In every dimension in which there are
/// neighbours `width.lo` must reach the `hi` of the halo's width for this field (for a field that is not in the halo:
/// of its widest), and `width.hi` its `lo`, and each must reach the cells that an edge mirrors; `Error` on every rank
/// if not, unless that is `meant`.
void overlap(Halo& halo, const FieldBase& field, const Width& width, const std::function<void(const Box&)>& compute,
             Narrow narrow = Narrow::refused);

}  // namespace tasuki
