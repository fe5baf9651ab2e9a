"""`tasuki explain ... --draw` and `tasuki tune --collectives`."""

import json
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NO_MPI = {"TASUKI_MPIEXEC": "/no/such/launcher"}
TORUS = ["broadcast", "--machine", "torus-36", "--bytes", 1 << 20, "--algorithm", "torus", "--root", 7]
PNG = b"\x89PNG\r\n"


def neighbours(a: int, b: int, extents: list[int]) -> bool:
    """Of points of a torus, the last dimension the fastest."""
    steps = 0
    for extent in reversed(extents):
        far = (b % extent - a % extent) % extent
        steps += 0 if far == 0 else 1 if far in (1, extent - 1) else 2
        a, b = a // extent, b // extent
    return steps == 1


@pytest.mark.parametrize("trees", [1, 2, 3, 5])
def test_drawn_trees_share_no_link_of_the_torus(tasuki, trees):
    drawing = tasuki("explain", *TORUS, "--trees", trees, "--draw", "--json", **NO_MPI)["drawing"]
    assert drawing["torus"] == [3, 2, 6] and drawing["shared_links"] == []
    assert len(drawing["groups"]) == trees
    used = []
    for group in drawing["groups"]:
        assert group["tree"]["root"] == 7 and 6 <= group["tree"]["depth"] <= 35
        assert len(group["messages"]) == 35 and sorted(to for _, to, _ in group["messages"]) == [
            rank for rank in range(36) if rank != 7
        ]
        used += [(a, b) for a, b, _ in group["links"]]
    assert len(used) == len(set(used)) == 35 * trees
    assert all(neighbours(a, b, [3, 2, 6]) for a, b in used)
    for rank in range(36):  # all of the message arrives
        assert rank == 7 or sum(s for g in drawing["groups"] for _, to, s in g["messages"] if to == rank) == 1 << 20


def test_trees_are_drawn_as_text_and_as_pictures(tasuki, tmp_path):
    text = tasuki("explain", *TORUS, "--trees", 3, "--draw", **NO_MPI)
    assert "105 links of the 3 x 2 x 6 torus are used, none twice" in text
    assert "part 2 of 3: 35 messages" in text and "7 (0,1,1)" in text and "└ -> " in text
    for name in "trees.svg", "trees.PNG":
        picture = tmp_path / name
        told = tasuki("explain", *TORUS, "--trees", 3, "--draw", picture, **NO_MPI)
        assert f"drawn in {picture}" in told and "none twice" in told
    svg = (tmp_path / "trees.svg").read_text()
    assert svg.count("<svg") == 1 and "part 3 of 3" in svg and (tmp_path / "trees.PNG").read_bytes().startswith(PNG)
    again = tmp_path / "again.svg"
    tasuki("explain", *TORUS, "--trees", 3, "--draw", again, **NO_MPI)
    assert again.read_text() == svg


def test_reductions_and_flat_algorithms_are_drawn(tasuki):
    up = ["explain", "reduce", "--machine", "torus-36", "--count", 4096, "--algorithm", "torus", "--draw"]
    assert "<- " in tasuki(*up, **NO_MPI)
    flat = tasuki(
        "explain", "broadcast", "--machine", "torus-36", "--algorithm", "binomial", "--draw", "--json", **NO_MPI
    )
    assert flat["drawing"]["shared_links"] != []
    told = tasuki("explain", "allreduce", "--machine", "host-2core", "--draw", **NO_MPI)
    assert "allreduce on 2 ranks" in told and "0 -> 1\n1 -> 0" in told
    live = tasuki("explain", "broadcast", "-n", 2, "--bytes", 100, "--draw")
    assert "0\n└ -> 1\n" in live


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([*TORUS, "--draw", "trees.gif"], "--draw trees.gif: a picture's name ends with one of .svg, .png, .pdf"),
        ([*TORUS, "--draw", "/dev/null/trees.svg"], "/dev/null/trees.svg cannot be written"),
        ([*TORUS, "--trees", 6, "--draw"], "option 'trees' is 6, but 5 links leave a host of this torus"),
        (
            ["broadcast", "--machine", "host-2core", "--ranks", 1, "--draw"],
            "--draw: broadcast from 0 on 1 ranks sends no messages",
        ),
        (["alltoall", "--machine", "host-2core", "--ranks", 258, "--draw"], "a drawing has room for 256"),
        (
            ["alltoall", "--machine", "host-2core", "--ranks", 80, "--algorithm", "direct", "--draw"],
            "sends 6320 messages",
        ),
        (["broadcast", "--machine", "host-2core", "--algorithm", "torus"], "hosts are not joined by a torus"),
    ],
)
def test_what_cannot_be_drawn_is_one_clear_line(tasuki, arguments, expected):
    assert expected in tasuki("explain", *arguments, status=1, **NO_MPI)


@pytest.mark.measures
def test_tuned_collectives_are_kept_and_told(tasuki, tmp_path):
    profile = tmp_path / "profile.json"
    quick = ["tune", "--collectives", "--kind", "allreduce", "--size", 64, "--size", "4KiB", "--rounds", 2]
    told = tasuki(*quick, "--output", profile, "--json")
    measured = [(case["bytes"], case["shared"]) for case in told["cases"]]
    assert measured == [(64, True), (64, False), (4096, True), (4096, False)] and told["ranks"] == 2
    for case in told["cases"]:
        assert case["collective"] == "allreduce" and case["ratio"] >= 1
        assert len(case["candidates"]) >= (3 if case["shared"] else 1)  # of their own memory few paths take 64 bytes
        assert min(c["again_us"] for c in case["candidates"]) == case["candidates"][case["best"]]["again_us"]
    kept = json.loads(profile.read_text())
    corrections = kept["collectives"]["corrections"]
    assert kept["collectives"]["version"] == 2 and "mpi" in kept["paths"]
    assert {c["bytes"] for c in corrections} == {64, 4096} and all(c["factor"] > 0 for c in corrections)
    # Others are added, the same are replaced.
    tasuki(*quick[:2], "--kind", "barrier", "--rounds", 1, "--output", profile)
    text = tasuki(*quick, "--output", profile)
    assert "picked / best" in text and "the pick is within 10 % of the best in " in text
    again = json.loads(profile.read_text())["collectives"]["corrections"]
    assert {c["collective"] for c in again} == {"allreduce", "barrier"}
    names = [json.dumps({key: c[key] for key in c if key != "factor"}) for c in again]
    assert len(names) == len(set(names))


def test_wrong_tuning_is_one_clear_line(tasuki):
    assert "give --collectives" in tasuki("tune", "--size", 8, status=2)
    assert "'8kb' is not like 8, 64KiB or 16MiB" in tasuki("tune", "--collectives", "--size", "8kb", status=2)
    assert "'lottery'" in tasuki("tune", "--collectives", "--kind", "lottery", status=2)
    many = (os.cpu_count() or 1) + 1
    assert f"give at most -n {many - 1}" in tasuki("tune", "--collectives", "-n", many, status=1)
    told = tasuki("tune", "--collectives", "--kind", "barrier", status=1, TASUKI_PATH="mpi")
    assert "TASUKI_PATH is mpi; unset it" in told
