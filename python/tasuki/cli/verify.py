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

TOGETHER = 256  # of more ranks neighbourhoods are looked at first
NOT_VERIFIED = 3  # the exit status

# Of plans that neighbourhoods are not for: what following them together may take. The verifier keeps a clock for each
# signal, with an entry of 4 bytes for each lane, and joins such clocks at each command.
MOST_CLOCK_BYTES = 8 << 30
MOST_JOINED = 40 * 10**9  # entries: about a minute


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


def is_too_large(report: tasuki.VerifyReport) -> str | None:
    """Why the verifier cannot follow all these plans together, if it says that it cannot."""
    told = [problem for problem in report.problems if "more than the verifier follows" in problem]
    return told[0].partition("; ")[0] if told and report.commands == 0 else None


def is_too_costly(plans: list[dict], epochs: int) -> str | None:
    """Why following these plans together would take too long, or too much memory; None if it would not."""
    lanes = commands = signals = 0
    rings, lags = [1], [0]
    for plan in plans:
        loops = [loop.get("count", 1) for loop in plan.get("loops", [])]
        rings += [buffer.get("ring", 1) for buffer in plan["buffers"]]
        seen = set()
        for command in plan["commands"]:
            times = loops[command["loop"]] if command.get("loop", -1) >= 0 else 1
            commands += times
            signals += times * (command.get("verb") == "signal")
            lags.append(command.get("lag", 0))
            seen.add(command.get("lane", 0))
        lanes += len(seen)
    epochs = epochs or max(2, max(rings) + 1, max(lags) + 2)
    clocks, joined = 4 * epochs * signals * (lanes + len(plans)), epochs * commands * (lanes + len(plans))
    if clocks <= MOST_CLOCK_BYTES and joined <= MOST_JOINED:
        return None
    return (
        f"to follow {epochs} epochs of {commands} commands in {lanes} lanes together would take {clocks / 2**30:.0f} "
        f"GiB and about {joined / MOST_JOINED:.0f} minutes; verify a smaller case"
    )


def check(name: str, plans: list[RankPlan], epochs: int, by_neighbourhoods: bool) -> dict:
    import tasuki

    read = []
    for plan in plans:
        try:
            read.append(tasuki.Plan.from_json(plan.text))
        except tasuki.Error as error:
            raise Failure(f"{plan.file}: {plan.place}{error}") from None
    report: tasuki.VerifyReport | None = None
    classes = why = None
    if not by_neighbourhoods and len(read) <= TOGETHER:
        report = tasuki.verify(read, epochs)
        why = is_too_large(report)
    if report is None or why:
        try:
            report = neighbourhoods = tasuki.verify_neighbourhoods(read)
            classes, why = neighbourhoods.classes, None
        except tasuki.Error as error:  # plans that are not for neighbourhoods
            why = f"{why}; {error}" if why else str(error)
            if report is None and not by_neighbourhoods:
                cost = is_too_costly([json.loads(plan.text) for plan in plans], epochs)
                if not cost:
                    report = tasuki.verify(read, epochs)
                    cost = is_too_large(report)
                why = cost and f"{why}; {cost}"
    done = None if why else report
    return {
        "operation": name,
        "ranks": len(plans),
        "ok": done is not None and done.ok,
        "not_verified": why,
        "classes": classes,
        "commands": 0 if done is None else done.commands,
        "bytes": 0 if done is None else done.bytes,
        "problems": [] if done is None else list(done.problems),
    }


def verdict(result: dict) -> str:
    if result["not_verified"]:
        return "not verified"
    return "sound" if result["ok"] else f"{len(result['problems'])} problems"


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
    wrong, and with 3 if nothing is wrong but some plans are too large to be verified. Plans of very many ranks are
    checked by neighbourhoods, where that is enough; this is said.
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
                verdict(r),
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
            if r["not_verified"]:
                console.print(
                    Text(f"{plain(r['operation'])}: not verified: {plain(r['not_verified'])}"), soft_wrap=True
                )
            for problem in r["problems"]:
                console.print(Text(plain(r["operation"]), "red"), ": ", Text(plain(problem)), sep="")

    emit({"operations": results}, as_json, show)
    if all(r["ok"] for r in results):
        return 0
    return NOT_VERIFIED if all(r["ok"] or r["not_verified"] for r in results) else 1
