// BlockNeighbours: which blocks of a launch wait for each other, in memory (tasuki/kernel/steps.cuh).
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "kernels/registry.hpp"
#include "memory/gpu.hpp"
#include "session/gpus.hpp"
#include "session/runtime.hpp"
#include "tasuki/error.hpp"
#include "tasuki/kernel.hpp"

namespace tasuki {
namespace {

using device::Word;
using Lists = std::vector<std::vector<int>>;

constexpr std::size_t kAligned = 128;

bool names(const std::vector<int>& list, int block) {
  return std::binary_search(list.begin(), list.end(), block);
}

void check(const Runtime& runtime, const Lists& sorted) {
  const auto blocks = static_cast<int>(sorted.size());
  const auto wrong = [&](int block, const std::string& what) {
    throw Error(
        fmt::format("rank {}: BlockNeighbours: argument 'of': the list of block {} {}", runtime.rank(), block, what));
  };
  for (int b = 0; b < blocks; ++b) {
    const std::vector<int>& list = sorted[static_cast<std::size_t>(b)];
    if (std::adjacent_find(list.begin(), list.end()) != list.end())
      wrong(b, fmt::format("names block {} twice", *std::adjacent_find(list.begin(), list.end())));
    for (const int other : list) {
      if (other < 0 || other >= blocks)
        wrong(b, fmt::format("names block {}; blocks are numbered from 0 to {}", other, blocks - 1));
      if (other == b) wrong(b, "names the block itself, which cannot wait for itself");
      if (!names(sorted[static_cast<std::size_t>(other)], b))
        wrong(b, fmt::format("names block {}, whose list does not name block {}: each of two neighbours waits for the "
                             "other",
                             other, b));
    }
  }
}

}  // namespace

BlockNeighbours::BlockNeighbours(const Context& context, const Lists& of) {
  Runtime& runtime = runtime_of(context);
  std::size_t count = of.size() + 1;
  for (const auto& list : of) count += list.size();
  if (of.empty() || count > INT_MAX)
    throw Error(fmt::format("rank {}: BlockNeighbours: argument 'of' has {} lists{}; it has one for each block",
                            runtime.rank(), of.size(), of.empty() ? "" : ", which are too long together"));
  Lists sorted = of;
  for (auto& list : sorted) std::sort(list.begin(), list.end());
  check(runtime, sorted);

  std::vector<int> lists;
  lists.reserve(count);
  std::size_t at = of.size() + 1;
  for (const auto& list : sorted) {
    lists.push_back(static_cast<int>(at));
    at += list.size();
  }
  lists.push_back(static_cast<int>(at));
  for (const auto& list : sorted) lists.insert(lists.end(), list.begin(), list.end());

  const std::size_t words = (of.size() * sizeof(Word) + kAligned - 1) / kAligned * kAligned;
  const std::size_t bytes = words + lists.size() * sizeof(int);
  if (runtime.gpus) {
    memory_ = {gpu()->allocate(static_cast<std::int64_t>(bytes)), [](std::byte* p) { gpu()->release(p); }};
    gpu()->copy(memory_.get() + words, lists.data(), static_cast<std::int64_t>(lists.size() * sizeof(int)));
  } else {
    memory_ = {static_cast<std::byte*>(::operator new(bytes, std::align_val_t(kAligned))),
               [](std::byte* p) { ::operator delete(p, std::align_val_t(kAligned)); }};
    std::memset(memory_.get(), 0, words);
    std::memcpy(memory_.get() + words, lists.data(), lists.size() * sizeof(int));
  }
  KernelRegistry::Facts facts;
  facts.blocks = static_cast<int>(of.size());
  const KernelUsers users = facts.users;
  const auto [number, registered] = KernelRegistry::of(runtime).add(Passed::neighbours, std::move(facts));
  known_ = {registered.get(), [users, kept = registered](void*) { await_users(users); }};
  neighbours_ = {device::kKernelVersion, number, reinterpret_cast<Word*>(memory_.get()),
                 reinterpret_cast<const int*>(memory_.get() + words), static_cast<int>(of.size())};
}

}  // namespace tasuki
