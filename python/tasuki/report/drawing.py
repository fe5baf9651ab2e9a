"""Drawings of the report as SVG: the topology with who talks to whom, and an operation's plans as a graph by rank."""

from __future__ import annotations

import math
from collections import defaultdict
from html import escape

from tasuki.timeline import RankTrace, describe

PALETTE = ["#2c7fb8", "#41ab5d", "#9e6fc0", "#e08214", "#17a2a2", "#8c6d31", "#7f7f7f"]
MOST_RANKS = 8  # drawn of a plan; all of them look alike
MOST_COMMANDS = 600
STEP, ROW, BOX = 120, 34, (70, 22)  # pixels: a level to the next, a lane to the next, a command


def label_of(buffer: dict) -> str:
    """What names a buffer of a plan for people, as `Buffer::label` does: its name, or `arrived.0<1`."""
    if buffer.get("purpose", "user") == "user":
        return buffer.get("name", "")
    return f"{buffer['purpose']}.{buffer.get('link', 0)}<{buffer.get('writer', -1)}"


def path_colours(traces: list[RankTrace]) -> dict[str, str]:
    names = sorted({path for t in traces for plan in t.plans for path in plan["paths"] or [""]})
    return {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(names)}


def text(x: float, y: float, words: str, **style: object) -> str:
    """`kind` is its class, whose colours page.css has, for light and dark screens."""
    kind = style.pop("kind", "ink")
    attributes = f' class="{kind}"' + "".join(f' {key.replace("_", "-")}="{value}"' for key, value in style.items())
    return f'<text x="{x:.1f}" y="{y:.1f}"{attributes}>{escape(words)}</text>'


def svg(width: float, height: float, parts: list[str], label: str) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" role="img" '
    return f'{head}viewBox="0 0 {width:.0f} {height:.0f}" aria-label="{escape(label)}">{"".join(parts)}</svg>'


def links(traces: list[RankTrace]) -> dict[tuple[int, int, str], int]:
    """Bytes that one epoch of every operation moves, by the two ranks (lower first) and the path."""
    found: dict[tuple[int, int, str], int] = defaultdict(int)
    for trace in traces:
        for plan in trace.plans:
            for command in plan["commands"]:
                about = describe(plan, command)
                if about["peer"] >= 0 and about["peer"] != trace.rank:
                    ends = sorted((trace.rank, about["peer"]))
                    found[ends[0], ends[1], about["path"]] += about["bytes"]
    return found


def topology(traces: list[RankTrace]) -> str:
    """Hosts with their islands with their ranks on a circle; lines between ranks that talk, thicker for more bytes."""
    count = len(traces)
    ordered = sorted(traces, key=lambda t: (t.host, t.island, t.rank))
    radius = max(110.0, 24 * count / math.pi)
    middle = radius + 60
    across = radius + max(60, 36 + 6 * max(len(f"{t.host} / {t.island}") for t in traces))  # beside the circle: names
    at = {}
    for i, trace in enumerate(ordered):
        angle = 2 * math.pi * i / count - math.pi / 2
        at[trace.rank] = (across + radius * math.cos(angle), middle + radius * math.sin(angle))
    colours = path_colours(traces)
    parts = []
    for (a, b, path), moved in sorted(links(traces).items()):
        bend = (sorted(colours).index(path) - (len(colours) - 1) / 2) * 26
        (xa, ya), (xb, yb) = at[a], at[b]
        length = math.hypot(xb - xa, yb - ya) or 1
        cx = (xa + xb) / 2 - bend * (yb - ya) / length
        cy = (ya + yb) / 2 + bend * (xb - xa) / length
        width = 1 + math.log10(1 + moved) / 2
        note = f"{a} - {b}: {path}, {moved} bytes in an epoch of every operation"
        parts.append(
            f'<path d="M{xa:.1f},{ya:.1f} Q{cx:.1f},{cy:.1f} {xb:.1f},{yb:.1f}" fill="none" stroke="{colours[path]}" '
            f'stroke-width="{width:.1f}" opacity="0.75"><title>{escape(note)}</title></path>'
        )
    islands = sorted({(t.host, t.island) for t in traces})
    for trace in ordered:
        x, y = at[trace.rank]
        fill = ["#fff3d6", "#dcecf7", "#e0f2e0", "#f3e3f7"][islands.index((trace.host, trace.island)) % 4]
        note = f"rank {trace.rank} on {trace.host}, island {trace.island}"
        circle = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="17" fill="{fill}" stroke="#555">'
        parts.append(f"{circle}<title>{escape(note)}</title></circle>")
        parts.append(text(x, y + 4, str(trace.rank), text_anchor="middle", font_size=12, kind="on-light"))
        side = (x - across) / radius
        out = 1 + (24 if abs(side) > 0.3 else 34) / radius
        parts.append(
            text(
                across + (x - across) * out,
                middle + (y - middle) * out + 4,
                f"{trace.host} / {trace.island}",
                text_anchor="start" if side > 0.3 else "end" if side < -0.3 else "middle",
                font_size=10,
                kind="faint",
            )
        )
    return svg(2 * across, 2 * middle, parts, "ranks and the paths between them")


def needs(plans: dict[int, dict]) -> list[tuple[tuple[int, int], tuple[int, int], str]]:
    """What must end before what, as (rank, command) pairs: a lane's order, dependencies, signals, messages."""
    found = []
    signals: dict[tuple[int, str, int], tuple[int, int]] = {}
    messages: dict[tuple[int, int, int], tuple[int, int]] = {}
    for rank, plan in plans.items():
        for i, c in enumerate(plan["commands"]):
            if i > 0 and plan["commands"][i - 1].get("lane", 0) == c.get("lane", 0):
                found.append(((rank, i - 1), (rank, i), "lane"))
            first = c.get("first_dep", 0)
            found += [((rank, d), (rank, i), "dependency") for d in plan["deps"][first : first + c.get("dep_count", 0)]]
            if c["verb"] == "signal":
                buffer = plan["buffers"][c["dst"]]
                signals[buffer.get("rank", 0), label_of(buffer), c.get("index", 0)] = (rank, i)
            if c["verb"] == "send":
                messages[rank, c["peer"], c.get("tag", 0)] = (rank, i)
    for rank, plan in plans.items():
        for i, c in enumerate(plan["commands"]):
            source = None
            if c["verb"] == "wait" and c.get("lag", 0) == 0:  # others wait for what an earlier epoch has done
                buffer = plan["buffers"][c.get("src", 0)]
                source = signals.get((buffer.get("rank", 0), label_of(buffer), c.get("index", 0)))
            if c["verb"] == "recv":
                source = messages.get((c["peer"], rank, c.get("tag", 0)))
            if source:
                found.append((source, (rank, i), "signal" if c["verb"] == "wait" else "message"))
    return found


def levels(plans: dict[int, dict], edges: list) -> dict[tuple[int, int], int]:
    """The longest way to each command; what is in a circle, which a sound plan has not, stays at 0."""
    after = defaultdict(list)
    open_needs: dict[tuple[int, int], int] = defaultdict(int)
    for source, target, _ in edges:
        after[source].append(target)
        open_needs[target] += 1
    level = {(rank, i): 0 for rank, plan in plans.items() for i in range(len(plan["commands"]))}
    ready = [node for node in level if open_needs[node] == 0]
    while ready:
        node = ready.pop()
        for target in after[node]:
            level[target] = max(level[target], level[node] + 1)
            open_needs[target] -= 1
            if open_needs[target] == 0:
                ready.append(target)
    return level


def plan_graph(plans: dict[int, dict], colours: dict[str, str]) -> tuple[str, str]:
    """The drawing of one operation, and what is left out of it (empty: nothing)."""
    shown: dict[int, dict] = {}
    total = 0
    for rank in sorted(plans)[:MOST_RANKS]:
        total += len(plans[rank]["commands"])
        if shown and total > MOST_COMMANDS:
            break
        shown[rank] = plans[rank]
    left_out = "" if len(shown) == len(plans) else f"ranks {len(shown)} to {len(plans) - 1} are not drawn"
    edges = needs(shown)
    level = levels(shown, edges)
    at: dict[tuple[int, int], tuple[float, float]] = {}
    parts: list[str] = []
    y = 16.0
    for rank, plan in shown.items():
        parts.append(text(6, y + 4, f"rank {rank}", font_size=13, font_weight="bold"))
        lanes = sorted({c.get("lane", 0) for c in plan["commands"]})
        for i, c in enumerate(plan["commands"]):
            at[rank, i] = (90 + STEP * level[rank, i], y + 24 + ROW * lanes.index(c.get("lane", 0)))
        y += 34 + ROW * max(1, len(lanes))
    for source, target, kind in edges:
        (xa, ya), (xb, yb) = at[source], at[target]
        xa, bend = xa + BOX[0], max(20.0, (xb - xa - BOX[0]) / 2)
        look = "strong" if kind in ("signal", "message") else "weak"
        dash = ' stroke-dasharray="4 3"' if kind == "dependency" else ""
        parts.append(
            f'<path d="M{xa:.0f},{ya:.0f} C{xa + bend:.0f},{ya:.0f} {xb - bend:.0f},{yb:.0f} {xb:.0f},{yb:.0f}" '
            f'fill="none" class="arrow {look}"{dash}><title>{kind}</title></path>'
        )
    for (rank, i), (x, middle) in at.items():
        plan = shown[rank]
        c = plan["commands"][i]
        about = describe(plan, c)
        peer = f" ({about['peer']})" if about["peer"] >= 0 else ""
        buffers = [label_of(plan["buffers"][c[end]]) if c.get(end, -1) >= 0 else "" for end in ("src", "dst")]
        note = (
            f"#{i} {about['verb']}{peer}, {about['path']}, {about['bytes']} bytes, {' > '.join(filter(None, buffers))}"
        )
        solid = about["verb"] not in ("wait", "signal")
        colour = colours[about["path"]]
        filled = f'fill="{colour}"' if solid else 'class="open"'
        parts.append(
            f'<g><title>{escape(note)}</title><rect x="{x:.0f}" y="{middle - BOX[1] / 2:.0f}" width="{BOX[0]}" '
            f'height="{BOX[1]}" rx="5" stroke="{colour}" {filled}/>'
            + text(
                x + BOX[0] / 2,
                middle + 4,
                about["verb"] + peer,
                text_anchor="middle",
                font_size=11,
                kind="on-dark" if solid else "ink",
            )
            + "</g>"
        )
    width = max((x for x, _ in at.values()), default=0) + BOX[0] + 20
    return svg(width, y, parts, "commands of each rank and what they wait for"), left_out
