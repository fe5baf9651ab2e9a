// Objects of the C interface for C++ (tasuki/handles.hpp).
#include "api/nouns.hpp"
#include "tasuki/handles.hpp"

namespace tasuki {

Context context_of(tasuki_context handle) {
  return api::get(handle, "context");
}

Operation operation_of(tasuki_operation handle) {
  return api::get(handle, "operation").operation;
}

Layout layout_of(tasuki_layout handle) {
  return api::get(handle, "layout");
}

}  // namespace tasuki
