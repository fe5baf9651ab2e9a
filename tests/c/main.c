/* Runs the tests of the C interface: on the ranks of MPI, or with `--threads N` on N threads as ranks. */
#include "check.h"

static volatile int failures; /* only ever set, by whichever thread */

void failed(const char* file, int line, const char* what) {
  failures = 1;
  fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
}

void succeeds(const char* file, int line, const char* what, int status) {
  if (status == TASUKI_OK) return;
  failed(file, line, what);
  fprintf(stderr, "  returned %s: %s\n", tasuki_status_name(status), tasuki_last_error());
  exit(EXIT_FAILURE);
}

void fails(const char* file, int line, const char* what, int expected, const char* part, int status) {
  if (status != expected) {
    failed(file, line, what);
    fprintf(stderr, "  returned %s, not %s: %s\n", tasuki_status_name(status), tasuki_status_name(expected),
            tasuki_last_error());
  } else if (strstr(tasuki_last_error(), part) == NULL) {
    failed(file, line, what);
    fprintf(stderr, "  says '%s', which has no '%s'\n", tasuki_last_error(), part);
  }
}

void check_operation(tasuki_operation operation) {
  int ok = 0;
  char* report = NULL;
  char* text = NULL;
  char* json = NULL;
  int64_t bytes = 0;
  CHECK_OK(tasuki_verify(operation, 0, &ok, &report));
  if (!ok) fprintf(stderr, "%s\n", report);
  CHECK(ok);
  CHECK_OK(tasuki_plan_text(operation, &text));
  CHECK(strncmp(text, "plan format", 11) == 0);
  CHECK_OK(tasuki_plan_json(operation, &json));
  CHECK(json[0] == '{');
  CHECK_OK(tasuki_plan_memory(operation, &bytes));
  CHECK(bytes > 0);
  tasuki_text_free(report);
  tasuki_text_free(text);
  tasuki_text_free(json);
}

static int run_all(tasuki_context ranks, void* unused) {
  (void)unused;
  test_context(ranks);
  test_subset(ranks);
  test_grid(ranks);
  test_field(ranks);
  test_layout(ranks);
  test_halo(ranks);
  test_kernel(ranks);
  test_transfer(ranks);
  test_exchange(ranks);
  test_redistribute(ranks);
  test_collectives(ranks);
  test_collective_layouts(ranks);
  test_misuse(ranks);
  test_gpu(ranks);
  return TASUKI_OK;
}

int from_cplusplus(void); /* header.cpp */

static int first_fails(tasuki_context ranks, void* unused) {
  int rank = 0;
  (void)unused;
  CHECK_OK(tasuki_rank(ranks, &rank));
  if (rank == 0) return tasuki_set_deadline(ranks, -1);
  return tasuki_barrier(ranks); /* ends when rank 0 has left */
}

static int frees_its_context(tasuki_context ranks, void* freed) {
  CHECK_OK(tasuki_context_free(&ranks));
  *(int*)freed = ranks == NULL;
  return TASUKI_OK;
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "--threads") == 0) {
    int freed = 0;
    const int ranks = atoi(argv[2]);
    CHECK_OK(tasuki_run_threads(ranks, run_all, NULL));
    CHECK_OK(tasuki_run_threads(1, frees_its_context, &freed));
    CHECK(freed);
    CHECK_FAILS(TASUKI_FAILED, "'seconds' is -1", tasuki_run_threads(ranks, first_fails, NULL));
    CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'ranks' is 0", tasuki_run_threads(0, run_all, NULL));
    CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'body' is null", tasuki_run_threads(1, NULL, NULL));
  } else {
    tasuki_context world = NULL;
    CHECK(tasuki_last_error()[0] == '\0');
    CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'context' is null", tasuki_init(&argc, &argv, NULL));
    CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'argv' is null", tasuki_init(&argc, NULL, &world));
    CHECK_FAILS(TASUKI_BAD_ARGUMENT, "not running", tasuki_context_create_f(0, &world));
    CHECK(from_cplusplus());
    CHECK_OK(tasuki_init(NULL, NULL, &world));
    run_all(world, NULL);
    CHECK_OK(tasuki_context_free(&world));
    CHECK(world == NULL);
  }
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
