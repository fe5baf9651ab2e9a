"""The messages of an operation as a graph: who sends to whom, over which links of a torus; as text. `tasuki.drawing`
makes a picture of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

Link = tuple[int, int]


@dataclass
class Torus:
    """Of hosts; the last dimension is the fastest."""

    extents: tuple[int, ...]
    point: tuple[int, ...]  # of each rank

    @property
    def points(self) -> int:
        product = 1
        for extent in self.extents:
            product *= extent
        return product

    def place(self, point: int) -> tuple[int, ...]:
        found: list[int] = []
        for extent in reversed(self.extents):
            found.append(point % extent)
            point //= extent
        return tuple(reversed(found))

    def at(self, place: Iterable[int]) -> int:
        point = 0
        for extent, index in zip(self.extents, place, strict=True):
            point = point * extent + index % extent
        return point

    def route(self, start: int, end: int) -> list[Link]:
        """The links on the way, as predictions have it: dimension by dimension, the shorter way round, upwards if both
        are equally long."""
        links = []
        place, target = list(self.place(start)), self.place(end)
        for dimension, extent in enumerate(self.extents):
            up = (target[dimension] - place[dimension]) % extent
            step = 1 if 2 * up <= extent else -1
            while place[dimension] != target[dimension]:
                here = self.at(place)
                place[dimension] = (place[dimension] + step) % extent
                links.append((here, self.at(place)))
        return links


def torus_of(machine) -> Torus | None:
    """The torus that joins a machine's hosts, if one does and has a host at every point."""
    network = machine.outside
    if network is None or network["kind"] != "torus":
        return None
    numbers = {host: i for i, host in enumerate(sorted({rank[0] for rank in machine.ranks}))}
    torus = Torus(tuple(network["extents"]), tuple(numbers[rank[0]] for rank in machine.ranks))
    return torus if torus.points == len(numbers) else None


@dataclass
class Group:
    """Messages of one name: a tree, or a step of an algorithm."""

    name: str
    edges: dict[Link, int] = field(default_factory=dict)  # from rank to rank: bytes

    @cached_property
    def tree(self) -> tuple[int, dict[int, list[int]], bool] | None:
        """Root, children by rank, and whether the messages go up to the root; None if it is no tree."""
        for up in (False, True):
            children: dict[int, list[int]] = defaultdict(list)
            parents: dict[int, int] = {}
            several = False
            for start, end in self.edges:
                parent, child = (end, start) if up else (start, end)
                several = several or child in parents
                parents[child] = parent
                children[parent].append(child)
            roots = [rank for rank in children if rank not in parents]
            if several or len(roots) != 1:
                continue
            seen, front = set(), [roots[0]]
            while front:
                rank = front.pop()
                seen.add(rank)
                front.extend(child for child in children.get(rank, []) if child not in seen)
            if len(seen) == len(parents) + 1:
                return roots[0], dict(children), up
        return None

    @property
    def depth(self) -> int:
        """Of a tree: messages from the root to the farthest rank."""
        root, children, _ = self.tree or (0, {}, False)
        depth, level = 0, [root]
        while level := [child for rank in level for child in children.get(rank, [])]:
            depth += 1
        return depth


class Messages:
    def __init__(self, operation: str, ranks: int, messages: Iterable[tuple], torus: Torus | None = None) -> None:
        """messages: (label, from, to, bytes, ...). Strands of one tree, `part 1 of 3, strand 2`, are one group."""
        self.operation, self.ranks, self.torus = operation, ranks, torus
        groups: dict[str, Group] = {}
        for label, start, end, size, *_ in messages:
            name = label.partition(", strand ")[0]
            edges = groups.setdefault(name, Group(name)).edges
            edges[start, end] = edges.get((start, end), 0) + size
        self.groups = list(groups.values())

    def links(self, group: Group) -> dict[Link, int]:
        """The bytes that cross each link of the torus."""
        assert self.torus is not None
        crossed: dict[Link, int] = defaultdict(int)
        for (start, end), size in group.edges.items():
            for link in self.torus.route(self.torus.point[start], self.torus.point[end]):
                crossed[link] += size
        return dict(crossed)

    @cached_property
    def shared(self) -> list[Link]:
        """Links that several messages cross, of one group or of different ones."""
        times: dict[Link, int] = defaultdict(int)
        for group in self.groups:
            for start, end in group.edges:
                for link in self.torus.route(self.torus.point[start], self.torus.point[end]) if self.torus else ():
                    times[link] += 1
        return sorted(link for link, count in times.items() if count > 1)

    def called(self, rank: int) -> str:
        if self.torus is None:
            return str(rank)
        return f"{rank} ({','.join(map(str, self.torus.place(self.torus.point[rank])))})"

    def about(self, group: Group) -> str:
        text = f"{group.name}: {len(group.edges)} messages, {sum(group.edges.values())} bytes"
        return text + (f", depth {group.depth}" if group.tree else "")

    def about_links(self) -> str:
        if self.torus is None:
            return ""
        used = {link for group in self.groups for link in self.links(group)}
        size = " x ".join(map(str, self.torus.extents))
        text = f"{len(used)} links of the {size} torus are used, "
        if not self.shared:
            return text + "none twice"
        shown = ", ".join(f"{a} -> {b}" for a, b in self.shared[:8])
        return text + f"{len(self.shared)} of them by several messages: {shown}{', ...' * (len(self.shared) > 8)}"

    def text(self) -> str:
        lines = [f"{self.operation} on {self.ranks} ranks"]
        for group in self.groups:
            lines += ["", self.about(group)]
            lines += self.tree_lines(group) if group.tree else self.plain_lines(group)
        return "\n".join([*lines, "", self.about_links()]).rstrip() + "\n"

    def tree_lines(self, group: Group) -> list[str]:
        assert group.tree is not None
        root, children, up = group.tree
        arrow = "<- " if up else "-> "
        lines = [self.called(root)]

        def hang(rank: int, indent: str) -> None:
            below = children.get(rank, [])
            for child in below:
                last = child == below[-1]
                lines.append(f"{indent}{'└' if last else '├'} {arrow}{self.called(child)}")
                hang(child, indent + ("  " if last else "│ "))

        hang(root, "")
        return lines

    def plain_lines(self, group: Group) -> list[str]:
        to: dict[int, list[int]] = defaultdict(list)
        for start, end in group.edges:
            to[start].append(end)
        return [f"{self.called(start)} -> {', '.join(map(self.called, ends))}" for start, ends in sorted(to.items())]

    def data(self) -> dict:
        """For programs."""
        found = []
        for group in self.groups:
            one = {"name": group.name, "messages": [[*edge, size] for edge, size in group.edges.items()]}
            one["tree"] = None if group.tree is None else {"root": group.tree[0], "depth": group.depth}
            if self.torus is not None:
                one["links"] = [[*link, size] for link, size in self.links(group).items()]
            found.append(one)
        told = {"groups": found}
        if self.torus is not None:
            told |= {"torus": list(self.torus.extents), "shared_links": [list(link) for link in self.shared]}
        return told
