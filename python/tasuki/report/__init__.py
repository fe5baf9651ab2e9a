"""Makes one self-contained HTML page of a folder: machine, topology, plans, timeline, benchmarks."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from tasuki import checked, timeline
from tasuki.report import drawing

MOST_OPERATIONS = 12
MOST_SPANS = 30000  # of the timeline: the last ones
CALL_COLOURS = {"compute": "#9fb8c8", "start": "#d98a80", "wait": "#c0392b", "test": "#e6b0aa"}


class Material:
    """What a folder holds. Every file is looked at; what is none of Tasuki's is named in `ignored`, what is damaged in
    `left_out`, with the reason. A trace is good if the files of all its ranks are."""

    def __init__(self, folder: Path) -> None:
        from tasuki.plot import Results

        self.results, self.info, self.profiles, self.ignored = Results(), None, {}, []
        self.traces: list[timeline.RankTrace] = []
        self.left_out: dict[str, str] = {}
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
    return data


def table(columns: list[str], rows: Iterable[Iterable[object]]) -> str:
    def cell(value: object) -> str:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return f'<td class="number">{value if isinstance(value, int) else f"{value:.4g}"}</td>'
        return f"<td>{escape('–' if value is None else str(value))}</td>"

    head = "".join(f"<th>{escape(c)}</th>" for c in columns)
    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def key(colours: dict[str, str]) -> str:
    items = "".join(f"<span><i style=background:{c}></i>{escape(n or 'no path')}</span>" for n, c in colours.items())
    return f'<p class="key">{items}</p>'


def machine_section(material: Material) -> str:
    parts = []
    if material.left_out:
        parts += ["<h2>left out, being damaged</h2>", table(["what", "why"], material.left_out.items())]
    if material.info:
        rows = [[r["what"], "yes" if r["usable"] else "no", r["text"]] for r in material.info["usable"]]
        parts += [table(["what", "usable", ""], rows), f"<pre>{escape(chr(10).join(material.info['topology']))}</pre>"]
    for machine in material.results.machines:
        parts += ["<h2>benchmarks ran on</h2>", table(["what", "value"], machine.items())]
    for name, profile in material.profiles.items():
        rows = [
            [
                path,
                c["latency"] * 1e6,
                c["mutual_latency"] * 1e6 if "mutual_latency" in c else None,
                c["bandwidth"] / 1e9,
                c["per_run"] * 1e9,
            ]
            for path, c in profile["paths"].items()
        ]
        columns = ["path", "latency µs", "both ways µs", "GB/s", "ns a run"]
        parts += [f"<h2>machine profile {escape(name)}</h2>", table(columns, rows)]
    return "".join(parts)


def topology_section(material: Material) -> str:
    if not material.traces:
        return ""
    moved = drawing.links(material.traces)
    rows = [[f"{a} – {b}", path, count] for (a, b, path), count in sorted(moved.items())]
    return (
        key(drawing.path_colours(material.traces))
        + f'<div class="drawing">{drawing.topology(material.traces)}</div>'
        + table(["ranks", "path", "bytes in an epoch of every operation"], rows)
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
    data = timeline.summary(material.traces)
    ranks = [[r["rank"], *(r[k] * 1e3 for k in ("seconds", "compute", "exposed", "hidden"))] for r in data["ranks"]]
    operations = [[o["operation"], o["epochs"], ", ".join(o["paths"]), o["exposed_us"], o["span_us"]]
                  for o in data["operations"]]  # fmt: skip
    commands = [[c["verb"], c["path"], c["count"], c["median_us"], c["seconds"] * 1e3] for c in data["commands"]]
    return (
        key(CALL_COLOURS | drawing.path_colours(material.traces))
        + '<p class="remark">Wheel: zoom. Drag: move. Point at a bar for its length.</p><canvas></canvas>'
        + "<h2>ranks</h2>" + table(["rank", "ms in all", "compute", "exposed", "hidden"], ranks)
        + "<h2>operations, medians of an epoch</h2>"
        + table(["operation", "epochs", "paths", "exposed µs", "first start to last end µs"], operations)
        + "<h2>commands of all ranks</h2>" + table(["verb", "path", "count", "median µs", "ms"], commands)
    )  # fmt: skip


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


def benchmark_section(material: Material) -> str:
    from tasuki import plot

    parts = []
    for name, figure in plot.figures(material.results).items():
        image = io.BytesIO()
        plot.save(figure, image, "svg")
        data = base64.b64encode(image.getvalue()).decode()
        picture = f'<img alt="{escape(name)}" src="data:image/svg+xml;base64,{data}">'
        parts.append(f'<h2>{escape(name)}</h2><div class="drawing">{picture}</div>')
    for group in dict.fromkeys(c["group"] for c in material.results.cases):
        cases = [c for c in material.results.cases if c["group"] == group]
        peers = list(dict.fromkeys(p for c in cases for p in c["peers"]))
        rows = [[c["case"], c["bytes"], *(c["peers"].get(p, {}).get("median_us") for p in peers)] for c in cases]
        parts.append(f"<h2>{escape(group)}, median µs</h2>" + table(["case", "bytes", *peers], rows))
    if material.results.runs:
        shown = ["app", "size", "ranks", "split", "overlap", "iterations", "gflops", "communication_share", "verified"]
        rows = [[run.get(k) for k in shown] for run in material.results.runs]
        parts.append("<h2>applications</h2>" + table(shown, rows))
    return "".join(parts)


SECTIONS = {
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
    tabs, sections = "", ""
    for name, (make, how) in SECTIONS.items():
        content = make(material) or f'<p class="remark">Nothing here. It is filled by: {escape(how)}</p>'
        tabs += f'<button role="tab" data-name="{name}" aria-selected="false">{name}</button>'
        sections += f'<section id="{name}" role="tabpanel" hidden>{content}</section>\n'
    rows = json.dumps(timeline_rows(material.traces), separators=(",", ":"))
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
