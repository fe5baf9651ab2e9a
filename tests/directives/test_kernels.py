"""Kernels of OpenACC's nests: as loops of the host they compute what plain C does, and nvcc takes them."""

import os
import shutil
import subprocess

import pytest
from running import BUILD, EXAMPLE_FLAGS, EXAMPLES, FLAGS, HERE, WARNINGS, output, size, started, tasuki_cc, translate

KERNELS = HERE / "kernels"
EMULATED = ["--device", "emulated", "-O0"]
HEAD = (
    "#pragma xmp nodes p[*]\n#pragma xmp template t[8]\n#pragma xmp distribute t[block] onto p\n"
    "static int a[8], b[8];\n#pragma xmp align [i] with t[i] :: a, b\n"
)

needs_runtime = pytest.mark.skipif(not BUILD, reason="XMP_RUNTIME names no build folder with the run-time library")


def case(*values, broad):
    return pytest.param(*values, marks=[pytest.mark.broad] if broad else [])


@needs_runtime
@pytest.mark.parametrize(
    "name, ranks",
    [
        case("nests_square", 3, broad=False),
        case("peeled_square", 3, broad=False),
        case("overlapped_round", 3, broad=False),
        case("reduced_square", 3, broad=False),
        case("tall_square", 2, broad=False),
        case("repeated_square", 3, broad=False),
        case("moved_square", 3, broad=False),
        *[case("nests_square", n, broad=True) for n in (1, 2, 5)],
        *[case("peeled_square", n, broad=True) for n in (1, 2, 5)],
        *[case("overlapped_round", n, broad=True) for n in (1, 2, 5)],
        *[case("reduced_square", n, broad=True) for n in (1, 2, 5)],
        *[case("tall_square", n, broad=True) for n in (1, 3, 5)],
        *[case("repeated_square", n, broad=True) for n in (1, 2, 5)],
        *[case("moved_square", n, broad=True) for n in (1, 2, 5)],
        *[case("data_round", n, broad=True) for n in (1, 2, 3, 5)],
    ],
)
def test_kernels_compute_what_plain_c_computes(name, ranks, programs):
    source = KERNELS / f"{name}.c"
    assert output(programs.translated(source, *EMULATED), ranks) == programs.plain(source)


def gpus():
    if shutil.which("nvidia-smi") is None:
        return 0
    listed = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True, check=False).stdout
    return len(listed.splitlines())


@pytest.mark.skipif(gpus() == 0, reason="there is no GPU")
@needs_runtime
@pytest.mark.broad
@pytest.mark.parametrize("name", sorted(path.stem for path in KERNELS.glob("*.c")))
def test_gpus_compute_what_plain_c_computes(name, tmp_path, programs):
    """One rank a GPU. With TASUKI_TEST_SHARED_GPUS, for use under MPS, two ranks may share one."""
    source, program = KERNELS / f"{name}.c", tmp_path / name
    made = tasuki_cc("--device", "gpu", "-arch=native", *FLAGS, source, "-o", program, "-lm")
    assert made.returncode == 0, made.stderr
    for ranks in (1, 2) if gpus() > 1 or os.environ.get("TASUKI_TEST_SHARED_GPUS") else (1,):
        assert output(program, ranks) == programs.plain(source), ranks


@needs_runtime
def test_an_object_holds_its_kernels(tmp_path, programs):
    """Compiled with -c, and linked by another call."""
    source = KERNELS / "data_round.c"
    made = tasuki_cc(*FLAGS, *EMULATED, *WARNINGS, source, "-c", "-o", tmp_path / "data.o")
    assert (made.returncode, made.stderr) == (0, "")
    libraries = [f"-L{BUILD}/lib", f"-Wl,-rpath,{BUILD}/lib", "-ltasuki_xmp", "-lstdc++", "-lm"]
    made = tasuki_cc(tmp_path / "data.o", "-o", tmp_path / "data", *libraries)
    assert (made.returncode, made.stderr) == (0, "")
    assert output(tmp_path / "data", 2) == programs.plain(source)


@needs_runtime
def test_what_is_not_on_the_gpu_is_told(tmp_path):
    (tmp_path / "absent.c").write_text(
        HEAD + "int main(void) {\n  int c[8] = {0}, *d = c;\n#pragma acc parallel loop\n"
        "  for (int i = 0; i < 8; i++) d[i] = 1;\n  return c[0];\n}\n"
    )
    made = tasuki_cc(*FLAGS, *EMULATED, tmp_path / "absent.c", "-o", tmp_path / "absent")
    assert (made.returncode, made.stderr) == (0, "")
    run = started(tmp_path / "absent", 1)
    assert run.returncode != 0
    assert "rank 0: 'd' is not on the GPU; name it in a data clause before" in run.stderr


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")
@needs_runtime
@pytest.mark.broad
def test_nvcc_compiles_the_kernels(tmp_path):
    made = tasuki_cc("--device", "gpu", *FLAGS, KERNELS / "nests_square.c", "-c", "-o", tmp_path / "nests.o")
    assert made.returncode == 0, made.stderr


DRIVER = """
#include <stdio.h>
#include "xacc_translated.h"
extern xacc_kernel tsk_kernel_nest_1;
int main(void) {
  int most = -1;
  const xacc_view views[1] = {{0}};
  tsk_kernel_nest_1((xmp_range[]){{0, 0, 1}}, views, NULL, NULL, (void*[]){&most}, XACC_SYNC, 0);
  printf("most %d\\n", most);
  return 0;
}
"""


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")
@needs_runtime
@pytest.mark.broad
def test_the_host_side_of_a_reduction_calls_only_what_the_host_has(tmp_path):
    """Without iterations nothing is launched, so that it runs without a GPU."""
    (tmp_path / "nest.c").write_text(
        HEAD + "int largest(void);\nint largest(void) {\n  int most = 0;\n#pragma xmp loop on t[i]\n"
        "#pragma acc parallel loop copyin(a) reduction(max : most)\n"
        "  for (int i = 0; i < 8; i++) most = a[i] > most ? a[i] : most;\n  return most;\n}\n"
    )
    (tmp_path / "driver.c").write_text(DRIVER)
    sources = tmp_path / "nest.c", tmp_path / "driver.c"
    made = tasuki_cc("--device", "gpu", *FLAGS, *sources, "-o", tmp_path / "program")
    assert made.returncode == 0, made.stderr
    run = subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=False, timeout=60)
    assert (run.returncode, run.stdout) == (0, "most -1\n"), run.stderr


SIZES = {"laplace": ({"ROWS": 29, "COLUMNS": 31}, 20), "himeno": ({"I": 17, "J": 18, "K": 35}, 3)}


def without_time(text):
    return text.split("a step")[1]


@needs_runtime
@pytest.mark.parametrize(
    "app, brackets, ranks",
    [
        case("laplace", "round", 3, broad=False),
        case("himeno", "square", 2, broad=False),
        case("laplace", "square", 2, broad=True),
        case("himeno", "round", 3, broad=True),
    ],
)
def test_xacc_examples_are_the_programs_bit_by_bit(app, brackets, ranks, programs):
    """And equal runs print equal sums, whose order the sizes alone decide."""
    sizes, steps = SIZES[app]
    flags = [*EMULATED, *EXAMPLE_FLAGS, *size(**sizes, STEPS=steps)]
    program = programs.translated(EXAMPLES / f"{app}_xacc_{brackets}.c", *flags)
    first = output(program, ranks)
    assert first.split()[-1] == programs.serial(app, *sizes.values(), steps)
    assert app == "laplace" or without_time(output(program, ranks)) == without_time(first)


def test_where_reductions_are_is_explained(tmp_path):
    nest = (
        "#pragma xmp loop on t[i] reduction(+ : s)\n#pragma acc parallel loop {} reduction(+ : s)\n"
        + NEST
        + "s += a[i];\n"
    )
    (tmp_path / "a.c").write_text(
        HEAD + "long f(long s) {\n" + nest.format("present(a, s)") + nest.format("") + "return s;}\n"
    )
    made = translate("--device", "emulated", "--explain", "--emit", tmp_path / "out", tmp_path / "a.c")
    assert made.returncode == 0, made.stderr
    assert "s is reduced on the GPU, in the queue" in made.stderr
    assert "s is reduced by the host, which waits: no 'present' or 'data' names it" in made.stderr
    text = (tmp_path / "out" / "a.c").read_text()
    assert text.count("xacc_reduction(") == text.count("xmp_reduction(") == 1


NEST = "  for (int i = 0; i < 8; i++) "
REFUSED = {
    "parallel loop tile(4)": (NEST + "a[i] = 1;", "'tile' of 'parallel loop' is not translated for GPUs"),
    "parallel loop if(a[0])": (NEST + "a[i] = 1;", "'if' of 'parallel loop' is not translated for GPUs"),
    "parallel loop": (NEST + "if (a[i]) break;", "this leaves the loop, whose iterations run in parallel"),
    "parallel loop gang": (NEST + "a[i] = f(i);", "'f' is no routine of the GPU"),
    "parallel loop collapse(2)": (
        NEST + "for (int j = 0; j < i; j++) c[j] = 1;",
        "the range of 'j' depends on a loop around it",
    ),
    "parallel": ("  {\n  c[0] = 1;\n  }", "this statement of 'parallel' has no loop directive"),
    "data copy(q)": ("  ;", "how much 'q' points to is not known"),
    "data no_create(a)": ("  ;", "'no_create' of 'data' is not translated for GPUs"),
    "parallel loop present(s) reduction(+ : s, n)": (NEST + "s += i, n++;", "'s' is on the GPU, and 'n' is not"),
    "parallel loop copy(s)": (NEST + "s += i;", "'s' is set by the nest, and in no reduction"),
}


@pytest.mark.parametrize("directive", REFUSED)
def test_what_is_not_translated_is_told_at_its_place(directive, tmp_path):
    statement, message = REFUSED[directive]
    (tmp_path / "a.c").write_text(
        HEAD + "static int f(int i) { return i; }\nint main(void) {\n  int c[8], s = f(0), n = 0, *q = c;\n"
        f"#pragma acc {directive}\n{statement}\n  return c[0] + s + n + q[0];\n}}\n"
    )
    made = translate("--device", "emulated", "--emit", tmp_path / "out", tmp_path / "a.c")
    assert made.returncode == 2
    assert f"error: {message}" in made.stderr
    assert "^" in made.stderr and "remedy: " in made.stderr
