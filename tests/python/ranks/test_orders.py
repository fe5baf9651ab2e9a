"""Fields in arrays of any order, in place: what is exchanged, and that what lies between their elements stays."""

from __future__ import annotations

import numpy as np
import pytest

import tasuki

# By name: an array of a shape, and the larger one that it is a part of.
ORDERS = {
    "C": lambda s: (a := np.zeros(s), a),
    "padded rows": lambda s: ((a := np.zeros((*s[:2], s[2] + 3)))[:, :, : s[2]], a),
    "padded planes": lambda s: ((a := np.zeros((s[0], s[1] + 2, s[2])))[:, : s[1]], a),
    "inner part": lambda s: ((a := np.zeros([k + 4 for k in s]))[2:-2, 2:-2, 2:-2], a),
    "Fortran": lambda s: (a := np.zeros(s, order="F"), a),
    "k first": lambda s: ((a := np.zeros((s[2], s[0], s[1]))).transpose(1, 2, 0), a),
    "component last": lambda s: ((a := np.zeros((*s, 9)))[..., 4], a),
    "component first": lambda s: ((a := np.zeros((9, *s)))[4], a),
    "field of a struct": lambda s: ((a := np.zeros(s, [("p", "f8"), ("v", "f8", 3)]))["p"], a),
    "odd struct": lambda s: ((a := np.zeros(s, [("c", "i1"), ("p", "f8"), ("v", "f4")]))["p"], a),
    "real part": lambda s: ((a := np.zeros(s, complex)).real, a),
    "reversed": lambda s: ((a := np.zeros(s))[::-1], a),
    "all reversed, every other": lambda s: ((a := np.zeros([2 * k for k in s]))[::-2, ::-2, ::-2], a),
    "every other plane": lambda s: ((a := np.zeros((2 * s[0], *s[1:])))[::2], a),
}


def shape_with_shadow(grid, shadow=1):
    return [s.stop - s.start + 2 * shadow for s in grid.box]


def exchanged(u, array, whole, halo):
    array[...] = -1
    array[u.local_box] = whole[u.box]
    halo.run()
    index = np.ix_(*[np.arange(s.start - 1, s.stop + 1) % e for s, e in zip(u.box, whole.shape)])
    np.testing.assert_array_equal(array, whole[index])


@pytest.mark.parametrize("order", ORDERS)
def test_a_halo_of_any_order_in_place(context, order):
    n = context.size
    grid = tasuki.Grid(context, (3 * n + 1, 5, 3), split=(n, 1, 1), periodic=True)
    array, whole = ORDERS[order](shape_with_shadow(grid))
    u = tasuki.Field(grid, memory=array, name="u")
    assert np.shares_memory(u.array, array) and u.array.strides == array.strides and u.nbytes <= whole.nbytes
    assert np.asarray(u).ctypes.data == array.ctypes.data
    halo = tasuki.Halo(u, name="of any order")
    assert tasuki.verify(halo)
    between = np.ones(whole.nbytes, bool)  # the bytes that are nobody's cell
    start = whole.ctypes.data
    for i in np.ndindex(*array.shape):
        at = array.ctypes.data - start + sum(k * s for k, s in zip(i, array.strides))
        between[at : at + 8] = False
    memory = (whole if whole.flags.c_contiguous else whole.T).reshape(-1).view(np.uint8)
    memory[between] = 77
    for step in range(3):
        exchanged(u, array, np.arange(grid.shape[0] * 15.0).reshape(grid.shape) + 100 * step, halo)
    assert (memory[between] == 77).all()
    u.upload(5.0)
    assert (array == 5).all() and (u.download() == 5).all() and (memory[between] == 77).all()


def test_ranks_whose_arrays_lie_differently(context):
    """Each rank has an order of its own, and two copies that are parts of one array."""
    n = context.size
    grid = tasuki.Grid(context, (4 * n, 5, 3), split=(n, 1, 1), periodic=True)
    shape = shape_with_shadow(grid)
    pairs = np.zeros((*shape, 2))
    order = list(ORDERS)[context.rank % len(ORDERS)]
    old, new = (
        (pairs[..., 0], pairs[..., 1]) if context.rank % 2 else (ORDERS[order](shape)[0], ORDERS[order](shape)[0])
    )
    u = tasuki.Field(grid, memory=[old, new], name="u")
    halo = tasuki.Halo(u, alternating=True)
    assert tasuki.verify(halo)
    for step in range(4):
        exchanged(u, (old, new)[step % 2], np.arange(60.0 * n).reshape(4 * n, 5, 3) - 7 * step, halo)
        u.swap()


def test_components_of_one_array_in_one_halo(context):
    """Fields whose memory is interleaved, and the reverse halo."""
    n = context.size
    grid = tasuki.Grid(context, (3 * n, 4), split=(n, 1), periodic=True)
    pool = np.zeros((*shape_with_shadow(grid), 3))
    fields = [tasuki.Field(grid, memory=pool[..., i], name=f"q{i}") for i in range(3)]
    there, back = tasuki.Halo(fields), tasuki.Halo(fields, reverse=True)
    assert tasuki.verify(there) and tasuki.verify(back)
    for step in range(3):
        for i, field in enumerate(fields):
            field.array[...] = 0
            field.owned[...] = 1 + i + 10 * context.rank + step
        there.run()
        for i, field in enumerate(fields):
            assert (field.array[0] == 1 + i + 10 * ((context.rank - 1) % n) + step).all()
        back.run()
        assert (pool[1:-1, 1:-1].sum(axis=(0, 1)) > 0).all()
    with pytest.raises(tasuki.Error, match="overlap in memory"):
        tasuki.Halo([fields[0], tasuki.Field(grid, memory=pool[..., 0], name="again")])


def test_what_other_orders_cannot_have(context):
    grid = tasuki.Grid(context, (4 * context.size, 6), split=(context.size, 1), periodic=True)
    shape = shape_with_shadow(grid)
    wide = np.zeros((shape[0], 2 * shape[1]))
    with pytest.raises(tasuki.Error, match=r"memory\[0\] has strides of .* bytes, but memory\[1\] of .*must be alike"):
        tasuki.Field(grid, memory=[np.zeros(shape), wide[:, ::2]])
    with pytest.raises(tasuki.Error, match="overlap"):
        tasuki.Field(grid, memory=[wide[:, ::2], wide[:, ::2]])
    with pytest.raises(tasuki.Error, match="'pad' is 3, but 'memory' was given"):
        tasuki.Field(grid, memory=wide[:, ::2], pad=3)
    assert tasuki.Field(grid, memory=[wide[:, ::2], wide[:, 1::2]]).copies == 2


def test_operations_have_names(context):
    grid = tasuki.Grid(context, (4 * context.size, 6), split=(context.size, 1), periodic=True)
    u = tasuki.Field(grid, name="u")
    halo = tasuki.Halo(u, name="pressure")
    assert halo.plan.operation == "pressure: halo u" and "pressure: halo u" in halo.explain()
    assert repr(halo).startswith("<tasuki operation 'pressure: halo u'")
    total = tasuki.Allreduce(context, np.ones(3), np.zeros(3), name="residual")
    assert total.plan.operation.startswith("residual: allreduce")
    halo.start()
    with pytest.raises(tasuki.Error, match="pressure: halo u"):
        halo.start()
    halo.wait()
    if context.size > 1:
        with pytest.raises(tasuki.Error, match="argument 'name' differs between ranks|make"):
            tasuki.Halo(u, name=f"of rank {context.rank}")
    tasuki.Halo(u).run()  # the context is as before


def test_objects_say_what_they_are(context):
    n = context.size
    grid = tasuki.Grid(context, (4 * n, 6), split=(n, 1), periodic=True)
    assert repr(grid) == f"<tasuki.Grid ({4 * n}, 6) split ({n}, 1)>"
    u = tasuki.Field(grid, name="u")
    assert repr(u) == f"<tasuki.Field 'u' float64 (6, 8) of a grid of {4 * n} x 6 split {n} x 1>"
    assert " by " in repr(tasuki.Halo(u))
