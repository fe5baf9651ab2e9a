"""Mirrored edges of fields on GPUs: beside exchanged and periodic dimensions, with and without a change of sign."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tasuki

# By the edges of dimension 1: how numpy.pad says the lower one, its sign, and the upper one.
SIDES: dict[str, tuple[Any, int, Any]] = {
    "-face/cell": ("symmetric", -1, "reflect"),
    "cell/face": ("reflect", 1, "symmetric"),
}


def padded(whole, edges):
    """What lies around a grid that is periodic in dimension 0."""
    below, sign, above = SIDES[edges]
    around = np.pad(whole, ((2, 2), (0, 0)), "wrap")
    low = sign * np.pad(around, ((0, 0), (2, 0)), below)[:, :2]
    high = np.pad(around, ((0, 0), (0, 2)), above)[:, -2:]
    return np.hstack([low, around, high])


@pytest.mark.parametrize("edges", SIDES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16"])
def test_mirrors_on_gpus(context, edges, dtype):
    n = context.size
    for split in ((n, 1), (1, n)):
        grid = tasuki.Grid(context, (5 * n + 1, 7 * n), split=split, periodic=(True, False))
        field = tasuki.Field(grid, dtype, shadow=2, memory="device", name="u")
        halo = tasuki.Halo(field, edges=f"j={edges}")
        assert tasuki.verify(halo)
        for step in range(3):
            whole = (np.arange(grid.shape[0] * grid.shape[1]).reshape(grid.shape) % 1000 + 7 * step + 1).astype(dtype)
            here = np.zeros(field.shape, dtype)
            here[field.local_box] = whole[field.box]
            field.upload(here)
            halo.run()
            around = tuple(slice(s.start, s.stop + 4) for s in field.box)
            np.testing.assert_array_equal(field.download(), padded(whole, edges)[around])
