"""What the commands share: options, output as tables or JSON, progress, and running ranks to their end."""

from __future__ import annotations

import contextlib
import json
import math
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from tasuki import launch
from tasuki.cli import Asked, Failure, plain

INT_MOST, LONG_MOST = (1 << 31) - 1, (1 << 63) - 1  # of an `int` and an `int64` of the core

WRONG_COMMAND_LINE = 2  # the exit status

PROGRESS = re.compile(r"(\d+) of (\d+)(?:: (.*))?$")


def note_json(_context: click.Context, _option: click.Parameter, asked: bool) -> bool:
    """Before all other options, whose errors are then JSON too."""
    Asked.json = Asked.json or asked
    return asked


def common(function: Callable) -> Callable:
    """--json and --debug, which every command has. The function gets `as_json`."""
    function = click.option(
        "--json", "as_json", is_flag=True, is_eager=True, callback=note_json, help="Print JSON instead of tables."
    )(function)
    return click.option("--debug", is_flag=True, expose_value=False, help="Show where an error came from.")(function)


def ranks_option(default: int) -> Callable:
    return click.option(
        "-n", "--ranks", type=click.IntRange(1), default=default, show_default=True, help="Number of ranks."
    )


class Seconds(click.ParamType):
    """A time limit. More than the system can wait for is the same as that."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            seconds = float(value)
        except ValueError:
            seconds = math.nan
        if not (math.isfinite(seconds) and seconds > 0):
            self.fail(f"'{value}' is not a number of seconds above 0", param, ctx)
        return min(seconds, threading.TIMEOUT_MAX)


def timeout_option(function: Callable) -> Callable:
    return click.option("--timeout", type=Seconds(), help="Seconds after which the ranks are stopped.")(function)


def check_output(file: Path | None) -> None:
    """Makes the folder of a file that is to be written after a long run, and tries whether it can be written: now, not
    when the results are there. A file that exists stays as it is."""
    if file is None:
        return
    target = file.resolve()  # of a link what it leads to
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        new = not target.exists()
        if new or target.is_file():  # to open a pipe and close it again would end it for its reader
            target.open("a").close()
        if new:
            target.unlink()
    except OSError as error:
        no_folder = isinstance(error, (FileExistsError, NotADirectoryError))
        why = f"{target.parent} is no folder" if no_folder else error.strerror
        raise Failure(f"{file} cannot be written: {why}; name another file") from None


class PlainConsole(Console):
    """Words out of files are only words: square brackets are no markup, and control characters are spelt out."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(plain(text), **options)


def console(stderr: bool = False) -> Console:
    """Tables for pipes and files are as wide as they need to be."""
    out = PlainConsole(stderr=stderr)
    return out if out.is_terminal else PlainConsole(stderr=stderr, width=160)


def progress() -> Progress:
    """On stderr, gone when done, and silent where that is no terminal."""
    columns = [SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()]
    out = console(stderr=True)
    return Progress(*columns, console=out, transient=True, disable=not out.is_terminal)


def table(title: str, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> Table:
    """Column names that begin with `>` are aligned to the right."""
    result = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for name in columns:
        right = name.startswith(">")
        result.add_column(name.lstrip(">"), justify="right" if right else "left", overflow="fold")
    for row in rows:
        result.add_row(*("–" if cell is None else cell if isinstance(cell, Text) else str(cell) for cell in row))
    return result


def emit(data: object, as_json: bool, render: Callable[[Console], None]) -> None:
    if as_json:
        print(json.dumps(data, indent=2))
    else:
        render(console())


def first_complaint(lines: list[str]) -> str:
    """What a program said on stderr first, without the banners of Open MPI's launcher; of a traceback its error."""
    banner = traced = False
    for line in lines:
        if line.startswith("-----"):
            banner = not banner
        elif line.startswith("Traceback "):
            traced = True
        elif not banner and line.strip() and not (traced and line.startswith(" ")):
            return line.strip()
    return "it said nothing"


def stop_listening(process: subprocess.Popen, listen: Callable[[], None]) -> None:
    """Stops the ranks, and listens meanwhile: with a pipe that is full they could not end."""

    def listen_on() -> None:
        with contextlib.suppress(OSError):  # after SIGHUP the terminal is gone
            listen()

    rest = threading.Thread(target=listen_on, daemon=True)
    rest.start()
    launch.stop(process)
    rest.join(1)


def run_ranks(
    ranks: int,
    program: list[str],
    launcher: str,
    *,
    what: str,
    own: bool = True,
    quiet: bool = False,
    leaves: Sequence[Path] = (),
    timeout: float | None = None,
    environment: dict[str, str] | None = None,
) -> int:
    """Runs a program on ranks to its end; on Ctrl-C, a signal or after `timeout` seconds the ranks are stopped.

    What Tasuki's `own` programs print is dropped, and if they fail, or do not leave the files that they should, that is
    a `Failure` with what they said first. Other programs' output is passed on (if `quiet`, all of it to stderr), and
    their exit status returned. A line on stderr such as `3 of 10: halo` moves the progress bar.
    """
    said: list[str] = []
    with progress() as bar:
        task = bar.add_task(what, total=None)
        process = launch.start(
            launcher,
            ranks,
            program,
            extra=environment,
            stdout=subprocess.DEVNULL if own else sys.stderr if quiet else None,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        stopped = threading.Event()

        def stop() -> None:
            stopped.set()
            print(f"tasuki: stopping the ranks after {timeout:g} s", file=sys.stderr)
            launch.stop(process)

        limit = threading.Timer(timeout or threading.TIMEOUT_MAX, stop)
        limit.daemon = True
        limit.start()

        def listen() -> None:
            for line in process.stderr:
                told = PROGRESS.match(line)
                if told:
                    label = f"{what}: {plain(told[3])}" if told[3] else what
                    bar.update(task, completed=int(told[1]), total=int(told[2]), description=label)
                elif own:
                    said.append(line)
                else:
                    print(line, end="", file=sys.stderr)

        try:
            listen()
            process.wait()
        except BaseException:  # Stopped, above all
            stop_listening(process, listen)
            raise
        finally:
            limit.cancel()
    status = launch.TIMED_OUT if stopped.is_set() else launch.exit_status(process)
    if own and status != 0:
        if "--debug" in sys.argv:
            print("".join(said), file=sys.stderr)
        complaint = first_complaint(said)
        if status == WRONG_COMMAND_LINE:  # of the program, which was passed on
            raise Failure(complaint, status)
        raise Failure(f"{what} ended with status {status}: {complaint}")
    if status == 0 and not all(file.exists() for file in leaves):
        raise Failure(
            f"{what}: the launcher {launcher} ended with status 0 without the ranks having said anything; is it the "
            "mpiexec of the MPI that Tasuki was built with (TASUKI_MPIEXEC)?"
        )
    return status


def python_on_ranks(module: str, arguments: list[str]) -> tuple[list[str], str]:
    """Program and launcher for a module of the package that runs on ranks."""
    return [sys.executable, "-m", module, *arguments], launch.launcher_for(launch.core_library())
