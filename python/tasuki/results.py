"""Results of `tasuki bench`, `tasuki himeno` and `tasuki laplace`, read from files and checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tasuki.checked import (
    COUNT,
    LIST,
    NUMBER,
    OBJECT,
    POSITIVE,
    POSITIVE_COUNT,
    SWITCH,
    TEXT,
    FileError,
    Kind,
    need,
    need_all,
)

CASE = {"group": TEXT, "case": TEXT, "bytes": NUMBER, "peers": OBJECT}
TIMES = {"median_us": POSITIVE, "p10_us": POSITIVE, "p90_us": POSITIVE}
RUN = {"app": TEXT, "size": TEXT, "ranks": POSITIVE_COUNT, "overlap": SWITCH, "seconds_per_iteration": POSITIVE}
CASE_MAY_HAVE = {"ratios": OBJECT}
RUN_MAY_HAVE = {
    "iterations": COUNT,
    "communicate": SWITCH,
    "device": TEXT,
    "split": TEXT,
    "paths_used": LIST,
    "gflops": NUMBER,
    "communication_share": NUMBER,
}
LIMIT = {"bytes": POSITIVE, "us": POSITIVE}


def given(record: object, kinds: dict[str, Kind]) -> dict[str, Kind]:
    """The kinds of those entries that a record has."""
    return {key: kind for key, kind in kinds.items() if isinstance(record, dict) and key in record}


@dataclass
class Results:
    """What the files given hold: cases of tasuki-bench, runs of the apps, the machine's copying limit."""

    cases: list[dict] = field(default_factory=list)
    runs: list[dict] = field(default_factory=list)
    limit: list[dict] = field(default_factory=list)  # bytes, us
    machines: list[dict] = field(default_factory=list)

    def add(self, data: object, source: Path) -> None:
        """Raises FileError saying what is wrong with the file; then nothing of it is taken."""
        if not isinstance(data, dict) or not {"cases", "runs", "limit"} & set(data):
            raise FileError(f"{source}: no results: neither 'cases' (bench), 'runs' (himeno, laplace) nor 'limit'")
        cases, runs, limit = (need(data.get(key, []), LIST, source, key) for key in ("cases", "runs", "limit"))
        for i, case in enumerate(cases):
            need_all(case, CASE | given(case, CASE_MAY_HAVE), source, f"cases[{i}]")
            for name, peer in case["peers"].items():
                need_all(peer, TIMES, source, f"cases[{i}].peers.{name}")
            for name, ratio in case.get("ratios", {}).items():
                need(ratio, NUMBER, source, f"cases[{i}].ratios.{name}")
        for i, run in enumerate(runs):
            need_all(run, RUN | given(run, RUN_MAY_HAVE), source, f"runs[{i}]")
            for j, path in enumerate(run.get("paths_used", [])):
                need(path, TEXT, source, f"runs[{i}].paths_used[{j}]")
        for i, point in enumerate(limit):
            need_all(point, LIMIT, source, f"limit[{i}]")
        machine = need(data.get("machine", {}), OBJECT, source, "machine")
        if "cores" in machine:
            need(machine["cores"], POSITIVE_COUNT, source, "machine.cores")
        self.cases += cases
        self.runs += runs
        self.limit += limit
        if machine:
            self.machines.append(machine)
