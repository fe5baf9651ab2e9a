"""`tasuki mpi`: what the library for unchanged MPI programs did in a run, and what becomes of a datatype."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from pathlib import Path

import click
from rich.console import Console

from tasuki import checked
from tasuki.cli import Failure
from tasuki.cli.common import INT_MOST, common, emit, python_on_ranks, run_ranks, table

KINDS = {
    "call": checked.TEXT, "place": checked.TEXT, "type": checked.TEXT, "layer": checked.TEXT, "why": checked.TEXT,
    "calls": checked.COUNT, "bytes": checked.COUNT, "won_ns": (checked.is_number, "a number"), "mpi_ns": checked.NUMBER,
    "spelt_ns": checked.NUMBER, "own_ns": checked.NUMBER,
}  # fmt: skip


def lines_of(files: tuple[Path, ...]) -> list[dict]:
    """The lines of all ranks' reports, those of one type, call and place together."""
    together: dict[tuple, dict] = {}
    for file in files:
        content = checked.read_json(file)
        checked.need(content, checked.OBJECT, file, "")
        known = {"rank": None, "lines": None} | content
        checked.need_all(known, {"rank": checked.COUNT, "lines": checked.LIST}, file, "")
        for i, line in enumerate(known["lines"]):
            place = f"lines[{i}]"
            checked.need(line, checked.OBJECT, file, place)
            whole = dict.fromkeys(KINDS) | {"contiguous": False} | line
            checked.need_all(whole, KINDS, file, place)
            key = tuple(whole[name] for name in ("call", "place", "type", "layer"))
            if key in together:
                for name in ("calls", "bytes", "won_ns"):
                    together[key][name] += whole[name]
                together[key]["ranks"] += 1
            else:
                together[key] = whole | {"ranks": 1}
    return sorted(together.values(), key=lambda line: -line["bytes"])


def shares(lines: list[dict]) -> dict[str, dict]:
    """By layer: calls and bytes of types in pieces, and their parts of all."""
    found: dict[str, dict] = defaultdict(lambda: {"calls": 0, "bytes": 0, "won_ns": 0.0})
    for line in lines:
        if not line["contiguous"]:
            for name in ("calls", "bytes", "won_ns"):
                found[line["layer"]][name] += line[name]
    for of in ("calls", "bytes"):
        whole = sum(layer[of] for layer in found.values())
        for layer in found.values():
            layer[f"{of}_share"] = layer[of] / whole if whole else 0.0
    return dict(found)


def show_run(console: Console, data: dict) -> None:
    rows = [
        [name, layer["calls"], f"{layer['calls_share']:.1%}", layer["bytes"], f"{layer['bytes_share']:.1%}",
         f"{layer['won_ns'] / 1e6:.3f}"]
        for name, layer in sorted(data["layers"].items())
    ]  # fmt: skip
    columns = ["layer", ">calls", ">share", ">bytes", ">share", ">won ms"]
    console.print(table(f"Types in pieces, {data['ranks']} ranks", columns, rows))
    rows = [
        [line["type"], line["call"], line["place"], line["calls"], line["bytes"] // max(line["calls"], 1),
         line["layer"], f"{line['mpi_ns'] / 1e3:.2f}", f"{line['own_ns'] / 1e3:.2f}", f"{line['won_ns'] / 1e6:.3f}",
         line["why"]]
        for line in data["lines"]
    ]  # fmt: skip
    columns = ["type", "call", "place", ">calls", ">B each", "layer", ">MPI packs µs", ">here µs", ">won ms", "why not"]
    console.print(table("Types and places", columns, rows))


def show_type(console: Console, data: dict) -> None:
    rows = [
        ["layout", data["layout"]], ["pattern", data["pattern"]], ["bytes", data["bytes"]], ["extent", data["extent"]],
        ["runs", f"{data['runs']}, {data['bytes'] / max(data['runs'], 1):.1f} B each"],
        *([f"what {mpi} likes", text] for mpi, text in data["spelt"].items()),
    ]  # fmt: skip
    console.print(table(f"{data['count']} x {data['type']}", ["", ""], rows))
    times = data["times"]
    rows = [[name, f"{us:.2f}"] for name, us in data["packing"]]
    console.print(table("To pack it on this machine", ["by", ">µs"], rows))
    if "why" in times["by_mpi"]:
        console.print(times["by_mpi"]["why"])
    for line in data["guidelines"]:
        console.print(line)
    console.print(f"A message of it through the ring is expected to take {data['expected_us']:.1f} µs one way.")


def told_of(times: dict) -> tuple[list, list[str]]:
    """Rows of packing times, and what is said of the guidelines that MPIs should keep."""
    mpi = times["by_mpi"]
    rows: list = [["Tasuki, called from Python: pack", times["pack"]]]
    if "unpack" in times:
        rows.append(["Tasuki, called from Python: unpack", times["unpack"]])
    rows.append(["a copy of as many bytes", times["copy"]])
    if "why" in mpi:
        return rows, []
    rows.append([f"{mpi['mpi']}: as given", mpi["given"]])
    best, kept = mpi["given"], []
    for text, us in mpi.get("spelt", {}).items():
        rows.append([f"as {text}", us])
        best = min(best, us)
    kept.append(("a type is packed no slower than by hand", mpi["given"], times["pack"]))
    kept.append(("types that name the same bytes cost the same", mpi["given"], best))
    if "contiguous of it" in mpi:
        rows.append(["as contiguous(count, it)", mpi["contiguous of it"]])
        one, other = sorted((mpi["contiguous of it"], mpi["given"]))
        kept.append(("one contiguous(n) costs what count n does", other, one))
    tolerance = 1.25
    said = [
        f"{'kept' if slow <= tolerance * fast else 'broken'}: {text} ({slow:.2f} and {fast:.2f} µs)"
        for text, slow, fast in kept
    ]
    return rows, said


class Group(click.Group):
    def resolve_command(self, ctx: click.Context, args: list[str]):
        if args and args[0] not in self.commands:
            raise click.UsageError(f"there is no 'mpi {args[0]}'; there are: {', '.join(self.commands)}", ctx)
        return super().resolve_command(ctx, args)


@click.group("mpi", cls=Group)
def command() -> None:
    """Unchanged MPI programs: what the library did in a run, and what becomes of a datatype."""


@command.command("explain")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False))
@common
def explain(files: tuple[Path, ...], as_json: bool) -> None:
    """Show what the library did: types seen, layers, gains. FILES are those of TASUKI_MPI_REPORT, one a rank."""
    lines = lines_of(files)
    data = {"ranks": len(files), "layers": shares(lines), "lines": lines}
    emit(data, as_json, lambda console: show_run(console, data))


@command.command("type")
@click.option("--count", type=click.IntRange(1, INT_MOST), default=1, show_default=True, help="How many of it.")
@click.argument("text")
@common
def type_(count: int, text: str, as_json: bool) -> None:
    """Show what becomes of a datatype: TEXT such as `vector(8192, 1, 2, double)`, arguments as MPI has them."""
    from tasuki import Error, Layout
    from tasuki.mpi_types import TypeTextError, layout_of, spelt

    try:
        layout = Layout.contiguous(count, layout_of(text))
    except (TypeTextError, Error) as error:
        raise Failure(str(error), 2) from None
    most = 1 << 30
    if layout.size == 0 or layout.true_upper_bound - layout.true_lower_bound > most:
        raise Failure(f"{count} x {text} names {layout.size} bytes; give 1 to {most}, not further apart", 2)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "times.json"
        program, launcher = python_on_ranks("tasuki.mpi_types", [text, str(count), str(file)])
        run_ranks(1, program, launcher, what="packing", leaves=[file])
        times = json.loads(file.read_text())
    rows, guidelines = told_of(times)
    slower = max(times["pack"], times.get("unpack", 0.0))
    data = {
        "type": text, "count": count, "layout": repr(layout).removeprefix("<tasuki.Layout ").removesuffix(">"),
        "pattern": layout.pattern, "bytes": layout.size, "extent": layout.extent, "runs": layout.runs,
        "spelt": spelt(layout), "times": times, "packing": rows, "guidelines": guidelines,
        "expected_us": 0.8 + 1.2 * slower,  # as mpi/library/route.cpp
    }  # fmt: skip
    emit(data, as_json, lambda console: show_type(console, data))
