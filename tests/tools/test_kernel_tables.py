"""The tables of kernels that communicate, from lines as tasuki-bench-kernel prints them."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import kernel_tables  # noqa: E402

PRINTED = """the first part, commit abc
halo: one face                   16384 B     1 x 256       4.31 us (4.30-4.31)
halo: one face                   16384 B     1 x 512       1.11 us (1.11-1.11)
halo: one face                   16384 B    16 x 256       3.70 us (3.69-3.71)
halo: one face                   16384 B    64 x 256       3.71 us (3.70-3.72)
halo: one face                   16384 B        host       3.56 us (3.55-3.57)

an older one
put_word                                  8 B    1 blocks       0.89 us (0.89-0.89)
"""


class KernelTables(unittest.TestCase):
    def filled(self, marker: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "kernels-x.txt").write_text(PRINTED)
            text = f"before\n<!-- {marker} -->\nold\n<!-- /kernels -->\nafter\n"
            once = kernel_tables.refreshed(text, Path(folder))
            self.assertEqual(once, kernel_tables.refreshed(once, Path(folder)))
            self.assertNotIn("old\n", once)
            return once

    def test_a_row_has_all_its_figures(self):
        text = self.filled("kernels:x/1/halos")
        self.assertIn("| 1; 16; 64; host | 4.31; 3.70; 3.71; 3.56 |", text)  # by blocks of 256 threads
        self.assertIn("the first part, commit abc.", text)
        self.assertNotIn("64³", text)  # nothing was measured of it

    def test_parts_are_apart_and_older_lines_are_read(self):
        text = self.filled("kernels:x/2/primitives")
        self.assertIn("| 8 B in a word, with arrival | 1 | 0.89 |", text)
        self.assertNotIn("barrier", text)

    def test_a_part_is_made_of_what_was_printed(self):
        printed = "a warning\n" + PRINTED.split("\n", 1)[1].split("\n\n")[0] + "\nNCCL: left out: there is none\n"
        made = kernel_tables.results("bench --launches 5", {"gpu": "G", "gpus": 2, "nccl": ""}, printed)
        ((title, medians),) = kernel_tables.parts_of(made)
        self.assertTrue(title.startswith("bench --launches 5: gpu G, gpus 2; NCCL: left out: there is none; one way"))
        self.assertEqual(medians["halo: one face", 16384, 16], "3.70")
        self.assertEqual(medians["halo: one face", 16384, "1 x 512"], "1.11")  # not of 256 threads a block
        self.assertEqual(len(medians), 5)

    def test_a_file_that_is_missing_leaves_the_table_empty(self):
        with tempfile.TemporaryDirectory() as folder:
            text = "<!-- kernels:none/1/halos -->\nold\n<!-- /kernels -->\n"
            self.assertEqual(
                kernel_tables.refreshed(text, Path(folder)), "<!-- kernels:none/1/halos -->\n<!-- /kernels -->\n"
            )
