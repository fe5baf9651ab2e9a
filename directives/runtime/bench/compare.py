"""Laplace and Himeno from directives, by hand (the reference kernels of runtime/examples), and as the tuned programs of
apps/: microseconds of an iteration, the norm reduced over all ranks in each, and of its stencil alone.

    .venv/bin/python directives/runtime/bench/compare.py build                      # one rank of this host
    .venv/bin/python directives/runtime/bench/compare.py build --ranks 2
    .venv/bin/python directives/runtime/bench/compare.py build --device gpu         # one GPU; --ranks 2: two

It compiles the programs from directives and, for hosts, those by hand into BUILD/compare with the same flags, without
fused multiply-adds. In each round all programs run once, in turn; the table has the medians. The checksums must be
equal. The programs of apps/ swap two arrays where the others copy the new values back: on hosts `stencil` is an
iteration without the time of that copy, and all of an iteration of apps/. They choose AVX2 themselves where the
processor has it, and reduce the norm on hosts in every iteration, on GPUs once at the end. It needs the targets himeno
and laplace, for GPUs laplace_xacc and himeno_xacc too, and is run by the Python of .venv.
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
PRINTED = re.compile(r"([\d.]+) us a step(?:, ([\d.]+) to copy)?.*checksum (\w+)")


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
    made(command, XMP_RUNTIME=str(build))
    return folder / name


def by_hand(build: Path, app: str, cflags: list) -> Path:
    folder, library = build / "compare", build / "lib"
    folder.mkdir(exist_ok=True)
    command = [os.environ.get("CC", "cc"), "-std=gnu11", *cflags, "-ffp-contract=off", "-fopenmp-simd"]
    command += [f"-I{ROOT / 'directives' / 'runtime' / 'include'}", str(shared_header() / f"{app}.c")]
    command += ["-o", str(folder / f"{app}_by_hand"), f"-L{library}", f"-Wl,-rpath,{library}", "-ltasuki_xmp", "-lm"]
    made(command)
    return folder / f"{app}_by_hand"


def made(command: list, **environment: str) -> None:
    run = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}:\n{run.stderr}")


def shared_header() -> Path:
    return ROOT / "directives" / "runtime" / "examples"


def compare(how: argparse.Namespace, app: str, size: list, steps: int) -> None:
    gpu = how.device == "gpu"
    cflags = how.cflags.split()
    hand = how.build / "bin" / f"{app}_xacc" if gpu else by_hand(how.build, app, cflags)
    programs = {"by hand": [hand, *size, steps]}
    for brackets in ("round", "square"):
        program = translated(how.build, app, brackets, size, steps, gpu, cflags)
        programs[f"directives, {brackets}"] = [program]
    kept = how.build / "compare" / "app.json"
    tuned = [how.build / "bin" / app, "--size", "x".join(map(str, size)), "--iterations", steps, "--json", kept]
    split = [how.ranks] + [1] * (len(size) - 1)
    tuned += ["--device", "gpu" if gpu else "cpu", "--split", "x".join(map(str, split))]
    programs["app"] = tuned if gpu else [*tuned, "--norm-every", 1]
    took: dict = {name: [] for name in programs}
    stencil: dict = {name: [] for name in programs}
    sums = set()
    for _ in range(how.rounds):
        for name, words in programs.items():
            text = started(how.ranks, words)
            if name == "app":
                seconds = json.loads(kept.read_text())["seconds_per_iteration"]
                took[name].append(seconds * 1e6)
                stencil[name].append(seconds * 1e6)
                continue
            found = PRINTED.search(text)
            if found is None:
                sys.exit(f"{name} printed no time:\n{text}")
            took[name].append(float(found[1]))
            if found[2] is not None:
                stencil[name].append(float(found[1]) - float(found[2]))
            sums.add(found[3])
    if len(sums) != 1:
        sys.exit(f"{app}: the checksums differ: {', '.join(sorted(sums))}")
    print(f"\n{app} {'x'.join(map(str, size))}, {steps} iterations, --ranks {how.ranks} --device {how.device}")
    columns = f"{'median':>13}{'least':>12}{'most':>12}{'/ hand':>9}{'/ app':>8}"
    print(f"{'':<22}{'iteration, us':>{len(columns)}}{'' if gpu else 'stencil, us':>{len(columns)}}")
    print(f"{'program':<22}{columns}{'' if gpu else columns}")
    for name in programs:
        print(f"{name:<22}{columns_of(name, took)}{columns_of(name, stencil) if not gpu else ''}")


def columns_of(name: str, times: dict) -> str:
    middle = {one: statistics.median(all_of) for one, all_of in times.items()}
    ratios = f"{middle[name] / middle['by hand']:9.3f}{middle[name] / middle['app']:8.3f}"
    return f"{middle[name]:13.2f}{min(times[name]):12.2f}{max(times[name]):12.2f}{ratios}"


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
        "--cflags", help="of the translated programs and those by hand; default: -O3 -march=native, on GPUs -O2"
    )
    how = arguments.parse_args()
    how.build = how.build.resolve()
    how.cflags = how.cflags or ("-O2" if how.device == "gpu" else "-O3 -march=native")
    steps = how.steps or (200 if how.device == "gpu" else 20)
    for app in ("laplace", "himeno"):
        compare(how, app, [int(n) for n in getattr(how, app).split("x")], steps)


main()
