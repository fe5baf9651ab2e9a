/* Reductions, with and without locations, broadcasts, barriers, post and wait, over all nodes and over some. */
#include "check.h"

static void reductions(int round) {
  const int n = ranks(), mine = me();
  int32_t sum = mine + round, product = mine % 3 + 1, least = (mine * 7 + round) % 5, most = least;
  int32_t bits[3] = {1 << mine % 30, ~(1 << mine % 30), mine & 1}, xored = mine * 5 + round;
  int32_t both[2] = {mine != 1, 1};
  double real[5];
  float _Complex complex_sum = (float)mine;
  for (int i = 0; i < 5; ++i) real[i] = mine * 0.5 + i + round;
  OK(xmp_reduction(XMP_SUM, 2, (xmp_variable[]){{&sum, 1, XMP_I32}, {real, 5, XMP_F64}}, NULL));
  OK(xmp_reduction(XMP_MINUS, 1, &(xmp_variable){&complex_sum, 1, XMP_C64}, NULL));
  OK(xmp_reduction(XMP_PROD, 1, &(xmp_variable){&product, 1, XMP_I32}, NULL));
  OK(xmp_reduction(XMP_MIN, 1, &(xmp_variable){&least, 1, XMP_I32}, NULL));
  OK(xmp_reduction(XMP_MAX, 1, &(xmp_variable){&most, 1, XMP_I32}, NULL));
  OK(xmp_reduction(XMP_BOR, 1, &(xmp_variable){&bits[0], 1, XMP_I32}, NULL));
  OK(xmp_reduction(XMP_BAND, 1, &(xmp_variable){&bits[1], 1, XMP_I32}, NULL));
  OK(xmp_reduction(XMP_BXOR, 1, &(xmp_variable){&xored, 1, XMP_I32}, NULL));
  OK(xmp_reduction(XMP_LAND, 1, &(xmp_variable){both, 2, XMP_I32}, NULL));
  OK(xmp_reduction(XMP_LOR, 1, &(xmp_variable){&bits[2], 1, XMP_I32}, NULL));
  int32_t expected_sum = 0, expected_product = 1, expected_least = 9, expected_most = 0, expected_or = 0,
          expected_xor = 0;
  for (int r = 0; r < n; ++r) {
    const int32_t value = (r * 7 + round) % 5;
    expected_sum += r + round;
    expected_product *= r % 3 + 1;
    if (value < expected_least) expected_least = value;
    if (value > expected_most) expected_most = value;
    expected_or |= 1 << r % 30;
    expected_xor ^= r * 5 + round;
  }
  CHECK(sum == expected_sum && product == expected_product && least == expected_least && most == expected_most);
  CHECK(bits[0] == expected_or && bits[1] == ~expected_or && xored == expected_xor);
  CHECK(both[0] == (n < 2) && both[1] == 1 && bits[2] == (n > 1));
  for (int i = 0; i < 5; ++i) CHECK(real[i] == n * (n - 1) / 2 * 0.5 + n * (i + round));
  float parts[2];
  memcpy(parts, &complex_sum, sizeof parts);
  CHECK(parts[0] == (float)(n * (n - 1) / 2) && parts[1] == 0);
}

static void locations(int round) {
  const int n = ranks();
  for (int op = XMP_FIRSTMAX; op <= XMP_LASTMIN; ++op) {
    /* Two elements; equal values on several nodes. */
    double value[2] = {(me() + round) % 3, -(me() % 2)};
    int32_t where[2] = {me() * 10, me() * 10 + 1};
    int64_t also[2] = {-me(), me() + 100};
    OK(xmp_reduction_loc(op, (xmp_variable){value, 2, XMP_F64}, 2,
                         (xmp_variable[]){{where, 2, XMP_I32}, {also, 2, XMP_I64}}, NULL));
    for (int i = 0; i < 2; ++i) {
      int best = 0;
      for (int r = 1; r < n; ++r) {
        const double a = i ? -(r % 2) : (r + round) % 3, b = i ? -(best % 2) : (best + round) % 3;
        const int better = op == XMP_FIRSTMAX || op == XMP_LASTMAX ? a > b : a < b;
        if (better || (a == b && (op == XMP_LASTMAX || op == XMP_LASTMIN))) best = r;
      }
      CHECK(value[i] == (i ? -(best % 2) : (best + round) % 3));
      CHECK(where[i] == best * 10 + i && also[i] == (i ? best + 100 : -best));
    }
  }
}

static void broadcasts(int round) {
  for (int from = 0; from < ranks(); from += 1 + ranks() / 3) {
    int32_t a = me() == from ? from + round : -1;
    double b[700];
    for (int i = 0; i < 700; ++i) b[i] = me() == from ? i * 0.25 + round : -1;
    OK(xmp_bcast(2, (xmp_variable[]){{&a, 1, XMP_I32}, {b, 700, XMP_F64}}, from, NULL));
    CHECK(a == from + round);
    for (int i = 0; i < 700; ++i) CHECK(b[i] == i * 0.25 + round);
  }
}

/* More under way than there are slots, waited for in another order. */
static void asynchronous(void) {
  int64_t sums[6], sent[6];
  for (int i = 0; i < 6; ++i) {
    sums[i] = me() * (i + 1);
    sent[i] = me() == 0 ? i + 50 : 0;
    OK(xmp_reduction_async(XMP_SUM, 1, &(xmp_variable){&sums[i], 1, XMP_I64}, NULL, i));
    OK(xmp_bcast_async(1, &(xmp_variable){&sent[i], 1, XMP_I64}, 0, NULL, i));
  }
  for (int i = 5; i >= 0; --i) {
    OK(xmp_wait_async(1, &i));
    CHECK(sums[i] == (int64_t)ranks() * (ranks() - 1) / 2 * (i + 1));
    CHECK(sent[i] == i + 50);
  }
  CHECK(xmp_test_async(3) == 1);
  OK(xmp_wait_async(1, (int[]){99})); /* nobody has used it */
}

static void posts(void) {
  const int n = ranks(), next = (me() + 1) % n, before = (me() + n - 1) % n;
  for (int round = 0; round < 3; ++round) {
    OK(xmp_post(NULL, next, 5));
    OK(xmp_post(NULL, next, 6));
    OK(xmp_wait(NULL, before, 6)); /* not in the order of the posts */
    OK(xmp_wait(NULL, XMP_ANY, 5));
  }
  OK(xmp_post(NULL, next, 9));
  OK(xmp_wait(NULL, XMP_ANY, XMP_ANY));
  FAILS(XMP_BAD_ARGUMENT, "'tag' is -3", xmp_post(NULL, next, -3));
  FAILS(XMP_BAD_ARGUMENT, "'number' is 16", xmp_post(NULL, 16, 0));
}

/* Values and locations in memory of the GPU: those of an array of six elements a node, with and without a queue. */
static void locations_on_gpus(void) {
  const int n = ranks();
  xmp_desc_t nodes, t, array;
  void* at = NULL;
  int64_t* mine = NULL;
  OK(xmp_nodes(&nodes, 1, (int64_t[]){0}));
  OK(xmp_template(&t, 1, (xmp_range[]){{0, 6 * n, 1}}));
  OK(xmp_distribute(t, (xmp_distribution[]){{XMP_BLOCK, 0, NULL}}, nodes));
  const xmp_array_spec spec = {.name = "l", .type = XMP_I64, .ndims = 1, .extents = (int64_t[]){6 * n}};
  OK(xmp_array(&array, &spec, t));
  OK(xmp_allocate(array, (void**)&mine));
  OK(xacc_allocate(array, &at));
  int64_t* const device = (int64_t*)at;
  for (int op = XMP_FIRSTMAX; op <= XMP_LASTMIN; ++op)
    for (int queue = XACC_SYNC; queue <= 1; queue += 2) {
      for (int i = 0; i < 2; ++i) {
        mine[i] = i ? -(me() % 2) : (me() + op) % 3;
        mine[2 + i] = me() * 10 + i;
        mine[4 + i] = me() * 100 + i;
      }
      OK(xacc_update_device(array));
      OK(xacc_reduction_loc(op, (xmp_variable){device, 2, XMP_I64}, 2,
                            (xmp_variable[]){{device + 2, 2, XMP_I64}, {device + 4, 2, XMP_I64}}, NULL, queue));
      if (queue != XACC_SYNC) OK(xacc_barrier(NULL));
      OK(xacc_update_self(array));
      for (int i = 0; i < 2; ++i) {
        int best = 0;
        for (int r = 1; r < n; ++r) {
          const int a = i ? -(r % 2) : (r + op) % 3, b = i ? -(best % 2) : (best + op) % 3;
          const int better = op == XMP_FIRSTMAX || op == XMP_LASTMAX ? a > b : a < b;
          if (better || (a == b && (op == XMP_LASTMAX || op == XMP_LASTMIN))) best = r;
        }
        CHECK(mine[i] == (i ? -(best % 2) : (best + op) % 3));
        CHECK(mine[2 + i] == best * 10 + i && mine[4 + i] == best * 100 + i);
      }
    }
  VERIFY();
  OK(xmp_free(&array));
  OK(xmp_free(&t));
  OK(xmp_free(&nodes));
}

static void on_gpus(void) {
  /* Variables on GPUs: those of an array of one element a node. */
  xmp_desc_t nodes, t, array;
  void* at = NULL;
  int64_t* mine = NULL;
  OK(xmp_nodes(&nodes, 1, (int64_t[]){0}));
  OK(xmp_template(&t, 1, (xmp_range[]){{0, ranks(), 1}}));
  OK(xmp_distribute(t, (xmp_distribution[]){{XMP_BLOCK, 0, NULL}}, nodes));
  const xmp_array_spec spec = {.name = "v", .type = XMP_I64, .ndims = 1, .extents = (int64_t[]){ranks()}};
  OK(xmp_array(&array, &spec, t));
  OK(xmp_allocate(array, (void**)&mine));
  OK(xacc_allocate(array, &at));
  for (int round = 0; round < 3; ++round) {
    *mine = me() + round;
    OK(xacc_update_device(array));
    OK(xacc_reduction(XMP_SUM, 1, &(xmp_variable){at, 1, XMP_I64}, NULL, XACC_SYNC));
    OK(xacc_update_self(array));
    CHECK(*mine == (int64_t)ranks() * (ranks() - 1) / 2 + ranks() * round);
    *mine = me() == ranks() - 1 ? round : -1;
    OK(xacc_update_device(array));
    OK(xacc_bcast(1, &(xmp_variable){at, 1, XMP_I64}, ranks() - 1, NULL, XACC_SYNC));
    OK(xacc_update_self(array));
    CHECK(*mine == round);
    OK(xacc_barrier(NULL));
    *mine = me() + round;
    OK(xacc_update_device(array));
    OK(xacc_reduction_async(XMP_MAX, 1, &(xmp_variable){at, 1, XMP_I64}, NULL, 3));
    OK(xmp_wait_async(1, (int[]){3}));
    OK(xacc_update_self(array));
    CHECK(*mine == ranks() - 1 + round);
    *mine = me() == 0 ? round + 7 : -1;
    OK(xacc_update_device(array));
    OK(xacc_bcast_async(1, &(xmp_variable){at, 1, XMP_I64}, 0, NULL, 4));
    OK(xmp_wait_async(1, (int[]){4}));
    OK(xacc_update_self(array));
    CHECK(*mine == round + 7);
    /* One after the other in a queue: what is between is the GPU's. */
    *mine = me() + round;
    OK(xacc_update_device(array));
    OK(xacc_reduction(XMP_SUM, 1, &(xmp_variable){at, 1, XMP_I64}, NULL, 1));
    OK(xacc_reduction(XMP_SUM, 1, &(xmp_variable){at, 1, XMP_I64}, NULL, 1));
    OK(xacc_bcast(1, &(xmp_variable){at, 1, XMP_I64}, 0, NULL, 1));
    OK(xacc_barrier(NULL));
    OK(xacc_update_self(array));
    CHECK(*mine == ((int64_t)ranks() * (ranks() - 1) / 2 + ranks() * round) * ranks());
    FAILS(XMP_BAD_ARGUMENT, "in memory of the host",
          xacc_reduction(XMP_SUM, 1, &(xmp_variable){mine, 1, XMP_I64}, NULL, 1));
    FAILS(XMP_BAD_ARGUMENT, "points to memory of the host", xacc_bind(array, mine));
    FAILS(XMP_BAD_ARGUMENT, "queue 77 has no stream",
          xacc_reduction(XMP_SUM, 1, &(xmp_variable){at, 1, XMP_I64}, NULL, 77));
  }
  VERIFY();
  OK(xmp_free(&array));
  OK(xmp_free(&t));
  OK(xmp_free(&nodes));
}

void test_collectives(int acc) {
  if (acc) {
    on_gpus();
    locations_on_gpus();
    return;
  }
  for (int round = 0; round < 3; ++round) {
    reductions(round);
    locations(round);
    broadcasts(round);
    OK(xmp_barrier(NULL));
  }
  asynchronous();
  posts();
  VERIFY();
}
