/* Kernels of a program in C: a file in C++ takes its handles. */
#include "check.h"

enum { ROWS = 5, COLUMNS = 4, TEXT = 200 };

int pass_on_by_kernel(tasuki_context ranks, tasuki_operation operation, tasuki_layout layout, const double* from,
                      double* to, char* why, size_t room); /* kernel.cpp */

static void check_said(tasuki_context ranks, tasuki_operation operation, tasuki_layout layout, const char* part) {
  char why[TEXT] = "";
  CHECK(pass_on_by_kernel(ranks, operation, layout, NULL, NULL, why, sizeof why) == 1);
  CHECK(strstr(why, part) != NULL);
}

void test_kernel(tasuki_context ranks) {
  double matrix[ROWS][COLUMNS];
  double column[ROWS] = {0};
  double mine = 0;
  double sum = 0;
  char why[TEXT] = "";
  int rank = 0;
  int size = 0;
  tasuki_operation total = NULL;
  tasuki_layout number = NULL;
  tasuki_layout strided = NULL;
  CHECK_OK(tasuki_rank(ranks, &rank));
  CHECK_OK(tasuki_size(ranks, &size));
  for (int i = 0; i < ROWS; ++i)
    for (int j = 0; j < COLUMNS; ++j) matrix[i][j] = 100 * rank + 10 * i + j;
  mine = rank + 1;
  CHECK_OK(tasuki_allreduce_create(ranks, &mine, &sum, 1, TASUKI_F64, TASUKI_SUM, NULL, &total));
  CHECK_OK(tasuki_layout_bytes(sizeof(double), &number));
  CHECK_OK(tasuki_layout_vector(ROWS, 1, COLUMNS, number, &strided));
  CHECK(pass_on_by_kernel(ranks, total, strided, &matrix[0][2], column, why, sizeof why) == 0);
  CHECK(why[0] == '\0');
  CHECK(sum == size * (size + 1) / 2.0);
  for (int i = 0; i < ROWS; ++i) CHECK(column[i] == 100 * ((rank + size - 1) % size) + 10 * i + 2);
  check_said(NULL, total, strided, "argument 'context' is null");
  check_said(ranks, NULL, strided, "argument 'operation' is null");
  CHECK_OK(tasuki_operation_free(&total));
  CHECK_OK(tasuki_layout_free(&strided));
  CHECK_OK(tasuki_layout_free(&number));
}
