"""What `tasuki himeno` and `tasuki laplace` are: a C++ program run on ranks, its results as a table or as JSON."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import click
from rich.console import Console

from tasuki.checked import read_json
from tasuki.cli.common import check_output, common, emit, run_ranks, table
from tasuki.launch import launcher_for, own_program
from tasuki.tables import VERDICTS, runs_table


def show(console: Console, runs: list[dict]) -> None:
    app, size = runs[0]["app"], "x".join(map(str, runs[0]["extents"]))
    where = f", on {runs[0]['gpu']}" if runs[0]["device"] == "gpu" else ""
    console.print(table(*runs_table(f"{app} {size}, {runs[0]['mpi']}{where}", runs)))
    for run in runs:
        norm = next(name for name in ("gosa", "change") if name in run)
        plural = "s" * (run["ranks"] > 1)
        console.print(f"{run['ranks']} rank{plural}: {norm} {run[norm]:.6e}, {VERDICTS[run['verified']]}")


def app_command(name: str, about: str) -> click.Command:
    @click.command(name, help=f"{about} Several -n or --overlap both: one run each, for scaling and overlap figures.")
    @click.option(
        "-n", "--ranks", type=click.IntRange(1), multiple=True, default=[4], show_default=True, help="May be repeated."
    )
    @click.option("--size", help="A size by name or as extents, such as 64x64x128; a wrong one lists the names.")
    @click.option("--split", help="Ranks in each dimension, such as 2x2x1.")
    @click.option("--iterations", type=click.IntRange(1), help="Default: 3 with --verify, else about 3 seconds.")
    @click.option("--overlap", type=click.Choice(["on", "off", "both"]), default="on", show_default=True)
    @click.option("--path", default="auto", show_default=True, help="Path of the halo: auto, shared, mpi, peer, ...")
    @click.option(
        "--engine", default="auto", show_default=True, help="auto, inline, thread; on GPUs auto, stream, graph."
    )
    @click.option("--device", type=click.Choice(["auto", "cpu", "gpu"]), default="auto", show_default=True)
    @click.option("--verify", is_flag=True, help="Compare every bit of the result with a serial run.")
    @click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Also write the results here.")
    @common
    def command(ranks, size, split, iterations, overlap, path, engine, device, verify, output, as_json) -> None:
        check_output(output)
        program = own_program(name)
        arguments = ["--progress", "--path", path, "--engine", engine, "--device", device]
        arguments += ["--verify"] if verify else []
        for option, value in (("--size", size), ("--split", split), ("--iterations", iterations)):
            arguments += [option, str(value)] if value is not None else []
        runs = []
        with tempfile.TemporaryDirectory() as folder:
            for n in ranks:
                for mode in ["on", "off"] if overlap == "both" else [overlap]:
                    result = Path(folder) / f"{len(runs)}.json"
                    full = [str(program), *arguments, "--overlap", mode, "--json", str(result)]
                    what = f"{name} on {n} rank{'s' * (n > 1)}"
                    run_ranks(n, full, launcher_for(program), what=what, leaves=[result])
                    runs.append(read_json(result))
        data = {"runs": runs}
        if output:
            output.write_text(json.dumps(data, indent=1) + "\n")
        emit(data, as_json, lambda console: show(console, runs))

    return command
