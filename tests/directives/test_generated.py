"""The C that is generated: what stays as it is, where #line leads, and what cannot be translated."""

import re
import subprocess
import time

import pytest
from running import ROOT, translate

INCLUDE = ROOT / "directives" / "runtime" / "include"
SETUP = """#pragma xmp nodes p(*)
#pragma xmp template t(0:99)
#pragma xmp distribute t(block) onto p
static double a[100], b[100];
#pragma xmp align [i] with t(i) :: a, b
#pragma xmp shadow a[1]
"""


def emit(folder, text, *flags, name="a.c"):
    """tasuki-cc --emit: the run, and the generated text."""
    (folder / name).write_text(text)
    run = translate("--emit", folder / "out", *flags, folder / name)
    out = folder / "out" / name
    return run, out.read_text() if out.exists() else ""


def compiles(folder, *flags):
    command = ["cc", "-std=gnu11", "-fsyntax-only", "-Wall", "-Wextra", "-fopenmp-simd", f"-I{INCLUDE}", *flags]
    return subprocess.run([*command, str(folder / "out" / "a.c")], capture_output=True, text=True, check=False)


def test_what_is_not_touched_stays(tmp_path):
    body = '  /* an odd   comment */ int  odd=3 ;\n  const char* text = "#pragma xmp barrier";\n'
    run, text = emit(tmp_path, SETUP + "int main(void) {\n" + body + "#pragma xmp barrier\n  return odd + !text;\n}\n")
    assert run.returncode == 0, run.stderr
    assert body in text
    assert "  return odd + !text;\n" in text
    assert "#pragma" not in text.replace('"#pragma xmp barrier"', "")
    assert compiles(tmp_path, "-Werror").returncode == 0


@pytest.mark.parametrize("directive", ["post(p[0], 1)", "wait(p[0], 1)", "barrier"])
def test_errors_of_what_communicates_name_its_line(directive, tmp_path):
    run, text = emit(tmp_path, f"#pragma xmp nodes p[*]\nint main(void) {{\n#pragma xmp {directive}\n  return 0;\n}}\n")
    assert run.returncode == 0, run.stderr
    (line,) = [one for one in text.splitlines() if f"xmp_{directive.split('(')[0]}(" in one]
    assert "xmp_at(" in line and 'a.c:3");' in line


def test_line_directives_lead_back(tmp_path):
    source = SETUP + (
        "int main(void) {\n#pragma xmp loop on t(i)\n  for (int i = 0; i < 100; i++)\n    a[i] = wrong_here;\n"
        "#pragma xmp reflect (a)\n  return wrong_there;\n}\nint after = wrong_after;\n"
    )
    run, _ = emit(tmp_path, source.replace("wrong_", "right_"))  # which libclang refuses: it is not declared
    assert run.returncode == 2
    source = source.replace("wrong_here", "sizeof(int[(int)-1 + 0 * __LINE__])").replace("wrong_there", "__LINE__")
    run, text = emit(
        tmp_path, source.replace("sizeof(int[(int)-1 + 0 * __LINE__])", "__LINE__").replace("wrong_after", "__LINE__")
    )
    assert run.returncode == 0, run.stderr
    # The compiler's own count, where the source has it.
    preprocessed = subprocess.run(
        ["cc", "-E", "-P", f"-I{INCLUDE}", str(tmp_path / "out" / "a.c")], capture_output=True, text=True, check=True
    ).stdout
    lines = (tmp_path / "a.c").read_text().split("\n")
    wanted = [n for n, line in enumerate(lines, 1) if "__LINE__" in line]
    found = [int(n) for n in re.findall(r"(?:a\[i\] =|return|int after =) (\d+);", preprocessed)]
    assert found == wanted


def test_atomic_is_openmps_where_loops_are(tmp_path):
    source = (
        "int main(void) {\n  static int counts[7];\n#pragma acc parallel loop\n  for (int i = 0; i < 100; i++) {\n"
        "#pragma acc atomic\n    counts[i % 7]++;\n#pragma acc atomic update\n    counts[0] += i;\n  }\n"
        "  return counts[1] != 15;\n}\n"
    )
    run, text = emit(tmp_path, source, "--openmp")
    assert run.returncode == 0, run.stderr
    statements = [line.strip() for line in text.splitlines() if not line.startswith("#line")]
    assert statements[statements.index("counts[i % 7]++;") - 1] == "#pragma omp atomic"
    assert statements[statements.index("counts[0] += i;") - 1] == "#pragma omp atomic update"
    assert compiles(tmp_path, "-fopenmp", "-Werror").returncode == 0
    run, text = emit(tmp_path, source)
    assert run.returncode == 0 and "omp" not in text


def test_each_iteration_has_its_own_scalars_on_hosts_too(tmp_path):
    nest = (
        "  for (i = 0; i < 9; i++) {\n    t = 2 * i;\n    for (j = 0; j < t; j++) a[i] += sum;\n    sum += a[i];\n  }\n"
    )
    whole = SETUP + "int main(void) {\n  int i, j, t;\n  double sum = 1;\n{}" + nest + "  return (int)sum;\n}\n"
    run, text = emit(tmp_path, whole.replace("{}", "#pragma acc parallel loop reduction(+ : sum)\n"), "--openmp")
    assert run.returncode == 0, run.stderr
    assert "#pragma omp parallel for reduction(+ : sum) firstprivate(t, j)\n" in text
    assert compiles(tmp_path, "-fopenmp", "-Werror").returncode == 0
    told = "#pragma xmp loop on t(i) reduction(+ : sum)\n#pragma acc parallel loop\n"
    run, text = emit(tmp_path, whole.replace("{}", told), "--openmp")
    assert run.returncode == 2
    assert "'sum' is in a reduction of 'loop', and in none of 'parallel loop'" in run.stderr


CANNOT = {
    "gmove in": ("#pragma xmp gmove in\n  a[0:3] = b[0:3];", "gmove in does not exist in the run-time library"),
    "a step down": (
        "#pragma xmp loop on t(i)\n  for (int i = 99; i >= 0; i -= 2) a[i] = 1;",
        "the condition of this for statement is none that a directive can divide",
    ),
    "a pointer": ("double* x = 0;\n#pragma xmp bcast (x)\n  (void)x;", "'x' is a pointer"),
    "an aligned array": ("#pragma xmp bcast (b)\n", "'b' is an aligned array, and not a variable"),
    "initial values": (
        "double c[100] = {1};\n#pragma xmp align c[i] with t(i)\n",
        "'c' is distributed, and cannot be initialised here",
    ),
    "sizeof": ("return (int)sizeof(b);", "'b' is distributed: a node has a part of it, and sizeof would take it"),
    "a call": ('printf("%p", (void*)b);', "a node has a part of it, and 'printf' would take it"),
    "array beyond": (
        "#pragma xmp array on t(:)\n  a[0:9] = b[1:9];",
        "the section leaves the shadow of 'b' in dimension 0, by 1",
    ),
    "array far": ("#pragma xmp array on t(:)\n  a[0:9] = b[0:9:2];", "dimension 0 of 'b' is not known to lie where"),
    "array on both sides": ("#pragma xmp array on t(:)\n  a[0:9] = a[1:9];", "'a' stands on both sides"),
}


@pytest.mark.parametrize("what", CANNOT)
def test_what_cannot_be_translated_is_an_error(what, tmp_path):
    text, message = CANNOT[what]
    run, _ = emit(tmp_path, "#include <stdio.h>\n" + SETUP + "int main(void) {\n" + text + "\n  return 0;\n}\n")
    assert run.returncode == 2
    assert message in run.stderr
    assert re.search(r"a\.c:\d+:\d+: error: .*\n.*\n +\^.*\n +remedy: ", run.stderr)


def test_a_thousand_lines_take_a_second(tmp_path):
    loop = (
        "  for (int step = 0; step < 3; step++) {\n#pragma xmp reflect (a)\n#pragma xmp loop on t(i)\n"
        "    for (int i = 1; i < 99; i++)\n      b[i] = 0.5 * (a[i - 1] + a[i + 1]);\n  }\n"
    )
    functions = "".join(f"void f{n}(void) {{\n{loop * 4}}}\n" for n in range(39))
    start = time.perf_counter()
    run, text = emit(tmp_path, SETUP + functions)
    print(f"{len(text.split(chr(10)))} lines in {time.perf_counter() - start:.2f} s")
    assert run.returncode == 0, run.stderr
    assert text.count("xmp_reflect") == 156
