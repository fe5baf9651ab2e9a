"""`tasuki trace`: records a run on ranks, merges what they recorded into one timeline, and adds up what was exposed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
from rich.console import Console

from tasuki import tables, timeline
from tasuki.checked import FileError
from tasuki.cli import Failure
from tasuki.cli.common import common, emit, ranks_option, run_ranks, table, timeout_option
from tasuki.cli.run import resolve


def show(console: Console, data: dict) -> None:
    for each in tables.trace_tables(data):
        console.print(table(*each))
    for r in data["ranks"]:
        if r["events_overwritten"]:
            console.print(f"rank {r['rank']}: the first {r['events_overwritten']} events did not fit and are gone")
        if r["operations_left_out"]:
            console.print(f"rank {r['rank']}: {r['operations_left_out']} operations were too many and are not recorded")
    console.print(f"timeline: {data['timeline']} (open in ui.perfetto.dev or chrome://tracing)")


@click.command("trace", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@ranks_option(4)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, file_okay=False), default=Path("trace"), show_default=True,
    help="Folder for the ranks' files, timeline.json and summary.json; must be new or empty.",
)  # fmt: skip
@timeout_option
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
@common
def command(ranks: int, output: Path, timeout: float | None, program: tuple[str, ...], as_json: bool) -> int:
    """Run PROGRAM with its arguments on ranks, recording every call and command, and say what was exposed.

    Exposed is the time that the program spends inside start, test and wait; between two calls it computes. Ends with
    the program's exit status. With --json, what the program prints on stdout is on stderr.
    """
    if output.exists() and any(output.iterdir()):
        raise Failure(f"--output {output}: this folder is not empty; name another")
    full, launcher = resolve(program)
    environment = {"TASUKI_TRACE": str(output.resolve())}
    status = run_ranks(
        ranks,
        full,
        launcher,
        what=program[0],
        own=False,
        quiet=as_json,
        timeout=timeout,
        environment=environment,
    )
    ended = f"{program[0]} on {ranks} rank{'s' * (ranks > 1)} ended with status {status}"
    if not timeline.ranks_in(output):
        none = (
            "a rank writes its file when its last context ends, and none came to that"
            if status
            else ("did it use Tasuki?")
        )
        raise Failure(f"{ended} and left no trace in {output}: {none}", status or 1)
    try:
        data = {**write_merged(output), "status": status}
    except FileError as error:
        raise Failure(f"{ended}; {error}" if status else str(error), status or 1) from None
    emit(data, as_json, lambda console: show(console, data))
    if status != 0:
        print(f"tasuki: {ended}", file=sys.stderr)
    return status


def write_merged(folder: Path) -> dict:
    """Writes timeline.json and summary.json beside the ranks' files; returns the summary."""
    traces = timeline.load(folder)
    target = folder / "timeline.json"
    target.write_text(json.dumps(timeline.chrome(traces), separators=(",", ":")) + "\n")
    data = {**timeline.summary(traces), "timeline": str(target)}
    (folder / "summary.json").write_text(json.dumps(data, indent=1) + "\n")
    return data
