// The library's own version; see version.h.
#include "tasuki/version.h"

int tasuki_version(void) {
  return TASUKI_VERSION;
}
