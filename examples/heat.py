"""Heat on a periodic plate, on any number of ranks: the interior is computed while the halo travels.

    tasuki run -n 4 examples/heat.py
    tasuki run -n 2 examples/heat.py --backend cupy     (or torch: one GPU a rank)

The result is checked, bit for bit, against the same steps on the whole plate with NumPy.
"""

import argparse
import sys

import numpy as np

import tasuki

SHAPE = (200, 300)


def numpy_arrays(context):
    """How the backend looks at a field's memory."""
    return np.asarray


def cupy_arrays(context):
    import cupy

    cupy.cuda.Device(tasuki.use_gpu(context)).use()
    return cupy.asarray


def torch_arrays(context):
    import torch

    gpu = tasuki.use_gpu(context)
    torch.cuda.set_device(gpu)
    return lambda array: torch.as_tensor(array, device=f"cuda:{gpu}")


BACKENDS = {"numpy": numpy_arrays, "cupy": cupy_arrays, "torch": torch_arrays}


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
    parser.add_argument("--backend", choices=BACKENDS, default="numpy", help="what computes (default %(default)s)")
    arguments = parser.parse_args()
    on_gpu = arguments.backend != "numpy"
    if on_gpu and tasuki.why_no_gpu():
        sys.exit(f"--backend {arguments.backend} needs a GPU: {tasuki.why_no_gpu()}")

    context = tasuki.Context()
    look = BACKENDS[arguments.backend](context)
    grid = tasuki.Grid(context, SHAPE, periodic=True)
    u = tasuki.Field(grid, name="u", copies=2, memory="device" if on_gpu else "host")  # one cell of shadow
    copies = [look(u.array), look(u.next)]  # old and new, in place
    u.upload(np.pad(start_values(u.box), 1))
    halo = tasuki.Halo(u, corners=False, alternating=True)  # five points, and one swap between two starts
    halo.run()
    for _ in range(arguments.steps):
        old = copies[u.current]
        u.swap()
        new = copies[u.current]
        for box in u.boundary():
            step(old, new, box)
        with halo.overlap():
            step(old, new, u.interior())

    result = u.download()[u.local_box]
    np.testing.assert_array_equal(result, serial(arguments.steps)[u.box])
    if context.rank == 0:
        print(
            f"heat after {arguments.steps} steps on {context.size} ranks with {arguments.backend}: "
            "equal to the serial run"
        )


if __name__ == "__main__":
    main()
