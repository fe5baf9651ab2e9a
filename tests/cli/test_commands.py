"""Each command once as a user runs it, and what it says to input that is wrong."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

import tasuki as package

COMMANDS = [
    "himeno",
    "laplace",
    "run",
    "info",
    "tune",
    "explain",
    "plan",
    "predict",
    "verify",
    "bench",
    "plot",
    "trace",
]
COMMANDS.append("report")


def test_help_lists_every_command_and_each_has_json(tasuki):
    text = tasuki("--help")
    assert all(f"\n  {name} " in text for name in COMMANDS)
    for name in COMMANDS:
        options = tasuki(name, *["halo"] * (name in ("explain", "plan", "predict")), "--help")
        assert "--json" in options and "--debug" in options, name


@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
    [
        (["himen"], 2, "there is no command 'himen'; there are: himeno, laplace, run"),
        (["himeno", "-n", "0"], 2, "0 is not in the range x>=1"),
        (["himeno", "--overlap", "maybe"], 2, "'on', 'off', 'both'"),
        (["run", "nothing.py"], 1, "the script nothing.py is not there"),
        (["run", "no-such-program"], 1, "not an executable on PATH"),
        (["explain", "halo", "--extents", "3y"], 2, "'3y' is not like 64x64x128"),
        (["explain", "halo", "-n", "2", "--rank", "2"], 1, "there are ranks 0 to 1"),
        (["explain", "transfer", "--columns", "9", "--stride", "8"], 1, "rows would overlap"),
        (["plot", "nothing.json"], 1, "nothing.json: No such file"),
        (["explain", "halo", "--extents", "999999999999999999999x2"], 2, "with numbers from 1 to 9223372036854775807"),
        (["explain", "halo", "--rank", "-7"], 2, "-7 is not in the range x>=-1"),
        (["explain", "transfer", "--rows", "99999999999999999999"], 2, "is not in the range"),
        (["run", "--timeout", "inf", "himeno"], 2, "'inf' is not a number of seconds above 0"),
        (["trace", "--timeout", "nan", "himeno"], 2, "'nan' is not a number of seconds above 0"),
        (["trace", "-o", "/", "himeno"], 1, "this folder is not empty"),
    ],
)
def test_wrong_input_is_one_clear_line(tasuki, arguments, status, expected):
    assert expected in tasuki(*arguments, status=status)


@pytest.mark.parametrize(
    "arguments", [["himen"], ["run", "nothing.py"], ["explain", "halo", "--rank", "-7"], ["plot", "no.json"]]
)
def test_under_json_errors_are_json(finished, arguments):
    command, *rest = arguments
    done = finished(command, "--json", *rest) if len(arguments) < 3 else finished(*arguments, "--json")
    told = json.loads(done.stdout)
    assert set(told) == {"error", "status"} and told["status"] == done.returncode != 0
    assert done.stderr == f"tasuki: {told['error']}\n"


def test_a_programs_own_json_option_is_its_own(finished, tmp_path):
    done = finished("run", "no-such-program", "--json", tmp_path / "file")
    assert done.returncode == 1 and done.stdout == ""


@pytest.mark.parametrize(("app", "names"), [("himeno", "L = 256x256x512, LLX = "), ("laplace", "extents, boundary")])
def test_a_size_that_is_none_lists_the_names(tasuki, app, names):
    told = tasuki(app, "-n", 2, "--size", "Q", status=2)
    assert told.startswith("tasuki: ") and f"{app}: --size: there is no size 'Q'; give " in told and names in told
    assert "ended with status" not in told


@pytest.mark.parametrize("arguments", [[], ["explain"]])
def test_without_arguments_there_is_help(finished, arguments):
    done = finished(*arguments)
    assert done.returncode == 2 and done.stdout == "" and "tasuki: " not in done.stderr
    assert re.search(r"\nCommands:\n  (himeno|allgather) ", done.stderr)  # line by line


def test_the_version_is_that_of_the_package(started):
    """And `python -m tasuki` is the command line."""
    with started("--version") as process:
        assert process.stdout.read().split() == ["tasuki,", "version", package.__version__]
    assert process.returncode == 0


def test_debug_shows_where(tasuki):
    told = tasuki("run", "--debug", "nothing.py", status=1)
    assert "Traceback" in told and told.endswith("tasuki: the script nothing.py is not there\n")


def test_an_app_scales_verifies_and_writes_results(tasuki, tmp_path):
    file = tmp_path / "new" / "folder" / "runs.json"
    data = tasuki(
        "laplace", "-n", 1, "-n", 2, "--size", 64, "--verify", "--overlap", "both", "--output", file, "--json"
    )
    assert [(r["ranks"], r["overlap"]) for r in data["runs"]] == [(1, True), (1, False), (2, True), (2, False)]
    assert all(r["verified"] is True and r["seconds_per_iteration"] > 0 for r in data["runs"])
    assert json.loads(file.read_text()) == data
    figures = tasuki("plot", file, "-o", tmp_path, "--json")["figures"]
    assert [f.rpartition("/")[2] for f in figures] == ["scaling.svg", "overlap.svg"]
    for figure in figures:  # --verify makes few iterations
        assert "fewer than 10 iterations: not a measurement" in Path(figure).read_text()
    for run in data["runs"]:
        run["iterations"] = 10
    file.write_text(json.dumps(data))
    for figure in tasuki("plot", file, "-o", tmp_path, "--json")["figures"]:
        assert "fewer than" not in Path(figure).read_text()


@pytest.mark.parametrize("command", ["laplace", "bench", "tune"])
def test_a_result_that_cannot_be_written_is_refused_before_the_run(tasuki, tmp_path, command):
    (tmp_path / "file").write_text("kept")
    told = tasuki(command, "--output", tmp_path / "file" / "x.json", status=1, TASUKI_MPIEXEC="/bin/false")
    assert f"x.json cannot be written: {tmp_path}/file is no folder" in told
    told = tasuki(command, "--output", tmp_path / "file", status=1, TASUKI_MPIEXEC="/bin/false")
    assert "`/bin/false --version` ended with status 1" in told
    assert (tmp_path / "file").read_text() == "kept" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("command", ["himeno", "bench", "tune", "explain"])
def test_a_launcher_that_starts_nothing_is_said_to(tasuki, command):
    arguments = ["explain", "halo"] if command == "explain" else [command]
    told = tasuki(*arguments, status=1, TASUKI_MPIEXEC="/bin/true")
    assert "the launcher /bin/true ended with status 0 without the ranks having said anything" in told


def test_what_an_app_refuses_is_passed_on(tasuki):
    told = tasuki("himeno", "-n", 2, "--size", "32x32x64", "--path", "pigeon", status=1)
    assert "there is no path 'pigeon'; give one of auto, mpi, " in told


def test_a_script_runs_on_ranks_and_its_status_is_kept(tasuki, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys, tasuki\nprint('rank', tasuki.Context().rank, sys.argv[1])\nsys.exit(0)\n")
    text = tasuki("run", "-n", 2, script, "--flag")
    assert sorted(text.split()) == sorted(["rank", "0", "--flag", "rank", "1", "--flag"])
    script.write_text("import sys\nsys.exit(3)\n")
    assert "ended with status 3" in tasuki("run", "-n", 2, script, status=3)


def test_with_json_what_the_ranks_print_is_on_stderr(finished, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys\nprint('hello')\nsys.exit(3)\n")
    done = finished("run", "--json", "-n", 1, script)
    assert done.returncode == 3 and json.loads(done.stdout)["status"] == 3 and "hello" in done.stderr


def is_there(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_stops_the_ranks(started, tmp_path, name):
    script = tmp_path / "script.py"
    script.write_text("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)\n")
    with started("run", "-n", 2, script) as process:
        ranks = [int(process.stdout.readline()) for _ in range(2)]
        process.send_signal(getattr(signal, name))
        assert process.wait(30) == 128 + getattr(signal, name)
        assert ("interrupted" if name == "SIGINT" else f"stopped by {name}") in process.stderr.read()
    patience = time.monotonic() + 5
    while any(map(is_there, ranks)) and time.monotonic() < patience:
        time.sleep(0.05)
    assert not any(map(is_there, ranks))


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_ends_planning_for_many_ranks(started, name):
    with started("explain", "alltoall", "--machine", "host-2core", "-n", 1500) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(3)  # planning takes far longer
        process.send_signal(getattr(signal, name))
        assert process.wait(10) == 128 + getattr(signal, name)
        assert ("interrupted" if name == "SIGINT" else f"stopped by {name}") in process.stderr.read()


def test_info_says_how_old_and_how_certain_prices_are(tasuki, tmp_path):
    one = {"date": "2026-01-02T03:04:05Z", "host": "far", "load": 1.5, "others": 0.7, "cores": 2}
    one["spread"] = {"mpi": 0.31}
    file = tmp_path / "profile.json"
    file.write_text(json.dumps({"version": 13, "machine": "far", "paths": {}, "measured": [one]}))
    told = {row["what"]: row["text"] for row in tasuki("info", "--json", TASUKI_PROFILE=str(file))["usable"]}
    text = told["machine profile"]
    assert re.search(r"measured 2026-01-02T03:04:05Z \(\d+ days ago\) on far, within 31 %, uncertain", text), text
    assert "load 1.50, others used 0.7 of 2 cores" in text


def test_info_shows_the_prices_of_this_mpi(tasuki, tmp_path):
    files = tmp_path / "tasuki"
    files.mkdir()

    def row_texts():
        rows = tasuki("info", "--json", XDG_CACHE_HOME=str(tmp_path), TASUKI_PROFILE="")["usable"]
        return {row["what"]: row["text"] for row in rows}

    def write(host, mpi):
        one = {"date": "2026-01-02T03:04:05Z", "host": host, "load": 0.1, "others": 0.0, "cores": 2}
        one["spread"] = {"mpi": 0.05}
        content = json.dumps({"version": 13, "machine": host, "paths": {}, "measured": [one]})
        (files / f"profile-13-{os.uname().nodename}-{mpi}.json").write_text(content)

    mpi = re.sub("[^A-Za-z0-9.]", "", row_texts()["MPI"].partition(", started by")[0][:40])
    write("other", "AnotherMPI1.0")
    assert "none in" in row_texts()["machine profile"]
    write("this", mpi)
    write("other", "AnotherMPI1.0")  # newer
    assert "on this" in row_texts()["machine profile"]


def test_a_run_that_hangs_is_stopped(tasuki, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import time\ntime.sleep(100)\n")
    assert "stopping the ranks after 2 s" in tasuki("run", "-n", 1, "--timeout", 2, script, status=124)


def test_info_tries_the_paths_and_says_why_not(tasuki):
    data = tasuki("info", "-n", 2, "--json", TASUKI_ISLAND="1")
    found = {row["what"]: row for row in data["usable"]}
    assert found["path mpi"]["usable"] and found["MPI"]["usable"]
    assert not found["path shared:put"]["usable"] and found["path shared:put"]["text"] == "another island"
    assert all(row["text"] for row in data["usable"])
    assert found["path shared:put"]["fault"] and not found["path mpi"]["fault"]
    if found["GPU memory"]["usable"]:
        assert not found["path peer:put"]["fault"]  # another island
    else:
        assert not found["path peer:put"]["usable"] and not found["path peer:put"]["fault"]
        assert found["path peer:put"]["text"] == "for GPU memory, which is not there"
        text = tasuki("info", "-n", 2)
        assert re.search(r"path peer:put +│ not here +│", text) and re.search(r"path shared:put +│ yes +│", text)
    assert data["topology"][0].startswith("2 ranks, 1 host, 2 islands")


def test_tune_refuses_more_ranks_than_cores(tasuki):
    """At once: without starting as many interpreters, however many there would be."""
    cores = os.cpu_count()
    for ranks in (max(2, cores + 1), 64 * cores, 1000000):
        begin = time.monotonic()
        told = tasuki("tune", "-n", ranks, status=1)
        assert time.monotonic() - begin < 20  # two seconds where nothing else runs
        assert f"-n {ranks}: {ranks} ranks on the {cores} hardware threads of " in told
        assert "would measure how they take turns" in told and f"give at most -n {cores}" in told


@pytest.mark.measures
def test_tune_writes_the_medians_of_its_rounds(tasuki, tmp_path):
    file = tmp_path / "profile.json"
    data = tasuki("tune", "--rounds", 2, "--output", file, "--json")
    written = json.loads(file.read_text())
    assert written["paths"] == data["paths"] and "mpi" in written["paths"]
    # The library takes it.
    assert tasuki("explain", "halo", "-n", 2, "--extents", "16x16", "--json", TASUKI_PROFILE=str(file))


def test_explain_reads_every_piece_and_its_plans_verify(tasuki, tmp_path):
    data = tasuki("explain", "halo", "-n", 2, "--extents", "16x16", "--plans", tmp_path, "--path", "mpi", "--json")
    pieces = data["ranks"][0]["pieces"]
    leaving = [p for p in pieces if p["from"] == 0 and p["to"] == 1]
    assert len(leaving) == 6 and all(p["path"] == "mpi" and p["us"] > 0 for p in leaving)
    assert sum(p["bytes"] for p in pieces if p["to"] == 0) == 8 * (10 * 18 - 8 * 16)
    report = tasuki("verify", tmp_path, "--json")["operations"]
    assert [(r["operation"], r["ranks"], r["ok"]) for r in report] == [("halo f0", 2, True)]


def test_plans_of_more_ranks_do_not_stay_behind(tasuki, tmp_path):
    for stale in ("plan-2.json", "plan-x.json"):
        (tmp_path / stale).write_text("{}")
    tasuki("explain", "halo", "-n", 2, "--extents", "16x16", "--plans", tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["plan-0.json", "plan-1.json", "plan-x.json"]


@pytest.mark.parametrize("kind", ["transfer", "broadcast", "allreduce", "barrier"])
def test_explain_knows_the_other_operations(tasuki, kind):
    assert tasuki("explain", kind, "-n", 2, "--json")["ranks"][0]["pieces"]
    assert "predicted µs" in tasuki("explain", kind, "-n", 2)


@pytest.mark.measures
def test_bench_times_peers_and_plots_them(tasuki, tmp_path):
    file = tmp_path / "bench.json"
    text = tasuki("bench", "--quick", "--rounds", 2, "--group", "broadcast", "--output", file)
    assert "mpi_bcast" in text and "×" in text
    data = json.loads(file.read_text())
    assert data["cases"] and data["limit"] and all(p["us"] > 0 for p in data["limit"])
    figures = tasuki("plot", file, "-o", tmp_path, "--only", "bandwidth", "--json")["figures"]
    svg = (tmp_path / "bandwidth-broadcast.svg").read_text()
    assert len(figures) == 1 and "limit: one core" in svg and "tasuki" in svg
    assert "there are: bandwidth-broadcast" in tasuki("plot", file, "--only", "bendwidth", status=1)
    assert "bradcast not in" in tasuki("bench", "--group", "bradcast", status=2)


@pytest.mark.measures
def test_bench_in_python_checks_its_peers(tasuki):
    pytest.importorskip("mpi4py")
    data = tasuki("bench", "--part", "python", "--filter", "64^3", "--rounds", 2, "--json")
    assert [c["group"] for c in data["cases"]] == ["halo-python"] * 6
    assert data["cases"][5]["case"] == "64^3 w1 x 4 fields split 1x1x2"
    for case in data["cases"]:
        assert {"tasuki", "mpi4py"} <= set(case["peers"]) and case["failed"] == []


def test_damaged_files_say_where(tasuki, tmp_path):
    broken = tmp_path / "broken.json"
    broken.write_text('{"cases": [\n  {"group": }]}')
    for command in (["plot", broken], ["verify", broken]):
        assert "broken.json: not JSON at line 2, column 13" in tasuki(*command, status=1)
    broken.write_text('{"cases": [{"group": "halo", "case": "8", "bytes": 1, "peers": {"tasuki": {}}}]}')
    assert "cases[0].peers.tasuki has no 'median_us'" in tasuki("plot", broken, status=1)
    broken.write_text("{}")
    assert "no results" in tasuki("plot", broken, status=1)
    assert "neither a plan" in tasuki("verify", broken, status=1)


PLAN = '"format": 2, "buffers": [], "commands": []'
RUN = '"app": "a", "size": "S", "ranks": 2, "overlap": true, "seconds_per_iteration": 1'


@pytest.mark.parametrize(
    ("command", "text", "expected"),
    [
        ("verify", '{"plans": [1]}', "plans[0] is 1; it must be an object"),
        ("verify", '{"plans": null}', "plans is null; it must be a list"),
        ("verify", '{PLAN, "rank": [1]}', "rank is [1]; it must be a whole number of at least 0"),
        ("verify", '{"plans": [{PLAN, "rank": "x"}]}', "plans[0].rank is 'x'; it must be a whole number"),
        ("verify", '{PLAN, "rank": 2, "ranks": 2}', "rank is 2; 'ranks' is 2"),
        ("verify", '{PLAN, "ranks": 1000000000000}', "rank 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 999999999989 more"),
        ("verify", "[" * 100000 + "]" * 100000, "its lists or objects lie in each other too deeply"),
        ("verify", '{"plans": ' + "[" * 900 + "]" * 900 + "}", "its lists or objects lie in each other too deeply"),
        ("verify", "1" * 5000, "not JSON that can be read: Exceeds the limit"),
        ("plot", '{"cases": 5}', "cases is 5; it must be a list"),
        ("plot", '{"cases": [3]}', "cases[0] is 3; it must be an object"),
        ("plot", '{"limit": 3}', "limit is 3; it must be a list"),
        ("plot", '{"limit": [{"bytes": 1, "us": NaN}]}', "limit[0].us is nan; it must be a number above 0"),
        ("plot", '{"runs": [{RUN, "ranks": "2"}]}', "runs[0].ranks is '2'; it must be a whole number"),
        ("plot", '{"runs": [{RUN, "paths_used": [3]}]}', "runs[0].paths_used[0] is 3; it must be a text"),
        (
            "plot",
            '{"cases": [{"group": "g", "case": "c", "bytes": 1, "peers": {}, "ratios": {"x": "y"}}]}',
            "cases[0].ratios.x is 'y'; it must be a number",
        ),
        (
            "plot",
            '{"runs": [{RUN, "seconds_per_iteration": 0}]}',
            "runs[0].seconds_per_iteration is 0; it must be",
        ),
    ],
)
def test_corrupt_files_are_one_clear_line(tasuki, tmp_path, command, text, expected):
    file = tmp_path / "corrupt.json"
    file.write_text(text.replace("PLAN", PLAN).replace("RUN", RUN))
    told = tasuki(command, file, status=1)
    assert f"{file}: " in told and expected in told and len(told) < 500


TYPED = """
from mpi4py import MPI
import numpy as np
a = np.arange(4000.0)
every_second = MPI.DOUBLE.Create_vector(2000, 1, 2).Commit()
for _ in range(3):
    MPI.COMM_WORLD.Sendrecv_replace([a, 1, every_second], 1 - MPI.COMM_WORLD.rank, 0, 1 - MPI.COMM_WORLD.rank, 0)
"""


def test_run_loads_the_library_for_mpi_programs(finished, tmp_path, monkeypatch):
    script = tmp_path / "typed.py"
    script.write_text(TYPED)
    monkeypatch.setenv("TASUKI_MPI_REPORT", "1")
    monkeypatch.setenv("TASUKI_MPI_ALWAYS", "1")
    done = finished("run", "--mpi", "-n", "2", str(script))
    assert done.returncode == 0, done.stderr
    assert "MPI library, rank 0: 6 calls of 96000 bytes in pieces" in done.stderr
    assert "MPI library" not in finished("run", "-n", "2", str(script)).stderr
