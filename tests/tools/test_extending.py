"""The example operation of docs/extending.md: its entry of the schema is all that Python, the command line and the
references need."""

import ast
import importlib.util
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from types import ModuleType, SimpleNamespace

ROOT = Path(__file__).resolve().parents[2]

REFERENCE = """
import json, sys
sys.path[:0] = ["bindings", "fortran"]
import for_c, for_fortran, for_python
print(json.dumps([for_c.headers(), for_fortran.making(), for_python.files()]))
"""


class Extending(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, ROOT / "tests" / "docs" / "extend.py", folder], check=True)
            told = subprocess.run([sys.executable, "-c", REFERENCE], cwd=folder, check=True, capture_output=True)
            cls.headers, cls.fortran, cls.python = json.loads(told.stdout)
            cls.written = {
                str(file.relative_to(folder)): file.read_text() for file in Path(folder, "written").rglob("*.*")
            }

    def test_c_has_a_header_of_its_own_which_the_one_for_all_includes(self):
        header = self.headers["shift.h"]
        self.assertIn(
            "tasuki_status tasuki_shift_create(tasuki_context context, int by, const void* in, void* out, "
            "int64_t count, int type,",
            header,
        )
        self.assertIn("const tasuki_transfer_options* options, tasuki_operation* shift);", header)
        self.assertIn("How many ranks further; may be negative", header)
        self.assertIn("(r + `by`) modulo", header)
        self.assertIn('#include "tasuki/c/transfer.h"\n', header)
        self.assertIn('#include "tasuki/c/shift.h"\n', self.headers["operations.h"])
        self.assertIn('#include "tasuki/shift.hpp"\n', self.written["written/c/operations.cpp"])
        self.assertNotIn("tasuki_shift_create_layouts", header)

    def test_fortran_has_it_with_its_words(self):
        self.assertIn("  public :: tasuki_shift_create\n", self.fortran)
        self.assertIn("integer, intent(in) :: by\n", self.fortran)
        self.assertIn("! tasuki_shift_create: A block to the rank", self.fortran)
        self.assertIn("c_shift_create(context, by, in, out, count,", self.written["written/fortran/tasuki_c.f90"])

    def test_python_has_a_class_and_a_function_that_plans(self):
        made = self.python["made.cpp"]
        signature = "def __init__(self, context: Context, by: SupportsIndex, source: Any, target: Any, *, path: str"
        self.assertIn(signature, made)
        self.assertIn("Shift(ranks, by, a.in(), a.out(), a.count, a.type, options)", made)
        self.assertIn("refuse_layouts(shape, a);", made)
        calls = []
        package = ModuleType("example")
        package.__path__ = []
        package._core = SimpleNamespace(_plan_named=lambda *given: calls.append(given))
        offline = ModuleType("example.offline")
        offline.names_checked = lambda function: function
        text = self.python["_operations.py"]
        classes = next(node for node in ast.parse(text).body if getattr(node, "module", "") == "_core")
        core = ModuleType("example._core")
        vars(core).update({one.name: object for one in classes.names})
        modules = {"example": package, "example._core": core, "example.offline": offline}
        sys.modules.update(modules)
        try:
            spec = importlib.util.spec_from_loader("example._operations", loader=None)
            module = importlib.util.module_from_spec(spec)
            exec(compile(text, "_operations.py", "exec"), vars(module))
        finally:
            for name in modules:
                del sys.modules[name]
        self.assertIn("Shift", module.__all__)
        self.assertIn("plan_shift", module.__all__)
        module.plan_shift("a machine", -1, 8, dtype="float32", memory="device")
        integers = {"by": -1, "count": 8}
        self.assertEqual(calls, [("a machine", "shift", integers, {"type": "float32"}, "device", False, "auto")])
        self.assertIn("by: How many ranks further; may be negative", module.plan_shift.__doc__)
        known = module.BY_NAME["shift"]
        self.assertEqual((known.cls, known.options), ("Shift", ("count", "dtype", "memory", "shared")))
        self.assertEqual(list(known.integers), ["by"])


if __name__ == "__main__":
    unittest.main()
