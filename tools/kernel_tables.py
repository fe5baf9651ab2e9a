"""Tables of bench/results/kernels-*.txt: what tasuki-bench-kernel has printed.

`<!-- kernels:FILE/PART/TABLE -->` ... `<!-- /kernels -->` is filled from part PART (counted from 1; each begins with a
line of words) of bench/results/kernels-FILE.txt, with the rows that TABLE names: `primitives`, `peers`, `messages`,
`halos` or `large`.
"""

from __future__ import annotations

import re
from pathlib import Path

MARKED = re.compile(r"(<!-- kernels:(?P<file>[\w-]+)/(?P<part>\d+)/(?P<table>\w+) -->\n).*?(<!-- /kernels -->)", re.S)
ROW = re.compile(r"(?P<case>\S.*?) +(?P<bytes>\d+) B +(?P<by>alone|host|\d+ (?:blocks|x \d+)) +(?P<us>[\d.]+) us ")
# Rows of a table: what is said, and each figure's case, bytes and blocks; those that are not in the part are left out.
TABLES: dict[str, list] = {
    "primitives": [
        ("a line by raw loads and stores, the floor", [("floor: a line", 8, 1)]),
        ("8 B in a word, with arrival", [("put_word", 8, 1)]),
        ("the same by a warp; by a thread", [("put_word by a warp", 8, 1), ("put_word by a thread", 8, 1)]),
        ("packet of 8 B; 4 KiB; 64 KiB", [("put_packet", 8, 1), ("put_packet", 4096, 16), ("put_packet", 65536, 16)]),
        (
            "put with signal, 8 B; 64 KiB; 1 MiB",
            [("put_with_signal", 8, 1), ("put_with_signal", 65536, 16), ("put_with_signal", 1 << 20, 16)],
        ),
        ("barrier of one block of each rank; of all blocks", [("barrier", 0, 1), ("barrier of all blocks", 0, 16)]),
        ("allreduce; all-to-all of 8 B", [("allreduce", 8, 1), ("all_to_all", 8, 1)]),
        ("request to the host and back", [("request to the host and back", 8, 1)]),
    ],
    "peers": [
        (f"put with signal, {said}: {names}", [(case, size, blocks) for case in cases])
        for said, size, blocks in (
            *(("8 B", 8, 1), ("4 KiB", 4096, 16), ("64 KiB", 65536, 16)),
            *(("1 MiB", 1 << 20, 16), ("16 MiB", 1 << 24, 16)),
        )
        for names, cases in (
            ("raw stores and a flag; Tasuki", ("floor: data and flag", "put_with_signal")),
            ("NVSHMEM", ("NVSHMEM: put with signal",)),
        )
    ]
    + [
        (f"{said}: {who}", [(case, size, 1)])
        for said, own, others, size in (
            ("barrier of one block of each rank", "barrier", "barrier", 0),
            ("all-to-all of 8 B", "all_to_all", "all_to_all", 8),
        )
        for who, case in (("Tasuki", own), ("NVSHMEM", f"NVSHMEM: {others}"), ("NCCL", f"NCCL: {others}"))
    ],
    "messages": [
        (f"{name}, {size} B: posted before; unexpected", [(f"isend/irecv{kind} {how}", size, 1) for how in two])
        for size in (8, 64, 4096)
        for name, kind, two in (
            ("one group on each rank, a block", "", ("one group, posted", "one group, unexpected")),
            ("a warp", " by a warp,", ("one group, posted", "one group, unexpected")),
            ("a thread", " by a thread,", ("one group, posted", "one group, unexpected")),
            ("several groups, a block", "", ("posted", "unexpected")),
            ("a thread of several", " by a thread,", ("posted", "unexpected")),
        )
    ]
    + [
        (
            "through the host, 8 B; 64 KiB",
            [("isend/irecv through the host", 8, 1), ("isend/irecv through the host", 65536, 1)],
        )
    ],
    "halos": [
        (
            f"{said}{f', `{path}`' if path else ''}: by 1 block; 16; 64; by the host",
            [(f"{case}{f', {path}' if path else ''}", 16384, by) for by in (1, 16, 64, "host")],
        )
        for said, case in (
            ("one face of 16 KiB", "halo: one face"),
            ("64³ floats, periodic, with corners", "halo: 64^3 periodic with corners"),
        )
        for path in ("", "peer:eager", "peer:put")
    ]
    + [
        (
            "one face of 16 KiB, barrier-free: 4; 8; 16; 32",
            [("halo: one face, apart", 16384, blocks) for blocks in (4, 8, 16, 32)],
        ),
        (
            "64³ floats, periodic, with corners, barrier-free: 64; 64 of 512 threads; 128 of 512",
            [("halo: 64^3 periodic with corners, apart", 16384, blocks) for blocks in (64, "64 x 512", "128 x 512")],
        ),
    ]
    + [
        (
            f"one face of {size >> 10} KiB by MPI: by 16 blocks; by the host",
            [("halo by MPI: one face", size, 16), ("halo by MPI: one face", size, "host")],
        )
        for size in (65536, 262144, 1 << 20)
    ],
    "large": [
        (
            f"256³ floats, periodic, with corners{f', `{path}`' if path else ''}: by 16 blocks; 64; by the host",
            [
                (f"halo: 256^3 periodic with corners{f', {path}' if path else ''}", 1 << 18, by)
                for by in (16, 64, "host")
            ],
        )
        for path in ("", "peer:eager", "peer:put")
    ],
}


def results(called: str, machine: dict, printed: str) -> str:
    """A part: a line that says where it was measured, and what was left out of it, then the lines with times."""
    lines = printed.splitlines()
    facts = ", ".join(f"{name} {value}" for name, value in machine.items() if value)
    missing = "".join(f"; {line.strip()}" for line in lines if ": left out: " in line)
    title = (
        f"{called}: {facts}{missing}; one way, of halos an epoch; blocks x threads; median (10th to 90th percentile)"
    )
    return "\n".join([title, *(line for line in lines if ROW.match(line))]) + "\n"


def parts_of(text: str) -> list[tuple[str, dict[tuple, str]]]:
    """Each part's first line and its medians by case, bytes and blocks: `64` of 256 threads, or `64 x 512`."""
    parts: list[tuple[str, dict[tuple, str]]] = []
    for line in text.splitlines():
        if found := ROW.match(line):
            by: str | int = found["by"]
            if re.fullmatch(r"\d+ (blocks|x 256)", found["by"]):
                by = int(found["by"].split()[0])
            parts[-1][1].setdefault((found["case"].rstrip(), int(found["bytes"]), by), found["us"])
        elif line.strip():
            parts.append((line.strip(), {}))
    return parts


def table(title: str, medians: dict[tuple, str], wanted: list) -> list[str]:
    rows = []
    for said, figures in wanted:
        if all(figure in medians for figure in figures):
            blocks = [figure[2] for figure in figures]
            rows.append([said, "; ".join(map(str, blocks)), "; ".join(medians[figure] for figure in figures)])
    lines = [["", "blocks", "µs"], ["---", "---", "---"], *rows]
    return [*("| " + " | ".join(line) + " |" for line in lines), "", f"{title}.", ""]


def refreshed(text: str, folder: Path) -> str:
    def replace(match: re.Match) -> str:
        file = folder / f"kernels-{match['file']}.txt"
        if not file.exists():
            return match[1] + match[5]
        title, medians = parts_of(file.read_text())[int(match["part"]) - 1]
        return match[1] + "\n".join(table(title, medians, TABLES[match["table"]])) + match[5]

    return MARKED.sub(replace, text)
