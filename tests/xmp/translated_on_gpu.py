"""Translates an example for GPUs, runs it, and compares its checksum with the serial program's.

translated_on_gpu.py FOLDER SOURCE SERIAL APP RANKS NAME=SIZE... -- MPIRUN... ; the sizes are the program's macros. It
needs nvcc and a GPU, and says SKIPPED where there is none.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
at = sys.argv.index("--")
folder, source, serial, app, ranks, *sizes = sys.argv[1:at]
mpirun = sys.argv[at + 1 :]
if shutil.which("nvcc") is None and "CUDACXX" not in os.environ:
    print("SKIPPED: there is no nvcc")
    sys.exit(0)
Path(folder).mkdir(parents=True, exist_ok=True)
program = Path(folder) / f"{Path(source).stem}_{ranks}"
command = [sys.executable, str(ROOT / "directives" / "tasuki-cc"), "--device", "gpu", "-arch=native", "-O2"]
command += ["-ffp-contract=off", f"-I{ROOT / 'directives' / 'runtime' / 'examples'}", *[f"-D{size}" for size in sizes]]
made = subprocess.run([*command, source, "-o", str(program), "-lm"], capture_output=True, text=True, timeout=200)
if made.returncode != 0:
    sys.exit(made.stderr)
run = subprocess.run([*mpirun, "-n", ranks, str(program)], capture_output=True, text=True, timeout=100)
print(run.stdout, run.stderr)
if "no GPU can be used" in run.stderr:
    print("SKIPPED: no GPU can be used")
    sys.exit(0)
numbers = [size.split("=")[1] for size in sizes]
expected = subprocess.run([serial, app, *numbers], capture_output=True, text=True, check=True).stdout.split()[-1]
if run.returncode != 0 or run.stdout.split()[-1:] != [expected]:
    sys.exit(f"the program ended with {run.returncode}; the serial one's checksum is {expected}")
