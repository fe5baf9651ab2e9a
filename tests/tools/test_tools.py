"""The scripts of tools/ that others' files pass through: tables, the README's example, the launcher's choices."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import doc_blocks  # noqa: E402
import gpu  # noqa: E402
import hosts  # noqa: E402
import mpirun  # noqa: E402
import overview  # noqa: E402
import readme_example  # noqa: E402
import rooms  # noqa: E402
import tables  # noqa: E402

RESULTS = """{"machine": {"cores": 2}, "cases": [
  {"group": "halo", "case": "64^3 w1", "peers": {
     "tasuki": {"median_us": 10, "p10_us": 9.5, "p90_us": 123.4},
     "mpi": {"median_us": 23, "p10_us": 22, "p90_us": 25}}, "ratios": {"mpi": 2.3}},
  {"group": "halo", "case": "8^3", "peers": {"tasuki": {"median_us": 1, "p10_us": 1, "p90_us": 1}}, "ratios": {}}]}"""


class Tables(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.results = Path(self.folder.name)
        (self.results / "cpu.json").write_text(RESULTS)

    def test_a_marked_place_is_filled_and_filling_it_again_changes_nothing(self):
        known = tables.load_tables(self.results)
        text = "before\n<!-- table:halo -->\nold\n<!-- /table -->\nafter\n"
        once = tables.refreshed(text, known, "README.md")
        self.assertIn("| 64^3 w1 | 10.0 (9.50–123) | 23.0 **×2.30** |", once)
        self.assertIn("| 8^3 | 1.00 (1.00–1.00) | – |", once)
        self.assertIn("cores 2", once)
        self.assertNotIn("old", once)
        self.assertTrue(once.startswith("before\n") and once.endswith("<!-- /table -->\nafter\n"))
        self.assertEqual(once, tables.refreshed(once, known, "README.md"))

    def test_a_table_of_himeno_has_a_row_for_each_run(self):
        run = {"size": "S", "split": "2x1x1", "engine": "graph", "overlap": True, "seconds_per_iteration": 9.6e-6}
        run |= {"gflops": 1720.4, "compute_us": 5.4, "exchange_us": 6.4, "exposed_us": 4.2, "verified": True}
        (self.results / "himeno-gpu-2.json").write_text(json.dumps({"machine": {"gpus": 2}, "runs": [run]}))
        self.assertNotIn("himeno-gpu-2", " ".join(tables.load_tables(self.results)))
        text = tables.with_runs("<!-- himeno:gpu-2 -->\nold\n<!-- /himeno -->\n", self.results)
        self.assertIn("| S | 2x1x1 | graph | on | 9.60 | 1720 | 5.40 | 6.40 | 4.20 | every bit as in", text)
        self.assertNotIn("old", text)
        (self.results / "laplace-gpu-2.json").write_text(json.dumps({"machine": {}, "runs": [run | {"size": "8192"}]}))
        both = "<!-- laplace:gpu-2 -->\n<!-- /laplace -->\n<!-- himeno:gpu-2 -->\n<!-- /himeno -->\n"
        text = tables.with_runs(both, self.results)
        self.assertEqual((text.count("| 8192 | 2x1x1 |"), text.count("| S | 2x1x1 |")), (1, 1))
        self.assertEqual(text, tables.with_runs(text, self.results))
        self.assertEqual(
            tables.with_runs("<!-- himeno:gpu-4 -->\nold\n<!-- /himeno -->\n", self.results),
            "<!-- himeno:gpu-4 -->\n<!-- /himeno -->\n",
        )

    def test_a_summary_has_a_row_for_each_size(self):
        run = {"size": "S", "engine": "graph", "overlap": True, "communicate": True, "verified": None}
        ideal = {"overlap": False, "communicate": False}
        runs = [
            run | {"ranks": ranks, "seconds_per_iteration": seconds} | more
            for ranks, seconds, more in [
                (1, 40e-6, {}),
                (4, 99e-6, {"engine": "stream"}),
                (4, 98e-6, {"verified": True}),
                (4, 97e-6, {"island": 2}),
                (4, 12.5e-6, {}),
                (4, 10e-6, ideal),
            ]
        ]
        (self.results / "himeno-gpu-4.json").write_text(json.dumps({"machine": {}, "runs": runs}))
        text = tables.with_runs("<!-- himeno:gpu-4/summary -->\n<!-- /himeno -->\n", self.results)
        self.assertIn("| S | 40.0 | 12.5 | 3.20 | 10.0 | 25.0 % |", text)

    def test_a_text_selects_cases_and_a_file_that_is_not_there_gives_an_empty_place(self):
        known = tables.load_tables(self.results)
        text = "<!-- table:cpu/halo/64^3 -->\n<!-- /table -->\n<!-- table:gpu-4/gpu-halo -->\nold\n<!-- /table -->\n"
        once = tables.refreshed(text, known, "README.md")
        self.assertIn("| 64^3 w1 |", once)
        self.assertNotIn("| 8^3 |", once)
        self.assertTrue(once.endswith("<!-- table:gpu-4/gpu-halo -->\n<!-- /table -->\n"))
        with self.assertRaisesRegex(SystemExit, "cpu/halo/32"):
            tables.refreshed("<!-- table:cpu/halo/32 -->\n<!-- /table -->", known, "README.md")

    def test_an_unknown_or_ambiguous_name_is_an_error(self):
        (self.results / "gpu.json").write_text(RESULTS)
        known = tables.load_tables(self.results)
        for name in ("halo", "nothing"):
            with self.assertRaisesRegex(SystemExit, f"'{name}'.*cpu/halo, gpu/halo"):
                tables.refreshed(f"<!-- table:{name} -->\n<!-- /table -->", known, "README.md")

    def test_what_must_be_known_of_a_peer_stands_below_tables_that_have_it(self):
        case = {"case": "a", "peers": {"nvshmem": {"median_us": 2}}, "ratios": {}}
        self.assertIn("host library", tables.table("g", [case], {}))
        self.assertNotIn("host library", tables.table("g", [case | {"peers": {}}], {}))


class Overview(unittest.TestCase):
    def test_its_table_and_plot_are_of_the_results(self):
        folder = Path(__file__).resolve().parents[2] / "bench" / "results"
        rows = overview.rows_of(folder)
        self.assertEqual(len(rows), len(overview.CASES))
        for row in rows:
            self.assertTrue(row.own > 0 and row.others)
            self.assertFalse([peer for peer in row.others if peer.startswith("tasuki") or peer.endswith(" graph")])
        text = overview.refreshed("a\n<!-- overview -->\nold\n<!-- /overview -->\nb\n", folder, tables.number)
        self.assertNotIn("old", text)
        self.assertEqual(text, overview.refreshed(text, folder, tables.number))
        first = rows[0]
        peer = min(first.others, key=first.others.get)
        ratio = tables.number(first.others[peer] / first.own)
        self.assertIn(f"({peer}) | **{ratio}** |", text.splitlines()[4])
        picture = overview.plot(folder)
        self.assertEqual(
            picture.count("<circle"),
            sum(len(row.others) for row in rows) + len({peer for row in rows for peer in row.others}),
        )

    def test_files_that_are_not_there_leave_their_rows_out_and_a_missing_case_is_an_error(self):
        with tempfile.TemporaryDirectory() as name:
            self.assertEqual(overview.rows_of(Path(name)), [])
            (Path(name) / "cpu.json").write_text(RESULTS)
            with self.assertRaisesRegex(SystemExit, "no times of tasuki for case '64\\^3 w1 split 2x1x1'"):
                overview.rows_of(Path(name))


class ReadmeExample(unittest.TestCase):
    def test_the_first_block_is_taken_and_lines_lead_back(self):
        page = "text\n```cpp\nint a;\n```\n```cpp\nint b;\n```\n"
        block = readme_example.block(page, "README.md")
        self.assertEqual(block, '#line 3 "README.md"\nint a;\n')
        self.assertEqual(readme_example.block(page, "README.md", 2), '#line 6 "README.md"\nint b;\n')

    def test_no_block_is_an_error(self):
        with self.assertRaisesRegex(SystemExit, "no ```cpp block"):
            readme_example.block("text", "README.md")


class DocBlocks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = Path(self.folder.name)
        self.page = self.root / "page.md"
        self.page.write_text("one\n```c\nint main(void) {\n}\n```\n```c\n  f(1);\n```\n```text\nout\n```\n")

    def test_programs_are_written_with_lines_that_lead_back(self):
        doc_blocks.write_programs(self.page, self.root / "out")
        self.assertEqual([f.name for f in (self.root / "out").iterdir()], ["page_1.c"])
        text = (self.root / "out" / "page_1.c").read_text()
        self.assertEqual(text, f'#line 3 "{self.page}"\nint main(void) {{\n}}\n')

    def test_other_blocks_must_stand_in_a_tested_file(self):
        tested = self.root / "tested.c"
        tested.write_text("void g(void) {\n    f(1);\n}\n")
        self.assertEqual(list(doc_blocks.untested(self.page, [tested])), [])
        tested.write_text("f(2);\n")
        self.assertIn("page.md:7: this c block", next(doc_blocks.untested(self.page, [tested])))

    def test_blocks_that_are_files_are_written_and_must_be_those_expected(self):
        self.page.write_text("```cpp\n// src/a/b.cpp\nint b;\n```\n```cpp\n// include/c.hpp\nint c;\n```\n")
        out = self.root / "out"
        doc_blocks.write_files(self.page, out, ["include/c.hpp", "src/a/b.cpp"])
        self.assertEqual((out / "src/a/b.cpp").read_text(), f'#line 2 "{self.page}"\n// src/a/b.cpp\nint b;\n')
        with self.assertRaisesRegex(SystemExit, "expects .'src/a/b.cpp'"):
            doc_blocks.write_files(self.page, out, ["src/a/b.cpp"])
        self.page.write_text("```cpp\nint b;\n```\n")
        with self.assertRaisesRegex(SystemExit, "page.md:2: the first line"):
            doc_blocks.write_files(self.page, out, [])


class Rooms(unittest.TestCase):
    def test_the_package_and_the_apps_include_what_is_public(self):
        self.assertEqual(list(rooms.private_includes(Path(__file__).resolve().parents[2])), [])

    def test_what_is_private_is_found(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "python" / "bindings"
            folder.mkdir(parents=True)
            (folder / "own.hpp").write_text("")
            (folder / "a.cpp").write_text('#include "own.hpp"\n#include "tasuki/grid.hpp"\n#include "memory/gpu.hpp"\n')
            found = list(rooms.private_includes(Path(name)))
            self.assertEqual(len(found), 1)
            self.assertIn("a.cpp:3: includes memory/gpu.hpp", found[0])

    def test_edges_that_go_back_are_found(self):
        with tempfile.TemporaryDirectory() as name:
            source = Path(name) / "src"
            for room in ("plan", "session", "kernels"):
                (source / room).mkdir(parents=True)
            (source / "session" / "a.hpp").write_text("class Outer::A final : public B {\n  void f();\n};\n")
            (source / "session" / "a.cpp").write_text("void Outer::A::f() {}\n")
            (source / "kernels" / "b.cpp").write_text("\nstd::string Outer::A::f() {}\n  Outer::A::f();\n")
            (source / "plan" / "c.cpp").write_text('#include "session/a.hpp"\n#include <thread>\n')
            found = sorted(rooms.complaints(Path(name)))
            self.assertEqual(len(found), 3, found)
            self.assertIn("kernels/b.cpp:2: room kernels defines a member of Outer::A, which is a class of", found[0])
            self.assertIn("plan/c.cpp:1: room plan includes session/, which comes after it", found[1])
            self.assertIn("plan/c.cpp:2: pure room plan knows the machine", found[2])


class Sanitizer(unittest.TestCase):
    def test_what_it_says_at_the_end_is_kept(self):
        output = "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n========= at kernel\nother\n"
        said = ["compute-sanitizer racecheck: RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)"]
        self.assertEqual(gpu.sanitizer_lines("racecheck", output), said)
        self.assertEqual(gpu.sanitizer_lines("memcheck", "stopped after 300 s\n"), [])


class Version(unittest.TestCase):
    def test_every_file_that_has_it_has_that_of_the_header(self):
        root = Path(__file__).resolve().parents[2]
        numbers = re.findall(r"define TASUKI_VERSION_[A-Z]+ (\d+)", (root / "include/tasuki/version.h").read_text())
        version = ".".join(numbers)
        self.assertEqual(len(numbers), 3)
        self.assertIn(f'\nversion = "{version}"\n', (root / "pyproject.toml").read_text())
        self.assertIn(f"\nversion: {version}\n", (root / "CITATION.cff").read_text())
        self.assertIn(f"\n## {version} ", (root / "CHANGELOG.md").read_text())


class CoresOfHosts(unittest.TestCase):
    def test_every_core_is_of_one_host_unless_there_are_fewer_than_hosts(self):
        for cores, count in (([0, 1], 2), ([1, 4, 5, 7, 9], 3), (list(range(8)), 1)):
            shares = [hosts.share_of(cores, host, count) for host in range(count)]
            self.assertEqual(sorted(sum(shares, [])), cores)
            self.assertTrue(all(shares))
        few = [hosts.share_of([3, 8], host, 5) for host in range(5)]
        self.assertTrue(all(len(share) == 1 for share in few))
        self.assertEqual({share[0] for share in few}, {3, 8})


class Launcher(unittest.TestCase):
    def test_the_build_folder_around_a_program_names_the_launcher(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "CMakeCache.txt").write_text("A:STRING=1\nMPIEXEC_EXECUTABLE:FILEPATH=/some/mpirun\n")
            self.assertEqual(mpirun.launcher_of(f"{folder}/bin/program"), "/some/mpirun")

    def test_a_program_elsewhere_is_started_by_what_set_up_chose_or_what_is_on_path(self):
        with tempfile.TemporaryDirectory() as name, unittest.mock.patch.dict(os.environ) as _:
            folder = Path(name)
            os.environ.pop("TASUKI_MPIEXEC", None)
            for launcher in ("chosen", "mpirun", "named"):
                (folder / launcher).write_text("#!/bin/sh\n")
                (folder / launcher).chmod(0o755)
            os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
            self.assertEqual(mpirun.launcher_of(sys.executable, folder), str(folder / "mpirun"))
            (folder / ".deps").mkdir()
            (folder / ".deps" / "mpi").write_text(f"{folder}/mpicc\n{folder}/chosen\n")
            self.assertEqual(mpirun.launcher_of(sys.executable, folder), str(folder / "chosen"))
            os.environ["TASUKI_MPIEXEC"] = str(folder / "named")
            self.assertEqual(mpirun.launcher_of(sys.executable, folder), str(folder / "named"))

    def test_a_program_elsewhere_without_any_launcher_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, PATH=folder):
            os.environ.pop("TASUKI_MPIEXEC", None)
            with self.assertRaisesRegex(mpirun.LaunchError, "no mpirun is on PATH; name the launcher with --mpiexec"):
                mpirun.launcher_of(f"{folder}/program")
            os.environ["TASUKI_MPIEXEC"] = f"{folder}/gone"
            with self.assertRaisesRegex(mpirun.LaunchError, "gone cannot be executed"):
                mpirun.launcher_of(f"{folder}/program")

    def test_a_launcher_that_cannot_tell_its_version_is_one_line(self):
        command = [sys.executable, Path(mpirun.__file__), "--mpiexec", shutil.which("false"), "-n", "1", sys.executable]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertRegex(run.stderr, r"^mpirun.py: `.*false --version` ended with status 1: .*\n$")


if __name__ == "__main__":
    unittest.main()
