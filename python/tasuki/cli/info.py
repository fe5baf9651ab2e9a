"""`tasuki info`: what of the machine Tasuki can use, and why not the rest."""

from __future__ import annotations

import csv
import ctypes
import ctypes.util
import os
import re
import shutil
import subprocess
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from tasuki import checked, provenance
from tasuki.checked import FileError, read_json
from tasuki.cli import Failure, tune
from tasuki.cli.common import common, emit, ranks_option, table
from tasuki.cli.ranks import on_ranks
from tasuki.launch import LaunchError, bin_folders, core_library, launcher_for
from tasuki.tables import verdict

WRONG_MEMORY = "not for "  # how the planner refuses a path because of where the memory is
WORDS = {"yes": "green", "no": "red", "not here": "dim"}


def usable(name: str, ok: bool, text: str, matters: bool = True) -> dict:
    """A row. What is not usable is a fault only if it matters on this machine."""
    return {"what": name, "usable": ok, "fault": matters and not ok, "text": text}


def has_gpus() -> bool:
    """Whether the machine shows any sign of a GPU of NVIDIA, with or without its driver."""
    if any(Path("/dev").glob("nvidia*")):
        return True
    devices = Path("/sys/bus/pci/devices").glob("*")
    return any(first_line(d / "vendor") == "0x10de" and first_line(d / "class").startswith("0x03") for d in devices)


def first_line(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def command_output(*command: str) -> tuple[str | None, str]:
    """The program's output, or None and why there is none."""
    if not shutil.which(command[0]):
        return None, f"{command[0]} is not on PATH"
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except subprocess.TimeoutExpired:
        return None, f"{command[0]} does not answer"
    if done.returncode != 0:
        said = (done.stderr + done.stdout).strip().splitlines() or ["no output"]
        return None, f"{command[0]}: {said[0]}"
    return done.stdout, ""


def gpus() -> tuple[list[dict], str]:
    fields = ["index", "name", "memory.total", "driver_version", "pci.bus_id"]
    out, why = command_output("nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader")
    if out is None:
        return [], why
    rows = csv.reader(out.splitlines(), skipinitialspace=True)
    return [dict(zip(fields, row)) for row in rows if len(row) == len(fields)], ""


def gpu_links() -> list[str]:
    """How each pair of GPUs is joined, such as `0-1: NV18`, from the driver's matrix."""
    out, _ = command_output("nvidia-smi", "topo", "-m")
    lines = re.sub(r"\x1b\[[\d;]*m", "", out or "").splitlines()
    found = []
    for line in lines:
        cells = line.split()
        if cells and re.fullmatch(r"GPU\d+", cells[0]):
            row = int(cells[0][3:])
            found += [f"{row}-{column}: {cells[1 + column]}" for column in range(row + 1, len(cells) - 1)
                      if re.fullmatch(r"NV\d+|PIX|PXB|PHB|NODE|SYS", cells[1 + column])]  # fmt: skip
    return found


def nccl(matters: bool) -> dict:
    name = ctypes.util.find_library("nccl") or "libnccl.so.2"
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        return usable("NCCL", False, f"{error}; needed only for GPUs on several islands", matters)
    version = ctypes.c_int()
    if library.ncclGetVersion(ctypes.byref(version)) != 0:
        return usable("NCCL", False, f"{name} does not tell its version")
    v = version.value
    return usable("NCCL", True, f"{v // 10000}.{v // 100 % 100}.{v % 100}")


def cuda_driver(matters: bool) -> dict:
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return usable("CUDA driver", False, f"{error}; no GPU memory or GPU paths", matters)
    version = ctypes.c_int()
    status = library.cuDriverGetVersion(ctypes.byref(version))
    if status != 0:
        return usable("CUDA driver", False, f"cuDriverGetVersion returns {status}")
    return usable("CUDA driver", True, f"CUDA {version.value // 1000}.{version.value % 1000 // 10}")


def machine() -> list[dict]:
    """What does not need ranks."""
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    level = scope.read_text().strip() if scope.exists() else "0"
    devices, why = gpus()
    on_gpus = bool(devices) or has_gpus()
    shown = "; ".join(f"{d['index']}: {d['name']}, {d['memory.total']}" for d in devices)
    rows = [
        usable("cores", True, str(len(os.sched_getaffinity(0)))),
        usable("reading other processes", level == "0" or os.geteuid() == 0, f"kernel.yama.ptrace_scope is {level}"),
        cuda_driver(on_gpus),
        usable("GPUs", bool(devices), shown or why, on_gpus),
        nccl(len(devices) > 1),
    ]
    links = gpu_links() if len(devices) > 1 else []
    if links:
        rows.append(usable("GPU links", True, ", ".join(links)))
    return rows


def reason(path: str, refusal: str) -> str:
    """What a refusal says of this path; it lists the reasons of all."""
    own = re.search(rf"[(;] ?{path}: ([^;)]+)", refusal)
    return own[1] if own else refusal


def path_row(path: str, tried: dict[str, str | None], why_no_gpu: str) -> dict:
    """A row for what came of trying a path on each kind of memory: None if it worked, else the refusal. That a path is
    for other memory than was tried is no fault of it."""
    works = [memory for memory, refusal in tried.items() if refusal is None]
    if works:
        return usable(f"path {path}", True, f"works in {' and '.join(works)} memory")
    reasons = [reason(path, refusal) for refusal in tried.values() if refusal]
    own = [why for why in reasons if not why.startswith(WRONG_MEMORY)]
    if own:
        return usable(f"path {path}", False, own[0])
    other = "GPU" if why_no_gpu else "other"
    return usable(f"path {path}", False, f"for {other} memory, which is not there", matters=False)


def profile_row(mpi: str) -> dict:
    """How old and how certain the prices are that programs on this host with this MPI find."""
    named = os.environ.get("TASUKI_PROFILE")
    folder = tune.profile_file("any").parent
    files = [Path(named)] if named else sorted(folder.glob(f"profile-*-{os.uname().nodename}-{mpi}.json"), key=changed)
    if not files or not files[-1].exists():
        where = named or folder
        return usable("machine profile", False, f"none in {where} yet: the first program measures", matters=False)
    try:
        profile = read_json(files[-1])
        checked.need(profile, checked.OBJECT, files[-1], "the profile")
        provenance.sound(profile, files[-1])
    except FileError as error:
        return usable("machine profile", False, str(error), matters=named is not None)
    return usable("machine profile", True, f"{provenance.told(profile)} ({files[-1]})")


def changed(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:  # gone meanwhile
        return 0


def programs() -> list[dict]:
    names = ["himeno", "laplace", "tasuki-bench"]
    found = {n: next((str(f / n) for f in bin_folders() if (f / n).exists()), None) for n in names}
    where = ", ".join(map(str, bin_folders()))
    return [usable(n, at is not None, at or f"not in {where}", matters=False) for n, at in found.items()]


@click.command("info")
@ranks_option(2)
@common
def command(ranks: int, as_json: bool) -> None:
    """Show what can be used here: MPI, paths between ranks (tried out on this many), islands, GPUs, links, NCCL."""
    import tasuki
    from tasuki import _core

    rows = machine() + programs()
    topology, launcher, mpi, place = "", "the launcher", "*", len(rows)
    try:
        launcher = launcher_for(core_library())
        answer = on_ranks("info", {}, ranks, f"asking {ranks} ranks")[0]
        topology = answer["describe"]
        why = answer["why_no_gpu"]
        rows.append(usable("GPU memory", not why, why or "fields may be on GPUs", has_gpus()))
        version = topology.splitlines()[0].partition("; ")[2]
        mpi = re.sub(r"[^A-Za-z0-9.]", "", version[:40])  # as the library names its file
        rows.append(usable("MPI", True, f"{version}, started by {launcher}"))
        rows += [path_row(name, tried, why) for name, tried in answer["paths"].items()]
    except (Failure, LaunchError) as error:
        rows.append(usable("MPI", False, f"{launcher}: {error}"))
    rows.insert(place, profile_row(mpi))
    data = {"version": tasuki.__version__, "core": _core.__file__, "usable": rows, "topology": topology.splitlines()}

    def show(console: Console) -> None:
        lines = [[r["what"], Text(verdict(r), WORDS[verdict(r)]), r["text"]] for r in rows]
        console.print(table(f"tasuki {tasuki.__version__}", ["what", "usable", ""], lines))
        console.print(topology.strip())

    emit(data, as_json, show)
