"""What a failure is about: subclasses of tasuki.Error, on every rank that it concerns."""

from __future__ import annotations

import numpy as np
import pytest

import tasuki


def test_a_typo_is_an_argument_error_on_every_rank(context):
    a, b = np.zeros(4), np.zeros(4)
    odd = context.rank == context.size - 1
    with pytest.raises(tasuki.ArgumentError, match="no algorithm 'magic'"):
        tasuki.Allreduce(context, a, b, algorithm="magic")
    with pytest.raises(tasuki.ArgumentError, match="'source' is None"):
        tasuki.Allreduce(context, None if odd else a, b)
    with pytest.raises(tasuki.ArgumentError, match="argument 'root' is 99"):
        tasuki.Broadcast(context, 99, a)


def test_different_arguments_are_a_disagreement(context):
    if context.size == 1:
        pytest.skip("one rank agrees with itself")
    odd = context.rank == context.size - 1
    with pytest.raises(tasuki.DisagreementError, match="argument 'shape' differs between ranks"):
        tasuki.Grid(context, (8 + odd, 8))
    with pytest.raises(tasuki.DisagreementError, match="argument 'root' differs between ranks"):
        tasuki.Broadcast(context, int(odd), np.zeros(3))


def test_what_this_machine_cannot_do_is_not_possible(context):
    field = tasuki.Field(tasuki.Grid(context, (8 * context.size,)))
    if context.size > 1:
        with pytest.raises(tasuki.NotPossibleError, match="peer"):
            tasuki.Halo(field, path="peer")
    if tasuki.why_no_gpu():
        with pytest.raises(tasuki.NotPossibleError, match="GPU"):
            tasuki.use_gpu(context)
        with pytest.raises(tasuki.NotPossibleError, match="GPU"):
            tasuki.Fork()


def test_all_are_errors_of_tasuki():
    kinds = (
        tasuki.ArgumentError,
        tasuki.DisagreementError,
        tasuki.NotPossibleError,
        tasuki.RankDiedError,
        tasuki.DeadlineError,
        tasuki.SystemFailure,
    )
    assert all(issubclass(kind, tasuki.Error) and kind.__module__ == "tasuki" and kind.__doc__ for kind in kinds)
