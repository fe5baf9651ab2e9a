#!/usr/bin/env python3
"""Checks formatting and runs the static checks on the C++ and Python sources.

clang-tidy takes seconds a file, so it runs on those files only that have changed since it last found nothing in them:
tools/lint-record.txt holds a hash of each file as it was then, and `make lint` writes the new ones. What is hashed is
all that clang-tidy's verdict can depend on (`seen_by_clang_tidy`, `tools_seen`) and nothing else of the machine, so
that a record made on one machine holds on another. `--all` runs it on every file.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".deps" / "bin"
RECORD = ROOT / "tools" / "lint-record.txt"
CODE = ["include", "src", "apps", "bench", "tests", "python", "directives"]
SUFFIXES = {".hpp", ".cpp", ".cu", ".cuh", ".h", ".c"}
# Tests are left out: they are a third of the time, and the compiler's warnings cover them.
TIDY = tuple(str(ROOT / folder) + os.sep for folder in ("src", "apps", "bench"))

# Comments, and all in which what looks like one is none.
TOKENS = re.compile(
    r"""R"([^\s()\\]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\b\d(?:'?[\w.])*|'(?:\\.|[^'\\\n])+'|//[^\n]*|/\*.*?\*/""",
    re.DOTALL,
)
READ_BY_CHECKS = re.compile(r"NOLINT|/\*\s*\w+\s*=\s*\*/")
MARKER = re.compile(r'^# \d+ "([^"]*)".*\n', re.MULTILINE)


def check(title: str, command: list) -> bool:
    print(f"lint: {title}", flush=True)
    return subprocess.run([str(c) for c in command], cwd=ROOT, check=False).returncode == 0


def without_comments(text: str) -> str:
    """The text line by line, without empty lines, and without comments but those that checks read."""

    def kept(token: re.Match) -> str:
        is_comment = token[0].startswith(("//", "/*"))
        return " " if is_comment and not READ_BY_CHECKS.search(token[0]) else token[0]

    lines = (line.strip() for line in TOKENS.sub(kept, text).splitlines())
    return "\n".join(line for line in lines if line)


def own_text(preprocessed: str) -> str:
    """What comes from the project's own files, and the names of the other files that these include."""
    parts, start, own = [], 0, False
    for marker in MARKER.finditer(preprocessed):
        if own:
            parts.append(preprocessed[start : marker.start()])
        path, was_own = marker[1], own
        own = path.startswith(f"{ROOT}/") and not path.startswith((f"{ROOT}/.deps/", f"{ROOT}/.venv/"))
        if was_own and not own:
            parts.append(f"#include {path.rpartition('/')[2]}\n")
        start = marker.end()
    if own:
        parts.append(preprocessed[start:])
    return without_comments("".join(parts))


def command_of(entry: dict) -> list[str]:
    """Without a compiler cache in front."""
    words = shlex.split(entry["command"])
    return words[1:] if Path(words[0]).name == "ccache" else words


def seen_by_clang_tidy(entry: dict) -> str:
    """One entry of the compilation database as clang-tidy sees it: the flags that matter to it, and the text with all
    files that it includes, conditions resolved and macros defined but not expanded. Others' headers are known by their
    names (and by the versions, see `tools_seen`)."""
    words = command_of(entry)
    flags = [w for w in words if w.startswith(("-std=", "-W", "-f")) and w != "-Werror"]
    macros = [w for w in words if w.startswith("-D")]
    out = words.index("-o")
    command = [w for w in words[:out] + words[out + 2 :] if w != "-c" and not w.startswith(("-fopenmp", "-W"))]
    # GCC fails on OpenMP's pragmas here, so the command is without -fopenmp.
    result = subprocess.run(
        [*command, "-E", "-fdirectives-only"], cwd=entry["directory"], capture_output=True, text=True, check=False
    )
    if result.returncode != 0:
        sys.exit(f"lint: {entry['file']} cannot be preprocessed:\n{result.stderr}")
    text = own_text(result.stdout)
    # A macro of the command line is seen where its name stands.
    macros = [m for m in macros if re.search(rf"\b{m[2:].partition('=')[0]}\b", text)]
    return "\n".join([*sorted(flags), *sorted(macros), text]).replace(f"{ROOT}/", "")


def tools_seen(compiler: str) -> str:
    """What else the verdict depends on: the checks, clang-tidy's version, and those of others' headers."""
    version = subprocess.run([BIN / "clang-tidy", "--version"], capture_output=True, text=True, check=True).stdout
    library = subprocess.run([compiler, "-dumpversion"], capture_output=True, text=True, check=True).stdout
    pins = re.findall(r"^(?:pgm-build-deps|cmeel-fmt)==\S+$", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    paths = sorted(path.relative_to(ROOT) for path in ROOT.glob("**/.clang-tidy"))
    configs = [(ROOT / path).read_text() for path in paths if not path.parts[0].startswith((".deps", "build"))]
    return "\n".join([re.search(r"version (\S+)", version)[1], library.strip(), *pins, *configs])


def hash_of(work: tuple[str, list[dict]]) -> str:
    """Of one file: of what it is in each target that compiles it."""
    common, entries = work
    text = "\0".join([common, *sorted({seen_by_clang_tidy(entry) for entry in entries})])
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def read_record() -> dict[str, str]:
    if not RECORD.exists():
        return {}
    lines = [line.split() for line in RECORD.read_text().splitlines() if not line.startswith("#")]
    return {line[1]: line[0] for line in lines if len(line) == 2}


def write_record(hashes: dict[str, str]) -> None:
    head = "# Sources in which clang-tidy finds nothing. Written by `make lint`: do not edit or merge, run it again.\n"
    RECORD.write_text(head + "".join(f"{hashes[name]} {name}\n" for name in sorted(hashes)))


def tidy(build: Path, wanted: list[str], everything: bool) -> bool:
    entries: dict[str, list[dict]] = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if entry["file"].startswith(TIDY) and entry["file"].endswith(".cpp"):
            entries.setdefault(entry["file"], []).append(entry)
    chosen = {str(Path(f).resolve()) for f in wanted} or set(entries)
    if chosen - set(entries):
        sys.exit(f"lint: not in {build}/compile_commands.json: {', '.join(sorted(chosen - set(entries)))}")

    files = sorted(chosen)
    common = tools_seen(command_of(entries[files[0]][0])[0])
    with concurrent.futures.ProcessPoolExecutor() as pool:
        now = dict(zip(files, pool.map(hash_of, [(common, entries[f]) for f in files], chunksize=4)))
    hashes = {str(Path(file).relative_to(ROOT)): value for file, value in now.items()}
    recorded = read_record()
    changed = [f for f in files if everything or wanted or recorded.get(str(Path(f).relative_to(ROOT))) != now[f]]
    print(f"lint: clang-tidy on {len(changed)} of {len(files)} files; {RECORD.name} has the others", flush=True)

    # The database holds the compiler's flags, which clang knows most of.
    command = [BIN / "clang-tidy", "--quiet", "-p", build, "--extra-arg=-Wno-unknown-warning-option"]

    def one(file: str) -> bool:
        result = subprocess.run([str(c) for c in [*command, file]], capture_output=True, text=True, check=False)
        if result.returncode != 0:
            print(f"{result.stdout}{result.stderr}", flush=True)
        return result.returncode == 0

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        clean = dict(zip(changed, pool.map(one, changed)))
    # What was found clean is recorded though another file is not; files that are no more are forgotten.
    known = {str(Path(file).relative_to(ROOT)) for file in entries}
    record = {name: value for name, value in recorded.items() if name in known}
    for file, good in clean.items():
        name = str(Path(file).relative_to(ROOT))
        if good:
            record[name] = hashes[name]
        else:
            record.pop(name, None)
    if record != recorded:
        write_record(record)
    return all(clean.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("build", type=Path, help="a folder that was configured without precompiled headers")
    parser.add_argument("files", nargs="*", help="run clang-tidy on these files, changed or not")
    parser.add_argument("--all", action="store_true", help="run clang-tidy on every file, changed or not")
    arguments = parser.parse_args()
    sources = sorted(str(p.relative_to(ROOT)) for d in CODE for p in (ROOT / d).rglob("*") if p.suffix in SUFFIXES)
    python = [
        p for p in ("tools", "tests", "python", "examples", "directives", "fortran", "bindings") if (ROOT / p).is_dir()
    ]
    good = [
        check("clang-format", [BIN / "clang-format", "--dry-run", "--Werror", *sources]),
        check("ruff", [BIN / "ruff", "check", "--quiet", *python]),
        check("ruff format", [BIN / "ruff", "format", "--check", "--quiet", "--diff", *python]),
        check("rooms", [sys.executable, "tools/rooms.py"]),
        check("one definition", [sys.executable, "tools/one_definition.py"]),
        check("tables", [sys.executable, "tools/tables.py", "--check"]),
        tidy(arguments.build.resolve(), arguments.files, arguments.all),
    ]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
