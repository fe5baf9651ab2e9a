// The C interface of shared memory.
#include "tasuki/memory.hpp"

#include "api/nouns.hpp"

using namespace tasuki;
using namespace tasuki::api;

tasuki_status tasuki_shared_alloc(tasuki_context context, int64_t bytes, tasuki_memory* memory) {
  return guarded("tasuki_shared_alloc", [&] {
    const Context& ranks = get(context, "context");
    given(memory, "memory");
    *memory = keep<tasuki_memory>(std::make_unique<std::shared_ptr<std::byte>>(shared_alloc(ranks, bytes)));
  });
}

tasuki_status tasuki_memory_data(tasuki_memory memory, void** data) {
  return guarded("tasuki_memory_data", [&] { *given(data, "data") = get(memory, "memory").get(); });
}

tasuki_status tasuki_memory_free(tasuki_memory* memory) {
  return let_go("tasuki_memory_free", memory, "memory", [](std::shared_ptr<std::byte>&) {});
}
