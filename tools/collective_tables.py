"""Tables and plots of the collectives on hosts beside MPI's, and the plot of those on GPUs.

From bench/results/collectives-openmpi.json and -mpich.json: `<!-- collectives:openmpi -->` is all of a file in one
table, `<!-- collectives:bars -->` what was aimed at, `<!-- collectives:calls -->` what making and starting take.
`<!-- /collectives -->` ends each. The plots are docs/figures/collectives-*.svg.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path

import torch_collectives

MARKED = re.compile(r"(<!-- collectives:(?P<name>[a-z]+) -->\n).*?(<!-- /collectives -->)", re.S)
OWN = "tasuki"
MPIS = {"openmpi": "Open MPI", "mpich": "MPICH"}
FORMS = {"mpi_coll": "blocking", "mpi_bcast": "blocking", "mpi_icoll": "nonblocking", "mpi_ibcast": "nonblocking"}
FORMS |= {"mpi_coll_init": "persistent", "mpi_bcast_init": "persistent"}
AFTER = " after barrier"
SHOWN = (4 << 10, 32 << 10, 1 << 20, 16 << 20)  # bytes, beside the smallest size
Number = Callable[[float], str]


def load(folder: Path, name: str) -> dict | None:
    file = folder / f"collectives-{name}.json"
    return json.loads(file.read_text()) if file.exists() else None


def kind_of(case: dict) -> str:
    return "broadcast" if case["group"] == "broadcast" else case["case"].partition(" ")[0]


def size_of(case: dict) -> str:
    size = re.search(r"\d+ (?:B|[KM]iB)", case["case"])
    return size[0] if size else ""


def bytes_named(case: dict) -> int:
    """Of the whole buffer; `bytes` are those that a rank gets."""
    number, unit = size_of(case).split()
    return int(number) << {"B": 0, "KiB": 10, "MiB": 20}[unit]


def timed(results: dict) -> Iterator[dict]:
    """Whole calls, not `start` alone."""
    return (c for c in results["cases"] if not c["case"].startswith(("start of", "overlap of")))


def by_kind(results: dict, after: bool) -> dict[str, list[dict]]:
    found: dict[str, list[dict]] = {}
    for case in timed(results):
        if case["case"].endswith(AFTER) == after:
            found.setdefault(kind_of(case), []).append(case)
    return {kind: sorted(cases, key=lambda case: case["bytes"]) for kind, cases in found.items()}


def us(case: dict, peer: str) -> float:
    return case["peers"][peer]["median_us"]


def form(case: dict, wanted: str) -> float:
    return next(us(case, peer) for peer, name in FORMS.items() if name == wanted and peer in case["peers"])


def best(case: dict) -> tuple[float, str]:
    """MPI's fastest form."""
    return min((us(case, peer), name) for peer, name in FORMS.items() if peer in case["peers"])


def where(results: dict) -> str:
    return ", ".join(f"{key} {value}" for key, value in results["machine"].items() if value)


def whole_table(results: dict, number: Number) -> str:
    rows = [["collective", "size", f"{OWN}, µs", "MPI's best form, µs", f"{OWN} after a barrier, µs"]]
    rows[0] += ["MPI's best form, µs", "the barrier, µs", "bound, µs"]
    rows.append(["---"] * 2 + ["---:"] * 6)
    late = by_kind(results, True)
    for kind, cases in by_kind(results, False).items():
        for i, case in enumerate(cases):
            if i and case["bytes"] not in SHOWN:
                continue
            row = [kind, size_of(case)]
            after = next(c for c in late[kind] if c["bytes"] == case["bytes"])
            for one in (case, after):
                time, name = best(one)
                row += [number(us(one, OWN)), f"{number(time)} {name} **×{number(time / us(one, OWN))}**"]
            bound = case.get("bound_us")
            rows.append([*row, number(after["barrier_us"]), number(bound) if bound else "–"])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    note = f"Medians; × is MPI's time over {OWN}'s. The times after a barrier contain it. {where(results)}."
    return "\n".join([*lines, "", note, ""])


def worst(cases: dict[str, list[dict]], kinds: tuple[str, ...], of: Callable[[dict], float], least: int) -> str:
    """Of each kind the smallest ratio, and at which size that is."""
    texts = []
    for kind in kinds:
        # From a size on: all of them; else the smallest.
        chosen = [case for case in cases[kind] if case["bytes"] >= least] if least else cases[kind][:1]
        ratio, size = min((of(case), size_of(case)) for case in chosen)
        texts.append(f"{kind} {ratio:.2f}" + (f" ({size})" if least else ""))
    return ", ".join(texts)


def bars_table(folder: Path) -> str:
    small, large = ("broadcast", "allreduce", "barrier"), ("broadcast", "allreduce", "allgather", "alltoall")

    def blocking(case: dict) -> float:
        return form(case, "blocking") / us(case, OWN)

    def forms(case: dict) -> float:
        return best(case)[0] / us(case, OWN)

    def forms_alone(case: dict) -> float:
        return (best(case)[0] - case["barrier_us"]) / max(us(case, OWN) - case["barrier_us"], 0.01)

    bars = [
        ("8 B after a barrier: the blocking call takes at least as long", True, small, blocking, 0, 1.0),
        ("8 B back to back: it takes at least half as long", False, small, blocking, 0, 0.5),
        ("from 4 KiB, back to back: MPI's best form takes at least 1.5 times as long", False, large, forms, 4096, 1.5),
        ("from 4 KiB, after a barrier, which both times contain: likewise", True, large, forms, 4096, 1.5),
        ("the same less the time of the barrier", True, large, forms_alone, 4096, 1.5),
    ]
    rows = [["aim", "MPI", f"MPI's time over {OWN}'s, where it is smallest", "met"], ["---"] * 4]
    for text, after, kinds, ratio, least, bar in bars:
        for name, mpi in MPIS.items():
            results = load(folder, name)
            if results is None:
                continue
            said = worst(by_kind(results, after), kinds, ratio, least)
            met = min(float(number) for number in re.findall(r" (\d+\.\d+)", said)) >= bar
            rows.append([text, mpi, said, "yes" if met else "**no**"])
    return "\n".join([*("| " + " | ".join(row) + " |" for row in rows), ""])


def calls_table(folder: Path, number: Number) -> str:
    """A row a collective and MPI: making it at three sizes, and `start` alone."""
    rows = [["collective", "MPI", "making it, smallest size, µs", "4 KiB", "1 MiB", f"start, {OWN}, µs"]]
    rows[0] += ["start, MPI nonblocking", "start, MPI persistent"]
    rows.append(["---"] * 2 + ["---:"] * 6)
    for name, mpi in MPIS.items():
        results = load(folder, name)
        if results is None:
            continue
        starts = {c["case"].split()[2]: c for c in results["cases"] if c["case"].startswith("start of")}
        for kind, cases in by_kind(results, False).items():
            sizes = {case["bytes"]: case for case in cases}
            chosen = [cases[0], sizes.get(4 << 10), sizes.get(1 << 20)]
            made = [number(one["peers"][OWN]["init_us"]) if one else "–" for one in chosen]
            start = starts.get(kind)
            times = [us(start, OWN), form(start, "nonblocking"), form(start, "persistent")] if start else []
            rows.append([kind, mpi, *made, *(map(number, times) if times else ["–"] * 3)])
    return "\n".join([*("| " + " | ".join(row) + " |" for row in rows), ""])


def refreshed(text: str, folder: Path, number: Number) -> str:
    def replace(match: re.Match) -> str:
        if match["name"] == "bars":
            return match[1] + bars_table(folder) + match[3]
        if match["name"] == "calls":
            return match[1] + calls_table(folder, number) + match[3]
        results = load(folder, match["name"])
        return match[1] + (whole_table(results, number) if results else "") + match[3]

    return MARKED.sub(replace, text)


PANEL, GAP, LEFT, TOP, COLUMNS = (250, 170), (44, 46), 58, 58, 3  # pixels
COLOURS = ["#c0392b", "#2c7fb8", "#41ab5d", "#9e6fc0"]
BOUND = "#222"


def panel(title: str, lines: dict[str, list[tuple[int, float]]], bound: list[tuple[int, float]], x: float, y: float,
          colours: dict[str, str]) -> list[str]:  # fmt: skip
    """Latency over size, both logarithmic; `bound` is dashed."""
    width, height = PANEL
    points = [point for line in [*lines.values(), bound] for point in line]
    low, high = math.log2(min(p[0] for p in points)), math.log2(max(p[0] for p in points))
    bottom = math.floor(math.log10(min(p[1] for p in points)))
    top = math.ceil(math.log10(max(p[1] for p in points)))

    def at(point: tuple[int, float]) -> tuple[float, float]:
        across = (math.log2(point[0]) - low) / (high - low)
        return x + across * width, y + height - (math.log10(point[1]) - bottom) / (top - bottom) * height

    parts = [f'<text x="{x}" y="{y - 7}" font-weight="bold">{escape(title)}</text>']
    for power in range(bottom, top + 1):
        line = at((2**low, 10.0**power))[1]
        parts.append(f'<path d="M{x},{line:.1f} h{width}" stroke="#e2e2e2"/>')
        parts.append(f'<text x="{x - 5}" y="{line + 4:.1f}" text-anchor="end" fill="#555">{10.0**power:g}</text>')
    for exponent, name in ((3, "8 B"), (6, "64 B"), (12, "4 KiB"), (16, "64 KiB"), (20, "1 MiB"), (24, "16 MiB"),
                           (28, "256 MiB")):  # fmt: skip
        if low <= exponent <= high:
            here = x + (exponent - low) / (high - low) * width
            parts.append(f'<path d="M{here:.1f},{y} v{height}" stroke="#eee"/>')
            if exponent != 6 or low > 3:
                parts.append(
                    f'<text x="{here:.1f}" y="{y + height + 14}" text-anchor="middle" fill="#555">{name}</text>'
                )

    def path(line: list[tuple[int, float]], look: str) -> str:
        return '<path d="M' + " L".join("{:.1f},{:.1f}".format(*at(p)) for p in line) + f'" fill="none" {look}/>'

    if bound:
        parts.append(path(bound, f'stroke="{BOUND}" stroke-width="1.4" stroke-dasharray="5 3"'))
    for name, line in reversed(lines.items()):
        parts.append(path(line, f'stroke="{colours[name]}" stroke-width="{2.4 if name.startswith(OWN) else 1.4}"'))
        parts += [
            '<circle cx="{:.1f}" cy="{:.1f}" r="2.4" fill="{}"><title>{}</title></circle>'.format(
                *at(p), colours[name], escape(f"{name}: {p[1]:.3g} µs")
            )
            for p in line
        ]
    return parts


def plot(title: str, panels: dict[str, tuple[dict, list]], bound_name: str) -> str:
    """SVG: a panel a collective."""
    names = list(dict.fromkeys(name for lines, _ in panels.values() for name in lines))
    colours = dict(zip(names, COLOURS))
    rows = -(-len(panels) // COLUMNS)
    width = LEFT + COLUMNS * (PANEL[0] + GAP[0])
    height = TOP + 22 + rows * (PANEL[1] + GAP[1])
    parts = [f'<rect width="{width}" height="{height}" fill="#fff"/>']
    parts.append(f'<text x="{LEFT}" y="20" font-weight="bold" font-size="13">{escape(title)}</text>')
    at = float(LEFT)
    for name in [*names, bound_name]:
        look = f'stroke="{colours[name]}" stroke-width="2.4"' if name in colours else (
            f'stroke="{BOUND}" stroke-width="1.4" stroke-dasharray="5 3"'
        )  # fmt: skip
        parts.append(f'<path d="M{at:.0f},38 h22" {look}/><text x="{at + 27:.0f}" y="42">{escape(name)}</text>')
        at += 50 + 6.6 * len(name)
    for i, (kind, (lines, bound)) in enumerate(panels.items()):
        x, y = LEFT + i % COLUMNS * (PANEL[0] + GAP[0]), TOP + 22 + i // COLUMNS * (PANEL[1] + GAP[1])
        parts += panel(f"{kind}, µs", lines, bound, x, y, colours)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
    label = f'role="img" aria-label="{escape(title)}" '
    view = f'viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif" font-size="11">'
    return head + label + view + "\n" + "\n".join(parts) + "\n</svg>\n"


def host_plot(results: dict, mpi: str) -> str:
    panels = {}
    for kind, cases in by_kind(results, False).items():
        if len(cases) < 3:
            continue
        lines = {OWN: [(c["bytes"], us(c, OWN)) for c in cases]}
        for name in ("blocking", "nonblocking", "persistent"):
            lines[f"{mpi}, {name}"] = [(c["bytes"], form(c, name)) for c in cases]
        panels[kind] = lines, [(c["bytes"], c["bound_us"]) for c in cases if c.get("bound_us")]
    title = f"Collectives of 2 ranks on {results['machine']['cpu']}, back to back: time over size"
    return plot(title, panels, "bound, by the prices of paths")


def gpu_plot(results: dict) -> str:
    shown = {f"{OWN} graph": f"{OWN}, graph", "nccl graph": "NCCL, graph"}
    shown |= {"nccl symmetric graph": "NCCL, symmetric, graph", "torch graph": "PyTorch, symmetric, graph"}
    found: dict[str, list[dict]] = {}
    for case in results["cases"]:
        if case["group"] == "gpu-collectives":
            found.setdefault(kind_of(case), []).append(torch_collectives.folded(case))
    panels = {}
    for kind, cases in found.items():
        lines = {name: [(bytes_named(c), us(c, p)) for c in cases if p in c["peers"]] for p, name in shown.items()}
        lines = {name: line for name, line in lines.items() if line}
        panels[kind] = lines, [(bytes_named(c), us(c, "bound: copies graph")) for c in cases]
    machine = results["machine"]
    title = f"Collectives on {machine['gpus']} × {machine['gpu']}, replayed as graphs: time over size"
    return plot(title, panels, "bound: the bytes by copy engines")


def plots(folder: Path) -> dict[str, str]:
    """By the name of the figure; of the files that there are."""
    found = {}
    for name, mpi in MPIS.items():
        if results := load(folder, name):
            found[f"collectives-{name}.svg"] = host_plot(results, mpi)
    if results := load(folder, "gpu-2"):
        found["collectives-gpu-2.svg"] = gpu_plot(results)
    return found
