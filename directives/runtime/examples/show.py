"""Shows what the run-time library of XcalableMP's directives does: programs against those in C++, which way data go,
what errors say, and with --time what the library costs.

show.py BUILD [--gpus N] [--time] [--quick]
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
failed: list[str] = []


def run(ranks: int, *words: object, fails: bool = False, **environment: str) -> str:
    command = [sys.executable, str(ROOT / "tools" / "mpirun.py"), "--timeout", "90", "-n", str(ranks), *map(str, words)]
    shown = " ".join([*[f"{k}={v}" for k, v in environment.items()], "mpirun", "-n", str(ranks)])
    print(f"\n$ {shown} {Path(str(words[0])).name} {' '.join(map(str, words[1:]))}", flush=True)
    made = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=os.environ | environment, check=False
    )
    print(made.stdout, end="")
    if made.returncode != 0 and not fails:
        print(made.stderr, end="")
        failed.append(shown + " " + " ".join(map(str, words)))
    return made.stdout


def checksum(text: str) -> str:
    words = text.split()
    return words[words.index("checksum") + 1] if "checksum" in words else ""


def same(ranks: int, serial: Path, app: str, program: Path, size: list[int], nodes: list[int]) -> None:
    expected = subprocess.run(
        [serial, app, *map(str, size)], capture_output=True, text=True, timeout=120, check=True
    ).stdout
    equal = checksum(run(ranks, program, *size, *nodes)) == checksum(expected) != ""
    print(f"{app} in C++ on one rank: {expected.strip()}: {'the same bits' if equal else 'OTHER BITS'}", flush=True)
    if not equal:
        failed.append(f"{app} on {ranks} ranks")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("build", type=Path, help="the build folder")
    arguments.add_argument("--gpus", type=int, default=0, help="also on so many GPUs")
    arguments.add_argument("--time", action="store_true", help="Table 2 of the first paper, on 2 and 4 ranks")
    arguments.add_argument("--quick", action="store_true", help="only what other tests do not run")
    how = arguments.parse_args()
    programs = how.build / "bin"
    serial = programs / "xmp_serial_apps"
    if not how.quick:
        print("== The same bits as the programs in C++")
        same(4, serial, "laplace", programs / "laplace_xmp", [101, 67, 20], [2])
        same(4, serial, "himeno", programs / "himeno_xmp", [33, 34, 65, 5], [2, 2])
    for ranks in sorted({1, how.gpus} - {0}) if how.gpus else []:
        same(ranks, serial, "laplace", programs / "laplace_xacc", [101, 67, 20], [1])
        same(ranks, serial, "himeno", programs / "himeno_xacc", [33, 34, 65, 5], [1])
    print("\n== Which way a reflect goes: islands, as those of the machine tca-64 are on 2x8x1 and 8x2x1 nodes")
    explain = programs / "explain_xmp"
    for nodes, mapping in () if how.quick else (([2, 8], "row"), ([8, 2], "hops")):
        run(16, explain, 128, 128, 256, *nodes, mapping, TASUKI_ISLAND="8")
    run(4, explain, 128, 128, 256, 2, 2, "row", "i=mpi,j=shared")
    print("\n== What errors say")
    run(4, programs / "errors_xmp")
    if not how.quick:
        run(4, programs / "xmp_tests", "disagree", fails=True, TASUKI_DEADLINE="2")
    if how.time:
        print("\n== What the library costs")
        for ranks in (2, 4):
            run(ranks, programs / "tasuki-bench-directives")
        if how.gpus:
            run(how.gpus, programs / "tasuki-bench-directives", "--device", "gpu")
    if failed:
        sys.exit("\nfailed: " + "; ".join(failed))


main()
