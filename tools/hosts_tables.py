"""Tables of bench/results/hosts.json: what tools/hosts_bench.py has measured across hosts.

`<!-- hosts:himeno -->`, `<!-- hosts:halos -->` and `<!-- hosts:collectives -->` ... `<!-- /hosts -->` are filled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from statistics import median

MARKED = re.compile(r"(<!-- hosts:(?P<part>himeno|halos|collectives) -->\n).*?(<!-- /hosts -->)", re.S)
Number = Callable[[float], str]


def rate_of(row: dict) -> str:
    return row["rate"].replace("gbit", " Gbit/s")


def size_name(value: int) -> str:
    if value >= 1 << 20:
        return f"{value >> 20} MiB"
    return f"{value >> 10} KiB" if value >= 1 << 10 else f"{value} B"


def spread(row: dict, number: Number) -> str:
    """The median with the least and the largest of the runs."""
    return f"{number(median(row['us']))} ({number(min(row['us']))}–{number(max(row['us']))})"


def pairs(rows: list[dict], key: str) -> list[tuple[dict, dict]]:
    """Hybrid beside network only, for each rate and case."""
    found: dict[tuple, dict[str, dict]] = {}
    for row in rows:
        found.setdefault((row["rate"], row[key]), {})[row["way"]] = row
    return [(of["hybrid"], of["network only"]) for of in found.values()]


def two_ways(rows: list[dict], key: str, number: Number) -> list[list[str]]:
    cells = []
    for hybrid, alone in pairs(rows, key):
        ratio = number(median(alone["us"]) / median(hybrid["us"]))
        cells.append([rate_of(hybrid), hybrid[key], spread(hybrid, number), spread(alone, number), f"**×{ratio}**"])
    return cells


def himeno(rows: list[dict], number: Number) -> list[list[str]]:
    head = ["link", "Himeno", "hybrid, µs an iteration", "network only, µs", "network only / hybrid"]
    return [head, ["---"] * 2 + ["---:"] * 3, *two_ways(rows, "size", number)]


def halos(rows: list[dict], number: Number) -> list[list[str]]:
    head = ["link", "halo", "hybrid, µs", "network only, µs", "network only / hybrid"]
    head += ["bytes between hosts, by `explain()`", "sent, hybrid", "sent, network only"]
    cells = two_ways(rows, "case", number)
    for cell, (hybrid, alone) in zip(cells, pairs(rows, "case")):
        cell.append(f"{hybrid['said']:.0f}" if hybrid["said"] == alone["said"] else "differ")
        for row in (hybrid, alone):
            more = median(row["sent"]) / row["said"] - 1
            cell.append(f"{median(row['sent']):.0f} ({more * 100:+.1f} %)")
    return [head, ["---"] * 2 + ["---:"] * 6, *cells]


def collectives(rows: list[dict], number: Number) -> list[list[str]]:
    head = ["link", "collective", "hierarchical, µs", "the best flat one, µs", "flat / hierarchical", "chosen"]
    head += ["bytes between hosts: hierarchical", "flat", "the least", "sent: hierarchical", "flat"]
    found: dict[tuple, list[dict]] = {}
    for row in rows:
        found.setdefault((row["rate"], row["collective"], row["bytes"]), []).append(row)
    cells = []
    for (_, name, size), of in found.items():
        deep = next(row for row in of if row["algorithm"] == "hierarchical")
        flat = min((row for row in of if row is not deep), key=lambda row: median(row["us"]))
        chosen = next((row["algorithm"] for row in of if row["picked"]), "–")
        ratio = number(median(flat["us"]) / median(deep["us"]))
        cell = [rate_of(deep), f"{name} {size_name(size)}", spread(deep, number)]
        cell += [f"{spread(flat, number)} {flat['algorithm']}", f"**×{ratio}**", chosen]
        cell += [str(deep["said"]), str(flat["said"]), str(deep["least"])]
        cell += [f"{median(row['sent']):.0f}" for row in (deep, flat)]
        cells.append(cell)
    return [head, ["---"] * 2 + ["---:"] * 3 + ["---"] + ["---:"] * 5, *cells]


TABLES = {"himeno": himeno, "halos": halos, "collectives": collectives}


def refreshed(text: str, folder: Path, number: Number) -> str:
    def replace(match: re.Match) -> str:
        file = folder / "hosts.json"
        if not file.exists():
            return match[1] + match[3]
        results = json.loads(file.read_text())
        lines = ["| " + " | ".join(row) + " |" for row in TABLES[match["part"]](results[match["part"]], number)]
        where = ", ".join(f"{key} {value}" for key, value in results["machine"][match["part"]].items())
        note = f"Medians, with the least and the largest of the rounds. {where}."
        return match[1] + "\n".join([*lines, "", note, ""]) + match[3]

    return MARKED.sub(replace, text)
