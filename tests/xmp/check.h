/* What the tests of xmp.h share. A check that fails is printed and remembered, so that no rank waits in vain. */
#ifndef TESTS_XMP_CHECK_H
#define TESTS_XMP_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xacc.h"
#include "xmp.h"

void failed(const char* file, int line, const char* what);
#define CHECK(condition) ((condition) ? (void)0 : failed(__FILE__, __LINE__, #condition))
/* What follows would work on nothing: such a failure ends the program. */
#define OK(call) succeeds(__FILE__, __LINE__, #call, (call))
void succeeds(const char* file, int line, const char* what, int status);
/* The call must return the status, with a sentence that has `part`. */
#define FAILS(status, part, call) fails(__FILE__, __LINE__, #call, (status), (part), (call))
void fails(const char* file, int line, const char* what, int expected, const char* part, int status);

/* Tasuki's verifier on every plan that there is. Collective over all ranks. */
#define VERIFY() verifies(__FILE__, __LINE__)
void verifies(const char* file, int line);

/* The same numbers on every rank. */
typedef struct {
  uint64_t state;
} chance;
int draw(chance* from, int least, int most);

/* A random array over random nodes, the same on every rank: over a template that may be larger, with offsets, collapsed
 * and replicated dimensions, in any order. */
typedef struct {
  xmp_desc_t nodes, t, array;
  int ndims;
  int64_t extents[3];
  xmp_width shadow[3];
  int any_cyclic;
} sample;
sample make_sample(chance* from, int ndims, const int64_t* extents, int cyclic, int shadows);
void free_sample(sample* s);
/* A value for every element of an array, and every `round`. */
int64_t value_of(const int64_t* index, int ndims, int round);
/* All of the memory becomes -1, and what the node owns `value_of`. */
void fill(const sample* s, int round);
/* Calls `visit` for every element that this node owns, with its place in memory. */
void each_owned(xmp_desc_t array, void (*visit)(const int64_t* index, int64_t* element, void* arg), void* arg);

/* How many random cases: fewer where there are many ranks, which take turns on the processor. */
int cases(int most);

int ranks(void);
int me(void);

/* A file each. */
void test_shadows(int acc);
void test_splits(void);
void test_full_shadows(void);
void test_reduce_shadow(int acc);
void test_moves(int acc);
void test_intrinsics(int acc);
void test_collectives(int acc);
void test_tasks(void);
void test_inquiries(void);
void test_loops(void);
void test_misuse(void);
void test_refused(void);
void disagree(const char* how); /* "", "signals" or "late" */

#endif
