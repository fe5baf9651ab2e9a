"""Ranks that raise, die, are interrupted or end early: the others are told, and nothing hangs or crashes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

HALO = """
import os, sys, threading, time
import tasuki
context = tasuki.Context()
context.deadline = 600  # far beyond the launcher's time limit: whoever is told in time was not told by it
print(f"pid of rank {context.rank}: {os.getpid()}", flush=True)
field = tasuki.Field(tasuki.Grid(context, (64,), periodic=True), name="u")
halo = tasuki.Halo(field)
"""


def test_an_uncaught_exception_is_told_to_the_others(start):
    running = start(
        3,
        HALO
        + """
if context.rank == 1:
    raise ValueError("no such luck")
try:
    halo.start()  # which says so if rank 1 was quicker
    halo.wait()
except tasuki.Error as error:
    print(f"rank {context.rank} was told: {error}", flush=True)
    # Whoever raises first may have the launcher end the other: both speak before.
    here = os.path.dirname(__file__)
    open(f"{here}/told-{context.rank}", "w").close()
    limit = time.monotonic() + 20
    while time.monotonic() < limit and not all(os.path.exists(f"{here}/told-{rank}") for rank in (0, 2)):
        time.sleep(0.01)
    raise
""",
        recover=True,  # so that what the others say does not depend on how fast the launcher ends them
    )
    status, text = running.finish()
    assert status not in (0, 124), text
    assert "ValueError: no such luck" in text
    for rank in 0, 2:
        assert f"rank {rank} was told: rank {rank}: halo u" in text
        assert "rank 1 gave up because of an uncaught ValueError: no such luck" in text


UNTOLD = {
    "no text": ("Odd", "an uncaught Odd: (its text cannot be made)"),
    "surrogate": ("ValueError('-\\udc80\\0-')", "an uncaught ValueError: -\\udc80\\0-"),
}


@pytest.mark.parametrize("what", UNTOLD)
def test_an_exception_without_a_proper_text_is_told(run, what):
    thrown, told = UNTOLD[what]
    status, text = run(
        3,  # of two, the launcher ends the one that is left
        HALO
        + f"""
class Odd(Exception):
    def __str__(self): raise RuntimeError("no text")
if context.rank == 1:
    raise {thrown}
try:
    halo.run()
except tasuki.Error as error:
    print(f"rank {{context.rank}} was told: {{error}}", flush=True)
    raise
""",
        recover=True,
    )
    assert status not in (0, 124) and "rank 0 was told: " in text and told in text, text


def test_the_end_while_a_thread_waits(run):
    """Nothing is freed below the thread, and the others learn that this rank will not come."""
    status, text = run(
        3,  # of two, the launcher ends the one that is left
        HALO
        + """
other = tasuki.Context(context.handle)
if context.rank == 0:
    threading.Thread(target=halo.run, daemon=True).start()
    time.sleep(0.2)
elif context.rank == 1:
    try:
        context.barrier()
    except tasuki.Error as error:
        print(f"rank 1 was told: {error}", flush=True)
        raise
else:
    context.barrier()
""",
        recover=True,
    )
    assert status not in (0, 124, 139) and "Segmentation" not in text, text
    assert "rank 0: the program ended while a thread waited; join threads before the end" in text
    assert "rank 1 was told: " in text and "rank 0 gave up because its program ended while a thread waited" in text


@pytest.mark.parametrize("end", ["sys.exit()", "raise ValueError('in the child')"])
def test_a_forked_child_does_not_speak_for_its_parent(run, end):
    status, text = run(
        2,
        HALO
        + f"""
child = 0
if context.rank == 0:
    child = os.fork()
    if child == 0:
        {end}
    os.waitpid(child, 0)
for _ in range(3): halo.run()
context.barrier()
halo.free()
field.free()
field = tasuki.Field(tasuki.Grid(context, (64,), periodic=True))
tasuki.Halo(field).run()
del field
context.close()
print("fine", flush=True)
""",
    )
    assert status == 0 and text.count("fine") == 2, text


@pytest.mark.parametrize(
    "call",
    [
        "halo.run()",
        "halo.test()",
        "halo.free()",
        "context.barrier()",
        "tasuki.Grid(context, (4,))",
        "tasuki.shared_array(context, (3,))",
        "tasuki.Context()",
    ],
)
def test_a_call_in_a_forked_child_is_an_error(run, call):
    status, text = run(
        2,
        HALO
        + f"""
halo.run()
child = os.fork()
if child == 0:
    try:
        {call}
    except tasuki.Error as error:
        os._exit(0 if "was forked from" in str(error) else 3)
    os._exit(4)
assert os.waitpid(child, 0)[1] == 0, "the child was not told"
halo.run()
print("fine", flush=True)
""",
    )
    assert status == 0 and text.count("fine") == 2, text


@pytest.mark.parametrize("order", ["import mpi4py.MPI", "pass"])
def test_an_uncaught_exception_ends_the_job_with_mpi4py(start, order):
    """MPI_Finalize of mpi4py, wherever it was imported, must not wait for ranks that wait for this one."""
    running = start(
        2,
        order
        + HALO
        + """
from mpi4py import MPI
if context.rank == 0:
    raise ValueError("no such luck")
MPI.COMM_WORLD.barrier()
""",
    )
    status, text = running.finish()
    assert status not in (0, 124) and "no such luck" in text, text


def test_bad_arguments_end_all_ranks(start):
    status, text = start(2, HALO + "tasuki.Grid(context, (4, 4), split=(3, 1))").finish()
    assert status not in (0, 124) and text.count("split") >= 2, text


@pytest.mark.parametrize("engine", ["inline", "thread"])
def test_a_killed_rank(start, engine):
    running = start(
        3,
        HALO
        + """
halo = tasuki.Halo(field, engine=sys.argv[1])
for step in range(10**9):
    if context.rank == 0 and step == 100: print("running", flush=True)
    halo.start()
    try:
        halo.wait()
    except tasuki.Error as error:
        print(f"rank {context.rank} was told: {error}", flush=True)
        os._exit(0)  # any other status would make the launcher end those that are still to speak
""",
        engine,
        recover=True,
    )
    running.wait_for("running")
    running.signal(1, signal.SIGKILL)
    status, text = running.finish()
    assert status != 124, text
    for rank in 0, 2:
        assert f"rank {rank} was told: rank {rank}: halo u" in text, text
    assert "rank 1 (pid" in text, text


def test_control_c_leaves_a_wait_that_can_be_resumed(start):
    running = start(
        2,
        HALO
        + """
if context.rank == 1:
    while not os.path.exists("go on"): time.sleep(0.01)
halo.start()
try:
    if context.rank == 0: print("waiting", flush=True)
    halo.wait()
except KeyboardInterrupt:
    print("interrupted:", halo.active, flush=True)
    open("go on", "w").close()
    halo.wait()
print("done", halo.active, flush=True)
""",
    )
    running.wait_for("waiting")
    running.signal(0)
    status, text = running.finish()
    assert status == 0 and "interrupted: True" in text and text.count("done False") == 2, text


def test_control_c_during_a_collective_ends_the_job(start):
    running = start(
        2,
        HALO
        + """
if context.rank == 0:
    print("waiting", flush=True)
    context.barrier()
time.sleep(1000)
""",
    )
    running.wait_for("waiting")
    running.signal(0)
    status, text = running.finish()
    assert status not in (0, 124) and "KeyboardInterrupt" in text, text


def test_other_threads_run_while_one_waits(run):
    """And are kept out of the context meanwhile; what they drop is destroyed afterwards."""
    status, text = run(
        2,
        HALO
        + """
other = tasuki.Halo(field)
if context.rank == 1:
    while not os.path.exists("go on"): time.sleep(0.01)
    halo.start(); halo.wait()
else:
    def work():
        global other
        for turn in range(1000): time.sleep(0.0001)
        try:
            other.start()
        except tasuki.Error as error:
            print("kept out:", error, flush=True)
        del other
        open("go on", "w").close()
    halo.start()
    thread = threading.Thread(target=work)
    thread.start()
    halo.wait()
    thread.join()
    halo.start()
if context.rank == 1: halo.start()
halo.wait()
print("done", flush=True)
""",
    )
    assert status == 0 and "kept out: rank 0: another thread" in text and text.count("done") == 2, text


def test_the_deadline(run):
    status, text = run(
        2,
        HALO
        + """
context.deadline = 0.5
if context.rank == 0:
    halo.start()
    try:
        halo.wait()
    except tasuki.Error as error:
        print("told:", error, flush=True)
        open("over", "w").close()
else:
    while not os.path.exists("over"): time.sleep(0.01)
os._exit(0)
""",
    )
    assert "told: rank 0: halo u: epoch 1 did not end" in text and "the deadline of 0.5 s has passed" in text, text


ENDINGS = {
    "falls off the end": "",
    "sys.exit": "sys.exit(0)",
    "active": "halo.start()",
    "arrays kept": "seen = field.array; import numpy; more = numpy.asarray(field)[1:]",
    "array seen, field dropped": "field.array[...] = 1; del field",
    "then closed": "field.array[...] = 1; del field; context.close(); context.close()",
    "finalizer": "sys.keep = type('D', (), {'u': field, '__del__': lambda self: repr(self.u)})()",
    "cycle": "field_list = [field]; field_list.append(field_list)",
    "closed": "del field, halo; context.close()",
    "another context": "other = tasuki.Context(context.handle); f = tasuki.Field(tasuki.Grid(other, (4,)))",
    "mpi4py": "from mpi4py import MPI",
    "finalized": "from mpi4py import MPI; halo.free(); field.free(); MPI.Finalize()",
    "thread engine": "h = tasuki.Halo(field, engine='thread'); h.start(); h.wait()",
    "shared arrays": "a = tasuki.shared_array(context, (9,)); b = tasuki.Broadcast(context, 0, a)",
    "atexit": "import atexit; atexit.register(lambda: field.array.sum())",
}


IMPORTED_FIRST = ["active", "arrays kept", "finalized"]


def test_the_end(start):
    """However a program ends: status 0, nothing printed by MPI or Python, no wait."""
    cases = [("pass", ending) for ending in ENDINGS] + [("from mpi4py import MPI", ending) for ending in IMPORTED_FIRST]

    def attempt(case):
        first, ending = case
        status, text = start(2, f"{first}\n{HALO}\n{ENDINGS[ending]}").finish()
        rest = [line for line in text.splitlines() if not line.startswith("pid of rank")]
        if ending == "finalized":  # the core says that it was left without the other ranks
            rest = [line for line in rest if "tasuki" not in line]
        return [] if status == 0 and not rest else [(first, ending, status, text)]

    with ThreadPoolExecutor(4) as pool:  # most of their time is waiting for the launcher
        assert not sum(pool.map(attempt, cases), [])


def test_a_launcher_starts_where_one_with_its_number_was_killed(tmp_path, monkeypatch):
    """A killed launcher leaves files under its process number, which Open MPI 5 gave up at when it came again."""
    for number in range(os.getpid(), os.getpid() + 300):
        session = tmp_path / f"ompi.{number}"
        session.mkdir()
        (session / f"pmix.{os.uname().nodename}.tool").write_text("of a launcher that is gone")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    command = [sys.executable, ROOT / "tools" / "mpirun.py", "--mpiexec", os.environ["TASUKI_MPIEXEC"], "-n", "2"]
    run = subprocess.run([*command, "echo", "here"], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "here\nhere\n"), run.stderr
