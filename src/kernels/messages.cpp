// Messages: the channels in a rank's memory, and layouts as kernels see them.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/host_messages.hpp"
#include "kernels/registry.hpp"
#include "kernels/team.hpp"
#include "memory/gpu.hpp"
#include "session/collective.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

constexpr int kMostDepth = 1 << 14;
constexpr int kMostReceives = 1 << 16;
constexpr int kMostByHost = 1 << 14;
constexpr std::int64_t kMostEager = 1 << 15;
constexpr std::int64_t kMostStaged = std::int64_t{1} << 30;
constexpr std::int64_t kFewestLines = 3;  // which say where a large message is
constexpr std::int64_t kLineData = 8;     // bytes

std::string complaint_about(const MessagesOptions& options) {
  const auto between = [](const char* name, std::int64_t value, std::int64_t least, std::int64_t most) {
    return value >= least && value <= most
               ? std::string()
               : fmt::format("option '{}' is {}; it must be between {} and {}", name, value, least, most);
  };
  for (const std::string& complaint :
       {between("depth", options.depth, 1, kMostDepth), between("receives", options.receives, 1, kMostReceives),
        between("eager", options.eager, 0, kMostEager), between("largest", options.largest, 0, kMostStaged),
        between("by_host", options.by_host, 1, kMostByHost), between("staging", options.staging, 0, kMostStaged)})
    if (!complaint.empty()) return complaint;
  if (options.path != "auto" && options.path != "mpi")
    return fmt::format("option 'path' is '{}'; it must be 'auto' or 'mpi'", options.path);
  return {};
}

std::uint64_t log_of(std::int64_t count) {
  return static_cast<std::uint64_t>(std::bit_width(static_cast<std::uint64_t>(count) - 1));
}

/// All but what lies in memory.
device::Messages numbers_of(const MessagesOptions& options) {
  device::Messages m{};
  m.eager = static_cast<std::uint64_t>(options.eager);
  m.largest = static_cast<std::uint64_t>((options.largest + 15) / 16 * 16);
  m.log_places = log_of(options.depth) + 1;
  m.log_lines = log_of(std::max<std::int64_t>(kFewestLines, (options.eager + kLineData - 1) / kLineData));
  m.receives = std::uint64_t{1} << log_of(options.receives);
  m.concurrent = options.concurrent ? 1 : 0;
  return m;
}

/// What lies in every rank's memory, from the team's extra memory on: the boxes, then for each other rank the arrays of
/// one channel (`at`), then staging.
struct MessagesMemory {
  MessagesMemory(const device::Messages& m, int ranks) : size(static_cast<std::uint64_t>(ranks)) {
    const std::uint64_t places = std::uint64_t{1} << m.log_places;
    Places all;
    boxes = all.take(size * sizeof(device::detail::Box));
    Places one;
    taken = one.take(places * sizeof(device::Word));
    states = one.take(places * sizeof(unsigned));
    receives = one.take(m.receives * sizeof(device::detail::OpenReceive));
    lines = one.take((places << m.log_lines) * sizeof(device::Line));
    each = one.end();
    channels = all.take(size * each);
    staging = all.take(size * places * m.largest);
    bytes = all.end();
  }
  /// Of what a rank keeps about messages from and to rank `with`.
  std::uint64_t at(int with, std::uint64_t what) const {
    return channels + static_cast<std::uint64_t>(with) * each + what;
  }

  std::uint64_t size, boxes, channels, staging, bytes;
  std::uint64_t taken, states, receives, lines, each;
};

/// A rank's boxes, as they are at the beginning. Ranks whose memory is not reached have none.
std::vector<device::detail::Box> boxes_of(const device::Messages& m, const MessagesMemory& where, std::uint64_t begin) {
  std::vector<device::detail::Box> boxes(where.size);
  const int me = m.team.rank;
  const auto in = [&](int rank, int with, std::uint64_t what) {
    return m.team.base[rank] + begin + where.at(with, what);
  };
  for (int peer = 0; peer < m.team.ranks; ++peer) {
    device::detail::Box& box = boxes[static_cast<std::size_t>(peer)];
    if (m.team.base[peer] == nullptr) continue;
    box.lines = reinterpret_cast<const device::Line*>(in(me, peer, where.lines));
    box.receives = reinterpret_cast<device::detail::OpenReceive*>(in(me, peer, where.receives));
    box.states = reinterpret_cast<unsigned*>(in(me, peer, where.states));
    box.acks = reinterpret_cast<device::Word*>(in(peer, me, where.taken));
    box.clear = std::uint64_t{1} << m.log_places;
    box.there = reinterpret_cast<device::Line*>(in(peer, me, where.lines));
    box.taken = reinterpret_cast<const device::Word*>(in(me, peer, where.taken));
    if (m.concurrent == 0) box.next = reinterpret_cast<device::Word>(box.there);
  }
  return boxes;
}

Agreement agreement_on(const Context& context, const MessagesOptions& options) {
  Agreement agreement(runtime_of(context), "Messages");
  agreement.same("depth", options.depth)
      .same("receives", options.receives)
      .same("eager", options.eager)
      .same("largest", options.largest)
      .same("path", options.path)
      .same("by_host", options.by_host)
      .same("staging", options.staging)
      .same("any_source", options.any_source)
      .complain(complaint_about(options));
  return agreement;
}

std::vector<device::ShapeBlock> blocks_of(const Layout& layout) {
  static_assert(device::ShapeBlock::kMostDims == kMaxDims);
  std::vector<device::ShapeBlock> blocks;
  std::uint64_t begin = 0;
  for (const Block& block : layout.blocks()) {
    device::ShapeBlock one{};
    one.begin = begin;
    one.unit = static_cast<std::uint64_t>(block.bytes);
    one.offset = block.offset;
    one.dims = static_cast<int>(block.dims.size());
    std::uint64_t bytes = one.unit;
    for (std::size_t d = 0; d < block.dims.size(); ++d) {
      one.count[d] = static_cast<std::uint64_t>(block.dims[d].count);
      one.stride[d] = block.dims[d].stride;
      bytes *= one.count[d];
    }
    one.end = begin += bytes;
    blocks.push_back(one);
  }
  return blocks;
}

Others others_of(const Context& context, const MessagesOptions& options) {
  const std::string& forced = runtime_of(context).settings().path;
  const bool by_mpi = options.path == "mpi" || (options.path == "auto" && forced.starts_with("mpi"));
  return by_mpi || options.any_source ? Others::unreachable : Others::some;
}

/// What carries messages through the host, and keeps the process's thread awake while kernels run.
struct ByHost {
  ByHost(Runtime& runtime, bool on_gpu, const MessagesOptions& options)
      : messages(runtime, on_gpu, std::bit_ceil(static_cast<device::Word>(options.by_host)),
                 static_cast<device::Word>((options.staging + 15) / 16 * 16),
                 [&registry = KernelRegistry::of(runtime), on_gpu] { registry.request_stop(on_gpu); }),
        served(KernelRegistry::of(runtime).serve()) {}
  HostMessages messages;
  std::shared_ptr<void> served;
};

}  // namespace

MessageLayout::MessageLayout(const Context& context, const Layout& layout) {
  shape_.bytes = static_cast<std::uint64_t>(layout.size());
  shape_.twice = layout.overlaps();
  if (layout.size() == 0 || (layout.pattern() == Pattern::contiguous && layout.true_lower_bound() == 0)) return;
  const std::vector<device::ShapeBlock> blocks = blocks_of(layout);
  const std::size_t bytes = blocks.size() * sizeof(device::ShapeBlock);
  if (runtime_of(context).gpus) {
    std::byte* const memory = gpu()->allocate(static_cast<std::int64_t>(bytes));
    blocks_ = {reinterpret_cast<device::ShapeBlock*>(memory),
               [memory](const device::ShapeBlock*) { gpu()->release(memory); }};
    gpu()->copy(memory, blocks.data(), static_cast<std::int64_t>(bytes));
  } else {
    auto kept = std::make_shared<std::vector<device::ShapeBlock>>(blocks);
    blocks_ = {kept, kept->data()};
  }
  shape_.blocks = blocks_.get();
}

Messages::Messages(const Context& context, const MessagesOptions& options)
    : team_(std::make_shared<KernelTeam::State>(
          context, "Messages", options.team, agreement_on(context, options),
          [&] {
            kept_ = numbers_of(options);
            return MessagesMemory(kept_, context.size()).bytes;
          },
          others_of(context, options))) {
  KernelTeam::State& team = *team_.state_;
  lay_out();
  // Some rank has others that are unreachable, and then all have a part in the communicator.
  if (and_over_ranks(team.runtime(), {team.unreachable_count() == 0 ? ~std::uint64_t{0} : 0}, "Messages")[0] != 0)
    return;
  std::shared_ptr<ByHost> by_host;
  all_do(team.runtime(), "Messages",
         [&] { by_host = std::make_shared<ByHost>(team.runtime(), team.on_gpu(), options); });
  by_host->messages.connect();
  kept_.by_host = by_host->messages.device();
  kept_.by_host.any_source = options.any_source ? 1 : 0;
  team.ask_why([weak = std::weak_ptr(by_host)] {
    const auto alive = weak.lock();
    return alive ? alive->messages.failure() : std::string();
  });
  by_host_ = std::move(by_host);
}

/// Local.
void Messages::lay_out() {
  kept_.team = team_.device();
  const std::uint64_t begin = team_.state_->extra_at();
  const MessagesMemory where(kept_, kept_.team.ranks);
  const std::vector<device::detail::Box> boxes = boxes_of(kept_, where, begin);
  device::Byte* const mine = kept_.team.base[kept_.team.rank] + begin;
  kept_.boxes = reinterpret_cast<device::detail::Box*>(mine + where.boxes);
  kept_.staging = mine + where.staging;
  const std::size_t bytes = boxes.size() * sizeof boxes.front();
  if (team_.state_->on_gpu()) {
    gpu()->copy(reinterpret_cast<std::byte*>(kept_.boxes), boxes.data(), static_cast<std::int64_t>(bytes));
  } else {
    std::memcpy(kept_.boxes, boxes.data(), bytes);
  }
}

device::Messages Messages::device(std::uint32_t version) const {
  device::Messages m = kept_;
  m.team = team_.device(version);
  return m;
}

}  // namespace tasuki
