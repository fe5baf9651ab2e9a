#!/usr/bin/env python3
"""What typed messages take in a program of MPI alone, without and with the library for unchanged MPI programs.

    tools/typed_tables.py --program build/bin/tasuki-bench-typed --library build/lib/libtasuki_mpi.so --runs 5 \\
        --output bench/results/typed-openmpi.json

runs the program by turns without and with the library, and keeps the fastest of each case's medians: what else runs on
the machine makes a median slower, never faster. Then the program sends sub-matrices (`--submatrices`), warm and cold;
with the library loaded it has all ways take turns in one run. For tools/tables.py, <!-- typed:FILE --> ...
<!-- /typed --> stands for the table of messages in bench/results/FILE.json, and <!-- submatrices:FILE --> ...
<!-- /submatrices --> for that of sub-matrices. A table is empty as long as the file lacks its results.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MARKED = re.compile(r"(<!-- (?P<kind>typed|submatrices):(?P<name>[^\s>/]+) -->\n).*?(<!-- /(?P=kind) -->)", re.S)
LINE = re.compile(r"(?P<case>\S.*?)\s+(?P<bytes>\d+)\s+(?P<typed>[\d.]+)\s+(?P<hand>[\d.]+)\s+(?P<contiguous>[\d.]+)")
SUBMATRIX = ("m", "n", "z", "bytes", "lines", "read", "write", "typed", "library", "hand",
             "loop", "loop_typed", "loop_library", "loop_hand")  # fmt: skip
SPELLINGS = (" hvector", " resized")
Number = Callable[[float], str]


def lines_of(text: str) -> dict[str, dict[str, float]]:
    """Cases and their times in µs."""
    found = {}
    for match in filter(None, map(LINE.fullmatch, map(str.strip, text.splitlines()))):
        times = {name: float(match[name]) for name in ("typed", "hand", "contiguous")}
        found[match["case"]] = {"bytes": int(match["bytes"])} | times
    return found


def submatrices_of(text: str) -> list[dict[str, float]]:
    """Shapes, the lines that both sides touch, and times in µs."""
    lines = [line.split() for line in text.splitlines()]
    numbers = [words for words in lines if len(words) == len(SUBMATRIX) and words[0].isdigit()]
    return [dict(zip(SUBMATRIX, [*map(int, words[:5]), *map(float, words[5:])], strict=True)) for words in numbers]


def together(without: list[dict], with_library: list[dict]) -> list[dict]:
    """The fastest of several runs. By hand and contiguous are the MPI's alone."""
    cases = []
    for name, first in without[0].items():
        fastest = {key: min(run[name][key] for run in without) for key in ("typed", "hand", "contiguous")}
        library = min(run[name]["typed"] for run in with_library)
        cases.append({"case": name, "bytes": first["bytes"], **fastest, "library": library})
    for case in cases:  # the same bytes, in the spelling that the MPI moves fastest
        stem = next((case["case"].removesuffix(end) for end in SPELLINGS if case["case"].endswith(end)), case["case"])
        same = [other["typed"] for other in cases if other["case"] in {stem + end for end in SPELLINGS}]
        case["best"] = min([case["typed"], *same])
    return cases


def lines_with(rows: list[list[str]], columns: list[str]) -> list[str]:
    """A table; columns whose names begin with > are flush right."""
    head = [[name.lstrip(">") for name in columns], ["---:" if name.startswith(">") else "---" for name in columns]]
    return ["| " + " | ".join(row) + " |" for row in head + rows]


def table(results: dict, number: Number) -> str:
    columns = ["µs one way", ">bytes", ">MPI", ">in its favourite spelling", ">by hand", ">contiguous", ">library",
               ">MPI / library", ">by hand / library"]  # fmt: skip
    rows = []
    for case in results["messages"]:
        times = [number(case[name]) for name in ("typed", "best", "hand", "contiguous")]
        ratios = [f"{case[name] / case['library']:.2f}" for name in ("typed", "hand")]
        rows.append([case["case"], str(case["bytes"]), *times, f"**{number(case['library'])}**", *ratios])
    gains = [case["typed"] / case["library"] for case in results["messages"]]
    said = (
        f"{results['mpi']}: MPI / library is {min(gains):.2f} at least, {statistics.median(gains):.2f} in the median; "
    )
    return "\n".join([*lines_with(rows, columns), "", said + f"the fastest of {results['runs']} runs' medians.", ""])


def submatrices_table(results: dict, number: Number) -> str:
    columns = ["µs one way", "caches", ">bytes", ">lines", ">floor", ">MPI", ">by hand", ">library", ">MPI / library",
               ">by hand / library", ">loop", ">after MPI", ">after by hand", ">after library"]  # fmt: skip
    rows = []
    for state, cases in results["submatrices"].items():
        for case in cases:
            shape = f"{case['m']} x {case['n']} of 4096 x {case['z']}"
            times = [number(value) for value in (max(case["read"], case["write"]), case["typed"], case["hand"])]
            ratios = [f"{case[name] / case['library']:.2f}" for name in ("typed", "hand")]
            after = [f"{case[name] - case['loop']:+.1f}" for name in ("loop_typed", "loop_hand", "loop_library")]
            row = [shape, state, str(case["bytes"]), str(case["lines"]), *times, f"**{number(case['library'])}**"]
            rows.append([*row, *ratios, number(case["loop"]), *after])
    return "\n".join([*lines_with(rows, columns), ""])


def refreshed(text: str, folder: Path, number: Number) -> str:
    def replace(match: re.Match) -> str:
        file = folder / f"{match['name']}.json"
        results = json.loads(file.read_text()) if file.exists() else {}
        tabled = {"typed": ("messages", table), "submatrices": ("submatrices", submatrices_table)}
        key, made = tabled[match["kind"]]
        return match[1] + (made(results, number) if key in results else "") + match[4]

    return MARKED.sub(replace, text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--program", required=True, help="tasuki-bench-typed")
    parser.add_argument("--library", required=True, help="libtasuki_mpi.so")
    parser.add_argument("--mpiexec", help="default: the one of the program's build folder")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.05, help="of each case")
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    launcher = [sys.executable, str(ROOT / "tools" / "mpirun.py"), "--timeout", "120"]
    launcher += ["--mpiexec", given.mpiexec] if given.mpiexec else []
    program = str(Path(given.program).resolve())
    messages = [program, str(given.seconds)]
    preload = ["/usr/bin/env", f"LD_PRELOAD={Path(given.library).resolve()}"]

    def run(command: list[str]) -> str:
        done = subprocess.run([*launcher, "-n", "2", *command], capture_output=True, text=True, check=False)
        if done.returncode != 0 or not done.stdout.strip():
            sys.exit(f"typed_tables.py: {command[0]} ended with status {done.returncode}: {done.stderr}{done.stdout}")
        return done.stdout

    without, with_library = [], []
    for _ in range(given.runs):
        without.append(lines_of(run(messages)))
        with_library.append(lines_of(run(preload + messages)))
    submatrices = {
        state: submatrices_of(run([*preload, program, "--submatrices", *options]))
        for state, options in (("warm", []), ("cold", ["--cold"]))
    }
    mpi = "Open MPI" if "openmpi" in str(given.output) else "MPICH"
    results = {"mpi": mpi, "runs": given.runs, "messages": together(without, with_library), "submatrices": submatrices}
    given.output.write_text(json.dumps(results, indent=1) + "\n")
    for made in (table, submatrices_table):
        print(made(results, lambda value: f"{value:.1f}"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
