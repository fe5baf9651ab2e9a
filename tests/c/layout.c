/* Layouts: every constructor, what is known of them, packing. */
#include "check.h"

static const int64_t ones[] = {1, 1, 1}, zeros[] = {0, 0, 0}, fives[] = {0, 5, 10}, forties[] = {0, 40, 80};
static const int64_t sizes[] = {3, 5}, subsizes[] = {3, 1}, starts[] = {0, 0}, outside[] = {1, 0};

static void check_info(tasuki_layout layout, int64_t bytes, int64_t extent, int64_t runs, int pattern) {
  tasuki_layout_info info = {.size = sizeof info};
  CHECK_OK(tasuki_layout_get_info(layout, &info));
  CHECK(info.bytes == bytes && info.extent == extent && info.runs == runs && info.pattern == pattern);
  CHECK(!info.overlaps);
}

static void check_packing(tasuki_layout column) {
  for (int turn = 0; turn < 3; ++turn) {
    int64_t array[15], packed[3], back[15] = {0};
    for (int i = 0; i < 15; ++i) array[i] = 100 * turn + i;
    CHECK_OK(tasuki_layout_pack(column, array, packed));
    CHECK(packed[0] == 100 * turn && packed[1] == 100 * turn + 5 && packed[2] == 100 * turn + 10);
    CHECK_OK(tasuki_layout_unpack(column, packed, back));
    for (int i = 0; i < 15; ++i) CHECK(back[i] == (i % 5 == 0 ? array[i] : 0));
  }
  int64_t number = 0;
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'base' is null", tasuki_layout_pack(column, NULL, &number));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'packed' is null", tasuki_layout_unpack(column, NULL, &number));
}

static void check_refusals(tasuki_layout element) {
  tasuki_layout none = NULL;
  const tasuki_layout broken[] = {element, NULL, element};
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "-1", tasuki_layout_bytes(-1, &none));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'count' is -2", tasuki_layout_indexed(-2, ones, fives, element, &none));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'displacements' is null", tasuki_layout_indexed(3, ones, NULL, element, &none));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'elements' is null", tasuki_layout_structure(3, ones, fives, NULL, &none));
  CHECK_FAILS(TASUKI_BAD_HANDLE, "'elements' is null", tasuki_layout_structure(3, ones, fives, broken, &none));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "'ndims' is 0", tasuki_layout_subarray(0, sizes, subsizes, starts, element, &none));
  CHECK_FAILS(TASUKI_BAD_ARGUMENT, "", tasuki_layout_subarray(2, sizes, subsizes, outside, element, &none));
  CHECK(none == NULL);
}

void test_layout(tasuki_context ranks) {
  enum { ELEMENT, CONTIGUOUS, VECTOR, HVECTOR, SUBARRAY, INDEXED, HINDEXED, STRUCTURE, RESIZED, EMPTY, TWICE, COUNT };
  tasuki_layout all[COUNT];
  (void)ranks;
  CHECK_OK(tasuki_layout_bytes(8, &all[ELEMENT]));
  const tasuki_layout element = all[ELEMENT];
  const tasuki_layout elements[] = {element, element, element};
  CHECK_OK(tasuki_layout_contiguous(3, element, &all[CONTIGUOUS]));
  CHECK_OK(tasuki_layout_vector(3, 1, 5, element, &all[VECTOR]));
  CHECK_OK(tasuki_layout_hvector(3, 1, 40, element, &all[HVECTOR]));
  CHECK_OK(tasuki_layout_subarray(2, sizes, subsizes, starts, element, &all[SUBARRAY]));
  CHECK_OK(tasuki_layout_indexed(3, ones, fives, element, &all[INDEXED]));
  CHECK_OK(tasuki_layout_hindexed(3, ones, forties, element, &all[HINDEXED]));
  CHECK_OK(tasuki_layout_structure(3, ones, forties, elements, &all[STRUCTURE]));
  CHECK_OK(tasuki_layout_resized(all[VECTOR], -8, 120, &all[RESIZED]));
  CHECK_OK(tasuki_layout_bytes(0, &all[EMPTY]));
  CHECK_OK(tasuki_layout_indexed(3, ones, zeros, element, &all[TWICE]));
  check_info(element, 8, 8, 1, TASUKI_CONTIGUOUS);
  check_info(all[CONTIGUOUS], 24, 24, 1, TASUKI_CONTIGUOUS);
  for (int made = VECTOR; made <= RESIZED; ++made) {
    int equal = 0;
    check_info(all[made], 24, made == SUBARRAY || made == RESIZED ? 120 : 88, 3, TASUKI_STRIDE);
    CHECK_OK(tasuki_layout_equal(all[VECTOR], all[made], &equal));
    CHECK(equal);
    CHECK_OK(tasuki_layout_equal(all[CONTIGUOUS], all[made], &equal));
    CHECK(!equal);
  }
  check_info(all[EMPTY], 0, 0, 0, TASUKI_EMPTY);
  tasuki_layout_info info = {.size = sizeof info};
  CHECK_OK(tasuki_layout_get_info(all[RESIZED], &info));
  CHECK(info.lower_bound == -8 && info.true_lower_bound == 0 && info.true_upper_bound == 88);
  CHECK_OK(tasuki_layout_get_info(all[TWICE], &info));
  CHECK(info.overlaps);
  check_packing(all[VECTOR]);
  CHECK_OK(tasuki_layout_pack(all[EMPTY], NULL, NULL));
  CHECK_OK(tasuki_layout_unpack(all[EMPTY], NULL, NULL));
  char* text = NULL;
  CHECK_OK(tasuki_layout_describe(all[VECTOR], &text));
  CHECK(strstr(text, "3 x 8 B") != NULL);
  tasuki_text_free(text);
  check_refusals(element);
  for (int made = 0; made < COUNT; ++made) {
    CHECK_OK(tasuki_layout_free(&all[made]));
    CHECK(all[made] == NULL);
  }
}
