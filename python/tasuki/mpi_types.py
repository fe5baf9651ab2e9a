"""MPI datatypes as text, `vector(8192, 1, 2, double)`, as the command line takes them: layouts, spellings, and what it
takes this machine to pack them (as a module, on one rank)."""

from __future__ import annotations

import ast
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tasuki import Error, Layout

NAMED = {
    "byte": 1, "char": 1, "signed_char": 1, "unsigned_char": 1, "int8_t": 1, "uint8_t": 1,
    "short": 2, "unsigned_short": 2, "int16_t": 2, "uint16_t": 2,
    "int": 4, "unsigned": 4, "float": 4, "int32_t": 4, "uint32_t": 4, "integer": 4, "real": 4,
    "long": 8, "unsigned_long": 8, "double": 8, "int64_t": 8, "uint64_t": 8, "long_long": 8, "double_precision": 8,
    "c_float_complex": 8, "complex": 8, "c_double_complex": 16, "double_complex": 16,
}  # fmt: skip


class TypeTextError(ValueError):
    """A text that names no datatype; says where, and what is known."""


def order_of(sizes: list, parts: list, starts: list, order: Any, element: Layout) -> Layout:
    if order not in ("c", "fortran"):
        raise TypeTextError(f"the order of subarray is {order!r}; give C or Fortran")
    if order == "fortran":
        sizes, parts, starts = sizes[::-1], parts[::-1], starts[::-1]
    return Layout.subarray(sizes, parts, starts, element)


def lengths(length: int, places: list) -> list[int]:
    return [length] * len(places)


# Arguments in MPI's order, without the counts of lists, which the lists have.
CONSTRUCTORS: dict[str, tuple[str, Callable[..., Layout]]] = {
    "contiguous": ("count, type", Layout.contiguous),
    "vector": ("count, block length, stride, type", Layout.vector),
    "hvector": ("count, block length, stride in bytes, type", Layout.hvector),
    "indexed": ("[block lengths], [displacements], type", Layout.indexed),
    "hindexed": ("[block lengths], [displacements in bytes], type", Layout.hindexed),
    "indexed_block": (
        "block length, [displacements], type", lambda n, at, of: Layout.indexed(lengths(n, at), at, of)),
    "hindexed_block": (
        "block length, [displacements in bytes], type", lambda n, at, of: Layout.hindexed(lengths(n, at), at, of)),
    "struct": ("[block lengths], [displacements in bytes], [types]", Layout.structure),
    "subarray": ("[sizes], [subsizes], [starts], C or Fortran, type", order_of),
    "resized": ("type, lower bound, extent", Layout.resized),
    "dup": ("type", lambda of: of),
}  # fmt: skip


def short(name: str) -> str:
    """`MPI_Type_create_hvector` and `hvector` are the same, and so are `MPI_DOUBLE` and `double`."""
    for prefix in ("mpi_", "type_", "create_", "order_"):
        name = name.lower().removeprefix(prefix)
    return name


def value_of(node: ast.expr, text: str) -> Any:
    where = ast.get_source_segment(text, node) or text
    if isinstance(node, ast.Name):
        name = short(node.id)
        if name in NAMED:
            return Layout.bytes(NAMED[name])
        if name in ("c", "fortran"):
            return name
        raise TypeTextError(f"'{where}' is no type that is known; basic ones are {', '.join(NAMED)}")
    if isinstance(node, ast.List):
        return [value_of(part, text) for part in node.elts]
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = value_of(node.operand, text)
        if type(inner) is int:
            return -inner
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        name = short(node.func.id)
        if name not in CONSTRUCTORS:
            raise TypeTextError(f"there is no constructor '{node.func.id}'; there are {', '.join(CONSTRUCTORS)}")
        usage, make = CONSTRUCTORS[name]
        try:
            return make(*(value_of(argument, text) for argument in node.args))
        except TypeTextError:
            raise
        except (TypeError, Error, OverflowError) as error:
            why = str(error).splitlines()[0] if isinstance(error, Error) else f"give {name}({usage})"
            raise TypeTextError(f"'{where}': {why}") from None
    raise TypeTextError(f"'{where}' is neither a number, a list, a basic type nor a constructor of one")


def layout_of(text: str) -> Layout:
    """The layout of one element. Raises TypeTextError."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
        layout = value_of(tree.body, text.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, TypeTextError):
            raise
        raise TypeTextError(f"'{text}' cannot be read as a type, such as vector(8192, 1, 2, double)") from None
    if not isinstance(layout, Layout):
        raise TypeTextError(f"'{text}' is no type; give one, such as vector(8192, 1, 2, double)")
    return layout


def unit_of(*numbers: int) -> tuple[int, str]:
    """The largest integer of which all numbers of bytes are multiples: its bytes and MPI's name."""
    return next((size, f"uint{8 * size}_t") for size in (8, 4, 2, 1) if all(n % size == 0 for n in numbers))


def spelt(layout: Layout) -> dict[str, str]:
    """What each MPI moves fastest: Open MPI a nest of hvectors, MPICH many elements of the outermost dimension."""
    nests, counted = [], ""
    for offset, size, dims in layout.blocks:
        bytes_, element = unit_of(size)
        nest = element if size == bytes_ else f"contiguous({size // bytes_}, {element})"
        inner = nest
        for count, stride in dims[::-1]:
            inner, nest = nest, f"hvector({count}, 1, {stride}, {nest})"
        nests.append((offset, nest))
        if dims:
            count, stride = dims[0]
            counted = f"{count} x resized({inner}, 0, {stride})"
    if len(nests) == 1:
        offset, nest = nests[0]
        at = "" if offset == 0 else f", from byte {offset} on"
        return {"Open MPI": nest + at, "MPICH": (counted or nest) + at}
    many = ", ".join(nest for _, nest in nests[:3]) + (", ..." if len(nests) > 3 else "")
    places = ", ".join(str(offset) for offset, _ in nests[:3]) + (", ..." if len(nests) > 3 else "")
    text = f"struct([1, ...], [{places}], [{many}])"
    return {"Open MPI": text, "MPICH": text}


def fastest(work: Callable[[], object]) -> float:
    """In µs."""
    best, end = float("inf"), time.perf_counter() + 0.05
    for turn in range(2000):
        start = time.perf_counter()
        work()
        now = time.perf_counter()
        best = min(best, now - start)
        if now > end and turn > 1:
            break
    return best * 1e6


def mpi_type(text: str) -> Any:
    """The datatype as the text spells it, by mpi4py."""
    from mpi4py import MPI

    def made(node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            name = short(node.id)
            return {"c": MPI.ORDER_C, "fortran": MPI.ORDER_FORTRAN}.get(name) if name in ("c", "fortran") else getattr(
                MPI, name.upper())  # fmt: skip
        if isinstance(node, ast.List):
            return [made(part) for part in node.elts]
        if not isinstance(node, ast.Call):
            return ast.literal_eval(node)
        name, given = short(node.func.id), [made(argument) for argument in node.args]
        if name == "struct":
            return MPI.Datatype.Create_struct(*given)
        *numbers, of = given if name != "resized" else [*given[1:], given[0]]
        if name == "subarray":
            return of.Create_subarray(*numbers)
        if name in ("dup", "contiguous", "vector", "hvector", "indexed", "hindexed", "indexed_block", "hindexed_block",
                    "resized"):  # fmt: skip
            return getattr(of, "Dup" if name == "dup" else f"Create_{name}")(*numbers)
        raise TypeTextError(name)

    return made(ast.parse(text.strip(), mode="eval").body).Commit()


def by_mpi(text: str, count: int, layout: Layout, array: Any) -> dict[str, Any]:
    """What MPI takes to pack it, in the spellings."""
    import numpy as np

    try:
        from mpi4py import MPI
    except ImportError:
        return {"why": "mpi4py is not installed, by which MPI's times are taken"}
    comm, out = MPI.COMM_SELF, np.empty(layout.size + 64, np.uint8)

    def times(spelling: str, number: int) -> float:
        kind = mpi_type(spelling)
        try:  # it packs as many as the bytes that it is given have room for
            room = number * max(kind.extent, 1)
            base = MPI.memory.fromaddress(array.ctypes.data - layout.true_lower_bound, room)
            return fastest(lambda: kind.Pack(base, out, 0, comm))
        finally:
            kind.Free()

    found = {"mpi": MPI.get_vendor()[0], "given": times(text, count)}
    if count > 1:
        found["contiguous of it"] = times(f"contiguous({count}, {text})", 1)
    others = [spelling for spelling in set(spelt(layout).values()) if "..." not in spelling and "from" not in spelling]
    for spelling in others:
        number, _, of = spelling.rpartition(" x ")
        found.setdefault("spelt", {})[spelling] = times(of, int(number or 1))
    return found


def main() -> None:
    """`python -m tasuki.mpi_types TEXT COUNT FILE`: writes what it takes this machine to pack the type."""
    import numpy as np

    text, count, file = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    layout = Layout.contiguous(count, layout_of(text))
    array = np.zeros(layout.true_upper_bound - layout.true_lower_bound + 64, np.uint8)
    moved = Layout.hindexed([1], [-layout.true_lower_bound], layout)  # relative to the first byte
    packed = moved.pack(array)
    found = {"pack": fastest(lambda: moved.pack(array))}
    if not layout.overlaps:
        found["unpack"] = fastest(lambda: moved.unpack(packed, array))
    found["copy"] = fastest(np.frombuffer(packed, np.uint8).copy)
    found["by_mpi"] = by_mpi(text, count, layout, array)
    file.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
