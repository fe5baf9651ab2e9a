// What is known of the program's datatypes: found out when a type is first used in a call, kept until MPI ends the
// type.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "layout/packer.hpp"
#include "tasuki/datatype.hpp"
#include "tasuki/layout.hpp"

namespace tasuki::mpi {

/// How the bytes of a typed buffer are moved.
enum class Route : std::uint8_t {
  undecided,
  original,  ///< by MPI, as the program says it
  spelt,     ///< by MPI, in another spelling
  packed,    ///< packed here, sent as what it then is
  ring,      ///< packed into memory that the receiver unpacks it from at the same time
};

/// What was measured of one (type, count), or of one like it, in ns.
struct Prices {
  double mpi = 0;    ///< MPI packs it as the program spells it
  double spelt = 0;  ///< MPI packs it in its favourite spelling; 0 if that was not tried
  double own = 0;    ///< it is packed here
};

struct Type;

// Open MPI 5.0 writes past the end of a contiguous receive if the message is longer (and of more than 4 KiB), while its
// derived types keep to their bytes. So there the last bytes of a packed message are received apart from the others.
#ifdef OPEN_MPI
inline constexpr std::int64_t kLandingGap = 64, kLandingTail = 8;
#else
inline constexpr std::int64_t kLandingGap = 0, kLandingTail = 0;
#endif

/// `count` elements of a type. Kept as long as the type, and as long as a message needs it.
struct Counted {
  Counted(const Type& type, std::int64_t count);
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted();

  std::int64_t count;
  std::int64_t unit;  ///< as of the type
  Layout layout;
  Packer packer;
  bool contiguous;     ///< one run of bytes, which MPI moves as well as anybody
  std::uint64_t like;  ///< equal for those that have equal prices
  std::atomic<Route> route{Route::undecided};
  std::atomic<bool> own_pack{false};  ///< MPI_Pack and MPI_Unpack are faster here
  /// How much faster it is expected through the ring than otherwise, in ns; not above 0: it does not go there. While a
  /// sender has waited for less than that for the receive to be posted, it has lost nothing.
  std::atomic<std::int32_t> ring_gain{0};
  Prices prices;  ///< once it is decided
  Spelt spelt;    ///< if MPI is faster in its favourite spelling; no type else
  std::int64_t bytes() const { return layout.size(); }
  /// Unpacks `bytes` bytes from byte `begin` on, as of a message that is shorter than its receive allows.
  void unpack_part(const std::byte* packed, std::int64_t begin, std::int64_t bytes, std::byte* base) const;
  /// The type by which MPI receives the packed bytes into memory of `bytes() + kLandingGap`; null: as MPI_PACKED.
  MPI_Datatype landing() const;
  /// Makes them follow each other, once they have come.
  void close_gap(std::byte* packed) const;
  /// It in pieces, one after the other, which are packed and unpacked at the same time on two ranks.
  const std::vector<Packer>& segments() const;

 private:
  friend class PostingWait;
  mutable std::once_flag cut_, landed_;
  mutable MPI_Datatype landing_ = MPI_DATATYPE_NULL;
  mutable std::vector<Packer> segments_;
  // Of waits for postings: how many sends do without, and after how many the next wait is tried if it is in vain too.
  mutable std::atomic<int> skip_{0}, backoff_{0};
};

struct Type {
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  Layout layout;
  bool plain = true;      ///< any number of elements is one run of bytes from its first byte on, or nothing is known
  std::string unknown;    ///< why nothing is known; empty else
  std::int64_t unit = 0;  ///< bytes of which all its parts are multiples
  int combiner = 0;       ///< how it was made last
  struct List;            // its Counteds
  std::shared_ptr<List> counted;
};

/// The type of a handle. Never null: handles that mean nothing have a plain type, so that MPI finds the fault itself.
const Type& type_of(MPI_Datatype handle);
/// Whether elements of the handle, whose `type_of` is plain, are known to be runs of bytes.
bool runs_of_bytes(const Type& type, MPI_Datatype handle);
/// Whether MPI would take the type in a call: it exists and is committed.
bool usable(MPI_Datatype handle);
/// Of how many bytes the segments of a message are, but for the last: the same on both sides.
std::int64_t segment_bytes(std::int64_t message_bytes);
inline constexpr std::int64_t kMostSegment = 32 << 10;
/// Stays valid while the type lives.
const std::shared_ptr<Counted>& counted(const Type& type, std::int64_t count);

/// Called by MPI_Init and MPI_Finalize.
void begin_types();
void end_types();

}  // namespace tasuki::mpi
