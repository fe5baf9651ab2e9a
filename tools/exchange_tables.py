"""Tables of redistributions and mesh exchanges on GPUs, from what bench/gpu_exchange.py has measured.

<!-- exchange:FILE/TEXT --> ... <!-- /exchange --> stands for the cases of bench/results/FILE.json whose names contain
the text. It is empty as long as that file does not exist.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from statistics import median

MARKED = re.compile(r"(<!-- exchange:(?P<name>[^\s>/]+)/(?P<text>[^>]+?) -->\n).*?(<!-- /exchange -->)", re.S)
OWN = "tasuki"
GRAPH = " graph"
Number = Callable[[float], str]


def cell(case: dict, peer: str, number: Number) -> str:
    """µs, and for peers by how much they take longer than Tasuki does likewise."""
    if peer not in case["us"]:
        return "–"
    us = median(case["us"][peer])
    if peer.removesuffix(GRAPH) == OWN:
        return f"{number(us)} ({number(case['bytes'] / us / 1e3)})"
    own = median(case["us"][OWN + GRAPH if peer.endswith(GRAPH) else OWN])
    return f"{number(us)} **×{us / own:.2f}**"


def table(results: dict, text: str, number: Number) -> str:
    """A row a case, a column a peer."""
    cases = [case for case in results["cases"] if text in case["case"]]
    if not cases:
        return ""
    peers = list(dict.fromkeys(peer for case in cases for peer in case["us"]))
    bound = any("bound_us" in case for case in cases)
    head = ["µs", *(f"{p}, µs (GB/s)" if p.removesuffix(GRAPH) == OWN else p for p in peers)]
    rows = [head + (["sectors / link"] if bound else []), ["---"] + ["---:"] * (len(peers) + bound)]
    for case in cases:
        limit = [number(case["bound_us"])] if bound else []
        rows.append([case["case"], *(cell(case, peer, number) for peer in peers), *limit])
    where = ", ".join(f"{key} {value}" for key, value in results["machine"].items() if value)
    return "\n".join([*("| " + " | ".join(row) + " |" for row in rows), "", f"Medians of rounds. {where}.", ""])


def refreshed(text: str, folder: Path, number: Number) -> str:
    def replace(match: re.Match) -> str:
        file = folder / f"{match['name']}.json"
        made = table(json.loads(file.read_text()), match["text"], number) if file.exists() else ""
        return match[1] + made + match[4]

    return MARKED.sub(replace, text)
