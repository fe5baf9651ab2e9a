"""How tests translate, compile and run programs with directives."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
BUILD = os.environ.get("XMP_RUNTIME")
FLAGS = ["-std=gnu11", "-O1", "-ffp-contract=off", *os.environ.get("TEST_CFLAGS", "").split()]
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
EXAMPLES = ROOT / "directives" / "examples"
EXAMPLE_FLAGS = [f"-I{ROOT / 'directives' / 'runtime' / 'examples'}"]


def tasuki_cc(*arguments):
    command = [sys.executable, str(ROOT / "directives" / "tasuki-cc"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)


def translate(*arguments):
    """tasuki-cc within this process, for what starts no compiler: --emit, --check, --dump-ir."""
    from tasuki_directives.command import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*map(str, arguments)])
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def started(program, ranks, **environment):
    """The program on so many ranks."""
    command = [sys.executable, str(ROOT / "tools" / "mpirun.py"), "--timeout", "60", "-n", str(ranks)]
    if os.environ.get("TASUKI_MPIEXEC"):
        command += ["--mpiexec", os.environ["TASUKI_MPIEXEC"]]
    command.append(str(program))
    # Threads of OpenMP that spin take the processors from other ranks.
    variables = {"OMP_WAIT_POLICY": "passive", **os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=90, env=variables)


def output(program, ranks):
    """What it prints on so many ranks."""
    run = started(program, ranks)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def size(**numbers):
    return [f"-D{name}={value}" for name, value in numbers.items()]


class Programs:
    """Each program is made once, however many tests run it."""

    def __init__(self, folder):
        self.folder, self.made, self.printed = folder, {}, {}

    def translated(self, source, *flags):
        """The program, made with these flags; what tasuki-cc said is in `said`."""
        key = (str(source), *map(str, flags))
        if key not in self.made:
            target = self.folder / f"{source.stem}_{len(self.made)}"
            run = tasuki_cc(*FLAGS, *WARNINGS, *flags, source, "-o", target, "-lm")
            assert run.returncode == 0, run.stderr
            assert "--explain" in flags or not run.stderr, run.stderr
            self.made[key] = (target, run.stderr)
        return self.made[key][0]

    def said(self, source, *flags):
        self.translated(source, *flags)
        return self.made[(str(source), *map(str, flags))][1]

    def plain(self, source):
        """What the same source prints as plain C."""
        if source not in self.printed:
            target = self.folder / f"{source.stem}_plain"
            subprocess.run(["cc", "-w", *FLAGS, str(source), "-o", str(target), "-lm"], check=True)
            run = subprocess.run([str(target)], capture_output=True, text=True, check=True)
            assert run.stdout
            self.printed[source] = run.stdout
        return self.printed[source]

    def serial(self, app, *sizes):
        """The checksum of the C++ program on one rank."""
        command = [f"{BUILD}/bin/xmp_serial_apps", app, *map(str, sizes)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1]
