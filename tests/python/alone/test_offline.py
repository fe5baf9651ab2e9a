"""Planning off line: no MPI, no ranks; what is wrong is said."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tasuki
from tasuki import machine_files

ROOT = Path(__file__).resolve().parents[3]


def test_nothing_starts_mpi():
    code = (
        "import ctypes, tasuki; machine = tasuki.Machine.from_file('torus-36'); "
        "planned = tasuki.plan_halo(machine, (12, 12, 12), ['p', 'q'], periodic=True, width=2); "
        "assert planned.verify() and tasuki.verify_neighbourhoods(planned); "
        "started = ctypes.c_int(7); ctypes.CDLL(tasuki.mpi_library()).MPI_Initialized(ctypes.byref(started)); "
        "print(planned.ranks, started.value)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.split() == ["36", "0"], done.stdout + done.stderr


def test_machines_are_values():
    machine = tasuki.Machine.uniform(6, 4, 2, gpus=True)
    assert tasuki.Machine.from_json(machine.to_json()) == machine != tasuki.Machine.uniform(6, 4, 2)
    assert machine.ranks == ((0, 0, 0), (0, 0, 0), (0, 1, 1), (0, 1, 1), (1, 2, 2), (1, 2, 2))
    assert (machine.size, len(machine), machine.inside, machine.paths) == (6, 6, None, {})
    assert machine.resized(3).ranks == machine.ranks[:3] and machine.resized(4).resized(8).size == 8
    torus = tasuki.Machine.from_file("torus-36")
    assert torus.outside is not None and torus.outside["extents"] == (3, 2, 6)
    assert torus.paths["mpi"]["bandwidth"] == torus.paths["mpi"]["mutual_bandwidth"] == 12.5e9
    assert torus.constants["cache_line"] == 64
    with pytest.raises(tasuki.Error, match="36 ranks, and 37 were asked for"):
        torus.resized(37)


@pytest.mark.parametrize("name", machine_files.shipped())
def test_a_shipped_machine_has_a_name_and_a_file(name):
    file = ROOT / "machines" / f"{name}.json"
    assert tasuki.Machine.from_file(name) == tasuki.Machine.from_file(file) == tasuki.Machine.from_file(str(file))
    assert tasuki.Machine.from_file(name).name == name


def test_the_machines_of_the_benchmarks_are_as_their_tool_writes_them(tmp_path):
    subprocess.run([sys.executable, ROOT / "tools" / "machines.py", tmp_path], check=True)
    for file in tmp_path.iterdir():
        assert file.read_text() == (ROOT / "machines" / file.name).read_text()
    assert len(list(tmp_path.iterdir())) == 2


def test_machine_files_that_are_wrong_say_where(tmp_path):
    file = tmp_path / "m.json"
    with pytest.raises(tasuki.Error, match="no such file, nor a machine of that name; with Tasuki come .*torus-36"):
        tasuki.Machine.from_file(file)
    for text, expected in {
        "{": "m.json: not JSON at byte",
        '{"tasuki_machine": 1, "ranks": {"count": 0}}': "ranks.count: is 0, not a whole number",
        '{"tasuki_machine": 1, "ranks": {"count": 2}, "paths": {"mpi": {"latency": -1}}}': "paths.mpi.latency: is -1",
        '{"tasuki_machine": 1, "ranks": {"count": 2}, "rack": 1}': 'has the unknown key "rack"',
    }.items():
        file.write_text(text)
        with pytest.raises(tasuki.Error, match=re.escape(expected)):
            tasuki.Machine.from_file(file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(tasuki.Error, match="not text at byte 0"):
        tasuki.Machine.from_file(file)
    with pytest.raises(TypeError, match="must be a path or a name"):
        tasuki.Machine.from_file(3)  # type: ignore[arg-type]


def test_plans_can_be_read_kept_and_verified():
    machine = tasuki.Machine.from_file("tca-64").resized(8)
    planned = tasuki.plan_halo(machine, (9, 10, 11), "p", "float32", split=(2, 2, 2), periodic=(1 > 0, False, True))
    plans = planned.plans()
    assert len(plans) == planned.ranks == 8 and plans[3] == planned.plan(3)
    assert tasuki.Plan.from_json(plans[3].json()) == tasuki.Plan.from_text(plans[3].text()) == plans[3]
    assert tasuki.verify(plans) and tasuki.verify(planned) and tasuki.verify([plan.json() for plan in plans])
    report = tasuki.verify_neighbourhoods(plans)
    assert report and 1 <= report.classes <= 8 and "by neighbourhoods" in report.text()
    broken = plans[:2] + [plans[2]] + plans[2:7]
    assert not tasuki.verify(broken) and not tasuki.verify_neighbourhoods(broken)
    names = [name for name, _ in planned.passes(1)]
    assert len(names) > 1 and planned.passes(1)[-1][1] == plans[1]
    assert "halo p on rank 5 of 8" in planned.explain(5)
    with pytest.raises(tasuki.Error, match="argument 'rank' is 8; there are ranks 0 to 7"):
        planned.plan(8)


def test_fields_of_their_own_shape():
    machine = tasuki.Machine.uniform(4, 4)
    fields = [
        "u",
        tasuki.FieldShape("v", "int32", shadow=3, width=[(1, 2), 0], copies=2, pad=1),
        tasuki.FieldShape("w", width=2, shared=False),
    ]
    planned = tasuki.plan_halo(machine, (40, 30), fields, alternating=True, corners=False)
    assert planned.verify() and planned.plan(0).operation == "halo u,v,w"
    reverse = tasuki.plan_halo(machine, (40, 30), fields, reverse=True)
    assert reverse.verify()


def test_transfers_and_broadcasts():
    machine = tasuki.Machine.from_file("host-2core")
    column = tasuki.Layout.vector(100, 1, 8, tasuki.Layout.of("float64"))
    transfer = tasuki.plan_transfer(machine, (0, column), (1, tasuki.Layout.bytes(800)))
    assert transfer.verify() and "shared:" in transfer.explain(0)
    assert tasuki.plan_transfer(machine, (0, column), (1, column), path="mpi").plan(0).paths == ["mpi"]
    broadcast = tasuki.plan_broadcast(tasuki.Machine.from_file("torus-36"), 5, 1 << 16)
    assert broadcast.verify() and len(broadcast) == 36


def test_collectives():
    machine = tasuki.Machine.uniform(5, 5)
    allreduce = tasuki.plan_collective(machine, "allreduce", 1000, "float32", "max")
    assert allreduce.verify() and "<- chosen" in allreduce.explain(2) and "ring" in allreduce.explain(2)
    forced = tasuki.plan_collective(machine, "allreduce", 7, algorithm="exchange", in_place=True)
    assert forced.verify() and "exchange, which was asked for" in forced.explain(0)
    assert tasuki.plan_collective(machine, "gather", [1, 0, 3, 2, 5], "int64", root=3).verify()
    assert tasuki.plan_collective(machine, "barrier").verify()


@pytest.mark.parametrize("kind", ["alltoall", "allgather"])
def test_neighbour_collectives(kind):
    machine = tasuki.Machine.uniform(12, 4)
    planned = tasuki.plan_neighbours(machine, kind, 100, "float32", split=(3, 0), periodic=(True, False))
    assert planned.verify() and tasuki.verify_neighbourhoods(planned)
    assert planned.plan(0).operation == f"neighbour_{kind}"
    sent = [message for message in planned.messages() if message[1] == 5]
    assert len(sent) == 4 and {message[3] for message in sent} == {400}
    ring = [([(rank + 1) % 12], [(rank - 1) % 12]) for rank in range(12)]
    assert tasuki.plan_neighbours(machine, kind, 3, neighbours=ring).verify()


MACHINE = tasuki.Machine.uniform(4, 2)


@pytest.mark.parametrize(
    ("call", "kind", "expected"),
    [
        (lambda: tasuki.plan_halo(MACHINE, (8, 8), perodic=True), TypeError, "did you mean 'periodic'? it has machine"),
        (lambda: tasuki.plan_transfer(MACHINE, sauce=1), TypeError, "plan_transfer() has no argument 'sauce'"),
        (lambda: tasuki.plan_broadcast(MACHINE, 0, 8, tree=1), TypeError, "did you mean 'trees'?"),
        (lambda: tasuki.plan_halo(MACHINE, (8, 8), split=(3, 1)), tasuki.Error, "split"),
        (lambda: tasuki.plan_halo(MACHINE, (8, 8), width=2, shadow=1), tasuki.Error, "does not fit its shadow"),
        (lambda: tasuki.plan_halo(MACHINE, (8, 8), width=(1, 1, 1)), tasuki.Error, "2 entries (one a dimension)"),
        (lambda: tasuki.plan_halo(MACHINE, (8, 8), memory="device"), tasuki.Error, "rank 0 has no GPU"),
        (lambda: tasuki.plan_halo(MACHINE, (8, 8), memory="disk"), tasuki.Error, "must be 'host' or 'device'"),
        (lambda: tasuki.plan_halo(MACHINE, (8, 8), []), tasuki.Error, "'fields' is empty"),
        (lambda: tasuki.plan_halo(MACHINE, (8, 8), [3]), tasuki.Error, "must be a name or a FieldShape"),
        (lambda: tasuki.plan_halo(MACHINE, (8, 8), path="pigeon"), tasuki.Error, "there is no path 'pigeon'"),
        (lambda: tasuki.plan_transfer(MACHINE, (0, 1), (1, 2)), tasuki.Error, "must be (rank, Layout)"),
        (
            lambda: tasuki.plan_transfer(MACHINE, (0, tasuki.Layout.bytes(1)), (4, tasuki.Layout.bytes(1))),
            tasuki.Error,
            "argument 'target' is 4",
        ),
        (lambda: tasuki.plan_broadcast(MACHINE, 4, 8), tasuki.Error, "argument 'root' is 4"),
        (lambda: tasuki.plan_broadcast(MACHINE, 0, 8, trees=17), tasuki.Error, "option 'trees' is 17"),
        (lambda: tasuki.plan_broadcast(MACHINE, 0, -8), tasuki.Error, "argument 'bytes' is -8"),
        (lambda: tasuki.plan_neighbours(MACHINE, "bcast", split=(2, 2)), tasuki.Error, "argument 'kind' is 'bcast'"),
        (lambda: tasuki.plan_neighbours(MACHINE, "alltoall"), TypeError, "either 'split' or 'neighbours'"),
        (lambda: tasuki.plan_neighbours(MACHINE, "alltoall", split=(3, 0)), tasuki.Error, "split"),
        (
            lambda: tasuki.plan_neighbours(MACHINE, "alltoall", neighbours=[([1], [])] + 3 * [([], [])]),
            tasuki.Error,
            "rank 0 names rank 1 in 'to' 1 times, but rank 1 names rank 0 in 'from' 0 times",
        ),
        (lambda: tasuki.plan_collective(MACHINE, "gossip"), tasuki.Error, "there is no collective 'gossip'"),
        (lambda: tasuki.plan_collective(MACHINE, "gather", [1, 2]), tasuki.Error, "'counts' has 2 entries"),
        (lambda: tasuki.plan_collective(MACHINE, "scan", 3, algorithm="x"), tasuki.Error, "give one of auto, doubling"),
        (lambda: tasuki.verify(["{}"]), tasuki.Error, "plans[0]"),
    ],
)
def test_what_is_wrong_is_said(call, kind, expected):
    with pytest.raises(kind, match=re.escape(expected)):
        call()


def test_a_live_plan_is_that_of_its_machine(run):
    status, text = run(
        3,
        """
        import tasuki
        context = tasuki.Context()
        grid = tasuki.Grid(context, (20, 21), periodic=True)
        halo = tasuki.Halo(tasuki.Field(grid, "float32", shadow=2, name="u"), corners=False)
        machine = tasuki.machine_of(context)
        planned = tasuki.plan_halo(machine, (20, 21), "u", "float32", periodic=True, shadow=2, corners=False)
        assert planned.plan(context.rank) == halo.plan
        print("the same", flush=True)
        """,
    )
    assert status == 0 and text.count("the same") == 3, text


def test_the_page_on_machines_has_every_constant_with_its_default():
    """Docs and header say the same of each."""
    header = (ROOT / "include" / "tasuki" / "machine.hpp").read_text(encoding="utf-8")
    body = re.search(r"struct Constants \{\n(.*?)\n\};", header, re.S)
    assert body
    declared = {}
    for name, value in re.findall(r"^  (?:double|std::int64_t) (\w+) = (.+?);", body[1], re.M):
        declared[name] = float(eval(value.replace("'", "")))  # such as 4 << 10
    assert len(declared) > 20 and declared == tasuki.Machine.uniform(1, 1).constants
    page = (ROOT / "docs" / "machines.md").read_text(encoding="utf-8")
    table = re.search(r"\| constant \| default \|.*?\n\n", page, re.S)
    assert table
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", table[0], re.M)
    written = {name: float(value.replace(",", "")) for name, value in rows}
    assert written == declared


def test_the_page_on_machines_is_right():
    """Its machine file loads, and its Python runs."""
    page = (ROOT / "docs" / "machines.md").read_text(encoding="utf-8")
    files = re.findall(r"^```json\n(.*?)^```", page, re.M | re.S)
    assert files
    for text in files:
        machine = tasuki.Machine.from_json(text)
        assert json.loads(text)["name"] == machine.name
    pieces = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    assert pieces
    done = subprocess.run([sys.executable, "-c", "\n".join(pieces)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in machine_files.shipped():
        assert f"`{name}`" in page


def test_gpu_memory_that_peers_cannot_map_is_refused_with_what_to_do():
    """As from a pool: the path says why not, and planning takes another by itself."""
    machine = tasuki.Machine.uniform(2, 2, 0, gpus=True)
    arguments = {"machine": machine, "extents": (16, 12), "memory": "device", "shared": False}
    for path in ("peer:put", "peer:copy"):
        with pytest.raises(tasuki.Error, match="cannot be shared: take cudaMalloc's or let the field allocate"):
            tasuki.plan_halo(**arguments, path=path)
    planned = tasuki.plan_halo(**arguments)
    assert planned.verify() and "cannot be shared: take cudaMalloc's" in planned.explain(0)
    assert tasuki.plan_halo(**arguments | {"shared": True}, path="peer:put").verify()
