"""Meshes to try exchanges on: N x N cells cut into parts by wavy lines, numbered in any order.

A cell has the four neighbours that it shares an edge with. A part owns its cells; its ghosts are the neighbours of
these that other parts own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


class Part(NamedTuple):
    """What one rank has of a mesh. Cells have numbers here: those that it owns first, ghosts after them."""

    owned: Numbers  # their global numbers, row * N + column, in the order of their numbers here
    ghosts: Numbers  # the same of the ghosts
    entries: list[tuple[int, Numbers, Numbers]]  # for `Exchange`: rank, cells that it gets, cells that come from it

    @property
    def cells(self) -> int:
        return len(self.owned) + len(self.ghosts)


def wavy_mesh(side: int, ranks: int, *, scrambled: bool = True, seed: int = 0) -> list[Part]:
    """The parts of all ranks of a mesh of `side` x `side` cells. Local, and the same on all ranks.

    scrambled: cells and ghosts are numbered in a random order; else by rows, and ghosts rank by rank.
    """
    rows, columns = np.divmod(np.arange(side * side), side)
    wave = side / 8 * np.sin(10 * np.pi * rows / side)
    owner = np.clip((columns + wave) * ranks // side, 0, ranks - 1).astype(np.int64)
    at = owner.reshape(side, side)
    cells = np.arange(side * side).reshape(side, side)
    pairs = [
        (cells[:-1], cells[1:]),
        (cells[1:], cells[:-1]),
        (cells[:, :-1], cells[:, 1:]),
        (cells[:, 1:], cells[:, :-1]),
    ]
    here = np.concatenate([a.ravel() for a, _ in pairs])
    beside = np.concatenate([b.ravel() for _, b in pairs])
    cut = at.ravel()[here] != at.ravel()[beside]
    here, beside = here[cut], beside[cut]
    order = np.random.default_rng(seed)
    owned, ghosts = [], []
    number = np.empty(side * side, np.int64)  # of a cell on its owner
    for rank in range(ranks):
        mine = np.flatnonzero(owner == rank)
        theirs = np.unique(beside[owner[here] == rank])
        if scrambled:
            mine, theirs = order.permutation(mine), order.permutation(theirs)
        else:
            theirs = theirs[np.argsort(owner[theirs], kind="stable")]
        number[mine] = np.arange(len(mine))
        owned.append(mine)
        ghosts.append(theirs)
    entries: list[list[tuple[int, Numbers, Numbers]]] = [[] for _ in range(ranks)]
    wanted = [
        {int(o): np.flatnonzero(owner[ghosts[r]] == o) for o in np.unique(owner[ghosts[r]])} for r in range(ranks)
    ]
    none = np.empty(0, np.int64)
    for rank in range(ranks):
        givers, takers = wanted[rank], [r for r in range(ranks) if rank in wanted[r]]
        for other in sorted({*givers, *takers}):
            places = wanted[other].get(rank, none)
            received = givers.get(other, none) + len(owned[rank])
            entries[rank].append((other, number[ghosts[other][places]], received))
    return [Part(owned[r], ghosts[r], entries[r]) for r in range(ranks)]
