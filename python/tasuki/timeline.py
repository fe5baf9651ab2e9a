"""Reads what ranks recorded (rank-N.json of TASUKI_TRACE), merges it into one timeline, and adds it up.

The timeline is in the Trace Event Format that chrome://tracing and ui.perfetto.dev open: a process a rank, a thread for
the program and one for each lane of each operation.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import median

FORMAT = 1
FIELDS = ["kind", "operation", "command", "epoch", "round", "begin_ns", "end_ns"]
KINDS = ["start", "test", "wait", "command"]
CALLS = {KINDS.index(name) for name in ("start", "test", "wait")}
COMMAND = KINDS.index("command")


class TraceError(Exception):
    """A trace that cannot be read; the text names the file and what is wrong."""


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

    def calls(self) -> list[Event]:
        """The program's own calls, in order of time. They do not overlap."""
        return sorted((e for e in self.events if e.kind in CALLS), key=lambda e: e.begin)

    def command(self, event: Event) -> dict:
        return self.plans[event.operation]["commands"][event.command]


def load_rank(file: Path) -> RankTrace:
    try:
        data = json.loads(file.read_text())
    except json.JSONDecodeError as error:
        raise TraceError(f"{file}: not JSON at line {error.lineno}, column {error.colno}: {error.msg}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(f"{file}: {error}") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT or data.get("fields") != FIELDS:
        raise TraceError(f"{file}: no trace of format {FORMAT}")
    try:
        trace = RankTrace(
            *(data[key] for key in ("rank", "ranks", "host", "island", "events_overwritten", "operations_left_out")),
            data["plans"],
            [Event(*event) for event in data["events"]],
        )
        for i, event in enumerate(trace.events):
            known = event.kind in CALLS or (event.kind == COMMAND and trace.command(event))
            if not known or not trace.plans[event.operation] or event.end < event.begin:
                raise TraceError(f"{file}: event {i} is not one: {event}")
    except (KeyError, IndexError, TypeError) as error:
        raise TraceError(f"{file}: damaged: {type(error).__name__} {error}") from None
    return trace


def load(folder: Path) -> list[RankTrace]:
    """The traces of all ranks, by rank."""
    first = folder / "rank-0.json"
    if not first.exists():
        raise TraceError(f"{folder} has no rank-0.json; was the run recorded (TASUKI_TRACE), and did it use Tasuki?")
    ranks = load_rank(first).ranks
    missing = [str(r) for r in range(ranks) if not (folder / f"rank-{r}.json").exists()]
    if missing:
        raise TraceError(f"{folder}: of {ranks} ranks, these have written nothing: {', '.join(missing)}")
    return [load_rank(folder / f"rank-{r}.json") for r in range(ranks)]


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
