"""Fields are arrays, and arrays become fields: no copies, and clear errors for what cannot be."""

from __future__ import annotations

import array as stdlib_array
import sys

import numpy as np
import pytest

import tasuki


@pytest.fixture
def grid(context):
    return tasuki.Grid(context, (6, 8))


def local_shape(grid, shadow=1):
    return tuple(s.stop - s.start + 2 * shadow for s in grid.box)


class OnlyDLPack:
    """What a library without NumPy's protocols shows."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class OnlyInterface:
    def __init__(self, array):
        self.__array_interface__ = array.__array_interface__
        self.array = array


class OnROCm(OnlyDLPack):
    def __dlpack_device__(self):
        return (10, 0)


def test_a_field_is_an_array(grid):
    field = tasuki.Field(grid, "float32", pad=3, copies=2)
    assert field.array.shape == field.shape == local_shape(grid)
    assert field.dtype == np.float32 and field.array.dtype == np.float32
    assert field.array.strides[0] == 4 * (field.shape[1] + 3)
    assert field.nbytes == 4 * field.shape[0] * (field.shape[1] + 3)
    field.owned[...] = 7
    for seen in np.asarray(field), np.from_dlpack(field), np.array(field, copy=False), np.asarray(memoryview(field)):
        assert np.shares_memory(seen, field.array)
        np.testing.assert_array_equal(seen, field.array)
    assert field.array.sum() == 7 * field.owned.size
    assert not np.shares_memory(field.array, field.next)
    before = field.array
    field.swap()
    assert field.next is before and field.current == 1
    assert np.asarray(field, dtype="float64").dtype == np.float64
    assert field.__dlpack_device__() == (1, 0)
    assert field.memory == "host" and not hasattr(field, "__cuda_array_interface__")


def test_arrays_outlive_their_field(grid):
    field = tasuki.Field(grid)
    seen = field.array
    seen[...] = 3
    del field
    assert (seen == 3).all()


def test_free_is_refused_while_an_array_looks(grid):
    field = tasuki.Field(grid, name="u")
    part = field.array[1:]
    with pytest.raises(tasuki.Error, match="'u'.*still looked at by an array"):
        field.free()
    del part
    field.free()
    with pytest.raises(tasuki.Error, match="after free"):
        _ = field.array


@pytest.mark.parametrize("wrap", [lambda a: a, OnlyDLPack, OnlyInterface, memoryview])
def test_arrays_are_used_in_place(context, wrap):
    grid = tasuki.Grid(context, (6, 8), periodic=True)
    mine = np.zeros(local_shape(grid))
    field = tasuki.Field(grid, memory=wrap(mine))
    assert np.shares_memory(field.array, mine) and field.dtype == mine.dtype
    whole = np.arange(48.0).reshape(6, 8)
    field.owned[...] = whole[field.box]
    halo = tasuki.Halo(field)
    halo.start()
    halo.wait()
    at = [np.arange(s.start - 1, s.stop + 1) % n for s, n in zip(field.box, whole.shape)]
    np.testing.assert_array_equal(mine, whole[np.ix_(*at)])


def test_two_copies_and_padded_rows(grid):
    rows, columns = local_shape(grid)
    old, new = np.zeros((rows, columns + 5))[:, :columns], np.zeros((rows, columns + 5))[:, :columns]
    field = tasuki.Field(grid, memory=[old, new])
    assert field.copies == 2 and field.array.strides == old.strides
    assert np.shares_memory(field.array, old) and np.shares_memory(field.next, new)


def test_a_single_row_is_padded_like_those_of_other_ranks(context):
    grid = tasuki.Grid(context, (context.size + 1, 8), split=(context.size, 1))  # two rows on one rank
    mine = np.zeros((grid.box[0].stop - grid.box[0].start, 13))[:, :8]
    field = tasuki.Field(grid, shadow=0, memory=mine)
    assert field.array.strides == mine.strides and np.shares_memory(field.array, mine)


def test_standard_library_buffers(context):
    line = tasuki.Grid(context, (16,))
    count = line.box[0].stop - line.box[0].start + 2
    mine = stdlib_array.array("d", [0.0] * count)
    field = tasuki.Field(line, memory=mine)
    field.array[0] = 5
    assert mine[0] == 5
    with pytest.raises(BufferError, match="cannot resize"):
        mine.append(1.0)  # would move
    field.free()
    mine.append(1.0)


@pytest.mark.parametrize("kind", ["f8", "f2", "i2", "M8[s]", "c16", "i4,f8", "S3", ">f8", "?"])
def test_plain_arrays_of_any_type(context, kind):
    expected = np.frombuffer(np.arange(2 * 6 * 16, dtype="u1").tobytes(), kind, 12).reshape(3, 4)
    target = np.zeros((3, 8), kind)[:, 6::-2]  # of strides below 0
    if context.rank == 0:
        target[...] = expected
    tasuki.Broadcast(context, 0, target).run()
    assert target.tobytes() == expected.tobytes()
    for shape in ((), (0, 3)):
        tasuki.Broadcast(context, 0, np.zeros(shape, kind)).run()
    fixed = np.zeros(3 * context.size, kind)
    fixed.flags.writeable = False
    with pytest.raises(tasuki.Error, match="read-only"):
        tasuki.Allgather(context, np.zeros(3, kind), fixed)


def test_plain_arrays_are_looked_at_without_calls_of_python(context):
    source, target = np.ones(8), np.zeros(8)
    called = []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
    try:
        tasuki.Allreduce(context, source, target).run()
    finally:
        sys.setprofile(None)
    assert called == []
    assert target[0] == context.size


def test_moved_numpy_array(grid):
    mine = np.zeros(local_shape(grid))
    field = tasuki.Field(grid, memory=mine, name="u")
    halo = tasuki.Halo(field)
    kept = mine.copy()  # takes the room that the array might grow into
    mine.resize((4096, 512), refcheck=False)
    with pytest.raises(tasuki.Error, match="memory of field 'u' has moved"):
        halo.start()
    del kept


class Copying:
    """As an image of Pillow: every look makes a copy."""

    def __init__(self, array):
        self.array = array

    @property
    def __array_interface__(self):
        return {**self.array.__array_interface__, "data": self.array.tobytes()}


class CopyingByDLPack(OnlyDLPack):
    def __dlpack__(self, **options):
        return self.array.copy().__dlpack__(**options)


def test_what_makes_copies(context):
    mine = np.arange(100.0)
    for source, pattern in (
        (Copying(mine), r"'source\[1\]' is a Copying, which makes a copy of itself; give numpy.asarray"),
        (np.float64(3), r"'source\[1\]' is np.float64\(3.0\), a number of NumPy, which makes a copy of itself"),
    ):
        if context.rank == 0:  # the others have no part in it
            with pytest.raises(tasuki.Error, match=pattern):
                tasuki.Transfer(context, (0, source), (0, np.zeros(1)))
    target = np.zeros(100)
    transfer = tasuki.Transfer(context, (0, CopyingByDLPack(mine)), (0, target))
    junk = [np.full(100, 7.0) for _ in range(50)]  # where the copy was, if nobody has kept it
    transfer.run()
    assert context.rank != 0 or (target == mine).all()
    del junk


class Unmade(tasuki.Field):
    def __init__(self):
        pass


class UnmadeHalo(tasuki.Halo):
    def __init__(self):
        pass


@pytest.mark.filterwarnings("ignore:nanobind")
@pytest.mark.parametrize(
    "use",
    [
        lambda context: memoryview(Unmade()),
        lambda context: np.asarray(Unmade()),
        lambda context: tasuki.Halo(Unmade()),
        lambda context: tasuki.Halo([tasuki.Field(tasuki.Grid(context, (8,))), Unmade()]),
        lambda context: UnmadeHalo().overlap(),
        lambda context: tasuki.verify(UnmadeHalo()),
        lambda context: tasuki.verify_plans([tasuki.Plan.__new__(tasuki.Plan)]),
        lambda context: tasuki.Transfer(
            context, *[(rank, np.zeros(3), tasuki.Layout.__new__(tasuki.Layout)) for rank in (context.rank,) * 2]
        ),
    ],
)
def test_objects_without_content(context, use):
    with pytest.raises(TypeError):
        use(context)


def test_numbers_of_numpy(context):
    one = np.int64(1)
    grid = tasuki.Grid(context, (6, 8), periodic=(np.True_, np.False_), reorder=np.False_)
    assert grid.periodic == (True, False)
    assert tasuki.Grid(context, (6, 8), periodic=np.True_).periodic == (True, True)
    assert tasuki.Grid(context, (6, 8), periodic=np.array([False, True])).periodic == (False, True)
    assert tasuki.Field(grid, shadow=one).shadow == ((1, 1), (1, 1))
    assert tasuki.Field(grid, shadow=np.array([1, 2])).shadow == ((1, 1), (2, 2))
    assert tasuki.Field(grid, shadow=((one, 0), np.uint8(2)), copies=np.int32(2)).shadow == ((1, 0), (2, 2))
    field = tasuki.Field(grid, shadow=2)
    tasuki.Halo(field, width=one, corners=np.False_).run()
    tasuki.Transfer(context, (np.int64(0), np.zeros(3)), (np.int32(0), np.zeros(3))).run()
    tasuki.Context(np.int64(context.handle)).close()
    for bad in True, np.True_, 1.0, np.float64(1):
        with pytest.raises(tasuki.Error, match="'shadow' is"):
            tasuki.Field(grid, shadow=bad)  # type: ignore[arg-type]
        with pytest.raises(tasuki.Error, match="'source' is"):
            tasuki.Transfer(context, (bad, np.zeros(3)), (0, np.zeros(3)))


class Learnt:
    """As a PyTorch tensor that takes part in automatic differentiation."""

    requires_grad = True

    def __init__(self, array):
        self.array = array
        self.__array_interface__ = array.__array_interface__


BAD = {
    "shape": (lambda s: np.zeros((s[0] + 1, s[1])), r"has shape .* with its shadow has shape"),
    "overlap": (
        lambda s: np.lib.stride_tricks.as_strided(np.zeros(s[0] + s[1]), s, (8, 8)),
        r"'strides' is \(8, 8\): cells of an array of .* elements of 8 bytes would share bytes",
    ),
    "read-only": (lambda s: np.broadcast_to(0.0, s), r"read-only"),
    "gradient": (lambda s: Learnt(np.zeros(s)), r"is a Learnt that needs a gradient"),
    "device": (lambda s: OnROCm(np.zeros(s)), r"is a OnROCm on DLPack device 10:0; .* CUDA GPUs"),
    "no place": (lambda s: "text", r"is 'text'; it must be 'host', 'device', an array"),
    "empty list": (lambda s: [], r"'memory' is \[\], an empty list; it needs one array a copy"),
    "empty tuple": (lambda s: (), r"'memory' is \(\), an empty list"),
    "no array": (lambda s: 7, r"is a int, which shows no memory"),
    "list of numbers": (lambda s: [1.0, 2.0], r"memory\[0\]' is a float, which shows no memory"),
    "objects": (lambda s: np.zeros(s, object), r"Python objects"),
    "dtype": (lambda s: np.zeros(s, "float32"), r"float32.*'dtype' is dtype\('float64'\)"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_arrays_raise_on_all_ranks(context, grid, what):
    """Only the last rank's array is bad, and every rank is told."""
    make, pattern = BAD[what]
    shape = local_shape(grid)
    memory = make(shape) if context.rank == context.size - 1 else np.zeros(shape)
    with pytest.raises(tasuki.Error, match=pattern) as raised:
        tasuki.Field(grid, "float64", memory=memory, name="u")
    assert "'u'" in str(raised.value) and f"rank {context.size - 1}" in str(raised.value)
    tasuki.Field(grid)  # the context is as before


def test_ranks_that_disagree(context, grid):
    if context.size == 1:
        pytest.skip("one rank agrees with itself")
    odd = context.rank == 1
    for first, second, pattern in (
        ("float64", "int64", "float64, rank 1 has int64"),
        ("c8", "M8[s]", r"complex64, rank 1 has datetime64\[s\]"),
        ("i4,f4", "f4,i4", r"\[\('f0', '<i4'\), .*rank 1 has \[\('f0', '<f4'\)"),
    ):
        with pytest.raises(tasuki.Error, match="'dtype' differs between ranks: rank 0 has " + pattern):
            tasuki.Field(grid, second if odd else first)
    with pytest.raises(tasuki.Error, match="shadow.*differs between ranks"):
        tasuki.Field(grid, shadow=2 if odd else 1)
    with pytest.raises(tasuki.Error, match="memory.*differs between ranks"):
        tasuki.Field(grid, memory=np.zeros(local_shape(grid)) if odd else None)
    with pytest.raises(tasuki.Error, match="differs between ranks"):
        tasuki.Grid(context, (6, 9) if odd else (6, 8))
    field = tasuki.Field(grid)
    with pytest.raises(tasuki.Error, match="'corners' differs between ranks: rank 0 has true, rank 1 has false"):
        tasuki.Halo(field, corners=not odd)


@pytest.mark.parametrize(
    ("arguments", "pattern"),
    [
        ({"dtype": "float31"}, "'dtype' is 'float31'"),
        ({"dtype": object}, "Python objects"),
        ({"dtype": "V0"}, "no bytes"),
        ({"shadow": -1}, "-1"),
        ({"shadow": (1, 2, 3)}, r"'shadow' is \(1, 2, 3\); it must be an int, or 2 entries"),
        ({"shadow": "a"}, "'shadow' is 'a'"),
        ({"shadow": True}, "'shadow' is True"),
        ({"shadow": (1, (1, 2.5))}, "'shadow'"),
        ({"shadow": 2**62}, "shadow|extent"),
        ({"copies": 3}, "'copies' is 3; it must be 1 or 2"),
        ({"pad": -1}, "'pad' is -1"),
    ],
)
def test_bad_arguments(grid, arguments, pattern):
    with pytest.raises(tasuki.Error, match=pattern):
        tasuki.Field(grid, **arguments)


def test_bad_halos(grid):
    field = tasuki.Field(grid, "complex64", name="u")
    for fields, pattern in (
        ([], "'fields' is empty"),
        (["u"], "'fields' is .*must be a Field"),
        ([field, 3], "must be a Field"),
        ([()], r"'fields' is \[\(\)\]; it must be a Field"),
        ([field, ()], r"'fields' has the entry \(\); it must be a Field"),
        (np.zeros((40, 50)), r"'fields' is a ndarray of float64 with shape \(40, 50\); it must"),
        ([np.zeros(9)] * 20, r"'fields' is \[a ndarray .*, \.\.\.\]; it must"),
        ([field, field], "overlap in memory"),
        ((field, 2), "width 2/2.*does not fit its shadow 1/1"),
    ):
        with pytest.raises(tasuki.Error, match=pattern):
            tasuki.Halo(fields)  # type: ignore[arg-type]
    structs = tasuki.Field(grid, np.dtype([("a", "f8"), ("b", "i4")]), name="s")
    with pytest.raises(tasuki.Error, match="reverse needs numbers"):
        tasuki.Halo(structs, reverse=True)
    with pytest.raises(tasuki.Error, match="no-such-path"):
        tasuki.Halo(field, path="no-such-path")
    with pytest.raises(tasuki.Error, match="swap.* needs two copies"):
        field.swap()
    with pytest.raises(TypeError, match="Grid"):
        tasuki.Field("grid")  # type: ignore[arg-type]


def test_empty_boxes(context):
    grid = tasuki.Grid(context, (1, 5), split=(context.size, 1), periodic=True)
    field = tasuki.Field(grid, shadow=0)
    assert field.owned.size == (5 if context.rank == 0 else 0)
    assert np.asarray(field).shape == field.shape
    nothing = tasuki.Field(grid, shadow=0, memory=np.zeros(field.shape))
    halo = tasuki.Halo([field, nothing])
    halo.start()
    halo.wait()


def test_grids(context):
    grid = tasuki.Grid(context, [7, 5], periodic=(True, False), split=(0, 1))
    assert (grid.ndim, grid.shape, grid.split, grid.periodic) == (2, (7, 5), (context.size, 1), (True, False))
    assert grid.rank_at(grid.coords(context.rank)) == context.rank
    whole = np.zeros((7, 5), int)
    for rank in range(context.size):
        whole[grid.box_of(rank)] += 1
    assert (whole == 1).all() and grid.box == grid.box_of(context.rank)
    cut = tasuki.Grid(context, (10, 4), cuts=[[0] * context.size + [10], None])
    assert cut.box_of(context.size - 1)[0] == slice(0, 10)
    for arguments, pattern in (
        ({"shape": ()}, "dimension"),
        ({"shape": (4, 0)}, "0"),
        ({"shape": (4, 4), "split": (7, 3)}, "split"),
        ({"shape": (4, 4), "cuts": [[0, 9], None]}, "cuts"),
    ):
        with pytest.raises(tasuki.Error, match=pattern):
            tasuki.Grid(context, **arguments)
    with pytest.raises(tasuki.Error, match="99"):
        grid.box_of(99)
    with pytest.raises(tasuki.Error, match="2 dimensions"):
        grid.rank_at((0,))
