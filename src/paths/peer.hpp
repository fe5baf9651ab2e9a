// What the paths between GPUs that reach each other have in common.
#pragma once

#include "paths/path.hpp"

namespace tasuki {

/// A path of that name with the protocol; preference and offer are the caller's.
Path peer_path(std::string name, std::shared_ptr<const Protocol> protocol);

/// An offer for stores into the receiver's own memory.
Offer peer_into(const Question& question);
/// An offer for what takes a second pass at the receiver. Where that sends as well, and copies within its GPU, the pass
/// costs more than was measured without: as if a third of the GPU made it.
Offer peer_two_passes(const Question& question);

}  // namespace tasuki
