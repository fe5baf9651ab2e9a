"""The schema of operations: what contradicts itself is refused with its line; every language has every operation."""

import ast
import inspect
import re
import subprocess
import sys
import textwrap
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bindings"))

import for_c  # noqa: E402
import for_fortran  # noqa: E402
import for_python  # noqa: E402
import texts  # noqa: E402
from kinds import KINDS, Fortran, Kind, Python  # noqa: E402
from operations import OPERATIONS, TRANSFER, count, counts, dtype, operator, source, target  # noqa: E402
from schema import Argument, Contradiction, Operation, Option, Options, unique  # noqa: E402

DEPTH = Kind(
    "how far",
    "double {name}",
    kept="Depth read_{name};",
    read="read_{name} = depth_from({name});",
    python=Python("double", "float", "1.0", "1.0"),
    fortran=Fortran("real(c_double), intent(in) :: {name}", statements=("call look_at({name})",)),
)


def entry(*arguments, **more):
    return Operation("shift", "Moves.", *arguments, options=TRANSFER, **more)


def here():
    return inspect.currentframe().f_back.f_lineno


class Kinds(unittest.TestCase):
    def test_a_new_kind_is_one_entry(self):
        with mock.patch.dict(KINDS, depth=DEPTH):
            deep = entry(Argument("depth", "depth", "x"), source("x"), count("x"))
            form = deep.forms()[0]
            self.assertIn("double depth,", for_c.signature(deep, form))
            self.assertIn("      read_depth = depth_from(depth);\n", for_c.body(deep, form))
            self.assertIn("Shift(ranks, read_depth, input(in), count, chosen)", for_c.body(deep, form))
            self.assertIn("depth: float = 1.0", for_python.signature(for_python.parameters(deep)))
            written = for_fortran.procedure(deep, form, "making")
            self.assertIn("real(c_double), intent(in) :: depth\n", written)
            self.assertIn("call look_at(depth)\n", written)


class Contradictions(unittest.TestCase):
    def refused(self, line, words, make):
        with self.assertRaises(Contradiction) as caught:
            make()
        self.assertEqual(str(caught.exception).partition(": ")[0], f"bindings/test_schema.py:{line}")
        self.assertIn(words, str(caught.exception))

    def test_an_argument_that_cannot_be_meant_is_refused_with_its_line(self):
        for words, bad in (
            ("is of kind 'bufer'; there are", Argument("in", "bufer", "x")),
            ("has direction 'up'", Argument("in", "buffer", "x", direction="up")),
            ("has blocks 'two'", Argument("in", "buffer", "x", blocks="two")),
            ("is for the root, but operation 'shift' has none", source("x", at_root=True)),
            ("may be in place on the root, but", source("x", in_place="root")),
            ("may be in place on 'some'", source("x", in_place="some")),
            ("has a name in 'cobol'", Argument("in", "buffer", "x", {"cobol": "IN"})),
            ("has no sentence", Argument("in", "buffer")),
        ):
            with self.subTest(words):
                self.refused(bad.place.line, words, lambda bad=bad: entry(bad, count("x")))

    def test_an_operation_that_cannot_be_meant_is_refused_with_its_line(self):
        one = source("x")
        self.refused(one.place.line, "has the buffer 'in', but no count", lambda: entry(one))
        again = source("x")
        self.refused(again.place.line, "two arguments 'in'", lambda: entry(one, again, count("x")))
        lists = counts("counts", "x", "in")
        self.refused(lists.place.line, "has no count beside it", lambda: entry(lists))
        by = operator()
        self.refused(by.place.line, "combines elements that have no type", lambda: entry(one, count("x"), by))
        both = source("x", in_place="all"), target("x", in_place="all"), count("x"), dtype()
        line = entry.__code__.co_firstlineno + 1
        self.refused(line, "has two buffers that may be in place", lambda: entry(*both))
        twice = entry(one, count("x"))
        self.refused(line, "is there already", lambda: unique(twice, twice))

    def test_options_that_cannot_be_meant_are_refused_with_their_line(self):
        path = Option("path", "text", "x")
        line = here() + 1
        self.refused(line, "have 'path' twice", lambda: Options("own", "Own", (path, path)))
        line = here() + 1
        self.refused(line, "have no member 'trees'", lambda: Options("own", "Own", (path,), later="trees"))
        blocks = Option("blocks", "int", "x")
        own = Options("own", "Own", (path, blocks), python=("path",))
        self.refused(own.place.line, "leave out blocks in python", lambda: own.of_language("python"))

    def test_a_sentence_that_names_nothing_is_refused(self):
        bad = entry(source("As long as `{size}`."), count("x"))
        self.refused(bad.place.line, "says {size}", lambda: texts.said(bad, "c", bad.arguments[0].says))

    def test_the_build_ends_with_file_and_line(self):
        code = "import sys, schema; sys.argv = ['write.py', 'c', 'none']; import write\n"
        code += "def wrong(*_): schema.Place('bindings/operations.py', 7).refuse('no')\n"
        code += "write.files = wrong; sys.exit(write.main())"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT / "bindings", capture_output=True, text=True, check=False
        )
        self.assertEqual((done.returncode, done.stderr), (1, "bindings/operations.py:7: no\n"))


class Languages(unittest.TestCase):
    def test_every_operation_is_written_in_every_language(self):
        header = "".join(for_c.headers().values())
        for one in OPERATIONS:
            for form in one.forms():
                self.assertIn(f"tasuki_status {for_c.function(one, form)}(", header)
                self.assertIn(f"tasuki_status {for_c.function(one, form)}(", for_c.implementation())
            self.assertIn(f'm, "{one.cls}", ', for_python.source())

    def test_signatures_of_python_are_pythons(self):
        for one in OPERATIONS:
            function = ast.parse(for_python.signature(for_python.parameters(one)) + ": ...").body[0]
            names = [argument.arg for argument in function.args.args + function.args.kwonlyargs]
            self.assertEqual(len(names), len(set(names)))
            self.assertNotIn("in", names)

    def test_lines_of_headers_and_docstrings_are_no_longer_than_they_may_be(self):
        for text in (*for_c.headers().values(), *(for_python.documented(one) for one in OPERATIONS)):
            for line in text.splitlines():
                self.assertLessEqual(len(line), texts.COLUMNS)

    def test_the_entry_in_the_documentation_is_the_schemas(self):
        page = (ROOT / "docs" / "extending.md").read_text()
        shown = re.search(r"```python\n(Operation\(.*?)\n```", page, re.S)[1]
        source = (ROOT / "bindings" / "operations.py").read_text()
        self.assertIn(textwrap.indent(shown, " " * 4), source)

    def test_a_new_entry_is_an_operation_of_every_language(self):
        old = next(one for one in OPERATIONS if one.name == "reduce")
        new = Operation("collect", "Collects.", *old.arguments, options=old.options)
        made = for_c.body(new, new.forms()[0])
        self.assertIn("tasuki_status tasuki_collect_create(tasuki_context context, int root, const void* in,", made)
        self.assertIn("Collect(ranks, root, input(in), output(out), count, read_type, read_op, chosen)", made)
        self.assertIn(
            "Collect(ranks, root, a.in(), a.out(), a.count, a.type, a.op, options)", for_python.bound(99, new)
        )


if __name__ == "__main__":
    unittest.main()
