// The arguments of collectives from Python: arrays, counts and what they come to, checked on all ranks.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "layout.hpp"
#include "operation.hpp"
#include "operator.hpp"
#include "tasuki/collectives.hpp"
#include "tasuki/error.hpp"
#include "tasuki/neighbours.hpp"

namespace tasuki::python {

/// What `tasuki.in_place` is.
struct InPlace {};

/// One of a collective's two buffers as it was given.
struct Side {
  const char* argument = "";
  bool here = false;      ///< it is an array
  bool in_place = false;  ///< it is tasuki.in_place
  Array array = {};
  std::optional<std::vector<Layout>> layouts = {};  ///< of its blocks, where they were given beside the array
  std::int64_t count() const {
    return std::accumulate(array.shape.begin(), array.shape.end(), std::int64_t{1}, std::multiplies<>());
  }
  /// Its elements say how much is moved.
  bool counted() const { return here && !layouts; }
  /// The layout of all of it as one block.
  Layout whole() const { return !here ? Layout() : layouts ? layouts->front() : array.layout(); }
  /// Layouts of `blocks` blocks, one after the other in C order: of `counts` elements each, or equal ones.
  std::vector<Layout> blocks(std::size_t blocks, const std::optional<std::vector<std::int64_t>>& counts) const;
};

/// The blocks of a side: `one` is for all of it, `many` has a layout an entry.
enum class Blocks : std::uint8_t { one, many };

/// The core's type of what is combined. Throws `Error` if nothing of that kind can be.
DType combined_type(nb::handle dtype, ReduceOp op);

/// What a rank tells the others of its arrays.
struct Told {
  bool layouts = false;   ///< an array is not contiguous, or has layouts beside it
  bool given = false;     ///< one has layouts beside it
  std::string type = {};  ///< of the elements; empty: no array
  /// What all ranks have told, in the place of their own. Throws `Error` on all ranks if types differ that must not:
  /// those of what is combined, and of what is counted. Collective.
  static Told of_all(const Context& context, const char* name, const Told& mine, bool combined);
};

/// Reads the arguments of one collective. What is wrong throws `Error`, on all ranks by way of `Owner::agree`.
class Reading {
 public:
  Reading(const Context& context, OperationCore& core) : context_(context), core_(core) {}

  /// An array, None, `in_place`, or a pair of an array and the layouts of its `blocks` blocks.
  Side side(nb::handle value, const char* argument, bool writable, Blocks kind, std::size_t blocks) {
    Side side{argument};
    if (value.is_none()) return side;
    if (nb::isinstance<InPlace>(value)) {
      side.in_place = true;
      return side;
    }
    side.here = true;
    const bool pair = nb::isinstance<nb::tuple>(value) && nb::len(value) == 2;
    side.array = array_from(pair ? nb::object(value[0]) : nb::borrow(value), argument, writable, true);
    check_gpu(side.array, context_, argument);
    if (pair) side.layouts = layouts_of(value[1], side, kind, blocks);
    if (side.counted() && !side.array.is_contiguous()) told.layouts = true;
    if (pair) told.layouts = told.given = true;
    core_.arrays.push_back(side.array);
    settle_type(side);
    return side;
  }

  /// For argument `name`, an entry a rank; nothing for None.
  std::optional<std::vector<std::int64_t>> counts(nb::handle value, const char* name) const {
    return counts(value, name, static_cast<std::size_t>(context_.size()));
  }
  std::optional<std::vector<std::int64_t>> counts(nb::handle value, const char* name, std::size_t blocks) const {
    if (value.is_none()) return {};
    std::vector<nb::object> entries;
    std::vector<std::int64_t> list;
    const bool sequence = nb::try_cast(value, entries);
    for (const nb::object& entry : entries)
      if (std::int64_t count = 0; as_integer(entry, count)) list.push_back(count);
    if (!sequence || list.size() != entries.size() || list.size() != blocks)
      throw Error(fmt::format("argument '{}' is {}; it must be {} ints, one a block", name, shown(value), blocks));
    for (std::size_t r = 0; r < list.size(); ++r)
      if (list[r] < 0)
        throw Error(fmt::format("argument '{}' is {} for block {}; it must not be negative", name, list[r], r));
    return list;
  }

  void need(const Side& side) const {
    if (!side.here && !side.in_place)
      throw Error(fmt::format("argument '{}' is None; give an array on rank {}", side.argument, context_.rank()));
  }
  void need_array(const Side& side, bool in_place) const {
    need(side);
    if (side.in_place)
      throw Error(fmt::format("argument '{}' is in_place, which {}", side.argument,
                              in_place ? "only the other one may be" : "this operation does not know"));
  }
  void root_only(const Side& side, int root) const {
    if (side.in_place && context_.rank() != root)
      throw Error(fmt::format("argument '{}' is in_place, which is for the root; rank {} is not", side.argument,
                              context_.rank()));
  }
  static void need_count(const Side& side, std::int64_t expected) {
    if (side.counted() && side.count() != expected)
      throw Error(fmt::format("argument '{}' has {} elements; it must have {}", side.argument, side.count(), expected));
  }

  /// Elements of a block. `part` has this rank's; `total` has those of all ranks.
  std::int64_t block(const Side& part, const Side& total,
                     const std::optional<std::vector<std::int64_t>>& counts) const {
    const std::int64_t ranks = context_.size();
    if (counts) {
      need_count(part, (*counts)[static_cast<std::size_t>(context_.rank())]);
      need_count(total, std::accumulate(counts->begin(), counts->end(), std::int64_t{0}));
      return 0;
    }
    if (!part.counted() && total.counted() && total.count() % ranks != 0)
      throw Error(fmt::format("argument '{}' has {} elements, which are no equal blocks for {} ranks; give 'counts'",
                              total.argument, total.count(), ranks));
    const std::int64_t count = part.counted() ? part.count() : total.counted() ? total.count() / ranks : 0;
    need_count(total, count * ranks);
    return count;
  }

  void distinct(const Side& a, const Side& b, bool in_place) const {
    if (!a.counted() || !b.counted() || a.array.high() == 0 || b.array.high() == 0) return;
    // Whether bytes with gaps meet, the core finds out.
    if (!a.array.is_contiguous() || !b.array.is_contiguous()) return;
    const auto begin = [](const Side& side) { return reinterpret_cast<std::uintptr_t>(side.array.data); };
    if (begin(a) < begin(b) + static_cast<std::uintptr_t>(b.array.high()) &&
        begin(b) < begin(a) + static_cast<std::uintptr_t>(a.array.high()))
      throw Error(fmt::format("arguments '{}' and '{}' overlap in memory{}", a.argument, b.argument,
                              in_place ? "; work in place with tasuki.in_place" : ""));
  }

  /// Counts are for the elements of arrays; where every side has layouts there are none.
  void counts_for(nb::handle counts, const char* name, const Side& side) const {
    if (!counts.is_none() && side.layouts)
      throw Error(
          fmt::format("argument '{}' is given beside the layouts of '{}', which say how much is moved; leave "
                      "it out",
                      name, side.argument));
  }

  nb::object dtype = nb::none();  ///< of the arrays; of several that differ, the first
  Told told;

 private:
  std::vector<Layout> layouts_of(nb::handle value, const Side& side, Blocks kind, std::size_t blocks) const;

  void settle_type(const Side& side) {
    if (dtype.is_none()) {
      dtype = side.array.dtype;
      told.type = dtype_name(dtype);
    } else if (!dtype.equal(side.array.dtype)) {
      other_type_ = side.array.dtype;
    }
  }
  // Layouts name bytes, so what is only moved may have any type.
  friend struct Asked;
  void need_one_type() const {
    if (!other_type_.is_none())
      throw Error(fmt::format("arguments 'source' and 'target' have elements of {} and {}; they must be equal",
                              dtype_name(dtype), dtype_name(other_type_)));
  }

  const Context& context_;
  OperationCore& core_;
  nb::object other_type_ = nb::none();
};

/// What the schema says of a collective's two buffers.
struct Shape {
  const char* name;  ///< of the operation
  Blocks source, target;
  bool source_at_root, target_at_root;  ///< it is looked at on the root only
  bool target_in_place;                 ///< tasuki.in_place stands for the target, not for the source
  bool in_place_at_root;                ///< and on the root only
  bool in_place;                        ///< it stands for one of them at all
  bool combined;                        ///< it is a reduction
};

/// The arguments of a collective as Python gives them; None: it has none of that kind.
struct Given {
  std::optional<int> root = {};
  nb::handle source = Py_None, target = Py_None, op = Py_None, counts = Py_None, send_counts = Py_None,
             receive_counts = Py_None, neighbours = Py_None;
};

/// What a collective was asked for, ready for the core, in the names of C++.
struct Asked {
  using Counts = std::optional<std::vector<std::int64_t>>;

  Neighbours neighbours{{}, {}};
  Side source, target;
  DType type = DType::u8;
  Operator op = ReduceOp::sum;
  std::int64_t count = 0;
  Counts counts = {};  ///< of blocks that differ, or of what is sent
  Counts receive_counts = {};
  bool with_layouts = false;  ///< on all ranks

  const void* in() const { return source.in_place ? in_place : source.array.data; }
  void* out() const { return target.in_place ? in_place : target.array.data; }
  Layout in_layout() const { return source.whole(); }
  Layout out_layout() const { return target_is_source ? Layout() : target.whole(); }
  std::vector<Layout> in_layouts() const { return (target_is_source ? target : source).blocks(sent, element_counts); }
  std::vector<Layout> out_layouts() const { return target.blocks(received, receive_elements); }

  /// Reads all on this rank. Throws `Error`.
  void read(Reading& reading, const Shape& shape, const Given& given, const Context& context);

 private:
  void read_blocks(Reading& reading, const Shape& shape, const Given& given);
  void read_neighbours(Reading& reading, const Shape& shape, const Given& given);
  void combine(const Reading& reading, nb::handle by, const Context& context, const char* operation);
  void move(const Reading& reading);

  bool target_is_source = false;       // in place, where the target holds the blocks of the source
  std::size_t sent = 0, received = 0;  // blocks
  // In elements, for the layouts of blocks: not in bytes, as those above may be.
  Counts element_counts = {};
  Counts receive_elements = {};
};

}  // namespace tasuki::python
