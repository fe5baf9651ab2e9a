"""Runs the command line, with a cache folder of its own. `started` starts it as users do. The others run it some two
hundred times, each time in a copy of this process, which has everything imported already.

Tests marked `measures` time things on two ranks. What runs beside them makes them many times slower, so CTest runs them
by themselves, and all others with a profile that is given (tests/CMakeLists.txt).
"""

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading

import pytest

from tasuki import cli

LIMIT = 120  # seconds a command may take


def pytest_configure(config):
    config.addinivalue_line("markers", "measures: it times things on ranks and must not run beside other tests")


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def started(cache):
    """Starts `tasuki`, with its output in pipes."""

    def start(*arguments, **environment):
        command = [sys.executable, "-m", "tasuki", *map(str, arguments)]
        settings = {**os.environ, "XDG_CACHE_HOME": str(cache), **environment}
        return subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return start


@pytest.fixture(scope="session")
def imported():
    """All that commands import: once, and not in every copy."""
    for command in cli.COMMANDS:
        importlib.import_module(f"tasuki.cli.{command}")
    with contextlib.suppress(ImportError):  # it wants Matplotlib
        importlib.import_module("tasuki.plot")


def run_copy(arguments, environment, out, err):
    """In a copy of this process: `python -m tasuki`, to the end of the process."""
    status = 70
    try:
        os.environ.update(environment)
        sys.argv = ["tasuki", *arguments]
        for file, descriptor in ((out, 1), (err, 2)):
            os.dup2(file.fileno(), descriptor)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
        status = cli.main(arguments)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else end.code is not None
    finally:
        for file in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                file.flush()
        os._exit(status)


@pytest.fixture(scope="session")
def finished(started, cache, imported):
    """Runs `tasuki` to its end: the status, and all that it printed."""

    def run(*arguments, **environment):
        if "PYTHONPATH" in environment:  # Python itself reads it
            with started(*arguments, **environment) as process:
                printed = process.communicate(timeout=LIMIT)
            return subprocess.CompletedProcess(process.args, process.returncode, *printed)
        words = list(map(str, arguments))
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            copy = os.fork()
            if copy == 0:
                run_copy(words, {"XDG_CACHE_HOME": str(cache), **environment}, out, err)
            ended = threading.Event()

            def stop():
                if not ended.is_set():
                    os.kill(copy, signal.SIGTERM)

            limit = threading.Timer(LIMIT, stop)
            limit.start()
            _, status = os.waitpid(copy, 0)
            ended.set()
            limit.cancel()
            limit.join()
            printed = []
            for file in (out, err):
                file.seek(0)
                printed.append(file.read())
        return subprocess.CompletedProcess(words, os.waitstatus_to_exitcode(status), *printed)

    return run


@pytest.fixture(scope="session")
def tasuki(finished):
    """`tasuki("info", "--json")` gives what was printed, JSON parsed; after a failure its line, or all of --debug."""

    def run(*arguments, status=0, **environment):
        done = finished(*arguments, **environment)
        assert done.returncode == status, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        if "--debug" in arguments:
            return done.stderr
        if status != 0:
            told = [line for line in done.stderr.splitlines() if line.startswith("tasuki: ")]
            assert len(told) <= 1 + (status == 124) and "Traceback" not in done.stderr, done.stderr
            return told[0] if told else done.stdout
        return json.loads(done.stdout) if "--json" in arguments and arguments[0] != "run" else done.stdout

    return run


@pytest.fixture(scope="session")
def traced(tasuki, tmp_path_factory):
    """A folder with the trace of a short run on two ranks, and its summary."""
    folder = tmp_path_factory.mktemp("traced") / "run"
    size = ["--size", "32x32x64", "--iterations", "20"]
    summary = tasuki("trace", "--json", "-n", 2, "-o", folder, "himeno", *size, "--path", "shared:put")
    return folder, summary
