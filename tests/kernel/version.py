"""Structures that the library hands to kernels change only together with their version (tasuki/kernel/version.hpp).

If this fails: raise kKernelVersion, and note it here with the sum that is printed. A change that moves no member, as of
a name, takes only a new sum.
"""

import hashlib
import re
import sys
from pathlib import Path

INCLUDE = Path(__file__).resolve().parents[2] / "include" / "tasuki" / "kernel"
NOTED = (12, "b8c4db5f8c93d523")
# What a Handle, a Team, Messages, a Shape and Neighbours are and point to, by header.
STRUCTURES = {
    "version.hpp": ("Heading",),
    "words.cuh": ("Line",),
    "stop.cuh": ("Stop",),
    "team_memory.cuh": ("Failure", "Team", "Round"),
    "proxy.cuh": ("Proxy", "HostRequest"),
    "shape.cuh": ("ShapeBlock", "Shape"),
    "channel.cuh": ("ByHost", "Messages", "OpenReceive", "Box"),
    "slices.cuh": ("Sliced",),
    "program.cuh": (
        *("GpuDim", "GpuCopy", "GpuPlace", "GpuStep", "GpuTaskHeader", "GpuTask", "GpuEvent", "PlanFailure", "PlanRun"),
    ),
    "jobs.cuh": ("JobDim", "Job", "Jobs"),
    "row_places.cuh": ("RowPlaces",),
    "listed.cuh": ("ListedMove", "ListedMoves"),
    "shares.cuh": ("Share",),
    "epochs.cuh": ("BasicHandle",),
    "steps.cuh": ("Neighbours",),
}
# Numbers by which their members are read.
ENUMS = {
    "team_memory.cuh": ("Call", "Reason"),
    "program.cuh": ("Why",),
    "listed.cuh": ("MoveKind",),
    "epochs.cuh": ("OnlyMoves",),
}


def body(text: str, kind: str, name: str) -> str:
    """The definition, without what is only for people."""
    found = re.search(rf"{kind} (?:alignas\(\w+\) )?{name}(?: : [\w:]+)? {{.*?^}};", text, re.M | re.S)
    if found is None:
        sys.exit(f"there is no {kind} {name}; correct the list in {__file__}")
    return " ".join(re.sub(r"//.*", "", found[0]).split())


def main() -> int:
    texts = {path.name: path.read_text() for path in INCLUDE.rglob("*.*")}
    version = re.search(r"kKernelVersion = (\d+);", texts["version.hpp"])
    if version is None:
        sys.exit("version.hpp has no kKernelVersion")
    all_of_them = [body(texts[file], "struct", name) for file, names in STRUCTURES.items() for name in names]
    all_of_them += [body(texts[file], "enum class", name) for file, names in ENUMS.items() for name in names]
    now = (int(version[1]), hashlib.sha256("\n".join(all_of_them).encode()).hexdigest()[:16])
    print(f"version {now[0]}, structures {now[1]}; noted: version {NOTED[0]}, structures {NOTED[1]}")
    if now == NOTED:
        return 0
    print("what the library hands to kernels has changed, or its number: see the beginning of", __file__)
    return 1


if __name__ == "__main__":
    sys.exit(main())
