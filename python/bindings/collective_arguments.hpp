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
#include "operation.hpp"
#include "tasuki/collectives.hpp"
#include "tasuki/error.hpp"

namespace tasuki::python {

/// What `tasuki.in_place` is.
struct InPlace {};

/// One Python class for each.
template <int>
class PyCollective : public PyOperation {
  using PyOperation::PyOperation;
};

/// One of a collective's two buffers as it was given.
struct Side {
  const char* argument = "";
  bool here = false;      ///< it is an array
  bool in_place = false;  ///< it is tasuki.in_place
  Array array = {};
  std::int64_t count() const {
    return std::accumulate(array.shape.begin(), array.shape.end(), std::int64_t{1}, std::multiplies<>());
  }
};

inline std::string name_of(nb::handle dtype) {
  return nb::cast<std::string>(nb::str(dtype));
}

/// The core's type of what is combined. Throws `Error` if nothing of that kind can be.
DType combined_type(nb::handle dtype, ReduceOp op);

/// Reads the arguments of one collective. What is wrong throws `Error`, on all ranks by way of `Owner::agree`.
class Reading {
 public:
  Reading(const Context& context, Named& agreement, OperationCore& core)
      : context_(context), agreement_(agreement), core_(core) {}

  Side side(nb::handle value, const char* argument, bool writable) {
    Side side{argument};
    if (value.is_none()) return side;
    if (nb::isinstance<InPlace>(value)) {
      side.in_place = true;
      return side;
    }
    side.here = true;
    side.array = array_from(value, argument, writable, true);
    check_gpu(side.array, context_, argument);
    if (!side.array.is_contiguous())
      throw Error(fmt::format("argument '{}' is not contiguous in C order; use numpy.ascontiguousarray", argument));
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
  void need_array(const Side& side) const {
    need(side);
    if (side.in_place)
      throw Error(fmt::format("argument '{}' is in_place, which only the other one may be", side.argument));
  }
  void root_only(const Side& side, int root) const {
    if (side.in_place && context_.rank() != root)
      throw Error(fmt::format("argument '{}' is in_place, which is for the root; rank {} is not", side.argument,
                              context_.rank()));
  }
  static void need_count(const Side& side, std::int64_t expected) {
    if (side.here && side.count() != expected)
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
    if (!part.here && total.here && total.count() % ranks != 0)
      throw Error(fmt::format("argument '{}' has {} elements, which are no equal blocks for {} ranks; give 'counts'",
                              total.argument, total.count(), ranks));
    const std::int64_t count = part.here ? part.count() : total.here ? total.count() / ranks : 0;
    need_count(total, count * ranks);
    return count;
  }

  void apart(const Side& a, const Side& b) const {
    if (!a.here || !b.here || a.array.high() == 0 || b.array.high() == 0) return;
    const auto begin = [](const Side& side) { return reinterpret_cast<std::uintptr_t>(side.array.data); };
    if (begin(a) < begin(b) + static_cast<std::uintptr_t>(b.array.high()) &&
        begin(b) < begin(a) + static_cast<std::uintptr_t>(a.array.high()))
      throw Error(fmt::format("arguments '{}' and '{}' overlap in memory; work in place with tasuki.in_place",
                              a.argument, b.argument));
  }

  nb::object dtype = nb::none();

 private:
  void settle_type(const Side& side) {
    if (dtype.is_none()) {
      dtype = side.array.dtype;
      agreement_.same("type", name_of(dtype));
    } else if (!dtype.equal(side.array.dtype)) {
      throw Error(fmt::format("arguments 'source' and 'target' have elements of {} and {}; they must be equal",
                              name_of(dtype), name_of(side.array.dtype)));
    }
  }

  const Context& context_;
  Named& agreement_;
  OperationCore& core_;
};

/// What a collective was asked for, ready for the core.
struct Asked {
  Side source, target;
  DType type = DType::u8;
  ReduceOp op = ReduceOp::sum;
  std::int64_t count = 0;
  std::optional<std::vector<std::int64_t>> counts = {};
  std::vector<std::int64_t> receive_counts = {};
  const void* in() const { return source.in_place ? in_place : source.array.data; }
  void* out() const { return target.in_place ? in_place : target.array.data; }

  /// What is combined has a type of the core's.
  void combine(const Reading& reading, const std::string& name) {
    op = reduce_op_from_string(name);
    if (!reading.dtype.is_none()) type = combined_type(reading.dtype, op);
  }
  /// What is only moved is moved as bytes, unless the core knows its type.
  void move(const Reading& reading) {
    if (reading.dtype.is_none()) return;
    type = number_type(reading.dtype);
    if (type != DType::none) return;
    type = DType::u8;
    const std::int64_t bytes = element_bytes(reading.dtype);
    count *= bytes;
    if (counts)
      for (std::int64_t& each : *counts) each *= bytes;
    for (std::int64_t& each : receive_counts) each *= bytes;
  }
};

/// Reads by `read(Reading&, Asked&)` on all ranks, makes the operation by `make(Context, Asked)`.
template <class Py, class Read, class Make>
void create(Py* self, const ContextHandle& context, const char* name, Read&& read, Make&& make) {
  const std::shared_ptr<Owner>& owner = context.owner;
  OperationCore core;
  Asked asked;
  owner->agree(name, [&](Named& agreement) {
    Reading reading(owner->context(), agreement, core);
    read(reading, asked);
  });
  core.operation = make(owner->context(), asked);
  if (core.operation.where() == Memory::device) core.fork.emplace();
  new (self) Py(owner, std::move(core));
}

}  // namespace tasuki::python
