"""Ranks that leave each other: contexts closed in any order, dropped operations, own hooks, suspended jobs."""

from __future__ import annotations

import platform
import signal
import time

import pytest

HALO = """
import os, sys, time
import numpy as np
import tasuki
context = tasuki.Context()
context.deadline = 600  # far beyond the launcher's time limit: whoever is told in time was not told by it
me, ranks = context.rank, context.size
print(f"pid of rank {me}: {os.getpid()}", flush=True)
"""

SUM = """
def total_of(where, **options):
    mine, total = np.zeros(5000), np.zeros(5000)
    return mine, total, tasuki.Allreduce(where, mine, total, **options)
"""


@pytest.mark.parametrize("first", ["pass", "from mpi4py import MPI"])
def test_contexts_are_closed_in_other_orders(run, first):
    status, text = run(
        3,
        first
        + HALO
        + SUM
        + """
contexts = [context, tasuki.Context(context.handle)] + [context.subset(range(ranks)) for _ in range(3)]
for one in contexts:
    mine, total, allreduce = total_of(one)
    mine[:] = me
    allreduce.run()
    assert (total == sum(range(ranks))).all()
for k in np.random.default_rng(me).permutation(len(contexts)):
    contexts[k].close()
print("fine", flush=True)
""",
    )
    assert status == 0 and text.count("fine") == 3, text


def test_close_waits_for_nobody(run):
    status, text = run(
        2,
        "from mpi4py import MPI"
        + HALO
        + """
if me == 0:
    context.close()
    MPI.COMM_WORLD.send("closed", 1)
else:
    assert MPI.COMM_WORLD.recv(source=0) == "closed"
    context.close()
print("fine", flush=True)
""",
    )
    assert status == 0 and text.count("fine") == 2, text


def test_a_dropped_operation_is_told_at_once(run):
    status, text = run(
        3,
        HALO
        + SUM
        + """
total = total_of(context, algorithm="ring")[2]
if me == 1:
    total.start()
    del total
    open("dropped", "w").close()
    sys.exit()
while not os.path.exists("dropped"): time.sleep(0.01)
try:
    total.run()
except tasuki.Error as error:
    print(f"rank {me} was told: {error}", flush=True)
os._exit(0)
""",
        recover=True,
    )
    assert status != 124 and text.count("was told") == 2, text
    assert "rank 1 destroyed allreduce in epoch 1, for which it had not waited" in text, text


HOOKS = {
    "silent": "sys.excepthook = lambda *_: None",
    "replaced": "sys.excepthook = lambda *_: print('mine', flush=True)",
    "with a thread that goes on": "import threading; sys.excepthook = lambda *_: None; threading.Thread(target="
    "lambda: [time.sleep(0.01) for _ in range(4000) if not os.path.exists('told')]).start()",
}


@pytest.mark.parametrize("hook", HOOKS)
def test_an_exception_is_told_where_the_program_has_a_hook_of_its_own(run, hook):
    status, text = run(
        3,  # of two, the launcher ends the one that is left
        HALO
        + SUM
        + f"""
total = total_of(context)[2]
if me == 1:
    {HOOKS[hook]}
    raise ValueError("on purpose")
try:
    total.run()
except tasuki.Error as error:
    print(f"rank {{me}} was told: {{error}}", flush=True)
open("told", "w").close()
os._exit(0)
""",
        recover=True,
        timeout=30,
    )
    assert status != 124 and "rank 1 gave up because of an uncaught ValueError: on purpose" in text, text


def test_an_exception_that_a_program_has_handled_is_no_failure(run):
    """Tools leave what they have caught in `sys.last_value`."""
    status, text = run(
        2,
        HALO
        + SUM
        + """
def tool():
    raise ValueError("handled")
try:
    tool()
except ValueError as error:
    sys.last_value = error.with_traceback(error.__traceback__.tb_next)
total_of(context)[2].run()
print("fine", flush=True)
""",
    )
    assert status == 0 and text.count("fine") == 2, text


def test_a_suspended_job_goes_on(start):
    running = start(
        2,
        HALO
        + SUM
        + """
context.deadline = 1.5
sums = [total_of(context, engine=engine) for engine in ("inline", "thread")]
step = 0
while True:
    for mine, total, allreduce in sums:
        mine[:] = me + step
        allreduce.start()
        if me == 0 and step % 50 == 0: time.sleep(0.01)  # so that the other one is in a wait most of the time
        allreduce.wait()
        assert (total == 1 + 2 * step).all()
    flag = np.array([float(os.path.exists("continued"))])
    tasuki.Allreduce(context, tasuki.in_place, flag, op="max").run()
    step += 1
    if flag[0]: break
    if step == 20 and me == 0: print("running", flush=True)
print("fine", flush=True)
""",
        timeout=120,
    )
    running.wait_for("running")
    for number in signal.SIGSTOP, signal.SIGCONT:
        for rank in 0, 1:
            running.signal(rank, number)
        time.sleep(2.5 if number == signal.SIGSTOP else 0.1)
    (running.out.parent / "continued").touch()
    status, text = running.finish()
    assert status == 0 and text.count("fine") == 2, text


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the filter names calls of x86-64 by their numbers")
def test_no_more_threads_are_an_error_that_says_so(run):
    """Of the rank that has no more, on all ranks; the context goes on and the program ends as it should."""
    status, text = run(
        2,
        HALO
        + SUM
        + """
import ctypes, struct
if me == 1:  # clone and clone3 give EAGAIN, as where a process may start no more threads
    code = [(0x20, 0, 0, 0), (0x15, 1, 0, 56), (0x15, 0, 1, 435), (6, 0, 0, 0x5000B), (6, 0, 0, 0x7FFF0000)]
    lines = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
    libc = ctypes.CDLL(None)
    libc.prctl(38, 1, 0, 0, 0)
    assert libc.prctl(22, 2, struct.pack("HxxxxxxQ", len(code), ctypes.addressof(lines)), 0, 0) == 0
for attempt in range(2):
    try:
        total_of(context, engine="thread")
        print("no error", flush=True)
    except tasuki.Error as error:
        print("told:", error, flush=True)
part = context.subset(range(ranks))  # whose communicator is made without a thread, too
mine, total, allreduce = total_of(part, engine="inline")
mine[:] = me
allreduce.run()
assert (total == 1).all()
print("fine", flush=True)
""",
    )
    assert status == 0 and text.count("fine") == 2, text
    told = "told: allreduce: rank 1: the progress thread of this process cannot be started: "
    assert text.count(told) == 4 and "no error" not in text, text
