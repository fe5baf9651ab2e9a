// Messages: the channels in a rank's memory.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "kernels/team.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

constexpr int kMostDepth = 1 << 14;
constexpr int kMostReceives = 1 << 16;
constexpr std::int64_t kMostEager = 1 << 15;
constexpr std::int64_t kMostStaged = std::int64_t{1} << 30;
constexpr std::uint64_t kFewestLines = 3;  // which say where a large message is
constexpr std::uint64_t kLineData = 8;     // bytes

std::string complaint_about(const MessagesOptions& options) {
  const auto between = [](const char* name, std::int64_t value, std::int64_t least, std::int64_t most) {
    return value >= least && value <= most
               ? std::string()
               : fmt::format("option '{}' is {}; it must be between {} and {}", name, value, least, most);
  };
  for (const std::string& complaint :
       {between("depth", options.depth, 1, kMostDepth), between("receives", options.receives, 1, kMostReceives),
        between("eager", options.eager, 0, kMostEager), between("largest", options.largest, 0, kMostStaged)})
    if (!complaint.empty()) return complaint;
  return {};
}

std::uint64_t log_of(std::int64_t count) {
  return static_cast<std::uint64_t>(std::bit_width(static_cast<std::uint64_t>(count) - 1));
}

/// All but `team` and `channels_at`.
device::Messages layout_of(const MessagesOptions& options) {
  device::Messages m{};
  m.eager = static_cast<std::uint64_t>(options.eager);
  m.largest = static_cast<std::uint64_t>((options.largest + 15) / 16 * 16);
  m.log_places = log_of(options.depth) + 1;
  m.lines = std::max<device::Word>(kFewestLines, (m.eager + kLineData - 1) / kLineData);
  m.log_receives = log_of(options.receives);
  m.concurrent = options.concurrent ? 1 : 0;
  const std::uint64_t places = std::uint64_t{1} << m.log_places;
  Places channel;
  m.outbox_at = channel.take(sizeof(device::detail::Outbox));
  m.taken_at = channel.take(places * sizeof(device::Word));
  m.inbox_at = channel.take(sizeof(device::detail::Inbox));
  m.states_at = channel.take(places * sizeof(unsigned));
  m.receives_at = channel.take((std::uint64_t{1} << m.log_receives) * sizeof(device::detail::OpenReceive));
  m.ring_at = channel.take(places * m.lines * sizeof(device::Line));
  m.staging_at = channel.take(places * m.largest);
  m.channel_bytes = channel.end();
  return m;
}

Agreement agreement_on(const Context& context, const MessagesOptions& options) {
  Agreement agreement(runtime_of(context), "Messages");
  agreement.same("depth", options.depth)
      .same("receives", options.receives)
      .same("eager", options.eager)
      .same("largest", options.largest)
      .complain(complaint_about(options));
  return agreement;
}

}  // namespace

Messages::Messages(const Context& context, const MessagesOptions& options)
    : team_(std::make_shared<KernelTeam::State>(context, "Messages", options.team, agreement_on(context, options), [&] {
        layout_ = layout_of(options);
        return static_cast<std::uint64_t>(context.size()) * layout_.channel_bytes;
      })) {
  layout_.channels_at = team_.state_->extra_at();
}

device::Messages Messages::device() const {
  device::Messages m = layout_;
  m.team = team_.device();
  return m;
}

}  // namespace tasuki
