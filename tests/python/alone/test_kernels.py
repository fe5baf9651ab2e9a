"""Kernels of CuPy as far as they can be seen without a GPU: headers, sizes as NVRTC has them, the documentation."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

import tasuki

ROOT = Path(__file__).resolve().parents[3]


def test_the_headers_are_there():
    folder = Path(tasuki.get_include()) / "tasuki"
    for name in ("kernel.cuh", "kernel/plan.cuh", "kernel/messages.cuh", "dtype.hpp"):
        assert (folder / name).is_file()


def test_an_incomplete_installation_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr("tasuki.kernels.__file__", str(tmp_path / "kernels.py"))
    with pytest.raises(tasuki.Error, match="get_include: .*include has no tasuki/kernel.cuh"):
        tasuki.get_include()


def test_structs_have_the_same_size_for_nvrtc(run):
    """What Python gives has as many bytes as a kernel takes."""
    spec = importlib.util.spec_from_file_location("nvrtc", ROOT / "tests" / "kernel" / "nvrtc.py")
    assert spec and spec.loader
    nvrtc = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(nvrtc)
    libraries = nvrtc.libraries()
    if not libraries:
        pytest.skip("there is no NVRTC: neither the package nvidia-cuda-nvrtc nor a CUDA toolkit")
    status, text = run(
        1,
        """
        import numpy as np
        import tasuki
        context = tasuki.Context()
        halo = tasuki.Halo(tasuki.Field(tasuki.Grid(context, (8,))))
        total = tasuki.Allreduce(context, tasuki.in_place, np.zeros(3))
        team, messages = tasuki.KernelTeam(context), tasuki.Messages(context)
        shape = tasuki.MessageLayout(context, tasuki.Layout.bytes(3))
        blocks = tasuki.BlockNeighbours(context, [[1], [0]])
        made = (halo.device(), total.device_reducing(), team.device(), messages.device(), shape.device())
        for one in (*made, blocks.device()):
            print("size of", one.kind, one.nbytes)
        """,
    )
    sizes = re.findall(r"^size of (\w+) (\d+)$", text, re.M)
    assert status == 0 and len(sizes) == 6, text
    source = "#include <tasuki/kernel.cuh>\n"
    source += "".join(f"static_assert(sizeof(tasuki::device::{kind}) == {size});\n" for kind, size in sizes)
    for library in libraries:
        ptx, log = nvrtc.compile_for(library, source + 'extern "C" __global__ void kernel() {}\n', "90")
        assert ".entry kernel(" in ptx and not log, log


def test_the_options_are_those_that_nvrtc_is_tried_with():
    options = 'options=("--std=c++20", f"-I{tasuki.get_include()}")'
    assert options in (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    assert options in (tasuki.get_include.__doc__ or "")
    assert options in (ROOT / "tests" / "python" / "gpu" / "test_launches.py").read_text(encoding="utf-8")
    nvrtc = (ROOT / "tests" / "kernel" / "nvrtc.py").read_text(encoding="utf-8")
    assert 'DOCUMENTED = ("--std=c++20", "-I{tasuki.get_include()}")' in nvrtc


def test_the_pages_pieces_are_those_of_the_example():
    """They run where there are GPUs (test_package.py)."""
    pieces = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "docs" / "kernels.md").read_text(encoding="utf-8"), re.M | re.S
    )
    example = [line.strip() for line in (ROOT / "examples" / "heat_kernel.py").read_text(encoding="utf-8").splitlines()]
    assert pieces
    for piece in pieces:
        wanted = [line.strip() for line in piece.splitlines()]
        assert any(example[at : at + len(wanted)] == wanted for at in range(len(example))), piece
