#!/usr/bin/env python3
"""Writes machines/h200-2.json and h200-4.json from the benchmark results of these machines.

Latency is the time of 8 bytes, bandwidth that of 512 KiB beyond them (at most four times the bulk's, for launching a
kernel may hide all of it), bulk_bandwidth that of 256 MiB beyond 512 KiB,
and per_run what the strided face of 512^3 takes longer than the contiguous one; mutual ones are of both ways at once
(of a ring, on 4 GPUs). The results have no `peer:eager`: it is assumed to have the latency of `peer:put`, which signals
as it does, and the rest of `peer:ll`, which packs as it does. Nor have they `peer:pull`: it is assumed to be
`peer:put` whose loads have to come back. Where all GPUs load from each other, the requests take a ninth of the links
(reduce-scatters of 16 and 256 MiB, both ways: 320 GB/s where stores reach 361). They have no `mpi:staged` and no host
memory, which stay without prices.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SMALL, LARGE, BULK = 8, 512 << 10, 256 << 20
FACE_RUNS = 512 * 512  # elements of the strided face of 512^3
LEAST_RUN = 1e-12  # seconds
MOST = 4  # times the bulk's bandwidth: launching a kernel may hide what 512 KiB take
THERE = 0.8e-6  # seconds from one GPU to another
LOADED = 320 / 361  # what loads in both directions reach of what stores do
BOTH_WAYS = ("mutual_bandwidth", "mutual_bulk_bandwidth")
PATHS = {"peer:put": "tasuki peer:put", "peer:ll": "tasuki peer:ll", "peer:copy": "tasuki peer:copy",
         "nccl": "nccl"}  # fmt: skip


def seconds(results: dict, group: str, case: str, peer: str) -> float | None:
    names = (peer, peer.replace("peer:ll", "peer:stamped"))  # what results of before version 0.1 call it
    for entry in results["cases"]:
        for name in names:
            if entry["group"] == group and entry["case"] == case and name in entry["peers"]:
                return entry["peers"][name]["median_us"] * 1e-6
    return None


def rounded(value: float) -> float:
    return float(f"{value:.4g}")


def link(results: dict, peer: str, way: str, prefix: str) -> dict[str, float]:
    word, large, bulk = (seconds(results, "gpu-copy", f"{size} {way}", peer) for size in ("8 B", "512 KiB", "256 MiB"))
    bulk_bandwidth = (BULK - LARGE) / (bulk - large)
    least = LARGE / (MOST * bulk_bandwidth)
    return {
        prefix + "latency": rounded(word),
        prefix + "bandwidth": rounded((LARGE - SMALL) / max(large - word, least)),
        prefix + "bulk_bandwidth": rounded(bulk_bandwidth),
    }


def price(results: dict, peer: str, both: str) -> dict[str, float]:
    strided = seconds(results, "gpu-face", "512^3 f32 stride", peer)
    run = LEAST_RUN
    if strided is not None:  # copy engines take no strided face
        run = max((strided - seconds(results, "gpu-face", "512^3 f32 contiguous", peer)) / FACE_RUNS, LEAST_RUN)
    return {
        **link(results, peer, "one way", ""),
        "per_run": rounded(run),
        "bulk_from": LARGE,
        **link(results, peer, both, "mutual_"),
    }


def machine(name: str) -> dict:
    gpus = int(name.removeprefix("gpu-"))
    results = json.loads((ROOT / "bench" / "results" / f"{name}.json").read_text())
    ranks = results["machine"]["ranks"]
    both = "both ways" if ranks == 2 else "in a ring"
    paths = {path: price(results, peer, both) for path, peer in PATHS.items()}
    paths["peer:eager"] = paths["peer:ll"] | {key: paths["peer:put"][key] for key in ("latency", "mutual_latency")}
    there = {key: rounded(paths["peer:put"][key] + THERE) for key in ("latency", "mutual_latency")}
    loads = {key: rounded(value * LOADED) for key, value in paths["peer:put"].items() if key in BOTH_WAYS}
    paths["peer:pull"] = paths["peer:put"] | there | loads
    assumed = "peer:eager and peer:pull"
    inside = seconds(results, "gpu-copy", "1 GiB in one GPU's memory", "tasuki")
    paths["self:gpu"] = {"latency": 1e-6, "bandwidth": rounded((1 << 30) / inside), "per_run": LEAST_RUN}
    return {
        "tasuki_machine": 1,
        "name": f"h200-{gpus}",
        "source": f"measured: from bench/results/{name}.json by tools/machines.py; {assumed} are assumed",
        "cores": results["machine"]["cores"],
        "ranks": {"count": gpus, "per_host": gpus, "gpus": True},
        "paths": dict(sorted(paths.items())),
    }


def main() -> int:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "machines"
    for name in ("gpu-2", "gpu-4"):
        content = machine(name)
        (folder / f"{content['name']}.json").write_text(json.dumps(content, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
