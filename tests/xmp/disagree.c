/* Tasks that disagree: what ranks say that wait for each other in different calls. On 4 ranks; disagree.py reads it. */
#include "check.h"

#include <mpi.h>
#include <string.h>
#include <unistd.h>

/* After such a failure a program can only end. */
static void say(int status) {
  if (status == XMP_OK) printf("rank %d: no error\n", me());
  if (status != XMP_OK) printf("rank %d: status %d, %s\n", me(), status, xmp_last_error());
  fflush(stdout);
}

void disagree(const char* how) {
  const int signals = strcmp(how, "signals") == 0, late = strcmp(how, "late") == 0;
  xmp_desc_t all, low, three;
  int64_t value = 1;
  const xmp_variable v = {&value, 1, XMP_I64};
  OK(xmp_nodes(&all, 1, (int64_t[]){0}));
  OK(xmp_nodes_of(&low, 1, (int64_t[]){0}, all, (xmp_range[]){{0, 2, 1}}));
  OK(xmp_nodes_of(&three, 1, (int64_t[]){0}, all, (xmp_range[]){{0, 3, 1}}));
  OK(xmp_barrier(all));
  if (signals) { /* which never come: who should send one waits for the others */
    say(me() == 3 ? xmp_wait(all, 0, 5) : xmp_barrier(all));
  } else { /* everything is ready: what waits is an epoch of each operation */
    OK(xmp_barrier(three));
    OK(xmp_reduction(XMP_SUM, 1, &v, low));
    if (me() == 0) say(xmp_reduction(XMP_SUM, 1, &v, low));
    if (late && me() > 0) sleep(4); /* rank 0 has given up, and answers nobody */
    if (me() == 1 || me() == 2) say(xmp_barrier(three));
  }
  MPI_Barrier(MPI_COMM_WORLD); /* the launcher ends all when the first one has ended */
  _exit(EXIT_SUCCESS);
}
