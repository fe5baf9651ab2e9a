"""What runs on the ranks for `tasuki info`, `tune` and `explain`: a task by name, its options as JSON, a file a rank.

python -m tasuki.cli.ranks TASK OPTIONS FOLDER
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tasuki.cli.common import python_on_ranks, run_ranks
from tasuki.cli.shapes import KNOWN, NEIGHBOURS, numpy_type

if TYPE_CHECKING:
    import tasuki


def send_once(context, array, path: str) -> str | None:
    """Sends something from rank 0 to rank 1 over a path: None if that works, else why not."""
    import numpy

    import tasuki

    ends = [(rank, array if context.rank == rank else None) for rank in (0, 1)]
    try:
        operation = tasuki.Transfer(context, *ends, path=path)
        operation.run()
        if not isinstance(array, numpy.ndarray):
            tasuki.synchronize(context)
    except tasuki.Error as error:
        return str(error)
    return None


def info(context, options: dict) -> dict:
    """What the core says of itself, of GPUs, and of each path that it knows: None for a kind of memory in which it
    works, else why not."""
    import tasuki

    answer = {"why_no_gpu": tasuki.why_no_gpu(), "paths": {}}
    if context.size == 1:
        return answer | {"describe": context.describe()}
    arrays = {"host": tasuki.shared_array(context, (8,))}
    if not answer["why_no_gpu"]:
        arrays["GPU"] = tasuki.Field(tasuki.Grid(context, (8 * context.size,)), memory="device").array
    # The refusal of a path that does not exist lists those that do, and families such as `shared`.
    names = send_once(context, arrays["host"], "none").rpartition("give one of ")[2].partition(", or ")[0].split(", ")
    families = {name.partition(":")[0] for name in names if ":" in name} - {"mpi"} | {"auto"}  # `mpi` is a path too
    for name in (name for name in names if name not in families):
        answer["paths"][name] = {memory: send_once(context, array, name) for memory, array in arrays.items()}
    return answer | {"describe": context.describe()}


def tune(context, options: dict) -> dict:
    """Making an operation measures what the profile lacks; TASUKI_PROFILE names a file that is not there yet."""
    import tasuki

    grid = tasuki.Grid(context, [4 * context.size])
    tasuki.Halo(tasuki.Field(grid))
    if not tasuki.why_no_gpu():
        tasuki.Halo(tasuki.Field(grid, memory="device"))
    return {}


def tune_collectives(context, options: dict) -> dict:
    """What the core has measured of collectives; it keeps the corrections in the profile."""
    import tasuki
    from tasuki import _core

    if options["memory"] == "device":
        tasuki.Field(tasuki.Grid(context, [4 * context.size]), memory="device")  # GPUs are used from here on
    told = _core._tune_collectives(
        context,
        options["kinds"],
        options["sizes"],
        options["memory"] == "device",
        options["rounds"],
        options["seconds"],
    )
    return json.loads(told) if context.rank == 0 else {}


def beside(advice) -> dict:
    """What `--beside` shows, for programs."""
    ways = [{"engine": e, "us": us * 1e6, "exposed_us": x * 1e6, "how": how} for e, us, x, how in advice.ways]
    return {"us": advice.computation * 1e6, "ways": ways, "pays": advice.pays, "text": advice.text()}


def array_for(context, options: dict, elements: int, dtype):
    """An array of so many elements on every rank: on GPUs, or in memory of Tasuki, or the user's own."""
    import numpy

    import tasuki

    if options["memory"] == "device":  # an array has one element at least
        grid = tasuki.Grid(context, [max(elements, 1) * context.size], split=[context.size])
        return tasuki.Field(grid, dtype, memory="device").array[:elements]
    if options["shared"]:
        return tasuki.shared_array(context, (elements,), dtype)
    return numpy.zeros(elements, dtype)


def collective(context, kind: str, options: dict, force: dict):
    """The collective that the options describe."""
    import tasuki

    known = KNOWN[kind]
    make = getattr(tasuki, known.cls)
    named = ("root", "op", "ordered", "algorithm", "trees", "arity", "chunk")
    given = force | {key: options[key] for key in (*known.integers, *named) if key in options}
    if "count" not in known.options:  # a barrier
        return make(context, where=options["memory"], **given)
    at_root = context.rank == options.get("root", context.rank)
    in_place = options.get("in_place") and at_root
    sides = {}
    for side in ("source", "target"):
        if known.at_root == side and not at_root:
            sides[side] = None
        elif in_place and side == known.in_place:
            sides[side] = tasuki.in_place
        else:  # in place, a target holds the source's blocks
            several = side in known.blocks or (in_place and known.in_place in known.blocks)
            count = options["count"] * (context.size if several else 1)
            sides[side] = array_for(context, options, count, numpy_type(options["dtype"]))
    return make(context, **sides, **given)


def neighbours(context, kind: str, options: dict, force: dict):
    """The neighbour collective that the options describe."""
    import tasuki

    split = options["split"]
    grid = tasuki.Grid(context, [context.size] * len(split), split=split, periodic=options["periodic"])
    several = 2 * len(split) * options["count"]
    dtype = numpy_type(options["dtype"])
    target = array_for(context, options, several, dtype)
    if kind == "neighbour-allgather":
        return tasuki.NeighbourAllgather(
            context, grid, array_for(context, options, options["count"], dtype), target, **force
        )
    return tasuki.NeighbourAlltoall(context, grid, array_for(context, options, several, dtype), target, **force)


def exchange(context, options: dict, force: dict):
    """The exchange of a mesh that the options describe."""
    import numpy

    import tasuki
    from tasuki.meshes import wavy_mesh

    parts = wavy_mesh(options["mesh"], context.size, scrambled=options["order"] == "scrambled")
    mine, dtype = parts[context.rank], numpy_type(options["dtype"])
    fields = {}
    for name in options["fields"]:
        shape = (mine.cells, options["levels"])
        if options["memory"] == "device":
            most = max(part.cells for part in parts)
            grid = tasuki.Grid(context, [most * context.size, options["levels"]], split=[context.size, 1])
            fields[name] = tasuki.Field(grid, dtype, memory="device").array[: mine.cells]
        elif options["shared"]:
            fields[name] = tasuki.shared_array(context, shape, dtype)
        else:
            fields[name] = numpy.zeros(shape, dtype)
    return tasuki.Exchange(context, fields, mine.entries, reverse=options["reverse"], **force)


def redistribute(context, options: dict, force: dict):
    """The redistribution that the options describe."""
    import numpy

    import tasuki
    from tasuki.cli.shapes import sides_of

    dtype = numpy_type(options["dtype"])

    def local(distribution):
        shape = distribution.local_shape(context.rank)
        if options["memory"] == "device":
            most = [max(distribution.local_shape(rank)[d] for rank in range(context.size)) for d in range(len(shape))]
            most[0] *= context.size
            grid = tasuki.Grid(context, most, split=[context.size] + [1] * (len(shape) - 1))
            field = tasuki.Field(grid, dtype, shadow=0, memory="device")
            return field.array[tuple(slice(extent) for extent in shape)]
        return tasuki.shared_array(context, shape, dtype) if options["shared"] else numpy.zeros(shape, dtype)

    sides = [({name: local(side) for name in options["fields"]}, side) for side in sides_of(options)]
    return tasuki.Redistribute(context, *sides, axes=options["axes"], scratch=options["scratch"], **force)


def predicted(prediction: tasuki.Prediction) -> dict:
    return {
        "us": prediction.seconds * 1e6,
        "back_to_back_us": prediction.back_to_back * 1e6,
        "text": prediction.text(),
    }


def explain(context, options: dict) -> dict:
    """The plan of the operation that the options describe."""
    import numpy

    import tasuki

    force = {"path": options["path"], "engine": options["engine"]}
    kind = options["kind"]
    if kind == "halo":
        keys = ("split", "periodic", "reorder", "mapping")
        grid = tasuki.Grid(context, options["extents"], **{key: options[key] for key in keys})
        fields = [
            tasuki.Field(
                grid, numpy_type(options["dtype"]), name=name, **{k: options[k] for k in ("shadow", "copies", "memory")}
            )
            for name in options["fields"]
        ]
        halo = {key: options[key] for key in ("width", "corners", "reverse", "edges")}
        operation = tasuki.Halo(fields, alternating=options["copies"] == 2, **halo, **force)
    elif kind == "transfer":
        rows, columns, stride = options["rows"], options["columns"], options["stride"]
        make = tasuki.shared_array if options["shared"] else lambda _, shape, dtype: numpy.zeros(shape, dtype)
        block = make(context, (rows, stride), numpy_type(options["dtype"]))[:, :columns]
        ends = [(rank, block if context.rank == rank else None) for rank in (options["source"], options["target"])]
        operation = tasuki.Transfer(context, *ends, **force)
    elif kind == "broadcast":
        array = array_for(context, options | {"shared": True}, options["bytes"], "uint8")
        shape = {key: options[key] for key in ("algorithm", "trees", "arity", "chunk")}
        operation = tasuki.Broadcast(context, options["root"], array, **shape, **force)
    elif kind == "exchange":
        operation = exchange(context, options, force)
    elif kind == "redistribute":
        operation = redistribute(context, options, force)
    elif kind in NEIGHBOURS:
        operation = neighbours(context, kind, options, force)
    else:
        operation = collective(context, kind, options, force)
    answer = {"text": operation.explain(), "plan": json.loads(operation.plan.json()), "memory": operation.memory}
    answer["predicted"] = predicted(tasuki.predict(operation))
    if options["beside"] is not None:
        answer["beside"] = beside(tasuki.advise(operation, options["beside"] * 1e-6))
    if options["run"]:
        answer["measured"] = measured(context, operation, options)
    return answer


def measured(context, operation, options: dict) -> str:
    """The table of predicted and measured times, after so many epochs back to back."""
    import tasuki

    if options.get("memory") != "device":
        operation.explain(measured=True)  # from now on times are kept
    for _ in range(options["run"]):
        operation.run()
    if options.get("memory") == "device":
        tasuki.synchronize(context)
    return operation.explain(measured=True).removeprefix(operation.explain())


TASKS = {"info": info, "tune": tune, "tune_collectives": tune_collectives, "explain": explain}


def on_ranks(task: str, options: dict, ranks: int, what: str, environment: dict[str, str] | None = None) -> list[dict]:
    """Runs the task on ranks and returns what each has to say, by rank."""
    with tempfile.TemporaryDirectory() as folder:
        program, launcher = python_on_ranks("tasuki.cli.ranks", [task, json.dumps(options), folder])
        answers = [Path(folder) / f"{rank}.json" for rank in range(ranks)]
        run_ranks(ranks, program, launcher, what=what, leaves=answers, environment=environment)
        return [json.loads(answer.read_text()) for answer in answers]


def main() -> int:
    import tasuki

    task, options, folder = sys.argv[1:]
    try:
        context = tasuki.Context()
        answer = TASKS[task](context, json.loads(options))
    except tasuki.Error as error:
        # All ranks fail alike; the launcher ends those that would still wait.
        print(error, file=sys.stderr, flush=True)
        os._exit(1)
    (Path(folder) / f"{context.rank}.json").write_text(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
