// See exchange.hpp.
#include "exchange.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "report.hpp"
#include "ring.hpp"
#include "route.hpp"
#include "session.hpp"

namespace tasuki::mpi {

namespace {

// Whether a block to the lower neighbour of a dimension arrives as that of the upper one, if both are one rank. The
// standard says so, and not all MPIs do it. Asked of the MPI itself, among this rank alone.
enum class Crossing : std::uint8_t { crosses, straight, unknown };
Crossing crossing() {
  static const Crossing found = [] {
    MPI_Comm loop = MPI_COMM_NULL;
    const int one = 1;
    if (PMPI_Cart_create(session().own, 1, &one, &one, 0, &loop) != MPI_SUCCESS) return Crossing::unknown;
    const std::array<char, 2> out{1, 2};
    std::array<char, 2> in{};
    const std::array<int, 2> counts{1, 1};
    const std::array<MPI_Aint, 2> at{0, 1};
    const std::array<MPI_Datatype, 2> types{MPI_CHAR, MPI_CHAR};
    const int status = PMPI_Neighbor_alltoallw(out.data(), counts.data(), at.data(), types.data(), in.data(),
                                               counts.data(), at.data(), types.data(), loop);
    PMPI_Comm_free(&loop);
    if (status != MPI_SUCCESS) return Crossing::unknown;
    if (in[0] == 2 && in[1] == 1) return Crossing::crosses;
    return in == out ? Crossing::straight : Crossing::unknown;
  }();
  return found;
}

// Before the bytes of a message. Those that are many begin a line of the cache.
std::int64_t head_bytes(std::int64_t message_bytes) {
  constexpr std::int64_t kLine = 64;
  return message_bytes < FillPrices::kLeast ? static_cast<std::int64_t>(sizeof(ChannelHeader)) : kLine;
}

std::size_t index(int number) {
  return static_cast<std::size_t>(number);
}

}  // namespace

std::optional<Peers> neighbours_of(MPI_Comm comm) {
  Peers peers;
  int kind = MPI_UNDEFINED, rank = 0;
  if (comm == MPI_COMM_NULL || PMPI_Topo_test(comm, &kind) != MPI_SUCCESS || kind == MPI_UNDEFINED) return {};
  PMPI_Comm_rank(comm, &rank);
  if (kind == MPI_CART) {
    int dimensions = 0;
    PMPI_Cartdim_get(comm, &dimensions);
    for (int i = 0; i < dimensions; ++i) {
      int lower = MPI_PROC_NULL, upper = MPI_PROC_NULL;
      PMPI_Cart_shift(comm, i, 1, &lower, &upper);
      peers.sources.insert(peers.sources.end(), {lower, upper});
    }
    peers.targets = peers.sources;
  } else if (kind == MPI_GRAPH) {
    int number = 0;
    PMPI_Graph_neighbors_count(comm, rank, &number);
    peers.sources.resize(index(number));
    PMPI_Graph_neighbors(comm, rank, number, peers.sources.data());
    peers.targets = peers.sources;
  } else {
    int in = 0, out = 0, weighted = 0;
    PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    peers.sources.resize(index(in));
    peers.targets.resize(index(out));
    std::vector<int> in_weights(index(in)), out_weights(index(out));
    PMPI_Dist_graph_neighbors(comm, in, peers.sources.data(), in_weights.data(), out, peers.targets.data(),
                              out_weights.data());
  }
  return peers;
}

Exchange::Exchange(MPI_Comm handle, const Comm& comm, Kind kind, Peers peers)
    : handle_(handle),
      world_(comm.world),
      key_((comm.number ^ (kind == Kind::all ? 0x5bd1e995u : 0)) * 0x9e3779b97f4a7c15u | 1),
      kind_(kind),
      peers_(std::move(peers)),
      in_(peers_.sources.size()),
      out_(peers_.targets.size()) {}

Exchange::~Exchange() {
  if (!ring_runs()) return;
  for (Channel* channel : own_channels_) channel->key.store(0, std::memory_order_release);
}

void Exchange::find_lanes() {
  int topology = MPI_UNDEFINED;
  PMPI_Topo_test(handle_, &topology);
  const bool grid = kind_ == Kind::neighbours && topology == MPI_CART;
  const bool crosses = grid && crossing() == Crossing::crosses;
  refused_ = grid && crossing() == Crossing::unknown;
  const auto add = [&](std::vector<Lane>& lanes, int peer, std::size_t block) {
    if (peer < 0) return;
    const int world = world_[index(peer)];
    auto found = std::find_if(lanes.begin(), lanes.end(), [&](const Lane& lane) { return lane.world == world; });
    if (found == lanes.end()) found = lanes.insert(lanes.end(), Lane{world, {}, {}, 0});
    found->blocks.push_back(block);
  };
  for (std::size_t i = 0; i < peers_.sources.size(); ++i) add(from_, peers_.sources[i], i);
  // In the order in which the receivers have them.
  for (std::size_t i = 0; i < peers_.targets.size(); ++i) {
    const std::size_t block = crosses ? i ^ 1 : i;
    add(to_, peers_.targets[block], block);
  }
}

// Finds all ranks and makes room for what they will send. False: not now, or never (`refused_`).
bool Exchange::prepare() {
  const Counting counting;
  if (!counting.alone()) return false;
  if (!found_) find_lanes();
  found_ = true;
  if (refused_) return refuse();
  bool all = true;
  const auto reaches = [&](int world) {
    if (world < 0) refused_ = true;
    if (world < 0 || agreements_of(world) != nullptr) return;
    all = false;
    refused_ = refused_ || lacks_library(world);
  };
  reaches(world_.front());
  for (const Lane& lane : to_) reaches(lane.world);
  for (const Lane& lane : from_) reaches(lane.world);
  if (refused_) return refuse();
  if (!all) return false;
  const auto share = static_cast<std::int64_t>(std::max<std::size_t>(from_.size(), 1));
  const std::int64_t capacity =
      std::clamp(2 * cache_bytes() / share / 64 * 64, Channels::kLeastBytes, Channels::kMostBytes);
  for (Lane& lane : from_) {
    Channels& channels = channels_from(lane.world);
    const auto free = std::find_if(channels.all.begin(), channels.all.end(),
                                   [](const Channel& channel) { return channel.key.load() == 0; });
    if (free == channels.all.end()) return refuse();
    free->place = (free - channels.all.begin()) * Channels::kMostBytes;
    free->capacity = capacity;
    free->written.store(0, std::memory_order_relaxed);
    free->read.store(0, std::memory_order_relaxed);
    free->key.store(key_, std::memory_order_release);
    own_channels_.push_back(&*free);
    lane.end = ChannelEnd(channels, *free);
  }
  Agreements& agreements = *agreements_of(world_.front());
  for (Agreement& one : agreements.all) {
    std::uint64_t key = 0;
    if (!one.key.compare_exchange_strong(key, key_) && key != key_) continue;
    agreement_ = &one;
    break;
  }
  prepared_ = agreement_ != nullptr;
  return prepared_ || refuse();
}

// Before this rank has agreed, or once the word says that one has refused.
bool Exchange::refuse() {
  refused_ = true;
  for (Channel* channel : own_channels_) channel->key.store(0, std::memory_order_release);
  own_channels_.clear();
  return false;
}

// Whether the call with the number calls_ - 1 is the library's.
bool Exchange::agree() {
  constexpr std::int64_t kEnough = 200;  // calls, after which nobody will agree any more
  const auto call = static_cast<std::uint64_t>(calls_ - 1);
  std::uint64_t word = agreement_->word.load(std::memory_order_acquire);
  for (;;) {
    if ((word & kExchangeRefused) != 0) return refuse();
    if ((word & kAgreedRanks) == world_.size()) {
      begins_ = static_cast<std::int64_t>(word / kMpisCall) + 1;
      break;
    }
    const bool refuses = calls_ > kEnough;
    const std::uint64_t agreed = (word & kAgreedRanks) + (agreed_ ? 0 : 1);
    const std::uint64_t next =
        refuses ? word | kExchangeRefused : std::max(word / kMpisCall, call) * kMpisCall + agreed;
    if (!agreement_->word.compare_exchange_weak(word, next)) continue;
    agreed_ = true;
    return refuses && refuse();
  }
  for (Lane& lane : to_) {
    Channels& channels = *channels_at(lane.world);
    const auto found = std::find_if(channels.all.begin(), channels.all.end(),
                                    [&](const Channel& channel) { return channel.key.load() == key_; });
    lane.end = ChannelEnd(channels, *found);  // it was there before its rank agreed
  }
  return static_cast<std::int64_t>(call) >= begins_;
}

bool Exchange::enter() {
  const std::int64_t call = calls_++;
  if (call >= begins_) return true;
  if (refused_ || begins_ != std::numeric_limits<std::int64_t>::max()) return false;
  if (!prepared_ && !prepare()) return false;
  return agree();
}

void Exchange::begin(std::vector<Block>& blocks, std::span<const Whole> given, const char* call, const void* caller) {
  const bool sends = &blocks == &out_;
  const std::vector<int>& peers = sends ? peers_.targets : peers_.sources;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    Block& block = blocks[i];
    const Whole& whole = given[i];
    block = {peers[i], nullptr, static_cast<std::byte*>(whole.buffer), 0, {}, 0, -1, {}};
    if (block.peer < 0 || whole.count == 0) continue;
    const Type& type = type_of(whole.type);
    if (!type.plain) {
      block.what = counted(type, whole.count);
      block.bytes = block.what->bytes();
      if (block.bytes == 0 || in_host_memory(*block.what, whole.buffer)) {
        if (reporting) route_of(*block.what, whole.buffer, whole.type);  // so that it has prices
        note(call, caller, *block.what, Route::ring);
        continue;
      }
      block.what = nullptr;
    } else {
      MPI_Count size = 0;
      PMPI_Type_size_x(whole.type, &size);
      block.bytes = static_cast<std::int64_t>(size) * whole.count;
      if (block.bytes == 0 || (runs_of_bytes(type, whole.type) && in_host_memory(whole.buffer))) continue;
    }
    block.packed = Scratch(block.bytes);
    int position = 0;
    int status = block.packed && block.bytes <= INT_MAX && whole.count <= INT_MAX ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    if (status == MPI_SUCCESS && sends)
      status = PMPI_Pack(whole.buffer, static_cast<int>(whole.count), whole.type, block.packed.data(),
                         static_cast<int>(block.bytes), &position, session().own);
    block.buffer = block.packed.data();
    if (status != MPI_SUCCESS) block.bytes = 0;
    note_error(status);
  }
}

// The next segment to a rank. False if there is none, or no room.
bool Exchange::send_some(Lane& lane) {
  if (lane.next == lane.blocks.size()) return false;
  Block& block = out_[lane.blocks[lane.next]];
  const bool first = block.total < 0;
  const std::int64_t each = segment_bytes(block.bytes), size = std::min(each, block.bytes - block.done);
  const std::int64_t head = first ? head_bytes(block.bytes) : 0;
  std::byte* to = lane.end.room(head + size);
  if (to == nullptr) return false;
  if (first) {
    const ChannelHeader header{block.bytes, calls_};
    std::memcpy(to, &header, sizeof header);
    block.total = block.bytes;
    block.filling = Filling(prices_of(lane.world), block.bytes);
  }
  if (size > 0 && block.what != nullptr)
    block.filling.pack(block.what->segments()[static_cast<std::size_t>(block.done / each)], block.buffer, to + head);
  else if (size > 0)
    block.filling.copy(block.buffer + block.done, size, to + head);
  lane.end.written(head + size);
  block.done += size;
  if (block.done == block.total) ++lane.next;
  return true;
}

// The next segment from a rank. False if none is awaited, or there.
bool Exchange::receive_some(Lane& lane) {
  if (lane.next == lane.blocks.size()) return false;
  Block& block = in_[lane.blocks[lane.next]];
  const std::byte* from = lane.end.next();
  if (from == nullptr) return false;
  std::int64_t head = 0;
  if (block.total < 0) {
    ChannelHeader header{};
    std::memcpy(&header, from, sizeof header);
    if (header.call != calls_ || header.bytes < 0) order_lost();
    head = head_bytes(header.bytes);
    block.total = header.bytes;
    if (block.total > block.bytes) note_error(MPI_ERR_TRUNCATE);
  }
  const std::int64_t each = segment_bytes(block.total), size = std::min(each, block.total - block.done);
  const std::int64_t fits = std::min(size, block.bytes - block.done);
  if (fits > 0 && block.what == nullptr)
    std::memcpy(block.buffer + block.done, from + head, static_cast<std::size_t>(fits));
  else if (fits > 0 && block.total == block.bytes)
    block.what->segments()[static_cast<std::size_t>(block.done / each)].unpack(from + head, block.buffer);
  else if (fits > 0)
    block.what->unpack_part(from + head, block.done, fits, block.buffer);
  lane.end.read(head + size);
  block.done += size;
  if (block.done == block.total) ++lane.next;
  return true;
}

void Exchange::finish_receives(std::span<const Whole> received) {
  for (std::size_t i = 0; i < in_.size(); ++i) {
    const Block& block = in_[i];
    if (!block.packed) continue;
    int position = 0;
    note_error(PMPI_Unpack(block.packed.data(), static_cast<int>(std::min(block.done, block.bytes)), &position,
                           received[i].buffer, static_cast<int>(received[i].count), received[i].type, session().own));
  }
}

int Exchange::run(const char* call, const void* caller, std::span<const Whole> sent, std::span<const Whole> received) {
  error_ = MPI_SUCCESS;
  begin(in_, received, call, caller);
  begin(out_, sent, call, caller);
  for (Lane& lane : to_) lane.next = 0;
  for (Lane& lane : from_) lane.next = 0;
  const auto first_open = [](const std::vector<Lane>& lanes) -> const Lane* {
    for (const Lane& lane : lanes)
      if (lane.next < lane.blocks.size()) return &lane;
    return nullptr;
  };
  constexpr int kSpins = 200;
  std::optional<RankWait> wait;
  for (int turn = 1;; ++turn) {
    bool moved = false;
    for (Lane& lane : to_) moved = send_some(lane) || moved;
    for (Lane& lane : from_) moved = receive_some(lane) || moved;
    if (moved) {
      wait.reset();
      continue;
    }
    const Lane* open = first_open(from_);
    if (open == nullptr) open = first_open(to_);
    if (open == nullptr) break;
    if (!wait) wait.emplace(open->world);
    wait->turn();
    // What this rank has sent by MPI before may need it.
    int unused = 0;
    if (turn % kSpins == 0 || !may_spin()) PMPI_Iprobe(0, 0, session().own, &unused, MPI_STATUS_IGNORE);
  }
  finish_receives(received);
  if (error_ != MPI_SUCCESS) PMPI_Comm_call_errhandler(handle_, error_);
  return error_;
}

Exchange* exchange_of(MPI_Comm comm, Exchange::Kind kind) {
  if (!ring_runs()) return nullptr;
  Comm* known = comm_of(comm);
  if (known == nullptr) return nullptr;
  std::shared_ptr<Exchange>& exchange = known->exchanges[static_cast<std::size_t>(kind)];
  if (exchange != nullptr) return exchange.get();
  std::optional<Peers> peers;
  if (kind == Exchange::Kind::neighbours) {
    peers = neighbours_of(comm);
  } else {
    std::vector<int> all(known->world.size());
    std::iota(all.begin(), all.end(), 0);
    peers = Peers{all, all};
  }
  if (peers) exchange = std::make_shared<Exchange>(comm, *known, kind, *std::move(peers));
  return exchange.get();
}

bool sound(std::span<const Whole> parts) {
  for (const Whole& part : parts) {
    if (part.count < 0 || part.type == MPI_DATATYPE_NULL) return false;
    const Type& type = type_of(part.type);
    if (type.plain && !runs_of_bytes(type, part.type) && !usable(part.type)) return false;
  }
  return true;
}

}  // namespace tasuki::mpi
