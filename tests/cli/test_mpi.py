"""`tasuki mpi`: reports of the library for unchanged MPI programs, and datatypes as text."""

import json

import pytest

import tasuki as package
from tasuki.mpi_types import TypeTextError, layout_of, spelt


def line(**changed):
    return {
        "call": "MPI_Send", "place": "solver+0x12", "type": "8192 x 8 B, strides 16", "layer": "ring",
        "contiguous": False, "calls": 10, "bytes": 655360, "won_ns": 1000, "why": "", "mpi_ns": 21000, "spelt_ns": 0,
        "own_ns": 4000,
    } | changed  # fmt: skip


def report(file, rank, lines):
    file.write_text(json.dumps({"rank": rank, "lines": lines}))
    return file


def test_explain_adds_ranks_up(tasuki, tmp_path):
    files = [
        report(tmp_path / "r.0", 0, [line(), line(call="MPI_Recv", layer="MPI", calls=5, bytes=5 * 65536, won_ns=-7)]),
        report(tmp_path / "r.1", 1, [line(), line(type="64 B", contiguous=True, calls=1000, bytes=64000)]),
    ]
    told = tasuki("mpi", "explain", "--json", *files)
    assert told["ranks"] == 2
    assert told["layers"]["ring"]["calls"] == 20 and told["layers"]["ring"]["calls_share"] == 0.8
    assert told["layers"]["MPI"]["bytes"] == 5 * 65536 and told["layers"]["MPI"]["won_ns"] == -7
    assert [one["ranks"] for one in told["lines"]] == [2, 1, 1]
    text = tasuki("mpi", "explain", *files)
    assert "80.0%" in text and "solver+0x12" in text


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("[]", "an object"),
        ('{"rank": 0}', "lines is null"),
        ('{"rank": 0, "lines": [{"call": 7}]}', "lines[0]"),
        (json.dumps({"rank": 0, "lines": [line(calls="many")]}), "lines[0]"),
    ],
)
def test_explain_names_what_is_wrong_in_a_file(tasuki, tmp_path, content, expected):
    (tmp_path / "r").write_text(content)
    said = tasuki("mpi", "explain", tmp_path / "r", status=1)
    assert expected in said and str(tmp_path / "r") in said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MPI_Type_vector(5, 2, 7, MPI_INT)", lambda of: of.vector(5, 2, 7, of.bytes(4))),
        ("hvector(3, 1, -64, resized(double, -8, 24))",
         lambda of: of.hvector(3, 1, -64, of.resized(of.bytes(8), -8, 24))),
        ("MPI_Type_create_subarray([4, 5], [2, 3], [1, 0], MPI_ORDER_FORTRAN, float)",
         lambda of: of.subarray([5, 4], [3, 2], [0, 1], of.bytes(4))),
        ("indexed_block(2, [5, 0], short)", lambda of: of.indexed([2, 2], [5, 0], of.bytes(2))),
        ("struct([1, 2], [16, 0], [char, dup(contiguous(2, int))])",
         lambda of: of.structure([1, 2], [16, 0], [of.bytes(1), of.bytes(8)])),
    ],
)  # fmt: skip
def test_types_as_text(text, expected):
    assert layout_of(text) == expected(package.Layout)


@pytest.mark.parametrize("text", ["vector(64, 3, 5, double)", "hvector(7, 1, 100, vector(3, 2, 4, float))"])
def test_spellings_name_the_same_bytes(text):
    layout = layout_of(text)
    for told in spelt(layout).values():
        number, _, of = told.rpartition(" x ")
        assert package.Layout.contiguous(int(number or 1), layout_of(of)).blocks == layout.blocks


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vectr(3, double)", "there is no constructor 'vectr'"),
        ("vector(3, double)", "count, block length, stride, type"),
        ("vector(-3, 1, 2, double)", "-3"),
        ("contiguous(3, doubl)", "'doubl' is no type that is known"),
        ("__import__('os').system('true')", "neither a number"),
        ("[1, 2]", "is no type"),
        ("vector(", "cannot be read"),
        ("subarray([4], [2], [0], Ada, int)", "'Ada'"),
        ("contiguous(" * 500 + "int" + ")" * 500, "cannot be read"),
    ],
)
def test_texts_that_are_no_types(text, expected):
    with pytest.raises(TypeTextError) as caught:
        layout_of(text)
    assert expected in str(caught.value)


def test_type_tells_layout_and_guidelines(tasuki):
    told = tasuki("mpi", "type", "--json", "--count", "512", "resized(double, 0, 16)")
    assert told["bytes"] == 4096 and told["runs"] == 512 and told["pattern"] == "stride"
    assert told["times"]["pack"] > 0 and told["expected_us"] > 0
    if "why" not in told["times"]["by_mpi"]:
        assert len(told["guidelines"]) == 3
    assert "there is no constructor" in tasuki("mpi", "type", "vectr(3)", status=2)
    assert "there is no 'mpi tipe'" in tasuki("mpi", "tipe", status=2)
