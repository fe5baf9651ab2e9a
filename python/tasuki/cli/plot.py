"""`tasuki plot`: figures from result files of `tasuki bench`, `tasuki himeno` and `tasuki laplace`."""

from __future__ import annotations

import re
from pathlib import Path

import click

from tasuki.checked import read_json
from tasuki.cli import Failure
from tasuki.cli.common import common, emit
from tasuki.results import Results


def file_name(figure: str) -> str:
    """Names of groups come out of files, and must not lead elsewhere."""
    return re.sub(r"[^\w.-]+", "_", figure)


@click.command("plot")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), default=Path("figures"),
              show_default=True, help="Folder for the figures.")  # fmt: skip
@click.option("--format", "kind", type=click.Choice(["svg", "png", "pdf"]), default="svg", show_default=True)
@click.option("--only", multiple=True, help="Only the figures whose names begin with this; a wrong one lists them.")
@common
def command(files: tuple[Path, ...], output: Path, kind: str, only: tuple[str, ...], as_json: bool) -> None:
    """Draw bandwidth and latency against size with the machine's limit, strong scaling, and overlap, from FILES.

    Results of several files go into the same figures. Scaling needs runs of one problem on several rank counts, overlap
    needs runs with and without (`tasuki himeno -n 1 -n 2 --overlap both --output FILE`, or the apps' files of
    `make gpu`); of several like runs the longest counts, and of those the fastest.
    """
    results = Results()
    for file in files:
        results.add(read_json(file), file)
    try:
        from tasuki import plot
    except ImportError as error:
        raise Failure(f"figures need matplotlib ({error}); pip install 'tasuki[plot]'") from None
    found = plot.figures(results)
    if not found:
        raise Failure("these results are not enough for any figure; see tasuki plot --help")
    unknown = [name for name in only if not any(figure.startswith(name) for figure in found)]
    if unknown:
        raise Failure(f"--only {unknown[0]}: no figure's name begins so; there are: {', '.join(found)}")
    output.mkdir(parents=True, exist_ok=True)
    written = []
    for name, figure in found.items():
        if only and not name.startswith(only):
            continue
        target = output / f"{file_name(name)}.{kind}"
        plot.save(figure, target, kind)
        written.append(str(target))
    emit({"figures": written}, as_json, lambda console: console.print("\n".join(written)))
