// Path: how bytes move between two ranks. A protocol (which commands), a cost (what it can do and for what price) and a
// transport (who carries what loads and stores cannot). This is the pure part: it decides and prices by data, so that
// it can be asked about machines that are not there. Transports are the live part (transports/transport.hpp).
//
// A path is one file in this folder that registers itself.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "protocols/move.hpp"
#include "protocols/protocol.hpp"
#include "tasuki/error.hpp"
#include "tasuki/machine.hpp"

namespace tasuki {

/// What a path is asked: can it carry `move` between buffers of which these are the facts, and what does it cost?
struct Question {
  const Machine& machine;
  const PathCost& cost;  ///< the machine's, of the path that is asked
  bool forced = false;   ///< the path is the only one that the user allows
  const Move& move;
  const BufferFact& src;
  const BufferFact& dst;
};

/// What a path answers.
struct Offer {
  bool usable = false;
  double latency = 0;   ///< seconds, paid once for a link
  double seconds = 0;   ///< for this move
  std::string why_not;  ///< if not usable
  static Offer no(std::string why) { return {false, 0, 0, std::move(why)}; }
  static Offer yes(double latency, double seconds) { return {true, latency, seconds, {}}; }
};

/// Thrown where no path can carry a move here: something to be expected of a path that is forced, and no failure of the
/// machine. Ranks that agree on an outcome throw it on all of them.
class PathUnusable : public Error {
 public:
  using Error::Error;
};

struct Path {
  /// As users and plans write it. `shared:put` belongs to the family `shared`; either may be forced.
  std::string name;
  Memory memory = Memory::host;  ///< of both sides

  // Protocol: which commands a link has on both ranks.
  std::shared_ptr<const Protocol> protocol;

  // Cost.
  /// Whether the path can join these two ranks of the machine at all; what it takes besides is for `offer` to say.
  bool (*joins)(const Machine& machine, int a, int b) = nullptr;
  Offer (*offer)(const Question& question) = nullptr;
  /// What is busy while the path moves bytes: `core` (the sender's), `peer core` (the receiver's), or hardware of its
  /// own. Pieces on different resources travel at the same time.
  std::string resource = "core";
  /// Whether the latencies of links to different peers pass at the same time, rather than keep the resource busy.
  bool latencies_overlap = false;
  /// Where offers differ by less than measurements do, the lowest wins: 0 one pass, by whoever has the bytes; 1 one
  /// pass, by whoever wants them; 2 staged; 3 through somebody else's library. Among equals the cheapest wins.
  int preference = 2;

  // Transport.
  std::string transport;      ///< name of the transport that carries commands of the verbs in `carried`; empty: none
  std::vector<Verb> carried;  ///< verbs that loads and stores of this rank cannot do
  /// The transport carries messages while the lane goes on with whatever touches other bytes
  /// (passes/message_order.hpp).
  bool in_background = false;

  bool carries(Verb verb) const;
};

/// All paths, by name.
const std::vector<Path>& all_paths();
/// Throws `Error` if there is none of that name.
const Path& path_named(const std::string& name);
/// True if `wanted` (`auto`, a family or a name, or several with commas between them) allows `path`.
bool allows(const std::string& wanted, const Path& path);
/// True if it is the only name or family in `wanted`.
bool forces(const std::string& wanted, const Path& path);
/// Empty if all that `wanted` names exists; else a complaint that lists what does.
std::string path_complaint(const std::string& wanted);

/// `const PathRegistration registration{[] { Path path; ...; return path; }};` at namespace scope registers a path.
struct PathRegistration {
  explicit PathRegistration(Path (*make)());
};

/// What a move costs by the path's constants: the latency of its link, then bytes over bandwidth (what is above
/// `bulk_from` over that of bulk; a part of a larger piece has its share of both) and the extra time of every
/// contiguous run, with the mutual constants for a mutual move. `Offer::yes` with these.
Offer priced(const Question& question);
/// The same for a path that stores into or loads from memory which another core works on. Runs shorter than a cache
/// line cost twice: the lines have to come back, which takes that core as long when it works on them again.
Offer priced_in_place(const Question& question);

// What paths between the same kinds of ranks have in common: empty, or why the path cannot serve.
std::string not_in_island(const Question& question);     ///< two ranks of one island
std::string not_between_gpus(const Question& question);  ///< two ranks whose GPUs reach each other
std::string not_between_islands(const Question& question, const std::string& path);  ///< a path that all GPUs can take
bool joins_in_island(const Machine& machine, int a, int b);
bool joins_gpus(const Machine& machine, int a, int b);

}  // namespace tasuki
