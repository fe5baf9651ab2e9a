// Threads that fail together: what doctest notes of each must neither be freed twice nor be lost.
#include <string>

#include "rank_test.hpp"
#include "tasuki/error.hpp"

RANK_TEST("all threads leave captures by exceptions, many times at once") {
  for (int turn = 0; turn < 2000; ++turn) {
    try {
      CAPTURE(turn);
      INFO("rank ", ctx.rank(), " of ", ctx.size());
      throw tasuki::Error("out");
    } catch (const tasuki::Error&) {
    }
  }
  ctx.barrier();
  CHECK_MESSAGE(ctx.rank() < 0, "rank ", ctx.rank(), " came to the end");
}
