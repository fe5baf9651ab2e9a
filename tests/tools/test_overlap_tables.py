"""The tables of overlap, from results that are made up."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import overlap_tables  # noqa: E402
from tables import number  # noqa: E402

PLACE = "before\n<!-- overlap:gpu-2/gpu-overlap -->\nold\n<!-- /overlap -->\nafter\n"


def peer(percent: float) -> dict:
    times = {"pure_us": 50.1, "compute_us": 50.6, "overall_us": 53.15, "start_us": 1}
    return {"median_us": 50, "overlap": {"percent": percent, **times}}


class OverlapTables(unittest.TestCase):
    def filled(self, cases: list[dict]) -> str:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "gpu-2.json").write_text(json.dumps({"machine": {"gpus": 2}, "cases": cases}))
            once = overlap_tables.refreshed(PLACE, Path(folder), number)
            self.assertEqual(once, overlap_tables.refreshed(once, Path(folder), number))
            self.assertNotIn("old\n", once)
            return once

    def test_a_row_has_every_peer_with_its_times(self):
        first = {"nccl graph": peer(70), "tasuki": peer(80), "tasuki graph": peer(94.91)}
        text = self.filled(
            [
                {"group": "gpu-overlap", "case": "broadcast 16 MiB", "peers": first},
                {"group": "gpu-overlap", "case": "allreduce 16 MiB", "peers": {"tasuki graph": peer(100)}},
                {"group": "gpu-collectives", "case": "allreduce 16 MiB", "peers": {"tasuki": {"median_us": 3}}},
            ]
        )
        self.assertIn("µs) | tasuki graph | tasuki | nccl graph |", text)
        self.assertIn("| broadcast 16 MiB | **94.9** (50.1 / 50.6 / 53.1) | **80.0** (", text)
        self.assertIn("| allreduce 16 MiB | **100.0** (50.1 / 50.6 / 53.1) | – | – |", text)
        self.assertEqual(text.count("allreduce"), 1)
        self.assertIn("gpus 2.", text)

    def test_without_the_file_or_the_group_the_place_is_empty(self):
        empty = PLACE.replace("old\n", "")
        self.assertEqual(self.filled([{"group": "gpu-halo", "case": "a", "peers": {"tasuki": peer(1)}}]), empty)
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(overlap_tables.refreshed(PLACE, Path(folder), number), empty)


if __name__ == "__main__":
    unittest.main()
