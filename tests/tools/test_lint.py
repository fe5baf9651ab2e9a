"""What tools/lint.py takes for a change that clang-tidy must see again."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import lint  # noqa: E402

SOURCE = """#include <cmath>
#include "part.hpp"
#define TWICE(x) ((x) * 2)
int big = 1'000'000;  // a number
const char* url = "http://host/*";
/* not
   code */
int answer() { return part(/*count=*/TWICE(21)); }  // NOLINT(some-check)
"""


class Seen(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name).resolve()
        for name, value in (("ROOT", self.root), ("RECORD", self.root / "record.txt")):
            previous = getattr(lint, name)
            setattr(lint, name, value)
            self.addCleanup(setattr, lint, name, previous)

    def seen(self, source=SOURCE, header="#pragma once\nint part(int count);\n", flags="-std=c++20 -O2 -DUNUSED=1"):
        (self.root / "part.hpp").write_text(header)
        (self.root / "source.cpp").write_text(source)
        command = f"c++ {flags} -I{self.root} -o source.o -c {self.root}/source.cpp"
        entry = {"directory": str(self.root), "file": str(self.root / "source.cpp"), "command": command}
        return lint.seen_by_clang_tidy(entry)

    def test_comments_and_empty_lines_change_nothing(self):
        without = SOURCE.replace("  // a number", "").replace("/* not\n   code */\n", "\n\n")
        self.assertNotEqual(without, SOURCE)
        self.assertEqual(self.seen(), self.seen(without))
        self.assertEqual(self.seen(), self.seen(header="// Parts.\n#pragma once\n\nint part(int count);\n"))
        self.assertEqual(self.seen(), self.seen(flags="-std=c++20 -O3 -DUNUSED=2"))

    def test_all_that_a_check_can_see_counts(self):
        for old, new in (
            ("1'000'000", "1'000'001"),
            ("host/*", "host//"),
            ("NOLINT(some-check)", "NOLINT(other-check)"),
            ("  // NOLINT(some-check)", ""),
            ("/*count=*/", "/*number=*/"),
            ("(x) * 2", "x * 2"),
            ("<cmath>", "<cstdlib>"),
        ):
            self.assertNotEqual(self.seen(), self.seen(SOURCE.replace(old, new)), f"{old} -> {new}")
        self.assertNotEqual(self.seen(), self.seen(header="#pragma once\nint part(long count);\n"))
        self.assertNotEqual(self.seen(), self.seen(flags="-std=c++20 -O2 -Wshadow"))
        self.assertNotEqual(self.seen(), self.seen(flags="-std=c++20 -O2 -DTWICE_AS=1 -DTWICE=1 -Wno-builtin-macro"))

    def test_others_headers_count_by_their_names(self):
        text = self.seen()
        self.assertIn("#include cmath", text)
        self.assertNotIn("namespace std", text)
        self.assertNotIn(str(self.root), text)

    def test_a_source_that_is_not_whole_is_no_pass(self):
        with self.assertRaises(SystemExit):
            self.seen('#include "missing.hpp"\n')

    def test_a_record_that_is_written_is_read_again(self):
        self.assertEqual(lint.read_record(), {})
        lint.write_record({"src/b.cpp": "12", "src/a.cpp": "34"})
        self.assertEqual(lint.read_record(), {"src/b.cpp": "12", "src/a.cpp": "34"})


if __name__ == "__main__":
    unittest.main()
