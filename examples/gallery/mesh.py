"""A mesh without order: which rank owns which cell, and which cells rank 0 has as ghosts, after an exchange.

    tasuki run -n 5 examples/gallery/mesh.py --picture mesh.png

Every cell gets the mean of itself and those beside it, so often that what one rank began with reaches all others. The
result is checked, bit for bit, against the same steps on the whole mesh with NumPy.
"""

import numpy as np
from pictures import axes_of, options

import tasuki
from tasuki.meshes import wavy_mesh

SIDE = 40


def beside(cells):
    """The four cells beside each one, and itself where the mesh ends, as global numbers."""
    row, column = np.divmod(cells, SIDE)
    near = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
    inside = [(r >= 0) & (r < SIDE) & (c >= 0) & (c < SIDE) for r, c in near]
    return np.stack([np.where(ok, r * SIDE + c, cells) for (r, c), ok in zip(near, inside, strict=True)])


def step(old, cells, near):
    return 0.2 * (old[cells] + ((old[near[0]] + old[near[1]]) + (old[near[2]] + old[near[3]])))


def start_values(cells):
    return np.where((cells % SIDE < 12) & (cells // SIDE < 12), 1.0, 0.0)


def serial(steps):
    cells = np.arange(SIDE * SIDE)
    values = start_values(cells)
    for _ in range(steps):
        values = step(values, cells, beside(cells))
    return values


def draw(file, values, owners, ghosts):
    axes = axes_of("values, ranks' borders, and rank 0's ghosts")
    square = (SIDE, SIDE)
    image = axes.imshow(values.reshape(square), cmap="magma", interpolation="nearest")
    axes.figure.colorbar(image, ax=axes, shrink=0.85)
    for rank in range(owners.max() + 1):
        mine = (owners == rank).reshape(square)
        axes.contour(mine, [0.5], colors="white", linewidths=0.8)
        at = np.argwhere(mine).mean(0)
        axes.annotate(f"rank {rank}", at[::-1], color="white", fontsize=8, ha="center")
    axes.plot(ghosts % SIDE, ghosts // SIDE, "c.", ms=3)
    axes.figure.savefig(file, dpi=120)


def main():
    asked = options(__doc__.splitlines()[0], steps=150)
    context = tasuki.Context()
    parts = wavy_mesh(SIDE, context.size)
    part = parts[context.rank]
    count = len(part.owned)
    here = np.full(SIDE * SIDE, -1)
    here[np.concatenate([part.owned, part.ghosts])] = np.arange(part.cells)
    near = here[beside(part.owned)]  # numbers of this rank
    values = tasuki.shared_array(context, (part.cells,))
    values[:count] = start_values(part.owned)
    exchange = tasuki.Exchange.of_numbers(context, values, part.owned, part.ghosts)
    for _ in range(asked.steps):
        exchange.run()
        values[:count] = step(values, np.arange(count), near)
    counts = [len(each.owned) for each in parts]
    gathered = np.empty(SIDE * SIDE) if context.rank == 0 else None
    tasuki.Gather(context, values[:count], gathered, counts=counts).run()
    if context.rank == 0:
        numbers = np.concatenate([each.owned for each in parts])
        whole, owners = np.empty(SIDE * SIDE), np.empty(SIDE * SIDE, int)
        whole[numbers], owners[numbers] = gathered, np.repeat(np.arange(context.size), counts)
        same = np.array_equal(whole, serial(asked.steps))
        says = "equal" if same else "NOT equal"
        print(f"mesh after {asked.steps} steps on {context.size} ranks: {says} to the serial run")
        if asked.picture:
            draw(asked.picture, whole, owners, part.ghosts)


main()
