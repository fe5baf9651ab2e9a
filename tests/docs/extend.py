#!/usr/bin/env python3
"""What the example operation of docs/extending.md becomes: puts the page's entry of the schema into a copy of what
bindings/ and fortran/ have, and writes C, Fortran and Python from it. `tests/docs/extend.py FOLDER`

FOLDER/bindings and FOLDER/fortran are the copies; FOLDER/written has a folder for each language."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def entry(page: str) -> str:
    """The page's block that is a piece of bindings/operations.py."""
    return re.search(r"^```python\n# bindings/operations\.py\n(.*?)^```$", page, re.M | re.S)[1]


def main() -> None:
    out = Path(sys.argv[1])
    for name in ("bindings", "fortran"):
        shutil.rmtree(out / name, ignore_errors=True)
        shutil.copytree(ROOT / name, out / name, ignore=shutil.ignore_patterns("__pycache__"))
    schema = out / "bindings" / "operations.py"
    text = schema.read_text()
    end = text.rindex(")\n")
    schema.write_text(text[:end] + entry((ROOT / "docs" / "extending.md").read_text()) + text[end:])
    for language in ("c", "fortran", "python"):
        command = [sys.executable, out / "bindings" / "write.py", language, out / "written" / language]
        subprocess.run(command, check=True)
    interfaces = [sys.executable, out / "fortran" / "interfaces.py", out / "written" / "fortran" / "tasuki_c.f90"]
    subprocess.run(interfaces, check=True)


if __name__ == "__main__":
    main()
