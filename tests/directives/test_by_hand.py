"""The same problems without XcalableMP, in MPI with OpenACC and with CUDA: they compute what the programs from
directives compute, and the documentation's table has their lengths."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from running import BUILD, EXAMPLE_FLAGS, EXAMPLES, FLAGS, ROOT, WARNINGS, output, size
from test_kernels import SIZES, case, gpus, needs_runtime

sys.path.insert(0, str(ROOT / "tools"))

from lint import without_comments  # noqa: E402

BY_HAND = EXAMPLES / "by_hand"
FORMS = {
    "XcalableACC": "{}_xacc_square.c",
    "MPI + OpenACC": "by_hand/{}_mpi_acc.c",
    "MPI + CUDA": "by_hand/{}_mpi.cu",
}


def mpicc():
    """The compiler wrapper of the MPI that the run-time library was built with."""
    return re.search(r"^MPI_C_COMPILER:\w+=(.+)$", (Path(BUILD) / "CMakeCache.txt").read_text(), re.M)[1]


def flags_of(app):
    sizes, steps = SIZES[app]
    return [*EXAMPLE_FLAGS, *size(**sizes, STEPS=steps)]


def made(*command):
    run = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, timeout=240)
    assert run.returncode == 0, run.stderr


def with_cuda(app, *flags):
    # The wrapper knows where MPI is, but compiles C.
    options = ["-ccbin", mpicc(), "-O1", "--fmad=false", *flags_of(app), "-lstdc++"]
    made("nvcc", *options, *flags, BY_HAND / f"{app}_mpi.cu")


def results(printed):
    """The norm and the checksum."""
    _, norm, _, checksum = printed.split("a step")[1].split()
    return float(norm), checksum


def computes_the_same(program, app, ranks, programs):
    """As the program in C++, and, for the norm, as that from directives, which sums in another order."""
    sizes, steps = SIZES[app]
    norm, checksum = results(output(program, ranks))
    assert checksum == programs.serial(app, *sizes.values(), steps)
    directives = programs.translated(EXAMPLES / f"{app}_xacc_square.c", *flags_of(app))
    assert norm == pytest.approx(results(output(directives, ranks))[0], rel=0 if app == "laplace" else 1e-5)


@needs_runtime
@pytest.mark.parametrize("app, ranks", [case(app, ranks, broad=ranks != 2) for app in SIZES for ranks in (1, 2, 3)])
def test_openacc_by_hand_is_the_program_bit_by_bit(app, ranks, tmp_path, programs):
    """On hosts, where its directives are not read."""
    warnings = [*WARNINGS, "-Wno-unknown-pragmas"]
    source = BY_HAND / f"{app}_mpi_acc.c"
    made(mpicc(), *FLAGS, *warnings, *flags_of(app), source, "-o", tmp_path / app, "-lm")
    computes_the_same(tmp_path / app, app, ranks, programs)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")
@needs_runtime
@pytest.mark.broad
@pytest.mark.parametrize("app", SIZES)
def test_nvcc_compiles_cuda_by_hand(app, tmp_path):
    with_cuda(app, "-c", "-o", tmp_path / f"{app}.o")


@pytest.mark.skipif(gpus() == 0 or shutil.which("nvcc") is None, reason="there is no GPU, or no nvcc")
@needs_runtime
@pytest.mark.broad
@pytest.mark.parametrize("app", SIZES)
def test_cuda_by_hand_is_the_program_bit_by_bit(app, tmp_path, programs):
    """One rank, because an MPI that takes memory of the GPU is not everywhere."""
    with_cuda(app, "-arch=native", "-o", tmp_path / app)
    computes_the_same(tmp_path / app, app, 1, programs)


def test_the_documentation_tells_their_lengths():
    """In lines that are neither empty nor comments alone."""
    page = (ROOT / "docs" / "directives.md").read_text()
    for app in SIZES:
        texts = [(EXAMPLES / form.format(app)).read_text() for form in FORMS.values()]
        lengths = [len(without_comments(text).splitlines()) for text in texts]
        table = f"| lines | {' | '.join(FORMS)} |\n"
        rows = page.partition(table)[2].partition("\n\n")[0].splitlines()
        assert f"| {app.capitalize()} | {' | '.join(map(str, lengths))} |" in rows
