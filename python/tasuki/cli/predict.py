"""`tasuki predict`: what an operation takes on machines that need not be there, for several numbers of ranks."""

from __future__ import annotations

from collections.abc import Callable

import click
from rich.console import Console

from tasuki.cli import Failure, shapes
from tasuki.cli.common import common, emit, progress, table
from tasuki.cli.ranks import predicted


def rows_of(kind: str, options: dict, machines: tuple[str, ...], ranks: tuple[int, ...]) -> list[dict]:
    """A row for each machine and number of ranks, in the order of the options."""
    options = shapes.checked(kind, options)
    there = [shapes.machine_of(name, count) for name in machines for count in ranks or (None,)]
    rows = []
    with progress() as bar:
        for machine in bar.track(there, description="predicting"):
            made = shapes.planned(kind, machine, dict(options))
            told = predicted(made.predict())
            operation = made.plan(0).operation
            rows.append(
                {
                    "machine": machine.name,
                    "source": machine.source,
                    "ranks": machine.size,
                    "operation": operation,
                    **told,
                }
            )
    return rows


def show(console: Console, rows: list[dict], explained: bool) -> None:
    fastest = {
        ranks: min(row["us"] for row in rows if row["ranks"] == ranks) for ranks in {row["ranks"] for row in rows}
    }
    several = len({row["machine"] for row in rows}) > 1
    columns = ["machine", ">ranks", ">an epoch, µs", ">back to back, µs", *([">times the fastest"] if several else [])]
    cells = []
    for row in rows:
        times = [f"{row['us']:.2f}", f"{row['back_to_back_us']:.2f}"]
        if several:
            times.append(f"{row['us'] / fastest[row['ranks']]:.2f}" if fastest[row["ranks"]] else "–")
        cells.append([row["machine"], row["ranks"], *times])
    console.print(table(rows[0]["operation"], columns, cells))
    for name, source in {row["machine"]: row["source"] for row in rows}.items():
        console.print(f"prices of machine {name}: {source}")
    for row in rows if explained else ():
        console.print(f"\n{row['machine']}, {row['ranks']} ranks")
        console.print(row["text"], end="", markup=False, highlight=False, soft_wrap=True)


def finish(
    kind: str, options: dict, machines: tuple[str, ...], ranks: tuple[int, ...], why: bool, as_json: bool
) -> None:
    if not machines:
        raise Failure("--machine is missing: name one machine or several; `tasuki tune` measures one that is there")
    rows = rows_of(kind, options, machines, ranks)
    emit({"kind": kind, "options": options, "predictions": rows}, as_json, lambda console: show(console, rows, why))


def shared_options(function: Callable) -> Callable:
    for option in (
        click.option("--why", is_flag=True, help="Also what each of them waits for, and what is busiest."),
        shapes.path_option,
        click.option("-n", "--ranks", type=click.IntRange(1), multiple=True,
                     help="Number of ranks; may be repeated. Default: the machine's."),
        click.option("--machine", "machines", multiple=True,
                     help="A machine file, or a name such as cpu-cluster; may be repeated."),
    ):  # fmt: skip
        function = option(function)
    return common(function)


@click.group("predict")
def command() -> None:
    """Predict how long an operation takes on machines that need not be there. No ranks are started.

    What a prediction says, and how far it may be off, is in docs/planning.md.
    """


def add(kind: str, text: str, options: Callable) -> None:
    @command.command(kind, help=text)
    @options
    @shared_options
    def predict(machines: tuple[str, ...], ranks: tuple[int, ...], why: bool, as_json: bool, **given: object) -> None:
        finish(kind, given, machines, ranks, why, as_json)


for one in shapes.COMMANDS:
    add(*one)
