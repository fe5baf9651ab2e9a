"""Starts programs on ranks, with whatever happens to them."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


class Run:
    """A program on ranks, in a process of its own."""

    def __init__(self, folder, ranks, program, arguments, timeout, recover=False):
        launcher = [sys.executable, ROOT / "tools" / "mpirun.py", "--mpiexec", os.environ["TASUKI_MPIEXEC"]]
        flags = ["--timeout", timeout, "-n", ranks] + ["--recover"] * recover
        command = [str(part) for part in [*launcher, *flags, sys.executable, program, *arguments]]
        self.out = folder / "output.txt"
        with self.out.open("w") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, cwd=folder)

    def finish(self):
        """Exit status and everything printed."""
        status = self.process.wait()
        return status, self.out.read_text()

    def wait_for(self, text, seconds=60):
        end = time.monotonic() + seconds
        while text not in self.out.read_text():
            assert time.monotonic() < end, f"no '{text}' in: {self.out.read_text()}"
            assert self.process.poll() is None, self.out.read_text()
            time.sleep(0.02)

    def ranks(self):
        """Process ids by rank, as the program printed them (`pid of rank N: M`)."""
        lines = [line.split() for line in self.out.read_text().splitlines() if line.startswith("pid of rank")]
        return {int(words[3].rstrip(":")): int(words[4]) for words in lines}

    def signal(self, rank, number=signal.SIGINT):
        os.kill(self.ranks()[rank], number)


@pytest.fixture
def start(tmp_path):
    folders = itertools.count()

    def start(ranks, text, *arguments, timeout=60, recover=False):
        folder = tmp_path / str(next(folders))
        folder.mkdir()
        program = folder / "program.py"
        program.write_text(textwrap.dedent(text))
        return Run(folder, ranks, program, arguments, timeout, recover)

    return start


@pytest.fixture
def run(start):
    return lambda *arguments, **options: start(*arguments, **options).finish()
