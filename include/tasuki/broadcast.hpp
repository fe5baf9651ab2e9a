// Broadcast: one rank's bytes to all ranks, pipelined over trees laid out on the topology (paper 4).
#pragma once

#include "tasuki/operation.hpp"

namespace tasuki {

struct BroadcastOptions : OperationOptions {
  int trees = 0;           ///< The message is cut into so many parts, each with its own tree; 0: chosen by cost.
  int arity = 0;           ///< Children of an inner rank; 0: chosen by cost.
  std::int64_t chunk = 0;  ///< Bytes that travel as one step of the pipeline; 0: chosen by cost.
};

/// Copies `bytes` contiguous bytes at `data` of rank `root` to `data` of every rank at every start. Collective.
class Broadcast : public Operation {
 public:
  Broadcast(const Context& context, int root, void* data, std::int64_t bytes, const BroadcastOptions& options = {});
};

}  // namespace tasuki
