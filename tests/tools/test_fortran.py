"""What fortran/*.py and bindings/for_fortran.py read from the C headers and the schema, and write."""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "fortran"))

import c_header  # noqa: E402
import for_fortran  # noqa: E402 - c_header knows where
import fortran_text  # noqa: E402
import interfaces  # noqa: E402
from c_header import Parameter  # noqa: E402


class Headers(unittest.TestCase):
    def test_every_function_is_read(self):
        functions, handles = c_header.read()
        text = "".join(c_header.for_c.headers().values())
        declared = re.findall(r"^(?:tasuki_status|const char\*|void) tasuki_(\w+)\(", text, re.M)
        self.assertEqual(sorted(declared), sorted(functions))
        self.assertIn("tasuki_layout", handles)

    def test_parameters_are_what_c_says(self):
        self.assertEqual(c_header.parameters("void"), ())
        found = c_header.parameters("void* const* memory,\n    const tasuki_box boxes[TASUKI_MAX_BOUNDARY]")
        expected = (Parameter("void* const*", "memory"), Parameter("const tasuki_box", "boxes", True))
        self.assertEqual(found, expected)

    def test_functions_that_take_functions_or_communicators_have_no_interface(self):
        functions, handles = c_header.read()
        without = {name for name, function in functions.items() if not interfaces.interface(function, handles)}
        self.assertEqual(without, {"context_create", "comm", "run_threads", "overlap", "graph_create"})


class Modules(unittest.TestCase):
    def test_lines_are_no_longer_than_they_may_be(self):
        for module in (interfaces.module(), *for_fortran.modules().values()):
            for line in module.splitlines():
                self.assertLessEqual(len(line), fortran_text.COLUMNS)

    def test_every_maker_of_operations_is_written(self):
        functions, _ = c_header.read()
        nouns = "broadcast|barrier|(neighbour_)?all.*|.*reduce.*|gather|scatter|.*scan|transfer"
        makers = {name for name in functions if re.fullmatch(rf"({nouns})_create(_layouts?)?", name)}
        self.assertEqual(len(makers), 26)
        self.assertEqual({name for name in makers if f"call finish(c_{name}(" not in for_fortran.making()}, set())


if __name__ == "__main__":
    unittest.main()
