/* What the tests of the C interface share. A check that fails is printed and remembered; the program goes on so that no
 * rank waits in vain, and fails at the end. */
#ifndef TESTS_C_CHECK_H
#define TESTS_C_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tasuki/tasuki.h"

void failed(const char* file, int line, const char* what);

#define CHECK(condition) ((condition) ? (void)0 : failed(__FILE__, __LINE__, #condition))
/* What follows would work on nothing: such a failure ends the program. */
#define CHECK_OK(call) succeeds(__FILE__, __LINE__, #call, (call))
void succeeds(const char* file, int line, const char* what, int status);
/* The call must return `status`, with an error text that contains `part`. */
#define CHECK_FAILS(status, part, call) fails(__FILE__, __LINE__, #call, (status), (part), (call))
void fails(const char* file, int line, const char* what, int expected, const char* part, int status);

/* The plan's texts and the verifier's report, for every operation that a test makes. Collective. */
void check_operation(tasuki_operation operation);

/* One a file; each runs on processes and on threads as ranks. */
void test_context(tasuki_context ranks);
void test_subset(tasuki_context ranks);
void test_grid(tasuki_context ranks);
void test_field(tasuki_context ranks);
void test_layout(tasuki_context ranks);
void test_halo(tasuki_context ranks);
void test_kernel(tasuki_context ranks);
void test_transfer(tasuki_context ranks);
void test_exchange(tasuki_context ranks);
void test_redistribute(tasuki_context ranks);
void test_collectives(tasuki_context ranks);
void test_collective_layouts(tasuki_context ranks);
void test_misuse(tasuki_context ranks);
void test_gpu(tasuki_context ranks);

#endif
