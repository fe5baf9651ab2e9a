"""The tables and plots of collectives and of runs across hosts, from results that are made up."""

import json
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import collective_tables  # noqa: E402
import collectives_bench  # noqa: E402
import hosts_tables  # noqa: E402
import typed_tables  # noqa: E402
from tables import number, with_predictions  # noqa: E402


def case(kind: str, size: int, own: float, blocking: float, after: bool) -> dict:
    name = f"{size >> 10} KiB" if size >= 1024 else f"{size} B"
    form = "mpi_bcast" if kind == "broadcast" else "mpi_coll"
    peers = {"tasuki": own, form: blocking, form.replace("mpi_", "mpi_i"): 9.0, f"{form}_init": 8.0}
    found = {"group": "broadcast" if kind == "broadcast" else "collective", "bytes": size, "bound_us": 0.5}
    found["case"] = name if kind == "broadcast" else kind if kind == "barrier" else f"{kind} {name}"
    found["case"] += " after barrier" if after else ""
    if after:
        found["barrier_us"] = 1.0
    return found | {"peers": {peer: {"median_us": us} for peer, us in peers.items()}}


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.results = Path(folder.name)

    def filled(self, name: str, refreshed) -> str:
        end = name.partition(":")[0]
        text = f"before\n<!-- {name} -->\nstale\n<!-- /{end} -->\nafter\n"
        once = refreshed(text, self.results, number)
        self.assertNotIn("stale", once)
        self.assertEqual(once, refreshed(once, self.results, number))
        return once


class Collectives(Folder):
    def write(self, slow: float) -> None:
        cases = [{"group": "collective", "case": "start of scan 8 B", "bytes": 8, "peers": {}}]
        for after in (False, True):
            for kind in ("broadcast", "allreduce", "allgather", "alltoall", "barrier"):
                cases.append(case(kind, 8, 2.0, 2.5, after))
                if kind != "barrier":
                    cases += [case(kind, 4096, 2.0, slow, after), case(kind, 8192, 2.0, 7.0, after)]
        results = {"machine": {"cpu": "a & b", "cores": 2}, "cases": cases}
        (self.results / "collectives-mpich.json").write_text(json.dumps(results))

    def test_what_was_predicted_is_told_by_collective_and_size(self):
        cases = [
            case("scan", size, own, 1.0, False) for size, own in ((8, 1.0), (64, 4.0), (4096, 2.0), (16 << 20, 6.0))
        ]
        cases.append(case("broadcast", 1 << 20, 4.0, 1.0, True))  # less the barrier: 3
        for one in cases:
            one["peers"]["tasuki"]["predicted_us"] = 2.0
        cases.append(cases[0] | {"case": "start of scan 8 B", "bytes": 8})  # is no epoch
        results = {"machine": {"cores": 2}, "cases": cases}
        (self.results / "some.json").write_text(json.dumps(results))
        text = self.filled("predicted:some/collectives", lambda text, folder, _: with_predictions(text, folder))
        self.assertIn("| scan | 1.00 (0.50–2.00) |  | 3.00 (3.00–3.00) |", text)
        self.assertIn("| broadcast |  | 1.50 (1.50–1.50) |  |", text)

    def test_a_row_has_both_ways_beside_the_fastest_form(self):
        self.write(slow=4.0)
        text = self.filled("collectives:mpich", collective_tables.refreshed)
        row = "| allgather | 4 KiB | 2.00 | 4.00 blocking **×2.00** | 2.00 | 4.00 blocking **×2.00** | 1.00 | 0.50 |"
        self.assertIn(row, text)
        self.assertNotIn("8 KiB", text)  # not among the sizes shown
        self.assertNotIn("start of", text)

    def test_a_bar_is_met_or_not_by_the_smallest_ratio(self):
        self.write(slow=4.0)
        text = self.filled("collectives:bars", collective_tables.refreshed)
        self.assertIn("| MPICH | broadcast 1.25, allreduce 1.25, barrier 1.25 | yes |", text)
        self.assertIn("allgather 2.00 (4 KiB)", text)
        self.assertNotIn("**no**", text)
        self.write(slow=2.5)
        text = self.filled("collectives:bars", collective_tables.refreshed)
        self.assertIn("broadcast 1.25 (4 KiB), allreduce 1.25 (4 KiB)", text)
        self.assertEqual(text.count("**no**"), 2)  # less the barrier it is 1.5

    def test_a_file_that_is_not_there_leaves_its_place_empty(self):
        self.assertEqual(self.filled("collectives:openmpi", collective_tables.refreshed).count("\n"), 4)
        self.assertEqual(collective_tables.plots(self.results), {})

    def test_a_plot_has_a_panel_a_collective_with_lines_and_the_bound(self):
        self.write(slow=4.0)
        ((name, plot),) = collective_tables.plots(self.results).items()
        self.assertEqual(name, "collectives-mpich.svg")
        root = xml.fromstring(plot)
        texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
        self.assertEqual(
            [t for t in texts if t.endswith(", µs")],
            [f"{k}, µs" for k in ("broadcast", "allreduce", "allgather", "alltoall")],
        )
        self.assertIn("a & b", texts[0])
        self.assertEqual(plot.count("stroke-dasharray"), 4 + 1)  # and in the legend
        self.assertEqual(plot.count("<circle"), 4 * 4 * 3)

    def test_kinds_are_told_by_names(self):
        for kind in ("broadcast", "reduce_scatter", "barrier"):
            self.assertEqual(collectives_bench.kind_of(case(kind, 8, 1, 1, True)), kind)


class Hosts(Folder):
    def write(self) -> None:
        def row(**more) -> dict:
            return {"rate": "1gbit", **more}

        machine = {"himeno": {"cores": 2}, "halos": {"cores": 3}, "collectives": {"cores": 4}}
        results = {"machine": machine, "himeno": [], "halos": [], "collectives": []}
        for way, times in (("hybrid", [2.0, 1.0, 4.0]), ("network only", [3.0, 3.0, 5.0])):
            results["himeno"].append(row(size="S", way=way, us=times))
            results["halos"].append(row(case="four", way=way, us=times, said=1000.0, sent=[1010, 1020, 1030]))
        for name, times in (("hierarchical", [4.0]), ("ring", [6.0]), ("direct", [5.0])):
            more = dict(said=64, least=32, sent=[70], us=times, picked=name == "ring")
            results["collectives"].append(row(collective="allreduce", bytes=8, algorithm=name, **more))
        (self.results / "hosts.json").write_text(json.dumps(results))

    def test_hybrid_stands_beside_network_only(self):
        self.write()
        text = self.filled("hosts:himeno", hosts_tables.refreshed)
        self.assertIn("| 1 Gbit/s | S | 2.00 (1.00–4.00) | 3.00 (3.00–5.00) | **×1.50** |", text)
        self.assertIn("the rounds. cores 2.", text)
        text = self.filled("hosts:halos", hosts_tables.refreshed)
        self.assertIn("the rounds. cores 3.", text)
        self.assertIn("| **×1.50** | 1000 | 1020 (+2.0 %) | 1020 (+2.0 %) |", text)

    def test_hierarchical_stands_beside_the_fastest_flat_one(self):
        self.write()
        text = self.filled("hosts:collectives", hosts_tables.refreshed)
        self.assertIn(
            "| allreduce 8 B | 4.00 (4.00–4.00) | 5.00 (5.00–5.00) direct | **×1.25** | ring | 64 | 64 | 32 |", text
        )


class Typed(Folder):
    def test_the_fastest_of_the_runs_stands_beside_the_library(self):
        def ran(typed: float, resized: float) -> dict:
            text = f"case bytes\n1 KiB / 8 hvector 1024 {typed} 3.0 1.0\n1 KiB / 8 resized 1024 {resized} 3.5 1.0\n"
            return typed_tables.lines_of(text)

        cases = typed_tables.together([ran(9.0, 6.0), ran(8.0, 7.0)], [ran(2.0, 3.0), ran(4.0, 2.0)])
        results = {"mpi": "An MPI", "runs": 2, "messages": cases}
        (self.results / "typed-x.json").write_text(json.dumps(results))
        text = self.filled("typed:typed-x", typed_tables.refreshed)
        self.assertIn("| 1 KiB / 8 hvector | 1024 | 8.00 | 6.00 | 3.00 | 1.00 | **2.00** | 4.00 | 1.50 |", text)
        self.assertIn("MPI / library is 3.00 at least, 3.50 in the median", text)
        self.assertEqual(self.filled("typed:none", typed_tables.refreshed).count("|"), 0)

    def test_submatrices_stand_beside_their_floor_and_the_loop_that_follows(self):
        said = "m n z bytes lines read write MPI library by hand\n"
        warm = said + "4096 1 256 32768 8192 19.0 21.0 40.0 25.0 50.0 90.0 91.0 90.5 93.0\n"
        cold = said + "4096 1 256 32768 8192 66.0 65.0 90.0 75.0 120.0 90.0 97.0 99.0 89.0\n"
        found = {"warm": typed_tables.submatrices_of(warm), "cold": typed_tables.submatrices_of(cold)}
        (self.results / "typed-x.json").write_text(json.dumps({"submatrices": found}))
        text = self.filled("submatrices:typed-x", typed_tables.refreshed)
        row = "| 4096 x 1 of 4096 x 256 | warm | 32768 | 8192 | 21.0 | 40.0 | 50.0 | **25.0** | 1.60 | 2.00 | 90.0 |"
        self.assertIn(row + " +1.0 | +3.0 | +0.5 |", text)
        self.assertIn("| cold | 32768 | 8192 | 66.0 | 90.0 | 120 | **75.0** | 1.20 | 1.60 | 90.0 | +7.0 | -1.0 |", text)
        self.assertEqual(self.filled("typed:typed-x", typed_tables.refreshed).count("|"), 0)


if __name__ == "__main__":
    unittest.main()
