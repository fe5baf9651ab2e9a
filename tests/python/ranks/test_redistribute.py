"""Redistributions between random distributions, permuted, in sections, against NumPy; and what is said of mistakes."""

from __future__ import annotations

import json

import hypothesis.strategies as st
import numpy as np
import pytest
from collective_checks import checked
from hypothesis import given, settings

import tasuki

TURNS = 3
TYPES = ["float64", "float32", "int16", "complex128", "S3"]


def random_split(rng, extent, ranks):
    kind = rng.integers(0, 4)
    if kind == 0:
        return ("cyclic", ranks, int(rng.integers(1, 4)))
    if kind == 1:
        return ("replicated", ranks)
    if kind == 2:
        return [0, *np.sort(rng.integers(0, extent + 1, ranks - 1)).tolist(), extent]
    return ranks


def random_distribution(rng, shape, ranks):
    split, left = [], ranks
    for extent in shape:
        parts = int(rng.integers(1, left + 1))
        left //= parts
        split.append(random_split(rng, extent, parts))
    places = int(np.prod([entry if isinstance(entry, int) else len(entry) - 1 if isinstance(entry, list) else entry[1]
                          for entry in split]))  # fmt: skip
    return tasuki.ArrayDistribution(shape, split, rng.permutation(ranks)[:places].tolist())


def random_section(rng, extent, count):
    step = int(rng.integers(1, max(extent // count, 1) + 1))
    while (count - 1) * step >= extent:
        step -= 1
    start = int(rng.integers(0, extent - (count - 1) * step))
    last = start + (count - 1) * step
    if rng.integers(0, 2):
        return slice(start, last + 1, step)
    return slice(last, start - 1 if start else None, -step)


def local_array(rng, distribution, rank, inner, dtype):
    """A local array of random strides, full of what nobody may touch."""
    shape = (*distribution.local_shape(rank), *inner)
    order = rng.permutation(len(shape))
    base = np.zeros([shape[d] + rng.integers(0, 2) for d in order], dtype)
    return base[tuple(slice(shape[d]) for d in order)].transpose(np.argsort(order)), base


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 2**20))
def test_random_arrays_move_as_numpy_moves_them(context, seed):
    rng = np.random.default_rng(seed)
    dims = int(rng.integers(1, 5))
    axes = rng.permutation(dims).tolist()
    counts = rng.integers(1, 8 if dims > 2 else 20, dims)
    to_shape = [int(count + rng.integers(0, 5)) for count in counts]
    from_shape = [0] * dims
    for d, axis in enumerate(axes):
        from_shape[axis] = int(counts[d] + rng.integers(0, 5))
    source = random_distribution(rng, from_shape, context.size)
    target = random_distribution(rng, to_shape, context.size)
    taken = tuple(random_section(rng, to_shape[d], int(counts[d])) for d in range(dims))
    sections = [slice(None)] * dims
    for d, axis in enumerate(axes):
        sections[axis] = random_section(rng, from_shape[axis], int(counts[d]))
    part = tuple(sections)
    dtype = TYPES[rng.integers(0, len(TYPES))]
    inner = (2,) if rng.integers(0, 3) == 0 else ()
    own = np.random.default_rng([seed, context.rank])
    before, _ = local_array(own, source, context.rank, inner, dtype)
    after, around = local_array(own, target, context.rank, inner, dtype)
    operation = checked(tasuki.Redistribute(context, (before, source, part), (after, target, taken), axes=axes))
    for turn in range(TURNS):
        cells = np.arange(np.prod([*from_shape, *inner])).reshape([*from_shape, *inner])
        whole = ((cells * 7 + 13 * turn) % 97).astype(dtype)
        result = np.full([*to_shape, *inner], 3, dtype)
        result[taken] = whole[part].transpose(*axes, *range(dims, dims + len(inner)))
        before[...] = whole[np.ix_(*source.indices(context.rank))]
        around[...] = np.array(3).astype(dtype)
        operation.run()
        np.testing.assert_array_equal(after, result[np.ix_(*target.indices(context.rank))])
        after[...] = np.array(3).astype(dtype)
        assert (around == np.array(3).astype(dtype)).all()  # nothing else was touched


def test_from_all_ranks_to_all_but_one(context):
    """As from 4 ranks to 3, where the last one keeps nothing; and back."""
    few = max(context.size - 1, 1)
    slabs = tasuki.ArrayDistribution((9, 8, 7), (context.size, 1, 1))
    pencils = tasuki.ArrayDistribution((9, 8, 7), (1, few, 1))
    whole = np.arange(9 * 8 * 7).reshape(9, 8, 7)
    a = whole[np.ix_(*slabs.indices(context.rank))]
    b = None if context.rank >= few else np.zeros(pencils.local_shape(context.rank), int)
    c = np.zeros_like(a)
    checked(tasuki.Redistribute(context, (a, slabs), (b, pencils))).run()
    if context.rank < few:
        np.testing.assert_array_equal(b, whole[np.ix_(*pencils.indices(context.rank))])
    checked(tasuki.Redistribute(context, (b, pencils), (c, slabs))).run()
    np.testing.assert_array_equal(c, a)


@settings(max_examples=10, deadline=None, derandomize=True)
@given(st.integers(0, 2**20))
def test_from_some_ranks_to_others_and_back(context, seed):
    """The two sides have no rank in common, some ranks have no part of either, and some have a part without cells."""
    n, me = context.size, context.rank
    rng = np.random.default_rng(seed)
    order = rng.permutation(n).tolist()
    few = int(rng.integers(1, n)) if n > 1 else 1
    givers, takers = order[:few], order[few : few + int(rng.integers(1, n - few + 1))] if n > few else order
    shape = [int(extent) for extent in rng.integers(1, 7, 2)]
    axes = rng.permutation(2).tolist()
    # An extent may be less than its ranks, of which some then have no cells.
    a_side = tasuki.ArrayDistribution(shape, (random_split(rng, shape[0], len(givers)), None), givers)
    to_shape = [shape[axis] for axis in axes]
    b_side = tasuki.ArrayDistribution(to_shape, (None, random_split(rng, to_shape[1], len(takers))), takers)
    assert n == 1 or not set(a_side.ranks) & set(b_side.ranks)
    dtype = TYPES[rng.integers(0, len(TYPES))]
    a, b, c = (np.zeros(side.local_shape(me), dtype) for side in (a_side, b_side, a_side))
    there = checked(tasuki.Redistribute(context, (a, a_side), (b, b_side), axes=axes))
    back = checked(tasuki.Redistribute(context, (b, b_side), (c, a_side), axes=np.argsort(axes).tolist()))
    for turn in range(TURNS):
        whole = ((np.arange(np.prod(shape)).reshape(shape) * 7 + 13 * turn) % 97).astype(dtype)
        if a.size:
            a[...] = whole[np.ix_(*a_side.indices(me))]
        there.run()
        if b.size:
            np.testing.assert_array_equal(b, whole.transpose(axes)[np.ix_(*b_side.indices(me))])
        back.run()
        np.testing.assert_array_equal(c, a)


@pytest.mark.parametrize("path", ["auto", "mpi", "shared:eager"])
def test_a_limit_for_scratch(context, path):
    """With little memory to pack into pieces travel in slices; with almost none there is an error."""
    n, me = context.size, context.rank
    slabs = tasuki.ArrayDistribution((60, 50, 9), (n, 1, 1))
    dealt = tasuki.ArrayDistribution((50, 9, 60), (("cyclic", n, 4), 1, 1))
    a, b = np.zeros(slabs.local_shape(me)), np.zeros(dealt.local_shape(me))
    whole = np.arange(60.0 * 50 * 9).reshape(60, 50, 9)
    little = 4000 * n
    options = {"path": path} if n > 1 else {}
    operation = checked(tasuki.Redistribute(context, (a, slabs), (b, dealt), axes=(1, 2, 0), scratch=little, **options))
    for turn in range(TURNS):
        a[:] = whole[np.ix_(*slabs.indices(me))] + turn
        operation.run()
        np.testing.assert_array_equal(b, (whole.transpose(1, 2, 0) + turn)[np.ix_(*dealt.indices(me))])
    of_plan = json.loads(operation.plan.json())["buffers"]  # without what is 0, and scratch without its role
    taken = [b.get("bytes", 0) * b.get("ring", 1) for b in of_plan if "role" not in b and b.get("rank", 0) == me]
    assert sum(taken) <= little and (taken or n == 1 or path == "auto")
    with pytest.raises(tasuki.Error, match="argument 'scratch' is -1; it must be 0"):
        tasuki.Redistribute(context, (a, slabs), (b, dealt), axes=(1, 2, 0), scratch=-1)
    if n > 1:
        with pytest.raises(tasuki.Error, match="argument 'scratch' differs between ranks"):
            tasuki.Redistribute(context, (a, slabs), (b, dealt), axes=(1, 2, 0), scratch=1000 * (me + 1))
    if n > 1 and path != "auto":
        with pytest.raises(tasuki.Error, match="of scratch"):
            tasuki.Redistribute(context, (a, slabs), (b, dealt), axes=(1, 2, 0), scratch=10, **options)


def test_several_arrays_gathered_to_one_rank(context):
    spread = tasuki.ArrayDistribution((10, 6), (("cyclic", context.size), None))
    one = tasuki.ArrayDistribution((10, 6), (1, 1), ranks=[context.size - 1])
    root = context.rank == context.size - 1
    whole = {"u": np.arange(60.0).reshape(10, 6), "v": -np.arange(60, dtype="int8").reshape(10, 6)}
    local = {name: array[np.ix_(*spread.indices(context.rank))] for name, array in whole.items()}
    gathered = {name: np.zeros((10, 6), array.dtype) if root else None for name, array in whole.items()}
    gather = checked(tasuki.Redistribute(context, (local, spread), (gathered, one)))
    assert "redistribute u,v" in gather.explain()
    for _ in range(TURNS):
        gather.run()
        for name in whole:
            if root:
                np.testing.assert_array_equal(gathered[name], whole[name])
            whole[name] += 1
            local[name] += 1


def in_one_memory(context, rng, shapes, dtype):
    """Arrays of these shapes that overlap in one piece of memory, which may be Tasuki's."""
    sizes = [int(np.prod(shape)) for shape in shapes]
    places = rng.integers(0, 3, len(sizes)) * rng.integers(0, 4)
    room = int(max([place + size for place, size in zip(places, sizes)], default=0)) + 1
    shared = bool(rng.integers(0, 2))
    memory = tasuki.shared_array(context, (room,), dtype) if shared else np.empty(room, dtype)
    return [memory[place : place + size].reshape(shape) for place, size, shape in zip(places, sizes, shapes)]


@pytest.mark.parametrize("path", ["auto", "mpi", "shared:eager", "shared:put,mpi", "shared:pull,mpi"])
@settings(max_examples=6, deadline=None, derandomize=True)
@given(st.integers(0, 2**20))
def test_arrays_move_in_place(context, path, seed):
    """The source and the target lie in one memory, on all ranks or on some."""
    rng = np.random.default_rng(seed)
    n, me = context.size, context.rank
    axes = rng.permutation(3).tolist()
    from_shape = rng.integers(1, 9, 3).tolist()
    to_shape = [from_shape[axis] for axis in axes]
    source = random_distribution(rng, from_shape, n)
    target = random_distribution(rng, to_shape, n)
    dtype = TYPES[rng.integers(0, len(TYPES))]
    own = np.random.default_rng([seed, me])
    before, after = in_one_memory(context, own, [source.local_shape(me), target.local_shape(me)], dtype)
    if me % 2 == 1 and rng.integers(0, 2):
        after = np.empty(after.shape, dtype)
    options = {"path": path} if n > 1 else {}
    operation = checked(tasuki.Redistribute(context, (before, source), (after, target), axes=axes, **options))
    for turn in range(TURNS):
        whole = ((np.arange(np.prod(from_shape)).reshape(from_shape) * 7 + 13 * turn) % 97).astype(dtype)
        before[...] = whole[np.ix_(*source.indices(me))]
        operation.run()
        np.testing.assert_array_equal(after, whole.transpose(axes)[np.ix_(*target.indices(me))])


def test_two_arrays_change_places(context):
    """Each array's target is the other's memory."""
    n, me = context.size, context.rank
    rows = tasuki.ArrayDistribution((2 * n, 2 * n), (n, 1))
    columns = tasuki.ArrayDistribution((2 * n, 2 * n), (1, n))
    u, v = np.zeros(4 * n), np.zeros(4 * n)
    before = {"u": u.reshape(2, 2 * n), "v": v.reshape(2, 2 * n)}
    after = {"u": v.reshape(2 * n, 2), "v": u.reshape(2 * n, 2)}
    change = checked(tasuki.Redistribute(context, (before, rows), (after, columns)))
    whole = np.arange(4.0 * n * n).reshape(2 * n, 2 * n)
    for turn in range(TURNS):
        for name, sign in (("u", 1), ("v", -1)):
            before[name][...] = sign * (whole + turn)[2 * me : 2 * me + 2]
        change.run()
        for name, sign in (("u", 1), ("v", -1)):
            np.testing.assert_array_equal(after[name], sign * (whole + turn)[:, 2 * me : 2 * me + 2])


def test_in_place_within_a_limit_for_scratch(context):
    """The copy counts, and what is left is used in turn; where the copy does not fit an error says what does."""
    n, me = context.size, context.rank
    rows = tasuki.ArrayDistribution((64 * n, 8 * n), (n, 1))
    columns = tasuki.ArrayDistribution((64 * n, 8 * n), (1, n))
    memory = np.zeros(64 * 8 * n)
    a, b = memory.reshape(64, 8 * n), memory.reshape(64 * n, 8)
    limit = a.nbytes + 1024 * n
    change = checked(tasuki.Redistribute(context, (a, rows), (b, columns), scratch=limit))
    whole = np.arange(64.0 * n * 8 * n).reshape(64 * n, 8 * n)
    for turn in range(TURNS):
        a[...] = (whole + turn)[64 * me : 64 * me + 64]
        change.run()
        np.testing.assert_array_equal(b, (whole + turn)[:, 8 * me : 8 * me + 8])
    with pytest.raises(tasuki.Error, match=r"needs \d+ bytes of scratch at least, but argument 'scratch' allows 1000"):
        tasuki.Redistribute(context, (a, rows), (b, columns), scratch=1000)


def test_two_targets_in_one_memory(context):
    n = context.size
    rows = tasuki.ArrayDistribution((2 * n, 3), (n, 1))
    a, b, c = np.zeros((2, 3)), np.ones((2, 3)), np.zeros((2, 3))
    with pytest.raises(
        tasuki.Error, match="the target of array .* overlap in memory: this rank would receive two things"
    ):
        tasuki.Redistribute(context, ([a, b], rows), ([c, c], rows))
    tasuki.Redistribute(context, ([a, b], rows), ([c, c.copy()], rows)).run()


def test_what_is_wrong_is_named(context):
    n = context.size
    slabs = tasuki.ArrayDistribution((2 * n, 3), (n, 1))
    dealt = tasuki.ArrayDistribution((2 * n, 3), (("cyclic", n), None))
    a, b = np.zeros((2, 3)), np.zeros((2, 3))

    def refused(text, *sides, **options):
        with pytest.raises(tasuki.Error, match=text):
            tasuki.Redistribute(context, *sides, **options)

    other = tasuki.ArrayDistribution((2 * n + 1, 3), (1, 1), ranks=[0])
    c = np.zeros(other.local_shape(context.rank))
    refused("array of argument 'source' is .* but that of 'target' is .*must be equal", (a, slabs), (c, other))
    refused(r"argument 'axes' is \(0, 0\); it must name each of the dimensions 0 to 1 once", (a, slabs), (b, dealt),
            axes=(0, 0))  # fmt: skip
    refused("argument 'axes' is", (a, slabs), (b, dealt), axes="ab")
    absent = tasuki.ArrayDistribution((2 * n, 3), (1, 1), ranks=[n])
    refused(f"argument 'target': rank {n} is named, but there are ranks 0 to {n - 1}", (a, slabs),
            (np.zeros((0, 0)), absent))  # fmt: skip
    refused("the section of argument 'source' is", (a, slabs, np.s_[::2, :]), (b, dealt))
    refused("a slice for each of the 2 dimensions", (a, slabs, np.s_[::2]), (b, dealt))
    refused("it must have a slice for each dimension", (a, slabs, (0, 1)), (b, dealt))
    refused(r"argument 'target' has shape \(1, 3\), but the local array of rank", (a, slabs), (b[:1], dealt))
    refused("cells of the target share bytes, which would be written twice", (a, slabs),
            (np.lib.stride_tricks.as_strided(b, (2, 3), (8, 8)), dealt))  # fmt: skip
    refused("cells of the source are float64 of shape .* but those of the target float32", (a, slabs),
            (b.astype("float32"), dealt))  # fmt: skip
    refused("'target' has 2", (a, slabs), ([b, b.copy()], dealt))
    refused("must be .array, ArrayDistribution", a, (b, dealt))
    refused("has no array on rank", (None, slabs), (b, dealt))
    with pytest.raises(tasuki.Error, match="named twice"):
        tasuki.ArrayDistribution((2, 3), (2, 1), ranks=[0, 0])
    with pytest.raises(tasuki.Error, match="argument 'split' has the entry 'x' for dimension 1"):
        tasuki.ArrayDistribution((2, 3), (2, "x"))
    if n > 1:
        mixed = (
            (a, slabs) if context.rank else (a, tasuki.ArrayDistribution((2 * n, 3), ([*range(0, 2 * n, 2), 2 * n], 1)))
        )
        refused("'source'", mixed, (b, dealt))
    tasuki.Redistribute(context, (a, slabs), (b, dealt)).run()


def pencils(shape):
    """From lines along z to lines along y to lines along x."""
    nx, ny, nz = shape

    def moves(split):
        p, q = split
        along_z = tasuki.ArrayDistribution((nx, ny, nz), (p, q, 1))
        along_y = tasuki.ArrayDistribution((nx, nz, ny), (p, q, 1))
        along_x = tasuki.ArrayDistribution((ny, nz, nx), (p, q, 1))
        return [(along_z, along_y, (0, 2, 1)), (along_y, along_x, (2, 1, 0))]

    return moves


@pytest.mark.parametrize("tune", [0, 3])
def test_the_process_grid_that_is_predicted_or_measured_to_be_the_quickest(context, tune):
    moves = pencils((23, 19, 17))
    split = tasuki.choose_split(context, moves, dtype="float32", tune=tune)
    assert split[0] * split[1] == context.size
    root = np.array(split)
    tasuki.Broadcast(context, 0, root).run()
    assert tuple(root) == split  # on all ranks
    if tune == 0:
        assert split == tasuki.choose_split(tasuki.machine_of(context), moves, dtype="float32")


def test_the_process_grid_off_line():
    # Two islands of four: lines that stay inside of an island go first.
    machine = tasuki.Machine.uniform(8, 8, 4)
    tried = []

    def moves(split):
        tried.append(split)
        return pencils((64, 64, 64))(split)

    split = tasuki.choose_split(machine, moves)
    assert tried == [(1, 8), (2, 4), (4, 2), (8, 1)]

    def seconds(split):
        plans = [
            tasuki.plan_redistribute(machine, a, b, dtype="complex128", axes=x, shared=True) for a, b, x in moves(split)
        ]
        return sum(plan.predict().seconds for plan in plans)

    assert seconds(split) == min(map(seconds, [(1, 8), (2, 4), (4, 2), (8, 1)]))


def test_a_process_grid_that_cannot_be_tried():
    with pytest.raises(tasuki.Error, match="argument 'tune' is 2; it must be 0 or more, and 0 off line"):
        tasuki.choose_split(tasuki.Machine.uniform(2, 2), pencils((4, 4, 4)), tune=2)
