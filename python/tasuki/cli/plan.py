"""`tasuki plan`: the plans of all ranks of a machine that need not be there, as files, as totals, or pass by pass."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console

from tasuki.cli import Failure, plain, shapes
from tasuki.cli.common import check_output, common, emit, progress, table

MOVES = {"copy", "put", "send", "recv", "reduce"}  # verbs that have bytes


class Totals:
    """What the plans of all ranks hold, by path and verb."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], list[int]] = {}

    def add(self, plan: dict) -> None:
        for one in plan["commands"]:
            times = plan["loops"][one["loop"]]["count"] if one.get("loop", -1) >= 0 else 1
            row = self.rows.setdefault((plan["paths"][one.get("path", 0)], one["verb"]), [0, 0])
            row[0] += times
            row[1] += times * one.get("bytes", 0)

    def table(self) -> list[dict]:
        return [
            {"path": path, "verb": verb, "commands": commands, "bytes": size}
            for (path, verb), (commands, size) in sorted(self.rows.items())
        ]


def clear(folder: Path) -> None:
    """Plans of more ranks must not stay: `tasuki verify` would take them for this operation's."""
    for old in folder.glob("rank-*.json"):
        if re.fullmatch(r"rank-\d+\.json", old.name):
            old.unlink()


def finish(
    kind: str,
    options: dict,
    machine: str,
    ranks: int | None,
    rank: int,
    out: Path | None,
    passes: bool,
    summary: bool,
    as_json: bool,
) -> None:
    if out is None and not passes and not summary:
        raise click.UsageError("give --out FOLDER, --summary or --passes")
    options = shapes.checked(kind, options)
    there = shapes.machine_of(machine, ranks)
    if rank >= there.size:
        raise Failure(f"--rank is {rank}; there are ranks 0 to {there.size - 1}")
    if out is not None:
        check_output(out / "rank-0.json")
    begin = time.monotonic()
    planned = shapes.planned(kind, there, options)
    data: dict = {"kind": kind, "options": options, "machine": there.name, "source": there.source, "ranks": there.size}
    if out is not None or summary:
        if out is not None:
            clear(out)
        totals = Totals()
        sizes = []
        with progress() as bar:
            for number in bar.track(range(there.size), description="planning"):
                plan = planned.plan(number)
                sizes.append(plan.memory)
                data.setdefault("operation", plan.operation)
                text = plan.json()
                if out is not None:
                    (out / f"rank-{number}.json").write_text(text + "\n")
                if summary:
                    totals.add(json.loads(text))
        data |= {"bytes": {"least": min(sizes), "mean": sum(sizes) / len(sizes), "most": max(sizes)}}
        data |= {"out": None if out is None else str(out), "summary": totals.table() if summary else None}
    if passes:
        data["passes"] = [{"pass": name, "text": plan.text()} for name, plan in planned.passes(rank)]
    data["seconds"] = time.monotonic() - begin
    emit(data, as_json, lambda console: show(console, data, rank))


def show(console: Console, data: dict, rank: int) -> None:
    for one in data.get("passes", []):
        console.print(f"rank {rank} after pass '{one['pass']}':")
        print(plain(one["text"]), end="")
    if "bytes" not in data:
        return
    if data["summary"] is not None:
        rows = [
            [r["path"], r["verb"], r["commands"], r["bytes"] if r["verb"] in MOVES else None] for r in data["summary"]
        ]
        console.print(table(f"{data['operation']}, all ranks", ["path", "verb", ">commands", ">bytes"], rows))
    where = f" written to {data['out']}/rank-N.json" if data["out"] else ""
    sizes = "{least} to {most} bytes a rank, {mean:.0f} on average".format(**data["bytes"])
    console.print(
        f"{data['operation']} on {data['ranks']} ranks of {data['machine']}: {data['ranks']} plans{where}, "
        f"{sizes}, {data['seconds']:.2f} s",
        soft_wrap=True,
    )


def shared_options(function: Callable) -> Callable:
    folder = click.Path(path_type=Path, file_okay=False)
    for option in (
        click.option("--rank", type=click.IntRange(0), default=0, show_default=True, help="Whose passes to show."),
        click.option("--passes", is_flag=True, help="Print a rank's plan as it was emitted and after every pass."),
        click.option("--summary", is_flag=True, help="Count commands and bytes of all ranks, by path and verb."),
        click.option("--out", type=folder, help="Write rank-N.json for every rank into this folder."),
        shapes.path_option,
        click.option("-n", "--ranks", type=click.IntRange(1), help="Number of ranks. Default: the machine's."),
        click.option("--machine", required=True, help="A machine file, or a name such as torus-36."),
    ):
        function = option(function)
    return common(function)


@click.group("plan")
def command() -> None:
    """Make the plans of all ranks of a machine that need not be there. No ranks are started."""


def add(kind: str, text: str, options: Callable) -> None:
    @command.command(kind, help=text)
    @options
    @shared_options
    def plan(machine: str, ranks: int | None, rank: int, out: Path | None, passes: bool, summary: bool, as_json: bool,
             **given: object) -> None:  # fmt: skip
        finish(kind, given, machine, ranks, rank, out, passes, summary, as_json)


for one in shapes.COMMANDS:
    add(*one)
