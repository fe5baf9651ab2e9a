"""Exchanges of cells on random graphs and meshes, both ways, against NumPy; and what is said of wrong lists."""

from __future__ import annotations

import re

import hypothesis.strategies as st
import numpy as np
import pytest
from collective_checks import checked
from hypothesis import given, settings

import tasuki
from tasuki.meshes import wavy_mesh

TURNS = 3
GAP = 77  # what nobody may touch
TYPES = ["float64", "float32", "int16", "complex128", "int64"]
# How a field of `cells` cells with `levels` numbers lies in memory: its array, the view of which dimension `axis`
# counts cells, and `axis`.
PLACES = {
    "levels last": lambda make, cells, levels, dtype: (make((cells, levels), dtype), lambda base: base, 0),
    "levels first": lambda make, cells, levels, dtype: (make((levels, cells), dtype), lambda base: base, 1),
    "every other": lambda make, cells, levels, dtype: (
        make((2 * cells, levels + 1), dtype),
        lambda base: base[::2, 1:],
        0,
    ),
    "backwards": lambda make, cells, levels, dtype: (make((cells, levels), dtype), lambda base: base[::-1], 0),
    "planes": lambda make, cells, levels, dtype: (make((2, cells, levels), dtype), lambda base: base[1], -2),
}


class Graph:
    """Who owns what and who wants what, the same on all ranks: drawn by a seed."""

    def __init__(self, ranks, seed, repeated=False):
        rng = np.random.default_rng(seed)
        self.owned = rng.integers(0, 40, ranks) * rng.integers(0, 4, ranks).clip(max=1)
        some = [int(n > 0) for n in self.owned]
        # Of each owner and taker: lists of cells of the owner, of which the taker has ghosts.
        self.wanted = {}
        for a in range(ranks):
            for b in range(ranks):
                times = rng.integers(0, 3) * some[a]
                self.wanted[a, b] = [
                    rng.integers(0, self.owned[a], rng.integers(1, 12)) if repeated and rng.integers(0, 2) else
                    np.sort(rng.permutation(self.owned[a])[: rng.integers(1, self.owned[a] + 1)])
                    for _ in range(times)
                ]  # fmt: skip
        self.cells, self.entries = [], []
        for rank in range(ranks):
            ghosts = sum(len(cells) for a in range(ranks) for cells in self.wanted[a, rank])
            self.cells.append(int(self.owned[rank] + ghosts + 3))  # three that nobody names
            number = rng.permutation(self.cells[rank]) if rng.integers(0, 2) else np.arange(self.cells[rank])
            next_ghost = int(self.owned[rank])
            queues = []
            for other in range(ranks):
                sent = [number[cells] for cells in self.wanted[rank, other]]
                received = []
                for cells in self.wanted[other, rank]:
                    received.append(number[next_ghost : next_ghost + len(cells)])
                    next_ghost += len(cells)
                queue = []
                while sent or received:  # in one entry, or in two
                    both = rng.integers(0, 2)
                    queue.append((other, sent.pop(0) if sent else [], received.pop(0) if received and both else None))
                queues.append(queue)
            entries = []
            while any(queues):  # those of different ranks in any order
                queue = queues[rng.integers(0, ranks)]
                entries += [queue.pop(0)] if queue else []
            self.entries.append(entries)

    def messages(self):
        """(owner, its cells, taker, its cells) of every message, in the order of the owners' entries."""
        received: dict = {}
        for rank, entries in enumerate(self.entries):
            for other, _, cells in entries:
                if cells is not None and len(cells):
                    received.setdefault((other, rank), []).append(cells)
        for rank, entries in enumerate(self.entries):
            for other, sent, _ in entries:
                if len(sent):
                    yield rank, sent, other, received[rank, other].pop(0)


def numbers(rank, turn, cells, levels, dtype):
    rng = np.random.default_rng(1000 * rank + turn)
    if np.issubdtype(dtype, np.integer):
        return rng.integers(-50, 50, (cells, levels)).astype(dtype)
    return rng.standard_normal((cells, levels)).astype(dtype)


class Placed:
    """A field of this rank."""

    def __init__(self, context, cells, data):
        self.dtype = data.draw(st.sampled_from(TYPES))
        self.levels = data.draw(st.integers(1, 4))
        place = PLACES[list(PLACES)[(data.draw(st.integers(0, 4)) + context.rank) % len(PLACES)]]
        shared = data.draw(st.booleans())
        make = (lambda shape, dtype: tasuki.shared_array(context, shape, dtype)) if shared else np.empty
        self.base, view, self.axis = place(make, cells, self.levels, self.dtype)
        self.array = view(self.base)
        self.base[...] = GAP
        self.inside = np.zeros(self.base.shape, bool)
        view(self.inside)[...] = True

    def cells_first(self):
        return np.moveaxis(self.array, self.axis, 0)


@pytest.mark.parametrize("op", ["", "sum", "max"])
@settings(max_examples=12)
@given(st.data())
def test_random_graphs(context, op, data):
    n, me = context.size, context.rank
    graph = Graph(n, data.draw(st.integers(0, 1 << 20)), repeated=not op)  # which reverse cannot, in one entry
    fields = [Placed(context, graph.cells[me], data) for _ in range(data.draw(st.integers(1, 3)))]
    if op == "max":
        fields = [field for field in fields if field.dtype != "complex128"]
        if not fields:
            return
    engine = data.draw(st.sampled_from(["inline", "thread"]))
    path = "auto" if n == 1 else data.draw(st.sampled_from(["auto", "mpi", "shared:eager"]))
    keywords = {"reverse": True, "op": op} if op else {}
    operation = checked(
        tasuki.Exchange(
            context, [(f.array, f.axis) for f in fields], graph.entries[me], engine=engine, path=path, **keywords
        )
    )
    for turn in range(TURNS):
        all_ranks = [[numbers(r, turn, graph.cells[r], f.levels, f.dtype) for r in range(n)] for f in fields]
        for field, values in zip(fields, all_ranks, strict=True):
            field.cells_first()[...] = values[me]
        before = [[values.copy() for values in of_ranks] for of_ranks in all_ranks]
        for owner, owned, taker, ghosts in graph.messages():
            for values, old in zip(all_ranks, before, strict=True):
                if not op:
                    values[taker][ghosts] = old[owner][owned]
                elif op == "sum":
                    values[owner][owned] = values[owner][owned] + old[taker][ghosts]
                else:
                    values[owner][owned] = np.maximum(values[owner][owned], old[taker][ghosts])
        operation.run()
        for field, values in zip(fields, all_ranks, strict=True):
            np.testing.assert_array_equal(field.cells_first(), values[me])  # in every bit: the order is fixed
            assert (field.base[~field.inside] == np.array(GAP).astype(field.dtype)).all()
    operation.free()


@pytest.mark.parametrize("op", ["", "sum"])
def test_a_long_list(context, op):
    """Scattered, from the first rank to the last one, beside short ones around the ring; the last rank owns nothing."""
    n, me = context.size, context.rank
    rng = np.random.default_rng(5)
    owned = [0 if 0 < rank == n - 1 else 120_000 + rank for rank in range(n)]
    messages = [(0, rng.permutation(owned[0])[: 30_000 if op else 100_000], n - 1)]
    messages += [(r, np.arange(r, 3000, 7), (r + 1) % n) for r in range(n) if owned[r]]
    cells, ghosts = list(owned), []
    for _, sent, taker in messages:
        ghosts.append(rng.permutation(len(sent)) + cells[taker])
        cells[taker] += len(sent)
    entries: list[tuple] = [(taker, sent, None) for owner, sent, taker in messages if owner == me]
    entries += [(owner, None, g) for (owner, _, taker), g in zip(messages, ghosts, strict=True) if taker == me]
    u = tasuki.shared_array(context, (cells[me],), "int32") if op else np.zeros(cells[me], "int32")
    options = {"reverse": True, "op": op} if op else {}
    operation = checked(tasuki.Exchange(context, u, entries, **options))
    for turn in range(TURNS):
        values = [(np.arange(cells[r]) * 31 + 7 * r + turn) % 1009 for r in range(n)]
        old = [of_rank.copy() for of_rank in values]
        u[:] = values[me]
        for (owner, sent, taker), received in zip(messages, ghosts, strict=True):
            if op:
                values[owner][sent] += old[taker][received]
            else:
                values[taker][received] = old[owner][sent]
        operation.run()
        np.testing.assert_array_equal(u, values[me])
    operation.free()


def test_ranks_without_cells(context):
    """Their arrays have no elements, so that their strides mean nothing."""
    n, me = context.size, context.rank
    cells = 0 if me == n - 1 and n > 1 else 4
    u = np.lib.stride_tricks.as_strided(np.zeros(1), (0, 2), (0, 0)) if cells == 0 else np.zeros((cells, 2))
    entries = [(0, [1], None), (0, None, [3])] if me == 0 else []
    operation = checked(tasuki.Exchange(context, u, entries))
    for turn in range(TURNS):
        u[:] = me + turn
        if me == 0:
            u[1] = [7 + turn, 8]
        operation.run()
        assert me != 0 or u[3].tolist() == [7 + turn, 8]


def test_a_mesh_by_name(context):
    n, me = context.size, context.rank
    for scrambled in (True, False):
        mine = wavy_mesh(30, n, scrambled=scrambled)[me]
        u, v = np.zeros((mine.cells, 3)), np.zeros(mine.cells, "int32")
        operation = checked(tasuki.Exchange(context, {"u": u, "v": v}, mine.entries))
        assert operation.plan.operation == "exchange u,v"
        for turn in range(TURNS):
            u[:], v[:] = -1, -1
            u[: len(mine.owned)] = mine.owned[:, None] * 10 + [0, 1, 2] + turn / 4
            v[: len(mine.owned)] = mine.owned + turn
            operation.run()
            everything = np.concatenate([mine.owned, mine.ghosts])
            np.testing.assert_array_equal(u, everything[:, None] * 10 + [0, 1, 2] + turn / 4)
            np.testing.assert_array_equal(v, everything + turn)


def test_a_numbering_that_costs_runs_is_told(context):
    n, me = context.size, context.rank
    right, left = (me + 1) % n, (me - 1) % n
    for cells, ghosts, hint in (
        ([0, 1, 2], [3, 4, 5], ""),
        ([0, 1, 2], [5, 3, 4], "hint: what is received of field u lies in 2 runs; with these cells numbered in the "),
        (
            [2, 0, 1],
            [3, 4, 5],
            "hint: what is sent of field u lies in 2 runs; with these cells numbered in the order in ",
        ),
        ([1, 0, 1], [3, 4, 5], ""),  # in any order, a cell that is sent twice ends a run
    ):
        u = np.zeros((6, 2))
        operation = checked(tasuki.Exchange(context, {"u": u}, [(right, cells, []), (left, [], ghosts)]))
        assert operation.explain().count("hint:") == int(bool(hint)) and hint in operation.explain()


def test_layouts_in_place_of_cells(context):
    n, me = context.size, context.rank
    a, b = np.zeros(8), np.zeros(6, "int16")
    right, left = (me + 1) % n, (me - 1) % n
    doubles = tasuki.Layout.vector(2, 1, 2, tasuki.Layout.of("float64"))
    shorts = tasuki.Layout.contiguous(3, tasuki.Layout.of("int16"))
    sent = [doubles, shorts]
    received = [tasuki.Layout.hindexed([1], [32], doubles), tasuki.Layout.hindexed([1], [6], shorts)]
    operation = checked(tasuki.Exchange(context, [a, b], [(right, sent, None), (left, None, received)]))
    for turn in range(TURNS):
        a[:], b[:] = np.arange(8) + 100 * me + turn, np.arange(6) + 10 * me + turn
        operation.run()
        np.testing.assert_array_equal(a[4:] - turn, [100 * left, 5 + 100 * me, 2 + 100 * left, 7 + 100 * me])
        np.testing.assert_array_equal(b - turn, [*(np.arange(3) + 10 * me), *(np.arange(3) + 10 * left)])


def test_plans_made_off_line_are_those_of_the_ranks(context):
    n, me = context.size, context.rank
    parts = wavy_mesh(20, n)
    u = tasuki.shared_array(context, (parts[me].cells, 2))
    for reverse in (False, True):
        live = tasuki.Exchange(context, {"u": u}, parts[me].entries, reverse=reverse)
        planned = tasuki.plan_exchange(
            tasuki.machine_of(context), [p.entries for p in parts], "u", numbers=2, shared=True, reverse=reverse
        )
        assert planned.plan(me).json() == live.plan.json()
        assert planned.verify()


def wrong(context, entries, match, fields=None, **keywords):
    with pytest.raises(tasuki.Error, match=match) as caught:
        tasuki.Exchange(context, np.zeros(10) if fields is None else fields, entries, **keywords)
    return str(caught.value)


def test_what_is_wrong_is_named_on_every_rank(context):
    n, me = context.size, context.rank
    last = n - 1
    at_last = lambda entries: entries if me == last else []  # noqa: E731
    other = lambda *lists: [(0, *lists)]  # noqa: E731
    for entries, match in (
        ([(n, [0], [])], f"entry 0 is for rank {n}, but there are ranks 0 to {last}"),
        (other([0, 10], []), r"entry 0: 'send' names cell 10 \(place 1\), but field field has 10 cells"),
        (other([], [-1]), r"entry 0: 'receive' names cell -1 \(place 0\)"),
        ([(0, [], [4, 5]), (0, [], [6, 4])], "cell 4 is received twice: in entry 0 and in entry 1"),
        ([(0, [1, 2], []), (0, [], [2])], r"cell 2 is received \(entry 1\), but also sent \(entry 0\)"),
        (other([0.5], []), r"entry 0: 'send' is \[0.5\]; it must be a list of cells"),
        (other([True], []), r"numpy.flatnonzero\(mask\)"),
        ([(0, [0])], r"entry 0 is .*it must be \(rank, send, receive\)"),
        ([("a", [0], [])], r"entry 0 is .*it must be \(rank, send, receive\)"),
        (other([tasuki.Layout.of("float64")] * 2, []), "has 2 layouts for 1 fields"),
    ):
        text = wrong(context, at_last(entries), match)
        assert f"rank {last}: " in text
    wrong(context, at_last([(0, [1, 1], [])]), "entry 0: 'send' names cell 1 twice, which reverse", reverse=True)
    wrong(context, [], "'fields' is empty", fields=[])
    wrong(context, [], r"field 0|cells are counted along dimension 2, but the array has 1", fields=(np.zeros(4), 2))
    wrong(context, [], "which reverse cannot do with elements of f64", reverse=True, op="band")
    wrong(context, [], "unknown|'none'", op="none")
    wrong(context, [], "reverse needs numbers to combine", fields=np.zeros(4, "M8[s]"), reverse=True)
    both = np.zeros((10, 2))
    wrong(context, other([], [3]) if me == 0 else [], "overlap in memory", fields=[both, both])


def test_lists_that_do_not_fit_are_named_on_every_rank(context):
    n, me = context.size, context.rank
    right, left = (me + 1) % n, (me - 1) % n
    fits = [(right, [0, 1], []), (left, [], [5, 6])]
    checked(tasuki.Exchange(context, np.zeros(10), fits))
    # The last rank sends more than rank 0 receives.
    more = [(right, [0, 1, 2], []), fits[1]] if me == n - 1 else fits
    says = f"rank {n - 1} sends 3 cells of field field to rank 0 (its entry 0), which receives 2 from it (its entry 1)"
    wrong(context, more, re.escape(says))
    wrong(context, more, re.escape(says), reverse=True)
    # Rank 0 lists nothing.
    says = f"rank {n - 1} sends to rank 0 in 1 of its entries, but rank 0 receives from rank {n - 1} in 0 of its own"
    if n > 1:
        text = wrong(context, [] if me == 0 else fits, "in 1 of its entries, but|in 0 of its entries, but")
        assert says in text or "rank 0 sends to rank 1 in 0 of its entries" in text
    fields = [np.zeros(4), np.zeros(4)] if me == n - 1 and n > 1 else [np.zeros(4)]
    if n > 1:
        wrong(context, [], "argument 'number of fields' differs between ranks", fields=fields)
    # Nothing is left over: the next one works.
    checked(tasuki.Exchange(context, np.zeros(10), fits)).run()


@settings(max_examples=10)
@given(st.data())
def test_entries_from_global_numbers(context, data):
    n, me = context.size, context.rank
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 20)))
    far = data.draw(st.booleans())  # numbers of 64 bits, in directories of all ranks
    total = int(rng.integers(1, 200))
    numbers = rng.choice(1 << 60, total, replace=False) if far else rng.permutation(total)
    owner = rng.integers(0, n, total)
    owned = [numbers[owner == r] for r in range(n)]
    ghosts = [rng.choice(numbers, int(rng.integers(0, 50))) for _ in range(n)]  # some twice, some of their own rank
    u = np.zeros((len(owned[me]) + len(ghosts[me]), 2))
    operation = checked(tasuki.Exchange.of_numbers(context, {"u": u}, owned[me], ghosts[me]))
    for turn in range(TURNS):
        u[:] = -1
        u[: len(owned[me])] = np.stack([owned[me] % 1000003 + turn, owned[me] % 7], axis=1)
        operation.run()
        everything = np.concatenate([owned[me], ghosts[me]])
        np.testing.assert_array_equal(u, np.stack([everything % 1000003 + turn, everything % 7], axis=1))


def test_numbers_that_nobody_owns_or_two_do_are_named_on_every_rank(context):
    n, me = context.size, context.rank
    for owned, ghosts, match in (
        ([me], [n] if me == n - 1 else [], f"cell {n} is a ghost of rank {n - 1}, but no rank owns it"),
        ([me, n] if me in (0, n - 1) else [me], [], f"cell {n} is owned by rank 0 and by rank {n - 1}"),
        ([me, n + me, n + me], [], f"cell {n} is named twice in 'owned' of rank 0"),
        ([me], [-5] if me == n - 1 else [], rf"rank {n - 1}: argument 'ghosts' has -5 \(place 0\)"),
        ([me], [0.5] if me == n - 1 else [], "'ghosts' is"),
    ):
        if n == 1 and "owned by rank" in match:
            continue
        with pytest.raises(tasuki.Error, match=match):
            tasuki.find_entries(context, owned, ghosts)
    assert [entry[0] for entry in tasuki.find_entries(context, [me], [(me + 1) % n])] == sorted(
        {(me + 1) % n, (me - 1) % n}
    )


def test_products_of_a_sparse_matrix(context):
    sparse = pytest.importorskip("scipy.sparse")
    n, me = context.size, context.rank
    counts = [7 + 3 * (r % 3) for r in range(n)]
    begin, total = sum(counts[:me]), sum(counts)
    whole = sparse.random_array((total, total), density=0.2, rng=np.random.default_rng(3), format="csr")
    part = tasuki.Exchange.of_matrix(context, whole[begin : begin + counts[me]])
    checked(part.exchange)
    x = np.arange(total) % 5 + 1.0
    for _ in range(TURNS):
        part.vector[: counts[me]] = x[begin : begin + counts[me]]
        part.exchange.run()
        mine = part.matrix @ part.vector
        x = whole @ x
        np.testing.assert_array_equal(mine, x[begin : begin + counts[me]])
    with pytest.raises(tasuki.Error, match=f"rank {n - 1}: argument 'rows' has {total + 1} columns"):
        wide = whole[begin : begin + counts[me]]
        if me == n - 1:
            wide = sparse.csr_array((counts[me], total + 1))
        tasuki.Exchange.of_matrix(context, wide)
