/* Fields: shape, memory of Tasuki's and of the caller's, two copies, boxes for overlap. */
#include "check.h"

static void check_copies(tasuki_field field) {
  tasuki_field_info info = {.size = sizeof info};
  void *shown, *next, *first, *second;
  CHECK_OK(tasuki_field_data(field, &shown));
  CHECK_OK(tasuki_field_next(field, &next));
  CHECK_OK(tasuki_field_copy_data(field, 0, &first));
  CHECK_OK(tasuki_field_copy_data(field, 1, &second));
  CHECK(shown == first && next == second);
  CHECK_OK(tasuki_field_swap(field));
  CHECK_OK(tasuki_field_data(field, &shown));
  CHECK_OK(tasuki_field_get_info(field, &info));
  CHECK(shown == second && info.current == 1);
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'copy' is 2", tasuki_field_copy_data(field, 2, &first));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'copy' is -1", tasuki_field_copy_data(field, -1, &first));

  unsigned char* bytes = malloc((size_t)info.bytes);
  unsigned char* back = malloc((size_t)info.bytes);
  for (int64_t i = 0; i < info.bytes; ++i) bytes[i] = (unsigned char)(i * 7 + 1);
  CHECK_OK(tasuki_field_upload(field, bytes));
  CHECK(memcmp(shown, bytes, (size_t)info.bytes) == 0);
  CHECK_OK(tasuki_field_download(field, back));
  CHECK(memcmp(back, bytes, (size_t)info.bytes) == 0);
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'host' is null", tasuki_field_upload(field, NULL));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'host' is null", tasuki_field_download(field, NULL));
  free(bytes);
  free(back);
}

static int64_t cells_of(const tasuki_box* box) {
  return (box->hi[0] - box->lo[0]) * (box->hi[1] - box->lo[1]);
}

static void check_shape(tasuki_grid grid) {
  tasuki_field_options options = TASUKI_FIELD_OPTIONS_INIT;
  options.name = "p";
  options.copies = 2;
  options.pad = 3;
  options.shadow = tasuki_width_of(0);
  options.shadow.lo[0] = 2;
  options.shadow.hi[1] = 1;
  tasuki_field field = NULL;
  CHECK_OK(tasuki_field_create(grid, TASUKI_F32, &options, &field));
  tasuki_field_info info = {.size = sizeof info};
  CHECK_OK(tasuki_field_get_info(field, &info));
  const int64_t rows = info.owned.hi[0] - info.owned.lo[0];
  const int64_t columns = info.owned.hi[1] - info.owned.lo[1];
  CHECK(info.ndims == 2 && info.type == TASUKI_F32 && info.memory == TASUKI_HOST && info.copies == 2);
  CHECK(info.element_bytes == 4 && info.shadow.lo[0] == 2 && info.shadow.hi[1] == 1 && info.shadow.hi[0] == 0);
  CHECK(info.extents[0] == rows + 2 && info.extents[1] == columns + 1);
  CHECK(info.strides[0] == columns + 4 && info.strides[1] == 1);
  CHECK(info.bytes == (rows + 2) * (columns + 4) * 4);
  CHECK(info.local_owned.lo[0] == 2 && info.local_owned.hi[1] == columns);
  char* name = NULL;
  CHECK_OK(tasuki_field_name(field, &name));
  CHECK(strcmp(name, "p") == 0);
  tasuki_text_free(name);
  check_copies(field);

  tasuki_box boxes[TASUKI_MAX_BOUNDARY];
  tasuki_box interior;
  int count = 0;
  const tasuki_width one = tasuki_width_of(1);
  CHECK_OK(tasuki_field_boundary(field, &one, boxes, &count));
  CHECK_OK(tasuki_field_interior(field, &one, &interior));
  int64_t cells = cells_of(&interior);
  for (int b = 0; b < count; ++b) cells += cells_of(&boxes[b]);
  CHECK(cells == rows * columns);
  const tasuki_width minus = tasuki_width_of(-1);
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "0 or more", tasuki_field_interior(field, &minus, &interior));
  CHECK_OK(tasuki_field_free(&field));
  CHECK(field == NULL);
}

static void check_own_memory(tasuki_grid grid, int rank) {
  tasuki_grid_info box = {.size = sizeof box};
  CHECK_OK(tasuki_grid_get_info(grid, &box));
  int64_t cells[] = {box.owned.hi[0] - box.owned.lo[0] + 2, box.owned.hi[1] - box.owned.lo[1] + 2};
  const size_t bytes = (size_t)(cells[0] * cells[1]) * 12;
  void* memory[] = {malloc(bytes), malloc(bytes)};
  tasuki_field_options options = TASUKI_FIELD_OPTIONS_INIT;
  options.copies = 2;
  options.element_bytes = 12; /* say, three floats */
  options.memory_extents = cells;
  tasuki_field field = NULL;
  void* data = NULL;
  options.copies = 1;
  CHECK_OK(tasuki_field_wrap(grid, TASUKI_BYTES, memory, 1, &options, &field));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "which has one copy", tasuki_field_next(field, &data));
  CHECK(data == NULL);
  CHECK_OK(tasuki_field_free(&field));
  options.copies = 2;
  CHECK_OK(tasuki_field_wrap(grid, TASUKI_BYTES, memory, 2, &options, &field));
  CHECK_OK(tasuki_field_next(field, &data));
  CHECK(data == memory[1]);
  CHECK_OK(tasuki_field_free(&field));

  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "2 copies need one each",
              tasuki_field_wrap(grid, TASUKI_BYTES, memory, 1, &options, &field));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'count' is 3", tasuki_field_wrap(grid, TASUKI_BYTES, memory, 3, &options, &field));
  ++cells[1];
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "cells; it needs",
              tasuki_field_wrap(grid, TASUKI_BYTES, memory, 2, &options, &field));
  --cells[1];
  options.element_bytes = 0;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "at least 1", tasuki_field_wrap(grid, TASUKI_BYTES, memory, 2, &options, &field));
  options.element_bytes = 4;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "have 8", tasuki_field_wrap(grid, TASUKI_F64, memory, 2, &options, &field));
  void* none[] = {NULL, NULL};
  options.element_bytes = 0;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "is null",
              tasuki_field_wrap(grid, TASUKI_F64, rank == 0 ? none : memory, 2, &options, &field));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'memory' is null", tasuki_field_wrap(grid, TASUKI_F64, NULL, 2, &options, &field));
  CHECK(field == NULL);
  free(memory[0]);
  free(memory[1]);
}

static void check_refusals(tasuki_grid grid, int rank, int size) {
  tasuki_field field = NULL;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'type' is 11", tasuki_field_create(grid, 11, NULL, &field));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'type' is -1", tasuki_field_create(grid, -1, NULL, &field));
  tasuki_field_options options = TASUKI_FIELD_OPTIONS_INIT;
  options.memory = 2;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "memory is 2", tasuki_field_create(grid, TASUKI_F64, &options, &field));
  options.memory = TASUKI_HOST;
  options.copies = 3;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'copies' is 3", tasuki_field_create(grid, TASUKI_F64, &options, &field));
  options.copies = 1;
  if (size > 1) {
    options.pad = rank;
    CHECK_FAILS(TASUKI_DISAGREEMENT, "'pad' differs between ranks",
                tasuki_field_create(grid, TASUKI_F64, &options, &field));
    /* A complaint of one rank is everybody's. */
    CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'field' is null",
                tasuki_field_create(grid, TASUKI_F64, NULL, rank == 1 ? NULL : &field));
  }
  CHECK(field == NULL);
}

void test_field(tasuki_context ranks) {
  int rank = 0;
  int size = 0;
  CHECK_OK(tasuki_rank(ranks, &rank));
  CHECK_OK(tasuki_size(ranks, &size));
  const int64_t extents[] = {11, 6};
  tasuki_grid grid = NULL;
  CHECK_OK(tasuki_grid_create(ranks, 2, extents, NULL, &grid));
  check_shape(grid);
  check_own_memory(grid, rank);
  check_refusals(grid, rank, size);
  tasuki_field field = NULL;
  CHECK_OK(tasuki_field_create(grid, TASUKI_U16, NULL, &field));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "two copies", tasuki_field_swap(field));
  CHECK_OK(tasuki_grid_free(&grid)); /* the field keeps it */
  tasuki_field_info info = {.size = sizeof info};
  CHECK_OK(tasuki_field_get_info(field, &info));
  CHECK(info.type == TASUKI_U16);
  CHECK_OK(tasuki_field_free(&field));
}
