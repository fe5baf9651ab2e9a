// What all collectives share while they are made: from arguments to a description.
#pragma once

#include <string>
#include <vector>

#include "operations/state.hpp"
#include "tasuki/collectives.hpp"
#include "tasuki/error.hpp"
#include "tasuki/planning.hpp"

namespace tasuki {

/// The arguments of a collective, as its class got them.
struct CollectiveCall {
  std::string operation;  ///< `Allreduce`
  CollectiveShape shape;  ///< without what the options say; `in_place` is found here
  const void* in = nullptr;
  void* out = nullptr;
  std::string in_name = "in";  ///< what the arguments are called
  std::string out_name = "out";
  std::string count_name = "count";
  /// alltoall with counts of its own: of this rank, to and from each; they fill `shape.counts`.
  std::vector<std::int64_t> send_counts = {};
  std::vector<std::int64_t> receive_counts = {};
  bool has_matrix = false;
  /// Memory that is not contiguous: a layout for each block of `in` and of `out`, relative to these; they fill the
  /// counts and layouts of `shape`. Of a side that is not looked at, anything.
  std::vector<Layout> in_layouts = {};
  std::vector<Layout> out_layouts = {};
  bool has_layouts = false;
  bool has_counts = false;                                     ///< `shape.counts` was given
  std::shared_ptr<const Operator::Combine> combine = nullptr;  ///< of an operator of the user's own
};

/// As the ranks compare it: its name, or its number if it is no enumerator.
template <class Enum>
std::string shown(Enum value) {
  try {
    return std::string(to_string(value));
  } catch (const Error&) {
    return std::to_string(static_cast<int>(value));
  }
}

/// What is wrong with a type or an operator that may be no enumerator. Empty: nothing.
template <class Enum>
std::string enumerator_complaint(const char* argument, Enum value) {
  try {
    (void)to_string(value);
    return {};
  } catch (const Error& error) {
    return "argument '" + std::string(argument) + "': " + error.what();
  }
}

/// Collective. Throws on every rank if the arguments of one are wrong, or differ where they must agree.
Description describe(const Context& context, CollectiveCall call, const CollectiveOptions& options);

}  // namespace tasuki
