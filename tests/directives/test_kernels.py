"""Kernels of OpenACC's nests: as loops of the host they compute what plain C does, and nvcc takes them."""

import shutil
import subprocess
from pathlib import Path

import pytest
from test_translated import BUILD, FLAGS, ROOT, WARNINGS, output, started, tasuki_cc

KERNELS = Path(__file__).with_name("kernels")
HEAD = (
    "#pragma xmp nodes p[*]\n#pragma xmp template t[8]\n#pragma xmp distribute t[block] onto p\n"
    "static int a[8], b[8];\n#pragma xmp align [i] with t[i] :: a, b\n"
)

needs_runtime = pytest.mark.skipif(not BUILD, reason="XMP_RUNTIME names no build folder with the run-time library")


@needs_runtime
@pytest.mark.parametrize("name, all_ranks", [("nests_square", (1, 3)), ("data_round", (2, 5))])
def test_kernels_compute_what_plain_c_computes(name, all_ranks, tmp_path):
    source = KERNELS / f"{name}.c"
    made = tasuki_cc("--device", "emulated", *FLAGS, *WARNINGS, source, "-o", tmp_path / "translated", "-lm")
    assert (made.returncode, made.stderr) == (0, "")
    subprocess.run(["cc", "-w", *FLAGS, str(source), "-o", str(tmp_path / "plain"), "-lm"], check=True)
    plain = subprocess.run([str(tmp_path / "plain")], capture_output=True, text=True, check=True).stdout
    assert plain
    for ranks in all_ranks:
        assert output(tmp_path / "translated", ranks) == plain, ranks


@needs_runtime
def test_equal_runs_give_equal_bits(tmp_path):
    """Sums are in an order that the sizes alone decide."""
    source = Path(__file__).with_name("programs") / "himeno_xacc_square.c"
    made = tasuki_cc("--device", "emulated", *FLAGS, *WARNINGS, source, "-c", "-o", tmp_path / "himeno.o")
    assert (made.returncode, made.stderr) == (0, "")
    libraries = [f"-L{BUILD}/lib", f"-Wl,-rpath,{BUILD}/lib", "-ltasuki_xmp", "-lstdc++", "-lm"]
    made = tasuki_cc(tmp_path / "himeno.o", "-o", tmp_path / "himeno", *libraries)
    assert (made.returncode, made.stderr) == (0, "")
    runs = {output(tmp_path / "himeno", 2) for _ in range(2)}
    assert len(runs) == 1
    assert float(runs.pop().split()[-1]) == pytest.approx(5.9694e-3, rel=1e-3)


@needs_runtime
def test_what_is_not_on_the_gpu_is_told(tmp_path):
    (tmp_path / "absent.c").write_text(
        HEAD + "int main(void) {\n  int c[8] = {0}, *d = c;\n#pragma acc parallel loop\n"
        "  for (int i = 0; i < 8; i++) d[i] = 1;\n  return c[0];\n}\n"
    )
    made = tasuki_cc("--device", "emulated", *FLAGS, tmp_path / "absent.c", "-o", tmp_path / "absent")
    assert (made.returncode, made.stderr) == (0, "")
    run = started(tmp_path / "absent", 1)
    assert run.returncode != 0
    assert "rank 0: 'd' is not on the GPU; name it in a data clause before" in run.stderr


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")
@needs_runtime
def test_nvcc_compiles_the_kernels(tmp_path):
    made = tasuki_cc("--device", "gpu", *FLAGS, KERNELS / "nests_square.c", "-c", "-o", tmp_path / "nests.o")
    assert made.returncode == 0, made.stderr


@needs_runtime
@pytest.mark.parametrize("brackets, ranks", [("round", 3), ("square", 2)])
def test_xacc_examples_are_the_programs_bit_by_bit(brackets, ranks, tmp_path):
    for name, sizes, steps in (
        ("laplace", {"ROWS": 29, "COLUMNS": 31}, 20),
        ("himeno", {"I": 17, "J": 18, "K": 35}, 3),
    ):
        numbers = [str(n) for n in (*sizes.values(), steps)]
        serial = subprocess.run([f"{BUILD}/bin/xmp_serial_apps", name, *numbers], capture_output=True, text=True)
        flags = [f"-D{key}={value}" for key, value in {**sizes, "STEPS": steps}.items()]
        source = ROOT / "directives" / "examples" / f"{name}_xacc_{brackets}.c"
        include = f"-I{ROOT / 'directives' / 'runtime' / 'examples'}"
        target = tmp_path / name
        made = tasuki_cc("--device", "emulated", *FLAGS, *WARNINGS, include, *flags, source, "-o", target, "-lm")
        assert (made.returncode, made.stderr) == (0, "")
        assert output(target, ranks).split()[-1] == serial.stdout.split()[-1], name


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
    "parallel loop copy(s)": (NEST + "s += i;", "'s' is set by the nest, and in no reduction"),
}


@pytest.mark.parametrize("directive", REFUSED)
def test_what_is_not_translated_is_told_at_its_place(directive, tmp_path):
    statement, message = REFUSED[directive]
    (tmp_path / "a.c").write_text(
        HEAD + "static int f(int i) { return i; }\nint main(void) {\n  int c[8], s = f(0), *q = c;\n"
        f"#pragma acc {directive}\n{statement}\n  return c[0] + s + q[0];\n}}\n"
    )
    made = tasuki_cc("--device", "emulated", "--emit", tmp_path / "out", tmp_path / "a.c")
    assert made.returncode == 2
    assert f"error: {message}" in made.stderr
    assert "^" in made.stderr and "remedy: " in made.stderr
