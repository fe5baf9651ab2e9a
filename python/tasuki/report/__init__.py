"""Makes one self-contained HTML page of a folder: machine, topology, plans, timeline, benchmarks."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from tasuki import checked, provenance, tables, timeline, where_time_went
from tasuki.report import drawing
from tasuki.results import Results

MOST_OPERATIONS = 12
MOST_SPANS = 30000  # of the timeline: the last ones
CALL_COLOURS = {"compute": "#9fb8c8", "start": "#d98a80", "wait": "#c0392b", "test": "#e6b0aa"}


class Material:
    """What a folder holds. Every file is looked at; what is none of Tasuki's is named in `ignored`, what is damaged in
    `left_out`, with the reason. A trace is good if the files of all its ranks are."""

    def __init__(self, folder: Path) -> None:
        self.results, self.info, self.profiles, self.ignored = Results(), None, {}, []
        self.traces: list[timeline.RankTrace] = []
        self.left_out: dict[str, str] = {}
        self.figures: dict[str, str] = {}  # SVG in base64
        try:
            if any(folder.glob("rank-*.json")):
                self.traces = timeline.load(folder)
        except checked.FileError as error:
            self.left_out["the trace (rank-*.json)"] = str(error)
        for file in sorted(folder.glob("*.json")):
            if file.name.startswith("rank-") or file.name in ("timeline.json", "summary.json"):
                continue
            try:
                self.add(file)
            except checked.FileError as error:
                self.left_out[file.name] = str(error)

    def add(self, file: Path) -> None:
        """Raises FileError saying what is wrong with the file; then nothing of it is taken."""
        data = checked.read_json(file)
        keys = set(data) if isinstance(data, dict) else set()
        if {"usable", "topology"} <= keys:
            self.info = sound_info(data, file)
        elif {"machine", "version", "paths"} <= keys:
            self.profiles[file.name] = sound_profile(data, file)
        elif {"cases", "runs", "limit"} & keys:
            self.results.add(data, file)
        else:
            self.ignored.append(file.name)

    def empty(self) -> bool:
        return not (self.traces or self.info or self.profiles or self.results.cases or self.results.runs)


def sound_info(data: dict, file: Path) -> dict:
    checked.need_all(data, {"usable": checked.LIST, "topology": checked.LIST}, file)
    for i, row in enumerate(data["usable"]):
        kinds = {"what": checked.TEXT, "usable": checked.SWITCH, "text": checked.TEXT}
        checked.need_all(row, kinds, file, f"usable[{i}]")
    for i, line in enumerate(data["topology"]):
        checked.need(line, checked.TEXT, file, f"topology[{i}]")
    return data


def sound_profile(data: dict, file: Path) -> dict:
    checked.need_all(data, {"paths": checked.OBJECT}, file)
    for path, constants in data["paths"].items():
        checked.need_all(
            constants, dict.fromkeys(("latency", "bandwidth", "per_run"), checked.NUMBER), file, f"paths.{path}"
        )
        checked.need(constants.get("mutual_latency", 0), checked.NUMBER, file, f"paths.{path}.mutual_latency")
    provenance.sound(data, file)
    return data


def table(columns: list[str], rows: Iterable[Iterable[object]]) -> str:
    """Columns whose names begin with `>` are aligned to the right."""
    kinds = [' class="number"' if name.startswith(">") else "" for name in columns]
    head = "".join(f"<th{kind}>{escape(name.lstrip('>'))}</th>" for kind, name in zip(kinds, columns))

    def cell(kind: str, value: object) -> str:
        words = re.sub("`([^`]+)`", r"<code>\1</code>", escape("–" if value is None else str(value)))
        return f"<td{kind}>{words}</td>"

    body = "".join(f"<tr>{''.join(map(cell, kinds, row))}</tr>" for row in rows)
    return f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def titled(title: str, columns: list[str], rows: Iterable[Iterable[object]]) -> str:
    return f"<h2>{escape(title)}</h2>{table(columns, rows)}"


def key(colours: dict[str, str]) -> str:
    items = "".join(f"<span><i style=background:{c}></i>{escape(n or 'no path')}</span>" for n, c in colours.items())
    return f'<p class="key">{items}</p>'


def machine_section(material: Material) -> str:
    parts = []
    if material.left_out:
        parts.append(titled("left out", ["what", "why"], material.left_out.items()))
    if material.info:
        rows = [[r["what"], tables.verdict(r), r["text"]] for r in material.info["usable"]]
        parts += [table(["what", "usable", ""], rows), f"<pre>{escape(chr(10).join(material.info['topology']))}</pre>"]
    for machine in material.results.machines:
        parts.append(titled("benchmarks ran on", ["what", "value"], machine.items()))
    for name, profile in material.profiles.items():
        rows = [
            [
                path,
                tables.duration(c["latency"]),
                tables.duration(c["mutual_latency"]) if "mutual_latency" in c else None,
                f"{c['bandwidth'] / 1e9:.2f}",
                tables.duration(c["per_run"]),
            ]
            for path, c in profile["paths"].items()
        ]
        columns = ["path", ">latency", ">both ways", ">GB/s", ">a run"]
        parts.append(titled(f"machine profile {name}", columns, rows))
        parts.append(f"<p>{escape(provenance.told(profile))}</p>")
    return "".join(parts)


def cores_of(info: dict | None) -> dict[str, int]:
    """Cores of the host that `tasuki info` ran on, by its name; empty: not known."""
    if not info:
        return {}
    lines = (re.match(r"rank \d+: host \d+ \((.+)\), island ", line) for line in info["topology"])
    hosts = {line[1] for line in lines if line}
    cores = next((row["text"] for row in info["usable"] if row["what"] == "cores"), "")
    # The number is that of the process that ran `tasuki info`: with several hosts it is not said of which.
    return dict.fromkeys(hosts, int(cores)) if len(hosts) == 1 and re.fullmatch("[1-9][0-9]{0,5}", cores) else {}


def time_section(material: Material) -> str:
    if not material.traces:
        return ""
    rows = where_time_went.rows_of(material.traces, cores_of(material.info))
    ranks = [timeline.rank_summary(trace) for trace in material.traces]
    run = max((rank["seconds"] for rank in ranks), default=0)
    exposed = sum(rank["exposed"] for rank in ranks) / max(1, len(ranks))
    if not run:
        return '<p class="remark">Nothing was recorded.</p>'
    parts = [
        f"<p>The run took {escape(tables.duration(run))} between the first and the last call. Ranks spent "
        f"{escape(tables.duration(exposed))} of it ({exposed / run:.0%}) inside start, test and wait, in the mean; the "
        "rest they computed.</p>"
    ]
    widest = max((row.share for row in rows), default=0) or 1
    bars = "".join(
        f"<tr><th>{escape(row.operation)}</th><td><i style=width:{100 * row.share / widest:.1f}%></i></td>"
        f'<td class="number">{row.share:.1%}</td></tr>'
        for row in rows[:MOST_OPERATIONS]
    )
    parts.append(f'<div class="table"><table class="bars"><tbody>{bars}</tbody></table></div>')

    def whom(row: where_time_went.Row) -> str | None:
        told = [f"rank {a} for rank {b}, {tables.duration(s / max(1, row.epochs))}" for a, b, s in row.for_whom[:2]]
        return "; ".join(told) or None

    times = [">epochs", ">held up", ">hidden", ">an epoch", ">predicted"]
    columns = ["operation", *times, "over", "longest waits, an epoch", "to try"]
    parts.append(
        titled(
            "by operation",
            columns,
            [
                [
                    row.operation,
                    row.epochs,
                    tables.duration(row.exposed),
                    tables.duration(row.hidden),
                    tables.duration(row.epoch_us / 1e6),
                    tables.duration(row.predicted_us / 1e6) if row.predicted_us else None,
                    ", ".join(row.paths) or None,
                    whom(row),
                    row.advice or None,
                ]
                for row in rows
            ],
        )
    )
    parts.append(
        '<p class="remark">Held up: inside the calls of an operation, on the mean rank. Hidden: under way while the '
        "program did something else. An epoch: from start to the last command on a rank, in the median; its waits for "
        "ranks that came later are in it, and not in what was predicted.</p>"
    )
    return "".join(parts)


def topology_section(material: Material) -> str:
    moved = drawing.links(material.traces)
    if not moved:
        return ""
    rows = [[f"{a} – {b}", path, count] for (a, b, path), count in sorted(moved.items())]
    return (
        key(drawing.path_colours(material.traces))
        + f'<div class="drawing fit">{drawing.topology(material.traces)}</div>'
        + table(["ranks", "path", ">bytes in an epoch of every operation"], rows)
    )


def plan_section(material: Material) -> str:
    traces = material.traces
    if not traces:
        return ""
    colours = drawing.path_colours(traces)
    legend = (
        "Filled: moves bytes. Outlined: waits or signals. Arrows go from what must end first; waits without one are "
        "for an earlier epoch. Point at a command for more."
    )
    parts = [key(colours), f'<p class="remark">{legend}</p>']
    names = list(dict.fromkeys(plan["operation"] for plan in traces[0].plans))
    for name in names[:MOST_OPERATIONS]:
        plans = {t.rank: next(p for p in t.plans if p["operation"] == name) for t in traces
                 if any(p["operation"] == name for p in t.plans)}  # fmt: skip
        picture, left_out = drawing.plan_graph(plans, colours)
        same = sum(plan["operation"] == name for plan in traces[0].plans)
        remark = "; ".join(filter(None, [f"the first of {same} of this name" if same > 1 else "", left_out]))
        parts.append(f'<h2>{escape(name)}</h2><p class="remark">{remark}</p><div class="drawing">{picture}</div>')
    if len(names) > MOST_OPERATIONS:
        parts.append(f'<p class="remark">{len(names) - MOST_OPERATIONS} more operations are not drawn.</p>')
    return "".join(parts)


def timeline_section(material: Material) -> str:
    if not material.traces:
        return ""
    summary = tables.trace_tables(timeline.summary(material.traces))
    return (
        key(CALL_COLOURS | drawing.path_colours(material.traces))
        + '<p class="remark">Drag to move. Zoom with the buttons, with two fingers, with Ctrl and the wheel, or with '
        "the wheel alone once you have clicked the timeline (Esc: no more). Point at a bar for its length.</p>"
        '<p class="zoom"><button data-zoom="in">+</button><button data-zoom="out">−</button>'
        '<button data-zoom="all">whole run</button></p>'
        '<canvas tabindex="0" role="img" aria-label="what each rank did when"></canvas>'
        + "".join(titled(*each) for each in summary)
    )


def timeline_rows(traces: list[timeline.RankTrace]) -> list[dict]:
    """The last spans of every rank: a row for the program, one for each lane."""
    colours = drawing.path_colours(traces)
    events = timeline.chrome(traces)["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    order = {(e["pid"], e["tid"]): e["args"]["sort_index"] for e in events if e["name"] == "thread_sort_index"}
    spans = sorted((e for e in events if e["ph"] == "X"), key=lambda e: e["ts"])[-MOST_SPANS:]
    rows = {where: {"label": f"{where[0]}: {names[where]}", "rank": where[0], "spans": []} for where in names}
    for e in spans:
        colour = colours.get(e["args"].get("path")) or CALL_COLOURS[e["name"].split()[0]]
        if e["args"].get("verb") == "wait":
            colour += "55"  # pale: nothing moves
        row = rows[e["pid"], e["tid"]]["spans"]
        row.append([round(e["ts"], 3), round(e["ts"] + e["dur"], 3), colour, e["name"]])
    return [rows[where] for where in sorted(rows, key=lambda w: (w[0], order[w])) if rows[where]["spans"]]


def draw_figures(material: Material) -> None:
    """Figures of results, which need matplotlib; without it they are named among what is left out."""
    if not (material.results.cases or material.results.runs):
        return
    try:
        from tasuki import plot
    except ImportError as error:
        material.left_out["figures of results"] = f"they need matplotlib ({error}); pip install 'tasuki[plot]'"
        return
    for name, figure in plot.figures(material.results).items():
        image = io.BytesIO()
        plot.save(figure, image, "svg")
        material.figures[name] = base64.b64encode(image.getvalue()).decode()


def benchmark_section(material: Material) -> str:
    parts = []
    for name, data in material.figures.items():
        picture = f'<img alt="{escape(name)}" src="data:image/svg+xml;base64,{data}">'
        parts.append(f'<h2>{escape(name)}</h2><div class="drawing">{picture}</div>')
    for group in dict.fromkeys(c["group"] for c in material.results.cases):
        parts.append(titled(*tables.bench_table(group, [c for c in material.results.cases if c["group"] == group])))
    if material.results.runs:
        parts.append(titled(*tables.runs_table("applications", material.results.runs, ["app", "size"])))
    return "".join(parts)


SECTIONS = {
    "time": (time_section, "tasuki trace -o DIR ..."),
    "machine": (machine_section, "tasuki info --json > DIR/info.json"),
    "topology": (topology_section, "tasuki trace -o DIR ..."),
    "plan": (plan_section, "tasuki trace -o DIR ..."),
    "timeline": (timeline_section, "tasuki trace -o DIR ..."),
    "benchmarks": (benchmark_section, "tasuki bench --output DIR/bench.json"),
}


def build(folder: Path) -> tuple[str, list[str], dict[str, str]]:
    """The page, the names of the files that it has no use for, and those that are damaged with what is wrong with them.
    Raises FileError if nothing is left."""
    material = Material(folder)
    if material.empty():
        damaged = f"; left out is what is damaged: {'; '.join(material.left_out.values())}" if material.left_out else ""
        raise checked.FileError(f"{folder} has nothing to report on (see tasuki report --help){damaged}")
    draw_figures(material)
    tabs, sections = "", ""
    for name, (make, how) in SECTIONS.items():
        content = make(material)
        if not content and name == "topology":
            continue  # no rank sends to another, or nothing was recorded, which other pages say
        content = content or f'<p class="remark">Nothing here. It is filled by: {escape(how)}</p>'
        # No id is a tab's name: a browser that is given `#plan` scrolls to an element of that id, below the sticky bar.
        label = "where time went" if name == "time" else name
        tabs += (
            f'<button role="tab" data-name="{name}" aria-controls="tab-{name}" aria-selected="false">{label}</button>'
        )
        sections += f'<section id="tab-{name}" role="tabpanel" hidden>{content}</section>\n'
    view = where_time_went.steady(material.traces)
    rows = json.dumps({"rows": timeline_rows(material.traces), "view": view}, separators=(",", ":"))
    rows = rows.replace("<", "\\u003c")  # in a script neither `</script>` nor `<!--` may stand
    own = files("tasuki.report")
    page = Template((own / "page.html").read_text(encoding="utf-8")).substitute(
        title=escape(f"Tasuki: {folder.resolve().name}"),
        css=(own / "page.css").read_text(encoding="utf-8"),
        script=(own / "page.js").read_text(encoding="utf-8"),
        tabs=tabs,
        sections=sections,
        timeline=rows,
    )
    return page, material.ignored, material.left_out
