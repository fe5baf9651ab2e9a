"""`tasuki verify`: checks the plans of all ranks together, from plan files or from the files of a trace."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.text import Text

from tasuki import checked, timeline
from tasuki.cli import Failure, plain
from tasuki.cli.common import INT_MOST, common, emit, table

if TYPE_CHECKING:
    import tasuki

TOGETHER = 256  # ranks that are verified together, unless otherwise asked for


@dataclass(frozen=True)
class RankPlan:
    file: Path
    place: str  # in the file, for messages
    operation: str
    rank: int
    ranks: int
    text: str  # JSON


def plans_in(content: dict, file: Path) -> list[RankPlan]:
    """The plans of a file: one, or those of a trace. Raises FileError if they are none."""
    several = "plans" in content
    plans = checked.need(content["plans"], checked.LIST, file, "plans") if several else [content]
    found = []
    for i, plan in enumerate(plans):
        place = f"plans[{i}]" if several else ""
        checked.need(plan, checked.OBJECT, file, place)
        known = {"operation": "", "rank": 0, "ranks": 1} | plan
        kinds = {"operation": checked.TEXT, "rank": checked.COUNT, "ranks": checked.POSITIVE_COUNT}
        checked.need_all(known, kinds, file, place)
        if known["rank"] >= known["ranks"]:
            where = f"{place}.rank" if place else "rank"
            raise checked.FileError(f"{file}: {where} is {known['rank']}; 'ranks' is {known['ranks']}")
        told = {key: known[key] for key in kinds}
        found.append(RankPlan(file, f"{place}: " if place else "", text=json.dumps(plan), **told))
    return found


def plans_of(paths: list[Path]) -> list[tuple[str, list[RankPlan]]]:
    """Operations and their plans, by rank. A trace file holds the plans of one rank, in order."""
    files: list[Path] = []
    for path in paths:
        found = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not found:
            raise Failure(f"{path}: no *.json files in this folder")
        files += found
    operations: dict[tuple[int, str], dict[int, RankPlan]] = {}
    for file in files:
        content = checked.read_json(file)
        if not isinstance(content, dict) or not ({"buffers", "commands"} <= set(content) or "plans" in content):
            if file in paths:
                raise Failure(f"{file}: neither a plan ('buffers', 'commands') nor a rank's trace ('plans')")
            continue  # other files of a folder
        for number, plan in enumerate(plans_in(content, file)):
            same = operations.setdefault((number, plan.operation), {})
            if plan.rank in same:
                raise Failure(
                    f"{file}: rank {plan.rank} of operation '{plan.operation}' is in {same[plan.rank].file} already"
                )
            same[plan.rank] = plan
    if not operations:
        raise Failure(
            "no plans found; give plan files, or a folder that `tasuki plan`, `trace` or `explain` has written"
        )
    result = []
    for (_, name), by_rank in sorted(operations.items()):
        most = max(by_rank.values(), key=lambda plan: plan.ranks)
        count, missing = timeline.some_missing(by_rank, most.ranks)
        if count:
            plans = "plan" if count == 1 else f"{count} plans"
            verb = "is" if count == 1 else "are"
            raise Failure(
                f"{most.file}: operation '{name}' has {most.ranks} ranks; the {plans} of rank {missing} {verb} missing"
            )
        result.append((name, [by_rank[rank] for rank in sorted(by_rank)]))
    return result


def is_too_large(report: tasuki.VerifyReport) -> bool:
    """Whether the verifier says that it cannot follow all these plans together."""
    return report.commands == 0 and any("more than the verifier follows" in problem for problem in report.problems)


def check(name: str, plans: list[RankPlan], epochs: int, by_neighbourhoods: bool) -> dict:
    import tasuki

    read = []
    for plan in plans:
        try:
            read.append(tasuki.Plan.from_json(plan.text))
        except tasuki.Error as error:
            raise Failure(f"{plan.file}: {plan.place}{error}") from None
    report: tasuki.VerifyReport | None = None
    classes = None
    if not by_neighbourhoods and len(read) <= TOGETHER:
        report = tasuki.verify(read, epochs)
    if report is None or is_too_large(report):
        try:
            neighbourhoods = tasuki.verify_neighbourhoods(read)
            report, classes = neighbourhoods, neighbourhoods.classes
        except tasuki.Error as error:  # lanes that deal with several ranks: there are no neighbourhoods
            if by_neighbourhoods:
                raise Failure(f"operation '{name}': {error}") from None
            if report is None:
                report = tasuki.verify(read, epochs)
    return {
        "operation": name,
        "ranks": len(plans),
        "ok": report.ok,
        "classes": classes,
        "commands": report.commands,
        "bytes": report.bytes,
        "problems": list(report.problems),
    }


@click.command("verify")
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--epochs", type=click.IntRange(0, INT_MOST), default=0, help="Epochs to follow; 0: as many as the plans need."
)
@click.option(
    "--neighbourhoods",
    is_flag=True,
    help=f"One rank of each class with its peers; so it is for more than {TOGETHER} ranks, or plans too large else.",
)
@common
def command(paths: tuple[Path, ...], epochs: int, neighbourhoods: bool, as_json: bool) -> int:
    """Check that the plans of all ranks fit together: matching messages, every byte once, no race, no deadlock.

    PATHS are plan files, one a rank, or folders with them or with the files of a trace. Ends with status 1 if a plan is
    wrong. Plans of very many ranks are checked by neighbourhoods, which is said.
    """
    if neighbourhoods and epochs:
        raise click.UsageError("--epochs is for all ranks together; leave it out with --neighbourhoods")
    results = [check(name, plans, epochs, neighbourhoods) for name, plans in plans_of(list(paths))]

    def show(console: Console) -> None:
        rows = [
            [
                r["operation"],
                r["ranks"],
                r["commands"],
                r["bytes"],
                "sound" if r["ok"] else f"{len(r['problems'])} problems",
            ]
            for r in results
        ]
        console.print(table("plans", ["operation", ">ranks", ">commands run", ">bytes followed", "verdict"], rows))
        for r in results:
            if r["classes"] is not None:
                console.print(
                    f"{r['operation']}: by neighbourhoods: one rank of each of {r['classes']} classes of ranks with "
                    "equal plans and peers, with its peers; flaws among ranks farther apart are not seen",
                    soft_wrap=True,
                )
            for problem in r["problems"]:
                console.print(Text(plain(r["operation"]), "red"), ": ", Text(plain(problem)), sep="")

    emit({"operations": results}, as_json, show)
    return 0 if all(r["ok"] for r in results) else 1
