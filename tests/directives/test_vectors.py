"""Which innermost loops may run as vectors, what is said of the others, and that both compute the same."""

import re

import pytest
from test_generated import compiles, emit

SETUP = """#pragma xmp nodes p[*]
#pragma xmp template t[60][50]
#pragma xmp template c[60]
#pragma xmp distribute t[block][*] onto p
#pragma xmp distribute c[cyclic] onto p
static double a[60][50], b[60][50], list[60];
static double plain[50], outside;
static int order[50];
#pragma xmp align [i][j] with t[i][j] :: a, b
#pragma xmp align list[i] with c[i]
#pragma xmp shadow a[1][0]
double fabs(double), fmax(double, double);
static double own(double x) { return x; }
"""
LOOP = "  for (int i = 1; i < 59; i++)\n    for (int j = 1; j < 49; j++) "
# Reductions, the body, and what is said of the inner loop.
CASES = [
    ("", "b[i][j] = a[i - 1][j] + a[i][j + 1];", "may be vectors: omp simd$"),
    ("", "b[i][j] = 2 * b[i][j] + plain[j];", "may be vectors"),
    ("", "{ const double x = a[i][j]; b[i][j] = x > 1 ? x : fabs(x); }", "may be vectors"),
    ("+ : s", "s += a[i][j] * b[i][j];", r"omp simd reduction\(\+ : s\)"),
    ("+ : s", "{ if (a[i][j] > 1) s -= a[i][j]; }", r"omp simd reduction\(\+ : s\)"),
    ("* : s", "s *= a[i][j];", r"omp simd reduction\(\* : s\)"),
    ("^ : n", "n ^= (long)a[i][j];", r"omp simd reduction\(\^ : n\)"),
    ("max : s", "{ const double x = a[i][j]; s = x > s ? x : s; }", r"omp simd reduction\(max : s\)"),
    ("min : s", "{ const double x = a[i][j]; s = (s <= x) ? s : x; }", r"omp simd reduction\(min : s\)"),
    ("max : s", "{ const double x = a[i][j]; if (x > s) s = x; }", r"omp simd reduction\(max : s\)"),
    ("", "{ one = a[i][j]; b[i][j] = one * one; }", r"omp simd private\(one\)"),
    ("", "{ b[i][j] = one; one = a[i][j]; }", "keeps its order: it sets 'one'"),
    ("", "{ s = a[i][j]; b[i][j] = s; }", "keeps its order: it sets 's'"),  # is used after it
    ("", "{ outside = a[i][j]; b[i][j] = outside; }", "keeps its order: it sets 'outside'"),
    ("", "b[i][j] = b[i][j - 1] + 1;", "keeps its order: an iteration may need elements of 'b'"),
    ("", "b[i][1] = a[i][j];", "keeps its order: an iteration may need elements of 'b'"),
    ("", "b[i][j] = a[i][49 - j];", "keeps its order: elements of 'a' are not adjacent"),
    ("", "b[i][j] = plain[order[j]];", "keeps its order: elements of 'plain' are not adjacent"),
    ("", "b[i][j] = pointer[j];", "keeps its order: 'pointer' may share memory"),
    ("", "b[i][j] = *pointer;", "keeps its order: it takes addresses, or follows them"),
    ("", "b[i][j] = own(a[i][j]);", "keeps its order: it calls 'own'"),
    ("max : s", "s = fmax(s, a[i][j]);", r"compilers have no vectors for 'fmax'; write v = x > v \? x : v"),
    ("+ : s", "b[i][j] = s += a[i][j];", r"keeps its order: it does not only combine 's' by \+"),
    ("+ : s", "{ s += a[i][j]; b[i][j] = s; }", r"keeps its order: it does not only combine 's' by \+"),
    ("max : s", "{ const double x = a[i][j]; s = x < s ? x : s; }", "it does not only combine 's' by max"),
    ("", "{ if (a[i][j] > 5) break; b[i][j] = 1; }", "keeps its order: a jump leaves it"),
    ("", "{ j++; b[i][j] = 1; }", "keeps its order: it sets 'j'"),
    ("", "plain[j] += a[i][j];", "keeps its order: it sets 'plain'"),
]


def function(n, reduction, body):
    clause = f" reduction({reduction})" if reduction else ""
    return (
        f"double f{n}(double *pointer) {{\n  double s = 1, one;\n  long n = 0;\n  (void)pointer;\n"
        f"#pragma xmp loop on t[i][j]{clause}\n{LOOP}{body}\n  return s + n;\n}}\n"
    )


def test_each_loop_is_explained(tmp_path):
    functions = "".join(function(n, reduction, body) for n, (reduction, body, _) in enumerate(CASES))
    run, text = emit(tmp_path, SETUP + functions, "--explain")
    assert run.returncode == 0, run.stderr
    said = [line for line in run.stderr.splitlines() if re.search("may be vectors|keeps its order", line)]
    assert len(said) == len(CASES)
    for (_, code, expected), line in zip(CASES, said):
        assert re.search(expected, line), (code, line)
    assert text.count('_Pragma("omp simd') == sum("may be" in line for line in said)
    done = compiles(tmp_path, "-Werror", "-Wno-unused-function", "-Wno-unused-variable", "-Wno-uninitialized")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("option", ["--no-simd", "--check"])
def test_options_forbid_it(option, tmp_path):
    run, text = emit(tmp_path, SETUP + function(0, *CASES[3][:2]), option)
    assert run.returncode == 0, run.stderr
    assert "simd" not in text


def test_what_openmp_and_kernels_run_is_left_alone(tmp_path):
    acc = function(0, *CASES[0][:2]).replace(LOOP, "#pragma acc parallel loop collapse(2)\n" + LOOP)
    omp = function(0, *CASES[0][:2]).replace(LOOP, "#pragma omp parallel for\n" + LOOP)
    inner = function(0, "", "b[i][j] = 1;").replace("    for", "#pragma acc parallel loop\n    for")
    nests = [(text, option) for text in (acc, inner) for option in ("--openmp", "--device=emulated")]
    for text, option in (*nests, (omp, "--no-overlap")):
        run, out = emit(tmp_path, SETUP + text, *option.split("="))
        assert run.returncode == 0, run.stderr
        assert "simd" not in out


def test_a_cyclic_array_is_left_alone(tmp_path):
    body = "double f(void) {\n#pragma xmp loop on c[i]\n  for (int i = 0; i < 60; i++) list[i] = 1;\n  return 0;\n}\n"
    run, text = emit(tmp_path, SETUP + body, "--explain")
    assert run.returncode == 0, run.stderr
    assert "simd" not in text and "keeps its order" in run.stderr
