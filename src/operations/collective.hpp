// What all collectives share while they are made: from arguments to a description.
#pragma once

#include <string>
#include <vector>

#include "operations/state.hpp"
#include "tasuki/collectives.hpp"
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
  bool has_counts = false;                                     ///< `shape.counts` was given
  std::shared_ptr<const Operator::Combine> combine = nullptr;  ///< of an operator of the user's own
};

/// Collective. Throws on every rank if the arguments of one are wrong, or differ where they must agree.
Description describe(const Context& context, CollectiveCall call, const CollectiveOptions& options);

}  // namespace tasuki
