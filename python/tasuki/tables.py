"""Tables that the command line and the report share: the same names, and units that fit.

A table is a title, columns and rows. Columns whose names begin with `>` are numbers, aligned to the right.
"""

from __future__ import annotations

from collections.abc import Sequence

Table = tuple[str, list[str], list[list[object]]]

OWN = "tasuki"
UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))
VERDICTS = {None: "not verified (--verify)", True: "every bit as in the serial run", False: "WRONG"}


def duration(seconds: float, digits: int = 3) -> str:
    """`134 ms`, `4.06 µs`: so many digits, in the unit that needs the fewest zeros."""
    if seconds == 0:
        return "0"
    shown = float(f"{seconds:.{digits - 1}e}")  # rounded first: 999.9 ns are 1.00 µs
    name, unit = next((entry for entry in UNITS if abs(shown) >= entry[1] * (1 - 1e-9)), UNITS[-1])
    value = shown / unit
    whole = len(str(int(abs(value))))
    return f"{value:.{max(0, digits - whole)}f} {name}"


def verdict(row: dict) -> str:
    """A word for a row of `tasuki info`: `not here` is what neither works nor is a fault."""
    return "yes" if row["usable"] else "no" if row.get("fault", True) else "not here"


def bench_table(group: str, cases: Sequence[dict]) -> Table:
    """A row a case, a column a peer, Tasuki first."""
    peers = [p for p in dict.fromkeys(p for case in cases for p in case["peers"]) if p != OWN]
    rows: list[list[object]] = []
    for case in cases:
        own = case["peers"].get(OWN)
        row: list[object] = [case["case"], duration(own["median_us"] * 1e-6) if own else None]
        row.append(f"{case['bytes'] / own['median_us'] / 1e3:.2f}" if own and case["bytes"] else None)
        for peer in peers:
            other, ratio = case["peers"].get(peer), case.get("ratios", {}).get(peer)
            times = f" ×{ratio:.2f}" if ratio else ""
            row.append(f"{duration(other['median_us'] * 1e-6)}{times}" if other else None)
        rows.append(row)
    columns = ["case", ">tasuki", ">GB/s", *(f">{peer}" for peer in peers)]
    return f"{group}, medians (× = over tasuki)", columns, rows


def runs_table(title: str, runs: Sequence[dict], leading: Sequence[str] = ()) -> Table:
    """A row a run of an app; `leading` columns, such as its size, come first."""
    columns = [">ranks", "split", "overlap", "paths", ">iterations", ">time/iteration", ">GFLOPS", ">× first"]
    rows = []
    for run in runs:
        first = next(r for r in runs if all(r.get(key) == run.get(key) for key in ("app", "size")))
        share, speed = run.get("communication_share"), run.get("gflops")
        times = first["seconds_per_iteration"] / run["seconds_per_iteration"]
        rows.append(
            [
                *(run.get(key) for key in leading),
                run["ranks"],
                run.get("split"),
                "on" if run["overlap"] else "off",
                ", ".join(run.get("paths_used") or []) or "not needed",
                run.get("iterations"),
                duration(run["seconds_per_iteration"], 4),
                None if speed is None else f"{speed:.3f}",
                f"{times:.2f}",
                None if share is None else f"{share * 100:.1f}",
            ]
        )
    return title, [*leading, *columns, ">comm. %"], rows


def trace_tables(summary: dict) -> list[Table]:
    """Of what `timeline.summary` has added up: the program by rank, the operations, the commands."""
    ranks = [
        [
            r["rank"],
            *(duration(r[key]) for key in ("seconds", "compute", "exposed")),
            f"{100 * r['exposed'] / r['seconds']:.1f}" if r["seconds"] else None,
            duration(r["hidden"]),
        ]
        for r in summary["ranks"]
    ]
    operations = [
        [
            o["operation"],
            o["epochs"],
            ", ".join(o["paths"]),
            *(duration(o[k] * 1e-6) for k in ("exposed_us", "span_us")),
        ]
        for o in summary["operations"]
    ]
    commands = [
        [c["verb"], c["path"], c["count"], duration(c["median_us"] * 1e-6), duration(c["seconds"]), c["bytes"]]
        for c in summary["commands"]
    ]
    return [
        (
            "the program, from its first call to its last",
            [">rank", ">in all", ">compute", ">exposed", ">exposed %", ">hidden"],
            ranks,
        ),
        (
            "operations, medians of an epoch (whole: first start to last end of any rank)",
            ["operation", ">epochs", "paths", ">exposed", ">whole"],
            operations,
        ),
        ("commands of all ranks", ["verb", "path", ">count", ">median", ">in all", ">bytes"], commands),
    ]
