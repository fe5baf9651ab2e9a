"""What does not fit together is refused on every rank: types and shapes of arrays, lengths of lists, padding."""

from __future__ import annotations

import numpy as np
import pytest

import tasuki


def ends(context, source, target):
    """The sides of a transfer from rank 0 to the last."""
    last = context.size - 1
    return (0, source if context.rank == 0 else None), (last, target if context.rank == last else None)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (np.arange(6), np.zeros(6)),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (np.zeros(4, "float32"), np.zeros(2, "float64")),
        (np.zeros(4, ">f8"), np.zeros(4, "<f8")),
    ],
)
def test_a_transfer_between_arrays_of_different_type_or_shape(context, source, target):
    if context.rank in (0, context.size - 1):
        with pytest.raises(
            tasuki.Error, match=r"'source' has .* of shape .* on rank 0, but 'target' has .*; give arrays of"
        ):
            tasuki.Transfer(context, *ends(context, source, target))
    elif context.size > 2:
        tasuki.Transfer(context, *ends(context, source, target))
    context.barrier()


def test_bytes_and_layouts_are_the_way_around(context):
    source, target = np.arange(6, dtype="int64").reshape(2, 3), np.zeros(6)
    for there in (target.view("u1"), np.zeros(48, "int8"), np.zeros((6, 8), "bool")):
        tasuki.Transfer(context, *ends(context, source, there)).run()
        if context.rank == context.size - 1:
            assert there.tobytes() == source.tobytes()
    context.barrier()
    layout = tasuki.Layout.contiguous(6, tasuki.Layout.of("float64"))
    (here, mine), (last, there) = ends(context, source, target)
    tasuki.Transfer(context, (here, mine), (last, there, layout)).run()
    if context.rank == last:
        assert target.tobytes() == source.tobytes()
    context.barrier()


def test_a_broadcast_of_arrays_of_different_type_or_shape(context):
    if context.size == 1:
        pytest.skip("one rank agrees with itself")
    root = context.rank == 0
    for one, other in (
        (np.zeros(3, "int64"), np.zeros(3)),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (np.zeros(2), np.zeros(16, "u1")),
    ):
        with pytest.raises(tasuki.Error, match="argument 'array' differs between ranks: rank 0 has float64|int64"):
            tasuki.Broadcast(context, 0, one if root else other)
    data = np.arange(6.0).reshape(2, 3) if root else np.zeros(6)
    tasuki.Broadcast(context, 0, data.view("u1") if root else np.frombuffer(data, "u1").reshape(6, 8)).run()
    assert data.ravel().tolist() == list(range(6))


def test_errors_name_arguments_as_python_does(context):
    n, odd = context.size, context.rank == context.size - 1
    a, b = np.zeros((4, 2)), np.zeros((4, 2))
    number = tasuki.Layout.of("f8")
    for make, expected in (
        (lambda: tasuki.Grid(context, ()), "'shape'"),
        (lambda: tasuki.Allreduce(context, a[:, 0], a[:, 0]), "'source' and 'target' overlap"),
        (lambda: tasuki.Broadcast(context, 0, (a, number if odd and n > 1 else tasuki.Layout.bytes(4))), "'array'"),
        (lambda: tasuki.Allreduce(context, a, b, path="in"), "'in'"),  # no name of an argument
    ):
        if expected == "'array'" and n == 1:
            continue
        with pytest.raises(tasuki.Error) as caught:
            make()
        assert expected in str(caught.value)
        assert not any(f"'{name}'" in str(caught.value) for name in ("extents", "out", "data", "layout"))
    if n > 1:
        with pytest.raises(tasuki.Error, match="argument 'shape' differs between ranks"):
            tasuki.Grid(context, (8 + odd, 8))


@pytest.mark.parametrize("periodic", [(True,), (True, False, True), []])
def test_periodic_needs_an_entry_for_each_dimension(context, periodic):
    if not periodic:
        assert tasuki.Grid(context, (8, 9), periodic=periodic).periodic == (False, False)
        return
    with pytest.raises(tasuki.Error, match=rf"'periodic' has {len(periodic)} entr.*the grid has 2 dimensions"):
        tasuki.Grid(context, (8, 9), periodic=periodic)
    machine = tasuki.machine_of(context)
    with pytest.raises(tasuki.Error, match="'periodic' has"):
        tasuki.plan_halo(machine, (8, 9), "u", "float64", periodic=periodic)


@pytest.mark.parametrize("dimension", [0, 1, 2])
def test_padded_rows_where_a_rank_has_no_cells(context, dimension):
    """NumPy's strides of an array without elements say nothing: such a rank takes the padding of the others."""
    shape, split = [4, 5, 6], [1, 1, 1]
    shape[dimension], split[dimension] = max(1, context.size - 1), context.size
    grid = tasuki.Grid(context, shape, split=split, periodic=True)
    shadow = [0 if d == dimension else 1 for d in range(3)]
    local = [s.stop - s.start + 2 * w for s, w in zip(grid.box, shadow)]
    for empty in (lambda: np.zeros([*local[:2], local[2] + 3])[..., : local[2]], lambda: np.zeros(local)):
        mine = np.zeros([*local[:2], local[2] + 3])[..., : local[2]] if 0 not in local else empty()
        field = tasuki.Field(grid, shadow=shadow, memory=mine)
        halo = tasuki.Halo(field)
        assert tasuki.verify(halo)
        for iteration in range(3):
            if mine.size:
                whole = np.arange(np.prod(shape)).reshape(shape) * 10.0 + iteration
                field.owned[...] = whole[field.box]
            halo.run()
            if mine.size:
                at = [np.arange(s.start - w, s.stop + w) % n for s, w, n in zip(field.box, shadow, shape)]
                np.testing.assert_array_equal(mine, whole[np.ix_(*at)])
        halo.free()
