"""What the tests of collectives share: the values of a rank at a turn, and the verifier on every operation."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np

import tasuki


def values(rank, turn, count, dtype):
    """What a rank has at a turn: small whole numbers, so that sums are exact in any order."""
    return ((np.arange(count) * 7 + rank * 5 + turn * 3) % 11).astype(dtype)


def checked(operation, name=""):
    """The operation, which the verifier has found to be sound; `name`: of its operator."""
    report = tasuki.verify(operation)
    assert report, report.text()
    assert not name or f"by {name}" in operation.plan.operation
    return operation


def drawn_counts(data, ranks, most):
    """Elements of each rank's block, and what argument `counts` says of it: None where all are equal."""
    counts = data.draw(st.lists(st.integers(0, most), min_size=ranks, max_size=ranks))
    if data.draw(st.booleans()):
        return [counts[0]] * ranks, None
    return counts, counts


def drawn_exchange(data, ranks):
    """Elements [from, to] of an alltoall, whether all are equal, and whether ranks work in place: as many both ways."""
    counts = np.array(data.draw(st.lists(st.integers(0, 9), min_size=ranks * ranks, max_size=ranks * ranks)))
    counts = counts.reshape(ranks, ranks)
    if equal := data.draw(st.booleans()):
        counts[...] = counts[0, 0]
    if here := data.draw(st.booleans()):
        counts = np.maximum(counts, counts.T)
    return counts, equal, here
