// Subset: a context of some ranks of a context. Only these ranks make it.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "session/deferred_release.hpp"
#include "session/runtime.hpp"
#include "tasuki/context.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

constexpr const char* kName = "Context::subset";

// What is wrong with this rank's list of ranks; empty if nothing is.
std::string complaint_about(const std::vector<int>& ranks, int me, int size) {
  const std::string list = fmt::format("argument 'ranks' is ({})", fmt::join(ranks, ", "));
  if (ranks.empty()) return list + ", which is empty; name the ranks of the subset, this one among them";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] < 0 || ranks[i] >= size)
      return fmt::format("{}, which names rank {}, but the context has ranks 0 to {}", list, ranks[i], size - 1);
    if (std::find(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(i), ranks[i]) !=
        ranks.begin() + static_cast<std::ptrdiff_t>(i))
      return fmt::format("{}, which names rank {} twice; name it once", list, ranks[i]);
  }
  if (std::ranges::find(ranks, me) == ranks.end())
    return fmt::format("{}, which does not name this rank; only the ranks of a subset make it", list);
  return {};
}

}  // namespace

Context Context::subset(std::span<const int> ranks) const {
  Runtime& parent = *runtime_;
  const std::vector<int> list(ranks.begin(), ranks.end());
  const std::string wrong = complaint_about(list, parent.rank(), parent.size());
  if (!wrong.empty()) throw Error(fmt::format("{}: rank {}: {}", kName, parent.rank(), wrong));
  parent.refuse_if_failed(kName);
  collect_released();
  std::vector<int> peers = list;
  std::ranges::sort(peers);
  std::erase(peers, parent.rank());
  // After this all ranks of the subset are here. It does not depend on TASUKI_AGREE, because the MPI call that follows
  // has no deadline.
  int& made = parent.parts_made(list);
  Agreement(parent, kName, peers)
      .same("ranks", fmt::format("({})", fmt::join(list, ", ")))
      .same("how often it was made before", made)
      .settle();
  const int number = made++;
  auto communicator = parent.communicator().part(list, number, parent.deadline);
  const std::shared_ptr<Runtime> part = owned(std::make_unique<Runtime>(std::move(communicator), parent, list));
  parent.adopt(part);
  return ContextAccess::make(part);
}

}  // namespace tasuki
