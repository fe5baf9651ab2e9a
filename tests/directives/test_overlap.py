"""Which reflects are overlapped with the loop after them, and what is said of the others."""

import re

from test_generated import compiles, emit

SETUP = """#pragma xmp nodes p[*]
#pragma xmp template t[100][50]
#pragma xmp template c[100]
#pragma xmp distribute t[block][*] onto p
#pragma xmp distribute c[cyclic] onto p
static double a[100][50], b[100][50], d[100], list[100];
static int last;
#pragma xmp align [i][j] with t[i][j] :: a, b
#pragma xmp align d[i] with t[i][*]
#pragma xmp align list[i] with c[i]
#pragma xmp shadow a[2][0]
#pragma xmp shadow d[1]
double fabs(double);
static double own(double x) { return x; }
"""
NEST = "#pragma xmp loop on t[i][j]\n  for (int i = 2; i < 98; i++)\n    for (int j = 0; j < 50; j++) "
LINE = "#pragma xmp loop on t[i][*]\n  for (int i = 1; i < 99; i++) "
# What follows `reflect (a)`, and what is said.
CASES = [
    (NEST + "b[i][j] = a[i - 1][j] + a[i + 2][49 - j];", "overlapped: .*the rim of 1:2, 0:0"),
    ("#pragma xmp reflect (d)\n" + NEST + "b[i][j] = a[i][j] + d[i + 1];", "overlapped: .*the rim of 0:0, 0:0"),
    (NEST + "b[i][j] = a[i - 2][j];", "overlapped: .*the rim of 2:0, 0:0"),
    (NEST + "a[i][j] = a[i - 1][j];", "not overlapped: .*writes 'a'"),
    (NEST + "b[i][j] = own(a[i][j]);", "not overlapped: .*calls 'own'"),
    (
        NEST + "b[i][j] = a[last + i][j];",
        "not overlapped: 'i [+] last' in dimension 0 of 'a' is not at a fixed distance",
    ),
    (NEST + "b[i][j] = a[i][j] + **a;", "not overlapped: .*without an index for each dimension"),
    ("#pragma xmp barrier\n" + NEST + "b[i][j] = a[i][j];", "not overlapped: 'barrier' of line .* stands between"),
    ("last = 1;", "not overlapped: line .*, which follows, is no loop"),
    ("", "not overlapped: nothing follows it"),
    (
        "#pragma xmp loop on c[i]\n  for (int i = 0; i < 100; i++) list[i] = 1;",
        "not overlapped: template 'c' is cyclic",
    ),
    ("#pragma xmp loop on p[i]\n  for (int i = 0; i < 2; i++) last = 1;", "not overlapped: .*runs on nodes"),
    (LINE + "{\n#pragma xmp barrier\n  d[i] = 1;\n  }", "not overlapped: there are directives in"),
    (NEST.replace("t[i][j]", "t[i][j] expand[1][0]") + "a[i][j] = 0;", "not overlapped: .*has widths of its own"),
]


def test_each_pair_is_explained(tmp_path):
    functions = "".join(
        f"void f{n}(void) {{\n#pragma xmp reflect (a)\n{text}\n}}\n" for n, (text, _) in enumerate(CASES)
    )
    run, text = emit(tmp_path, SETUP + functions, "--explain")
    assert run.returncode == 0, run.stderr
    said = [line for line in run.stderr.splitlines() if re.search(r"reflect \(a\): (not )?overlapped", line)]
    assert len(said) == len(CASES)
    for (code, expected), line in zip(CASES, said):
        assert re.search(rf": {expected}", line), (code, line)
    assert compiles(tmp_path, "-Werror", "-Wno-unused-function").returncode == 0
    assert text.count("xmp_wait_async(2, ") == 1  # both reflects of the second function


def test_an_option_forbids_it(tmp_path):
    text = f"void f(void) {{\n#pragma xmp reflect (a)\n{CASES[0][0]}\n}}\n"
    run, out = emit(tmp_path, SETUP + text, "--explain", "--no-overlap")
    assert "--no-overlap forbids it" in run.stderr
    assert "xmp_reflect(1" in out and "async" not in out


# What follows `reflect (a) acc`, and what is said, where nests become kernels.
ACC = "#pragma acc parallel loop present(a, b)\n"
KERNELS = [
    ("reflect (a) acc", NEST.replace("  for", ACC + "  for", 1) + "b[i][j] = a[i - 1][j];", "overlapped: .*rim of 1:0"),
    (
        "reflect (a) acc",
        "#pragma acc wait(3)\n" + ACC + NEST.replace("    for", "#pragma acc loop\n    for") + "b[i][j] = a[i + 1][j];",
        "overlapped: .*the rim of 0:1, 0:0",
    ),
    ("reflect (a) acc", NEST + "b[i][j] = a[i - 1][j];", "not overlapped: it is on the GPU, and .* is the host's"),
    ("reflect (a)", ACC + NEST + "b[i][j] = a[i - 1][j];", "not overlapped: it is on the host, and .* is the GPU's"),
    (
        "reflect (a)",
        LINE + "{\n#pragma acc parallel loop\n  for (int j = 0; j < 50; j++) b[i][j] = 1;\n  }",
        "not overlapped: it is on the host, and .* is the GPU's",
    ),
    (
        "reflect (a) acc",
        "#pragma acc update self(a)\n" + ACC + NEST + "b[i][j] = a[i - 1][j];",
        "not overlapped: 'update' of line .* stands between",
    ),
    ("reflect (a) acc", ACC + NEST + "a[i][j] = a[i - 1][j];", "not overlapped: .*writes 'a'"),
]


def test_kernels_are_explained(tmp_path):
    functions = "".join(f"void f{n}(void) {{\n#pragma xmp {r}\n{text}\n}}\n" for n, (r, text, _) in enumerate(KERNELS))
    run, text = emit(tmp_path, SETUP + functions, "--explain", "--device", "emulated")
    assert run.returncode == 0, run.stderr
    said = [line for line in run.stderr.splitlines() if re.search(r"reflect \(a\)[ac ]*: (not )?overlapped", line)]
    assert len(said) == len(KERNELS)
    for (_, code, expected), line in zip(KERNELS, said):
        assert re.search(rf": {expected}", line), (code, line)
    # What is not on the GPU is told before anything travels.
    assert text.count('(void)xacc_view_of(&tsk_array_a, "a");') == text.count("xacc_reflect_beside(") == 2
    assert text.count("xacc_join();") == 2
    assert "xacc_reflect_beside" not in emit(tmp_path, SETUP + functions, "--no-overlap", "--device", "emulated")[1]
