"""Tables of prices: what paths and algorithms were predicted to take beside what they took, by path and size; and
the choice beside the best of all that it chose among.

`<!-- prices:FILE/paths -->` and `<!-- prices:FILE/choice -->` ... `<!-- /prices -->` are filled from
bench/results/FILE.json. Run by itself, with the name of such a file, it prints both.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

MARKED = re.compile(r"(<!-- prices:(?P<name>[^\s>]+) -->\n).*?(<!-- /prices -->)", re.S)
OWN = "tasuki"
SIZES = {"up to 2 KiB": 2 << 10, "12 to 64 KiB": 64 << 10, "256 KiB to 1 MiB": 1 << 20, "5 MiB and more": sys.maxsize}
GOOD = 0.25  # a prediction may miss by so much
NEAR = 0.15  # a choice may take so much longer than the best
LEAST = 0.02  # µs: shorter times are those of the barrier


def size_of(case: dict) -> str:
    return next(size for size, most in SIZES.items() if case["bytes"] <= most)


def seconds(case: dict, peer: str) -> float:
    """Of an epoch that all ranks start together, µs."""
    return max(case["peers"][peer]["median_us"] - case.get("barrier_us", 0), LEAST)


def predicted(case: dict, peer: str) -> float | None:
    return case["peers"][peer].get("predicted_us")


def forced(case: dict) -> Iterator[tuple[str, str]]:
    """Every forced peer with its path."""
    for peer in case["peers"]:
        words = peer.split()
        if words[0] == OWN and len(words) > 1:
            yield peer, words[1]


def share(values: list[bool]) -> str:
    return f"{100 * sum(values) / len(values):.0f} % of {len(values)}" if values else ""


def row_of(name: str, found: dict[str, list[float]]) -> list[str]:
    everything = [ratio for ratios in found.values() for ratio in ratios]
    cells = []
    for ratios in (*(found.get(size, []) for size in SIZES), everything):
        good = share([1 / (1 + GOOD) <= ratio <= 1 + GOOD for ratio in ratios])
        cells.append(f"{good} ({median(ratios):.2f})" if ratios else "")
    return [name, *cells]


def paths_table(results: dict) -> list[list[str]]:
    """Predicted over measured, of every forced path; algorithms that were forced as well count by themselves."""
    found: dict[str, dict[str, list[float]]] = {}
    for case in results["cases"]:
        for peer, path in forced(case):
            told = predicted(case, peer)
            if told is None or path == "auto":
                continue
            ratio = told / seconds(case, peer)
            for name in (path, "all"):
                found.setdefault(name, {}).setdefault(size_of(case), []).append(ratio)
    head = [f"within {GOOD:.0%} (median of predicted / measured)", *SIZES, "all"]
    names = sorted(name for name in found if name != "all")
    rows = [row_of(name, found[name]) for name in [*names, *(["all"] if names else [])]]
    return [head, ["---"] + ["---:"] * (len(SIZES) + 1), *rows]


def choice_table(results: dict) -> list[list[str]]:
    """The time of `auto` over the least of all peers of Tasuki. Both contain a barrier where the case has one: what
    takes less than that cannot be told from it. Peers of one prediction have one plan, and count as one: they only
    differ by what disturbs the machine."""
    found: dict[str, list[tuple[float, str]]] = {}
    for case in results["cases"]:
        best = min((case["peers"][peer]["median_us"] for peer, _ in forced(case)), default=None)
        if best is None or OWN not in case["peers"]:
            continue
        same = [peer for peer, _ in forced(case) if predicted(case, peer) == predicted(case, OWN)]
        ratio = min(case["peers"][peer]["median_us"] for peer in [OWN, *same]) / best
        memory = "own" if " own " in case["case"] else "shared"
        kind = case["case"].split()[0] if case["group"] == "price" else case["group"]
        for name in (kind, f"all, {memory} memory", "all"):
            found.setdefault(name, []).append((ratio, case["case"]))
    head = ["choice", f"within {NEAR:.0%} of the best", "median", "the farthest"]
    kinds = sorted(name for name in found if not name.startswith("all"))
    rows = []
    for name in [*kinds, *sorted((name for name in found if name.startswith("all")), reverse=True)]:
        ratios = [ratio for ratio, _ in found[name]]
        far, where = max(found[name])
        rows.append([name, share([r <= 1 + NEAR for r in ratios]), f"{median(ratios):.2f}", f"{far:.2f}: {where}"])
    return [head, ["---"] + ["---:"] * 2 + ["---"], *rows]


def table(results: dict, part: str) -> str:
    rows = {"paths": paths_table, "choice": choice_table}[part](results)
    where = ", ".join(f"{key} {value}" for key, value in results["machine"].items() if value)
    rounds = results["settings"]["rounds"]
    less = "with" if part == "choice" else "less"
    note = f"Medians of {rounds} interleaved rounds, {less} the barrier before each start. {where}."
    return "\n".join([*("| " + " | ".join(row) + " |" for row in rows), "", note, ""])


def refreshed(text: str, folder: Path) -> str:
    def replace(match: re.Match) -> str:
        name, _, part = match["name"].partition("/")
        return match[1] + table(json.loads((folder / f"{name}.json").read_text()), part) + match[3]

    return MARKED.sub(replace, text)


if __name__ == "__main__":
    told = json.loads(Path(sys.argv[1]).read_text())
    print(table(told, "paths"), table(told, "choice"), sep="\n")
