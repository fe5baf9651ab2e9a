"""Laplace and Himeno from directives, by hand (the reference kernels of runtime/examples), and as the tuned programs of
apps/: microseconds of an iteration, the norm reduced over all ranks in each.

    .venv/bin/python directives/runtime/bench/compare.py build                      # one rank of this host
    .venv/bin/python directives/runtime/bench/compare.py build --ranks 2
    .venv/bin/python directives/runtime/bench/compare.py build --device gpu         # one GPU; --ranks 2: two

It translates and compiles the examples into BUILD/compare, with -O2 and without fused multiply-adds, as those by hand.
In each round all programs run once, in turn; the table has the medians. The checksums must be equal. The programs of
apps/ reduce the norm on hosts in every iteration, on GPUs once at the end. It needs the targets himeno, laplace and
laplace_xmp, himeno_xmp or, for GPUs, laplace_xacc, himeno_xacc, and is run by the Python of .venv.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "directives" / "examples"
MACROS = {"laplace": ("ROWS", "COLUMNS"), "himeno": ("I", "J", "K")}
PRINTED = re.compile(r"([\d.]+) us a step.*checksum (\w+)")


def started(ranks: int, words: list) -> str:
    command = [
        sys.executable,
        str(ROOT / "tools" / "mpirun.py"),
        "--timeout",
        "300",
        "-n",
        str(ranks),
        *map(str, words),
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=330)
    if run.returncode != 0 or "SKIPPED" in run.stdout:
        sys.exit(f"{' '.join(command)}:\n{run.stdout}{run.stderr}")
    return run.stdout


def translated(build: Path, app: str, brackets: str, size: list, steps: int, gpu: bool, cflags: list) -> Path:
    """An example as a program of this size."""
    folder = build / "compare"
    folder.mkdir(exist_ok=True)
    name = f"{app}_{'xacc_' if gpu else ''}{brackets}"
    macros = [f"-D{key}={value}" for key, value in zip([*MACROS[app], "STEPS"], [*size, steps])]
    command = [sys.executable, str(ROOT / "directives" / "tasuki-cc"), *cflags, "-ffp-contract=off"]
    command += [*(["--device", "gpu", "-arch=native"] if gpu else []), f"-I{shared_header()}", *macros]
    command += [str(EXAMPLES / f"{name}.c"), "-o", str(folder / name), "-lm"]
    environment = {**os.environ, "XMP_RUNTIME": str(build)}
    made = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if made.returncode != 0:
        sys.exit(made.stderr)
    return folder / name


def shared_header() -> Path:
    return ROOT / "directives" / "runtime" / "examples"


def compare(how: argparse.Namespace, app: str, size: list, steps: int) -> None:
    gpu = how.device == "gpu"
    by_hand = how.build / "bin" / f"{app}_{'xacc' if gpu else 'xmp'}"
    cflags = how.cflags.split()
    programs = {"by hand": [by_hand, *size, steps]}
    for brackets in ("round", "square"):
        program = translated(how.build, app, brackets, size, steps, gpu, cflags)
        programs[f"directives, {brackets}"] = [program]
    kept = how.build / "compare" / "app.json"
    tuned = [how.build / "bin" / app, "--size", "x".join(map(str, size)), "--iterations", steps, "--json", kept]
    split = [how.ranks] + [1] * (len(size) - 1)
    tuned += ["--device", "gpu" if gpu else "cpu", "--split", "x".join(map(str, split))]
    programs["app"] = tuned if gpu else [*tuned, "--norm-every", 1]
    took: dict = {name: [] for name in programs}
    sums = set()
    for _ in range(how.rounds):
        for name, words in programs.items():
            text = started(how.ranks, words)
            if name == "app":
                took[name].append(json.loads(kept.read_text())["seconds_per_iteration"] * 1e6)
                continue
            found = PRINTED.search(text)
            if found is None:
                sys.exit(f"{name} printed no time:\n{text}")
            took[name].append(float(found[1]))
            sums.add(found[2])
    if len(sums) != 1:
        sys.exit(f"{app}: the checksums differ: {', '.join(sorted(sums))}")
    middle = {name: statistics.median(all_of) for name, all_of in took.items()}
    print(f"\n{app} {'x'.join(map(str, size))}, {steps} iterations, --ranks {how.ranks} --device {how.device}")
    print(f"{'program':<22}{'median, us':>14}{'least':>12}{'most':>12}{'/ by hand':>12}{'/ app':>9}")
    for name, all_of in took.items():
        ratios = f"{middle[name] / middle['by hand']:12.3f}{middle[name] / middle['app']:9.3f}"
        print(f"{name:<22}{middle[name]:14.2f}{min(all_of):12.2f}{max(all_of):12.2f}{ratios}")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("build", type=Path, help="the build folder")
    arguments.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    arguments.add_argument("--ranks", type=int, default=1)
    arguments.add_argument("--rounds", type=int, default=5, help="default: 5")
    arguments.add_argument("--himeno", default="128x128x256", help="extents; default: 128x128x256 (M)")
    arguments.add_argument("--laplace", default="2048x2048", help="extents; default: 2048x2048")
    arguments.add_argument("--steps", type=int, default=0, help="iterations; default: 20 on CPUs, 200 on GPUs")
    arguments.add_argument(
        "--cflags", default="-O2", help="of the translated programs; default: -O2, as the ones by hand"
    )
    how = arguments.parse_args()
    how.build = how.build.resolve()
    steps = how.steps or (200 if how.device == "gpu" else 20)
    for app in ("laplace", "himeno"):
        compare(how, app, [int(n) for n in getattr(how, app).split("x")], steps)


main()
