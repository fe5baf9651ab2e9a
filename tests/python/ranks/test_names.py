"""Names of fields and operators with newlines, NULs and characters of several bytes: nothing is disturbed by them."""

from __future__ import annotations

import numpy as np
import pytest

import tasuki

NAMES = [
    "p\nq",
    "\n",
    "\x00z",
    "a\x00b\n",
    "ü→☃",
    "12:34",
    "arrived.0<1",
    "check out",
    'u "v" # \\',
    "{} %s",
    "x" * 20001,
]


def add(into, other):
    into += other


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_any_name_of_a_field_or_an_operator_works(context, name):
    me, n = context.rank, context.size
    grid = tasuki.Grid(context, (4 * n, 6), split=(n, 1), periodic=True)
    u, v = tasuki.Field(grid, name=name), tasuki.Field(grid, name=name + "2")
    halo = tasuki.Halo([u, v])
    assert tasuki.verify(halo)
    for epoch in range(3):
        u.owned[...], v.owned[...] = 10 * epoch + me, -me
        halo.run()
        assert (u.array[0] == 10 * epoch + (me - 1) % n).all()
        assert (v.array[0] == -((me - 1) % n)).all()
    plan = halo.plan
    assert tasuki.Plan.from_text(plan.text()) == plan
    assert tasuki.Plan.from_json(plan.json()) == plan
    assert name in u.name and repr(u) and halo.explain()
    total = np.zeros(3)
    operator = tasuki.Operator(add, name=name)
    reduction = tasuki.Allreduce(context, np.full(3, float(me)), total, op=operator)
    assert tasuki.verify(reduction)
    reduction.run()
    assert (total == n * (n - 1) / 2).all()


def test_an_error_that_quotes_a_long_name_is_text_on_every_rank(context):
    grid = tasuki.Grid(context, (4 * context.size, 6))
    name = "ü☃\n" * 5000
    field = tasuki.Field(grid, name=name, shadow=1)
    with pytest.raises(tasuki.Error, match="does not fit its shadow") as error:
        tasuki.Halo((field, 2))
    assert name in str(error.value)
