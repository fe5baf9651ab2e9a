"""Halos with mirrored edges: random ones against a serial model made by numpy.pad, and what wrong ones are told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tasuki

MODES: dict[str, Any] = {"none": None, "face": "symmetric", "cell": "reflect", "periodic": "wrap"}


def padded_side(whole, axis, side, width, word):
    """The cells that lie outside `whole` on one side of an axis; NaN: nobody fills them."""
    mode = MODES[word.lstrip("-")]
    pads = [(0, 0)] * whole.ndim
    pads[axis] = (width, 0) if side == 0 else (0, width)
    outside = [slice(None)] * whole.ndim
    outside[axis] = slice(0, width) if side == 0 else slice(whole.shape[axis], None)
    if mode is None or width == 0:
        return np.pad(whole, pads, constant_values=np.nan)[tuple(outside)]
    return np.pad(whole, pads, mode=mode)[tuple(outside)] * (-1 if word[0] == "-" else 1)


def padded(whole, widths, words):
    """The whole grid with everything around it, a dimension after the other."""
    for axis, ((below, above), (low, high)) in enumerate(zip(widths, words)):
        sides = padded_side(whole, axis, 0, below, low), padded_side(whole, axis, 1, above, high)
        whole = np.concatenate([sides[0], whole, sides[1]], axis)
    return whole


def expected(whole, field, widths, words, corners):
    """What the rank's array holds afterwards; NaN: what was there."""
    array = np.full(field.array.shape, np.nan)
    if field.owned.size == 0:
        return array
    around = padded(whole, widths, words)
    box, shadow = field.box, field.shadow
    here = tuple(slice(s.start, s.stop + low + high) for s, (low, high) in zip(box, widths))
    there = tuple(slice(s[0] - w[0], s[0] + (b.stop - b.start) + w[1]) for b, s, w in zip(box, shadow, widths))
    array[there] = around[here]
    outside = np.zeros(array.shape, int)
    for axis, (b, s) in enumerate(zip(box, shadow)):
        beside = np.ones(array.shape[axis], int)
        beside[s[0] : s[0] + b.stop - b.start] = 0
        outside += beside.reshape([-1 if d == axis else 1 for d in range(array.ndim)])
    if not corners:
        array[outside > 1] = np.nan
    return array


def random_split(ranks, dims, random):
    split = [1] * dims
    for factor in (2, 2, 3, 5):
        if ranks % factor == 0:
            split[random.integers(dims)] *= factor
            ranks //= factor
    return split


def random_field(grid, extents, periodic, random, name):
    words, widths = [], []
    for n, wraps in zip(extents, periodic):
        sides = (
            ["periodic"] * 2
            if wraps
            else [str(random.choice(["none", "face", "cell", "-face", "-cell"])) for _ in "ab"]
        )
        most = [{"face": n, "cell": n - 1}.get(word.lstrip("-"), 3) for word in sides]
        widths.append(tuple(int(random.integers(min(3, m) + 1)) for m in most))
        words.append(sides)
    shadow = [(low + int(random.integers(2)), high + int(random.integers(2))) for low, high in widths]
    field = tasuki.Field(grid, random.choice(["float64", "float32"]), shadow=shadow, name=name)
    entries = [f"{'ijk'[d]}={low}/{high}" for d, (low, high) in enumerate(words) if low != "periodic"]
    return field, widths, words, f"{name}: {', '.join(entries)}" if entries else ""


@pytest.mark.parametrize("seed", range(20))
def test_random_halos_with_edges(context, seed):
    random = np.random.default_rng(seed)
    dims = int(random.integers(1, 4))
    extents = [int(random.integers(2, 8)) for _ in range(dims)]
    periodic = [bool(random.integers(3) == 0) for _ in range(dims)]
    grid = tasuki.Grid(context, extents, split=random_split(context.size, dims, random), periodic=periodic)
    made = [random_field(grid, extents, periodic, random, name) for name in "uvw"[: random.integers(1, 4)]]
    corners = bool(random.integers(3))
    halo = tasuki.Halo(
        [(field, widths) for field, widths, _, _ in made],
        edges="; ".join(text for *_, text in made if text),
        corners=corners,
        engine=["inline", "thread"][seed % 2],
        path=["auto", "mpi", "shared:eager,mpi", "shared:pull,mpi"][seed % 4] if context.size > 1 else "auto",
    )
    assert tasuki.verify(halo)
    for _ in range(3):
        wholes = [random.integers(1, 1000, extents).astype(float) for _ in made]
        for (field, *_), whole in zip(made, wholes):
            field.array[...] = -5000
            field.owned[...] = whole[field.box]
        halo.run()
        for (field, widths, words, _), whole in zip(made, wholes):
            model = expected(whole, field, widths, words, corners)
            np.testing.assert_array_equal(field.array, np.where(np.isnan(model), -5000, model))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "float16", "float32", "complex64", "complex128"])
def test_signs_of_all_numbers_that_have_one(context, dtype):
    grid = tasuki.Grid(context, (3 * context.size,), split=(context.size,))
    field = tasuki.Field(grid, dtype, shadow=2)
    values = np.arange(1, 3 * context.size + 1).astype(dtype)
    if dtype.startswith("complex"):
        values += 2j
    field.owned[...] = values[field.box]
    halo = tasuki.Halo(field, edges="i=-face/-cell")
    assert tasuki.verify(halo)
    halo.run()
    if context.rank == 0:
        np.testing.assert_array_equal(field.array[:2], -values[1::-1])
    if context.rank == context.size - 1:
        np.testing.assert_array_equal(field.array[-2:], -values[-2:-4:-1])


def test_arrays_in_any_order_are_mirrored_in_place(context):
    grid = tasuki.Grid(context, (2 * context.size, 4), split=(context.size, 1), periodic=(True, False))
    memory = np.full((2, 6, 4), -7.0).transpose(1, 2, 0)[::-1].transpose(1, 0, 2)[..., 1]
    field = tasuki.Field(grid, memory=memory, name="u")
    whole = np.arange(8.0 * context.size).reshape(2 * context.size, 4)
    field.owned[...] = whole[field.box]
    halo = tasuki.Halo(field, edges="j=-cell/face")
    assert tasuki.verify(halo)
    halo.run()
    words = [("periodic", "periodic"), ("-cell", "face")]
    np.testing.assert_array_equal(field.array, expected(whole, field, [(1, 1)] * 2, words, True))


def test_a_reverse_halo_is_the_adjoint_of_mirrors(context):
    grid = tasuki.Grid(context, (4 * context.size,), split=(context.size,))
    field = tasuki.Field(grid, shadow=2)
    field.array[...] = 1.0
    field.owned[...] = 10.0
    halo = tasuki.Halo(field, edges="i=face/cell", reverse=True)
    assert tasuki.verify(halo)
    halo.run()
    n = 4 * context.size
    added = np.zeros(n)
    for image in [0, 1, n - 2, n - 3]:
        added[image] += 1
    for first in range(4, n, 4):  # what neighbours have in their shadows
        added[first - 2 : first + 2] += 1
    np.testing.assert_array_equal(field.owned, 10 + added[field.box])


def test_wrong_edges_are_told_to_all(context):
    grid = tasuki.Grid(context, (6, 5), periodic=(False, True))
    field = tasuki.Field(grid, name="u")
    last = context.rank == context.size - 1
    for edges, complaint in {
        "j=face": "option 'edges' mirrors field u in dimension 1, which is periodic",
        "i=wall": "there is no edge 'wall'; give one of none, face, cell, -face, -cell",
        "p: i=face": "the halo has no field 'p'",
    }.items():
        with pytest.raises(tasuki.Error, match=complaint):
            tasuki.Halo(field, edges=edges)
        if context.size > 1:  # one rank's mistake is everybody's error
            with pytest.raises(tasuki.Error, match=f"rank {context.size - 1}: .*{complaint}|'edges' differs"):
                tasuki.Halo(field, edges=edges if last else "")
    with pytest.raises(tasuki.Error, match="changes the sign of field u, whose elements"):
        tasuki.Halo(tasuki.Field(grid, "uint32", name="u"), edges="i=-face")
