// What the paths between GPUs that reach each other share.
#pragma once

#include "paths/path.hpp"

namespace tasuki {

/// A path of that name with that protocol. The caller sets preference and offer.
Path peer_path(std::string name, std::shared_ptr<const Protocol> protocol);

/// The offer of a path that stores into the receiver's own memory. If the receiver adds it up there, that is a pass of
/// its own.
Offer peer_into(const Question& question);
/// The offer of a path that needs a second pass at the receiver. If the receiver sends as well, its blocks are busy
/// packing, and the second pass takes longer than measured: `Constants::second_pass` times a copy by the whole GPU is
/// added.
Offer peer_two_passes(const Question& question);

/// Bytes per second of a copy within a GPU.
double copy_bandwidth(const Machine& machine);

}  // namespace tasuki
