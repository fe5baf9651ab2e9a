"""What `tasuki explain` and `tasuki plan` describe: a halo, a transfer or a broadcast as options, and their plans on a
machine that need not be there."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from tasuki._operations import BY_NAME, COLLECTIVES
from tasuki.cli import Failure
from tasuki.cli.common import INT_MOST, LONG_MOST

if TYPE_CHECKING:
    import numpy

    import tasuki

# Element types by the names that plans have: NumPy's names for numbers; value and index of pairs.
NUMBERS = {
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    "bf16": "bfloat16",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"c{bits}": f"complex{bits}" for bits in (64, 128)},
}
PAIRS = ["f32_i32", "f64_i32", "i32_i32", "i64_i32", "f64_i64", "i64_i64"]

# What only ranks look at.
OF_RANKS = {
    "TASUKI_ALGORITHM": "give --algorithm",
    "TASUKI_ISLAND": "set 'per_island' of the machine",
    "TASUKI_PATH": "give --path",
}


def numbers(least: int, most: int) -> Callable:
    def parse(ctx: click.Context, option: click.Option, text: str | None):
        if text is None:
            return None
        found = [int(n) for n in text.split("x")] if re.fullmatch(r"\d{1,20}(x\d{1,20})*", text, re.ASCII) else []
        if not found or min(found) < least or max(found) > most:
            raise click.BadParameter(f"'{text}' is not like 64x64x128, with numbers from {least} to {most}")
        return found

    return parse


def mapping(ctx: click.Context, option: click.Option, text: str | None) -> str | list[int] | None:
    if text is None or not re.fullmatch(r"\d{1,9}(,\d{1,9})*", text, re.ASCII):
        return text
    return [int(rank) for rank in text.split(",")]


def field_names(ctx: click.Context, option: click.Option, text: str) -> list[str]:
    if re.fullmatch(r"\d{1,4}", text, re.ASCII) and int(text) >= 1:
        return [f"f{i}" for i in range(int(text))]
    names = text.split(",")
    if not all(re.fullmatch(r"[^\W\d]\w*", name) for name in names) or len(set(names)) < len(names):
        raise click.BadParameter(f"'{text}' is neither a number from 1 to 9999 nor different names such as p,q")
    return names


def switches(ctx: click.Context, option: click.Option, text: str) -> bool | list[bool]:
    if text in ("all", "none"):
        return text == "all"
    if not re.fullmatch(r"[01](,[01])*", text):
        raise click.BadParameter(f"'{text}' is not all, none, or a 1 or a 0 for each dimension such as 1,1,0")
    return [entry == "1" for entry in text.split(",")]


def number_type(ctx: click.Context, option: click.Option, text: str) -> str:
    name = NUMBERS.get(text, text)
    if name not in (*NUMBERS.values(), *PAIRS):
        raise click.BadParameter(f"'{text}' is none of {', '.join([*NUMBERS, *NUMBERS.values(), *PAIRS])}")
    return name


def numpy_type(name: str) -> numpy.dtype:
    """NumPy's type of what `number_type` has returned. Raises Failure for bfloat16 without the package that has it."""
    import numpy

    if name in PAIRS:
        value, index = (NUMBERS[part] for part in name.split("_"))
        return numpy.dtype([("value", value), ("index", index)], align=True)
    if name == "bfloat16":
        try:
            import ml_dtypes  # noqa: F401 - NumPy knows the name from then on
        except ImportError:
            raise Failure(
                "--dtype bf16: NumPy by itself has no such type; pip install ml_dtypes, or plan a collective off line "
                "with --machine"
            ) from None
    return numpy.dtype(name)


def together(*options: Callable) -> Callable:
    """One decorator of several options, which the help lists in this order."""

    def decorate(function: Callable) -> Callable:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


dtype_option = click.option(
    "--dtype",
    default="float64",
    callback=number_type,
    show_default=True,
    help="float64 or f64, int32 or i32, bf16, complex64 or c64, ...; f64_i32, ...: pairs for minloc and maxloc.",
)
memory_option = click.option("--memory", type=click.Choice(["host", "device"]), default="host", show_default=True)

halo_options = together(
    click.option(
        "--extents", default="64x64x64", callback=numbers(1, LONG_MOST), show_default=True, help="Global cells."
    ),
    click.option("--split", callback=numbers(0, INT_MOST), help="Ranks a dimension; 0: chosen. Default: all chosen."),
    click.option(
        "--shadow",
        callback=numbers(0, INT_MOST),
        help="Cells on every side, or of each dimension: 1x1x0. Default: as --width, or else 1.",
    ),
    click.option("--width", type=click.IntRange(0, INT_MOST), help="Of the shadow, what takes part. Default: all."),
    click.option(
        "--fields", default="1", callback=field_names, show_default=True, help="How many, or their names: p,q."
    ),
    click.option("--copies", type=click.IntRange(1, 2), default=1, show_default=True, help="2: an alternating pair."),
    click.option("--corners/--no-corners", default=True, show_default=True),
    click.option(
        "--periodic",
        default="all",
        is_flag=False,
        flag_value="all",
        callback=switches,
        show_default=True,
        help="all, none, or a dimension each: 1,1,0.",
    ),
    click.option("--no-periodic", is_flag=True, help="As --periodic none."),
    click.option("--reverse", is_flag=True, help="Add shadows into their owners."),
    click.option(
        "--edges", default="", help="What fills shadows outside the grid: i=-face,j=face/none, as in the library."
    ),
    click.option("--reorder", is_flag=True, help="Which rank has which box is chosen, as by --mapping hops."),
    click.option(
        "--mapping",
        callback=mapping,
        help="Which rank has which box: row, column, blocks (of islands), hops, or the rank of each box: 0,2,1,3.",
    ),
    memory_option,
    dtype_option,
)

transfer_options = together(
    click.option("--rows", type=click.IntRange(1, LONG_MOST), default=256, show_default=True),
    click.option("--columns", type=click.IntRange(1, LONG_MOST), default=16, show_default=True),
    click.option(
        "--stride", type=click.IntRange(1, LONG_MOST), default=4096, show_default=True, help="Elements from row to row."
    ),
    click.option("--source", type=click.IntRange(0, INT_MOST), default=0, show_default=True, help="Rank that sends."),
    click.option(
        "--target", type=click.IntRange(0, INT_MOST), default=1, show_default=True, help="Rank that receives."
    ),
    click.option("--shared/--private", default=True, show_default=True, help="Memory of Tasuki, or the user's own."),
    dtype_option,
)

COLLECTIVE_OPTIONS = {
    "count": click.option(
        "--count", type=click.IntRange(0, LONG_MOST), default=1024, show_default=True, help="Elements, of a block too."
    ),
    "dtype": dtype_option,
    "op": click.option(
        "--op",
        default="sum",
        show_default=True,
        help="sum, product, min, max, band, bor, bxor, land, lor, lxor; minloc, maxloc of pairs.",
    ),
    "root": click.option("--root", type=click.IntRange(0, INT_MOST), default=0, show_default=True),
    "ordered": click.option("--ordered", is_flag=True, help="Reductions combine in the ranks' order."),
    "in_place": click.option("--in-place", is_flag=True),
    "memory": memory_option,
    "shared": click.option(
        "--shared/--private",
        default=None,
        help="Memory that peers can map, or the user's own. Default: the user's own; on GPUs what peers can map, as "
        "cudaMalloc's.",
    ),
    "algorithm": click.option("--algorithm", default="auto", show_default=True, help="Force one by name."),
    "trees": click.option("--trees", type=click.IntRange(0, INT_MOST), default=0, help="0: chosen by cost."),
    "arity": click.option("--arity", type=click.IntRange(0, INT_MOST), default=0, help="0: chosen by cost."),
    "chunk": click.option("--chunk", type=click.IntRange(0, LONG_MOST), default=0, help="Bytes; 0: chosen by cost."),
}


KNOWN = COLLECTIVES | BY_NAME


def options_of(kind: str) -> Callable:
    """Those that an operation has of which all is written from the schema."""
    integers = [
        click.option(f"--{name.replace('_', '-')}", type=click.IntRange(-INT_MOST, INT_MOST), required=True, help=text)
        for name, text in KNOWN[kind].integers.items()
    ]
    return together(*integers, *(COLLECTIVE_OPTIONS[name] for name in KNOWN[kind].options))


broadcast_options = together(
    click.option("--bytes", type=click.IntRange(1, LONG_MOST), default=1 << 20, show_default=True),
    click.option("--root", type=click.IntRange(0, INT_MOST), default=0, show_default=True),
    *(COLLECTIVE_OPTIONS[name] for name in ("trees", "arity", "chunk", "algorithm", "memory")),
)

NEIGHBOURS = {
    "neighbour-alltoall": "A block to each neighbour in a grid of ranks, and one from each.",
    "neighbour-allgather": "Each rank's block to its neighbours in a grid of ranks.",
}

neighbour_options = together(
    click.option(
        "--split",
        default="0x0x0",
        callback=numbers(0, INT_MOST),
        show_default=True,
        help="Ranks a dimension; 0: chosen.",
    ),
    click.option(
        "--periodic",
        default="none",
        callback=switches,
        show_default=True,
        help="all, none, or a dimension each: 1,1,0.",
    ),
    click.option(
        "--count", type=click.IntRange(0, LONG_MOST), default=1024, show_default=True, help="Elements of every block."
    ),
    dtype_option,
    memory_option,
    click.option(
        "--shared/--private",
        default=None,
        help="Memory that peers can map, or the user's own. Default: the user's own; on GPUs what peers can map, as "
        "cudaMalloc's.",
    ),
)

exchange_options = together(
    click.option(
        "--mesh", type=click.IntRange(1, 4096), default=64, show_default=True, help="Cells on a side of a square mesh."
    ),
    click.option(
        "--order",
        type=click.Choice(["scrambled", "rows"]),
        default="scrambled",
        show_default=True,
        help="How a rank's cells are numbered.",
    ),
    click.option("--levels", type=click.IntRange(1, INT_MOST), default=1, show_default=True, help="Numbers of a cell."),
    click.option(
        "--fields", default="1", callback=field_names, show_default=True, help="How many, or their names: p,q."
    ),
    click.option("--reverse", is_flag=True, help="Add ghosts into their owners."),
    dtype_option,
    memory_option,
    COLLECTIVE_OPTIONS["shared"],
)


def split_of(ctx: click.Context, option: click.Option, text: str) -> list:
    """The entries of `ArrayDistribution`: `4`, `c4`, `c4:2`, `r2`, with x between them."""
    entries = []
    for entry in text.split("x"):
        found = re.fullmatch(r"(?:([1-9]\d{0,6})|c([1-9]\d{0,6})(?::([1-9]\d{0,12}))?|r([1-9]\d{0,6}))", entry)
        if not found:
            raise click.BadParameter(f"'{entry}' is none of 4 (blocks), c4 or c4:2 (cyclic, of 2), r4 (replicated)")
        block, cyclic, width, replicated = found.groups()
        if block:
            entries.append(int(block))
        elif cyclic:
            entries.append(("cyclic", int(cyclic), int(width or 1)))
        else:
            entries.append(("replicated", int(replicated)))
    return entries


redistribute_options = together(
    click.option(
        "--extents", default="64x64x64", callback=numbers(1, LONG_MOST), show_default=True, help="Of the global array."
    ),
    click.option(
        "--source",
        required=True,
        callback=split_of,
        help="Ranks in each dimension of the process grid before: 4x1x1; c4:2 for blocks of 2 in turn, r2: replicated.",
    ),
    click.option("--target", required=True, callback=split_of, help="The same afterwards: 1x4x1."),
    click.option(
        "--axes",
        callback=numbers(0, 6),
        help="The source's dimensions in the order of the target's: 1x0x2. Default: as they are.",
    ),
    click.option(
        "--arrays",
        "fields",
        default="array",
        callback=field_names,
        show_default=True,
        help="How many, or their names: p,q.",
    ),
    click.option(
        "--scratch",
        type=click.IntRange(0, LONG_MOST),
        default=0,
        help="Bytes that a rank may have to pack or stage what moves; 0: no limit.",
    ),
    dtype_option,
    memory_option,
    COLLECTIVE_OPTIONS["shared"],
)

# Name, help and options of each operation, for `explain`, `plan` and `predict`.
COMMANDS = [
    ("halo", "A halo exchange on a grid.", halo_options),
    ("transfer", "A block of columns out of a matrix, from one rank to another.", transfer_options),
    ("broadcast", "One rank's bytes to all ranks.", broadcast_options),
    ("exchange", "The ghost cells of a square mesh, cut by wavy lines: neighbours across edges.", exchange_options),
    ("redistribute", "Arrays from one distribution over ranks to another one.", redistribute_options),
    *((kind, known.help, options_of(kind)) for kind, known in KNOWN.items()),
    *((kind, text, neighbour_options) for kind, text in NEIGHBOURS.items()),
]

path_option = click.option(
    "--path",
    default="auto",
    show_default=True,
    help="Paths for what leaves a rank, with commas; of a halo also by direction: i=mpi,j=peer.",
)


def check_entries(options: dict, whole: str, *names: str) -> None:
    """Raises UsageError unless the options have an entry for each dimension, or none."""
    dimensions = len(options[whole])
    for name in names:
        if isinstance(options[name], list) and len(options[name]) != dimensions:
            raise click.UsageError(
                f"--{name} has {len(options[name])} entries, but --{whole} has {dimensions} dimensions"
            )


def checked(kind: str, options: dict) -> dict:
    """The options of an operation, as both the ranks and `planned` take them. Raises Failure or UsageError."""
    if kind == "transfer" and options["columns"] > options["stride"]:
        raise Failure(f"--columns {options['columns']} is more than --stride {options['stride']}: rows would overlap")
    options = dict(options)
    if (kind in KNOWN or kind in NEIGHBOURS or kind in ("exchange", "redistribute")) and options.get(
        "shared", False
    ) is None:
        options["shared"] = options["memory"] == "device"
    if kind in NEIGHBOURS:
        check_entries(options, "split", "periodic")
    if kind == "redistribute":
        check_entries(options, "extents", "source", "target", "axes")
    if kind != "halo":
        return options
    if options.pop("no_periodic"):
        options["periodic"] = False
    check_entries(options, "extents", "split", "periodic")
    shadow = options["shadow"] or [1 if options["width"] is None else options["width"]]
    if options["width"] is not None and options["width"] > min(shadow):
        raise click.UsageError(f"--width {options['width']} is more than --shadow {'x'.join(map(str, shadow))}")
    if len(shadow) == 1:
        options["shadow"] = shadow[0]
    else:
        options["shadow"] = shadow
        check_entries(options, "extents", "shadow")
    return options


def sides_of(options: dict) -> tuple[tasuki.ArrayDistribution, tasuki.ArrayDistribution]:
    """Both sides of a redistribution. Raises tasuki.Error."""
    import tasuki

    extents = options["extents"]
    axes = options["axes"] or range(len(extents))
    permuted = [extents[axis] for axis in axes if axis < len(extents)]  # plans complain of axes that are none
    source = tasuki.ArrayDistribution(extents, options["source"])
    return source, tasuki.ArrayDistribution(permuted, options["target"])


def machine_of(name: str, ranks: int | None) -> tasuki.Machine:
    import tasuki

    for variable, instead in OF_RANKS.items():
        if os.environ.get(variable):
            click.echo(f"note: {variable} is set, but plans off line do not depend on it; {instead}", err=True)
    machine = tasuki.Machine.from_file(name)
    return machine if ranks is None else machine.resized(ranks)


def planned(kind: str, machine: tasuki.Machine, options: dict) -> tasuki.Planned:
    """The plans of all ranks of the machine. Raises tasuki.Error."""
    import tasuki

    if kind == "halo":
        keys = (
            *("split", "periodic", "reorder", "mapping", "shadow", "width", "copies", "memory"),
            *("corners", "reverse", "edges", "path"),
        )
        return tasuki.plan_halo(
            machine,
            options["extents"],
            options["fields"],
            numpy_type(options["dtype"]),
            alternating=options["copies"] == 2,
            **{key: options[key] for key in keys},
        )
    if kind == "transfer":
        element = tasuki.Layout.of(numpy_type(options["dtype"]))
        block = tasuki.Layout.vector(options["rows"], options["columns"], options["stride"], element)
        ends = [(options[side], block) for side in ("source", "target")]
        return tasuki.plan_transfer(machine, *ends, shared=options["shared"], path=options["path"])
    if kind in COLLECTIVES:
        given = {key: options[key] for key in (*COLLECTIVES[kind].options, "path")}
        if given.get("dtype", "bfloat16") != "bfloat16":
            given["dtype"] = numpy_type(given["dtype"])
        return tasuki.plan_collective(machine, kind, **given)
    if kind in BY_NAME:
        known = BY_NAME[kind]
        given = {key: options[key] for key in (*known.integers, *known.options, "path")}
        if "dtype" in given:
            given["dtype"] = numpy_type(given["dtype"])
        return getattr(tasuki, f"plan_{kind}")(machine, **given)
    if kind == "exchange":
        from tasuki.meshes import wavy_mesh

        parts = wavy_mesh(options["mesh"], machine.size, scrambled=options["order"] == "scrambled")
        dtype = options["dtype"] if options["dtype"] == "bfloat16" else numpy_type(options["dtype"])
        return tasuki.plan_exchange(
            machine,
            [part.entries for part in parts],
            options["fields"],
            dtype,
            numbers=options["levels"],
            **{key: options[key] for key in ("reverse", "memory", "shared", "path")},
        )
    if kind == "redistribute":
        return tasuki.plan_redistribute(
            machine,
            *sides_of(options),
            options["fields"],
            numpy_type(options["dtype"]),
            **{key: options[key] for key in ("axes", "memory", "shared", "path", "scratch")},
        )
    if kind in NEIGHBOURS:
        keys = ("count", "split", "periodic", "memory", "shared", "path")
        dtype = options["dtype"] if options["dtype"] == "bfloat16" else numpy_type(options["dtype"])
        return tasuki.plan_neighbours(
            machine, kind.removeprefix("neighbour-"), dtype=dtype, **{key: options[key] for key in keys}
        )
    keys = ("algorithm", "trees", "arity", "chunk", "memory", "path")
    return tasuki.plan_broadcast(
        machine, options["root"], options["bytes"], shared=True, **{key: options[key] for key in keys}
    )
