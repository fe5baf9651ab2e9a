// Broadcast: one rank's bytes to all ranks, pipelined over trees laid out on the topology.
#pragma once

#include "tasuki/collectives.hpp"

namespace tasuki {

/// As those of all collectives. `trees`: the message is cut into so many parts, each with its own tree; `arity`:
/// children of an inner rank; `chunk`: bytes that travel as one step of the pipeline. 0: chosen by cost.
using BroadcastOptions = CollectiveOptions;

/// At every start, the `bytes` contiguous bytes at `data` of rank `root` go to `data` of every rank; or the bytes that
/// the root's layout names, counted from `data`, to those that the layout of every rank names, which are as many.
/// `root`, `bytes` and the options must be the same on all ranks. For the rest what collectives.hpp says of all holds,
/// memory of GPUs too.
class Broadcast : public Operation {
 public:
  Broadcast(const Context& context, int root, void* data, std::int64_t bytes, const BroadcastOptions& options = {});
  Broadcast(const Context& context, int root, void* data, const Layout& layout, const BroadcastOptions& options = {});
};

}  // namespace tasuki
