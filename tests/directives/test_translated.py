"""Translated programs: they print what the same source prints as plain C, on any number of ranks."""

import os
import re
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


def started(program, ranks, **environment):
    """The program on so many ranks."""
    command = [sys.executable, str(ROOT / "tools" / "mpirun.py"), "--timeout", "60", "-n", str(ranks)]
    if os.environ.get("TASUKI_MPIEXEC"):
        command += ["--mpiexec", os.environ["TASUKI_MPIEXEC"]]
    command.append(str(program))
    variables = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=90, env=variables)


def output(program, ranks):
    """What it prints on so many ranks."""
    run = started(program, ranks)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.mark.parametrize(
    "name", ["arrays_round", "work_square", "widths", "sections", "placed", "dealt_round", "rims_square"]
)
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


def test_tasks_that_disagree_are_told_both_lines(tmp_path):
    (tmp_path / "apart.c").write_text(
        "#pragma xmp nodes p[*]\nint main(void) {\n  int sum = 1;\n#pragma xmp task on p[0]\n  {\n"
        "#pragma xmp barrier on p\n  }\n#pragma xmp task on p[1]\n  {\n"
        "#pragma xmp reduction (+ : sum) on p\n  }\n  return 0;\n}\n"
    )
    made = tasuki_cc(*FLAGS, tmp_path / "apart.c", "-o", tmp_path / "apart")
    assert (made.returncode, made.stderr) == (0, "")
    run = started(tmp_path / "apart", 2)
    assert run.returncode != 0
    assert re.search(r"rank 0: in xmp_barrier among ranks 0, 1, at \S*apart\.c:6", run.stderr), run.stderr
    assert re.search(r"rank 1: in xmp_reduction of 1 element among ranks 0, 1, at \S*apart\.c:10", run.stderr), (
        run.stderr
    )


def test_several_files_share_arrays_and_pointers(tmp_path):
    (tmp_path / "shared.h").write_text(
        "#define N 17\n#pragma xmp nodes p[*]\n#pragma xmp template t[N]\n#pragma xmp distribute t[block] onto p\n"
        "extern int a[N], *b;\n#pragma xmp align [i] with t[i] :: a, b\nint sum(void);\n"
    )
    (tmp_path / "sum.c").write_text(
        '#include "shared.h"\nint a[N], *b;\nint sum(void) {\n  int s = 0;\n#pragma xmp loop on t[i] reduction(+ : s)\n'
        "  for (int i = 0; i < N; i++) s += a[i] + b[i];\n  return s;\n}\n"
    )
    (tmp_path / "main.c").write_text(
        '#include <xmp.h>\n#include "shared.h"\nint main(void) {\n  b = xmp_malloc(xmp_desc_of(b), N);\n'
        "#pragma xmp loop on t[i]\n  for (int i = 0; i < N; i++) {\n    a[i] = i;\n    b[i] = 2 * i;\n  }\n"
        "  return sum() == 3 * N * (N - 1) / 2 ? 0 : 3;\n}\n"
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


def size(**numbers):
    return [f"-D{name}={value}" for name, value in numbers.items()]


@pytest.mark.parametrize("brackets", ["round", "square"])
def test_laplace_is_the_program_laplace_bit_by_bit(brackets, tmp_path):
    serial = subprocess.run(
        [f"{BUILD}/bin/xmp_serial_apps", "laplace", "29", "31", "20"], capture_output=True, text=True
    )
    for columns, all_ranks in ((1, (1, 3, 5)), (2, (2,))):
        made = example("laplace", brackets, tmp_path, size(ROWS=29, COLUMNS=31, STEPS=20, NODE_COLUMNS=columns))
        assert "the rim of 1:1, 1:1" in made.stderr
        for ranks in all_ranks:
            assert output(tmp_path / "example", ranks).split()[-1] == serial.stdout.split()[-1], ranks


@pytest.mark.parametrize("brackets", ["round", "square"])
def test_himeno_is_the_program_himeno_bit_by_bit(brackets, tmp_path):
    sizes = ("32", "32", "64")
    serial = subprocess.run([f"{BUILD}/bin/xmp_serial_apps", "himeno", *sizes, "3"], capture_output=True, text=True)
    for nodes, all_ranks in (((1, 1), (1, 3)), ((2, 1), (2,))):
        numbers = size(I=32, J=32, K=64, STEPS=3, NODES_J=nodes[0], NODES_K=nodes[1])
        made = example("himeno", brackets, tmp_path, numbers)
        assert "the rim of 1:1, 1:1, 1:1" in made.stderr
        for ranks in all_ranks:
            _, gosa, _, checksum = output(tmp_path / "example", ranks).split()
            assert checksum == serial.stdout.split()[-1], ranks
            assert float(gosa) == pytest.approx(6.229796e-03, rel=5e-4)


def example(name, brackets, folder, numbers):
    source = ROOT / "directives" / "examples" / f"{name}_{brackets}.c"
    include = f"-I{ROOT / 'directives' / 'runtime' / 'examples'}"
    made = tasuki_cc("--explain", *FLAGS, *WARNINGS, include, *numbers, source, "-o", folder / "example", "-lm")
    assert made.returncode == 0, made.stderr
    return made


@pytest.mark.parametrize("name, flag", [("laplace_xacc_round", "--openmp"), ("himeno_xacc_square", "--no-overlap")])
def test_openacc_runs_on_hosts(name, flag, tmp_path):
    source = Path(__file__).with_name("programs") / f"{name}.c"
    made = tasuki_cc(flag, *FLAGS, *WARNINGS, source, "-o", tmp_path / "translated", "-lm")
    assert (made.returncode, made.stderr) == (0, "")
    subprocess.run(["cc", "-w", *FLAGS, str(source), "-o", str(tmp_path / "plain"), "-lm"], check=True)
    plain = subprocess.run([str(tmp_path / "plain")], capture_output=True, text=True, check=True).stdout
    # Sums have another order.
    found = output(tmp_path / "translated", 2).split()
    assert float(found[-1]) == pytest.approx(float(plain.split()[-1]), rel=1e-3 if "himeno" in name else 1e-12)


def test_the_driver_of_an_external_suite(tmp_path):
    """One program that passes, one that fails, and one that is not understood."""
    body = "#pragma xmp nodes p[*]\nint xmp_num_nodes(void);\nint main(void) {\n%s\n}\n"
    (tmp_path / "good.c").write_text(body % "#pragma xmp barrier\n  return xmp_num_nodes() != 2;")
    (tmp_path / "bad.c").write_text(body % "#pragma xmp barrier\n  return 3;")
    (tmp_path / "odd.c").write_text(body % "#pragma xmp tasklet\n  return 0;")
    (tmp_path / "no_program.c").write_text("#pragma xmp nodes p[*]\n")
    (tmp_path / "Makefile").write_text("run:\n\tmpirun -np 2 ./good\n\tmpirun -n 1 ./bad\n")
    command = [sys.executable, str(Path(__file__).with_name("run_suite.py"))]
    run = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "XMP_SUITE": tmp_path}
    )
    assert run.returncode == 1
    assert "passed: good.c\n" in run.stdout
    assert "failed: bad.c: status 3" in run.stdout
    assert "not understood: odd.c: unknown directive ..." in run.stdout
    assert "1 of 3 passed" in run.stdout
