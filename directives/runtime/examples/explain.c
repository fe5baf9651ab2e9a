/* What a reflect sends, and which way: Tasuki's table of it, as rank 0 sees it.
 *   mpirun -n 16 explain_xmp I J K NODES-I NODES-J [MAPPING [PATH]]
 * TASUKI_ISLAND=4 makes islands of four ranks. MAPPING as xmp_nodes_mapped has it, PATH as the option `path`. */
#include <stdio.h>
#include <stdlib.h>

#include "xmp.h"

int main(int argc, char** argv) {
  if (argc < 6) return fprintf(stderr, "explain_xmp I J K NODES-I NODES-J [MAPPING [PATH]]\n"), EXIT_FAILURE;
  const int64_t extents[] = {atoll(argv[1]), atoll(argv[2]), atoll(argv[3])};
  const int64_t split[] = {atoll(argv[4]), atoll(argv[5]), 1};
  xmp_desc_t p, t, a;
  xmp_init(argc, argv);
  xmp_nodes_mapped(&p, 3, split, argc > 6 ? argv[6] : "row", extents);
  xmp_template(&t, 3, (xmp_range[]){{0, extents[0], 1}, {0, extents[1], 1}, {0, extents[2], 1}});
  xmp_distribute(t, (xmp_distribution[]){{XMP_BLOCK, 0, NULL}, {XMP_BLOCK, 0, NULL}, {XMP_BLOCK, 0, NULL}}, p);
  xmp_array(&a, &(xmp_array_spec){.name = "a", .type = XMP_F32, .ndims = 3, .extents = extents}, t);
  xmp_shadow(a, (xmp_width[]){{1, 1}, {1, 1}, {0, 0}});
  xmp_allocate(a, NULL);
  xmp_reflect_init(1, &a, &(xmp_reflect_options){.orthogonal = 1, .path = argc > 7 ? argv[7] : NULL});
  const char* const text = xmp_reflect_explain(a);
  if (xmpc_node_num() == 0) printf("%s", text);
  return xmp_finalize();
}
