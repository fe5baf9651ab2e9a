// Machine: ranks, hosts, islands, GPUs, networks, and what each path costs, as data. A context discovers and measures
// it; it can also be read from JSON or made up. The same functions plan for all of them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tasuki {

/// Where bytes are: in a processor's memory or in a GPU's.
enum class Memory : std::uint8_t { host, device };
std::string_view to_string(Memory memory);

/// What a path does with contiguous pieces of one size.
struct SizedBandwidth {
  std::int64_t bytes = 0;
  double bandwidth = 0;  ///< the bytes over the seconds beyond the latency
  friend bool operator==(const SizedBandwidth&, const SizedBandwidth&) = default;
};

/// A piece of more than so many bytes goes by another protocol, which moves all of its bytes.
struct ProtocolSwitch {
  std::int64_t bytes = 0;
  double latency = 0;  ///< of the protocol, instead of the link's
  double bandwidth = 0;
  friend bool operator==(const ProtocolSwitch&, const ProtocolSwitch&) = default;
};

/// What a contiguous run costs where an epoch moves many of them, more than caches hold the lines of.
struct RunsPrice {
  std::int64_t runs = 0;
  double seconds = 0;  ///< of each
  friend bool operator==(const RunsPrice&, const RunsPrice&) = default;
};

/// What a program loses to a path once it writes what it sent, and reads what it received.
struct SizedReuse {
  std::int64_t bytes = 0;  ///< of the piece that each of two ranks sends the other
  double seconds = 0;      ///< of each rank, beyond what it takes where both pieces lie in its own caches
  friend bool operator==(const SizedReuse&, const SizedReuse&) = default;
};

/// What a path costs in one situation, in seconds and bytes per second.
struct LinkCost {
  double latency = 1e-6;        ///< of a link with one word, from start to arrival
  double bandwidth = 5e9;       ///< of the first `PathCost::bulk_from` bytes of a piece
  double bulk_bandwidth = 5e9;  ///< of its bytes beyond these
  double per_run = 2e-9;        ///< added for every contiguous run of the more scattered side, if these are few
  /// By size, ascending; other sizes lie between these. If there are any, both bandwidths above only describe the path.
  std::vector<SizedBandwidth> by_size = {};
  /// By size, ascending. A piece of more bytes than the first of them does not use the bandwidths above.
  std::vector<ProtocolSwitch> switches = {};
  /// By their number, ascending. `per_run` is of `few_runs`; other numbers lie between these.
  std::vector<RunsPrice> by_runs = {};
  static constexpr std::int64_t few_runs = 2048;
  friend bool operator==(const LinkCost&, const LinkCost&) = default;
};

/// What a path costs.
struct PathCost {
  LinkCost one_way;  ///< the receiver sends nothing back
  LinkCost mutual;   ///< both ranks send to each other at the same time
  /// The same where the source or the destination is a user's own memory, which other ranks do not map. Only if `own`.
  LinkCost own_one_way, own_mutual;
  bool own = false;  ///< false: such memory costs what shared memory does
  /// By size, ascending, in memory that ranks share and in a user's own; other sizes lie between these. Paths of
  /// operations that move what programs compute with are chosen by it; it is no part of an operation's time.
  std::vector<SizedReuse> reuse = {}, own_reuse = {};
  std::int64_t bulk_from = 0;  ///< bytes of a piece beyond this many move with `bulk_bandwidth`; 0: none do
  /// Descriptors of one piece that start with the latency above; 0: any number. A descriptor names one strided row of
  /// blocks.
  std::int64_t descriptors = 0;
  double more_descriptors = 0;  ///< seconds that more of them take longer to start
  bool measured = false;        ///< false: the prices are the defaults
  friend bool operator==(const PathCost&, const PathCost&) = default;
};

/// What an algorithm of a collective was measured to take, against what the model says: by it the model's time is
/// multiplied where algorithms are chosen (docs/collectives.md). `tasuki tune --collectives` measures them.
struct Correction {
  std::string collective;  ///< `allreduce`
  Memory memory = Memory::host;
  bool shared = true;  ///< host memory: every rank's is where the others can reach it (`shared_alloc`)
  int ranks = 2;       ///< on so many ranks, in so many islands
  int islands = 1;
  std::string algorithm;  ///< and its parameters
  int trees = 0;
  int arity = 0;
  std::int64_t chunk = 0;
  std::string path = "auto";  ///< the paths that it was made to take
  std::int64_t bytes = 0;     ///< of the vector, or of all blocks
  double factor = 1;          ///< measured / predicted
  friend bool operator==(const Correction&, const Correction&) = default;
};

/// Every number that planning uses besides measured prices: sizes from which something pays, how many pieces to cut,
/// and prices that cannot be measured. A machine file may change them under "constants". Ranks that plan together must
/// have the same. Seconds, bytes or plain counts.
struct Constants {
  // Choosing a path (src/planner/choose.cpp).
  double of_sum = 0.05;          ///< share of the sum of all costs that counts beside the slowest resource
  double second_link = 0.2;      ///< a further link to a peer costs this share of its latency where latencies overlap
  double noise_host = 0.1;       ///< relative error of prices in host memory: a smaller gain does not change a path
  double noise_device = 0.03;    ///< the same in GPU memory
  double further_network = 0.1;  ///< a second network is used beside the best one if that saves this share of the time
  // Eager protocol (src/protocols/eager.cpp).
  std::int64_t eager_small = 4 << 10;    ///< a link of at most this many bytes has the longer ring
  std::int64_t eager_short_ring = 2;     ///< epochs that a ring holds, at least
  std::int64_t eager_long_ring = 8;      ///< epochs that the ring of a small link holds
  std::int64_t eager_most_epochs = 16;   ///< epochs that a ring in host memory holds, at most ...
  std::int64_t eager_epochs = 1 << 20;   ///< ... and in that case the bytes of all of them together
  std::int64_t eager_slice = 4 << 10;    ///< least bytes of a slice in host memory: fewer are not worth a signal
  std::int64_t eager_large = 1 << 20;    ///< a link in host memory of more bytes, both ways, has a ring of slots
  std::int64_t eager_slot = 512 << 10;   ///< bytes of a slot, both ways
  std::int64_t eager_step = 128 << 10;   ///< bytes of a slot, one way; a link of more bytes has a ring of them
  std::int64_t eager_ring = 2 << 20;     ///< bytes of all slots of a ring, about
  std::int64_t cache_line = 64;          ///< bytes
  std::int64_t many_lines = 1 << 20;     ///< bytes of cache lines that do not fit into a core's own caches
  std::int64_t slice_lines = 128 << 10;  ///< bytes of cache lines that stay in a core's own caches
  std::int64_t few_lines = 16 << 10;     ///< bytes of cache lines that are not worth a signal
  std::int64_t most_interleaved = 64;    ///< slices of an interleaved link, at most
  // Messages (src/protocols/message.cpp).
  std::int64_t message_most = 0x7fffffff;  ///< largest message of MPI, bytes
  std::int64_t message_read = 16 << 10;    ///< a message of MPI of more bytes within a host is copied by its receiver
  std::int64_t staged_slice = 1 << 20;     ///< smallest message of a staged link that is worth cutting
  std::int64_t staged_slices = 16;         ///< messages that a large staged link is cut into, about
  // Copy engines (src/paths/peer_copy.cpp).
  std::int64_t copy_engine_calls = 1024;  ///< a piece that takes more calls of the copy engine is refused
  double copy_engine_call = 1.5e-6;       ///< seconds from one call to the next
  double copy_engine_signal = 4.5e-6;     ///< seconds that an engine loses where it signals a copy before the next one
  double gpu_copy_bandwidth = 1e12;       ///< bytes per second within a GPU, where it was not measured
  double gpu_signal = 4e-7;               ///< seconds that blocks lose where they signal together what has been sent
  double gpu_round = 3e-6;                ///< the same where they wait for another lane, or move within one
  double gpu_chunk = 8e-7;                ///< seconds by which a chunk keeps the links of a GPU longer than its bytes
  double gpu_hop = 6e-6;     ///< seconds that a chunk takes longer from one GPU to the next, which delay no other chunk
  double line_start = 0.03;  ///< share of LL lines that have come when a GPU that forwards them begins to
  double line_hop = 1.3e-6;  ///< seconds that such a line takes from one GPU to the next
  double line_sum = 0.25;    ///< what adding up lines costs where GPUs also fill some: of a copy by the whole GPU
  double gpu_sum_on = 0.3;   ///< share by which a put takes longer whose sum is stored where it is made, too
  double gpu_to_all = 0.1;   ///< the same of stores to several GPUs that store back
  double second_pass = 3;    ///< where both GPUs send, unpacking adds this many times a copy by the whole GPU
  // A computation beside an operation (src/predict/advise.cpp).
  double thread_hand_over = 1e-5;  ///< seconds that a call loses where the progress thread has to be woken
  double gpu_launch = 2.7e-6;      ///< seconds by which a kernel of its own delays what it does
  std::int64_t gpu_sms = 132;      ///< SMs of a GPU
  double gpu_sm_bandwidth = 2e10;  ///< bytes per second that one SM moves for an exchange
  // Transfers (src/collectives/transfer_moves.cpp).
  std::int64_t transfer_part = 8 << 10;  ///< least bytes of a part of a transfer, or of a slice of a link of one way
  std::int64_t transfer_parts = 8;       ///< most parts of a transfer, or about as many slices of such a link
  friend bool operator==(const Constants&, const Constants&) = default;
};

/// Every constant by its name in machine files.
std::map<std::string, double> by_name(const Constants& constants);

/// How ranks, hosts or islands are joined. A switch joins all at one distance; a torus has links between neighbours.
struct Network {
  enum class Kind : std::uint8_t { none, switched, torus };
  Kind kind = Kind::none;
  std::vector<int> extents;  ///< torus: hosts in each dimension, the last fastest; a ring has one
  int rails = 1;             ///< links a host can drive at once in one direction
  double bandwidth = 0;      ///< of a link, bytes per second, one way; 0: not known
  double latency = 0;        ///< of a hop, seconds
  double collision = 1;      ///< share of the bandwidth that is left where a host receives from two others at once
  friend bool operator==(const Network&, const Network&) = default;
};

/// A machine. A value; everything is O(ranks) in memory.
class Machine {
 public:
  struct Rank {
    std::int32_t host = 0;    ///< ranks with equal host share a processor's memory
    std::int32_t island = 0;  ///< ranks with equal island may store into each other's host memory
    std::int32_t gpus = -1;   ///< ranks with equal number, not -1, reach each other's GPU memory; -1: it has no GPU
    friend bool operator==(const Rank&, const Rank&) = default;
  };
  std::string name = "machine";
  std::string source = "made up";  ///< `measured`, `from the paper's figures`, `made up`: shown beside every price
  std::vector<Rank> ranks;
  bool threads = false;                         ///< the ranks are threads of one process, between which there is no MPI
  int cores = 0;                                ///< of a host; 0: as many as ranks
  Network inside;                               ///< of an island
  Network outside;                              ///< between islands
  std::map<std::string, PathCost> costs;        ///< by path; a path without an entry has the default prices
  std::map<std::string, std::string> unusable;  ///< by path: why it cannot be used here
  /// By path: the network that it uses between ranks of one island, `inside` or `outside`. Paths that use the same one
  /// share what it carries. A path without an entry uses what src/paths says of it; between islands all use `outside`.
  std::map<std::string, std::string> uses;
  std::string gpu_reason;  ///< why GPUs of different numbers do not reach each other
  Constants constants;
  std::vector<Correction> corrections;  ///< of collectives; none: the model by itself

  int size() const { return static_cast<int>(ranks.size()); }
  bool same_host(int a, int b) const { return at(a).host == at(b).host; }
  bool same_island(int a, int b) const { return at(a).island == at(b).island; }
  bool reach(int a, int b) const { return at(a).gpus >= 0 && at(a).gpus == at(b).gpus; }  ///< of their GPUs
  bool gpus_complete() const;  ///< all ranks have GPUs that reach each other
  const PathCost& cost(const std::string& path) const;

  /// `ranks` ranks on hosts of `per_host`, in islands of `per_island`: 0 is a host; a multiple of `per_host` makes an
  /// island of several hosts. With `gpus`, each island's GPUs reach each other.
  static Machine uniform(int ranks, int per_host, int per_island, bool gpus = false);
  /// The same machine with exactly `ranks` ranks: its first ones, or with more hosts like the ones that it has. A torus
  /// of hosts grows in its first dimension, by whole planes; where islands are tori, by whole islands. Throws `Error`
  /// if more are wanted and its hosts are not all alike, or would not fill their torus.
  Machine resized(int ranks) const;

  /// JSON, for machine files (docs/machines.md). `from_json(to_json(m)) == m`. Reading throws `Error` that names
  /// `file`, the place and the reason: unknown keys, islands that no host has, prices that are not positive.
  std::string to_json() const;
  static Machine from_json(std::string_view json, const std::string& file = "machine");
  friend bool operator==(const Machine&, const Machine&) = default;

 private:
  const Rank& at(int rank) const { return ranks[static_cast<std::size_t>(rank)]; }
};

}  // namespace tasuki
