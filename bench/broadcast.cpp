// The broadcast group: contiguous bytes of rank 0 to all ranks, back to back and with a barrier before each.
#include <fmt/format.h>

#include <cstring>

#include "case.hpp"
#include "tasuki/memory.hpp"

namespace bench {
namespace {

std::string size_name(std::int64_t bytes) {
  if (bytes >= 1 << 20) return fmt::format("{} MiB", bytes >> 20);
  if (bytes >= 1 << 10) return fmt::format("{} KiB", bytes >> 10);
  return fmt::format("{} B", bytes);
}

unsigned char value_of(std::int64_t at, int round) {
  return static_cast<unsigned char>(at * 7 + (at >> 8) + round);
}

std::string verify_broadcast(const BroadcastCase& b, Runner& runner) {
  std::string complaint;
  auto* const data = reinterpret_cast<unsigned char*>(b.data);
  for (int round = 1; round <= 3; ++round) {
    for (std::int64_t i = 0; i < b.bytes; ++i) {
      data[i] = b.context.is_root() ? value_of(i, round) : static_cast<unsigned char>(~value_of(i, round));
    }
    runner.start();
    runner.wait();
    for (std::int64_t i = 0; i < b.bytes && complaint.empty(); ++i) {
      if (data[i] == value_of(i, round)) continue;
      complaint = fmt::format("rank {}, round {}, byte {}: {} instead of {}", b.context.rank(), round, i, data[i],
                              value_of(i, round));
    }
  }
  return agree(b.context, complaint);
}

}  // namespace

std::vector<Case> broadcast_cases(int ranks) {
  std::vector<Case> cases;
  if (ranks < 2) return cases;
  for (const bool synchronised : {false, true}) {
    for (const std::int64_t bytes : {8LL, 64LL, 512LL, 4LL << 10, 32LL << 10, 64LL << 10, 256LL << 10, 1LL << 20,
                                     2LL << 20, 16LL << 20, 64LL << 20}) {
      const bool quick = bytes == 8 || bytes == 64 << 10 || bytes == 1 << 20;
      cases.push_back({"broadcast", size_name(bytes) + (synchronised ? " after barrier" : ""), bytes, quick,
                       [=](const tasuki::Context& context) {
                         auto memory = tasuki::shared_alloc(context, bytes);
                         const BroadcastCase broadcast{context, memory.get(), bytes};
                         Problem problem;
                         problem.make = [broadcast](const Peer& peer) {
                           return peer.broadcast ? peer.broadcast(broadcast) : nullptr;
                         };
                         // The memory lives as long as this function does.
                         problem.verify = [broadcast, memory](const Peer&, Runner& runner) {
                           return verify_broadcast(broadcast, runner);
                         };
                         problem.barrier_between = synchronised;
                         problem.bound =
                             bound_of_collective(context, tasuki::CollectiveKind::broadcast, bytes, tasuki::DType::u8);
                         return problem;
                       }});
    }
  }
  return cases;
}

}  // namespace bench
