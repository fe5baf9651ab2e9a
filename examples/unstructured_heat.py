"""Heat on an unstructured mesh: cells in a scrambled order, any number of them beside each, on any number of ranks.

    tasuki run -n 3 examples/unstructured_heat.py

Cells that need no ghosts are computed while the exchange travels. The result is checked, bit for bit, against the same
steps on the whole mesh with NumPy.
"""

import numpy as np

import tasuki
from tasuki.meshes import wavy_mesh

SIDE, STEPS = 60, 50


def neighbours_of(cells):
    """The (up to) four cells beside each cell of the square, as global numbers; the cell itself at the edges."""
    row, column = np.divmod(cells, SIDE)
    beside = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
    inside = [(r >= 0) & (r < SIDE) & (c >= 0) & (c < SIDE) for r, c in beside]
    return np.stack([np.where(ok, r * SIDE + c, cells) for (r, c), ok in zip(beside, inside, strict=True)])


def step(old, new, cells, beside):
    """One explicit step of some cells; sums in a fixed order, so that every split gives the same bits."""
    around = (old[beside[0]] + old[beside[1]]) + (old[beside[2]] + old[beside[3]])
    new[cells] = old[cells] + 0.2 * (around - 4 * old[cells])


def start_values(cells):
    return np.sin(0.1 * (cells // SIDE)) + np.cos(0.07 * (cells % SIDE))


def serial():
    cells = np.arange(SIDE * SIDE)
    beside = neighbours_of(cells)
    old, new = start_values(cells), np.empty(SIDE * SIDE)
    for _ in range(STEPS):
        step(old, new, cells, beside)
        old, new = new, old
    return old


def main():
    context = tasuki.Context()
    part = wavy_mesh(SIDE, context.size)[context.rank]
    count = len(part.owned)
    here = np.full(SIDE * SIDE, -1)
    here[np.concatenate([part.owned, part.ghosts])] = np.arange(part.cells)
    beside = here[neighbours_of(part.owned)]  # numbers of this rank
    needs = (beside >= count).any(axis=0)  # a ghost
    inner, outer = np.flatnonzero(~needs), np.flatnonzero(needs)
    old, new = (tasuki.shared_array(context, (part.cells,)) for _ in range(2))
    old[:count] = start_values(part.owned)
    # An exchange is bound to its memory: one for each of the two arrays.
    exchanges = [tasuki.Exchange.of_numbers(context, array, part.owned, part.ghosts) for array in (old, new)]
    for _ in range(STEPS):
        with exchanges[0].overlap():
            step(old, new, inner, beside[:, inner])
        step(old, new, outer, beside[:, outer])
        old, new = new, old
        exchanges.reverse()
    same = np.array([int(np.array_equal(old[:count], serial()[part.owned]))])
    tasuki.Allreduce(context, tasuki.in_place, same, op="min").run()
    if context.rank == 0:
        print(f"heat after {STEPS} steps on {context.size} ranks: {'' if same[0] else 'NOT '}equal to the serial run")


main()
