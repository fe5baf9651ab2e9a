"""The command line `tasuki`. Each command is a module of this package of the same name, imported when it is used."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import threading
import traceback
from importlib import import_module

import click

from tasuki import __version__
from tasuki.checked import FileError
from tasuki.launch import LaunchError

# What `tasuki --help` says of each command; the modules, with what they import, are only loaded to run one.
COMMANDS = {
    "himeno": "Run the Himeno benchmark on ranks.",
    "laplace": "Run the Laplace example on ranks.",
    "run": "Run a Python script or a program on ranks.",
    "mpi": "Unchanged MPI programs: what the library did in a run, and what becomes of a datatype.",
    "info": "Show ranks, hosts, GPUs, MPI and NCCL: what is usable, what is not and why.",
    "tune": "Measure the machine profile that the planner's choices rest on.",
    "explain": "Show the plan of a halo, transfer, broadcast or another collective: pieces, paths, costs.",
    "plan": "Make the plans of all ranks of a machine that need not be there.",
    "predict": "Predict how long an operation takes on machines that need not be there.",
    "verify": "Check plan files, or the plans of a trace.",
    "bench": "Time Tasuki and its peers on the same cases.",
    "plot": "Draw figures from benchmark results.",
    "trace": "Record a run: a timeline of every command on every rank.",
    "report": "Make one HTML page of a folder with traces and results.",
}


STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def plain(text: str) -> str:
    """The text with control characters, which a terminal would obey, spelt out; lines stay lines."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


class Asked:
    """What the options say that matter however the command ends. Set while the command line is read."""

    json = False


class Failure(Exception):
    """Something that the user can set right, told in one line; and the exit status."""

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.status = status


class Stopped(BaseException):
    """A signal asks for the end. Raised wherever the command is, which stops what it has started on its way out."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


class Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return import_module(f"tasuki.cli.{name}").command if name in COMMANDS else None

    def resolve_command(self, ctx: click.Context, args: list[str]):
        if args and args[0] not in COMMANDS:
            raise click.UsageError(f"there is no command '{args[0]}'; there are: {', '.join(COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show where an error came from. May also follow the command.")
@click.version_option(__version__)
def cli(debug: bool) -> None:
    """Tasuki: communication that repeats, planned once and run many times."""
    if debug:
        click.get_current_context().meta["tasuki.debug"] = True


def stop_on_signals() -> None:
    """Has the first of the signals that mean the end raise `Stopped`; those that are ignored (nohup) stay so."""

    def stop(number: int, _frame: object) -> None:
        for each in STOPPING:
            signal.signal(each, signal.SIG_IGN)  # stopping the ranks takes a while, and must not be cut short
        raise Stopped(number)

    if threading.current_thread() is not threading.main_thread():
        return
    for each in STOPPING:
        if signal.getsignal(each) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(each, stop)


def explain_failure(error: BaseException) -> tuple[str, int]:
    """One line for the user, and the exit status."""
    if isinstance(error, click.UsageError):
        where = f" (see {error.ctx.command_path} --help)" if error.ctx else ""
        return error.format_message() + where, 2
    if isinstance(error, click.ClickException):
        return error.format_message(), error.exit_code
    if isinstance(error, Failure):
        return str(error), error.status
    if isinstance(error, (FileError, LaunchError, OSError)):
        return str(error), 1
    if isinstance(error, Stopped):
        return "interrupted" if error.number == signal.SIGINT else str(error), 128 + error.number
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return "interrupted", 130
    core = sys.modules.get("tasuki")  # only if a command has loaded it
    if isinstance(error, getattr(core, "Error", ())):
        return str(error), 1
    return f"{type(error).__name__}: {error} (a defect in Tasuki; --debug shows where)", 70


PASS_ON = ("run", "trace")  # what follows their program are its options


def asks_for_json(arguments: list[str]) -> bool:
    """Whether errors are to be JSON, also of a command line that could not be read to its end."""
    return Asked.json or ("--json" in arguments and not set(PASS_ON) & set(arguments[:2]))


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    Asked.json = False
    stop_on_signals()
    try:
        return cli.main(arguments, prog_name="tasuki", standalone_mode=False) or 0
    except BaseException as error:
        if isinstance(error, SystemExit):
            raise
        if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # new in Click 8.2
            print(error.format_message(), file=sys.stderr)  # the help, whose lines are to stay as they are
            return 2
        text, status = explain_failure(error)
        if "--debug" in own:
            traceback.print_exc()
        line = plain(" ".join(text.split()))
        with contextlib.suppress(OSError):  # after SIGHUP the terminal is gone
            print(f"tasuki: {line}", file=sys.stderr)
            if asks_for_json(own):
                print(json.dumps({"error": line, "status": status}, indent=2), flush=True)
        return status


def entry() -> None:
    """The console script."""
    sys.exit(main())
