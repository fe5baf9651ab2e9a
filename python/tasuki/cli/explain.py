"""`tasuki explain`: the plan of a halo, a transfer or a broadcast: pieces, paths, predicted times, alternatives."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import click
from rich.console import Console

from tasuki.cli import Failure, shapes
from tasuki.cli.common import INT_MOST, check_output, common, emit, table
from tasuki.cli.ranks import beside, on_ranks, predicted
from tasuki.messages import Messages, torus_of

# A line of Operation::explain: piece, from, to, bytes, pattern, path, µs, others.
PIECE = re.compile(
    r"(?P<piece>.+?)\s+(?P<from>\d+)\s+(?P<to>\d+)\s+(?P<bytes>\d+)\s+"
    r"(?P<pattern>empty|contiguous|block stride|stride|list)\s+(?P<path>\S+)\s+(?P<us>[\d.]+)(?P<guess>\*?)\s*"
    r"(?P<others>.*)"
)


# What a picture has room for.
MOST_RANKS, MOST_MESSAGES = 256, 4096
PICTURES = (".svg", ".png", ".pdf")


def pieces_of(text: str) -> list[dict]:
    found = [match.groupdict() for match in map(PIECE.fullmatch, text.splitlines()) if match]
    told = re.search(r"(\d+) pieces", text)
    if told is None or int(told[1]) != len(found):
        raise ValueError(f"of this table only {len(found)} pieces could be read: {text}")
    for piece in found:
        piece |= {key: int(piece[key]) for key in ("from", "to", "bytes")}
        piece |= {"us": float(piece["us"]), "guess": piece["guess"] != ""}
    return found


def price(piece: dict) -> str:
    """Of a path that was not measured with a star, which a line below the table explains."""
    return f"{piece['us']:.2f}{'*' if piece['guess'] else ''}"


def show(console: Console, data: dict, rank: int) -> None:
    for answer in data["ranks"]:
        if rank not in (-1, answer["rank"]):
            continue
        lines = answer["text"].splitlines()
        rows = [
            [p["piece"], p["from"], p["to"], p["bytes"], p["pattern"], p["path"], price(p), p["others"]]
            for p in answer["pieces"]
        ]
        columns = ["piece", ">from", ">to", ">bytes", "pattern", "path", ">predicted µs", "others: µs, or why not"]
        console.print(table(lines[0], columns, rows))
        for line in lines:
            if line.startswith(("sending keeps", "balance: ", "the network moves", "* not measured", "hint:")):
                console.print(line)
        chosen = re.search(r"^algorithm: .*?(?=^predicted: |\Z)", answer["text"], re.M | re.S)
        if chosen:
            console.print(chosen[0], end="", markup=False, highlight=False, soft_wrap=True)
    if "drawing" in data:
        console.print(data["drawing"]["text"], end="", markup=False, highlight=False, soft_wrap=True)
    if "machine" in data:
        console.print(f"prices of machine {data['machine']}: {data['source']}")
    if "predicted" in data["ranks"][0]:
        text = data["ranks"][0]["predicted"]["text"]
        console.print(text, end="", markup=False, highlight=False, soft_wrap=True)
    if "beside" in data["ranks"][0]:
        console.print(data["ranks"][0]["beside"]["text"], end="", markup=False, highlight=False, soft_wrap=True)
    for number, answer in enumerate(data["ranks"]):
        if "measured" in answer and rank in (-1, number):
            head = f"rank {number}, "
            console.print(head + answer["measured"], end="", soft_wrap=True)


def write_plans(folder: Path, plans: Iterable[dict]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("plan-*.json"):  # of more ranks: `tasuki verify` would take them for this operation's
        if re.fullmatch(r"plan-\d+\.json", old.name):
            old.unlink()
    for number, plan in enumerate(plans):
        (folder / f"plan-{number}.json").write_text(json.dumps(plan, indent=1) + "\n")


def check_drawing(target: str) -> None:
    """`-` is text, all else names a picture."""
    if target == "-":
        return
    if Path(target).suffix.lower() not in PICTURES:
        raise Failure(f"--draw {target}: a picture's name ends with one of {', '.join(PICTURES)}; alone, it draws text")
    try:
        import tasuki.drawing  # noqa: F401
    except ImportError as error:
        raise Failure(f"pictures need matplotlib ({error}); pip install 'tasuki[plot]', or give --draw alone") from None
    check_output(Path(target))


def check_size(ranks: int) -> None:
    if ranks > MOST_RANKS:
        raise Failure(f"--draw: there are {ranks} ranks; a drawing has room for {MOST_RANKS}; give a smaller -n")


def drawn(graph: Messages, target: str) -> dict:
    """Draws the messages; what to show of it, and what to tell programs."""
    count = sum(len(group.edges) for group in graph.groups)
    if count == 0:
        raise Failure(f"--draw: {graph.operation} on {graph.ranks} ranks sends no messages from rank to rank")
    if count > MOST_MESSAGES:
        raise Failure(f"--draw: {graph.operation} sends {count} messages; a drawing has room for {MOST_MESSAGES}")
    text = graph.text()
    if target != "-":
        from tasuki import drawing, plot

        plot.save(drawing.figure(graph), target, Path(target).suffix.lower()[1:])
        text = f"{graph.about_links()}\ndrawn in {target}\n".lstrip()
    return {"text": text, "file": None if target == "-" else target, **graph.data()}


def live(kind: str, options: dict, ranks: int, rank: int, plans: Path | None, draw: str | None) -> dict:
    """What the ranks say that make the operation."""
    if draw:
        check_size(ranks)
    if "dtype" in options:
        shapes.numpy_type(options["dtype"])  # which the ranks need
    if rank >= ranks:
        raise Failure(f"--rank is {rank}; there are ranks 0 to {ranks - 1}")
    for number in range(ranks) if plans else ():
        check_output(plans / f"plan-{number}.json")
    answers = on_ranks("explain", {"kind": kind, **options}, ranks, f"planning the {kind} on {ranks} ranks")
    if plans:
        write_plans(plans, (answer["plan"] for answer in answers))
    for number, answer in enumerate(answers):
        answer |= {"rank": number, "pieces": pieces_of(answer["text"])}
    data = {"kind": kind, "options": options, "ranks": answers}
    if draw:
        pieces = [p for answer in answers for p in answer["pieces"] if p["from"] == answer["rank"] != p["to"]]
        sent = [(p["piece"], p["from"], p["to"], p["bytes"]) for p in pieces]
        data["drawing"] = drawn(Messages(answers[0]["plan"]["operation"], ranks, sent), draw)
    return data


def off_line(
    kind: str, options: dict, name: str, ranks: int | None, rank: int, plans: Path | None, draw: str | None
) -> dict:
    """What planning says of a machine that need not be there. No ranks are started."""
    computation = options.pop("beside")
    if options.pop("engine") != "auto":
        raise click.UsageError("--engine is for ranks that run; leave it out with --machine")
    machine = shapes.machine_of(name, ranks)
    if rank >= machine.size:
        raise Failure(f"--rank is {rank}; there are ranks 0 to {machine.size - 1}")
    if draw:
        check_size(machine.size)
    for number in range(machine.size) if plans else ():
        check_output(plans / f"plan-{number}.json")
    made = shapes.planned(kind, machine, options)
    if plans:
        write_plans(plans, (json.loads(made.plan(number).json()) for number in range(machine.size)))
    answers = []
    for number in range(machine.size) if rank < 0 else [rank]:
        text = made.explain(number)
        plan = json.loads(made.plan(number).json())
        answers.append({"rank": number, "text": text, "plan": plan, "pieces": pieces_of(text)})
    answers[0]["predicted"] = predicted(made.predict())
    told = {"machine": machine.name, "source": machine.source}
    data = {"kind": kind, "options": options, **told, "ranks": answers}
    if computation is not None:
        answers[0]["beside"] = beside(made.advise(computation * 1e-6))
    if draw:
        graph = Messages(made.plan(0).operation, machine.size, made.messages(), torus_of(machine))
        data["drawing"] = drawn(graph, draw)
    return data


def finish(
    kind: str,
    options: dict,
    machine: str | None,
    ranks: int | None,
    rank: int,
    plans: Path | None,
    as_json: bool,
) -> None:
    draw = options.pop("draw")
    computation = options.pop("beside")
    if computation is not None and not math.isfinite(computation):
        raise Failure(f"--beside is {computation}; give microseconds, 0 or more")
    options = shapes.checked(kind, options) | {"beside": computation}
    if draw:
        check_drawing(draw)
    if machine is None:
        data = live(kind, options, ranks or 4, rank, plans, draw)
    else:
        data = off_line(kind, options, machine, ranks, rank, plans, draw)
    emit(data, as_json, lambda console: show(console, data, rank))


def shared_options(function: Callable) -> Callable:
    folder = click.Path(path_type=Path, file_okay=False)
    for option in (
        click.option(
            "--draw",
            metavar="[FILE]",
            is_flag=False,
            flag_value="-",
            help="Draw who sends to whom: as text, or into a FILE such as trees.svg (.png, .pdf).",
        ),
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
        click.option(
            "--beside",
            type=click.FloatRange(0),
            metavar="US",
            help="Also say which engine pays beside a computation of so many µs.",
        ),
        click.option("--engine", default="auto", show_default=True, help="Who drives: auto, inline, thread."),
        shapes.path_option,
        click.option(
            "-n", "--ranks", type=click.IntRange(1), help="Number of ranks. Default: 4, or those of --machine."
        ),
        click.option("--machine", help="Plan off line for this machine: a file, or a name such as torus-36."),
    ):
        function = option(function)
    return common(function)


@click.group("explain")
def command() -> None:
    """Show what a plan does and why: every piece with its path, predicted µs, and what was rejected.

    On ranks that are started here; with --machine off line, for a machine that need not be there.
    """


def add(kind: str, text: str, options: Callable) -> None:
    @command.command(kind, help=text)
    @options
    @shared_options
    def explain(
        machine: str | None, ranks: int | None, rank: int, plans: Path | None, as_json: bool, **given: object
    ) -> None:
        finish(kind, given, machine, ranks, rank, plans, as_json)


for one in shapes.COMMANDS:
    add(*one)
