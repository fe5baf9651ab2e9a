"""Patterns of two substances that react and spread (Gray and Scott), two fields in one halo, on any number of ranks.

    tasuki run -n 4 examples/gallery/patterns.py --picture patterns.png

The result is checked, bit for bit, against the same steps on the whole plate with NumPy.
"""

import numpy as np
from pictures import draw_field, options, whole_of

import tasuki

SHAPE = (128, 192)
FEED, KILL = 0.037, 0.060


def start_values(box):
    i, j = np.ogrid[box]
    drops = ((i % 43 - 20) ** 2 + (j % 61 - 25) ** 2 < 30).astype("float32")
    return 1 - 0.5 * drops, 0.25 * drops


def spread(a):
    return (a[:-2, 1:-1] + a[2:, 1:-1]) + (a[1:-1, :-2] + a[1:-1, 2:]) - 4 * a[1:-1, 1:-1]


def step(u, v):
    """The next values of the cells inside; both have a shadow of one cell."""
    a, b = u[1:-1, 1:-1], v[1:-1, 1:-1]
    reacts = a * b * b
    return (
        a + np.float32(0.2) * spread(u) - reacts + np.float32(FEED) * (1 - a),
        b + np.float32(0.1) * spread(v) + reacts - np.float32(FEED + KILL) * b,
    )


def serial(steps):
    u, v = start_values(tuple(slice(0, n) for n in SHAPE))
    for _ in range(steps):
        u, v = step(np.pad(u, 1, "wrap"), np.pad(v, 1, "wrap"))
    return v


def main():
    asked = options(__doc__.splitlines()[0], steps=1200)
    context = tasuki.Context()
    grid = tasuki.Grid(context, SHAPE, periodic=True)
    u, v = (tasuki.Field(grid, "float32", name=name) for name in "uv")
    halo = tasuki.Halo([u, v], corners=False)
    u.owned[...], v.owned[...] = start_values(u.box)
    for _ in range(asked.steps):
        halo.run()
        u.owned[...], v.owned[...] = step(u.array, v.array)
    whole = whole_of(grid, v)
    if context.rank == 0:
        same = np.array_equal(whole, serial(asked.steps))
        says = "equal" if same else "NOT equal"
        print(f"patterns after {asked.steps} steps on {context.size} ranks: {says} to the serial run")
        if asked.picture:
            draw_field(asked.picture, whole, grid, "two substances, one halo", cmap="viridis")


main()
