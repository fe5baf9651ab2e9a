"""`tasuki verify`: checks the plans of all ranks together, from plan files or from the files of a trace."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console

from tasuki.cli import Failure
from tasuki.cli.common import common, emit, read_json, table


def plans_of(paths: list[Path]) -> list[tuple[str, list[tuple[Path, str]]]]:
    """Operations and their plans, each with its file, by rank. A trace file holds the plans of one rank, in order."""
    files: list[Path] = []
    for path in paths:
        found = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not found:
            raise Failure(f"{path}: no *.json files in this folder")
        files += found
    operations: dict[tuple[int, str], dict[int, tuple[Path, str]]] = {}
    for file in files:
        content = read_json(file)
        if not isinstance(content, dict) or not ({"buffers", "commands"} <= set(content) or "plans" in content):
            if file in paths:
                raise Failure(f"{file}: neither a plan ('buffers', 'commands') nor a rank's trace ('plans')")
            continue  # other files of a folder
        plans = content.get("plans", [content])
        for number, plan in enumerate(plans):
            key = (number, str(plan.get("operation", "")))
            rank = plan.get("rank", 0)
            if rank in operations.setdefault(key, {}):
                other = operations[key][rank][0]
                raise Failure(f"{file}: rank {rank} of operation '{key[1]}' is in {other} already")
            operations[key][rank] = (file, json.dumps(plan))
    if not operations:
        raise Failure(
            "no plans found; give plan files, or a folder that `tasuki trace` or `tasuki explain` has written"
        )
    result = []
    for (_, name), by_rank in sorted(operations.items()):
        ranks = max(json.loads(text).get("ranks", 1) for _, text in by_rank.values())
        missing = [str(rank) for rank in range(ranks) if rank not in by_rank]
        if missing:
            raise Failure(f"operation '{name}' has {ranks} ranks; the plan of rank {', '.join(missing)} is missing")
        result.append((name, [by_rank[rank] for rank in sorted(by_rank)]))
    return result


def check(name: str, plans: list[tuple[Path, str]], epochs: int) -> dict:
    import tasuki

    for file, text in plans:
        try:
            tasuki.Plan.from_json(text)
        except tasuki.Error as error:
            raise Failure(f"{file}: {error}") from None
    report = tasuki.verify_plans([text for _, text in plans], epochs)
    return {
        "operation": name,
        "ranks": len(plans),
        "ok": report.ok,
        "commands": report.commands,
        "bytes": report.bytes,
        "problems": list(report.problems),
    }


@click.command("verify")
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--epochs", type=click.IntRange(0), default=0, help="Epochs to follow; 0: as many as the plans need.")
@common
def command(paths: tuple[Path, ...], epochs: int, as_json: bool) -> int:
    """Check that the plans of all ranks fit together: matching messages, every byte once, no race, no deadlock.

    PATHS are plan files, one a rank, or folders with them or with the files of a trace. Ends with status 1 if a plan is
    wrong.
    """
    results = [check(name, plans, epochs) for name, plans in plans_of(list(paths))]

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
            for problem in r["problems"]:
                console.print(f"[red]{r['operation']}[/red]: ", problem, markup=True, sep="")

    emit({"operations": results}, as_json, show)
    return 0 if all(r["ok"] for r in results) else 1
