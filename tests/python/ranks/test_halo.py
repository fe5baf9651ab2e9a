"""Halos of random shapes, widths and splits against NumPy's own indexing, and verified plans."""

from __future__ import annotations

import itertools
import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import tasuki

DTYPES = ["float64", "float32", "int16", "complex128", "bool", [("a", "i4"), ("b", "f8")]]


def values(shape, dtype):
    """A global array in which no two cells are alike, as far as the type allows."""
    numbers = np.arange(1, math.prod(shape) + 1).reshape(shape)
    dtype = np.dtype(dtype)
    if dtype.fields is None:
        return numbers.astype(dtype)
    result = np.zeros(shape, dtype)
    for name in dtype.names:
        result[name] = numbers
    return result


def expected(whole, box, shadow, periodic, corners, before):
    """The local array after an exchange: `before`, with every cell filled that a rank owns."""
    result = before.copy()
    for at in np.ndindex(*before.shape):
        place = [s.start - low + i for s, (low, _), i in zip(box, shadow, at)]
        outside = sum(not s.start <= p < s.stop for s, p in zip(box, place))
        wrapped = [p % n if wrap else p for p, n, wrap in zip(place, whole.shape, periodic)]
        exists = all(0 <= p < n for p, n in zip(wrapped, whole.shape))
        if exists and (outside <= 1 or corners):
            result[at] = whole[tuple(wrapped)]
    return result


def draw_width(data, low, high):
    return data.draw(st.tuples(st.integers(low, high), st.integers(low, high)))


@given(st.data())
def test_fills_shadows(context, data):
    ndim = data.draw(st.integers(1, 3))
    shape = [data.draw(st.integers(1, 9)) for _ in range(ndim)]
    periodic = [data.draw(st.booleans()) for _ in range(ndim)]
    shadow = [draw_width(data, 0, 3) for _ in range(ndim)]
    corners = data.draw(st.booleans())
    dtype = data.draw(st.sampled_from(DTYPES))
    engine = data.draw(st.sampled_from(["inline", "thread"]))
    grid = tasuki.Grid(context, shape, periodic=periodic)
    field = tasuki.Field(grid, dtype, shadow=shadow, pad=data.draw(st.integers(0, 2)))
    whole = values(shape, dtype)
    field.owned[...] = whole[field.box]
    before = field.array.copy()
    empty = any(s.start == s.stop for s in field.box)
    halo = tasuki.Halo(field, corners=corners, engine=engine)
    assert tasuki.verify(halo)
    for _ in range(2):
        halo.start()
        halo.wait()
    if not empty:
        np.testing.assert_array_equal(field.array, expected(whole, field.box, shadow, periodic, corners, before))


@pytest.mark.parametrize("dtype", ["float64", "float16", "int16", "complex64", "complex128"])
def test_reverse_is_the_adjoint(context, dtype):
    """<halo(x), y> = <x, reverse(y)>, which is what makes the reverse halo the gradient. The sums are exact."""
    grid = tasuki.Grid(context, (8, 9), periodic=(True, False))
    field = tasuki.Field(grid, dtype, shadow=2)
    there, back = tasuki.Halo(field), tasuki.Halo(field, reverse=True)
    random = np.random.default_rng(context.rank)
    unit = 1 + 2j if "complex" in dtype else 1.0
    x, y = (random.integers(-9, 9, field.shape) * unit for _ in range(2))
    inside = np.zeros(field.shape, bool)
    inside[field.local_box] = True
    x[~inside] = 0
    field.array[...] = x
    there.start()
    there.wait()
    left = (field.array * y).sum()
    field.array[...] = y
    back.start()
    back.wait()
    right = (x * field.array)[inside].sum()
    mpi = pytest.importorskip("mpi4py.MPI")
    comm = mpi.Comm.f2py(context.handle)
    assert comm.allreduce(left) == comm.allreduce(right)


def test_alternating_pair_and_overlap(context):
    grid = tasuki.Grid(context, (12, 13), periodic=True)
    field = tasuki.Field(grid, copies=2, shadow=1)
    halo = tasuki.Halo(field, corners=False, alternating=True)
    whole = values((12, 13), float)
    field.owned[...] = whole[field.box]
    halo.start()
    halo.wait()
    for _ in range(6):
        old = field.array
        field.swap()
        assert field.next is old

        def average(box, old=old, new=field.array):
            rows, columns = box

            def moved(s, by):
                return slice(s.start + by, s.stop + by)

            new[box] = (old[moved(rows, -1), columns] + old[moved(rows, 1), columns]) + (
                old[rows, moved(columns, -1)] + old[rows, moved(columns, 1)]
            )

        for box in field.boundary():
            average(box)
        with halo.overlap():
            average(field.interior())
        whole = (np.roll(whole, 1, 0) + np.roll(whole, -1, 0)) + (np.roll(whole, 1, 1) + np.roll(whole, -1, 1))
        np.testing.assert_array_equal(field.owned, whole[field.box])


def test_several_fields_each_with_its_width(context):
    grid = tasuki.Grid(context, (10, 11), periodic=True)
    u = tasuki.Field(grid, name="u", shadow=2)
    v = tasuki.Field(grid, "float32", name="v", shadow=((1, 0), 2))
    whole = values((10, 11), float)
    for field in u, v:
        field.owned[...] = whole[field.box]
    halo = tasuki.Halo([(u, 1), v])
    halo.start()
    halo.wait()
    for field, width in (u, ((1, 1), (1, 1))), (v, ((1, 0), (2, 2))):
        rows, columns = (
            np.arange(s.start - low, s.stop + high) % n for s, (low, high), n in zip(field.box, width, (10, 11))
        )
        skip = tuple(slice(s - w, n - (t - x)) for (s, t), (w, x), n in zip(field.shadow, width, field.shape))
        np.testing.assert_array_equal(field.array[skip], whole[np.ix_(rows, columns)])


@given(st.data())
def test_boxes_cover_the_owned_cells(context, data):
    ndim = data.draw(st.integers(1, 3))
    shape = [data.draw(st.integers(1, 12)) for _ in range(ndim)]
    width = [draw_width(data, 0, 4) for _ in range(ndim)]
    field = tasuki.Field(tasuki.Grid(context, shape), "int32")
    counts = np.zeros(field.shape, int)
    for box in itertools.chain(field.boundary(width), [field.interior(width)]):
        counts[box] += 1
    inside = np.zeros(field.shape, int)
    inside[field.local_box] = 1
    np.testing.assert_array_equal(counts, inside)


def test_plans_are_data(context):
    field = tasuki.Field(tasuki.Grid(context, (16, 16), periodic=True))
    halo = tasuki.Halo(field, path="mpi" if context.size > 1 else "auto")
    plan = halo.plan
    assert tasuki.Plan.from_json(plan.json()) == plan == tasuki.Plan.from_text(plan.text())
    assert (plan.rank, plan.ranks) == (context.rank, context.size)
    assert plan.complaints() == []
    with pytest.raises(TypeError, match="unhashable"):
        hash(plan)
    assert "halo field" in halo.explain() and "halo field" in repr(halo)
    mpi = pytest.importorskip("mpi4py.MPI")
    texts = mpi.Comm.f2py(context.handle).allgather(plan.json())
    assert tasuki.verify_plans(texts)
    if context.size > 1:
        report = tasuki.verify_plans([texts[0]] + [tasuki.Plan.from_json(texts[0])] * (context.size - 1))
        assert not report and report.problems


def test_no_wait_between_starts(context):
    field = tasuki.Field(tasuki.Grid(context, (16, 16)))
    halo = tasuki.Halo(field)
    halo.start()
    with pytest.raises(tasuki.Error, match="start while epoch 1 is still active"):
        halo.start()
    while not halo.test():
        pass
    assert not halo.active
    with pytest.raises(tasuki.Error, match="an operation uses it|1 operation uses it"):
        field.free()
    halo.free()
    with pytest.raises(tasuki.Error, match="after free"):
        halo.start()
    field.free()
    assert repr(halo).endswith(", freed>") and repr(field).endswith(", freed>")
