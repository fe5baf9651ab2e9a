"""Reads the functions of the C interface (bindings/), for the Fortran modules written from it."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bindings"))

import for_c  # noqa: E402


@dataclass(frozen=True)
class Parameter:
    type: str  # as C has it, without blanks beside asterisks: "const tasuki_box*"
    name: str
    array: bool = False  # declared with [...]


@dataclass(frozen=True)
class Function:
    name: str  # without `tasuki_`
    result: str
    parameters: tuple[Parameter, ...]


def read() -> tuple[dict[str, Function], set[str]]:
    """The functions by their names, and the types of handles."""
    text = "".join(text for _, text in sorted(for_c.headers().items()))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    functions = {}
    for result, name, listed in re.findall(r"^(\w[\w ]*\**) tasuki_(\w+)\(([^()]*)\);", text, re.M):
        functions[name] = Function(name, result, parameters(listed))
    return functions, set(re.findall(r"^typedef struct \w+\* (\w+);", text, re.M))


def parameters(listed: str) -> tuple[Parameter, ...]:
    if listed == "void":
        return ()
    found = []
    for one in listed.split(","):
        match = re.fullmatch(r"(.*\W)(\w+)(\[\w+\])?", " ".join(one.split()))
        if match is None:
            raise ValueError(f"no parameter: {one}")
        found.append(Parameter(match[1].strip().replace(" *", "*"), match[2], match[3] is not None))
    return tuple(found)
