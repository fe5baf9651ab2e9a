"""Operators whose functions raise, or do what they must not: their operation fails, and the other ranks hear of it."""

from __future__ import annotations

import pytest

PROGRAM = """
import time
import numpy as np
import tasuki
context = tasuki.Context()
kept = []

def raises(into, other):
    into += other
    if into[0] > 100:
        raise ValueError("more than a hundred")

def keeps(into, other):
    kept.append(into[1:])

def keeps_memory(into, other):
    kept.append(memoryview(other))

def gives(into, other):
    return into + other

def uses(into, other):
    into += context.rank

mine, total = np.full(3, 1.0), np.zeros(3)
operation = tasuki.Allreduce(context, mine, total, op={function}, engine="{engine}", algorithm="exchange")
assert tasuki.verify(operation)
barrier = tasuki.Barrier(context)
if {function} is raises:  # not yet
    operation.run()
    assert (total == context.size).all()
mine[...] = 60
try:
    operation.start()
    if {others_first}:
        barrier.start()
        try:
            barrier.wait()
        except tasuki.Error:  # it may end, or hear of the failure
            pass
    operation.wait()
except tasuki.Error as error:
    print(f"rank {{context.rank}} was told: {{error}}; of {{type(error.__cause__).__name__}}", flush=True)
    assert not operation.active
    time.sleep(1)  # the launcher ends those that are left when two have failed
"""

TOLD = {
    "raises": "its function raised ValueError: more than a hundred",
    "keeps": "its function keeps an array that it was given",
    "keeps_memory": "its function keeps an array that it was given",
    "gives": "its function returned a ndarray; it must put the result into its first argument",
    "uses": "an operator's function uses Tasuki",
}


@pytest.mark.parametrize("engine", ["inline", "thread"])
@pytest.mark.parametrize(
    ("function", "others_first"),
    [("raises", False), ("raises", True), ("keeps", False), ("keeps_memory", True), ("gives", True), ("uses", False)],
)
def test_what_a_function_does_wrong_is_told(run, function, engine, others_first):
    status, text = run(3, PROGRAM.format(function=function, engine=engine, others_first=others_first), recover=True)
    assert status not in (124, 139) and "terminate" not in text and "Segmentation" not in text, text
    for rank in range(3):
        assert f"rank {rank} was told: rank {rank}: " in text, text
    assert TOLD[function] in text, text
    if function == "raises":
        assert "more than a hundred; of ValueError" in text, text  # where it was raised, with its cause
