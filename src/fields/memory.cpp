// shared_alloc: gives the user a block of shared memory. The block keeps its context alive.
#include "tasuki/memory.hpp"

#include <fmt/format.h>

#include "session/runtime.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

std::shared_ptr<std::byte> shared_alloc(const Context& context, std::int64_t bytes) {
  struct Kept {
    std::shared_ptr<Runtime> runtime;  // declared first, so destroyed last: it outlives the block
    std::shared_ptr<std::byte> block;
  };
  if (bytes < 0)
    throw Error(
        fmt::format("shared_alloc: rank {}: argument 'bytes' is {}; it must be 0 or more", context.rank(), bytes));
  runtime_of(context).refuse_if_over("shared_alloc");
  auto kept = std::make_shared<Kept>();
  kept->runtime = ContextAccess::shared(context);
  kept->block = kept->runtime->memory().allocate(bytes);
  return {kept, kept->block.get()};
}

}  // namespace tasuki
