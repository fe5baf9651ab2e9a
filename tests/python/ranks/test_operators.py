"""Reductions by functions of Python, against plain loops, with new data at every start."""

from __future__ import annotations

import numpy as np
import pytest
from collective_checks import checked

import tasuki

TURNS = 3
ENGINES = ["inline", "thread"]
PAIR = np.dtype([("a", "i4"), ("b", "i4")], align=True)  # x -> a x + b


def compose(into, other):
    """Does not commute."""
    into["b"] = other["a"] * into["b"] + other["b"]
    into["a"] *= other["a"]


def largest(into, other):
    np.copyto(into, other, where=np.abs(other) > np.abs(into))


def functions_of(rank, turn, count):
    made = np.zeros(count, PAIR)
    made["a"] = np.arange(count) % 5 + rank + 2
    made["b"] = 7 * turn + rank - np.arange(count)
    return made


def composed(ranks, turn, count):
    total = functions_of(ranks[0], turn, count)
    for rank in ranks[1:]:
        compose(total, functions_of(rank, turn, count))
    return total


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("count", [1, 5, 517])
def test_what_does_not_commute_combines_in_rank_order(context, engine, count):
    n, me = context.size, context.rank
    op = tasuki.Operator(compose, commutes=False)
    assert op.name == "compose" and op.function is compose and not op.commutes
    assert repr(op) == "<tasuki.Operator 'compose'>"
    mine, everywhere, up_to, below, one, block = np.zeros((6, count), PAIR)
    here, parts = np.zeros(count, PAIR), np.zeros(n * count, PAIR)
    keywords = {"op": op, "engine": engine}
    operations = [
        tasuki.Allreduce(context, mine, everywhere, **keywords),
        tasuki.Allreduce(context, tasuki.in_place, here, **keywords),
        tasuki.Reduce(context, mine, one, root=n - 1, **keywords),
        tasuki.Scan(context, mine, up_to, **keywords),
        tasuki.Exscan(context, mine, below, **keywords),
        tasuki.ReduceScatter(context, parts, block, **keywords),
    ]
    for operation in operations:
        checked(operation, "compose")
    for turn in range(TURNS):
        mine[...] = here[...] = functions_of(me, turn, count)
        parts[...] = functions_of(me, turn, n * count)
        for operation in operations:
            operation.start()
        for operation in reversed(operations):
            operation.wait()
        total = composed(range(n), turn, count)
        assert (everywhere == total).all() and (here == total).all()
        assert me != n - 1 or (one == total).all()
        assert (up_to == composed(range(me + 1), turn, count)).all()
        assert me == 0 or (below == composed(range(me), turn, count)).all()
        assert (block == composed(range(n), turn, n * count)[me * count : (me + 1) * count]).all()
    for operation in operations:
        operation.free()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("algorithm", ["auto", "exchange", "doubling", "ring"])
def test_functions_and_ufuncs(context, engine, algorithm):
    n, me = context.size, context.rank
    mine, farthest, length = np.zeros((3, 301))
    flags, differ = np.zeros(7, bool), np.zeros(7, bool)
    keywords = {"engine": engine, "algorithm": algorithm}
    far = checked(tasuki.Allreduce(context, mine, farthest, op=largest, **keywords), "largest")
    hypot = checked(tasuki.Allreduce(context, mine, length, op=np.hypot, **keywords), "hypot")
    odd = checked(tasuki.Allreduce(context, flags, differ, op=np.logical_xor, **keywords), "logical_xor")
    columns = np.zeros((7, 3))  # a call for each of the elements
    column = checked(tasuki.Allreduce(context, mine[:7], columns[:, 1], op=largest, **keywords), "largest")
    assert "by largest" in far.explain() or "largest" in far.plan.text()
    for turn in range(TURNS):
        mine[...] = (np.arange(301) + me + turn + 1) * (-1) ** (me + turn)
        flags[...] = (np.arange(7) + turn) % (me + 2) == 0
        for operation in (far, hypot, odd, column):
            operation.run()
        last = (np.arange(301) + n + turn) * (-1.0) ** (n - 1 + turn)
        assert (farthest == last).all() and (columns[:, 1] == last[:7]).all()
        squares = sum((np.arange(301.0) + r + turn + 1) ** 2 for r in range(n))
        np.testing.assert_allclose(np.abs(length), np.sqrt(squares), rtol=1e-12)
        expected = np.logical_xor.reduce([(np.arange(7) + turn) % (r + 2) == 0 for r in range(n)])
        assert (differ == expected).all()


def test_an_operation_that_is_dropped_while_its_function_waits_for_the_lock(context):
    """Nobody waits for a thread that waits for the interpreter's lock."""
    for _ in range(20):
        operation = tasuki.Allreduce(context, np.ones(3), np.zeros(3), op=largest, engine="thread")
        other = tasuki.Allreduce(context, np.ones(3), np.zeros(3), op=largest, engine="thread")
        operation.start()
        other.start()
        other.wait()
        other.free()
        again = tasuki.Scan(context, np.ones(3), np.zeros(3), op=largest, engine="thread")
        again.run()
        operation.wait()


def test_complaints(context):
    n, me = context.size, context.rank
    a, b = np.zeros(4), np.zeros(4)
    whole = a.astype("i4")

    def three(into, other, third):
        pass

    for make, pattern in (
        (lambda: tasuki.Operator(lambda into, other: None), "which has no name; say what plans"),
        (lambda: tasuki.Operator(largest, name=""), "'name' is empty"),
        (lambda: tasuki.Operator(three), r"\('three'\) cannot be called as three\(into, other\): missing a required"),  # type: ignore[arg-type]
        (lambda: tasuki.Operator(np.modf), "the ufunc 'modf' with 1 inputs and 2 outputs"),
        (lambda: tasuki.Allreduce(context, a, b, op=three), "cannot be called as three"),  # type: ignore[arg-type]
        (lambda: tasuki.Allreduce(context, a, b, op=lambda into, other: None), "which has no name"),
        (lambda: tasuki.Allreduce(context, whole, whole.copy(), op=np.hypot), "'hypot', which does not combine elem"),
        (
            lambda: tasuki.Allreduce(context, a, b, op=tasuki.Operator(compose, commutes=False), algorithm="ring"),
            "does not combine in rank order",
        ),
    ):
        with pytest.raises(tasuki.Error, match=pattern):
            make()
    for call, text in (
        (lambda: tasuki.Operator(3), "'function' is 3; it must be callable"),  # type: ignore[arg-type]
        (lambda: tasuki.Operator(largest, name=3), "'name' is 3; it must be a str"),  # type: ignore[arg-type]
        (lambda: tasuki.Allreduce(context, a, b, op=3), "'op' is 3; it must be the name"),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match=text):
            call()
    if n > 1:
        with pytest.raises(tasuki.Error, match="'op' differs between ranks: rank 0 has own 'largest'"):
            tasuki.Allreduce(context, a, b, op=largest if me == 0 else tasuki.Operator(largest, name="other"))


MATRIX = np.dtype([("m", "u4", (2, 2)), ("calls", "i1")])  # 17 bytes, which no cache line divides


def times(into, other):
    """Does not commute."""
    into["m"] = into["m"] @ other["m"]
    into["calls"] += other["calls"]


def matrices(rank, turn, count):
    made = np.zeros(count, MATRIX)
    made["m"] = np.random.default_rng(100 * turn + rank).integers(0, 2**32, (count, 2, 2), dtype="u4")
    made["calls"] = rank + 1
    return made


def product(ranks, turn, count):
    total = matrices(ranks[0], turn, count)
    for rank in ranks[1:]:
        times(total, matrices(rank, turn, count))
    return total


@pytest.mark.parametrize("algorithm", ["auto", "exchange", "doubling", "ring"])
@pytest.mark.parametrize("count", [1, 7, 9001])
def test_records_of_several_numbers_are_combined_whole(context, algorithm, count):
    """Whatever cuts the vector cuts between records."""
    n, me = context.size, context.rank
    mine, everywhere, up_to = np.zeros((3, count), MATRIX)
    spread, parts, block = np.zeros((count, 2), MATRIX)[:, 1], np.zeros(n * count, MATRIX), np.zeros(count, MATRIX)
    if algorithm == "auto":  # in rank order
        op = tasuki.Operator(times, commutes=False)
        operations = [
            checked(tasuki.Allreduce(context, mine, everywhere, op=op), "times"),
            checked(tasuki.Allreduce(context, mine, spread, op=op, path="mpi" if n > 1 else "auto"), "times"),
            checked(tasuki.Scan(context, mine, up_to, op=op), "times"),
            checked(tasuki.ReduceScatter(context, parts, block, op=op), "times"),
        ]
        for turn in range(TURNS):
            mine[...] = matrices(me, turn, count)
            parts[...] = np.concatenate([matrices(me, turn + 50 * r, count) for r in range(n)])
            for operation in operations:
                operation.run()
            total = product(range(n), turn, count)
            np.testing.assert_array_equal(everywhere, total)
            np.testing.assert_array_equal(spread, total)
            np.testing.assert_array_equal(up_to, product(range(me + 1), turn, count))
            np.testing.assert_array_equal(block, product(range(n), turn + 50 * me, count))
        return

    def join(into, other):  # commutes: sums beside a count, as of an average
        for name in ("sum", "squares", "n"):
            into[name] += other[name]

    numbers = np.dtype([("sum", "f8"), ("squares", "f8"), ("n", "i4")])
    ours, all_of_them = np.zeros(count, numbers), np.zeros(count, numbers)
    operation = checked(tasuki.Allreduce(context, ours, all_of_them, op=join, algorithm=algorithm), "join")
    values = np.arange(count) % 1000
    for turn in range(TURNS):
        ours["sum"], ours["squares"], ours["n"] = values + me + turn, (values + me + turn) ** 2, me + 1
        operation.run()
        each = [values + r + turn for r in range(n)]
        np.testing.assert_array_equal(all_of_them["sum"], sum(each))
        np.testing.assert_array_equal(all_of_them["squares"], sum(e**2 for e in each))
        assert (all_of_them["n"] == n * (n + 1) // 2).all()


def test_records_are_for_functions_and_lie_together(context):
    a, b = np.zeros(8, MATRIX), np.zeros(4, MATRIX)
    with pytest.raises(tasuki.Error, match="cannot be combined; .* structs of numbers with a function of your own"):
        tasuki.Allreduce(context, b, b.copy(), op="sum")
    pieces = tasuki.Layout.hvector(17, 1, 8, tasuki.Layout.bytes(4))
    with pytest.raises(tasuki.Error, match="has runs of 4 bytes, but operator .times. combines records of 17 bytes,"):
        tasuki.Allreduce(context, (a, pieces), b, op=times)
