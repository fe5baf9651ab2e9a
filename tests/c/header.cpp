// The C header in C++: that it compiles there, and that its functions have C's names.
#include <tasuki/tasuki.h>

extern "C" int from_cplusplus(void) {
  tasuki_layout layout = nullptr;
  tasuki_halo_options options = TASUKI_HALO_OPTIONS_INIT;
  options.corners = tasuki_layout_bytes(8, &layout) == TASUKI_OK && tasuki_layout_free(&layout) == TASUKI_OK;
  return options.corners;
}
