"""What the programs of the gallery share: a field gathered to one rank, and pictures of it."""

import argparse

import numpy as np

import tasuki


def options(description, steps):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--picture", metavar="FILE", help="draw the result: .png, .svg, .pdf; needs matplotlib")
    parser.add_argument("--steps", type=int, default=steps)
    return parser.parse_args()


def whole_of(grid, field):
    """The cells of all ranks of a field on the grid, on rank 0; None on the others. Collective."""
    context, shape = grid.context, list(grid.shape)
    cell = tasuki.Layout.bytes(field.dtype.itemsize)
    boxes = [grid.box_of(rank) for rank in range(context.size)]
    blocks = [
        tasuki.Layout.subarray(shape, [s.stop - s.start for s in box], [s.start for s in box], cell) for box in boxes
    ]
    whole = np.empty(shape, field.dtype) if context.rank == 0 else None
    tasuki.Gather(context, field.owned, None if whole is None else (whole, blocks)).run()
    return whole


def axes_of(title):
    import matplotlib

    matplotlib.use("Agg")  # no screen is needed
    from matplotlib.figure import Figure

    axes = Figure(figsize=(6, 4.2), layout="constrained").add_subplot(title=title)
    axes.set(xticks=[], yticks=[])
    return axes


def draw_field(file, whole, grid, title, **colours):
    """The cells as colours, and the ranks' boxes as lines. On the rank that has `whole`."""
    axes = axes_of(title)
    image = axes.imshow(whole, interpolation="nearest", **colours)
    axes.figure.colorbar(image, ax=axes, shrink=0.85)
    for rank in range(grid.context.size):
        rows, columns = grid.box_of(rank)
        low, high = (columns.start - 0.5, rows.start - 0.5), (columns.stop - 0.5, rows.stop - 0.5)
        axes.plot([low[0], high[0], high[0], low[0], low[0]], [low[1], low[1], high[1], high[1], low[1]], "k-", lw=0.8)
        box = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.7}
        axes.annotate(f"rank {rank}", low, xytext=(4, -12), textcoords="offset points", fontsize=8, bbox=box)
    axes.figure.savefig(file, dpi=120)
