"""The README's short table and its plot, from the files of bench/results/: a few cases of each kind, also the worst.

`<!-- overview -->` ... `<!-- /overview -->` is filled with the table; the plot is docs/figures/overview.svg.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path

OWN = "tasuki"
OVERVIEW = re.compile(r"(<!-- overview -->\n).*?(<!-- /overview -->)", re.S)
BOUNDS = ("copy_loop", "raw store", "raw copy")  # what no communication can beat
NO_PEER = re.compile(rf"{OWN} | graph$")  # own paths one by one; replays, which not every program can use
# What it is, the file, its group, the case.
CASES = [
    ("halo, 64³ doubles, cut across rows", "cpu", "halo", "64^3 w1 split 2x1x1"),
    ("halo, 64³ doubles, cut along rows", "cpu", "halo", "64^3 w1 split 1x1x2"),
    ("halo, 64³ doubles, 4 fields", "cpu", "halo", "64^3 w1 x 4 fields split 1x2x1"),
    ("halo, 128³ doubles, 2 cells wide", "cpu", "halo", "128^3 w2 split 1x1x2"),
    ("column of a matrix, 4096 doubles", "cpu", "transfer", "4096 x 1 of 4096 x 1024"),
    ("broadcast, 8 B", "cpu", "broadcast", "8 B"),
    ("broadcast, 1 MiB", "cpu", "broadcast", "1 MiB"),
    ("halo, 64³ floats", "gpu-2", "gpu-halo", "64^3 f32 w1 split 2x1x1"),
    ("halo, 256³ floats, 4 fields", "gpu-2", "gpu-halo", "256^3 f32 w1 x 4 fields split 2x1x1"),
    ("halo, 64³ floats", "gpu-4", "gpu-halo", "64^3 f32 w1 split 2x2x1"),
    ("halo, 512³ floats", "gpu-4", "gpu-halo", "512^3 f32 w1 split 2x2x1"),
]
SOLVERS = [("himeno-gpu-4", "M"), ("himeno-gpu-4", "XL")]
COLOURS = ["#2c7fb8", "#41ab5d", "#9e6fc0", "#e08214", "#17a2a2", "#8c6d31", "#7f7f7f", "#d46a9a", "#5b7553", "#c9a800"]


@dataclass
class Row:
    what: str
    where: str
    own: float  # µs
    others: dict[str, float]  # µs, by peer


def place(machine: dict) -> str:
    """`2 cores` or `4 × NVIDIA H200`."""
    return f"{machine['gpus']} × {machine['gpu']}" if machine.get("gpus") else f"{machine['cores']} cores"


def rows_of(folder: Path) -> list[Row]:
    """Of the files that there are: not every machine has GPUs. Raises SystemExit for a case that a file lacks."""
    rows = []
    for what, file, group, name in CASES:
        path = folder / f"{file}.json"
        if not path.exists():
            continue
        results = json.loads(path.read_text())
        found = [case for case in results["cases"] if (case["group"], case["case"]) == (group, name)]
        if not found or OWN not in found[0]["peers"]:
            raise SystemExit(f"overview.py: {path} has no times of {OWN} for case '{name}' of group '{group}'")
        times = {peer: times["median_us"] for peer, times in found[0]["peers"].items()}
        others = {p: t for p, t in times.items() if p != OWN and p not in BOUNDS and not NO_PEER.search(p)}
        rows.append(Row(what, place(results["machine"]), times[OWN], others))
    return rows


def solvers_of(folder: Path) -> list[Row]:
    """An iteration of Himeno on all GPUs beside the same without communication."""
    rows = []
    for file, size in SOLVERS:
        path = folder / f"{file}.json"
        if not path.exists():
            continue
        results = json.loads(path.read_text())
        runs = [r for r in results["runs"] if r["size"] == size and "island" not in r and r["engine"] == "graph"]
        most = max(run["ranks"] for run in runs)
        runs = [r for r in runs if r["ranks"] == most and not r["verified"]]
        times = {
            communicate: [
                r["seconds_per_iteration"] * 1e6
                for r in runs
                if r.get("communicate", True) == communicate and (r["overlap"] in (True, "on") or not communicate)
            ][0]
            for communicate in (True, False)
        }
        what = f"Himeno {size}, an iteration"
        rows.append(Row(what, place(results["machine"]), times[True], {"no communication": times[False]}))
    return rows


def table(folder: Path, number: Callable[[float], str]) -> str:
    """A row a case with the fastest of its peers."""
    lines = ["| what | on | Tasuki, µs | the fastest other, µs | × |", "| --- | --- | ---: | ---: | ---: |"]
    for row in [*rows_of(folder), *solvers_of(folder)]:
        peer, time = min(row.others.items(), key=lambda item: item[1])
        cells = [row.what, row.where, number(row.own), f"{number(time)} ({peer})", f"**{number(time / row.own)}**"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def refreshed(text: str, folder: Path, number: Callable[[float], str]) -> str:
    return OVERVIEW.sub(lambda match: match[1] + table(folder, number) + match[2], text)


WIDTH, LEFT, TOP, STEP = 860, 330, 64, 26  # pixels


def plot(folder: Path) -> str:
    """SVG: a row a case, a dot a peer where its time over Tasuki's is, on a logarithmic axis."""
    rows = rows_of(folder)
    ratios = [time / row.own for row in rows for time in row.others.values()]
    low, high = min([0.5, *ratios]), max([8.0, *ratios]) * 1.08
    bottom = TOP + STEP * len(rows)

    def x(ratio: float) -> float:
        return LEFT + (WIDTH - LEFT - 24) * math.log(ratio / low) / math.log(high / low)

    peers = list(dict.fromkeys(peer for row in rows for peer in row.others))
    colours = {peer: COLOURS[i % len(COLOURS)] for i, peer in enumerate(peers)}
    parts = [f'<rect width="{WIDTH}" height="{bottom + 44}" fill="#fff"/>']

    def text(at: float, y: float, words: str, colour: str = "#222", anchor: str = "start", **more: object) -> None:
        extra = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in more.items())
        parts.append(
            f'<text x="{at:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}"{extra}>{escape(words)}</text>'
        )

    at, y = LEFT - 60.0, 18.0
    for peer in peers:
        if at + 8 * len(peer) > WIDTH - 20:
            at, y = LEFT - 60.0, y + 20
        parts.append(f'<circle cx="{at:.1f}" cy="{y - 4:.1f}" r="5" fill="{colours[peer]}"/>')
        text(at + 9, y, peer)
        at += 30 + 7.4 * len(peer)
    for tick in (0.5, 1, 2, 4, 8, 16, 32, 64):
        if low <= tick <= high:
            look = 'stroke="#c0392b" stroke-width="2"' if tick == 1 else 'stroke="#ddd"'
            parts.append(f'<path d="M{x(tick):.1f},{TOP - 6} V{bottom}" {look}/>')
            text(x(tick), bottom + 16, f"×{tick:g}", "#c0392b" if tick == 1 else "#555", "middle")
    text(x(1), bottom + 34, "Tasuki", "#c0392b", "middle", font_weight="bold")
    text(WIDTH - 24, bottom + 34, "slower than Tasuki →", "#555", "end")
    for i, row in enumerate(rows):
        middle = TOP + STEP * i + STEP / 2
        if i and rows[i - 1].where != row.where:
            parts.append(f'<path d="M8,{middle - STEP / 2:.1f} H{WIDTH - 8}" stroke="#bbb"/>')
        if not i or rows[i - 1].where != row.where:
            text(8, middle + 4, row.where.replace("NVIDIA ", ""), "#555", font_weight="bold")
        text(LEFT - 16, middle + 4, row.what, anchor="end")
        for peer, time in sorted(row.others.items()):
            note = f"<title>{escape(f'{peer}: ×{time / row.own:.2f}')}</title>"
            parts.append(
                f'<circle cx="{x(time / row.own):.1f}" cy="{middle:.1f}" r="5.5" fill="{colours[peer]}" '
                f'fill-opacity="0.85">{note}</circle>'
            )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{bottom + 44}" '
    label = 'role="img" aria-label="times of other libraries over those of Tasuki" '
    view = f'viewBox="0 0 {WIDTH} {bottom + 44}" font-family="system-ui, sans-serif" font-size="12">'
    return head + label + view + "\n" + "\n".join(parts) + "\n</svg>\n"
