"""Making an Exchange of scattered ghosts: seconds, and how much memory it takes at most and afterwards.

    tasuki run -n 2 bench/exchange_making.py [--ghosts 1000000] [--levels 1] [--times 3]

Each rank has as many ghosts, from the ranks beside it, and as many cells to send, all in a random order. Memory is that
of the process beyond what it had before, as Linux counts it (VmHWM, VmRSS), with MPI's own. It is shown in multiples of
the lists of cells, 16 bytes a ghost, which come on top. On Linux only.
"""

from __future__ import annotations

import argparse
import gc
import time

import numpy as np

import tasuki


def status(key: str) -> int:
    """Bytes, by the line of /proc/self/status."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


def forget_peak() -> None:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def lists(context: tasuki.Context, ghosts: int) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Half from the rank before, half from the one after; the cells lie anywhere among three times as many."""
    rng = np.random.default_rng(context.rank)
    cells = rng.permutation(3 * ghosts)
    received, sent = cells[:ghosts], cells[ghosts : 2 * ghosts]
    after, before = (context.rank + 1) % context.size, (context.rank - 1) % context.size
    half = ghosts // 2
    if before == after:
        return [(after, sent, received)]
    return [(after, sent[:half], received[: ghosts - half]), (before, sent[half:], received[ghosts - half :])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ghosts", type=int, default=1_000_000)
    parser.add_argument("--levels", type=int, default=1)
    parser.add_argument("--times", type=int, default=3)
    asked = parser.parse_args()
    context = tasuki.Context()
    u = np.ones((3 * asked.ghosts, asked.levels))
    entries = lists(context, asked.ghosts)
    given = sum(sent.nbytes + received.nbytes for _, sent, received in entries)
    if context.rank == 0:
        print(
            f"{asked.ghosts} ghosts a rank, {context.size} ranks, {asked.levels} levels; lists of {given / 1e6:.1f} MB"
        )
        print("seconds  of a core   at most, MB  x lists   made, MB  x lists   freed, MB")
    for _ in range(asked.times):
        gc.collect()
        forget_peak()
        before, began, used = status("VmRSS"), time.perf_counter(), time.process_time()
        exchange = tasuki.Exchange(context, u, entries)
        seconds, cpu = time.perf_counter() - began, time.process_time() - used
        peak, made = status("VmHWM") - before, status("VmRSS") - before
        exchange.free()
        del exchange
        freed = status("VmRSS") - before
        if context.rank == 0:
            print(f"{seconds:7.3f} {cpu:10.3f} {peak / 1e6:13.1f} {peak / given:8.2f} {made / 1e6:10.1f} "
                  f"{made / given:8.2f} {freed / 1e6:11.1f}", flush=True)  # fmt: skip


main()
