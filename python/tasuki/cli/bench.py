"""`tasuki bench`: Tasuki and its peers on the same cases: the C++ driver, and peers in Python if asked for."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import click
from rich.console import Console

from tasuki.checked import read_json
from tasuki.cli import Failure
from tasuki.cli.common import (
    check_output,
    common,
    emit,
    python_on_ranks,
    ranks_option,
    run_ranks,
    table,
)
from tasuki.launch import core_library, launcher_for, own_program
from tasuki.tables import OWN, bench_table

PYTHON_PEERS = {"mpi4py": "mpi4py==4.1.2", "ghex": "ghex==0.9.0"}
LIMIT_SIZES = [1 << power for power in range(12, 27, 2)]


def copying_limit() -> list[dict]:
    """What one core takes to copy n bytes between two buffers of its own, less what calling for it takes."""
    source, target = (ctypes.create_string_buffer(LIMIT_SIZES[-1]) for _ in range(2))

    def best_of(size: int, rounds: int) -> float:
        best = float("inf")
        for _ in range(7):
            begin = time.perf_counter()
            for _ in range(rounds):
                ctypes.memmove(target, source, size)
            best = min(best, (time.perf_counter() - begin) / rounds)
        return best * 1e6

    call = best_of(0, 10000)
    measured = {size: best_of(size, max(3, (16 << 20) // size)) - call for size in LIMIT_SIZES}
    return [{"bytes": size, "us": us} for size, us in measured.items() if us > 0]


def python_peers(install: bool) -> tuple[list[str], list[str]]:
    """Which there are, and what to say about the others. mpi4py is needed for all."""
    for name, requirement in PYTHON_PEERS.items():
        if install and find_spec(name) is None:
            # GHEX is built against the first MPI on the path: the one that the ranks are started with.
            path = f"{Path(launcher_for(core_library())).resolve().parent}{os.pathsep}{os.environ.get('PATH', '')}"
            command = [sys.executable, "-m", "pip", "install", requirement]
            done = subprocess.run(command, check=False, stdout=sys.stderr, env=os.environ | {"PATH": path})
            if done.returncode != 0:
                raise Failure(f"pip could not install {requirement}; what it said is above")
    there = [name for name in PYTHON_PEERS if find_spec(name)]
    missing = [f"{n}: skipped, not installed ({r}; --install-peers)" for n, r in PYTHON_PEERS.items() if n not in there]
    if "mpi4py" not in there:
        raise Failure(f"the Python peers need mpi4py; pip install {PYTHON_PEERS['mpi4py']}, or give --install-peers")
    return there, missing


def show(console: Console, data: dict) -> None:
    for group in dict.fromkeys(case["group"] for case in data["cases"]):
        console.print(table(*bench_table(group, [case for case in data["cases"] if case["group"] == group])))


@click.command("bench")
@ranks_option(2)
@click.option("--group", multiple=True, help="Only these groups; a wrong one lists them.")
@click.option("--filter", "text", default="", help="Only cases whose `group: name` contains this.")
@click.option("--peer", multiple=True, help="Only these peers of the C++ driver; a wrong one lists them.")
@click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "gpu"]),
    default="auto",
    show_default=True,
    help="The driver's cases: those in host memory or those on GPUs; auto: what --group belongs to, or GPUs if any.",
)
@click.option("--rounds", type=click.IntRange(1), help="Samples a peer.")
@click.option("--quick", is_flag=True, help="Few cases, short rounds: to see that all works, not to quote.")
@click.option(
    "--part",
    multiple=True,
    type=click.Choice(["driver", "python", "limit"]),
    default=["driver", "limit"],
    show_default=True,
    help="The C++ driver; the peers in Python (mpi4py, and GHEX if installed); what one core copies. May be repeated.",
)
@click.option("--install-peers", is_flag=True, help="Install the Python peers that are missing.")
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the results here, for tasuki plot."
)
@common
def command(ranks, group, text, peer, device, rounds, quick, part, install_peers, output, as_json) -> int:
    """Time Tasuki and its peers on the same cases, in turn, after checking that each moves the right bytes."""
    check_output(output)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    machine = {"ranks": ranks, "cores": os.cpu_count(), "commit": os.environ.get("TASUKI_COMMIT", ""), "date": now}
    data: dict = {"machine": machine, "cases": [], "skipped": []}
    with tempfile.TemporaryDirectory() as folder:
        if "driver" in part:
            program, target = own_program("tasuki-bench"), Path(folder) / "bench.json"
            arguments = ["--json", str(target), "--filter", text, "--device", device, *(["--quick"] if quick else [])]
            for option, values in (("--group", group), ("--peer", peer), ("--rounds", [rounds] if rounds else [])):
                for value in values:
                    arguments += [option, str(value)]
            run_ranks(ranks, [str(program), *arguments], launcher_for(program), what="benchmarks", leaves=[target])
            data |= read_json(target)
        if "python" in part:
            there, data["skipped"] = python_peers(install_peers)
            target = Path(folder) / "python.json"
            arguments = [str(target), str(rounds or (5 if quick else 15)), text, OWN, *there]
            peers = python_on_ranks("tasuki.cli.peers", arguments)
            run_ranks(ranks, *peers, what="Python peers", leaves=[target])
            data["cases"] += read_json(target)
    if "limit" in part:
        data["limit"] = copying_limit()
    if output:
        output.write_text(json.dumps(data, indent=1) + "\n")
    emit(data, as_json, lambda console: show(console, data))
    for skipped in data.get("skipped", []):
        print(skipped, file=sys.stderr)
    complaints = [text for case in data["cases"] for text in case.get("failed", [])]
    if complaints:
        raise Failure(f"wrong results: {'; '.join(complaints)}")
    return 0
