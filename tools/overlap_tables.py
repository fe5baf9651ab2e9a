"""Tables of overlap: how much of an operation's time a computation of equal length hides.

<!-- overlap:FILE/GROUP --> ... <!-- /overlap --> stands for the cases of group GROUP in bench/results/FILE.json that
have an overlap. It is empty as long as that file does not exist.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

MARKED = re.compile(r"(<!-- overlap:(?P<name>[^\s>/]+)/(?P<group>[^\s>]+) -->\n).*?(<!-- /overlap -->)", re.S)
OWN = "tasuki"
Number = Callable[[float], str]


def cell(measured: dict | None, number: Number) -> str:
    overlap = (measured or {}).get("overlap")
    if overlap is None:
        return "–"
    times = " / ".join(number(overlap[key]) for key in ("pure_us", "compute_us", "overall_us"))
    return f"**{overlap['percent']:.1f}** ({times})"


def table(results: dict, group: str, number: Number) -> str:
    """A row a case, a column a peer, Tasuki's first."""
    cases = [case for case in results["cases"] if case["group"] == group]
    cases = [case for case in cases if any("overlap" in peer for peer in case["peers"].values())]
    if not cases:
        return ""
    peers = list(dict.fromkeys(peer for case in cases for peer in case["peers"] if "overlap" in case["peers"][peer]))
    peers.sort(key=lambda peer: (not peer.startswith(OWN), not peer.endswith(" graph")))
    rows = [["overlap %, (pure / computation / overall µs)", *peers], ["---"] + ["---:"] * len(peers)]
    rows += [[case["case"], *(cell(case["peers"].get(peer), number) for peer in peers)] for case in cases]
    where = ", ".join(f"{key} {value}" for key, value in results["machine"].items() if value)
    return "\n".join([*("| " + " | ".join(row) + " |" for row in rows), "", f"Medians. {where}.", ""])


def refreshed(text: str, folder: Path, number: Number) -> str:
    def replace(match: re.Match) -> str:
        file = folder / f"{match['name']}.json"
        made = table(json.loads(file.read_text()), match["group"], number) if file.exists() else ""
        return match[1] + made + match[4]

    return MARKED.sub(replace, text)
