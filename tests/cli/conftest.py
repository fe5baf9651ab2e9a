"""Runs the command line as users do, with a cache folder of its own.

Tests marked `measures` time things on two ranks. What runs beside them makes them many times slower, so CTest runs them
by themselves, and all others with a profile that is given (tests/CMakeLists.txt).
"""

import json
import os
import subprocess
import sys

import pytest

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
def finished(started):
    """Runs `tasuki` to its end: the status, and all that it printed."""

    def run(*arguments, **environment):
        with started(*arguments, **environment) as process:
            try:
                printed = process.communicate(timeout=LIMIT)
            except subprocess.TimeoutExpired:
                process.terminate()
                raise
        return subprocess.CompletedProcess(process.args, process.returncode, *printed)

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
