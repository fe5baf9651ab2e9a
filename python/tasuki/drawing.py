"""Pictures of an operation's messages: trees on a torus, or arrows between ranks on a circle. Needs matplotlib."""

from __future__ import annotations

import math

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from tasuki.messages import Group, Messages, Torus  # noqa: E402

COLOURS = ["#c0392b", "#2c7fb8", "#41ab5d", "#9e6fc0", "#e08214", "#17a2a2"]
MOST_PANELS = 12
GREY = "#cccccc"

Point = tuple[float, float]


def steps(torus: Torus) -> list[Point]:
    """How far one step in each dimension goes in the picture: the last to the right, the one before it down, or
    slanting if there is a third; further ones side by side."""
    found: list[Point] = [(1.0, 0.0)]
    width, height = torus.extents[-1] * 1.0, 1.0
    sizes = list(reversed(torus.extents[:-1]))
    for number, extent in enumerate(sizes):
        if number == 0 and len(sizes) > 1:
            found.append((0.42, 0.55))
            width, height = width + 0.42 * (extent - 1), height + 0.55 * (extent - 1)
        elif number % 2 == 0 and number > 1:
            found.append((width + 1.5, 0.0))
            width = (width + 1.5) * extent
        else:
            found.append((0.0, -(height + 0.2)))
            height = (height + 0.2) * extent
    return list(reversed(found))


def positions(graph: Messages) -> list[Point]:
    """Of each point of the torus, or of each rank."""
    if graph.torus is None:
        turn = [2 * math.pi * rank / graph.ranks for rank in range(graph.ranks)]
        return [(math.sin(angle), math.cos(angle)) for angle in turn]
    vectors = steps(graph.torus)
    found = []
    for point in range(graph.torus.points):
        place = graph.torus.place(point)
        found.append(tuple(sum(i * v[axis] for i, v in zip(place, vectors, strict=True)) for axis in (0, 1)))
    return found


def arrow(axes, start: Point, end: Point, colour: str, head: bool = True, bent: float = 0.0) -> None:
    style = {"arrowstyle": "-|>" if head else "-", "color": colour, "lw": 1.3, "shrinkA": 4, "shrinkB": 4}
    style["connectionstyle"] = f"arc3,rad={bent}"
    axes.annotate("", xy=end, xytext=start, arrowprops=style)


def draw_link(axes, torus: Torus, where: list[Point], start: int, end: int, colour: str, head: bool = True) -> None:
    """A link to a neighbour; one round the end of a dimension is cut in two."""
    a, b = torus.place(start), torus.place(end)
    dimension = next(d for d in range(len(a)) if a[d] != b[d])
    extent = torus.extents[dimension]
    if abs(a[dimension] - b[dimension]) == 1:
        # Both directions of a link lie beside each other.
        arrow(axes, where[start], where[end], colour, head, 0.12 if head else 0.0)
        return
    step = steps(torus)[dimension]
    sign = 1 if a[dimension] == extent - 1 else -1
    out = tuple(where[start][i] + 0.5 * sign * step[i] for i in (0, 1))
    into = tuple(where[end][i] - 0.5 * sign * step[i] for i in (0, 1))
    arrow(axes, where[start], out, colour, head=False)
    arrow(axes, into, where[end], colour, head)


def panel(axes, graph: Messages, groups: list[Group], colours: list[str]) -> None:
    where = positions(graph)
    if graph.torus is not None:
        for point in range(graph.torus.points):
            place = graph.torus.place(point)
            for d, extent in enumerate(graph.torus.extents):
                if extent > 1 and (extent > 2 or place[d] == 0):
                    further = graph.torus.at((*place[:d], place[d] + 1, *place[d + 1 :]))
                    draw_link(axes, graph.torus, where, point, further, GREY, head=False)
    for group, colour in zip(groups, colours, strict=True):
        if graph.torus is None:
            for start, end in group.edges:
                arrow(axes, where[start], where[end], colour, bent=0.1)
        else:
            for start, end in graph.links(group):
                draw_link(axes, graph.torus, where, start, end, colour)
    names: dict[int, list[str]] = {}
    for rank in range(graph.ranks):
        names.setdefault(rank if graph.torus is None else graph.torus.point[rank], []).append(str(rank))
    for point, ranks in names.items():
        label = ranks[0] if len(ranks) == 1 else f"{ranks[0]}…{ranks[-1]}"
        style = {"boxstyle": "circle,pad=0.25", "fc": "white", "ec": "#333333", "lw": 0.8}
        axes.text(*where[point], label, ha="center", va="center", fontsize=7, bbox=style, zorder=3)
    xs, ys = zip(*where, strict=True)
    axes.set_xlim(min(xs) - 0.8, max(xs) + 0.8)
    axes.set_ylim(min(ys) - 0.8, max(ys) + 0.8)
    axes.set_aspect("equal")
    axes.axis("off")


def figure(graph: Messages) -> Figure:
    """A panel for each tree or step; one for all if these are many."""
    groups = graph.groups
    panels = [[group] for group in groups] if len(groups) <= MOST_PANELS else [groups]
    columns = min(len(panels), 3)
    rows = math.ceil(len(panels) / columns)
    made, axes = plt.subplots(rows, columns, figsize=(6 * columns, 5 * rows), squeeze=False)
    for one in axes.flat:
        one.axis("off")
    for number, (one, drawn) in enumerate(zip(axes.flat, panels, strict=False)):
        shades = [COLOURS[(number + i) % len(COLOURS)] for i in range(len(drawn))]
        panel(one, graph, drawn, shades)
        one.set_title(graph.about(drawn[0]) if len(drawn) == 1 else f"{len(drawn)} steps", fontsize=9)
    title = f"{graph.operation} on {graph.ranks} ranks"
    made.suptitle(f"{title}: {graph.about_links()}" if graph.torus else title, fontsize=11)
    made.tight_layout()
    return made
