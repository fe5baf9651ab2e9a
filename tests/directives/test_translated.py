"""Translated programs: they print what the same source prints as plain C, on any number of ranks."""

import os
import re
import subprocess
import sys

import pytest
from running import BUILD, EXAMPLE_FLAGS, EXAMPLES, FLAGS, HERE, WARNINGS, output, size, started, tasuki_cc

PROGRAMS = HERE / "translated"
RANKS = (1, 2, 3, 5)
# Ranks that are in `make test`; the others are broad.
SHARE = {
    "arrays_round": (5,),
    "work_square": (3,),
    "widths": (2,),
    "sections": (3,),
    "placed": (2,),
    "dealt_round": (3,),
    "rims_square": (1, 2),
    "own_nodes": (5,),
    "ring_round": (2,),
    "ring_square": (3,),
    "matrix_round": (5,),
    "matrix_square": (2,),
    "relax_round": (3,),
    "relax_square": (2,),
}

pytestmark = pytest.mark.skipif(not BUILD, reason="XMP_RUNTIME names no build folder with the run-time library")


def case(*values, broad):
    return pytest.param(*values, marks=[pytest.mark.broad] if broad else [])


@pytest.mark.parametrize(
    "name, ranks", [case(name, n, broad=n not in share) for name, share in SHARE.items() for n in RANKS]
)
def test_programs_print_what_plain_c_prints(name, ranks, programs):
    source = PROGRAMS / f"{name}.c"
    # What only several nodes do has no plain C: the program counts what is wrong.
    expected = "wrong: 0\n" if name == "own_nodes" else programs.plain(source)
    assert output(programs.translated(source), ranks) == expected


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


def test_references_that_leave_the_shadow_are_told_when_run(tmp_path):
    """Those that no translation can know."""
    (tmp_path / "far.c").write_text(
        "#include <stdlib.h>\n#pragma xmp nodes p[*]\n#pragma xmp template t[12]\n"
        "#pragma xmp distribute t[block] onto p\nstatic int a[12], b[12];\n"
        "#pragma xmp align [i] with t[i] :: a, b\n#pragma xmp shadow a[1]\n"
        'int main(void) {\n  const int far = atoi(getenv("FAR"));\n'
        "#pragma xmp loop on t[i]\n  for (int i = 0; i < 12; i++) a[i] = i;\n#pragma xmp reflect (a)\n"
        "#pragma xmp loop on t[i]\n  for (int i = 0; i < 9; i++)\n    b[i] = a[i + far * far];\n  return 0;\n}\n"
    )
    made = tasuki_cc("--check", *FLAGS, *WARNINGS, tmp_path / "far.c", "-o", tmp_path / "far")
    assert (made.returncode, made.stderr) == (0, "")
    assert started(tmp_path / "far", 2, FAR="1").returncode == 0
    run = started(tmp_path / "far", 2, FAR="2")
    assert run.returncode != 0
    told = (
        r"far\.c:15: error: rank 0: 'a' has no element 7 in dimension 0 here; this node has -?\d+ to 6, shadow included"
    )
    assert re.search(told, run.stderr) and "remedy: widen the shadow" in run.stderr, run.stderr


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


@pytest.mark.parametrize(
    "brackets, columns, ranks",
    [
        case(b, c, n, broad=(b, n) not in (("round", 3), ("square", 2)))
        for b in ("round", "square")
        for c, n in ((1, 1), (1, 3), (1, 5), (2, 2))
    ],
)
def test_laplace_is_the_program_laplace_bit_by_bit(brackets, columns, ranks, programs):
    source = EXAMPLES / f"laplace_{brackets}.c"
    flags = ["--explain", *EXAMPLE_FLAGS, *size(ROWS=29, COLUMNS=31, STEPS=20, NODE_COLUMNS=columns)]
    assert "the rim of 1:1, 1:1" in programs.said(source, *flags)
    assert output(programs.translated(source, *flags), ranks).split()[-1] == programs.serial("laplace", 29, 31, 20)


@pytest.mark.parametrize(
    "brackets, nodes, ranks",
    [
        case(b, p, n, broad=(b, n) not in (("round", 2), ("square", 3)))
        for b in ("round", "square")
        for p, n in (((1, 1), 1), ((1, 1), 3), ((2, 1), 2))
    ],
)
def test_himeno_is_the_program_himeno_bit_by_bit(brackets, nodes, ranks, programs):
    source = EXAMPLES / f"himeno_{brackets}.c"
    numbers = size(I=32, J=32, K=64, STEPS=3, NODES_J=nodes[0], NODES_K=nodes[1])
    flags = ["--explain", *EXAMPLE_FLAGS, *numbers]
    assert "the rim of 1:1, 1:1, 1:1" in programs.said(source, *flags)
    words = output(programs.translated(source, *flags), ranks).split()
    gosa = words[words.index("gosa") + 1]
    assert words[-1] == programs.serial("himeno", 32, 32, 64, 3)
    assert float(gosa) == pytest.approx(6.229796e-03, rel=5e-4)


@pytest.mark.parametrize(
    "name, flag",
    [case("laplace_xacc_round", "--openmp", broad=False), case("himeno_xacc_square", "--no-overlap", broad=True)],
)
def test_openacc_runs_on_hosts(name, flag, programs):
    source = HERE / "programs" / f"{name}.c"
    # Sums have another order.
    found, plain = (
        float(text.split()[-1]) for text in (output(programs.translated(source, flag), 2), programs.plain(source))
    )
    assert found == pytest.approx(plain, rel=1e-3 if "himeno" in name else 1e-12)


def test_the_driver_of_an_external_suite(tmp_path):
    """One program that passes, one that fails, and one that is not understood."""
    body = "#pragma xmp nodes p[*]\nint xmp_num_nodes(void);\nint main(void) {\n%s\n}\n"
    (tmp_path / "good.c").write_text(body % "#pragma xmp barrier\n  return xmp_num_nodes() != 2;")
    (tmp_path / "bad.c").write_text(body % "#pragma xmp barrier\n  return 3;")
    (tmp_path / "odd.c").write_text(body % "#pragma xmp tasklet\n  return 0;")
    (tmp_path / "no_program.c").write_text("#pragma xmp nodes p[*]\n")
    (tmp_path / "Makefile").write_text("run:\n\tmpirun -np 2 ./good\n\tmpirun -n 1 ./bad\n")
    command = [sys.executable, str(HERE / "run_suite.py")]
    run = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "XMP_SUITE": tmp_path}
    )
    assert run.returncode == 1
    assert "passed: good.c\n" in run.stdout
    assert "failed: bad.c: status 3" in run.stdout
    assert "not understood: odd.c: unknown directive ..." in run.stdout
    assert "1 of 3 passed" in run.stdout
