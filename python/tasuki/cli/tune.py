"""`tasuki tune`: measures the machine profile several times, until the rounds agree, and keeps the median of each
constant."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path
from statistics import median

import click

from tasuki import provenance
from tasuki.checked import read_json
from tasuki.cli import Failure, shapes
from tasuki.cli.common import check_output, common, emit, progress, table
from tasuki.cli.ranks import on_ranks
from tasuki.launch import core_library, launch, launcher_for


def profile_file(name: str) -> Path:
    """Where the library looks: TASUKI_PROFILE, or the file of that name in the user's cache folder."""
    named = os.environ.get("TASUKI_PROFILE")
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME")
    folder = Path(cache) if cache else Path.home() / ".cache"
    return folder / "tasuki" / name


ASK = ["sh", "-c", "echo $(uname -n) $(getconf _NPROCESSORS_ONLN)"]


def where(ranks: int) -> list[tuple[str, int]]:
    """Host and hardware threads of so many processes of the launcher, without MPI: within a second. Empty if it starts
    none; the measurement will say so."""
    command, environment = launch(launcher_for(core_library()), ranks, ASK)
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, stdin=subprocess.DEVNULL, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    words = (line.split() for line in done.stdout.splitlines())
    return [(line[0], int(line[1])) for line in words if len(line) == 2 and line[1].isdigit()]


def check_cores(ranks: int) -> None:
    """The library keeps nothing that it measured with more ranks on a host than cores: says so before, not after."""
    cores = os.cpu_count() or 1
    if ranks <= cores:
        return
    # If one more than this host has threads all come to one host that has no more, so will these ranks; only where
    # there are several hosts must all be started to know.
    places = where(cores + 1)
    if len(set(places)) > 1 and ranks > cores + 1:
        places = where(ranks)
    crowded = [(place, places.count(place)) for place in set(places) if places.count(place) > place[1]]
    if crowded:
        (host, threads), here = max(crowded, key=lambda one: one[1])
        here = ranks if len(set(places)) == 1 else here
        raise Failure(
            f"-n {ranks}: {here} ranks on the {threads} hardware threads of {host} would measure how they take turns; "
            f"give at most -n {threads}, or more hosts"
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


KINDS = ["broadcast", *shapes.COLLECTIVES]
UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
SECONDS = 0.002  # of a measurement


def sizes_of(ctx: click.Context, option: click.Option, texts: tuple[str, ...]) -> list[int]:
    found = []
    for text in texts:
        told = re.fullmatch(r"(\d{1,10}) ?(B|KiB|MiB|GiB)?", text, re.ASCII)
        size = int(told[1]) * UNITS[told[2] or ""] if told else 0
        if not 1 <= size <= 1 << 30:
            raise click.BadParameter(f"'{text}' is not like 8, 64KiB or 16MiB, from 1 to 1GiB")
        found.append(size)
    return found


def size_text(size: int) -> str:
    unit = next(unit for unit in ("GiB", "MiB", "KiB", "B") if size >= UNITS[unit] or unit == "B")
    return f"{size / UNITS[unit]:g} {unit}"


def tune_collectives(ranks: int, options: dict, output: Path | None, as_json: bool) -> None:
    check_output(output or profile_file("profile.json"))
    check_cores(ranks)
    environment = {"TASUKI_PROFILE": str(output.resolve())} if output else None
    told = on_ranks("tune_collectives", {**options, "seconds": SECONDS}, ranks, "measuring collectives", environment)[0]
    if not told["kept"]:
        raise Failure(f"{ranks} ranks measured, but what they found is not kept: give a smaller -n")
    rows = []
    for case in told["cases"]:
        picked, best = (case["candidates"][case[which]] for which in ("picked", "best"))
        size = f" {size_text(case['bytes'])}" if case["bytes"] else ""
        rows.append(
            [
                case["collective"] + size + ("" if case["shared"] else ", own memory"),
                picked["name"],
                f"{picked['again_us']:.2f}",
                best["name"],
                f"{best['again_us']:.2f}",
                f"{case['ratio']:.2f}",
                f"{case['ratio_by_model']:.2f}",
                f"{picked['predicted_us']:.2f}",
                f"{picked['again_us'] / picked['predicted_us']:.2f}",
                f"{case['bound_us']:.2f}",
            ]
        )
    columns = ["case", "picked", ">µs", "best", ">µs", ">picked / best", ">model's / best", ">predicted µs",
               ">measured / predicted", ">bound µs"]  # fmt: skip
    count = len(told["cases"])
    good, alone = (round(100 * told[key]) for key in ("within_10_percent", "within_10_percent_by_model"))

    def show(console) -> None:
        console.print(table(f"collectives on {ranks} ranks, measured once more with the corrections", columns, rows))
        console.print(
            f"the pick is within 10 % of the best in {good} % of {count} cases; the model's alone in {alone} %"
        )
        console.print(f"corrections written to {output or 'the machine profile'}")

    emit({"file": str(output) if output else None, "ranks": ranks, **told}, as_json, show)


KIB32 = 32 << 10
MOST_SPREAD = 0.5  # rounds that differ by more say nothing
MOST_MORE = 2  # so many times the rounds are repeated before that is the answer


def spread(values: list[float]) -> float:
    """Of the half of the rounds that are nearest to the median: a round that was disturbed is not what counts."""
    middle = median(values)
    kept = sorted(values, key=lambda value: abs(value - middle))[: len(values) // 2 + 1]
    return (max(kept) - min(kept)) / middle


def spread_of(measured: list[dict[str, float]]) -> float:
    """Of the time of a word, and of 32 KiB."""
    times = ([m["latency"] + bytes_ / m["bandwidth"] for m in measured] for bytes_ in (0, KIB32))
    return max(map(spread, times))


def by_path(profiles: list[dict]) -> dict[str, list[dict[str, float]]]:
    """Of each path the constants of the rounds. Those of rounds in which they were derived from plain copies are left
    out: they lack the bandwidths by size."""
    found = {}
    for path in profiles[0]["paths"]:
        rounds = [p["paths"][path] for p in profiles if path in p["paths"]]
        most = max(map(len, rounds))
        found[path] = [one for one in rounds if len(one) == most]
    return found


def measure_all(ranks: int, rounds: int, folder: Path) -> tuple[list[dict], str]:
    """The profiles of so many rounds, or of more, until they agree; and the file's name. Throws if they do not."""
    with progress() as bar:
        files = [measure(ranks, folder, i) for i in bar.track(range(rounds), description="tuning")]
        for more in range(MOST_MORE + 1):
            profiles = [read_json(file) for file in files]
            wide = {p: s for p, m in by_path(profiles).items() if (s := spread_of(m)) > MOST_SPREAD}
            if not wide:
                return profiles, files[0].name
            if more < MOST_MORE:
                numbers = range(len(files), len(files) + max(rounds, 3))
                files += [measure(ranks, folder, i) for i in bar.track(numbers, description="tuning, once more")]
    told = ", ".join(f"{path} {value * 100:.0f} %" for path, value in wide.items())
    raise Failure(
        f"{len(files)} rounds differ too much to be believed ({told}), so nothing was written: the machine was busy "
        f"({provenance.told(profiles[-1])}); try again when nothing else runs"
    )


@click.command("tune")
@click.option("-n", "--ranks", type=click.IntRange(2), default=2, show_default=True, help="Number of ranks.")
@click.option(
    "--rounds", type=click.IntRange(1), help="Measurements; the median counts. Default: 5, of collectives 11."
)
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Default: where the library looks.")
@click.option(
    "--collectives", is_flag=True, help="Measure algorithms of collectives instead, and correct the model by that."
)
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Collectives only: which. Default: all.")
@click.option("--size", "sizes", multiple=True, callback=sizes_of, help="Collectives only: 8, 64KiB, ... Default: all.")
@click.option("--memory", type=click.Choice(["host", "device"]), help="Collectives only: whose. Default: the host's.")
@common
def command(
    ranks: int,
    rounds: int | None,
    output: Path | None,
    collectives: bool,
    kinds: tuple[str, ...],
    sizes: list[int],
    memory: str | None,
    as_json: bool,
) -> None:
    """Measure each path's latency, bandwidth and cost of a run, and write the machine profile.

    Leave the machine otherwise idle meanwhile. All later plans on this machine use the file. With --collectives: time
    the algorithms among which those of collectives are chosen, on these ranks, add to the profile how far the model was
    from what was measured, measure again, and say how good the choice now is.
    """
    if collectives:
        options = {"kinds": list(kinds), "sizes": sizes, "memory": memory or "host", "rounds": rounds or 11}
        tune_collectives(ranks, options, output, as_json)
        return
    if kinds or sizes or memory:
        raise click.UsageError("--kind, --size and --memory are for collectives; give --collectives")
    rounds = rounds or 5
    check_output(output or profile_file("profile.json"))
    check_cores(ranks)
    with tempfile.TemporaryDirectory() as temporary:
        profiles, name = measure_all(ranks, rounds, Path(temporary))
    target = output or profile_file(name)
    measured = by_path(profiles)
    spreads = {path: spread_of(m) for path, m in measured.items()}
    paths = {path: {key: median(one[key] for one in m) for key in m[0]} for path, m in measured.items()}
    profile = {**profiles[-1], "paths": paths}
    for one in profile.get("measured", []):  # of all rounds, not of the last alone
        one["spread"] = {path: spreads.get(path, value) for path, value in one["spread"].items()}
        one["derived"] = {path: why for path, why in one.get("derived", {}).items() if path in paths}
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
    data = {"file": str(target), "rounds": len(profiles), "spread": spreads, **profile}

    def show(console) -> None:
        console.print(table(f"machine profile, median of {len(profiles)} (spread: of the nearer half)", columns, rows))
        console.print(provenance.told(profile))
        console.print(f"written to {target}")

    emit(data, as_json, show)
