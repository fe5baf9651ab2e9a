"""Reads what ranks recorded (rank-N.json of TASUKI_TRACE), merges it into one timeline, and adds it up.

The timeline is in the Trace Event Format that chrome://tracing and ui.perfetto.dev open: a process a rank, a thread for
the program and one for each lane of each operation.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import groupby, islice
from pathlib import Path
from statistics import median

from tasuki.checked import (
    COUNT,
    LIST,
    NUMBER,
    POSITIVE_COUNT,
    TEXT,
    FileError,
    is_whole,
    need,
    need_all,
    read_json,
    shown,
)

FORMAT = 1
FIELDS = ["kind", "operation", "command", "epoch", "round", "begin_ns", "end_ns"]
KINDS = ["start", "test", "wait", "command"]
CALLS = {KINDS.index(name) for name in ("start", "test", "wait")}
COMMAND = KINDS.index("command")
MOST_NAMED = 10  # of missing ranks


@dataclass(frozen=True)
class Event:
    kind: int
    operation: int
    command: int
    epoch: int
    round: int
    begin: int  # ns
    end: int


@dataclass
class RankTrace:
    rank: int
    ranks: int
    host: str
    island: int
    overwritten: int  # events that the bounded record has lost, the oldest
    left_out: int  # operations that were not recorded, being too many
    plans: list[dict]
    events: list[Event]
    predicted: list[float] = field(default_factory=list)  # µs of an epoch of each; 0: not predicted

    def calls(self) -> list[Event]:
        """The program's own calls, in order of time. They do not overlap."""
        return sorted((e for e in self.events if e.kind in CALLS), key=lambda e: e.begin)

    def command(self, event: Event) -> dict:
        return self.plans[event.operation]["commands"][event.command]


def some_missing(there: Collection[int], ranks: int) -> tuple[int, str]:
    """How many of the ranks are not there, and the first of them in words. Takes no time for absurdly many ranks."""
    count = ranks - sum(rank < ranks for rank in there)
    named = list(islice((rank for rank in range(ranks) if rank not in there), MOST_NAMED)) if count else []
    more = f" and {count - len(named)} more" if count > len(named) else ""
    return count, ", ".join(map(str, named)) + more


HEAD = {
    "rank": COUNT,
    "ranks": POSITIVE_COUNT,
    "host": TEXT,
    "island": COUNT,
    "events_overwritten": COUNT,
    "operations_left_out": COUNT,
}


def sound_plan(plan: object, file: Path, place: str) -> dict:
    """The plan with every list that it may leave out, having been looked at by the core."""
    import tasuki

    need_all(plan, {"operation": TEXT, "paths": LIST, "buffers": LIST, "commands": LIST}, file, place)
    try:
        read = tasuki.Plan.from_json(json.dumps(plan))
    except tasuki.Error as error:
        raise FileError(f"{file}: {place}: {error}") from None
    complaints = read.complaints()
    if complaints:
        raise FileError(f"{file}: {place}: {complaints[0]}")
    return {"deps": []} | json.loads(read.json()) | {"operation": plan["operation"]}


def sound_event(numbers: object, plans: list[dict], file: Path, place: str) -> Event:
    if not isinstance(numbers, list) or len(numbers) != len(FIELDS) or not all(map(is_whole, numbers)):
        raise FileError(f"{file}: {place} is {shown(numbers)}; it must be {len(FIELDS)} whole numbers")
    event = Event(*numbers)
    if not 0 <= event.kind < len(KINDS):
        raise FileError(f"{file}: {place} is of kind {event.kind}; there are 0 to {len(KINDS) - 1}")
    if not 0 <= event.operation < len(plans):
        raise FileError(f"{file}: {place} is of operation {event.operation}; there are {len(plans)}")
    commands = len(plans[event.operation]["commands"])
    if event.kind == COMMAND and not 0 <= event.command < commands:
        raise FileError(f"{file}: {place} is of command {event.command}; operation {event.operation} has {commands}")
    if event.end < event.begin:
        raise FileError(f"{file}: {place} ends at {event.end} ns, before it begins at {event.begin} ns")
    return event


def load_rank(file: Path) -> RankTrace:
    data = read_json(file)
    if not isinstance(data, dict) or data.get("format") != FORMAT or data.get("fields") != FIELDS:
        raise FileError(f"{file}: no trace of format {FORMAT}")
    need_all(data, HEAD | {"plans": LIST, "events": LIST}, file)
    if file.name != f"rank-{data['rank']}.json":
        raise FileError(f"{file}: its rank is {data['rank']}; was it renamed?")
    plans = [sound_plan(plan, file, f"plans[{i}]") for i, plan in enumerate(data["plans"])]
    events = [sound_event(event, plans, file, f"events[{i}]") for i, event in enumerate(data["events"])]
    predicted = need(data.get("predicted_us", []), LIST, file, "predicted_us")
    for i, number in enumerate(predicted):
        need(number, NUMBER, file, f"predicted_us[{i}]")
    return RankTrace(*(data[key] for key in HEAD), plans, events, predicted)


def ranks_in(folder: Path) -> list[int]:
    """The ranks that have left a file there."""
    files = folder.iterdir() if folder.is_dir() else []
    names = (re.fullmatch(r"rank-(0|[1-9]\d{0,8})\.json", file.name) for file in files)
    return sorted(int(name[1]) for name in names if name)


def load(folder: Path) -> list[RankTrace]:
    """The traces of all ranks, by rank."""
    there = ranks_in(folder)
    if not there:
        raise FileError(f"{folder} has no rank-N.json; was the run recorded (TASUKI_TRACE), and did it use Tasuki?")
    first = folder / f"rank-{there[0]}.json"
    zero = load_rank(first)
    count, missing = some_missing(set(there), zero.ranks)
    if count:
        named = ", ".join(map(str, there[:MOST_NAMED])) + (", ..." if len(there) > MOST_NAMED else "")
        raise FileError(
            f"{first} is of {zero.ranks} ranks; there are files of {named}; these have written nothing: {missing}"
        )
    others = [folder / f"rank-{rank}.json" for rank in range(1, zero.ranks)]
    traces = [zero, *map(load_rank, others)]
    for file, trace in zip([first, *others], traces):
        if trace.ranks != zero.ranks:
            raise FileError(f"{file} is of a run on {trace.ranks} ranks, and rank-0.json of one on {zero.ranks}")
        for i, plan in enumerate(trace.plans):
            if plan.get("ranks", 1) > trace.ranks:
                raise FileError(f"{file}: plans[{i}] is for {plan['ranks']} ranks; there are {trace.ranks}")
    return traces


def gaps(calls: list[Event]) -> list[tuple[int, int]]:
    """Between the program's calls: what counts as its computation."""
    return [(a.end, b.begin) for a, b in zip(calls, calls[1:]) if b.begin > a.end]


def describe(plan: dict, command: dict) -> dict:
    return {
        "operation": plan["operation"],
        "lane": command.get("lane", 0),
        "verb": command["verb"],
        "peer": command.get("peer", -1),
        "bytes": command.get("bytes", 0),
        "path": plan["paths"][command.get("path", 0)] if plan["paths"] else "",
    }


def chrome(traces: list[RankTrace]) -> dict:
    """The merged timeline. Times are µs from the first event of any rank."""
    origin = min((e.begin for t in traces for e in t.events), default=0)
    out: list[dict] = []

    def name_of(pid: int, tid: int | None, name: str, order: int) -> None:
        kind = "process" if tid is None else "thread"
        where = {"pid": pid} if tid is None else {"pid": pid, "tid": tid}
        out.append({"ph": "M", "name": f"{kind}_name", **where, "args": {"name": name}})
        out.append({"ph": "M", "name": f"{kind}_sort_index", **where, "args": {"sort_index": order}})

    def span(pid: int, tid: int, name: str, category: str, begin: int, end: int, args: dict) -> None:
        when = {"ts": (begin - origin) / 1e3, "dur": (end - begin) / 1e3}
        out.append({"ph": "X", "pid": pid, "tid": tid, "name": name, "cat": category, **when, "args": args})

    for trace in traces:
        pid = trace.rank
        name_of(pid, None, f"rank {pid} ({trace.host}, island {trace.island})", pid)
        name_of(pid, 0, "program", 0)
        calls = trace.calls()
        for begin, end in gaps(calls):
            span(pid, 0, "compute", "compute", begin, end, {})
        for e in calls:
            operation = trace.plans[e.operation]["operation"]
            args = {"operation": operation, "epoch": e.epoch}
            span(pid, 0, f"{KINDS[e.kind]} {operation}", "call", e.begin, e.end, args)
        lanes: dict[tuple[int, int], int] = {}
        for e in trace.events:
            if e.kind != COMMAND:
                continue
            about = describe(trace.plans[e.operation], trace.command(e))
            key = (e.operation, about["lane"])
            if key not in lanes:
                lanes[key] = len(lanes) + 1
                name_of(
                    pid,
                    lanes[key],
                    f"{about['operation']} #{e.operation}, lane {about['lane']}",
                    1 + e.operation * 1000 + about["lane"],
                )
            peer = f" ({about['peer']})" if about["peer"] >= 0 else ""
            args = {**about, "epoch": e.epoch, "command": e.command, "round": e.round}
            span(pid, lanes[key], about["verb"] + peer, "command", e.begin, e.end, args)
    return {"displayTimeUnit": "ns", "traceEvents": out}


def covered(spans: list[tuple[int, int]]) -> int:
    """Total length, with what overlaps counted once."""
    total, reached = 0, 0
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def rank_summary(trace: RankTrace) -> dict:
    """Seconds of one rank: computing, exposed (in Tasuki's calls) and hidden communication."""
    calls = trace.calls()
    total = calls[-1].end - calls[0].begin if calls else 0
    exposed = covered([(e.begin, e.end) for e in calls])
    spans: dict[tuple[int, int], list[Event]] = defaultdict(list)
    for e in trace.events:
        spans[e.operation, e.epoch].append(e)
    # From start to the end of the last command: what the program did not spend in calls meanwhile was hidden.
    flights = []
    for events in spans.values():
        starts = [e.begin for e in events if KINDS[e.kind] == "start"]
        ends = [e.end for e in events if e.kind == COMMAND]
        if starts and ends:
            flights.append((starts[0], max(ends)))
    in_flight = covered(flights)
    inside = covered(flights + [(e.begin, e.end) for e in calls]) - exposed
    return {
        "rank": trace.rank,
        "seconds": total / 1e9,
        "compute": (total - exposed) / 1e9,
        "exposed": exposed / 1e9,
        "in_flight": in_flight / 1e9,
        "hidden": inside / 1e9,
        "events_overwritten": trace.overwritten,
        "operations_left_out": trace.left_out,
    }


def operation_summary(traces: list[RankTrace]) -> list[dict]:
    """A row an operation: epochs, exposed µs an epoch and rank, and from the first start to the last end over ranks."""
    found: dict[tuple[int, str], dict[int, dict[int, list[Event]]]] = defaultdict(lambda: defaultdict(dict))
    for trace in traces:
        ordered = sorted(trace.events, key=lambda e: (e.operation, e.epoch))
        for (number, epoch), events in groupby(ordered, key=lambda e: (e.operation, e.epoch)):
            name = trace.plans[number]["operation"]
            found[number, name][epoch][trace.rank] = list(events)
    rows = []
    for (number, name), epochs in sorted(found.items()):
        exposed, spans = [], []
        for by_rank in epochs.values():
            for events in by_rank.values():
                exposed.append(sum(e.end - e.begin for e in events if e.kind in CALLS))
            everything = [e for events in by_rank.values() for e in events]
            spans.append(max(e.end for e in everything) - min(e.begin for e in everything))
        paths = sorted({path for t in traces if number < len(t.plans) for path in t.plans[number]["paths"]})
        rows.append(
            {
                "operation": name,
                "number": number,
                "epochs": len(epochs),
                "paths": paths,
                "exposed_us": median(exposed) / 1e3,
                "span_us": median(spans) / 1e3,
            }
        )
    return rows


def command_summary(traces: list[RankTrace]) -> list[dict]:
    """A row a verb and path: how often, how long in the median and in all, and the bytes."""
    times: dict[tuple[str, str], list[int]] = defaultdict(list)
    moved: dict[tuple[str, str], int] = defaultdict(int)
    for trace in traces:
        for e in trace.events:
            if e.kind == COMMAND:
                about = describe(trace.plans[e.operation], trace.command(e))
                times[about["verb"], about["path"]].append(e.end - e.begin)
                moved[about["verb"], about["path"]] += about["bytes"]
    return [
        {
            "verb": verb,
            "path": path,
            "count": len(all_of),
            "median_us": median(all_of) / 1e3,
            "seconds": sum(all_of) / 1e9,
            "bytes": moved[verb, path],
        }
        for (verb, path), all_of in sorted(times.items(), key=lambda item: -sum(item[1]))
    ]


def summary(traces: list[RankTrace]) -> dict:
    return {
        "ranks": [rank_summary(t) for t in traces],
        "operations": operation_summary(traces),
        "commands": command_summary(traces),
    }
