// Path: how bytes move between two ranks. States what it can do and what it costs, and emits the commands for it.
//
// A path is one file in this folder: a class that implements `Path` and a line that registers it. The planner asks
// every path for an offer on every piece; pieces that take the same path between the same two ranks form a link, and
// the link's commands come from the six emit functions, always called in this order:
//
//   sender's lane:    open_send    send (once, or once a round of a chunk loop)    close_send
//   receiver's lane:  open_recv    recv (likewise)                                close_recv
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "paths/profile.hpp"
#include "plan/builder.hpp"
#include "session/gpus.hpp"
#include "session/runtime.hpp"
#include "tasuki/context.hpp"
#include "tasuki/strided_copy.hpp"
#include "transports/channel.hpp"

namespace tasuki {

/// Where a rank keeps one user buffer; plain data that peers tell each other. One entry a copy (1, or 2 for a pair).
struct Place {
  std::int32_t copies = 1;
  std::int32_t ring = 1;   ///< 2 if the operation alternates between the copies
  std::int64_t bytes = 0;  ///< of one copy
  Memory memory = Memory::host;
  std::array<SharedAddress, 2> shared{};   ///< host memory
  std::array<GpuAddress, 2> gpu{};         ///< GPU memory
  std::array<std::uint64_t, 2> address{};  ///< in the owner's address space
};

/// One piece that must get from one rank to another. Both ranks describe it alike.
struct Move {
  std::int64_t seq = 0;  ///< order among the moves between these two ranks in this direction, the same on both
  int src_rank = 0;
  int dst_rank = 0;
  int src = 0;  ///< user buffer of the source rank
  int dst = 0;  ///< user buffer of the destination rank
  std::vector<StridedCopy> copies;
  DType add = DType::none;  ///< not `none`: add to the destination, do not overwrite
  bool mutual = false;      ///< moves go the other way between these two ranks as well; `mark_mutual` sets it
  std::int64_t whole = 0;   ///< bytes of the piece that this is a part of, if it is one: bulk is what that has
  std::string label;        ///< for people: `p face +0`
  std::int64_t bytes() const;
  std::int64_t runs() const;  ///< contiguous runs on the more scattered side
  /// Whether most runs are shorter than a cache line.
  bool shares_lines() const { return bytes() < 64 * runs(); }
};

/// What a path says to a move.
struct Offer {
  bool usable = false;
  double latency = 0;   ///< seconds, paid once for a link
  double seconds = 0;   ///< for this move
  std::string why_not;  ///< if not usable
  static Offer no(std::string why) { return {false, 0, 0, std::move(why)}; }
  static Offer yes(double latency, double seconds) { return {true, latency, seconds, {}}; }
};

/// The moves between this rank and a peer that share a path, while commands are made for them.
struct Link {
  std::string path;
  int peer = 0;
  int number = 0;  ///< tells links from one rank to another apart; the same on both
  std::vector<const Move*> moves;
  std::vector<int> src;  ///< plan buffer per move
  std::vector<int> dst;
  /// Filled by `recv`, for ordering additions: the command that delivers each move, or the last of several; the first
  /// of them is then in `first_commands`, which is empty where the path delivers every move at once.
  std::vector<int> commands;
  std::vector<int> first_commands;
  bool mutual = false;        ///< moves go both ways between the two ranks: neither has time to spare for the other
  bool alternating = false;   ///< all destinations are rings of two: permission may be given an epoch early
  std::int64_t capacity = 0;  ///< bytes of all rounds together: what a scratch buffer of the link must hold
  std::int64_t filled = 0;    ///< bytes of the rounds before the current `send` or `recv`: where its scratch begins
  int scratch = -1;           ///< for the path's own use between its calls
  /// Called by a `recv` that may deliver moves in several commands, for each of them in order.
  void delivers(std::size_t move, int command);
  std::string name(const char* what, int writer) const;  ///< a name for the link's counters and scratch
  std::int64_t bytes() const;                            ///< of one round
};

class Path {
 public:
  virtual ~Path() = default;
  /// As users and plans write it. `shared:put` belongs to the family `shared`; either may be forced.
  virtual std::string name() const = 0;
  /// Whether the path can join these two ranks at all; what it takes besides is for `offer` to say.
  virtual bool joins(const Topology& topology, int a, int b) const = 0;
  /// The memory that it works on, and whether it can move between these two; offers are asked for only then.
  virtual Memory memory() const { return Memory::host; }
  virtual bool serves(Memory src, Memory dst) const { return src == memory() && dst == memory(); }
  /// What is busy while the path moves bytes: `core` (the sender's), `peer core` (the receiver's), or hardware of its
  /// own. Pieces on different resources travel at the same time.
  virtual std::string resource() const { return "core"; }
  /// Whether the latencies of links to different peers pass at the same time, rather than keep the resource busy.
  virtual bool latencies_overlap() const { return false; }
  /// Where offers differ by less than measurements do, the lowest wins: 0 one pass, by whoever has the bytes; 1 one
  /// pass, by whoever wants them; 2 staged; 3 through somebody else's library. Among equals the cheapest wins.
  virtual int preference() const { return 2; }
  /// Called before offers are asked for when an operation on GPU memory may be made, with the path that is wanted: what
  /// takes long, or all ranks together, is done once here. Collective.
  virtual void prepare(Runtime& runtime, const std::string& wanted);
  virtual Offer offer(const Move& move, const Place& src, const Place& dst) const = 0;

  virtual void open_send(Builder&, Link&) const {}
  virtual void send(Builder&, Link&) const = 0;
  virtual void close_send(Builder&, Link&) const {}
  virtual void open_recv(Builder&, Link&) const {}
  virtual void recv(Builder&, Link&) const = 0;
  virtual void close_recv(Builder&, Link&) const {}

  /// Commands that an engine cannot carry out with loads and stores go through a channel of the path.
  virtual bool carries(const Command& command) const;  ///< default: send and recv
  virtual std::unique_ptr<Channel> open(const ChannelRequest& request) const;
};

/// What a move costs on the path called `name`: the profile's latency for its link, then bytes over bandwidth (what is
/// above `bulk_from` over that of bulk; a part of a larger piece has its share of both) and the extra time of every
/// contiguous run, with the mutual constants for a mutual move. `Offer::yes` with these.
Offer priced(const Profile& profile, const std::string& name, const Move& move);
/// The same for a path that stores into or loads from memory which another core works on. Runs shorter than a cache
/// line cost twice: the lines have to come back, which takes that core as long when it works on them again.
Offer priced_in_place(const Profile& profile, const std::string& name, const Move& move);

/// The same strided copies with one side packed: consecutive bytes from `offset` on, or, with a `grain`, each copy from
/// the next multiple of it on.
std::vector<StridedCopy> pack_side(std::span<const StridedCopy> copies, std::int64_t offset, std::int64_t grain = 1);
std::vector<StridedCopy> unpack_side(std::span<const StridedCopy> copies, std::int64_t offset, std::int64_t grain = 1);
/// Bytes that copies take on their packed side.
std::int64_t packed_bytes(std::span<const StridedCopy> copies, std::int64_t grain = 1);
/// Sends a move from packed bytes in plan buffer `scratch` to its destination: a copy, or a reduction.
int deliver(Builder& builder, const Link& link, std::size_t move, int scratch, std::span<const StridedCopy> copies,
            std::int64_t scratch_step);

/// The paths that exist for the ranks of a runtime, by name.
class PathSet {
 public:
  explicit PathSet(Runtime& runtime);  ///< Collective: probes what the ranks can do. The profile is still empty.
  const std::vector<std::unique_ptr<Path>>& all() const { return paths_; }
  const Path& find(const std::string& name) const;
  /// True if `wanted` (`auto`, a family or a name, or several with commas between them) allows `path`.
  static bool allows(const std::string& wanted, const Path& path);
  /// True if it is the only name or family in `wanted`.
  static bool forces(const std::string& wanted, const Path& path);
  /// Empty if all that `wanted` names exists; else a complaint that lists what does.
  std::string complaint(const std::string& wanted) const;
  Profile profile;
  std::string measured;    ///< the paths that could be used when the profile was last completed
  bool measuring = false;  ///< it is being completed

 private:
  std::vector<std::unique_ptr<Path>> paths_;
};

/// The path set of the context's ranks; made with the first operation, its profile read from the file or, where that
/// lacks a path, measured. Collective. `wanted` is the path that the operation asks for.
PathSet& paths_of(const Context& context, const std::string& wanted = "auto");

/// Registers a path at load time: `const PathRegistration registration{[](Runtime& r, const Profile& p) { ... }};`
/// The profile outlives the path and is complete when offers are asked for.
struct PathRegistration {
  using Make = std::unique_ptr<Path> (*)(Runtime&, const Profile&);
  explicit PathRegistration(Make make);
};

}  // namespace tasuki
