"""The record of how many cases each launch runs (tools/cases.py)."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import cases  # noqa: E402


def launch(number, name, output, verdict="Passed"):
    return f"""{number}/9 Testing: {name}
{number}/9 Test: {name}
Command: "/usr/bin/python3" "mpirun.py"
Directory: /tests
"{name}" start time: Nov 27 18:02 UTC
Output:
----------------------------------------------------------
{output}
<end of output>
Test time =   1.00 sec
----------------------------------------------------------
Test {verdict}.
"{name}" end time: Nov 27 18:02 UTC
"{name}" time elapsed: 00:00:01
----------------------------------------------------------

"""


LOG = "Start testing: Nov 27 18:02 UTC\n" + "".join(
    (
        launch(
            1, "ranks_2", "[doctest] test cases:  41 |  41 passed | 0 failed | 5 skipped\n[doctest] Status: SUCCESS!"
        ),
        launch(2, "python", "......\n123 passed, 2 skipped in 3.21s"),
        launch(3, "tools", "....\nRan 17 tests in 0.5s\n\nOK"),
        launch(4, "docs_blocks", ""),
        launch(5, "gpu_2", "SKIPPED: no GPU", "Skipped"),
        launch(6, "ranks_3", "[doctest] test cases:  46 |  45 passed | 1 failed | 0 skipped", "Failed"),
    )
)


class Cases(unittest.TestCase):
    def test_each_kind_of_launch_is_counted(self):
        expected = {"ranks_2": 41, "python": 123, "tools": 17, "docs_blocks": 1}
        self.assertEqual(cases.counts_of(LOG), expected)

    def test_fewer_cases_than_recorded_are_a_failure_and_more_are_not(self):
        record = cases.read_record("# head\nrelease ranks_2 42\nrelease tools 16\nmpich python 500\n")
        found = cases.complaints("release", cases.counts_of(LOG), record, every=True)
        self.assertEqual(found, ["ranks_2 ran 41 cases; the record has 42"])

    def test_a_launch_that_did_not_run_is_a_failure_where_every_launch_must(self):
        record = cases.read_record("release ranks_4 12\nrelease ranks_3 46\n")
        self.assertEqual(cases.complaints("release", cases.counts_of(LOG), record, every=False), [])
        self.assertEqual(len(cases.complaints("release", cases.counts_of(LOG), record, every=True)), 2)


if __name__ == "__main__":
    unittest.main()
