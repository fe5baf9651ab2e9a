"""Translated programs: they print what the same source prints as plain C, on any number of ranks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).with_name("translated")
BUILD = os.environ.get("XMP_RUNTIME")
FLAGS = ["-std=gnu11", "-O1", "-ffp-contract=off", *os.environ.get("TEST_CFLAGS", "").split()]
WARNINGS = ["-Wall", "-Wextra", "-Werror"]

pytestmark = pytest.mark.skipif(not BUILD, reason="XMP_RUNTIME names no build folder with the run-time library")


def tasuki_cc(*arguments):
    command = [sys.executable, str(ROOT / "directives" / "tasuki-cc"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def output(program, ranks):
    """What it prints on so many ranks."""
    command = [sys.executable, str(ROOT / "tools" / "mpirun.py"), "--timeout", "60", "-n", str(ranks)]
    if os.environ.get("TASUKI_MPIEXEC"):
        command += ["--mpiexec", os.environ["TASUKI_MPIEXEC"]]
    run = subprocess.run([*command, str(program)], capture_output=True, text=True, check=False, timeout=90)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.mark.parametrize("name", ["arrays_round", "work_square", "widths"])
def test_programs_print_what_plain_c_prints(name, tmp_path):
    source = PROGRAMS / f"{name}.c"
    made = tasuki_cc(*FLAGS, *WARNINGS, source, "-o", tmp_path / "translated", "-lm")
    assert (made.returncode, made.stderr) == (0, "")
    subprocess.run(["cc", "-w", *FLAGS, str(source), "-o", str(tmp_path / "plain"), "-lm"], check=True)
    plain = subprocess.run([str(tmp_path / "plain")], capture_output=True, text=True, check=True).stdout
    assert plain
    for ranks in (1, 2, 3, 5):
        assert output(tmp_path / "translated", ranks) == plain, ranks


def test_what_only_several_nodes_do(tmp_path):
    made = tasuki_cc(*FLAGS, *WARNINGS, PROGRAMS / "own_nodes.c", "-o", tmp_path / "translated")
    assert (made.returncode, made.stderr) == (0, "")
    for ranks in (1, 2, 3, 5):
        assert output(tmp_path / "translated", ranks) == "wrong: 0\n", ranks


def test_several_files_share_arrays(tmp_path):
    (tmp_path / "shared.h").write_text(
        "#define N 17\n#pragma xmp nodes p[*]\n#pragma xmp template t[N]\n#pragma xmp distribute t[block] onto p\n"
        "extern int a[N];\n#pragma xmp align a[i] with t[i]\nint sum(void);\n"
    )
    (tmp_path / "sum.c").write_text(
        '#include "shared.h"\nint a[N];\nint sum(void) {\n  int s = 0;\n#pragma xmp loop on t[i] reduction(+ : s)\n'
        "  for (int i = 0; i < N; i++) s += a[i];\n  return s;\n}\n"
    )
    (tmp_path / "main.c").write_text(
        '#include "shared.h"\nint main(void) {\n#pragma xmp loop on t[i]\n  for (int i = 0; i < N; i++) a[i] = i;\n'
        "  return sum() == N * (N - 1) / 2 ? 0 : 3;\n}\n"
    )
    for name in ("main", "sum"):
        made = tasuki_cc(*FLAGS, *WARNINGS, "-c", tmp_path / f"{name}.c", "-o", tmp_path / f"{name}.o")
        assert (made.returncode, made.stderr) == (0, "")
    made = tasuki_cc(tmp_path / "main.o", tmp_path / "sum.o", "-o", tmp_path / "apart", "-ltasuki_xmp", *LINK)
    assert (made.returncode, made.stderr) == (0, "")
    made = tasuki_cc(*FLAGS, tmp_path / "main.c", tmp_path / "sum.c", "-o", tmp_path / "together")
    assert (made.returncode, made.stderr) == (0, "")
    assert output(tmp_path / "apart", 2) == ""
    assert output(tmp_path / "together", 3) == ""


LINK = [f"-L{BUILD}/lib", f"-Wl,-rpath,{BUILD}/lib"] if BUILD else []
