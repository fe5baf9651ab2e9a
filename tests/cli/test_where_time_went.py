"""The report's first page, from traces written by hand: who waited for whom, and what is said of it."""

from __future__ import annotations

import pytest

from tasuki import report, where_time_went
from tasuki.timeline import COMMAND, KINDS, Event, RankTrace

START, WAIT = KINDS.index("start"), KINDS.index("wait")
US = 1000


def plan_of(rank, ranks, path="shared:put", name="halo u"):
    """Waits for the rank below, and puts to the one above."""
    commands = [
        {"verb": "put", "peer": (rank + 1) % ranks, "bytes": 800, "path": 0},
        {"verb": "wait", "peer": (rank - 1) % ranks, "path": 0},
    ]
    return {"operation": name, "paths": [path], "commands": commands}


def trace_of(rank, ranks, late=(), hidden=0, path="shared:put", predicted=5.0, epochs=10):
    """Epochs of 100 µs, with 10 µs in start. Ranks in `late` are waited for 50 µs, others 2."""
    events = []
    for epoch in range(1, epochs + 1):
        at = epoch * 100 * US
        waits = 50 if (rank - 1) % ranks in late else 2
        end = at + (10 + waits) * US
        events.append(Event(START, 0, -1, epoch, 0, at, at + 10 * US))
        events.append(Event(COMMAND, 0, 0, epoch, 0, at + US, at + 2 * US))
        events.append(Event(COMMAND, 0, 1, epoch, 0, end - waits * US, end))
        events.append(Event(WAIT, 0, -1, epoch, 0, at + (10 + min(hidden, waits)) * US, end))
    return RankTrace(rank, ranks, "host", 0, 0, 0, [plan_of(rank, ranks, path)], events, [predicted])


def test_a_rank_that_comes_late_is_named():
    (row,) = where_time_went.rows_of([trace_of(rank, 4, late=(2,)) for rank in range(4)])
    assert (row.operation, row.epochs, row.paths) == ("halo u", 10, ["shared:put"])
    rank, whom, seconds = row.for_whom[0]
    assert (rank, whom) == (3, 2) and seconds == pytest.approx(500e-6)
    assert "most waiting is for rank 2" in row.advice and "times what was predicted" not in row.advice


def test_what_is_not_hidden_and_slower_than_predicted_is_said():
    traces = [trace_of(rank, 4) for rank in range(4)]
    (row,) = where_time_went.rows_of(traces)
    assert row.epoch_us == pytest.approx(12) and row.predicted_us == 5
    assert "hidden: compute" in row.advice and "2.4 times what was predicted" in row.advice
    assert row.share == pytest.approx(0.12, rel=0.1)
    (row,) = where_time_went.rows_of([trace_of(rank, 4, late=range(4), hidden=45, predicted=60) for rank in range(4)])
    assert row.advice == "" and row.hidden == pytest.approx(450e-6)


def test_more_ranks_than_cores_are_said_first():
    traces = [trace_of(rank, 4, predicted=12 / 1251.7) for rank in range(4)]
    (row,) = where_time_went.rows_of(traces, {"host": 2})
    assert row.advice.startswith("host host has more ranks (4) than cores (2): ")
    assert row.advice.endswith("it takes 1250 times what was predicted") and "tune" not in row.advice
    for cores in ({"host": 4}, {"other": 2}, {}):
        (row,) = where_time_went.rows_of(traces, cores)
        assert "cores" not in row.advice and "tasuki tune" in row.advice


def test_cores_are_known_of_the_host_that_info_ran_on():
    cores = {"what": "cores", "usable": True, "text": "2"}
    lines = ["2 ranks, 1 host", "rank 0: host 0 (a (b)), island 0, pid 1", "rank 1: host 0 (a (b)), island 0, pid 2"]
    assert report.cores_of({"usable": [cores], "topology": lines}) == {"a (b)": 2}
    several = [*lines, "rank 2: host 1 (c), island 1, pid 3"]
    for info in (
        None,
        {"usable": [cores], "topology": []},
        {"usable": [cores], "topology": several},
        {"usable": [], "topology": lines},
        {"usable": [cores | {"text": "9" * 5000}], "topology": lines},
    ):
        assert report.cores_of(info) == {}


def test_commands_in_advice_are_shown_as_code():
    made = report.table(["to try"], [["`tasuki tune` <b>, `one"]])
    assert "<td><code>tasuki tune</code> &lt;b&gt;, `one</td>" in made


def test_messages_inside_an_island_are_said():
    (row,) = where_time_went.rows_of([trace_of(rank, 2, path="mpi") for rank in range(2)])
    assert "ranks of one island exchange by MPI" in row.advice and row.paths == ["mpi"]


def test_the_timeline_opens_near_the_end():
    traces = [trace_of(rank, 2) for rank in range(2)]
    first, last = where_time_went.steady(traces)
    assert (first, last) == (500.0, 900.0)  # µs from the first event
    assert where_time_went.steady([trace_of(0, 2, epochs=2)]) is None
    assert where_time_went.steady([]) is None and where_time_went.rows_of([]) == []
