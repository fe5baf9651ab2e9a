// Broadcast: one rank's bytes to all ranks, pipelined over trees laid out on the topology.
#pragma once

#include "tasuki/operation.hpp"

namespace tasuki {

struct BroadcastOptions : OperationOptions {
  int trees = 0;           ///< The message is cut into this many parts, each with its own tree; 0: chosen by cost.
  int arity = 0;           ///< Children of an inner rank; 0: chosen by cost.
  std::int64_t chunk = 0;  ///< Bytes in one step of the pipeline; 0: chosen by cost.
};

/// At every start, the `bytes` contiguous bytes at `data` of rank `root` go to `data` of every rank. Host memory only.
/// `root`, `bytes` and the options must be the same on all ranks. Collective.
class Broadcast : public Operation {
 public:
  Broadcast(const Context& context, int root, void* data, std::int64_t bytes, const BroadcastOptions& options = {});
};

}  // namespace tasuki
