// MPI_Neighbor_alltoallw and MPI_Alltoallw inside a host, without MPI: each block goes from the sender's type into a
// stream of bytes that the receiver reads into its own, segment by segment, all blocks at the same time. That is only
// possible if all ranks of the communicator do so in the same call; they agree in shared memory (channel.hpp), while
// MPI has their first calls. A rank without the library never agrees, so that all stay with MPI.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "channel.hpp"
#include "comms.hpp"
#include "filling.hpp"
#include "known.hpp"
#include "peers.hpp"
#include "scratch.hpp"

namespace tasuki::mpi {

/// A part of one of the program's buffers, as it describes it.
struct Whole {
  void* buffer;
  std::int64_t count;
  MPI_Datatype type;
};

/// Whose blocks come, and to whom blocks go: ranks of the communicator, or MPI_PROC_NULL.
struct Peers {
  std::vector<int> sources, targets;
};
/// Of a neighbourhood collective; none if the communicator has no neighbours.
std::optional<Peers> neighbours_of(MPI_Comm comm);

/// Of one communicator, and one kind of collective.
class Exchange {
 public:
  enum class Kind : std::uint8_t { neighbours, all };
  Exchange(MPI_Comm handle, const Comm& comm, Kind kind, Peers peers);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange();

  const Peers& peers() const { return peers_; }
  /// Once for each of the communicator's calls: whether it goes this way, on all ranks. Collective.
  bool enter();
  /// Of a call that does: a status that the communicator's error handler has seen. `received` may not overlap anything.
  int run(const char* call, const void* caller, std::span<const Whole> sent, std::span<const Whole> received);

 private:
  struct Block {  // one call's
    int peer;     // of the communicator; negative: none
    std::shared_ptr<Counted> what;
    std::byte* buffer;
    std::int64_t bytes;
    Scratch packed;            // by MPI, if nothing is known of the type
    std::int64_t done, total;  // total: of the message; -1: not known yet
    Filling filling;           // of what is sent
  };
  struct Lane {  // to or from one rank
    int world;
    ChannelEnd end;
    std::vector<std::size_t> blocks;  // in their order in the stream
    std::size_t next;
  };

  void find_lanes();
  bool prepare();
  bool refuse();
  bool agree();
  void begin(std::vector<Block>& blocks, std::span<const Whole> given, const char* call, const void* caller);
  bool send_some(Lane& lane);
  bool receive_some(Lane& lane);
  void finish_receives(std::span<const Whole> received);
  void note_error(int status) {
    if (error_ == MPI_SUCCESS) error_ = status;
  }

  MPI_Comm handle_;
  std::vector<int> world_;
  std::uint64_t key_;
  Kind kind_;
  Peers peers_;
  bool found_ = false, prepared_ = false, refused_ = false, agreed_ = false;
  std::int64_t calls_ = 0;
  std::int64_t begins_ = std::numeric_limits<std::int64_t>::max();  // the first call that is not MPI's
  Agreement* agreement_ = nullptr;
  std::vector<Channel*> own_channels_;
  std::vector<Block> in_, out_;
  std::vector<Lane> from_, to_;
  int error_ = MPI_SUCCESS;
};

/// Null if the communicator's ranks are not known (comms.hpp), or there is no shared memory, or no neighbour.
Exchange* exchange_of(MPI_Comm comm, Exchange::Kind kind);
/// Whether all parts can be moved by this library or by MPI_Pack; else MPI finds what is wrong with the call.
bool sound(std::span<const Whole> parts);

}  // namespace tasuki::mpi
