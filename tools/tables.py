#!/usr/bin/env python3
"""Writes the benchmark tables of README.md and docs/ from the JSON files of bench/results/.

A table stands between <!-- table:FILE/GROUP --> and <!-- /table -->, for group GROUP of bench/results/FILE.json; the
name may be the group alone if one file only has it, and FILE/GROUP/TEXT takes only cases whose names contain the text.
A table that a FILE gpu-N lacks is empty: not every machine has GPUs. <!-- himeno:FILE --> stands for the runs of Himeno
in bench/results/himeno-FILE.json, of which <!-- himeno:FILE/summary --> says the least, and <!-- laplace:FILE -->
likewise. <!-- predicted:FILE --> sets what bench/results/FILE.json was predicted beside what was measured,
<!-- predicted:FILE/collectives --> says the least of it for a file of many collectives, and
<!-- overview --> is a few cases of all (overview.py), of which docs/figures/overview.svg is the plot. Collectives on
hosts (collective_tables.py), runs across hosts (hosts_tables.py), kernels that communicate (kernel_tables.py) and
overlap (overlap_tables.py) have tables of their own, collectives plots, and what prices are worth (price_tables.py),
typed messages (typed_tables.py) and exchanges on GPUs (exchange_tables.py) have, too.
With --check nothing is written, and stale tables are an error.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import collective_tables
import exchange_tables
import hosts_tables
import kernel_tables
import overlap_tables
import overview
import price_tables
import torch_collectives
import typed_tables

ROOT = Path(__file__).resolve().parent.parent
MARKED = re.compile(r"(<!-- table:(?P<name>[^\s>]+) -->\n).*?(<!-- /table -->)", re.S)
PREDICTED = re.compile(r"(<!-- predicted:(?P<name>[^\s>]+) -->\n).*?(<!-- /predicted -->)", re.S)
RUNS = re.compile(r"(<!-- (?P<app>himeno|laplace):(?P<name>[^\s>]+) -->\n).*?(<!-- /(?P=app) -->)", re.S)
OPTIONAL = re.compile(r"gpu-\d+")
OWN = "tasuki"
GRAPH = " graph"  # ends the name of a peer that is replayed as a CUDA graph


def number(value: float) -> str:
    """Three significant digits without an exponent."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def own_cell(measured: dict | None) -> str:
    if measured is None:
        return "–"
    median, p10, p90 = (number(measured[key]) for key in ("median_us", "p10_us", "p90_us"))
    return f"{median} ({p10}–{p90})"


def peer_cell(measured: dict | None, ratio: float | None) -> str:
    if measured is None:
        return "–"
    by = f" {measured['by']}" if "by" in measured else ""
    return number(measured["median_us"]) + by + (f" **×{number(ratio)}**" if ratio is not None else "")


# What stands above the table of a group that a text need not have: `machine` of the file fills the braces.
CAPTIONS = {
    "gpu-halo": "Halo of a 3D grid, periodic unless open, cells a rank; {gpus} × {gpu}, a rank each:",
    "gpu-face": "One face of a cube from GPU to GPU; {gpus} × {gpu}:",
    "gpu-copy": "Contiguous bytes from GPU to GPU, exchanges back to back; {gpus} × {gpu}:",
}


# What a reader must know of a peer to compare with it; stands below every table that has the peer.
REMARKS = {
    "nvshmem": "`nvshmem` measures calls of NVSHMEM's host library, in stream order between a kernel that packs and "
    "one that unpacks; NVSHMEM's calls from inside a kernel are not measured.",
    "torch": "`torch` is the fastest operation of PyTorch's symmetric memory, without NVLink multicast; it is measured "
    "after the others, not in turn with them.",
}


def shown(peer: str) -> bool:
    """Not the own paths one by one: they say what the choice was worth, which is for the JSON."""
    return peer != OWN and (not peer.startswith(f"{OWN} ") or peer.endswith(GRAPH))


def table(group: str, cases: list[dict], machine: dict) -> str:
    """One row a case. A ratio is the peer's time over Tasuki's: above 1, Tasuki is faster."""
    cases = [torch_collectives.folded(case) for case in cases]
    peers = list(dict.fromkeys(peer for case in cases for peer in case["peers"] if shown(peer)))
    peers.sort(key=lambda peer: not peer.startswith(OWN))
    own = [OWN] if any(OWN in case["peers"] for case in cases) else []  # not where only graphs were measured
    columns = [*own, *peers]
    rows = [["case", *(f"{name}, µs" for name in columns)], ["---"] + ["---:"] * len(columns)]
    for case in cases:
        times, ratios = case["peers"], case["ratios"]
        cells = [own_cell(times.get(OWN)) for _ in own] + [peer_cell(times.get(p), ratios.get(p)) for p in peers]
        rows.append([case["case"], *cells])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    caption = [CAPTIONS[group].format_map(machine), ""] if group in CAPTIONS else []
    where = ", ".join(f"{key} {value}" for key, value in machine.items() if value)
    over = f"{OWN}'s, of graphs over {OWN}{GRAPH}'s" if any(p.endswith(GRAPH) for p in peers) else f"{OWN}'s"
    note = f"Medians, for {OWN} with the 10th and 90th percentile; × is the peer's time over {over}. {where}."
    remarks = [line for peer, text in REMARKS.items() if peer in peers for line in ("", text)]
    return "\n".join([*caption, *lines, "", note, *remarks, ""])


def runs_table(results: dict) -> str:
    """One row a run; the columns are those of the app's report."""
    columns = ["size", "split", "engine", "overlap", "µs an iteration", "GFLOPS", "computation alone, µs"]
    columns += ["exchange alone, µs", "not hidden, µs", "result"]
    rows = [columns, ["---"] * 4 + ["---:"] * 5 + ["---"]]
    for run in results["runs"]:
        split = "x".join(map(str, run["split"])) if isinstance(run["split"], list) else run["split"]
        if "island" in run:
            split += f", islands of {run['island']}, path {run['path']}"
        alone = [number(run[key]) if run.get(key) is not None else "–" for key in COLUMNS_ALONE]
        overlap = run["overlap"] if isinstance(run["overlap"], str) else ("on" if run["overlap"] else "off")
        how = "every bit as in the serial run" if run["verified"] else ""
        if not run.get("communicate", True):
            how = "without communication: the ideal"
        times = [number(run["seconds_per_iteration"] * 1e6), f"{run['gflops']:.0f}"]
        rows.append([run["size"], split, run["engine"], overlap, *times, *alone, how])
    where = ", ".join(f"{key} {value}" for key, value in results["machine"].items() if value)
    return "\n".join([*("| " + " | ".join(row) + " |" for row in rows), "", f"{where}.", ""])


def summary_table(results: dict) -> str:
    """One row a size: a single GPU, all of them by graphs, and how near that is to the time without communication."""
    runs = [run for run in results["runs"] if "island" not in run and not run["verified"] and run["engine"] == "graph"]
    most = max(run["ranks"] for run in runs)

    def time(size: str, ranks: int, **what: bool) -> float | None:
        wanted = {"size": size, "ranks": ranks, **what}
        found = [run for run in runs if all(run.get(key) == value for key, value in wanted.items())]
        return found[0]["seconds_per_iteration"] * 1e6 if found else None

    columns = ["Himeno", "1 GPU, µs", f"{most} GPUs, µs", "speedup", "without communication, µs", "exposed"]
    rows = [columns, ["---"] + ["---:"] * (len(columns) - 1)]
    for size in dict.fromkeys(run["size"] for run in runs):
        alone, all_gpus = time(size, 1), time(size, most, overlap=True, communicate=True)
        if all_gpus is None:
            continue
        ideal = time(size, most, communicate=False)
        row = [size, number(alone) if alone else "–", number(all_gpus), number(alone / all_gpus) if alone else "–"]
        row += [number(ideal), f"{(all_gpus / ideal - 1) * 100:.1f} %"] if ideal else ["–", "–"]
        rows.append(row)
    where = ", ".join(f"{key} {value}" for key, value in results["machine"].items() if value)
    return "\n".join([*("| " + " | ".join(row) + " |" for row in rows), "", f"An iteration. {where}.", ""])


COLUMNS_ALONE = ("compute_us", "exchange_us", "exposed_us")


@dataclass
class Group:
    name: str
    cases: list[dict]
    machine: dict


def load_tables(folder: Path) -> dict[str, Group]:
    """What there are tables of, by name: FILE/GROUP, and GROUP where that is unambiguous."""
    named: dict[str, Group] = {}
    files_with: dict[str, list[str]] = {}
    for path in sorted(folder.glob("*.json")):
        results = json.loads(path.read_text())
        if "cases" not in results:
            continue
        groups: dict[str, list[dict]] = {}
        for case in results["cases"]:
            groups.setdefault(case["group"], []).append(case)
        for group, cases in groups.items():
            named[f"{path.stem}/{group}"] = Group(group, cases, results["machine"])
            files_with.setdefault(group, []).append(path.stem)
    for group, files in files_with.items():
        if len(files) == 1:
            named[group] = named[f"{files[0]}/{group}"]
    return named


def refreshed(text: str, tables: dict[str, Group], source: str) -> str:
    def replace(match: re.Match) -> str:
        file, _, rest = match["name"].partition("/")
        group, _, wanted = rest.partition("/")
        found = tables.get(f"{file}/{group}" if rest else file)
        cases = [case for case in found.cases if wanted in case["case"]] if found else []
        if not cases and OPTIONAL.fullmatch(file):
            return match[1] + match[3]
        if not cases:
            known = ", ".join(sorted(tables)) or "none: run `make bench`"
            raise SystemExit(f"tables.py: {source} wants table '{match['name']}'; there are: {known}")
        return match[1] + table(found.name, cases, found.machine) + match[3]

    return MARKED.sub(replace, text)


def with_runs(text: str, folder: Path) -> str:
    def replace(match: re.Match) -> str:
        name, _, form = match["name"].partition("/")
        file = folder / f"{match['app']}-{name}.json"
        made = summary_table if form == "summary" else runs_table
        return match[1] + (made(json.loads(file.read_text())) if file.exists() else "") + match[4]

    return RUNS.sub(replace, text)


def predicted_table(results: dict) -> str:
    """One row a case that Tasuki predicts. A ratio is the measured time over the predicted one. Where a graph was
    measured too, its time counts, because predictions leave out what the host takes to launch."""
    rows = [["group", "case", "predicted, µs", "measured, µs", "measured / predicted"], ["---"] * 2 + ["---:"] * 3]
    for case in results["cases"]:
        own = case["peers"].get(OWN + GRAPH) or case["peers"].get(OWN, {})
        if not own.get("predicted_us"):
            continue
        measured = own["median_us"] - case.get("barrier_us", 0)
        ratio = number(measured / own["predicted_us"])
        rows.append([case["group"], case["case"], number(own["predicted_us"]), number(measured), ratio])
    where = ", ".join(f"{key} {value}" for key, value in results["machine"].items() if value)
    note = f"Medians, less the barrier where the case has one. {where}."
    return "\n".join([*("| " + " | ".join(row) + " |" for row in rows), "", note, ""])


SIZES = {"up to 4 KiB": 4 << 10, "32 KiB to 4 MiB": 4 << 20, "16 MiB and more": sys.maxsize}


def predicted_ranges(results: dict) -> str:
    """One row a collective: the measured time over the predicted one, by size. Cases that measure `start` alone are
    left out, for an epoch is what is predicted."""
    found: dict[str, dict[str, list[float]]] = {}
    for case in results["cases"]:
        own = case["peers"].get(OWN, {})
        if not own.get("predicted_us") or case["case"].startswith("start of "):
            continue
        name = case["case"].split()[0] if case["group"] == "collective" else case["group"]
        size = next(size for size, most in SIZES.items() if case["bytes"] <= most)
        ratio = (own["median_us"] - case.get("barrier_us", 0)) / own["predicted_us"]
        found.setdefault(name, {}).setdefault(size, []).append(ratio)
    rows = [["measured / predicted", *SIZES], ["---", *["---:"] * len(SIZES)]]
    for name, ratios in found.items():
        cells = [ratios.get(size) for size in SIZES]
        told = [f"{number(median(r))} ({number(min(r))}–{number(max(r))})" if r else "" for r in cells]
        rows.append([name, *told])
    where = ", ".join(f"{key} {value}" for key, value in results["machine"].items() if value)
    note = f"Median of the cases, in brackets the least and the greatest. {where}."
    return "\n".join([*("| " + " | ".join(row) + " |" for row in rows), "", note, ""])


def with_predictions(text: str, folder: Path) -> str:
    def replace(match: re.Match) -> str:
        name, _, form = match["name"].partition("/")
        made = predicted_ranges if form == "collectives" else predicted_table
        return match[1] + made(json.loads((folder / f"{name}.json").read_text())) + match[3]

    return PREDICTED.sub(replace, text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only say whether the tables are up to date")
    arguments = parser.parse_args()
    results = ROOT / "bench" / "results"
    tables = load_tables(results)
    stale = 0

    def settle(path: Path, before: str, after: str) -> int:
        if after == before:
            return 0
        if arguments.check:
            print(f"tables.py: {path.relative_to(ROOT)} is stale; run tools/tables.py", file=sys.stderr)
            return 1
        path.write_text(after)
        print(f"tables.py: refreshed {path.relative_to(ROOT)}")
        return 0

    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if not path.exists():
            continue
        before = path.read_text()
        after = with_runs(refreshed(before, tables, str(path.relative_to(ROOT))), results)
        after = overview.refreshed(with_predictions(after, results), results, number)
        after = hosts_tables.refreshed(collective_tables.refreshed(after, results, number), results, number)
        after = typed_tables.refreshed(price_tables.refreshed(after, results), results, number)
        after = overlap_tables.refreshed(kernel_tables.refreshed(after, results), results, number)
        after = exchange_tables.refreshed(after, results, number)
        stale += settle(path, before, after)
    for name, plot in {"overview.svg": overview.plot(results), **collective_tables.plots(results)}.items():
        figure = ROOT / "docs" / "figures" / name
        stale += settle(figure, figure.read_text() if figure.exists() else "", plot)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
