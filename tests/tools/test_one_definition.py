"""Classes of one name in two files of the library (tools/one_definition.py)."""

import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import one_definition  # noqa: E402

HEADER = """namespace tasuki {
struct Ways final : Base<int> { struct Inner {}; std::vector<int> all; };
enum class Kind : int { one, two };
class Declared;
template <class T> T f(T t) { struct Local {}; return t; }
}  // namespace tasuki
"""


class OneDefinition(unittest.TestCase):
    def found(self, *texts):
        with tempfile.TemporaryDirectory() as folder:
            for number, text in enumerate(texts):
                (Path(folder) / "src" / str(number)).mkdir(parents=True)
                (Path(folder) / "src" / str(number) / "file.hpp").write_text(text)
            return list(one_definition.defined_twice(Path(folder)))

    def test_a_class_in_two_files_is_found_with_what_is_in_it(self):
        names = [line.split()[0] for line in self.found(HEADER, HEADER)]
        self.assertEqual(names, ["tasuki::Kind", "tasuki::Ways", "tasuki::Ways::Inner"])
        (line,) = self.found(HEADER, "namespace tasuki::detail {} namespace tasuki { class Ways\n: public X {}; }")
        self.assertIn("tasuki::Ways is defined in src/0/file.hpp and in src/1/file.hpp", line)

    def test_what_is_a_files_own_is_not(self):
        for other in (
            "namespace tasuki { namespace { struct Ways {}; } }",
            "namespace tasuki::other { struct Ways {}; }",
            "namespace tasuki { class Ways; void f() { struct Kind {}; } }",
            "// namespace tasuki { struct Ways {}; }",
        ):
            self.assertEqual(self.found(HEADER, other), [], other)

    def test_the_library_has_none(self):
        self.assertEqual(list(one_definition.defined_twice(ROOT)), [])


if __name__ == "__main__":
    unittest.main()
