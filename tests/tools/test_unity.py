"""Which sources may be compiled as one file (tools/unity.py)."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import unity  # noqa: E402

SHARED = """#include "list.hpp"
namespace tasuki {
namespace {
enum Colour { red, green };
struct Room { int size; };
template <class T>
T larger(T a, T b) { int inner = 0; return a > b ? a : b + inner; }
constexpr int kMost = 3, kFew{2};
const Registration registration{"one", [] { return 1; }};
}  // namespace
static int counter(int x) { return x; }
int public_one() { return larger(1, 2); }
}  // namespace tasuki
"""


class Groups(unittest.TestCase):
    def grouped(self, *sources, most=8):
        texts = {f"{number}.cpp": text for number, text in enumerate(sources)}
        return [len(group) for group in unity.grouped(list(texts), texts, most)]

    def test_names_of_ones_own_are_found(self):
        names = unity.own_names(SHARED)
        self.assertLessEqual({"red", "Room", "larger", "kMost", "kFew", "registration", "counter"}, names)
        self.assertFalse({"public_one", "inner", "size"} & names)

    def test_a_name_that_another_source_has_keeps_it_apart(self):
        for other in ("int f() { return larger(3, 4); }", "namespace { struct Room {}; }", "int g(int counter);"):
            self.assertEqual(self.grouped(SHARED, other), [1, 1], other)

    def test_members_comments_texts_and_includes_are_no_names(self):
        for other in ("int f(V v) { return v.larger; }", "// larger", 'auto s = "larger";', '#include "larger.hpp"\n'):
            self.assertEqual(self.grouped(SHARED, other), [2], other)

    def test_a_name_of_a_header_that_only_the_other_includes_keeps_it_apart(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "block.hpp").write_text("namespace tasuki {\nstruct Block {\n  int size;\n};\n}\n")
            (folder / "includes.cpp").write_text('#include "block.hpp"\nint f();\n')
            (folder / "has.cpp").write_text("namespace { struct Block {}; }\n")
            (folder / "has_both.cpp").write_text('#include "block.hpp"\nnamespace { struct Room {}; }\n')
            paths = [str(folder / file) for file in ("includes.cpp", "has.cpp", "has_both.cpp")]
            groups = unity.grouped(paths, {path: Path(path).read_text() for path in paths}, 8)
            self.assertEqual([len(group) for group in groups], [2, 1])

    def test_a_source_that_uses_a_namespace_is_by_itself(self):
        self.assertEqual(self.grouped("int f();", "using namespace model;\n", "int g();"), [2, 1])

    def test_groups_are_of_bounded_size(self):
        self.assertEqual(self.grouped(*["int f();\n"] * 5, most=2), [2, 2, 1])
        self.assertEqual(self.grouped(*["int f();\n" * 2000] * 2), [1, 1])


if __name__ == "__main__":
    unittest.main()
