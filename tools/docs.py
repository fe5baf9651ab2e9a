#!/usr/bin/env python3
"""Builds the documentation site, BUILD/docs/html: the pages of docs/, the reference of C++, C, Fortran and Python.

    tools/docs.py BUILD      what `make docs` calls, after tools/setup.py --docs

Doxygen reads the headers; the Python package's stub is read from BUILD/python, and the programs of examples/gallery
run with it to draw the gallery's pictures. If either is not there, the rest is built, and the output and the site's own
page say what is missing. A warning of Sphinx is an error.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import fortran_reference
import python_reference

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bindings"))

import for_c  # noqa: E402

DOCS = ROOT / "docs"
GALLERY = ROOT / "examples" / "gallery"
INCLUDE = ROOT / "include" / "tasuki"
DOXYFILE = """
PROJECT_NAME = Tasuki
INPUT = {headers}
RECURSIVE = YES
FILE_PATTERNS = *.h *.hpp *.cuh
EXTENSION_MAPPING = h=C hpp=C++ cuh=C++
OUTPUT_DIRECTORY = {out}
GENERATE_XML = YES
GENERATE_HTML = NO
GENERATE_LATEX = NO
EXTRACT_ALL = YES
EXTRACT_STATIC = YES
HIDE_FRIEND_COMPOUNDS = YES
EXCLUDE_SYMBOLS = *Access tasuki::element::Pair tasuki::CopyDims::Head tasuki::Halo::Reach tasuki::Name::Head
MULTILINE_CPP_IS_BRIEF = NO
JAVADOC_AUTOBRIEF = YES
MACRO_EXPANSION = YES
PREDEFINED = {macros}
WARN_IF_UNDOCUMENTED = NO
WARN_IF_DOC_ERROR = NO
QUIET = YES
"""


# What breathe shows of a file and of the classes in it: no private or protected member.
PUBLIC = "   :sections: briefdescription detaileddescription user-defined define typedef enum func var"
PUBLIC += " innernamespace innerclass public-type public-func public-attrib public-static-func public-static-attrib"


def listed_pages(readme: str) -> dict[str, list[str]]:
    """The pages in the tables of docs/README.md, in their order, by the heading above."""
    groups = {}
    for part in re.split(r"^## ", readme, flags=re.M)[1:]:
        names = re.findall(r"^\| \[[\w-]+\.md\]\(([\w-]+\.md)\)", part, re.M)
        if names:
            groups[part.partition("\n")[0].strip()] = names
    return groups


def with_doc_comments(text: str, c: bool) -> str:
    """A header in which the comments that tell about declarations are those that Doxygen takes."""
    if c:
        text = re.sub(r"\A/\* ", "/** @file\n * ", text)
        text = re.sub(r"^( *)/\* (?!----|This file is written )", r"\1/** ", text, flags=re.M)
        return re.sub(r"^( *[^\s/*].*?) /\* ", r"\1 /**< ", text, flags=re.M)
    lead = re.match(r"(?://[^/].*\n|//\n)+", text)
    if lead is None:
        return text
    words = re.sub(r"^// ?", " * ", lead.group(0), flags=re.M)
    return f"/** @file\n{words} */\n{text[lead.end() :]}"


def headers_in_order() -> list[str]:
    """The C++ headers that programs include, by their names below tasuki/: those that tasuki.hpp includes, in its
    order, then the others at the top, and what kernel.cuh brings. What only headers include has no page."""
    included = re.findall(r'^#include "tasuki/(\S+pp)"', (INCLUDE / "tasuki.hpp").read_text(), re.M)
    files = (file for file in INCLUDE.iterdir() if file.suffix in (".hpp", ".cuh"))
    others = sorted(file.name for file in files if file.name not in (*included, "tasuki.hpp"))
    kernels = re.findall(r'^#include "tasuki/(\S+)"', (INCLUDE / "kernel.cuh").read_text(), re.M)
    kernels = [
        f"kernel/{name}" for name in ("team.cuh", "group.cuh", "shape.cuh") if (INCLUDE / "kernel" / name).exists()
    ] + kernels
    return included + others + list(dict.fromkeys(kernels))


def attribute_macros() -> str:
    """Macros that stand before declarations and mean nothing to a reader, as nothing."""
    text = "".join(file.read_text() for file in sorted(INCLUDE.rglob("*.*")))
    names = set(re.findall(r"^#define (TASUKI_[A-Z_]+)(?= +(?:inline|static|__\w+|_Pragma|\[\[)|$)", text, re.M))
    return " ".join(f"{name}=" for name in sorted(names) if not name.endswith("_H"))


def c_headers() -> list[str]:
    """The C headers by their names below tasuki/: tasuki.h and those that it includes."""
    found = ["tasuki.h"]
    for name in found:  # which grows
        if name in ("tasuki.h", "c/operations.h"):
            found += [
                one for one in re.findall(r'^#include "tasuki/(\S+)"', header_text(name), re.M) if one not in found
            ]
    return found


def header_text(name: str) -> str:
    """Of a header by its name below tasuki/: its file's, or what bindings/ writes."""
    file = INCLUDE / name
    return file.read_text() if file.exists() else for_c.headers()[file.name]


def run_doxygen(out: Path) -> str:
    """The folder of Doxygen's XML; empty if there is no Doxygen."""
    if not shutil.which("doxygen"):
        return ""
    headers = out / "headers"
    for name in [*headers_in_order(), *c_headers()]:
        copy = headers / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(with_doc_comments(header_text(name), copy.suffix == ".h"))
    settings = DOXYFILE.format(headers=headers, out=out, macros=attribute_macros())
    done = subprocess.run(["doxygen", "-"], input=settings, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"docs: doxygen failed: {(done.stderr or done.stdout).strip()}")
    return str(out / "xml")


def page(title: str, text: str) -> str:
    return f"# {title}\n{text}\n"


def rst(*lines: str) -> str:
    return "\n".join(["```{eval-rst}", *lines, "```"])


def toctree(names: list[str], *options: str) -> str:
    return "\n".join(["```{toctree}", *options, "", *names, "```"])


def write_cpp(source: Path, xml: str) -> None:
    if not xml:
        why = (
            "This site was built without it: `doxygen` is not installed (Debian: `doxygen`). Every public function is\n"
        )
        why += "documented where it is declared, in `include/tasuki/`."
        (source / "reference-cpp.md").write_text(page("C++ reference", why))
        (source / "reference-c.md").write_text(page("C reference", why))
        return
    pages = {name: "header-" + re.sub(r"[./]", "-", name) for name in headers_in_order()}
    plain = [Path(name).name for name in pages]
    for name, file in pages.items():
        known_as = Path(name).name if plain.count(Path(name).name) == 1 else name  # as Doxygen names files
        (source / f"{file}.md").write_text(page(f"tasuki/{name}", rst(f".. doxygenfile:: {known_as}", PUBLIC)))
    intro = "`#include <tasuki/tasuki.hpp>` brings the first of these, up to `wait_hooks.hpp`.\n"
    listing = toctree(list(pages.values()), ":maxdepth: 1")
    (source / "reference-cpp.md").write_text(page("C++ reference", intro + listing))
    text = "How to use it: [c-and-fortran.md](c-and-fortran.md).\n"
    text += "`#include <tasuki/tasuki.h>` brings all of these.\n"
    for name in c_headers():
        text += f"## tasuki/{name}\n" + rst(f".. doxygenfile:: {Path(name).name}") + "\n"
    (source / "reference-c.md").write_text(page("C reference", text))


def write_fortran(source: Path) -> None:
    text = "How to use it: [c-and-fortran.md](c-and-fortran.md). `use tasuki` gives all of it.\n"
    (source / "reference-fortran.md").write_text(page("Fortran reference", text + fortran_reference.page()))


def write_python(source: Path, package: Path) -> bool:
    """Whether there is a package to read."""
    there = (package / "_core.pyi").exists()
    if there:
        text = "How to use it: [python.md](python.md).\n" + rst(python_reference.of_package(package))
    else:
        text = "This site was built without it: the Python package was not built. `help(tasuki)` has the same."
    (source / "reference-python.md").write_text(page("Python reference", text))
    return there


def with_pictures(text: str, draw: Callable[[str, int], bool]) -> str:
    """The gallery, with a picture where it names a program and its ranks. `draw`: makes NAME.png; whether it could."""

    def picture(mark: re.Match) -> str:
        name = mark[1]
        if draw(name, int(mark[2])):
            return f"\n![what {name}.py draws](gallery/{name}.png)"
        return "\nThis site was built without the Python package, so there is no picture."

    return re.sub(r"^<!-- picture: ([\w-]+) (\d+) -->$", picture, text, flags=re.M)


def write_gallery(source: Path, package: Path) -> None:
    """The page's pictures and programs, beside it."""
    shutil.copytree(GALLERY, source / "gallery", ignore=shutil.ignore_patterns("__pycache__"))

    def draw(name: str, ranks: int) -> bool:
        if not (package / "_core.pyi").exists():
            return False
        file = source / "gallery" / f"{name}.png"
        launch = [sys.executable, ROOT / "tools" / "mpirun.py", "--timeout", "600", "-n", str(ranks)]
        environment = os.environ | {"PYTHONPATH": str(package.parent)}
        program = [sys.executable, GALLERY / f"{name}.py", "--picture", file]
        subprocess.run([*launch, *program], env=environment, check=True)
        return True

    page = source / "gallery.md"
    page.write_text(with_pictures(page.read_text().replace("](../examples/gallery/", "](gallery/"), draw))


def lay_out(source: Path, xml: str, package: Path) -> bool:
    """Writes what Sphinx reads. Whether the Python reference is in it."""
    source.mkdir(parents=True)
    for file in DOCS.glob("*.md"):
        text = file.read_text().replace("](../README.md", "](overview.md").replace("](README.md", "](index.md")
        (source / ("index.md" if file.name == "README.md" else file.name)).write_text(text)
    overview = (ROOT / "README.md").read_text().replace("](docs/README.md", "](index.md").replace("](docs/", "](")
    (source / "overview.md").write_text(overview)
    shutil.copytree(DOCS / "figures", source / "figures")
    shutil.copytree(DOCS / "site", source, dirs_exist_ok=True)
    write_gallery(source, package)
    write_cpp(source, xml)
    write_fortran(source)
    there = write_python(source, package)
    with (source / "index.md").open("a") as index:
        for title, pages in listed_pages((DOCS / "README.md").read_text()).items():
            names = [name.removesuffix(".md") for name in pages]
            if title == "Start here":
                names.insert(0, "overview")
            index.write("\n" + toctree(names, ":hidden:", f":caption: {title}") + "\n\n")
        reference = ["reference-cpp", "reference-c", "reference-fortran", "reference-python"]
        index.write(toctree(reference, ":hidden:", ":caption: Reference") + "\n")
    return there


def main() -> int:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    build = Path(sys.argv[1]).resolve()
    out = build / "docs"
    for name in ("source", "headers", "xml", "html"):
        shutil.rmtree(out / name, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    xml = run_doxygen(out)
    there = lay_out(out / "source", xml, build / "python" / "tasuki")
    environment = os.environ | {"TASUKI_DOXYGEN_XML": xml}
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-q", "-W", "--keep-going"]
    done = subprocess.run([*command, out / "source", out / "html"], env=environment, check=False)
    if done.returncode != 0:
        return 1
    if xml:
        shown = (out / "html" / "header-context-hpp.html").read_text()
        if "set_deadline" not in shown or "runtime_" in shown:  # a public and a private member of Context
            sys.exit("docs: the reference of C++ does not show the public members, and these alone")
    else:
        print("docs: without the reference of C++ and C: doxygen is not installed (Debian: doxygen)")
    if not there:
        print(f"docs: without the reference of Python: {build / 'python' / 'tasuki'} has no _core.pyi")
    print(f"docs: {out / 'html' / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
