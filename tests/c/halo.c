/* Halos: on every engine and with every option, the values of each exchange being others. */
#include "check.h"

enum { ROWS = 13, COLUMNS = 9, EPOCHS = 4 };

/* The value of a global cell at an epoch; the grid is periodic. */
static double value(int64_t i, int64_t j, int epoch) {
  return (double)((i + ROWS) % ROWS * 100 + (j + COLUMNS) % COLUMNS) + 10000.0 * epoch;
}

static double expected_at(const tasuki_field_info* f, int64_t i, int64_t j, int epoch) {
  return value(f->owned.lo[0] + i - f->local_owned.lo[0], f->owned.lo[1] + j - f->local_owned.lo[1], epoch);
}

static void clear(tasuki_field field) {
  tasuki_field_info f = {.size = sizeof f};
  void* data;
  CHECK_OK(tasuki_field_get_info(field, &f));
  CHECK_OK(tasuki_field_data(field, &data));
  double* cells = data;
  for (int64_t i = 0; i < f.extents[0]; ++i)
    for (int64_t j = 0; j < f.extents[1]; ++j) cells[i * f.strides[0] + j] = -1;
}

/* The cells that this rank owns. */
static void fill(tasuki_field field, int epoch) {
  tasuki_field_info f = {.size = sizeof f};
  void* data;
  CHECK_OK(tasuki_field_get_info(field, &f));
  CHECK_OK(tasuki_field_data(field, &data));
  double* cells = data;
  for (int64_t i = f.local_owned.lo[0]; i < f.local_owned.hi[0]; ++i)
    for (int64_t j = f.local_owned.lo[1]; j < f.local_owned.hi[1]; ++j)
      cells[i * f.strides[0] + j] = expected_at(&f, i, j, epoch);
}

static int64_t wrong_cells(tasuki_field field, int epoch, int corners) {
  tasuki_field_info f = {.size = sizeof f};
  void* data;
  int64_t wrong = 0;
  CHECK_OK(tasuki_field_get_info(field, &f));
  CHECK_OK(tasuki_field_data(field, &data));
  const double* cells = data;
  for (int64_t i = 0; i < f.extents[0]; ++i)
    for (int64_t j = 0; j < f.extents[1]; ++j) {
      const int outside =
          (i < f.local_owned.lo[0] || i >= f.local_owned.hi[0]) + (j < f.local_owned.lo[1] || j >= f.local_owned.hi[1]);
      wrong += cells[i * f.strides[0] + j] != (outside == 2 && !corners ? -1 : expected_at(&f, i, j, epoch));
    }
  return wrong;
}

static void exchange(tasuki_operation halo, const tasuki_field* fields, int corners, int swaps) {
  for (int epoch = 1; epoch <= EPOCHS; ++epoch) {
    int active = 0;
    for (int f = 0; f < 2; ++f) {
      if (swaps)
        CHECK_OK(tasuki_field_swap(fields[f]));
      else
        clear(fields[f]); /* with `alternating`, neighbours may have written the shadow already */
      fill(fields[f], epoch + 10 * f);
    }
    CHECK_OK(tasuki_start(halo));
    CHECK_OK(tasuki_active(halo, &active));
    CHECK(active);
    if (epoch % 2 == 0)
      for (int ended = 0; !ended;) CHECK_OK(tasuki_test(halo, &ended));
    else
      CHECK_OK(tasuki_wait(halo));
    CHECK_OK(tasuki_active(halo, &active));
    CHECK(!active);
    CHECK_OK(tasuki_wait(halo)); /* none is active: at once */
    for (int f = 0; f < 2; ++f) CHECK(wrong_cells(fields[f], epoch + 10 * f, corners) == 0);
  }
}

static void check_options(tasuki_field* fields, int corners, int alternating, int threaded) {
  tasuki_halo_options options = TASUKI_HALO_OPTIONS_INIT;
  options.corners = corners;
  options.alternating = alternating;
  options.engine = threaded ? "thread" : "inline";
  tasuki_operation halo = NULL;
  for (int f = 0; f < 2; ++f)
    for (int copy = 0; copy < 2; ++copy) {
      CHECK_OK(tasuki_field_swap(fields[f]));
      clear(fields[f]);
    }
  CHECK_OK(tasuki_halo_create(2, fields, NULL, &options, &halo));
  check_operation(halo);
  exchange(halo, fields, corners, alternating);
  if (alternating) CHECK_FAILS(TASUKI_BAD_ARGUMENT, "swap exactly once", tasuki_start(halo));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "free that first", tasuki_field_free(&fields[0]));
  CHECK(fields[0] != NULL);
  char* text = NULL;
  CHECK_OK(tasuki_explain(halo, &text));
  CHECK(strlen(text) > 0);
  tasuki_text_free(text);
  CHECK_OK(tasuki_operation_free(&halo));
}

static void visit(const tasuki_box* box, void* cells) {
  *(int64_t*)cells += (box->hi[0] - box->lo[0]) * (box->hi[1] - box->lo[1]);
}

static void check_plans(tasuki_operation halo) {
  char *plan = NULL, *json = NULL, *report = NULL;
  int ok = 0;
  CHECK_OK(tasuki_plan_text(halo, &plan));
  CHECK_OK(tasuki_plan_json(halo, &json));
  const char* const as_text[] = {plan, plan};
  const char* const as_json[] = {json};
  const char* const others[] = {"nonsense", "{}", NULL};
  CHECK_OK(tasuki_verify_plans(1, as_text, 0, &ok, NULL));
  CHECK(ok);
  CHECK_OK(tasuki_verify_plans(1, as_json, 2, &ok, &report));
  CHECK(ok && report != NULL);
  CHECK_OK(tasuki_verify_plans(2, as_text, 0, &ok, NULL)); /* two ranks with the plan of one */
  CHECK(!ok);
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "line 1", tasuki_verify_plans(1, others, 0, &ok, NULL));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "", tasuki_verify_plans(1, others + 1, 0, &ok, NULL));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'plans' is null", tasuki_verify_plans(1, others + 2, 0, &ok, NULL));
  tasuki_text_free(plan);
  tasuki_text_free(json);
  tasuki_text_free(report);
}

/* Less than the shadow, a width a field; the interior is computed while it travels. */
static void check_widths(tasuki_field* fields, int size) {
  const tasuki_width widths[] = {tasuki_width_of(1), tasuki_width_of(0)};
  tasuki_operation halo = NULL;
  CHECK_OK(tasuki_halo_create(2, fields, widths, NULL, &halo));
  check_operation(halo);
  tasuki_field_info f = {.size = sizeof f};
  CHECK_OK(tasuki_field_get_info(fields[0], &f));
  for (int turn = 0; turn < 3; ++turn) {
    int64_t cells = 0;
    clear(fields[0]);
    fill(fields[0], turn);
    CHECK_OK(tasuki_overlap(halo, fields[0], &widths[0], visit, &cells));
    CHECK(cells == (f.owned.hi[0] - f.owned.lo[0]) * (f.owned.hi[1] - f.owned.lo[1]));
    /* The shadow is 2 wide: one layer arrives, the outer stays. */
    CHECK(wrong_cells(fields[0], turn, 1) == f.extents[0] * f.extents[1] - (f.extents[0] - 2) * (f.extents[1] - 2));
  }
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'compute' is null", tasuki_overlap(halo, fields[0], &widths[0], NULL, NULL));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'width' is null", tasuki_overlap(halo, fields[0], NULL, visit, NULL));
  CHECK_FAILS(TASUKI_BAD_HANDLE, "'field' is null", tasuki_overlap(halo, NULL, &widths[0], visit, NULL));
  CHECK_OK(tasuki_start(halo));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "wait for it first", tasuki_start(halo));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "wait for it first", tasuki_operation_free(&halo));
  CHECK(halo != NULL);
  CHECK_OK(tasuki_wait(halo));
  if (size == 1) check_plans(halo);
  CHECK_OK(tasuki_operation_free(&halo));
  CHECK(halo == NULL);
}

static void check_refusals(const tasuki_field* fields, int rank, int size) {
  tasuki_operation halo = NULL;
  tasuki_halo_options options = TASUKI_HALO_OPTIONS_INIT;
  options.path = "pigeon";
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "pigeon", tasuki_halo_create(1, fields, NULL, &options, &halo));
  options.path = NULL;
  options.engine = "steam";
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "steam", tasuki_halo_create(1, fields, NULL, &options, &halo));
  options.engine = NULL;
  if (size > 1) {
    options.corners = rank != 0;
    CHECK_FAILS(TASUKI_DISAGREEMENT, "'corners' differs between ranks",
                tasuki_halo_create(1, fields, NULL, &options, &halo));
    const tasuki_field some[] = {fields[0], rank == 1 ? NULL : fields[1]};
    CHECK_FAILS(rank == 1 ? TASUKI_BAD_HANDLE : TASUKI_BAD_ARGUMENT, "'fields[1]' is null",
                tasuki_halo_create(2, some, NULL, NULL, &halo));
  }
  CHECK(halo == NULL);
}

/* Every cell and shadow cell is the epoch's number: an owned cell ends as that times one more than the shadows it is
 * in, and all boxes are equal, so each gives as much as it gets. */
static void check_reverse(tasuki_grid grid) {
  tasuki_field field = NULL;
  CHECK_OK(tasuki_field_create(grid, TASUKI_I32, NULL, &field));
  tasuki_halo_options options = TASUKI_HALO_OPTIONS_INIT;
  options.reverse = 1;
  options.corners = 0;
  tasuki_operation halo = NULL;
  CHECK_OK(tasuki_halo_create(1, &field, NULL, &options, &halo));
  check_operation(halo);
  tasuki_field_info f = {.size = sizeof f};
  void* data;
  CHECK_OK(tasuki_field_get_info(field, &f));
  CHECK_OK(tasuki_field_data(field, &data));
  int32_t* cells = data;
  const int64_t rows = f.owned.hi[0] - f.owned.lo[0], columns = f.owned.hi[1] - f.owned.lo[1];
  for (int epoch = 1; epoch <= EPOCHS; ++epoch) {
    int64_t sum = 0;
    for (int64_t k = 0; k < f.bytes / 4; ++k) cells[k] = epoch;
    CHECK_OK(tasuki_start(halo));
    CHECK_OK(tasuki_wait(halo));
    for (int64_t i = f.local_owned.lo[0]; i < f.local_owned.hi[0]; ++i)
      for (int64_t j = f.local_owned.lo[1]; j < f.local_owned.hi[1]; ++j) sum += cells[i * f.strides[0] + j];
    CHECK(sum == epoch * (rows * columns + 2 * (rows + columns)));
  }
  CHECK_OK(tasuki_operation_free(&halo));
  CHECK_OK(tasuki_field_free(&field));
}

/* Walls below and above dimension 0 change the sign; the upper one stands in the middle of the last cells. */
static void check_edges(tasuki_grid grid, int64_t rows) {
  tasuki_field field = NULL;
  CHECK_OK(tasuki_field_create(grid, TASUKI_I32, NULL, &field));
  tasuki_halo_options options = TASUKI_HALO_OPTIONS_INIT;
  tasuki_operation halo = NULL;
  options.edges = "i=wall";
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "there is no edge 'wall'", tasuki_halo_create(1, &field, NULL, &options, &halo));
  options.edges = "i=-face/-cell";
  CHECK_OK(tasuki_halo_create(1, &field, NULL, &options, &halo));
  check_operation(halo);
  tasuki_field_info f = {.size = sizeof f};
  void* data;
  CHECK_OK(tasuki_field_get_info(field, &f));
  CHECK_OK(tasuki_field_data(field, &data));
  int32_t* cells = data;
  for (int epoch = 1; epoch <= EPOCHS; ++epoch) {
    for (int64_t k = 0; k < f.bytes / 4; ++k) cells[k] = 0;
    for (int64_t i = f.local_owned.lo[0]; i < f.local_owned.hi[0]; ++i)
      for (int64_t j = f.local_owned.lo[1]; j < f.local_owned.hi[1]; ++j)
        cells[i * f.strides[0] + j] = (int32_t)(1000 * epoch + 7 * i + j);
    CHECK_OK(tasuki_start(halo));
    CHECK_OK(tasuki_wait(halo));
    for (int64_t j = 0; j < f.extents[1]; ++j) { /* corners too, which come from neighbours */
      const int64_t last = f.local_owned.hi[0] - 1;
      if (f.owned.lo[0] == 0) CHECK(cells[j] == -cells[f.strides[0] + j] && cells[j] < 0);
      if (f.owned.hi[0] == rows)
        CHECK(cells[(last + 1) * f.strides[0] + j] == -cells[(last - 1) * f.strides[0] + j] &&
              cells[(last + 1) * f.strides[0] + j] < 0);
    }
  }
  CHECK_OK(tasuki_operation_free(&halo));
  CHECK_OK(tasuki_field_free(&field));
}

void test_halo(tasuki_context ranks) {
  int rank = 0;
  int size = 0;
  CHECK_OK(tasuki_rank(ranks, &rank));
  CHECK_OK(tasuki_size(ranks, &size));
  const int64_t extents[] = {ROWS, COLUMNS}, even[] = {3 * size, 5};
  const int periodic[] = {1, 1}, split[] = {size, 1};
  tasuki_grid_options grid_options = TASUKI_GRID_OPTIONS_INIT;
  grid_options.periodic = periodic;
  tasuki_grid grid = NULL;
  CHECK_OK(tasuki_grid_create(ranks, 2, extents, &grid_options, &grid));
  tasuki_field_options two = TASUKI_FIELD_OPTIONS_INIT;
  two.copies = 2;
  two.shadow = tasuki_width_of(2);
  tasuki_field fields[2] = {NULL, NULL};
  CHECK_OK(tasuki_field_create(grid, TASUKI_F64, &two, &fields[0]));
  two.name = "q";
  two.pad = 1;
  CHECK_OK(tasuki_field_create(grid, TASUKI_F64, &two, &fields[1]));
  for (int chosen = 0; chosen < 8; ++chosen) check_options(fields, chosen & 1, chosen >> 1 & 1, chosen >> 2);
  check_widths(fields, size);
  check_refusals(fields, rank, size);
  CHECK_OK(tasuki_field_free(&fields[0]));
  CHECK_OK(tasuki_field_free(&fields[1]));
  CHECK_OK(tasuki_grid_free(&grid));
  grid_options.split = split;
  CHECK_OK(tasuki_grid_create(ranks, 2, even, &grid_options, &grid));
  check_reverse(grid);
  CHECK_OK(tasuki_grid_free(&grid));
  const int walls[] = {0, 1};
  grid_options.periodic = walls;
  CHECK_OK(tasuki_grid_create(ranks, 2, even, &grid_options, &grid));
  check_edges(grid, even[0]);
  CHECK_OK(tasuki_grid_free(&grid));
}
