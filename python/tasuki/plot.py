"""Figures from benchmark results: bandwidth and latency against size, strong scaling, overlap. Needs matplotlib."""

from __future__ import annotations

import re
from collections import defaultdict

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from tasuki.results import Results  # noqa: E402
from tasuki.tables import OWN, duration  # noqa: E402

BOUND = "copy_loop"  # a peer that no communication can beat: one process copying in its own memory
COLOURS = {OWN: "#c0392b", BOUND: "#222222"}
OTHERS = ["#2c7fb8", "#41ab5d", "#9e6fc0", "#e08214", "#7f7f7f", "#17a2a2"]
LEADING_SIZE = re.compile(r"^[\d.]+( ?[KMG]?i?B\b)?")
LEAST_POINTS = 3  # of a line against size
FEW = 10  # iterations of a run below which its figure is marked
FEW_WORDS = f"fewer than {FEW} iterations: not a measurement"


def series_of(cases: list[dict]) -> dict[str, list[dict]]:
    """Cases that differ in their leading size only, by what the rest of their names says."""
    found: dict[str, list[dict]] = defaultdict(list)
    for case in cases:
        if case["bytes"] > 0:
            found[LEADING_SIZE.sub("n", case["case"])].append(case)
    return {name: sorted(of, key=lambda c: c["bytes"]) for name, of in found.items() if len(of) >= LEAST_POINTS}


def colours(peers: list[str]) -> dict[str, str]:
    rest = (p for p in sorted(peers) if p not in COLOURS)
    return COLOURS | {peer: OTHERS[i % len(OTHERS)] for i, peer in enumerate(rest)}


def human_bytes(value: float, _position: int = 0) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g} B"


def draw_line(axes, cases: list[dict], peer: str, colour: str, per_second: bool) -> None:
    points = [(c["bytes"], c["peers"][peer]) for c in cases if peer in c["peers"]]
    size = [b for b, _ in points]

    def value(bytes_: int, microseconds: float) -> float:
        return bytes_ / microseconds / 1e3 if per_second else microseconds

    style = {"color": colour, "lw": 2.2 if peer == OWN else 1.3, "zorder": 3 if peer == OWN else 2}
    if peer == BOUND:
        style |= {"ls": "--", "label": "limit: plain loop in one process"}
    axes.plot(size, [value(b, p["median_us"]) for b, p in points], marker="o", ms=3.5, **({"label": peer} | style))
    if peer == OWN:
        edges = [[value(b, p[key]) for b, p in points] for key in ("p10_us", "p90_us")]
        axes.fill_between(size, *edges, color=colour, alpha=0.15, lw=0)


def against_size(results: Results, group: str, per_second: bool) -> Figure | None:
    """Bandwidth or latency of a group, a panel a series. None if no series has enough sizes."""
    series = series_of([c for c in results.cases if c["group"] == group])
    if not series:
        return None
    columns = min(3, len(series))
    rows = -(-len(series) // columns)
    figure, grid = plt.subplots(
        rows, columns, figsize=(4.2 * columns, 3.2 * rows), squeeze=False, sharey=True, layout="constrained"
    )
    peers = list(dict.fromkeys(p for cases in series.values() for c in cases for p in c["peers"]))
    palette = colours(peers)
    limit = sorted(results.limit, key=lambda p: p["bytes"])
    for axes, (name, cases) in zip(grid.flat, series.items()):
        for peer in peers:
            draw_line(axes, cases, peer, palette[peer], per_second)
        inside = [p for p in limit if p["bytes"] <= cases[-1]["bytes"] and p["bytes"] >= cases[0]["bytes"]]
        if inside and BOUND not in peers:
            values = [p["bytes"] / p["us"] / 1e3 if per_second else p["us"] for p in inside]
            axes.plot(
                [p["bytes"] for p in inside], values, "--", color="#222222", lw=1.3, label="limit: one core's copy"
            )
        axes.set(xscale="log", yscale="log", title=f"{group}: {name}")
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(human_bytes)
        axes.tick_params(axis="x", labelsize=7)
        axes.grid(alpha=0.3)
    for axes in list(grid.flat)[len(series) :]:
        axes.set_visible(False)
    for row in grid:
        row[0].set_ylabel("GB/s" if per_second else "µs (median;\nband: 10th to 90th percentile)")
    handles = {label: handle for axes in grid.flat for handle, label in zip(*axes.get_legend_handles_labels())}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    return figure


def problems(runs: list[dict]) -> dict[str, dict[tuple[int, bool], dict]]:
    """By problem, then by ranks and whether it overlaps: the fastest of the longest runs. Left out are runs without
    communication and such on virtual islands, which are slowed down on purpose."""
    found: dict[str, dict[tuple[int, bool], dict]] = defaultdict(dict)
    for run in runs:
        if not run.get("communicate", True) or "island" in run:
            continue
        of = found[f"{run['app']} {run['size']}"]
        key = run["ranks"], run["overlap"]
        if key not in of or worth(run) > worth(of[key]):
            of[key] = run
    return found


def worth(run: dict) -> tuple[int, float]:
    return run.get("iterations", 0), -run["seconds_per_iteration"]


def rank_name(runs: list[dict]) -> str:
    return "GPU" if runs and all(run.get("device") == "gpu" for run in runs) else "rank"


def is_short(run: dict) -> bool:
    """Whether the run's time says little, being of a few iterations, as with --verify."""
    return run.get("iterations", FEW) < FEW


def scaling(results: Results) -> Figure | None:
    """Speed-up over one rank (or the fewest) of the same problem, with the ideal."""
    shown = {name: runs for name, runs in problems(results.runs).items() if len({ranks for ranks, _ in runs}) >= 2}
    if not shown:
        return None
    figure, axes = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
    most, any_few = 1, False
    for i, (name, runs) in enumerate(shown.items()):
        for overlap, style in ((True, "-"), (False, ":")):
            chosen = [runs[key] for key in sorted(runs) if key[1] == overlap]
            if len(chosen) < 2:
                continue
            first = chosen[0]
            speed = [first["seconds_per_iteration"] / r["seconds_per_iteration"] * first["ranks"] for r in chosen]
            label = f"{name}, {'overlapped' if overlap else 'no overlap'}"
            colour = OTHERS[i % 6]
            axes.plot([r["ranks"] for r in chosen], speed, style, marker="o", color=colour, label=label)
            few = [(r["ranks"], s) for r, s in zip(chosen, speed) if is_short(r)]
            if few:
                axes.plot(*zip(*few), "o", color=colour, mfc="white", zorder=4)
                any_few = True
            most = max(most, chosen[-1]["ranks"])
    axes.plot([1, most], [1, most], "--", color="#222222", lw=1, label="ideal")
    if any_few:
        axes.plot([], [], "o", color="#7f7f7f", mfc="white", label=FEW_WORDS)
    cores = {m["cores"] for m in results.machines if "cores" in m}
    if len(cores) == 1 and min(cores) < most:
        axes.axvline(min(cores), color="#999999", lw=1, ls="-.", label=f"cores of the machine ({min(cores)})")
    axes.set(xlabel=f"{rank_name(results.runs)}s", ylabel="speed-up", title="strong scaling")
    axes.set_xticks(sorted({ranks for runs in shown.values() for ranks, _ in runs}))
    axes.legend(fontsize=8, frameon=False)
    axes.grid(alpha=0.3)
    return figure


def overlap(results: Results) -> Figure | None:
    """Time of an iteration with and without overlap, side by side."""
    pairs = []
    for name, runs in problems(results.runs).items():
        for ranks in sorted({ranks for ranks, _ in runs}):
            if (ranks, False) in runs and (ranks, True) in runs:
                title = f"{name}\n{ranks} {rank_name(list(runs.values()))}{'s' * (ranks > 1)}"
                pairs.append((title, runs[ranks, False], runs[ranks, True]))
    if not pairs:
        return None
    figure, axes = plt.subplots(figsize=(1.6 + 1.3 * len(pairs), 3.6), layout="constrained")
    any_few = False
    for side, which, label, colour in ((-0.2, 1, "no overlap", "#7f7f7f"), (0.2, 2, "overlap", COLOURS[OWN])):
        relative = [pair[which]["seconds_per_iteration"] / pair[1]["seconds_per_iteration"] for pair in pairs]
        bars = axes.bar([i + side for i in range(len(pairs))], relative, 0.38, label=label, color=colour)
        for bar, pair in zip(bars, pairs):
            if is_short(pair[which]):
                bar.set(hatch="///", fill=False, edgecolor=colour)
                any_few = True
        axes.bar_label(bars, [duration(pair[which]["seconds_per_iteration"]) for pair in pairs], fontsize=7)
    if any_few:
        axes.bar([0], [0], fill=False, hatch="///", edgecolor="#7f7f7f", label=FEW_WORDS)
    axes.set_xticks(range(len(pairs)), [pair[0] for pair in pairs], fontsize=8)
    axes.set(ylabel="time of an iteration\n(no overlap = 1)", title="overlap")
    figure.legend(fontsize=8, frameon=False, loc="outside upper right", ncols=2 + any_few)
    return figure


def figures(results: Results) -> dict[str, Figure]:
    """All figures that the results are enough for, by name."""
    found: dict[str, Figure | None] = {}
    for group in dict.fromkeys(c["group"] for c in results.cases):
        found[f"bandwidth-{group}"] = against_size(results, group, per_second=True)
        found[f"latency-{group}"] = against_size(results, group, per_second=False)
    found["scaling"] = scaling(results)
    found["overlap"] = overlap(results)
    return {name: figure for name, figure in found.items() if figure is not None}


def save(figure: Figure, target: object, kind: str) -> None:
    """The same input gives the same file."""
    with matplotlib.rc_context({"svg.hashsalt": "tasuki", "svg.fonttype": "none"}):
        figure.savefig(target, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    plt.close(figure)
