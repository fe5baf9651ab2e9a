"""The schema: one entry for each operation, from which C, Fortran, Python and the command line are written.

Sentences say `{in}` for the name that an argument has in the language, and {in_place}, {null}, {type_of} and the like
for what the language calls these (texts.py). Counts are elements unless a sentence says bytes.
"""

from __future__ import annotations

from schema import Argument, Operation, Option, Options, unique

# ---- options ---------------------------------------------------------------------------------------------------------

PATH = Option(
    "path",
    "text",
    "A path, a family, or several with commas between them; of a halo also by direction: 'i=mpi,j=peer' "
    "(docs/paths.md); 'auto': chosen by cost.",
)
ENGINE = Option("engine", "text", "'inline', 'thread' or, on GPUs, 'stream'; 'auto': as TASUKI_ENGINE says.")
BLOCKS = Option("blocks", "int", "Thread blocks that an exchange on a GPU may take; 0: as many as make it faster.")
TREES = Option("trees", "int", "Parts of the message, each with a tree of its own; 0: chosen by cost.")
ARITY = Option("arity", "int", "Children of an inner rank of a tree; 0: chosen by cost.")
CHUNK = Option("chunk", "int64", "Bytes that travel as one step of a pipeline; 0: chosen by cost.")
ALGORITHM = Option("algorithm", "text", "By name (docs/collectives.md); 'auto': chosen by cost.")
CORNERS = Option("corners", "flag", "Also cells outside the owned box in two or more dimensions.", "1")
REVERSE = Option("reverse", "flag", "Add every shadow cell into the cell's owner instead: the adjoint.")
ALTERNATING = Option(
    "alternating", "flag", "A promise: each field with two copies is swapped exactly once between two starts."
)
CUTS = Option(
    "cuts",
    "cuts",
    "By dimension, global indices where messages are cut besides at the ranks' boxes; for kernels whose blocks "
    "exchange without a group barrier (`device`).",
    languages=("python",),
)
EDGES = Option(
    "edges",
    "name",
    "What fills shadows outside the grid, by field and dimension: 'u: i=-cell, j=face; p: i=face/none' "
    "(docs/staggered.md).",
)
ORDERED = Option("ordered", "flag", "Reductions combine in rank order, whatever the algorithm.")
WHERE = Option("where", "where", "Of a barrier, which has no memory to tell.", "TASUKI_HOST")
TUNE = Option(
    "tune",
    "int",
    "So many candidates, the best by their prices, are tried while the operation is made, on memory of their own, and "
    "the fastest is kept; 0: prices decide.",
)
CORRECT = Option(
    "correct", "flag", "What the first epochs take may correct prices for what is made later (docs/paths.md).", "1"
)
NAME = Option("name", "name", "What plans, errors, traces and the report call it; the same on all ranks.")
UNUSED = Option("unused", "int", "What was padding.", languages=("c",))
OWN = (  # an operator of the user's own, which other languages have a class for
    Option("does_not_commute", "flag", "The operator below: makes the reduction `ordered`.", languages=("c",)),
    Option("combine", "combine", "The function, for TASUKI_OWN.", languages=("c",)),
    Option("combine_name", "text", "What plans and errors call it; the same on all ranks.", languages=("c",)),
    Option("combine_data", "address", "Is handed to `combine`.", languages=("c",)),
)
RECORD = Option(
    "combine_record",
    "int64",
    "Numbers that `combine` takes together, as one element; all counts are then counts of these. 0: one.",
    languages=("c",),
)

TRANSFER = Options(
    "transfer",
    "OperationOptions",
    (PATH, ENGINE, BLOCKS, UNUSED, TUNE, CORRECT, NAME),
    later="tune",
    fortran=("path", "engine", "blocks", "tune", "correct", "name"),
    python=("path", "engine", "blocks", "tune", "correct", "name"),
)
HALO = Options(
    "halo",
    "HaloOptions",
    (PATH, ENGINE, BLOCKS, CORNERS, REVERSE, ALTERNATING, TUNE, CORRECT, NAME, EDGES, CUTS),
    later="tune",
    python=(
        "corners",
        "reverse",
        "alternating",
        "edges",
        "path",
        "engine",
        "blocks",
        "cuts",
        "tune",
        "correct",
        "name",
    ),
)
EXCHANGE = Options(
    "exchange",
    "ExchangeOptions",
    (
        PATH,
        ENGINE,
        BLOCKS,
        Option("reverse", "flag", "Combine every ghost into the cell's owner instead: the adjoint, as in assembly."),
        Option("op", "operator", "How `reverse` combines.", "TASUKI_SUM"),
        TUNE,
        CORRECT,
    ),
    python=("reverse", "op", "path", "engine", "blocks", "tune", "correct"),
)
REDISTRIBUTE = Options(
    "redistribute",
    "RedistributeOptions",
    (
        PATH,
        ENGINE,
        BLOCKS,
        Option(
            "scratch",
            "int64",
            "Bytes that Tasuki may allocate on a rank to pack or stage what moves; 0: no limit. With less, pieces "
            "travel in slices that use the same memory in turn, or over paths that need none.",
        ),
        TUNE,
        CORRECT,
        NAME,
    ),
    python=("scratch", "path", "engine", "blocks", "tune", "correct", "name"),
)
BROADCAST = Options(
    "broadcast",
    "BroadcastOptions",
    (PATH, ENGINE, BLOCKS, TREES, ARITY, CHUNK, ALGORITHM, TUNE, CORRECT, NAME),
    later="algorithm",
    python=("trees", "arity", "chunk", "path", "engine", "algorithm", "blocks", "tune", "correct", "name"),
)
COLLECTIVE = Options(
    "collective",
    "CollectiveOptions",
    (PATH, ENGINE, BLOCKS, ALGORITHM, TREES, ARITY, CHUNK, ORDERED, *OWN, WHERE, UNUSED, TUNE, CORRECT, NAME, RECORD),
    later="where",
    fortran=(
        "path",
        "engine",
        "algorithm",
        "trees",
        "arity",
        "chunk",
        "where",
        "blocks",
        "ordered",
        "tune",
        "correct",
        "name",
    ),
    python=(
        "ordered",
        "where",
        "algorithm",
        "trees",
        "arity",
        "chunk",
        "path",
        "engine",
        "blocks",
        "tune",
        "correct",
        "name",
    ),
)

# ---- arguments that several have -------------------------------------------------------------------------------------


def source(says: str, blocks: str = "one", **more) -> Argument:
    return Argument("in", "buffer", says, {"python": "source"}, "in", blocks, **more)


def target(says: str, blocks: str = "one", **more) -> Argument:
    return Argument("out", "buffer", says, {"python": "target"}, "out", blocks, **more)


def count(says: str, name: str = "count") -> Argument:
    return Argument(name, "count", says)


def counts(name: str, says: str, of: str, **more) -> Argument:
    return Argument(name, "counts", says, of=of, **more)


def root(says: str, **more) -> Argument:
    return Argument("root", "root", f"{says}; the same on all ranks.", **more)


def dtype() -> Argument:
    return Argument("type", "dtype", "The type of the elements: {type_of}.")


def operator() -> Argument:
    return Argument("op", "operator", "How two elements are combined: {operators}.")


def neighbours() -> Argument:
    return Argument(
        "neighbours",
        "neighbours",
        "The ranks to send to, and those to hear from, in the order of the blocks; or a grid: the two ranks beside "
        "this one in each dimension, the lower one first. For every time that rank a names b in the first list, b "
        "names a in the second.",
    )


def vector(result: str = "", **more) -> tuple[Argument, ...]:
    """Of a reduction: a vector of each rank, and what comes of them."""
    place = "on the root: its vector" if more else "on all ranks: the vector"
    says = f"This rank's vector. {{in_place}} {place} is in `{{out}}`."
    return (
        source(says, in_place="root" if more else "all"),
        target(f"The result, as long as `{{in}}`.{result}", **more),
        count("Elements of the vector."),
        dtype(),
        operator(),
    )


FOR_RANKS, OF_RANKS = (f"A block {which} every rank, one after the other in rank order." for which in ("for", "of"))
IN_OUT = "{in_place} on all ranks: the blocks are in `{out}`"
AT_ROOT = "Looked at on the root only."
EACH_RANK = "Elements of each rank's block, an entry a rank, the same on all ranks; {equal}."
A_BLOCK = "Elements of a block."

# ---- operations ------------------------------------------------------------------------------------------------------

OPERATIONS = unique(
    Operation(
        "broadcast",
        "One rank's memory to all ranks.",
        root("The rank that sends", by_position=True),
        Argument(
            "data",
            "buffer",
            "What rank `{root}` sends, and where it arrives on every other rank.",
            {"python": "array", "fortran": "address"},
            "inout",
        ),
        count("Contiguous bytes, the same on all ranks.", "bytes"),
        options=BROADCAST,
        by_layouts="Ranks may have different layouts, which name equally many bytes.",
        notes={
            "python": "`array` has the same type and shape on all ranks and is writable except on `root`; its strides "
            "may be any and may differ. Arrays of bytes may differ in shape: `array.view('u1')` is the way around. Or "
            "it is a pair (array, Layout) on all ranks, which name equally many bytes. On the host or, on all ranks, "
            "on GPUs."
        },
        renamed={"bytes": "array"},
    ),
    Operation(
        "allreduce",
        "All ranks' vectors, combined element by element, on every rank.",
        *vector(),
        options=COLLECTIVE,
    ),
    Operation(
        "reduce",
        "All ranks' vectors, combined element by element, on one rank.",
        root("The rank that gets the result"),
        *vector(f" {AT_ROOT}", at_root=True),
        options=COLLECTIVE,
    ),
    Operation(
        "reduce_scatter",
        "A block for every rank on every rank; rank r gets block r of all ranks, combined.",
        source(f"{FOR_RANKS} {IN_OUT}, and the result is at its beginning.", "each", in_place="all"),
        target("This rank's block of the result."),
        count(A_BLOCK),
        counts("counts", EACH_RANK, "in"),
        dtype(),
        operator(),
        options=COLLECTIVE,
        by_layouts="The blocks have the same sizes on all ranks.",
    ),
    Operation(
        "allgather",
        "The ranks' blocks, on every rank.",
        source("This rank's block. {in_place} on all ranks: it is where it ends in `{out}`.", in_place="all"),
        target(OF_RANKS, "each"),
        count(A_BLOCK),
        counts("counts", EACH_RANK, "out"),
        dtype(),
        options=COLLECTIVE,
    ),
    Operation(
        "gather",
        "The ranks' blocks, on one rank.",
        root("The rank that gets the blocks"),
        source("This rank's block. {in_place} on the root: it is where it ends in `{out}`.", in_place="root"),
        target(f"{OF_RANKS} {AT_ROOT}", "each", at_root=True),
        count(A_BLOCK),
        counts("counts", EACH_RANK, "out"),
        dtype(),
        options=COLLECTIVE,
    ),
    Operation(
        "scatter",
        "One rank's blocks, one to every rank.",
        root("The rank that has the blocks"),
        source(f"{FOR_RANKS} {AT_ROOT}", "each", at_root=True),
        target("This rank's block. {in_place} on the root: its block stays in `{in}`.", in_place="root"),
        count(A_BLOCK),
        counts("counts", EACH_RANK, "in"),
        dtype(),
        options=COLLECTIVE,
    ),
    Operation(
        "alltoall",
        "A block from every rank to every rank.",
        source(f"{FOR_RANKS} {IN_OUT}.", "each", in_place="all"),
        target(OF_RANKS, "each"),
        count(A_BLOCK),
        counts("send_counts", "Elements that go to each rank, an entry a rank; {equal}.", "in"),
        counts(
            "receive_counts", "Elements that come from each rank: what it sends. Both lists are given, or none.", "out"
        ),
        dtype(),
        options=COLLECTIVE,
        by_layouts="As MPI_Alltoallw: the block for each rank, and that of each rank, has a layout of its own.",
    ),
    Operation(
        "scan",
        "The vectors of the ranks up to this one, combined in rank order.",
        *vector(),
        options=COLLECTIVE,
        ordered=False,
    ),
    Operation(
        "exscan",
        "The vectors of the ranks before this one, combined in rank order.",
        *vector(" That of rank 0 stays as it is."),
        options=COLLECTIVE,
        ordered=False,
    ),
    Operation(
        "barrier",
        "An epoch ends on a rank when all ranks have started it.",
        Argument(
            "where",
            "where",
            "{device}, on all ranks: a barrier of streams. What a rank has put into its stream after it runs when all "
            "ranks' streams have come as far.",
            {"fortran": "device"},
        ),
        options=COLLECTIVE,
    ),
    Operation(
        "neighbour_allgather",
        "This rank's block to its neighbours, and theirs to it.",
        neighbours(),
        source("The block that goes to each neighbour."),
        target("A block of each neighbour, one after the other.", "each"),
        count("Elements of this rank's block."),
        counts("receive_counts", "Elements of each block, an entry a neighbour; {equal}.", "out", beside_count=True),
        dtype(),
        options=TRANSFER,
        page="neighbours",
    ),
    Operation(
        "neighbour_alltoall",
        "A block to each neighbour, and one from each.",
        neighbours(),
        source("A block for each neighbour, one after the other.", "each"),
        target("A block of each neighbour, one after the other.", "each"),
        count(A_BLOCK),
        counts("send_counts", "Elements that go to each neighbour, an entry a neighbour; {equal}.", "in"),
        counts("receive_counts", "Elements that come from each. Both lists are given, or none.", "out"),
        dtype(),
        options=TRANSFER,
        page="neighbours",
        by_layouts="As MPI_Neighbor_alltoallw.",
    ),
    Operation(
        "transfer",
        "A layout of one rank's memory to a layout of another's.",
        Argument("from", "side", "The side that sends.", {"python": "source"}),
        Argument(
            "to", "side", "The side that receives: equally many bytes, in any shape.", {"python": "target"}, "out"
        ),
        options=TRANSFER,
        says="The two ranks may be the same. Collective over these two ranks, who hear of each other's mistakes. "
        "Other ranks need not call it; if they do, it is local, and starting it does nothing. A side that names no "
        "rank of the context fails on this rank at once.",
        collective=False,
        notes={
            "python": "A side is (rank, array), or (rank, array, layout) with a Layout in bytes relative to the "
            "array's first element. Other ranks give (rank, None). Without a layout the array's own shape and strides "
            "say which elements, in C order; both arrays then have the same type and shape, unless one of them has "
            "elements of one byte. The target must be writable. Arrays of `shared_array` and fields move without "
            "staging. Both arrays may be on GPUs, once all ranks have called `use_gpu`."
        },
    ),
    Operation(
        "halo",
        "Fills the shadows of fields from the ranks that own the cells.",
        Argument("fields", "fields", "{fields_of}, on any grids of one context."),
        Argument(
            "widths",
            "widths",
            "Cells of each field's shadow that take part; {null}: all of them.",
            {"python": "width", "fortran": "width"},
        ),
        options=HALO,
        says="Cells outside a grid that is not periodic are left alone, except at `edges` that are "
        "mirrored. A field with two copies is exchanged in the "
        "copy that is current at the start.",
    ),
    Operation(
        "exchange",
        "Fills the ghost cells of fields on any mesh or graph from the ranks that own the cells.",
        Argument("fields", "cells", "{cells_of}; equal in number, in types and in the numbers of a cell on all ranks."),
        Argument(
            "entries",
            "entries",
            "What this rank exchanges: a rank, the cells that it gets (owned here), and the cells that come from it "
            "(ghosts). A list may be empty, a rank may come several times, and may be this one. What rank a sends to b "
            "in its first entry that sends b something is what b receives in its first entry that receives from a.",
        ),
        options=EXCHANGE,
        says="Ghosts are received once and sent nowhere. Owners combine in the order of their entries, so equal runs "
        "give equal bits.",
        notes={
            "python": "A field is an array of which the first dimension counts cells, or a pair (array, dimension); or "
            "all fields are a dictionary of these by name. An entry is (rank, send, receive): integers, arrays of "
            "them, None, or lists of Layouts, one a field. Arrays may have any strides. They are on the host, or all "
            "on GPUs."
        },
    ),
    Operation(
        "redistribute",
        "Moves arrays from one distribution over ranks to another one.",
        Argument(
            "from", "distributed", "How the arrays lie on ranks before, the same on all ranks.", {"python": "source"}
        ),
        Argument(
            "to",
            "distributed",
            "How they lie on ranks afterwards: the same extents, once axes are permuted.",
            {"python": "target"},
        ),
        Argument("arrays", "arrays", "The memory of this rank; names and bytes of a cell are the same on all ranks."),
        Argument(
            "axes",
            "axes",
            "Dimension d of `{to}` is dimension axes[d] of `{from}`, as in numpy.transpose; {null}: d.",
        ),
        options=REDISTRIBUTE,
        page="redistribute",
        says="Each cell of the source, or of a section of it, goes to its place in the target. Distributions may be "
        "over different ranks; other ranks make the operation too. Of a replicated source each rank takes cells from "
        "its own memory if it has them; a replicated target gets all replicas.",
        notes={
            "python": "A side is (array, ArrayDistribution), or (array, ArrayDistribution, section) with a slice for "
            "each dimension, as `numpy.s_` makes. Several arrays are a list, or a dictionary by name. An array has the "
            "shape that `ArrayDistribution.local_shape` says, and may have further dimensions, which are the same on "
            "all ranks: numbers of a cell. It may have any strides, and is None on a rank that has no part. Arrays are "
            "on the host, or all on GPUs."
        },
    ),
)
