"""`tasuki tune`: measures the machine profile several times and keeps the median of each constant."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from statistics import median

import click

from tasuki.checked import read_json
from tasuki.cli import Failure
from tasuki.cli.common import check_output, common, emit, progress, table
from tasuki.cli.ranks import on_ranks


def profile_file(name: str) -> Path:
    """Where the library looks: TASUKI_PROFILE, or the file of that name in the user's cache folder."""
    named = os.environ.get("TASUKI_PROFILE")
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME")
    folder = Path(cache) if cache else Path.home() / ".cache"
    return folder / "tasuki" / name


def check_cores(ranks: int) -> None:
    """The library keeps nothing that it measured with more ranks on a host than cores: says so before, not after."""
    if ranks <= (os.cpu_count() or 1):
        return
    answers = on_ranks("host", {}, ranks, "asking the ranks where they are")
    first = answers[0]
    here = sum(answer["host"] == first["host"] for answer in answers)
    if here > first["cores"]:
        raise Failure(
            f"-n {ranks}: {here} ranks on the {first['cores']} hardware threads of {first['host']} would measure how "
            f"they take turns; give at most -n {first['cores']}, or more hosts"
        )


def write_profile(target: Path, profile: dict) -> None:
    """In one step, for others may read it meanwhile."""
    text = json.dumps(profile, indent=2) + "\n"
    target = target.resolve()  # a link stays one
    if target.exists() and not target.is_file():  # such as /dev/stdout, which must not be replaced
        target.write_text(text)
        return
    draft = target.with_name(f"{target.name}.{os.getpid()}")
    draft.write_text(text)
    draft.replace(target)


def measure(ranks: int, folder: Path, number: int) -> Path:
    """One measurement in processes of their own. The library names the file itself, after host and MPI."""
    cache = folder / str(number)
    on_ranks("tune", {}, ranks, "measuring", {"XDG_CACHE_HOME": str(cache), "TASUKI_PROFILE": ""})
    found = list((cache / "tasuki").glob("profile-*.json"))
    if not found:
        raise Failure(
            f"{ranks} ranks measured, but rank 0 kept nothing, as with more ranks on its host than hardware threads: "
            "give a smaller -n"
        )
    return found[0]


def spread(values: list[float]) -> float:
    return (max(values) - min(values)) / median(values)


@click.command("tune")
@click.option("-n", "--ranks", type=click.IntRange(2), default=2, show_default=True, help="Number of ranks.")
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True, help="Measurements; the median counts.")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Default: where the library looks.")
@common
def command(ranks: int, rounds: int, output: Path | None, as_json: bool) -> None:
    """Measure each path's latency, bandwidth and cost of a run, and write the machine profile.

    Leave the machine otherwise idle meanwhile. All later plans on this machine use the file.
    """
    check_output(output or profile_file("profile.json"))
    check_cores(ranks)
    with tempfile.TemporaryDirectory() as temporary:
        with progress() as bar:
            files = [measure(ranks, Path(temporary), i) for i in bar.track(range(rounds), description="tuning")]
        profiles = [read_json(file) for file in files]
        target = output or profile_file(files[0].name)
    paths: dict[str, dict[str, float]] = {}
    spreads: dict[str, float] = {}
    for path in profiles[0]["paths"]:
        measured = [p["paths"][path] for p in profiles if path in p["paths"]]
        paths[path] = {key: median(m[key] for m in measured) for key in measured[0]}
        spreads[path] = max(spread([m[key] for m in measured]) for key in ("latency", "bandwidth"))
    profile = {**profiles[0], "paths": paths}
    write_profile(target, profile)
    rows = [
        [
            path,
            f"{c['latency'] * 1e6:.3f}",
            f"{c['mutual_latency'] * 1e6:.3f}" if "mutual_latency" in c else "",
            f"{c['bandwidth'] / 1e9:.2f}",
            f"{c['per_run'] * 1e9:.2f}",
            f"{spreads[path] * 100:.0f}",
        ]
        for path, c in paths.items()
    ]
    columns = ["path", ">latency µs", ">both ways µs", ">GB/s", ">ns a run", ">spread %"]
    data = {"file": str(target), "rounds": rounds, "spread": spreads, **profile}

    def show(console) -> None:
        console.print(table(f"machine profile, median of {rounds} (spread: of latency or bandwidth)", columns, rows))
        console.print(f"written to {target}")

    emit(data, as_json, show)
