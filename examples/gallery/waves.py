"""Waves between walls: open ends above and below, fixed ends left and right, on any number of ranks.

    tasuki run -n 4 examples/gallery/waves.py --picture waves.png

The walls are mirrors of the halo (option `edges`): an open end shows the cell inside it, a fixed end its negative. So
no rank has code for walls. The result is checked, bit for bit, against the same steps on the whole box with NumPy.
"""

import numpy as np
from pictures import draw_field, options, whole_of

import tasuki

SHAPE = (180, 260)


def start_values(box):
    i, j = np.ogrid[box]
    return np.exp(-((i - 60.0) ** 2 + (j - 90.0) ** 2) / 60)


def step(now, before):
    """The next values of the cells inside `now`, which has a shadow of one cell."""
    inside = now[1:-1, 1:-1]
    around = (now[:-2, 1:-1] + now[2:, 1:-1]) + (now[1:-1, :-2] + now[1:-1, 2:])
    return 2 * inside - before + 0.25 * (around - 4 * inside)


def serial(steps):
    before = now = start_values(tuple(slice(0, n) for n in SHAPE))
    for _ in range(steps):
        padded = np.pad(now, ((1, 1), (0, 0)), "symmetric")
        padded = np.hstack([-padded[:, :1], padded, -padded[:, -1:]])
        now, before = step(padded, before), now
    return now


def main():
    asked = options(__doc__.splitlines()[0], steps=330)
    context = tasuki.Context()
    grid = tasuki.Grid(context, SHAPE)
    u = tasuki.Field(grid, name="u")
    halo = tasuki.Halo(u, corners=False, edges="i=face, j=-face")
    u.owned[...] = start_values(u.box)
    before = u.owned.copy()
    for _ in range(asked.steps):
        halo.run()
        new = step(u.array, before)
        before[...] = u.owned
        u.owned[...] = new
    whole = whole_of(grid, u)
    if context.rank == 0:
        same = np.array_equal(whole, serial(asked.steps))
        says = "equal" if same else "NOT equal"
        print(f"waves after {asked.steps} steps on {context.size} ranks: {says} to the serial run")
        if asked.picture:
            draw_field(asked.picture, whole, grid, "waves between walls", cmap="RdBu", vmin=-0.25, vmax=0.25)


main()
