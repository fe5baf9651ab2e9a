"""The documentation's links, and what tools/docs.py makes of headers and of the Python package."""

import re
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import doc_links  # noqa: E402
import docs  # noqa: E402
import fortran_reference  # noqa: E402
import python_reference  # noqa: E402

STUB = '''
class Error(RuntimeError):
    """What went wrong."""

class Halo(Operation):
    """An exchange.

    As here:

        halo.start()
    """
    def __init__(self, width: int = 1) -> None:
        """width: of it."""
    @property
    def rank(self) -> int: ...
    @rank.setter
    def rank(self, arg: int, /) -> None: ...
    @staticmethod
    def of(a: int, *, b: str = 'x') -> Halo:
        """One."""
    def _hidden(self) -> None: ...

@overload
def verify(operation: Halo) -> bool:
    """Of one."""

@overload
def verify(plans: list[str]) -> bool:
    """Of many."""
'''


class Gallery(unittest.TestCase):
    def test_a_mark_becomes_the_picture_of_a_program_that_has_run(self):
        asked = []
        text = docs.with_pictures("a\n<!-- picture: waves 4 -->\nb\n", lambda *words: not asked.append(words))
        self.assertEqual(asked, [("waves", 4)])
        self.assertEqual(text, "a\n\n![what waves.py draws](gallery/waves.png)\nb\n")
        self.assertIn("there is no picture", docs.with_pictures("<!-- picture: x 2 -->", lambda *_: False))

    def test_every_program_of_the_gallery_is_on_its_page(self):
        page = (ROOT / "docs" / "gallery.md").read_text()
        for program in (ROOT / "examples" / "gallery").glob("*.py"):
            self.assertIn(f"](../examples/gallery/{program.name})", page)


class Links(unittest.TestCase):
    def test_every_link_of_the_documentation_leads_somewhere(self):
        for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
            self.assertEqual(list(doc_links.broken(page)), [])
        self.assertEqual(list(doc_links.unlisted(ROOT / "docs")), [])

    def test_what_leads_nowhere_is_named(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "b.md").write_text("# One `two`: three\n```\n# no heading\n```\n## Same\n## Same\n")
            page = folder / "a.md"
            page.write_text(
                "# Here\n[1](b.md#one-two-three) [2](b.md#same-1) [3](#here) [4](https://x.y/z#w)\n"
                "```\n[5](none.md)\n```\n[6](c.md) `[7](d.md)`\n[8](b.md#no-heading)\n"
            )
            self.assertEqual(
                [sentence.removeprefix(f"{page}:") for sentence in doc_links.broken(page)],
                ["6: there is no c.md", "7: b.md has no heading #no-heading"],
            )
            (folder / "README.md").write_text("| [a.md](a.md) | x |\n")
            self.assertEqual([text.partition(": ")[2] for text in doc_links.unlisted(folder)], ["lists b.md 0 times"])


class Site(unittest.TestCase):
    def test_the_sites_packages_agree_with_the_others(self):
        pins = re.compile(r"^([\w-]+)==(\S+)$", re.M)
        site = dict(pins.findall((ROOT / "docs" / "requirements.txt").read_text()))
        others = dict(pins.findall((ROOT / "requirements.txt").read_text()))
        shared = site.keys() & others.keys()
        self.assertIn("pygments", shared)
        self.assertEqual({name: site[name] for name in shared}, {name: others[name] for name in shared})

    def test_comments_of_c_become_those_of_the_declarations(self):
        text = "/* A file.\n * More. */\n/* ---- Part ---- */\n/* A call. */\nint f(void);\nint a; /* Of it. */\n"
        self.assertEqual(
            docs.with_doc_comments(text, c=True),
            "/** @file\n * A file.\n * More. */\n/* ---- Part ---- */\n"
            "/** A call. */\nint f(void);\nint a; /**< Of it. */\n",
        )
        made = "/* This file is written from x. */\n#define X\n"
        self.assertEqual(docs.with_doc_comments("/* One. */\n" + made, c=True), "/** @file\n * One. */\n" + made)

    def test_the_lead_of_a_cpp_header_becomes_the_files(self):
        text = "// Halo: one.\n// Two.\n#pragma once\n/// Three.\nint f();\n"
        said = "/** @file\n * Halo: one.\n * Two.\n */\n#pragma once\n/// Three.\nint f();\n"
        self.assertEqual(docs.with_doc_comments(text, c=False), said)

    def test_every_header_that_programs_include_has_a_page(self):
        names = docs.headers_in_order()
        self.assertEqual(len(names), len(set(names)))
        include = ROOT / "include" / "tasuki"
        self.assertEqual({name for name in names if not (include / name).is_file()}, set())
        top = {file.name for file in include.iterdir() if file.suffix in (".hpp", ".cuh")}
        self.assertEqual({name for name in names if "/" not in name}, top - {"tasuki.hpp"})
        for needed in ("kernel/team.cuh", "kernel/messages.cuh", "kernel/plan.cuh"):
            self.assertIn(needed, names)
        for internal in ("kernel/impl/places.cuh", "kernel/impl/quick.cuh", "kernel/impl/interpret.cuh"):
            self.assertNotIn(internal, names)
        of_c = docs.c_headers()
        self.assertEqual(len(of_c), len(set(of_c)))
        written = {f"c/{name}" for name in docs.for_c.headers()}
        self.assertEqual(set(of_c), written | {"tasuki.h", "version.h"})
        self.assertTrue(all(docs.header_text(name).startswith("/* ") for name in of_c))

    def test_every_procedure_of_fortran_is_in_the_reference(self):
        page = fortran_reference.page()
        for module, names in fortran_reference.public_names().items():
            self.assertIn(f"## {module}\n", page)
            for name in names:
                self.assertTrue(f"### {name}\n" in page or f"`{name}`" in page, name)
        wanted = (
            "call tasuki_alltoall_create(alltoall, context, in, out, count, type, send_counts, receive_counts, path,"
        )
        self.assertIn(f"### tasuki_alltoall_create\n```fortran\n{wanted}", page)
        self.assertIn("* `in`: This rank's vector. tasuki_in_place() on all ranks: the vector is in `out`.", page)
        self.assertRegex(page, r"### tasuki_halo_create\n```fortran\ncall tasuki_halo_create\(halo, fields, width,")

    def test_macros_before_declarations_are_nothing_to_a_reader(self):
        macros = docs.attribute_macros().split()
        self.assertLessEqual({"TASUKI_DEVICE=", "TASUKI_RARE=", "TASUKI_UNROLL=", "TASUKI_WITHIN="}, set(macros))
        self.assertFalse([name for name in macros if name.endswith("_H=")])

    def test_pages_are_grouped_by_the_headings_above_them(self):
        text = "# T\n| [z.md](z.md) | |\n## One\n| [a.md](a.md) | x |\n| [b.md](b.md) | y |\n"
        text += "## None\n## Two\n| [c.md](c.md) | z |\n"
        self.assertEqual(docs.listed_pages(text), {"One": ["a.md", "b.md"], "Two": ["c.md"]})

    def test_a_stub_becomes_entries_of_the_domain(self):
        text = python_reference.reference(STUB, '__all__ = ["Halo", "Error", "verify", "__version__"]', [])
        for part in (
            ".. py:class:: Halo(width: int=1)\n",
            "As here::\n",
            "   .. py:property:: rank\n      :type: int\n\n\n      Can be set.\n",
            "   .. py:method:: of(a: int, *, b: str='x') -> Halo\n      :staticmethod:\n\n      One.\n",
            ".. py:exception:: Error\n",
            ".. py:function:: verify(operation: Halo) -> bool\n                 verify(plans: list[str]) -> bool\n",
            "   Of one.\n\n   Of many.\n",
        ):
            self.assertIn(part, text)
        self.assertNotIn("_hidden", text)
        self.assertLess(text.index("Halo("), text.index("Error"))

    def test_what_is_said_of_arguments_becomes_fields(self):
        said = (
            "Collective.\nsource: A block\nof this rank.\ntarget: All.\nnote: none.\nsource, target: Both.\nRaises E."
        )
        self.assertEqual(
            python_reference.as_rst(said, frozenset({"source", "target"})),
            [
                "Collective.",
                "",
                ":param source: A block",
                "    of this rank.",
                ":param target: All.",
                "    note: none.",
                "",
                "source, target: Both.",
                "Raises E.",
            ],
        )

    def test_a_name_that_nobody_defines_is_an_error(self):
        with self.assertRaisesRegex(ValueError, "defines Gone"):
            python_reference.reference(STUB, '__all__ = ["Gone"]', [])


if __name__ == "__main__":
    unittest.main()
