/* Bad handles, null pointers, structs of other sizes: a status and a text, never more. */
#include <stddef.h>

#include "check.h"

struct handles {
  tasuki_context context;
  tasuki_grid grid;
  tasuki_field field;
  tasuki_layout layout;
  tasuki_memory memory;
  tasuki_operation operation;
  tasuki_fork fork;
  tasuki_graph graph;
};

/* Every function that takes a handle, with one that is none. */
static void check_bad_handles(struct handles h, const char* part) {
  int number = 0;
  int64_t large = 0;
  double real = 0;
  char* text = NULL;
  void* pointer = NULL;
  MPI_Comm comm;
  tasuki_box boxes[TASUKI_MAX_BOUNDARY];
  tasuki_grid_info grid_info = {.size = sizeof grid_info};
  tasuki_field_info field_info = {.size = sizeof field_info};
  tasuki_layout_info layout_info = {.size = sizeof layout_info};
  const tasuki_width width = tasuki_width_of(1);
  const tasuki_side side = {0, NULL, NULL};
  struct handles made = {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL};
#define BAD(call) CHECK_FAILS(TASUKI_BAD_HANDLE, part, call)
  BAD(tasuki_context_free(&h.context));
  BAD(tasuki_rank(h.context, &number));
  BAD(tasuki_size(h.context, &number));
  BAD(tasuki_comm(h.context, &comm));
  BAD(tasuki_deadline(h.context, &real));
  BAD(tasuki_set_deadline(h.context, 1));
  BAD(tasuki_barrier(h.context));
  BAD(tasuki_allgather(h.context, &number, sizeof number, &number));
  BAD(tasuki_describe(h.context, &text));
  BAD(tasuki_grid_create(h.context, 1, &large, NULL, &made.grid));
  BAD(tasuki_shared_alloc(h.context, 1, &made.memory));
  BAD(tasuki_transfer_create(h.context, &side, &side, NULL, &made.operation));
  BAD(tasuki_broadcast_create(h.context, 0, &number, sizeof number, NULL, &made.operation));
  BAD(tasuki_allreduce_create(h.context, &number, &number, 1, TASUKI_I32, TASUKI_SUM, NULL, &made.operation));
  BAD(tasuki_reduce_create(h.context, 0, &number, &number, 1, TASUKI_I32, TASUKI_SUM, NULL, &made.operation));
  BAD(tasuki_reduce_scatter_create(h.context, &number, &number, 1, NULL, TASUKI_I32, TASUKI_SUM, NULL,
                                   &made.operation));
  BAD(tasuki_allgather_create(h.context, &number, &number, 1, NULL, TASUKI_I32, NULL, &made.operation));
  BAD(tasuki_gather_create(h.context, 0, &number, &number, 1, NULL, TASUKI_I32, NULL, &made.operation));
  BAD(tasuki_scatter_create(h.context, 0, &number, &number, 1, NULL, TASUKI_I32, NULL, &made.operation));
  BAD(tasuki_alltoall_create(h.context, &number, &number, 1, NULL, NULL, TASUKI_I32, NULL, &made.operation));
  BAD(tasuki_scan_create(h.context, &number, &number, 1, TASUKI_I32, TASUKI_SUM, NULL, &made.operation));
  BAD(tasuki_exscan_create(h.context, &number, &number, 1, TASUKI_I32, TASUKI_SUM, NULL, &made.operation));
  BAD(tasuki_barrier_create(h.context, NULL, &made.operation));
  BAD(tasuki_neighbour_allgather_create(h.context, NULL, &number, &number, 1, NULL, TASUKI_I32, NULL, &made.operation));
  BAD(tasuki_neighbour_alltoall_create(h.context, NULL, &number, &number, 1, NULL, NULL, TASUKI_I32, NULL,
                                       &made.operation));
  BAD(tasuki_broadcast_create_layout(h.context, 0, &number, NULL, NULL, &made.operation));
  BAD(tasuki_allreduce_create_layouts(h.context, &number, NULL, &number, NULL, TASUKI_I32, TASUKI_SUM, NULL,
                                      &made.operation));
  BAD(tasuki_reduce_create_layouts(h.context, 0, &number, NULL, &number, NULL, TASUKI_I32, TASUKI_SUM, NULL,
                                   &made.operation));
  BAD(tasuki_reduce_scatter_create_layouts(h.context, &number, NULL, &number, NULL, TASUKI_I32, TASUKI_SUM, NULL,
                                           &made.operation));
  BAD(tasuki_allgather_create_layouts(h.context, &number, NULL, &number, NULL, NULL, &made.operation));
  BAD(tasuki_gather_create_layouts(h.context, 0, &number, NULL, &number, NULL, NULL, &made.operation));
  BAD(tasuki_scatter_create_layouts(h.context, 0, &number, NULL, &number, NULL, NULL, &made.operation));
  BAD(tasuki_alltoall_create_layouts(h.context, &number, NULL, &number, NULL, NULL, &made.operation));
  BAD(tasuki_scan_create_layouts(h.context, &number, NULL, &number, NULL, TASUKI_I32, TASUKI_SUM, NULL,
                                 &made.operation));
  BAD(tasuki_exscan_create_layouts(h.context, &number, NULL, &number, NULL, TASUKI_I32, TASUKI_SUM, NULL,
                                   &made.operation));
  BAD(tasuki_neighbour_allgather_create_layouts(h.context, NULL, &number, NULL, &number, NULL, NULL, &made.operation));
  BAD(tasuki_neighbour_alltoall_create_layouts(h.context, NULL, &number, NULL, &number, NULL, NULL, &made.operation));
  BAD(tasuki_use_gpu(h.context, &number));
  BAD(tasuki_synchronize(h.context, NULL));
  BAD(tasuki_grid_free(&h.grid));
  BAD(tasuki_grid_get_info(h.grid, &grid_info));
  BAD(tasuki_grid_owned(h.grid, 0, boxes));
  BAD(tasuki_grid_coords(h.grid, 0, &number));
  BAD(tasuki_grid_rank_at(h.grid, &number, &number));
  BAD(tasuki_grid_cut(h.grid, 0, 0, &large));
  BAD(tasuki_field_create(h.grid, TASUKI_F64, NULL, &made.field));
  BAD(tasuki_field_wrap(h.grid, TASUKI_F64, &pointer, 1, NULL, &made.field));
  BAD(tasuki_field_free(&h.field));
  BAD(tasuki_field_get_info(h.field, &field_info));
  BAD(tasuki_field_name(h.field, &text));
  BAD(tasuki_field_data(h.field, &pointer));
  BAD(tasuki_field_next(h.field, &pointer));
  BAD(tasuki_field_copy_data(h.field, 0, &pointer));
  BAD(tasuki_field_swap(h.field));
  BAD(tasuki_field_upload(h.field, &number));
  BAD(tasuki_field_download(h.field, &number));
  BAD(tasuki_field_boundary(h.field, &width, boxes, &number));
  BAD(tasuki_field_interior(h.field, &width, boxes));
  BAD(tasuki_halo_create(1, &h.field, NULL, NULL, &made.operation));
  BAD(tasuki_layout_free(&h.layout));
  BAD(tasuki_layout_contiguous(1, h.layout, &made.layout));
  BAD(tasuki_layout_vector(1, 1, 1, h.layout, &made.layout));
  BAD(tasuki_layout_hvector(1, 1, 1, h.layout, &made.layout));
  BAD(tasuki_layout_subarray(1, &large, &large, &large, h.layout, &made.layout));
  BAD(tasuki_layout_indexed(0, NULL, NULL, h.layout, &made.layout));
  BAD(tasuki_layout_hindexed(0, NULL, NULL, h.layout, &made.layout));
  BAD(tasuki_layout_structure(1, &large, &large, &h.layout, &made.layout));
  BAD(tasuki_layout_resized(h.layout, 0, 1, &made.layout));
  BAD(tasuki_blocks_of(h.layout, 1, &made.layout));
  BAD(tasuki_blocks_of_counts(h.layout, 1, &large, &large, &made.layout));
  BAD(tasuki_blocks_of_elements(1, &h.layout, &large, &large, &made.layout));
  BAD(tasuki_layouts_free(1, &h.layout));
  BAD(tasuki_layout_get_info(h.layout, &layout_info));
  BAD(tasuki_layout_equal(h.layout, h.layout, &number));
  BAD(tasuki_layout_pack(h.layout, &number, &number));
  BAD(tasuki_layout_unpack(h.layout, &number, &number));
  BAD(tasuki_layout_describe(h.layout, &text));
  BAD(tasuki_memory_data(h.memory, &pointer));
  BAD(tasuki_memory_free(&h.memory));
  BAD(tasuki_start(h.operation));
  BAD(tasuki_test(h.operation, &number));
  BAD(tasuki_wait(h.operation));
  BAD(tasuki_stream_start(h.operation, NULL));
  BAD(tasuki_stream_wait(h.operation, NULL));
  BAD(tasuki_stream_run(h.operation, NULL));
  BAD(tasuki_active(h.operation, &number));
  BAD(tasuki_operation_free(&h.operation));
  BAD(tasuki_overlap(h.operation, h.field, &width, NULL, NULL));
  BAD(tasuki_explain(h.operation, &text));
  BAD(tasuki_plan_text(h.operation, &text));
  BAD(tasuki_plan_json(h.operation, &text));
  BAD(tasuki_plan_memory(h.operation, &large));
  BAD(tasuki_verify(h.operation, 0, &number, &text));
  BAD(tasuki_fork_branch(h.fork, NULL, &pointer));
  BAD(tasuki_fork_join(h.fork, NULL));
  BAD(tasuki_fork_free(&h.fork));
  BAD(tasuki_graph_launch(h.graph, NULL));
  BAD(tasuki_graph_free(&h.graph));
#undef BAD
  CHECK(text == NULL && pointer == NULL && made.grid == NULL && made.field == NULL && made.layout == NULL &&
        made.memory == NULL && made.operation == NULL);
}

/* Where results go must be given. */
static void check_null_pointers(struct handles h) {
  const tasuki_width width = tasuki_width_of(1);
  int number = 0;
  tasuki_box boxes[TASUKI_MAX_BOUNDARY];
#define BAD(call) CHECK_FAILS(TASUKI_BAD_ARGUMENT, " is null", call)
  BAD(tasuki_rank(h.context, NULL));
  BAD(tasuki_size(h.context, NULL));
  BAD(tasuki_comm(h.context, NULL));
  BAD(tasuki_deadline(h.context, NULL));
  BAD(tasuki_describe(h.context, NULL));
  BAD(tasuki_context_create(MPI_COMM_NULL, NULL));
  BAD(tasuki_context_create_f(0, NULL));
  BAD(tasuki_context_free(NULL));
  BAD(tasuki_grid_free(NULL));
  BAD(tasuki_grid_get_info(h.grid, NULL));
  BAD(tasuki_grid_owned(h.grid, 0, NULL));
  BAD(tasuki_grid_coords(h.grid, 0, NULL));
  BAD(tasuki_grid_rank_at(h.grid, NULL, &number));
  BAD(tasuki_grid_rank_at(h.grid, &number, NULL));
  BAD(tasuki_grid_cut(h.grid, 0, 0, NULL));
  BAD(tasuki_field_free(NULL));
  BAD(tasuki_field_get_info(h.field, NULL));
  BAD(tasuki_field_name(h.field, NULL));
  BAD(tasuki_field_data(h.field, NULL));
  BAD(tasuki_field_next(h.field, NULL));
  BAD(tasuki_field_copy_data(h.field, 0, NULL));
  BAD(tasuki_field_boundary(h.field, NULL, boxes, &number));
  BAD(tasuki_field_boundary(h.field, &width, NULL, &number));
  BAD(tasuki_field_boundary(h.field, &width, boxes, NULL));
  BAD(tasuki_field_interior(h.field, &width, NULL));
  BAD(tasuki_field_interior(h.field, NULL, boxes));
  BAD(tasuki_layout_bytes(1, NULL));
  BAD(tasuki_layout_free(NULL));
  BAD(tasuki_layout_get_info(h.layout, NULL));
  BAD(tasuki_layout_equal(h.layout, h.layout, NULL));
  BAD(tasuki_layout_describe(h.layout, NULL));
  BAD(tasuki_memory_data(h.memory, NULL));
  BAD(tasuki_memory_free(NULL));
  BAD(tasuki_shared_alloc(h.context, 1, NULL));
  BAD(tasuki_halo_create(1, NULL, NULL, NULL, &h.operation));
  BAD(tasuki_halo_create(1, &h.field, NULL, NULL, NULL));
  BAD(tasuki_operation_free(NULL));
  BAD(tasuki_test(h.operation, NULL));
  BAD(tasuki_active(h.operation, NULL));
  BAD(tasuki_explain(h.operation, NULL));
  BAD(tasuki_plan_text(h.operation, NULL));
  BAD(tasuki_plan_json(h.operation, NULL));
  BAD(tasuki_plan_memory(h.operation, NULL));
  BAD(tasuki_verify(h.operation, 0, NULL, NULL));
  BAD(tasuki_verify_plans(1, NULL, 0, &number, NULL));
  BAD(tasuki_use_gpu(h.context, NULL));
  BAD(tasuki_why_no_gpu(NULL));
  BAD(tasuki_fork_create(NULL));
  BAD(tasuki_fork_free(NULL));
  BAD(tasuki_graph_create(NULL, NULL, NULL, NULL));
  BAD(tasuki_graph_free(NULL));
#undef BAD
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'count' is 0", tasuki_halo_create(0, &h.field, NULL, NULL, &h.operation));
}

/* Structs of an older and of a newer version of the header. */
static void check_sizes(struct handles h) {
  const int64_t extents[] = {4, 4};
  struct {
    tasuki_grid_options options;
    int64_t later; /* a member that this library does not know */
  } newer = {TASUKI_GRID_OPTIONS_INIT, 0};
  newer.options.size = sizeof newer;
  tasuki_grid grid = NULL;
  CHECK_OK(tasuki_grid_create(h.context, 2, extents, &newer.options, &grid)); /* at its default: no harm */
  CHECK_OK(tasuki_grid_free(&grid));
  newer.later = 1;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "too old", tasuki_grid_create(h.context, 2, extents, &newer.options, &grid));
  newer.options.size = 0;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "0 bytes", tasuki_grid_create(h.context, 2, extents, &newer.options, &grid));
  newer.options.size = (size_t)-1;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "bytes", tasuki_grid_create(h.context, 2, extents, &newer.options, &grid));
  tasuki_field_options of_field = TASUKI_FIELD_OPTIONS_INIT;
  tasuki_halo_options of_halo = TASUKI_HALO_OPTIONS_INIT;
  tasuki_transfer_options of_transfer = TASUKI_TRANSFER_OPTIONS_INIT;
  tasuki_broadcast_options of_broadcast = TASUKI_BROADCAST_OPTIONS_INIT;
  of_field.size = of_halo.size = of_transfer.size = of_broadcast.size = 4;
  tasuki_field field = NULL;
  tasuki_operation operation = NULL;
  const tasuki_side side = {0, NULL, NULL};
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "4 bytes", tasuki_field_create(h.grid, TASUKI_F64, &of_field, &field));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "4 bytes", tasuki_halo_create(1, &h.field, NULL, &of_halo, &operation));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "4 bytes",
              tasuki_transfer_create(h.context, &side, &side, &of_transfer, &operation));
  /* What was compiled before options had more members: what follows them in memory says nothing. */
  tasuki_broadcast_options older = TASUKI_BROADCAST_OPTIONS_INIT;
  older.size = offsetof(tasuki_broadcast_options, tune);
  older.tune = -1;
  double number = 0;
  CHECK_OK(tasuki_broadcast_create(h.context, 0, &number, sizeof number, &older, &operation));
  CHECK_OK(tasuki_operation_free(&operation));
  older.size = sizeof older;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "argument 'tune' is -1",
              tasuki_broadcast_create(h.context, 0, &number, sizeof number, &older, &operation));
  const tasuki_side nowhere = {-1, NULL, NULL};
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'to.rank' is -1",
              tasuki_transfer_create(h.context, &side, &nowhere, NULL, &operation));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "4 bytes",
              tasuki_broadcast_create(h.context, 0, NULL, 0, &of_broadcast, &operation));
  struct {
    tasuki_field_info info;
    int64_t later;
  } large;
  large.info.size = sizeof large;
  large.later = 77;
  CHECK_OK(tasuki_field_get_info(h.field, &large.info));
  CHECK(large.later == 77 && large.info.ndims == 2 && large.info.size == sizeof large);
  tasuki_grid_info small = {.size = 1};
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "1 bytes", tasuki_grid_get_info(h.grid, &small));
  CHECK(field == NULL && operation == NULL && grid == NULL);
}

void test_misuse(tasuki_context ranks) {
  const int64_t extents[] = {8, 6};
  struct handles h = {ranks, NULL, NULL, NULL, NULL, NULL, NULL, NULL};
  CHECK_OK(tasuki_grid_create(ranks, 2, extents, NULL, &h.grid));
  CHECK_OK(tasuki_field_create(h.grid, TASUKI_F64, NULL, &h.field));
  CHECK_OK(tasuki_layout_bytes(8, &h.layout));
  CHECK_OK(tasuki_shared_alloc(ranks, 8, &h.memory));
  CHECK_OK(tasuki_halo_create(1, &h.field, NULL, NULL, &h.operation));

  int local = 0;
  void* no = &local;
  const struct handles none = {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL};
  const struct handles others = {(void*)h.grid,      (void*)h.field, (void*)h.layout, (void*)h.memory,
                                 (void*)h.operation, (void*)ranks,   (void*)h.grid,   (void*)h.grid};
  const struct handles made_up = {no, no, no, no, no, no, no, no};
  check_bad_handles(none, " is null");
  check_bad_handles(others, " is a");
  check_bad_handles(made_up, "never a handle");
  check_null_pointers(h);
  check_sizes(h);

  struct handles old = h;
  old.context = NULL;
  CHECK_OK(tasuki_operation_free(&h.operation));
  CHECK_OK(tasuki_field_free(&h.field));
  CHECK_OK(tasuki_grid_free(&h.grid));
  CHECK_OK(tasuki_layout_free(&h.layout));
  CHECK_OK(tasuki_memory_free(&h.memory));
  /* New objects in the old ones' slots do not answer to the old handles. */
  CHECK_OK(tasuki_grid_create(ranks, 2, extents, NULL, &h.grid));
  CHECK_OK(tasuki_field_create(h.grid, TASUKI_F64, NULL, &h.field));
  CHECK_OK(tasuki_layout_bytes(8, &h.layout));
  check_bad_handles(old, " is ");
  CHECK_FAILS(TASUKI_BAD_HANDLE, "freed", tasuki_start(old.operation));
  CHECK_OK(tasuki_layout_free(&h.layout));
  CHECK_OK(tasuki_field_free(&h.field));
  CHECK_OK(tasuki_grid_free(&h.grid));

  CHECK(strcmp(tasuki_status_name(TASUKI_FAILED), "TASUKI_FAILED") == 0);
  CHECK(strcmp(tasuki_status_name(TASUKI_SYSTEM), "TASUKI_SYSTEM") == 0);
  CHECK(strcmp(tasuki_status_name(TASUKI_RANK_DIED), "TASUKI_RANK_DIED") == 0);
  CHECK(strcmp(tasuki_status_name(-1), "unknown status") == 0 && strcmp(tasuki_status_name(12), "unknown status") == 0);
  tasuki_text_free(NULL);
}
