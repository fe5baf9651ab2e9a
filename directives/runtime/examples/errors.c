/* What the library says of programs that are wrong: one of each kind.
 *   mpirun -n 4 errors_xmp */
#include <stdio.h>
#include <stdlib.h>

#include "xmp.h"

static int missing;

/* `status` is that of a call that must fail, on every node. */
static void wrong(const char* what, int status) {
  if (status == XMP_OK) ++missing;
  if (xmpc_node_num() == 0) printf("%s:\n  %s\n", what, status == XMP_OK ? "no error" : xmp_last_error());
  fflush(stdout);
}

static xmp_desc_t array_over(xmp_desc_t t, const char* name, int64_t extent, int64_t offset) {
  xmp_desc_t array = NULL;
  xmp_array(&array, &(xmp_array_spec){.name = name, .type = XMP_F64, .ndims = 1, .extents = &extent, .offset = &offset},
            t);
  return array;
}

int main(int argc, char** argv) {
  xmp_desc_t p, part, t, dealt, open, other = NULL;
  int mine = 0;
  xmp_init(argc, argv);
  if (xmp_num_nodes() < 2) return fprintf(stderr, "errors_xmp needs 2 nodes or more\n"), EXIT_FAILURE;
  xmp_on_error(XMP_RETURN);
  const int last = xmp_num_nodes() - 1;
  const int odd = xmpc_node_num() == last;
  xmp_nodes(&p, 1, (int64_t[]){0});
  xmp_nodes_of(&part, 1, (int64_t[]){0}, p, (xmp_range[]){{0, last, 1}});
  xmp_template(&t, 1, (xmp_range[]){{0, 40, 1}});
  xmp_distribute(t, (xmp_distribution[]){{XMP_BLOCK, 0, NULL}}, p);
  xmp_template(&dealt, 1, (xmp_range[]){{0, 40, 1}});
  xmp_distribute(dealt, (xmp_distribution[]){{XMP_CYCLIC, 0, NULL}}, p);
  xmp_template(&open, 1, NULL);
  xmp_distribute(open, (xmp_distribution[]){{XMP_BLOCK, 0, NULL}}, p);
  xmp_desc_t u = array_over(t, "u", 40, 0), c = array_over(dealt, "c", 40, 0);
  xmp_shadow(u, (xmp_width[]){{1, 2}});

  wrong("a reflect before the array has memory", xmp_reflect(1, &u, NULL));
  xmp_allocate(u, NULL);
  xmp_allocate(c, NULL);
  wrong("a width beyond the shadow, of one node",
        xmp_reflect(1, &u, &(xmp_reflect_options){.width = (xmp_width[]){{odd ? 9 : 1, 1}}}));
  wrong("widths that differ", xmp_reflect(1, &u, &(xmp_reflect_options){.width = (xmp_width[]){{odd, 1}}}));
  wrong("a reflect_do without a reflect_init", xmp_reflect_do(1, &u));
  wrong("a shadow that comes too late", xmp_shadow(u, (xmp_width[]){{3, 3}}));
  wrong("a path that does not exist", xmp_reflect(1, &u, &(xmp_reflect_options){.path = "pigeon"}));
  wrong("a reflect of a cyclic array", xmp_reflect(1, &c, NULL));
  xmp_desc_t d = array_over(dealt, "d", 40, 0);
  wrong("a shadow on a cyclic dimension", xmp_shadow(d, (xmp_width[]){{1, 1}}));
  (void)array_over(t, "far", 40, 7);
  wrong("an array that is aligned with what the template lacks",
        xmp_last_error()[0] == '\0' ? XMP_OK : XMP_BAD_ARGUMENT);
  wrong("sections of unlike sizes", xmp_gmove(u, (xmp_range[]){{0, 40, 1}}, c, (xmp_range[]){{0, 39, 1}}));
  wrong("a section that leaves its array", xmp_gmove(u, (xmp_range[]){{1, 41, 1}}, c, NULL));
  wrong(
      "a template before it is fixed",
      xmp_array(&other, &(xmp_array_spec){.name = "e", .type = XMP_F64, .ndims = 1, .extents = (int64_t[]){4}}, open));
  wrong("blocks that do not hold the template", (xmp_template(&other, 1, (xmp_range[]){{0, 4000, 1}}),
                                                 xmp_distribute(other, (xmp_distribution[]){{XMP_BLOCK, 2, NULL}}, p)));
  xmp_reflect_async(1, &u, NULL, 3);
  wrong("other memory while the array is under way", xmp_allocate(u, NULL));
  xmp_wait_async(1, (int[]){3});
  const xmp_reflect_options faces = {.orthogonal = 1};
  wrong("nodes that make different calls", odd ? xmp_reflect_init(1, &u, &faces) : xmp_reduce_shadow(1, &u, NULL));
  int status = XMP_BAD_ARGUMENT;
  xmp_task_begin(part, NULL, &mine);
  if (mine) {
    status = xmp_gmove(u, NULL, u, NULL);
    xmp_task_end();
  }
  wrong("a gmove of an array of which some nodes do not execute", status);
  const xmp_desc_t old = d;
  xmp_free(&d);
  wrong("an array that was freed", xmp_get_view(old, &(xmp_view){0}));

  /* What is right all the same. */
  xmp_gmove(u, (xmp_range[]){{0, 39, 1}}, u, (xmp_range[]){{1, 40, 1}}); /* sides that overlap */
  xmp_reflect_init(1, &u, NULL);
  xmp_allocate(u, NULL); /* the plan is made anew */
  const int right = xmp_reflect_do(1, &u) == XMP_OK;
  if (xmpc_node_num() == 0)
    printf("an array that has other memory than when its plan was made:\n  %s\n", right ? "right" : xmp_last_error());
  xmp_finalize();
  return right && missing == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
