"""What the commands share: options, output as tables or JSON, progress, and running ranks to their end."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from tasuki import launch
from tasuki.cli import Failure

PROGRESS = re.compile(r"(\d+) of (\d+)(?:: (.*))?$")


def common(function: Callable) -> Callable:
    """--json and --debug, which every command has. The function gets `as_json`."""
    function = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")(function)
    return click.option("--debug", is_flag=True, expose_value=False, help="Show where an error came from.")(function)


def ranks_option(default: int) -> Callable:
    return click.option(
        "-n", "--ranks", type=click.IntRange(1), default=default, show_default=True, help="Number of ranks."
    )


def console(stderr: bool = False) -> Console:
    """Tables for pipes and files are as wide as they need to be."""
    out = Console(stderr=stderr, highlight=False)
    if not out.is_terminal:
        out = Console(stderr=stderr, highlight=False, width=160)
    return out


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
        result.add_row(*("–" if cell is None else str(cell) for cell in row))
    return result


def emit(data: object, as_json: bool, render: Callable[[Console], None]) -> None:
    if as_json:
        print(json.dumps(data, indent=2))
    else:
        render(console())


def microseconds(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def read_json(path: Path) -> object:
    """The file's content; errors say where it is not JSON."""
    try:
        text = path.read_text()
    except UnicodeDecodeError as error:
        raise Failure(f"{path}: not text at byte {error.start}; a JSON file is needed") from None
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise Failure(f"{path}: not JSON at line {error.lineno}, column {error.colno}: {error.msg}") from None


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


def run_ranks(
    ranks: int,
    program: list[str],
    launcher: str,
    *,
    what: str,
    own: bool = True,
    timeout: float | None = None,
    environment: dict[str, str] | None = None,
) -> int:
    """Runs a program on ranks to its end; on Ctrl-C or after `timeout` seconds the ranks are stopped.

    What Tasuki's `own` programs print is dropped, and if they fail that is a `Failure` with what they said first. Other
    programs' output is passed on, and their exit status returned. A line on stderr such as `3 of 10: halo` moves the
    progress bar.
    """
    said: list[str] = []
    with progress() as bar:
        task = bar.add_task(what, total=None)
        process = launch.start(
            launcher,
            ranks,
            program,
            extra=environment,
            stdout=subprocess.DEVNULL if own else None,
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
        try:
            for line in process.stderr:
                told = PROGRESS.match(line)
                if told:
                    label = f"{what}: {told[3]}" if told[3] else what
                    bar.update(task, completed=int(told[1]), total=int(told[2]), description=label)
                elif own:
                    said.append(line)
                else:
                    print(line, end="", file=sys.stderr)
            process.wait()
        except KeyboardInterrupt:
            launch.stop(process)
            raise
        finally:
            limit.cancel()
    status = launch.TIMED_OUT if stopped.is_set() else launch.exit_status(process)
    if own and status != 0:
        if "--debug" in sys.argv:
            print("".join(said), file=sys.stderr)
        raise Failure(f"{what} ended with status {status}: {first_complaint(said)}")
    return status


def python_on_ranks(module: str, arguments: list[str]) -> tuple[list[str], str]:
    """Program and launcher for a module of the package that runs on ranks."""
    return [sys.executable, "-m", module, *arguments], launch.launcher_for(launch.core_library())
