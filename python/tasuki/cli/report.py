"""`tasuki report`: one HTML page, without network, of a folder with traces, results, profile and info."""

from __future__ import annotations

from pathlib import Path

import click

from tasuki.cli.common import check_output, common, emit


@click.command("report")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Default: FOLDER/report.html.")
@common
def command(folder: Path, output: Path | None, as_json: bool) -> None:
    """Make one page of what FOLDER holds: machine, topology, plans, timeline, benchmarks.

    It may hold a trace (`tasuki trace -o FOLDER`), results (`tasuki bench|himeno|laplace --output FOLDER/x.json`), a
    machine profile (`tasuki tune --output FOLDER/profile.json`) and `tasuki info --json > FOLDER/info.json`. Damaged
    files are left out, which is said here and on the page. Figures of results need matplotlib; the rest does not.
    """
    check_output(output)
    from tasuki import report

    page, ignored, left_out = report.build(folder)
    target = output or folder / "report.html"
    target.write_text(page, encoding="utf-8")
    data = {"report": str(target), "ignored": ignored, "left_out": left_out}

    def show(console) -> None:
        console.print(str(target))
        if ignored:
            console.print(f"not used: {', '.join(ignored)}")
        for what, why in left_out.items():
            console.print(f"left out: {what}: {why}")

    emit(data, as_json, show)
