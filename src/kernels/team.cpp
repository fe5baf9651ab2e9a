// KernelTeam: agreement, memory, and the plain value that kernels get.
#include "kernels/team.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <tuple>
#include <utility>

#include "kernels/failure.hpp"
#include "kernels/host_messages.hpp"
#include "kernels/registry.hpp"
#include "layout/encoding.hpp"
#include "memory/gpu.hpp"
#include "session/collective.hpp"
#include "session/gpus.hpp"
#include "session/wait_until.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

constexpr std::int64_t kMostWindow = std::int64_t{1} << 40;
constexpr int kMostSlots = 1 << 16;
constexpr std::int64_t kMostPacket = 1 << 20;  // bytes

std::string complaint_about(const KernelTeamOptions& options) {
  if (options.window < 0 || options.window > kMostWindow)
    return fmt::format("option 'window' is {}; it must be between 0 and {} bytes", options.window, kMostWindow);
  for (const auto& [name, value] : {std::pair{"signals", options.signals},
                                    {"words", options.words},
                                    {"barriers", options.barriers},
                                    {"packets", options.packets},
                                    {"exchanges", options.exchanges},
                                    {"exchange_words", options.exchange_words}})
    if (value < 0 || value > kMostSlots)
      return fmt::format("option '{}' is {}; it must be between 0 and {}", name, value, kMostSlots);
  if (options.packet < 0 || options.packet > kMostPacket)
    return fmt::format("option 'packet' is {}; it must be between 0 and {} bytes", options.packet, kMostPacket);
  return {};
}

}  // namespace

KernelTeam::State::State(const Context& context, const std::string& name, const KernelTeamOptions& options,
                         Agreement agreement, const std::function<std::uint64_t()>& extra, Others others)
    : context_(context), runtime_(runtime_of(context)), name_(name), on_gpu_(runtime_.gpus != nullptr) {
  runtime_.refuse_if_failed(name);
  agreement.same("window", options.window)
      .same("signals", options.signals)
      .same("words", options.words)
      .same("barriers", options.barriers)
      .same("packets", options.packets)
      .same("packet", options.packet)
      .same("exchanges", options.exchanges)
      .same("exchange_words", options.exchange_words)
      .complain(complaint_about(options));
  const std::vector<std::string> why_not = unreachable();
  if (!agreement.complains()) agreement.complain(complaint_of(why_not, others));
  agreement.settle();  // what ranks reach differs between them, whatever TASUKI_AGREE says
  set_unreachable(why_not, others);

  const auto ranks = static_cast<std::uint64_t>(runtime_.size());
  team_.rank = runtime_.rank();
  team_.ranks = runtime_.size();
  team_.signals = options.signals;
  team_.words = options.words;
  team_.barriers = options.barriers;
  team_.packets = options.packets;
  team_.packet_lines = static_cast<std::uint64_t>((options.packet + 7) / 8);
  team_.exchanges = options.exchanges;
  team_.exchange_words = static_cast<std::uint64_t>(options.exchange_words);
  team_.window_bytes = static_cast<std::uint64_t>(options.window);
  Places places;
  const std::uint64_t failed_at = places.take(sizeof(device::Word));
  team_.signals_at = places.take(ranks * static_cast<std::uint64_t>(options.signals) * sizeof(device::Word));
  team_.words_at = places.take(ranks * static_cast<std::uint64_t>(options.words) * sizeof(device::Line));
  team_.arrivals_at = places.take(ranks * static_cast<std::uint64_t>(options.barriers) * sizeof(device::Word));
  team_.rounds_at = places.take(static_cast<std::uint64_t>(options.barriers) * sizeof(device::detail::Round));
  team_.packets_at =
      places.take(ranks * static_cast<std::uint64_t>(options.packets) * team_.packet_lines * sizeof(device::Line));
  const auto exchanges = static_cast<std::uint64_t>(options.exchanges);
  team_.exchanges_at = places.take(exchanges * 2 * ranks * team_.exchange_words * sizeof(device::Line));
  team_.exchanged_at = places.take(exchanges * device::detail::kCacheLine);
  extra_at_ = places.take(extra());
  team_.window_at = places.take(team_.window_bytes);
  all_do(runtime_, name_, [&] { allocate(static_cast<std::int64_t>(places.end())); });
  map_peers();
  team_.failed = reinterpret_cast<device::Word*>(own_.get() + failed_at);
  team_.failure = failure_.get();
  KernelRegistry::Facts facts;
  users_ = facts.users;
  std::uint32_t number = 0;
  std::tie(number, known_) =
      KernelRegistry::of(runtime_).add(name == "Messages" ? Passed::messages : Passed::team, std::move(facts));
  team_.heading = {device::kKernelVersion, number, &failure_->set};
  team_.stop = KernelRegistry::of(runtime_).stop(on_gpu_);
  watched_ = KernelRegistry::of(runtime_).watch(on_gpu_, [this] { check(); });
}

// What kernels on a GPU use CUDA gives back only after they have ended.
KernelTeam::State::~State() {
  if (users_ && !runtime_.inherited()) await_users(users_);
}

// Why this rank cannot store into the memory of the others, by rank; empty if it can.
std::vector<std::string> KernelTeam::State::unreachable() const {
  const Topology& topology = runtime_.topology();
  std::vector<std::string> all(static_cast<std::size_t>(runtime_.size()));
  for (int rank = 0; rank < runtime_.size(); ++rank) {
    if (rank == runtime_.rank()) continue;
    std::string& why = all[static_cast<std::size_t>(rank)];
    if (!topology.same_host(rank, runtime_.rank())) {
      why = "another host";
    } else if (!topology.same_island(rank, runtime_.rank())) {
      why = "another island";
    } else {
      why = on_gpu_ ? runtime_.gpus->why_not(rank) : runtime_.memory().why_not(rank);
    }
    if (why.empty() && on_gpu_ && !runtime_.gpus->atomics())
      why = "its GPU is not joined by NVLink, so that 16 bytes may arrive in two parts";
  }
  return all;
}

// Why this rank cannot have all the others in its team; empty if it can.
std::string KernelTeam::State::complaint_of(const std::vector<std::string>& why_not, Others others) const {
  if (runtime_.size() > device::kMostRanks)
    return fmt::format("the context has {} ranks; kernels store into the memory of at most {}", runtime_.size(),
                       device::kMostRanks);
  const std::string no_host = others == Others::reached ? std::string() : HostMessages::why_not(runtime_);
  if (others == Others::unreachable && runtime_.size() > 1 && !no_host.empty())
    return fmt::format("path 'mpi' or any_source is asked for, but {}", no_host);
  for (std::size_t rank = 0; rank < why_not.size(); ++rank) {
    if (why_not[rank].empty() || (others != Others::reached && no_host.empty())) continue;
    return fmt::format(
        "the memory of rank {} cannot be stored into from here ({}); kernels communicate by themselves only among "
        "ranks that reach each other's memory{}: make a context of those (Context::subset)",
        rank, why_not[rank], no_host.empty() ? "" : ", and " + no_host);
  }
  return {};
}

// Two ranks are unreachable for each other if one of them says so.
void KernelTeam::State::set_unreachable(const std::vector<std::string>& why_not, Others others) {
  is_unreachable_.assign(why_not.size(), false);
  if (others == Others::reached) return;
  const auto ranks = static_cast<std::size_t>(runtime_.size());
  const auto me = static_cast<std::size_t>(runtime_.rank());
  constexpr std::size_t kBits = 64;
  std::vector<std::uint64_t> reached((ranks * ranks + kBits - 1) / kBits, ~std::uint64_t{0});
  const auto clear = [&](std::size_t bit) { reached[bit / kBits] &= ~(std::uint64_t{1} << bit % kBits); };
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (rank == me || (why_not[rank].empty() && others == Others::some)) continue;
    clear(me * ranks + rank);
    clear(rank * ranks + me);
  }
  reached = and_over_ranks(runtime_, reached, name_);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::size_t bit = me * ranks + rank;
    is_unreachable_[rank] = rank != me && (reached[bit / kBits] >> bit % kBits & 1) == 0;
    if (is_unreachable_[rank]) ++team_.unreachable;
  }
}

void KernelTeam::State::allocate(std::int64_t bytes) {
  own_ = on_gpu_ ? runtime_.gpus->allocate(bytes) : runtime_.memory().allocate(bytes);
  if (!on_gpu_) {
    failure_ = std::make_shared<device::Failure>();
    return;
  }
  failure_ = {reinterpret_cast<device::Failure*>(gpu()->allocate_mapped(sizeof(device::Failure))),
              [](device::Failure* p) { gpu()->release_mapped(reinterpret_cast<std::byte*>(p)); }};
}

void KernelTeam::State::map_peers() {
  std::vector<int> others;
  for (const int rank : runtime_.everyone())
    if (rank != runtime_.rank() && !is_unreachable_[static_cast<std::size_t>(rank)]) others.push_back(rank);
  std::string address;
  all_do(runtime_, name_, [&] {
    if (!on_gpu_) {
      address = encoded(runtime_.memory().find(own_.get(), 1));
      return;
    }
    std::string why;
    const GpuAddress found = runtime_.gpus->find(own_.get(), why);
    if (!why.empty()) throw Error(ErrorKind::not_possible, "its memory cannot be shared: " + why);
    address = encoded(found);
  });
  const auto theirs = exchange(runtime_, others, std::vector<std::string>(others.size(), address));
  team_.base[runtime_.rank()] = reinterpret_cast<device::Byte*>(own_.get());
  all_do(runtime_, name_, [&] {
    for (std::size_t i = 0; i < others.size(); ++i) {
      peers_.push_back(on_gpu_ ? runtime_.gpus->map(others[i], decoded<GpuAddress>(theirs[i]))
                               : runtime_.memory().map(others[i], decoded<SharedAddress>(theirs[i])));
      if (peers_.back() == nullptr)
        throw Error(ErrorKind::not_possible, fmt::format("the memory of rank {} cannot be mapped: {}", others[i],
                                                         runtime_.memory().why_not(others[i])));
      team_.base[others[i]] = reinterpret_cast<device::Byte*>(peers_.back().get());
    }
  });
}

device::Team KernelTeam::State::device(std::uint32_t version) const {
  refuse_other_version(fmt::format("rank {}: {}", runtime_.rank(), name_), version);
  check();
  device::Team team = team_;
  team.deadline = static_cast<device::Word>(seconds_in_kernel(runtime_) * 1e9);
  return team;
}

void KernelTeam::State::check() const {
  const unsigned set = std::atomic_ref<unsigned>(failure_->set).load(std::memory_order_acquire);
  if (set == 0) return;
  device::Team team = team_;
  team.deadline = static_cast<device::Word>(seconds_in_kernel(runtime_) * 1e9);
  std::string text = why_ ? why_() : std::string();
  if ((set & device::kOtherVersion) != 0)
    text = describe_other_version(fmt::format("rank {}: {}", runtime_.rank(), name_), set);
  if (text.empty()) text = describe(*failure_, team, name_);
  const ErrorKind kind = kind_of_ended_wait(runtime_);
  runtime_.fail(text, kind);
  throw Error(kind, text);
}

KernelTeam::KernelTeam(const Context& context, const KernelTeamOptions& options)
    : state_(std::make_shared<State>(context, "KernelTeam", options, Agreement(runtime_of(context), "KernelTeam"),
                                     [] { return std::uint64_t{0}; })) {}

device::Team KernelTeam::device(std::uint32_t version) const {
  return state_->device(version);
}
std::byte* KernelTeam::window() const {
  return state_->window();
}
Memory KernelTeam::memory() const {
  return state_->memory();
}
void KernelTeam::check() const {
  state_->check();
}

}  // namespace tasuki
