// Path: how bytes move between two ranks. A path is a protocol (which commands), a cost (what it can carry and for what
// price) and the name of a transport (who carries what loads and stores cannot). This is the pure part: it answers from
// data alone, so it can be asked about machines that do not exist. Transports are the live part
// (transports/transport.hpp).
//
// A path is one file in this folder that registers itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "protocols/move.hpp"
#include "protocols/protocol.hpp"
#include "tasuki/error.hpp"
#include "tasuki/machine.hpp"

namespace tasuki {

/// The question to a path: can it carry `move` between these two buffers, and what does it cost?
struct Question {
  const Machine& machine;
  const PathCost& cost;  ///< the prices of the path that is asked
  bool forced = false;   ///< the path is the only one that the user allows for the move
  const Move& move;
  const BufferFact& src;
  const BufferFact& dst;
  bool own_memory = false;  ///< source or destination is a user's memory that other ranks do not map
  /// On hosts: bytes that a rank of the move moves in an epoch. Caches hold all of them or do not.
  std::int64_t moved = 0;
};

/// The path's answer.
struct Offer {
  bool usable = false;
  double latency = 0;   ///< seconds, paid once a link
  double seconds = 0;   ///< for this move
  double reuse = 0;     ///< seconds that the program loses later (`PathCost::reuse`)
  std::string why_not;  ///< if not usable
  static Offer no(std::string why) { return {false, 0, 0, 0, std::move(why)}; }
  static Offer yes(double latency, double seconds) { return {true, latency, seconds, 0, {}}; }
};

/// Thrown where no path can carry a move here: something to be expected of a path that is forced, and no failure of the
/// machine. Ranks that agree on an outcome throw it on all of them.
class PathUnusable : public Error {
 public:
  explicit PathUnusable(const std::string& text) : Error(ErrorKind::not_possible, text) {}
};

/// What is busy while a path moves bytes. Pieces on different resources travel at the same time.
enum class Resource : std::uint8_t {
  core,       ///< the sender's
  peer_core,  ///< the receiver's
  gpu,        ///< the rank's own, within its memory
  links,      ///< of the GPU, inside the island
  network,    ///< between islands, as the GPU sees it
};
constexpr std::size_t kResources = 5;
std::string_view to_string(Resource resource);

struct Path {
  /// As users and plans write it. `shared:put` belongs to the family `shared`; users may force the path or the family.
  std::string name;
  Memory memory = Memory::host;  ///< of source and destination

  // Protocol: which commands a link has on both ranks.
  std::shared_ptr<const Protocol> protocol;

  // Cost.
  /// Whether the path can join these two ranks of the machine at all. `offer` says whether it can carry a certain move.
  bool (*joins)(const Machine& machine, int a, int b) = nullptr;
  Offer (*offer)(const Question& question) = nullptr;
  /// What is busy while the path moves bytes between ranks that reach each other, if the machine says nothing else
  /// (`resource_of`).
  Resource resource = Resource::core;
  /// Its messages take the machine's network `outside` from host to host also within an island, if the machine says
  /// nothing else (`by_outside`).
  bool outside = false;
  /// True: the resource is links that carry as much in each direction: what leaves one rank enters the other.
  bool both_ends = false;
  /// True: the sender's core packs and the receiver's unpacks, so both are busy.
  bool both_cores = false;
  /// True: latencies of links to different peers pass at the same time. False: the resource is busy during each of
  /// them.
  bool latencies_overlap = false;
  /// If offers differ by less than their measuring error, the path of lowest preference wins: 0: one pass, done by the
  /// sender; 1: one pass, done by the receiver; 2: staged; 3: through a library. Among equals the cheapest wins.
  int preference = 2;
  /// True: the sender need not wait for the receiver of the same epoch, so a receiver that comes late delays nobody.
  /// Links of at most `Constants::eager_small` bytes prefer such a path to all others that cost about the same.
  bool early = false;

  // Transport.
  std::string transport;      ///< name of the transport that carries commands of the verbs in `carried`; empty: none
  std::vector<Verb> carried;  ///< verbs that loads and stores of this rank cannot do
  /// Set up, and so offered, only where some GPUs do not reach each other, or where a list names it.
  bool when_needed = false;
  /// While the transport carries a message, the lane goes on with commands that touch other bytes
  /// (plan/passes/message_order.cpp).
  bool in_background = false;

  bool carries(Verb verb) const;
};

/// All paths, by name.
const std::vector<Path>& all_paths();
/// Throws `Error` if there is none of that name.
const Path& path_named(const std::string& name);

/// What is busy while the path moves bytes from rank a to rank b. Paths share a resource if they use the same network
/// of the machine.
Resource resource_of(const Machine& machine, const Path& path, int a, int b);
/// Whether what the path moves between the two ranks travels through the machine's network `outside`; else through the
/// one `inside`.
bool by_outside(const Machine& machine, const Path& path, int a, int b);

// Option `path` (wanted.cpp). Its text is a list with commas between names: `auto`, a family or a name. In the list of
// a halo `i=` before a name begins the list of one direction; directions that are not named have the list before the
// first of them, or `auto`: `mpi,j=peer,nccl` is `mpi` but for direction j, which has `peer,nccl`.

/// The list for moves of a direction (`Move::direction`).
std::string wanted_in(const std::string& wanted, int direction);
/// True if the list, of one direction, allows `path`.
bool allows(const std::string& list, const Path& path);
/// True if `path`, or its family, is all that the list, of one direction, names.
bool forces(const std::string& list, const Path& path);
/// True if one of the lists of `wanted` names `path` or its family.
bool names(const std::string& wanted, const Path& path);
/// Empty if all names in `wanted` exist, else a complaint that lists the existing ones. `directions`: how many the
/// operation has; 0: it is no halo, and may name none.
std::string path_complaint(const std::string& wanted, int directions);
/// The same text without the lists of directions, for operations that have none.
std::string without_directions(const std::string& wanted);

/// `const PathRegistration registration{[] { Path path; ...; return path; }};` at namespace scope registers a path.
struct PathRegistration {
  explicit PathRegistration(Path (*make)());
};

/// The price of a move by the path's constants: the latency of its link, plus bytes over bandwidth, plus the extra time
/// of every run, and of more descriptors than start at once. A piece that is larger than a protocol switch has the
/// latency and the bandwidth of that protocol. If bandwidths are known by size, a piece has that of its size, between
/// those that are known, and a part of what a rank moves in an epoch that of all of it. Otherwise the first `bulk_from`
/// bytes of a piece are divided by `bandwidth`, the bytes beyond them by `bulk_bandwidth`. A part of a larger piece
/// pays for both in the proportion of the whole piece: with `bulk_from` = 32 KiB, a part of 32 KiB of a piece of 128
/// KiB pays for 8 KiB at `bandwidth` and 24 KiB at `bulk_bandwidth`. A mutual move has the mutual constants.
Offer priced(const Question& question);
/// The same for messages of GPU memory: a side that is scattered is packed by a copy within that GPU.
Offer priced_packed(const Question& question);
/// Seconds of a copy within a GPU that packs so many bytes and runs for a message, or unpacks them.
double packing_seconds(const Machine& machine, std::int64_t bytes, std::int64_t runs);
/// The latency of a piece of so many bytes.
double latency_of(const LinkCost& link, std::int64_t bytes);
/// Seconds of `bytes` contiguous bytes beyond the latency, part of a piece of `whole`.
double seconds_of(const PathCost& cost, const LinkCost& link, double bytes, double whole);
/// The offer of a path that moves every run by itself, also those that others turn from rows into columns in tiles.
Offer without_tiles(Offer offer, const Question& question);
/// The same for a path of host memory that packs at one end and unpacks at the other, which was measured with runs at
/// both: where one end is contiguous they cost half.
Offer priced_through_ring(const Question& question);
/// The same for messages of host memory, which are measured with runs of a few bytes: a side that is scattered is
/// packed or unpacked, which takes a copy of its bytes within the rank.
Offer priced_as_message(const Question& question);
/// The same for a path that stores into, or loads from, memory on which another core works: the side `far` of each
/// copy. There runs that are shorter than a cache line cost twice: the line has to return to that core, which takes it
/// the same time again. Where that side is contiguous, the runs of the other one cost what they do within a rank.
Offer priced_in_place(const Question& question, Pattern (StridedCopy::*far)() const);

// Conditions that several paths share. Each returns an empty string, or why the path cannot carry the move.
std::string not_in_island(const Question& question);     ///< needs two ranks of one island
std::string not_between_gpus(const Question& question);  ///< needs two ranks whose GPUs reach each other
bool joins_in_island(const Machine& machine, int a, int b);
bool joins_gpus(const Machine& machine, int a, int b);

}  // namespace tasuki
