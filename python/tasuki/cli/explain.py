"""`tasuki explain`: the plan of a halo, a transfer or a broadcast: pieces, paths, predicted times, alternatives."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console

from tasuki.cli import Failure
from tasuki.cli.common import INT_MOST, LONG_MOST, check_output, common, emit, ranks_option, table
from tasuki.cli.ranks import on_ranks

DTYPES = ["float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
# A line of Operation::explain: piece, from, to, bytes, pattern, path, µs, others.
PIECE = re.compile(
    r"(?P<piece>.+?)\s+(?P<from>\d+)\s+(?P<to>\d+)\s+(?P<bytes>\d+)\s+"
    r"(?P<pattern>empty|contiguous|block stride|stride|list)\s+(?P<path>\S+)\s+(?P<us>[\d.]+)\s*(?P<others>.*)"
)


def pieces_of(text: str) -> list[dict]:
    found = [match.groupdict() for match in map(PIECE.fullmatch, text.splitlines()) if match]
    told = re.search(r"(\d+) pieces", text)
    if told is None or int(told[1]) != len(found):
        raise ValueError(f"of this table only {len(found)} pieces could be read: {text}")
    for piece in found:
        piece |= {key: int(piece[key]) for key in ("from", "to", "bytes")} | {"us": float(piece["us"])}
    return found


def numbers(least: int, most: int) -> Callable:
    def parse(ctx: click.Context, option: click.Option, text: str | None):
        if text is None:
            return None
        found = [int(n) for n in text.split("x")] if re.fullmatch(r"\d{1,20}(x\d{1,20})*", text, re.ASCII) else []
        if not found or min(found) < least or max(found) > most:
            raise click.BadParameter(f"'{text}' is not like 64x64x128, with numbers from {least} to {most}")
        return found

    return parse


def show(console: Console, data: dict, rank: int) -> None:
    for answer in data["ranks"] if rank < 0 else [data["ranks"][rank]]:
        lines = answer["text"].splitlines()
        rows = [
            [p["piece"], p["from"], p["to"], p["bytes"], p["pattern"], p["path"], f"{p['us']:.2f}", p["others"]]
            for p in answer["pieces"]
        ]
        columns = ["piece", ">from", ">to", ">bytes", "pattern", "path", ">predicted µs", "others: µs, or why not"]
        console.print(table(lines[0], columns, rows))
        for line in lines:
            if line.startswith("sending keeps"):
                console.print(line)
    console.print(data["ranks"][0]["predicted"]["text"], end="", markup=False, highlight=False, soft_wrap=True)
    for number, answer in enumerate(data["ranks"]):
        if "measured" in answer and rank in (-1, number):
            head = f"rank {number}, "
            console.print(head + answer["measured"], end="", markup=False, highlight=False, soft_wrap=True)


def finish(kind: str, options: dict, ranks: int, rank: int, plans: Path | None, as_json: bool) -> None:
    if rank >= ranks:
        raise Failure(f"--rank is {rank}; there are ranks 0 to {ranks - 1}")
    files = [plans / f"plan-{number}.json" for number in range(ranks)] if plans else []
    for file in files:
        check_output(file)
    answers = on_ranks("explain", {"kind": kind, **options}, ranks, f"planning the {kind} on {ranks} ranks")
    for answer in answers:
        answer["pieces"] = pieces_of(answer["text"])
    if plans:
        for old in plans.glob("plan-*.json"):  # of more ranks: `tasuki verify` would take them for this operation's
            if re.fullmatch(r"plan-\d+\.json", old.name):
                old.unlink()
        for file, answer in zip(files, answers):
            file.write_text(json.dumps(answer["plan"], indent=1) + "\n")
    data = {"kind": kind, "options": options, "ranks": answers}
    emit(data, as_json, lambda console: show(console, data, rank))


def shared_options(function: Callable) -> Callable:
    folder = click.Path(path_type=Path, file_okay=False)
    for option in (
        click.option("--plans", type=folder, help="Also write the plans into this folder, for tasuki verify."),
        click.option(
            "--rank",
            type=click.IntRange(-1),
            default=0,
            show_default=True,
            help="Whose pieces to show; -1: every rank's.",
        ),
        click.option(
            "--run",
            type=click.IntRange(0, INT_MOST),
            default=0,
            show_default=True,
            help="Also run so many epochs and show what each command took. On GPUs with TASUKI_TRACE.",
        ),
        click.option("--engine", default="auto", show_default=True, help="Who drives: auto, inline, thread."),
        click.option("--path", default="auto", show_default=True, help="Force a path for what leaves a rank."),
        ranks_option(4),
    ):
        function = option(function)
    return common(function)


def dtype_option(function: Callable) -> Callable:
    return click.option("--dtype", type=click.Choice(DTYPES), default="float64", show_default=True)(function)


@click.group("explain")
def command() -> None:
    """Show what a plan does and why: every piece with its path, predicted µs, and what was rejected."""


@command.command("halo")
@click.option("--extents", default="64x64x64", callback=numbers(1, LONG_MOST), show_default=True, help="Global cells.")
@click.option("--split", callback=numbers(0, INT_MOST), help="Ranks a dimension; 0: chosen. Default: all chosen.")
@click.option("--shadow", type=click.IntRange(0, INT_MOST), default=1, show_default=True, help="Cells on every side.")
@click.option("--fields", type=click.IntRange(1, INT_MOST), default=1, show_default=True)
@click.option("--copies", type=click.IntRange(1, 2), default=1, show_default=True, help="2: an alternating pair.")
@click.option("--corners/--no-corners", default=True, show_default=True)
@click.option("--periodic/--no-periodic", default=True, show_default=True)
@click.option("--reverse", is_flag=True, help="Add shadows into their owners.")
@click.option("--memory", type=click.Choice(["host", "device"]), default="host", show_default=True)
@dtype_option
@shared_options
def halo(ranks: int, rank: int, plans: Path | None, as_json: bool, **options) -> None:
    """A halo exchange on a grid."""
    finish("halo", options, ranks, rank, plans, as_json)


@command.command("transfer")
@click.option("--rows", type=click.IntRange(1, LONG_MOST), default=256, show_default=True)
@click.option("--columns", type=click.IntRange(1, LONG_MOST), default=16, show_default=True)
@click.option(
    "--stride", type=click.IntRange(1, LONG_MOST), default=4096, show_default=True, help="Elements from row to row."
)
@click.option("--source", type=click.IntRange(0, INT_MOST), default=0, show_default=True, help="Rank that sends.")
@click.option("--target", type=click.IntRange(0, INT_MOST), default=1, show_default=True, help="Rank that receives.")
@click.option("--shared/--private", default=True, show_default=True, help="Memory of Tasuki, or the user's own.")
@dtype_option
@shared_options
def transfer(ranks: int, rank: int, plans: Path | None, as_json: bool, **options) -> None:
    """A block of columns out of a matrix, from one rank to another."""
    if options["columns"] > options["stride"]:
        raise Failure(f"--columns {options['columns']} is more than --stride {options['stride']}: rows would overlap")
    finish("transfer", options, ranks, rank, plans, as_json)


@command.command("broadcast")
@click.option("--bytes", type=click.IntRange(1, LONG_MOST), default=1 << 20, show_default=True)
@click.option("--root", type=click.IntRange(0, INT_MOST), default=0, show_default=True)
@click.option("--trees", type=click.IntRange(0, INT_MOST), default=0, help="0: chosen by cost.")
@click.option("--arity", type=click.IntRange(0, INT_MOST), default=0, help="0: chosen by cost.")
@click.option("--chunk", type=click.IntRange(0, LONG_MOST), default=0, help="Bytes; 0: chosen by cost.")
@shared_options
def broadcast(ranks: int, rank: int, plans: Path | None, as_json: bool, **options) -> None:
    """One rank's bytes to all ranks."""
    finish("broadcast", options, ranks, rank, plans, as_json)
