// shared_alloc: shared memory in the user's hands, which keeps its context alive.
#include "tasuki/memory.hpp"

#include <fmt/format.h>

#include "session/runtime.hpp"

namespace tasuki {

std::shared_ptr<std::byte> shared_alloc(const Context& context, std::int64_t bytes) {
  struct Kept {
    std::shared_ptr<Runtime> runtime;  // first, so that it outlives the block
    std::shared_ptr<std::byte> block;
  };
  Agreement agreement(runtime_of(context), "shared_alloc");
  if (bytes < 0) agreement.complain(fmt::format("argument 'bytes' is {}; it must be 0 or more", bytes));
  agreement.check();
  auto kept = std::make_shared<Kept>();
  kept->runtime = ContextAccess::shared(context);
  kept->block = kept->runtime->memory().allocate(bytes);
  return {kept, kept->block.get()};
}

}  // namespace tasuki
