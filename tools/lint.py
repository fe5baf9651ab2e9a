#!/usr/bin/env python3
"""Checks formatting and runs the static checks on the C++ and Python sources. Arguments: the build folder, then
optionally the C++ files to run clang-tidy on (all of the compilation database by default)."""

from __future__ import annotations

import concurrent.futures
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".deps" / "bin"
CODE = ["include", "src", "apps", "bench", "tests", "python"]
SUFFIXES = {".hpp", ".cpp", ".cu", ".cuh", ".h", ".c"}


def check(title: str, command: list) -> bool:
    print(f"lint: {title}", flush=True)
    return subprocess.run([str(c) for c in command], cwd=ROOT, check=False).returncode == 0


def tidy(build: Path, wanted: list[str]) -> bool:
    database = json.loads((build / "compile_commands.json").read_text())
    # Tests are left out: they are a third of the time, and the compiler's warnings cover them.
    checked = tuple(str(ROOT / folder) + os.sep for folder in ("src", "apps", "bench"))
    files = sorted({entry["file"] for entry in database if entry["file"].startswith(checked)})
    files = [f for f in files if f.endswith(".cpp")]
    if wanted:
        chosen = {str(Path(f).resolve()) for f in wanted}
        unknown = chosen - set(files)
        if unknown:
            sys.exit(f"lint: not in {build}/compile_commands.json: {', '.join(sorted(unknown))}")
        files = [f for f in files if f in chosen]
    # The database holds the compiler's flags, which clang knows most of.
    command = [BIN / "clang-tidy", "--quiet", "-p", build, "--extra-arg=-Wno-unknown-warning-option"]
    print(f"lint: clang-tidy on {len(files)} files", flush=True)

    def one(file: str) -> bool:
        result = subprocess.run([str(c) for c in [*command, file]], capture_output=True, text=True, check=False)
        if result.returncode != 0:
            print(f"{result.stdout}{result.stderr}", flush=True)
        return result.returncode == 0

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return all(list(pool.map(one, files)))


def main() -> int:
    build = Path(sys.argv[1]).resolve()
    sources = sorted(str(p.relative_to(ROOT)) for d in CODE for p in (ROOT / d).rglob("*") if p.suffix in SUFFIXES)
    python = [p for p in ("tools", "tests", "python", "examples", "directives", "fortran") if (ROOT / p).is_dir()]
    good = [
        check("clang-format", [BIN / "clang-format", "--dry-run", "--Werror", *sources]),
        check("ruff", [BIN / "ruff", "check", "--quiet", *python]),
        check("ruff format", [BIN / "ruff", "format", "--check", "--quiet", "--diff", *python]),
        check("rooms", [sys.executable, "tools/rooms.py"]),
        check("tables", [sys.executable, "tools/tables.py", "--check"]),
        tidy(build, sys.argv[2:]),
    ]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
