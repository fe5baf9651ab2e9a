/* The example operation of docs/extending.md from C: blocks go round the ring, and a wrong count is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tasuki/tasuki.h"

enum { COUNT = 1237 };

static void check(tasuki_status status) {
  if (status == TASUKI_OK) return;
  fprintf(stderr, "%s\n", tasuki_last_error());
  exit(1);
}

static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "%s: %s\n", what, tasuki_last_error());
  exit(1);
}

int main(int argc, char** argv) {
  static double from[COUNT], to[COUNT];
  tasuki_context ranks = NULL;
  tasuki_operation shift = NULL, none = NULL;
  tasuki_transfer_options options = TASUKI_TRANSFER_OPTIONS_INIT;
  int rank = 0, size = 0, ok = 0;
  check(tasuki_init(&argc, &argv, &ranks));
  check(tasuki_rank(ranks, &rank));
  check(tasuki_size(ranks, &size));
  if (size > 1) options.path = "shared";
  check(tasuki_shift_create(ranks, -1, from, to, COUNT, TASUKI_F64, &options, &shift));
  check(tasuki_verify(shift, 0, &ok, NULL));
  require(ok, "the plans");
  for (int epoch = 1; epoch <= 3; ++epoch) {
    for (int i = 0; i < COUNT; ++i) from[i] = 1000.0 * rank + 7.0 * i + epoch;
    check(tasuki_start(shift));
    check(tasuki_wait(shift));
    for (int i = 0; i < COUNT; ++i)
      require(to[i] == 1000.0 * ((rank + 1) % size) + 7.0 * i + epoch, "an element that came");
  }
  require(tasuki_shift_create(ranks, 1, from, to, -3, TASUKI_F64, NULL, &none) == TASUKI_BAD_ARGUMENT &&
              strstr(tasuki_last_error(), "argument 'count' is -3") != NULL,
          "a count below 0");
  require(tasuki_shift_create(ranks, 1, from, from, COUNT, TASUKI_F64, NULL, &none) == TASUKI_BAD_ARGUMENT &&
              strstr(tasuki_last_error(), "arguments 'in' and 'out' overlap") != NULL,
          "one buffer for both");
  check(tasuki_operation_free(&shift));
  check(tasuki_context_free(&ranks));
  return 0;
}
