/* GPUs: where there is one a rank, halos in a stream, beside another one and in a graph; elsewhere, what is said. */
#include "check.h"

enum { ROWS = 21, COLUMNS = 11 };

struct work {
  tasuki_operation halo;
  void* stream;
  int status;
};

static int enqueue(void* data) {
  struct work* work = data;
  if (work->status != TASUKI_OK) return work->status;
  return tasuki_stream_run(work->halo, work->stream);
}

/* All owned cells become `number`, the shadow does not. */
static void fill(tasuki_field field, float number) {
  tasuki_field_info f = {.size = sizeof f};
  CHECK_OK(tasuki_field_get_info(field, &f));
  float* cells = malloc((size_t)f.bytes);
  for (int64_t k = 0; k < f.bytes / 4; ++k) cells[k] = -1;
  for (int64_t i = f.local_owned.lo[0]; i < f.local_owned.hi[0]; ++i)
    for (int64_t j = f.local_owned.lo[1]; j < f.local_owned.hi[1]; ++j) cells[i * f.strides[0] + j] = number;
  CHECK_OK(tasuki_field_upload(field, cells));
  free(cells);
}

static int64_t others(tasuki_field field, float number) {
  tasuki_field_info f = {.size = sizeof f};
  int64_t count = 0;
  CHECK_OK(tasuki_field_get_info(field, &f));
  float* cells = malloc((size_t)f.bytes);
  CHECK_OK(tasuki_field_download(field, cells));
  for (int64_t k = 0; k < f.bytes / 4; ++k) count += cells[k] != number;
  free(cells);
  return count;
}

static void check_streams(tasuki_context ranks, tasuki_grid grid) {
  tasuki_field_options options = TASUKI_FIELD_OPTIONS_INIT;
  options.memory = TASUKI_DEVICE;
  tasuki_field field = NULL;
  CHECK_OK(tasuki_field_create(grid, TASUKI_F32, &options, &field));
  struct work work = {NULL, NULL, TASUKI_OK};
  CHECK_OK(tasuki_halo_create(1, &field, NULL, NULL, &work.halo));
  check_operation(work.halo);
  tasuki_fork fork = NULL;
  CHECK_OK(tasuki_fork_create(&fork));
  for (int turn = 0; turn < 6; ++turn) {
    fill(field, (float)turn);
    if (turn % 3 == 0) {
      CHECK_OK(tasuki_stream_run(work.halo, NULL));
    } else if (turn % 3 == 1) {
      CHECK_OK(tasuki_stream_start(work.halo, NULL));
      CHECK_FAILS(TASUKI_BAD_ARGUMENT, "wait", tasuki_stream_start(work.halo, NULL));
      CHECK_OK(tasuki_stream_wait(work.halo, NULL));
    } else {
      CHECK_OK(tasuki_fork_branch(fork, NULL, &work.stream));
      CHECK_OK(tasuki_stream_run(work.halo, work.stream));
      CHECK_OK(tasuki_fork_join(fork, NULL));
    }
    CHECK_OK(tasuki_synchronize(ranks, NULL));
    CHECK(others(field, (float)turn) == 0);
  }
  tasuki_graph graph = NULL;
  CHECK_OK(tasuki_graph_create(work.stream, enqueue, &work, &graph));
  for (int turn = 10; turn < 13; ++turn) {
    fill(field, (float)turn);
    CHECK_OK(tasuki_graph_launch(graph, work.stream));
    CHECK_OK(tasuki_synchronize(ranks, work.stream));
    CHECK(others(field, (float)turn) == 0);
  }
  tasuki_graph none = NULL;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "default stream", tasuki_graph_create(NULL, enqueue, &work, &none));
  work.status = TASUKI_BAD_HANDLE;
  CHECK_FAILS(TASUKI_BAD_HANDLE, "'enqueue' returned 1", tasuki_graph_create(work.stream, enqueue, &work, &none));
  CHECK(none == NULL);
  CHECK_OK(tasuki_barrier(ranks)); /* freeing GPU memory may hold up others' kernels */
  CHECK_OK(tasuki_graph_free(&graph));
  CHECK_OK(tasuki_fork_free(&fork));
  CHECK_OK(tasuki_operation_free(&work.halo));
  CHECK_OK(tasuki_field_free(&field));
}

static void check_without(tasuki_context ranks, tasuki_grid grid) {
  int ordinal = -1;
  tasuki_fork fork = NULL;
  tasuki_graph graph = NULL;
  tasuki_field field = NULL;
  tasuki_field_options device = TASUKI_FIELD_OPTIONS_INIT;
  struct work work = {NULL, NULL, TASUKI_OK};
  device.memory = TASUKI_DEVICE;
  CHECK_FAILS(TASUKI_NOT_POSSIBLE, "GPU", tasuki_use_gpu(ranks, &ordinal));
  CHECK_FAILS(TASUKI_NOT_POSSIBLE, "GPU", tasuki_field_create(grid, TASUKI_F32, &device, &field));
  CHECK_FAILS(TASUKI_NOT_POSSIBLE, "GPU", tasuki_fork_create(&fork));
  CHECK_FAILS(TASUKI_NOT_POSSIBLE, "GPU", tasuki_graph_create(&work, enqueue, &work, &graph));
  CHECK(field == NULL && fork == NULL && graph == NULL && ordinal == -1);
  CHECK_OK(tasuki_synchronize(ranks, NULL));
  CHECK_OK(tasuki_field_create(grid, TASUKI_F32, NULL, &field));
  CHECK_OK(tasuki_halo_create(1, &field, NULL, NULL, &work.halo));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "streams are for", tasuki_stream_run(work.halo, NULL));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "streams are for", tasuki_stream_start(work.halo, NULL));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "streams are for", tasuki_stream_wait(work.halo, NULL));
  CHECK_OK(tasuki_operation_free(&work.halo));
  CHECK_OK(tasuki_field_free(&field));
}

void test_gpu(tasuki_context ranks) {
  char* why = NULL;
  int ordinal = -1;
  const int64_t extents[] = {ROWS, COLUMNS};
  const int periodic[] = {1, 1};
  tasuki_grid_options options = TASUKI_GRID_OPTIONS_INIT;
  options.periodic = periodic;
  tasuki_grid grid = NULL;
  CHECK_OK(tasuki_grid_create(ranks, 2, extents, &options, &grid));
  CHECK_OK(tasuki_why_no_gpu(&why));
  if (why[0] != '\0') {
    check_without(ranks, grid);
  } else if (tasuki_use_gpu(ranks, &ordinal) == TASUKI_OK) {
    CHECK(ordinal >= 0);
    check_streams(ranks, grid);
  } else {
    fprintf(stderr, "without the tests on GPUs: %s\n", tasuki_last_error()); /* more threads than GPUs */
  }
  tasuki_text_free(why);
  CHECK_OK(tasuki_grid_free(&grid));
}
