"""Heat on a periodic plate with NumPy, on any number of ranks: the interior is computed while the halo travels.

    tasuki run -n 4 examples/heat.py

The result is checked, bit for bit, against the same steps on the whole plate.
"""

import argparse

import numpy as np

import tasuki

SHAPE = (200, 300)


def step(old, new, box):
    """One explicit step of the cells of `box`, a slice a dimension, from `old` to `new`."""
    rows, columns = box
    above, below = slice(rows.start - 1, rows.stop - 1), slice(rows.start + 1, rows.stop + 1)
    left, right = slice(columns.start - 1, columns.stop - 1), slice(columns.start + 1, columns.stop + 1)
    centre = old[box]
    around = (old[above, columns] + old[below, columns]) + (old[rows, left] + old[rows, right])
    new[box] = centre + 0.2 * (around - 4 * centre)


def start_values(box):
    i, j = np.ogrid[box]
    return np.sin(0.04 * i) + np.cos(0.05 * j)


def serial(steps):
    """The whole plate on one rank, without Tasuki."""
    old = np.pad(start_values(tuple(slice(0, n) for n in SHAPE)), 1)
    new = np.empty_like(old)
    for _ in range(steps):
        old[0], old[-1] = old[-2], old[1]
        old[:, 0], old[:, -1] = old[:, -2], old[:, 1]
        step(old, new, tuple(slice(1, n + 1) for n in SHAPE))
        old, new = new, old
    return old[1:-1, 1:-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    steps = parser.parse_args().steps

    context = tasuki.Context()
    grid = tasuki.Grid(context, SHAPE, periodic=True)
    u = tasuki.Field(grid, name="u", copies=2)  # old and new, one cell of shadow
    u.owned[...] = start_values(u.box)
    halo = tasuki.Halo(u, corners=False, alternating=True)  # five points, and one swap between two starts
    halo.start()
    halo.wait()
    for _ in range(steps):
        old = u.array
        u.swap()  # u.array is the new copy now
        for box in u.boundary():
            step(old, u.array, box)
        with halo.overlap():
            step(old, u.array, u.interior())

    np.testing.assert_array_equal(u.owned, serial(steps)[u.box])
    if context.rank == 0:
        print(f"heat after {steps} steps on {context.size} ranks: equal to the serial run")


if __name__ == "__main__":
    main()
