"""What PyTorch's symmetric memory is measured by, as far as that needs no PyTorch: cases, turns, and its place beside
the results of tasuki-bench."""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import collective_tables  # noqa: E402
import tables  # noqa: E402
import torch_collectives as torch_bench  # noqa: E402
from torch_collectives import Case, Contender, Launch  # noqa: E402

RESULTS = Path(__file__).resolve().parents[2] / "bench" / "results"


def times(us: float) -> dict:
    return {"median_us": us, "p10_us": us, "p90_us": us}


def case(name: str, peers: dict, ratios: dict | None = None) -> dict:
    found = {"group": "gpu-collectives", "case": name, "bytes": 64, "failed": [], "ratios": ratios or {}}
    return found | {"peers": {peer: times(us) for peer, us in peers.items()}}


class Cases(unittest.TestCase):
    def test_they_are_those_of_the_driver(self):
        measured = json.loads((RESULTS / "collectives-gpu-2.json").read_text())
        ranks = measured["machine"]["ranks"]
        own = {c.name: c.arrives for c in torch_bench.cases(ranks, "", quick=False)}
        driver = {c["case"]: c["bytes"] for c in measured["cases"] if c["group"] == torch_bench.GROUP}
        self.assertEqual({name: own.get(name) for name in driver}, driver)
        self.assertEqual(len(own), 6 * 5)

    def test_a_text_and_quick_leave_cases_out(self):
        names = [c.name for c in torch_bench.cases(2, "reduce_", quick=True)]
        self.assertEqual(names, ["reduce_scatter 64 B", "reduce_scatter 64 KiB"])

    def test_blocks_share_the_buffer_evenly(self):
        three = Case("allgather", 64, 3)
        self.assertEqual((three.count, three.block, three.gives), (15, 5, 5))
        self.assertEqual(Case("allreduce", 64, 3).gives, 15)


class Launching(unittest.TestCase):
    def test_both_launchers_are_known(self):
        open_mpi = {"RANK": "5", "SIZE": "8", "LOCAL_RANK": "1", "LOCAL_SIZE": "4"}
        given = {f"OMPI_COMM_WORLD_{name}": value for name, value in open_mpi.items()}
        self.assertEqual(Launch.of(given), Launch(5, 8, 1, 4))
        given = {"PMI_RANK": "5", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "4"}
        self.assertEqual(Launch.of(given), Launch(5, 8, 1, 4))
        self.assertEqual(Launch.of({}), Launch(0, 1, 0, 1))

    def results(self, **environment: str) -> tuple[int, dict, str]:
        said = io.StringIO()
        with (
            tempfile.TemporaryDirectory() as folder,
            mock.patch.dict(os.environ, environment),
            mock.patch.dict(sys.modules, {"torch": None}),  # as if it were not there
            mock.patch.object(sys, "argv", ["torch_collectives.py", "--json", f"{folder}/a.json"]),
            contextlib.redirect_stderr(said),
            contextlib.redirect_stdout(said),
        ):
            status = torch_bench.main()
            return status, json.loads((Path(folder) / "a.json").read_text()), said.getvalue()

    def test_without_pytorch_the_file_says_so(self):
        status, results, said = self.results()
        self.assertEqual((status, results["cases"]), (0, []))
        self.assertRegex(results["left_out"][0], "^PyTorch's symmetric memory: PyTorch is not in ")
        self.assertIn(f"left out: {results['left_out'][0]}\n", said)

    def test_ranks_on_several_hosts_are_left_out(self):
        _, results, _ = self.results(OMPI_COMM_WORLD_SIZE="2", OMPI_COMM_WORLD_LOCAL_SIZE="1", OMPI_COMM_WORLD_RANK="0")
        self.assertIn("the 2 ranks are on several hosts", results["left_out"][0])


class Turns(unittest.TestCase):
    def test_rounds_begin_with_another_peer_and_a_graph_counts_its_exchanges(self):
        order = []

        def contender(name: str, exchanges: int) -> Contender:
            def seconds(iterations: int) -> float:
                order.append(name)
                return iterations * 50e-6

            return Contender(name, seconds, 0.001, exchanges)

        both = [contender("torch a", 1), contender("torch a graph", 10)]
        for one in both:
            torch_bench.calibrate(one, 0.02)
            self.assertEqual(one.iterations, 400)
        order.clear()
        torch_bench.interleave(both, 3)
        self.assertEqual([name.endswith("graph") for name in order], [False, True, True, False, False, True])
        found = torch_bench.report(Case("allreduce", 64, 2), both, [])
        self.assertAlmostEqual(found["peers"]["torch a"]["median_us"], 50)
        self.assertAlmostEqual(found["peers"]["torch a graph"]["median_us"], 5)
        self.assertEqual(found["peers"]["torch a graph"]["iterations"], 4000)
        self.assertAlmostEqual(found["peers"]["torch a"]["init_us"], 1000)

    def test_percentiles_lie_between_samples(self):
        self.assertEqual(torch_bench.percentile([4.0, 1.0, 3.0, 2.0], 0.5), 2.5)
        self.assertEqual(torch_bench.percentile([7.0], 0.9), 7.0)


class Merging(unittest.TestCase):
    def setUp(self):
        self.own = {
            "machine": {"gpu": "H", "gpus": "2"},
            "cases": [
                case("allreduce 64 B", {"tasuki": 4, "tasuki graph": 2, "nccl": 8}, {"nccl": 2.0}),
                case("allreduce 1 MiB", {"tasuki": 4}),
            ],
        }
        added = {"torch one shot": 6, "torch two shot": 5, "torch one shot graph": 3, "torch two shot graph": 5}
        self.torch = {
            "machine": {"pytorch": "2.11"},
            "left_out": ["reduce: none"],
            "cases": [case("allreduce 64 B", added)],
        }

    def test_peers_and_ratios_come_into_the_case_of_that_name(self):
        whole = torch_bench.merged(self.own, self.torch)
        first, second = whole["cases"]
        self.assertEqual(first["peers"]["torch two shot"], times(5))
        self.assertEqual(first["ratios"]["nccl"], 2.0)
        self.assertEqual(first["ratios"]["torch two shot"], 1.25)  # over tasuki
        self.assertEqual(first["ratios"]["torch one shot graph"], 1.5)  # over tasuki graph
        self.assertEqual(second, self.own["cases"][1])
        self.assertEqual((whole["machine"]["pytorch"], whole["left_out"]), ("2.11", ["reduce: none"]))
        again = torch_bench.merged(whole, self.torch)
        self.assertEqual(again, whole)

    def test_what_was_left_out_as_a_whole_changes_no_case(self):
        absent = {"machine": {}, "cases": [], "left_out": ["PyTorch's symmetric memory: not here"]}
        whole = torch_bench.merged(self.own, absent)
        self.assertEqual(whole["cases"], self.own["cases"])
        self.assertEqual(whole["machine"], self.own["machine"])

    def test_a_table_has_the_fastest_of_them(self):
        whole = torch_bench.merged(self.own, self.torch)
        text = tables.table("gpu-collectives", whole["cases"], whole["machine"])
        head, _, row, *_ = text.splitlines()
        self.assertEqual([c.strip() for c in head.split("|")][-3:-1], ["torch, µs", "torch graph, µs"])
        self.assertIn("| 5.00 two shot **×1.25** | 3.00 one shot **×1.50** |", row)
        self.assertIn("without NVLink multicast", text)

    def test_the_plot_has_its_line(self):
        for one in self.own["cases"]:
            one["peers"]["bound: copies graph"] = times(1)
            one["peers"].setdefault("tasuki graph", times(2))
        plot = collective_tables.gpu_plot(torch_bench.merged(self.own, self.torch))
        self.assertIn("PyTorch, symmetric, graph: 3 µs", plot)
        self.assertNotIn("NCCL", plot)  # no times of it in graphs


if __name__ == "__main__":
    unittest.main()
