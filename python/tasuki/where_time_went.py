"""Where a recorded run's time went: for each operation how long it held the program up, for whom it waited, over which
paths, what was predicted, and what may be tried. The report's first page."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median

from tasuki.timeline import CALLS, COMMAND, KINDS, Event, RankTrace, describe

WAITING = ("wait", "recv")  # commands that end when another rank has done something
LATE = 0.5  # of all waiting: who causes so much of it is named
SLOW = 2.0  # times the prediction: then the prices are doubted
STEADY_EPOCHS = 4  # that the timeline shows at first


@dataclass
class Row:
    """One operation, over all ranks. Times in seconds, of all epochs unless they say otherwise."""

    operation: str
    number: int
    epochs: int = 0
    exposed: float = 0  # in calls of the program, on the mean rank
    hidden: float = 0  # of the time from start to its last command, what the program did not spend in its calls
    share: float = 0  # exposed, of the run
    epoch_us: float = 0  # from start to the last command on a rank, in the median
    predicted_us: float | None = None
    paths: list[str] = field(default_factory=list)  # those that move bytes first
    waits: float = 0  # in commands that wait for others, all ranks together
    for_whom: list[tuple[int, int, float]] = field(default_factory=list)  # (rank, whom, seconds), the longest first
    advice: str = ""


def by_epoch(trace: RankTrace) -> dict[tuple[int, int], list[Event]]:
    found: dict[tuple[int, int], list[Event]] = defaultdict(list)
    for event in trace.events:
        found[event.operation, event.epoch].append(event)
    return found


def length_of(trace: RankTrace) -> float:
    calls = trace.calls()
    return (calls[-1].end - calls[0].begin) / 1e9 if calls else 0


def paths_of(traces: list[RankTrace], number: int) -> list[str]:
    moved: dict[str, int] = defaultdict(int)
    for trace in traces:
        if number < len(trace.plans):
            plan = trace.plans[number]
            for command in plan["commands"]:
                about = describe(plan, command)
                if about["peer"] not in (-1, trace.rank):
                    moved[about["path"]] += about["bytes"]
    return sorted(moved, key=lambda path: (-moved[path], path))


def rows_of(traces: list[RankTrace], cores: Mapping[str, int] | None = None) -> list[Row]:
    """A row an operation, those that held the program up longest first. cores: of hosts by name, as far as known."""
    full = crowded(traces, cores or {})
    rows: dict[int, Row] = {}
    lengths: dict[int, list[float]] = defaultdict(list)
    waits: dict[int, dict[tuple[int, int], int]] = defaultdict(lambda: defaultdict(int))
    epochs: dict[int, set[int]] = defaultdict(set)
    for trace in traces:
        for (number, epoch), events in by_epoch(trace).items():
            plan = trace.plans[number]
            row = rows.setdefault(number, Row(plan["operation"], number))
            epochs[number].add(epoch)
            exposed = sum(e.end - e.begin for e in events if e.kind in CALLS)
            row.exposed += exposed / 1e9 / len(traces)
            starts = [e.begin for e in events if KINDS[e.kind] == "start"]
            ends = [e.end for e in events if e.kind == COMMAND]
            if starts and ends:
                flight = max(ends) - min(starts)
                lengths[number].append(flight / 1e3)
                row.hidden += max(0, flight - exposed) / 1e9 / len(traces)
            for e in events:
                if e.kind == COMMAND:
                    about = describe(plan, trace.command(e))
                    if about["verb"] in WAITING and about["peer"] not in (-1, trace.rank):
                        waits[number][trace.rank, about["peer"]] += e.end - e.begin
    run = max(map(length_of, traces), default=0)
    for number, row in rows.items():
        row.epochs = len(epochs[number])
        row.share = row.exposed / run if run else 0
        row.epoch_us = median(lengths[number]) if lengths[number] else 0
        predicted = [t.predicted[number] for t in traces if number < len(t.predicted)]
        row.predicted_us = max(predicted, default=0) or None
        row.paths = paths_of(traces, number)
        row.waits = sum(waits[number].values()) / 1e9
        longest = sorted(waits[number].items(), key=lambda item: (-item[1], item[0]))
        row.for_whom = [(rank, whom, ns / 1e9) for (rank, whom), ns in longest]
        row.advice = advice_on(row, traces, full)
    return sorted(rows.values(), key=lambda row: -row.exposed)


def late_rank(row: Row) -> int | None:
    """The rank that causes most of the waiting, where there are others that could."""
    caused: dict[int, float] = defaultdict(float)
    for _, whom, seconds in row.for_whom:
        caused[whom] += seconds
    if len(caused) < 3 or not row.waits:
        return None
    whom = max(caused, key=lambda rank: caused[rank])
    return whom if caused[whom] > LATE * row.waits else None


def same_host(traces: list[RankTrace], row: Row) -> bool:
    """Whether messages of MPI go between ranks of one island, where loads and stores would do."""
    island = {t.rank: (t.host, t.island) for t in traces}
    for trace in traces:
        if row.number < len(trace.plans):
            plan = trace.plans[row.number]
            for command in plan["commands"]:
                about = describe(plan, command)
                other = about["peer"] not in (-1, trace.rank)
                if about["path"] == "mpi" and other and island.get(about["peer"]) == island[trace.rank]:
                    return True
    return False


def crowded(traces: list[RankTrace], cores: Mapping[str, int]) -> str:
    """What is wrong if a host has more ranks than cores; empty: nothing is known to be."""
    for host, ranks in Counter(trace.host for trace in traces).items():
        if ranks > cores.get(host, ranks):
            return (
                f"host {host} has more ranks ({ranks}) than cores ({cores[host]}): ranks wait for a core, which no "
                "prediction counts"
            )
    return ""


def times(ratio: float) -> str:
    """`2.4`, `1250`: at most three digits that count, and no exponent."""
    return f"{float(f'{ratio:.3g}'):.15g}"


def advice_on(row: Row, traces: list[RankTrace], full: str) -> str:
    """What may be tried, most telling first; empty: nothing that the record shows. full: what `crowded` says."""
    found = []
    busy = row.exposed + row.hidden
    if row.share < 0.01:
        return ""
    if full:
        found.append(full)
    if (whom := late_rank(row)) is not None:
        found.append(f"most waiting is for rank {whom}: give it less to compute, or look at what delays it")
    if busy and row.hidden < 0.1 * busy:
        found.append("next to nothing of it is hidden: compute what does not need its result between start and wait")
    if row.predicted_us and row.epoch_us > SLOW * row.predicted_us and late_rank(row) is None:
        slow = f"it takes {times(row.epoch_us / row.predicted_us)} times what was predicted"
        why = "ranks that start at different times look so, and prices that do not fit (`tasuki tune`, or option tune)"
        found.append(slow if full else f"{slow}: {why}")  # prices are not measured where ranks share cores
    if same_host(traces, row):
        found.append("ranks of one island exchange by MPI: fields in Tasuki's memory are reached by loads and stores")
    return "; ".join(found)


def steady(traces: list[RankTrace]) -> tuple[float, float] | None:
    """The part of the timeline to look at first, in µs from its begin: some epochs of the operation that runs most
    often, near the end, where everything has been run before. None: nothing has run twice."""
    if not traces or not any(t.events for t in traces):
        return None
    origin = min(e.begin for t in traces for e in t.events)
    begins: dict[int, dict[int, int]] = defaultdict(dict)
    for e in traces[0].events:
        first = begins[e.operation].get(e.epoch, e.begin)
        begins[e.operation][e.epoch] = min(first, e.begin)
    if not begins:
        return None
    often = max(begins.values(), key=len)
    order = sorted(often.values())
    if len(order) < 3:
        return None
    last = order[-1]
    first = order[max(1, len(order) - 1 - STEADY_EPOCHS)]
    return (first - origin) / 1e3, (last - origin) / 1e3
