"""Calls that fit no form of a function: the error is a sentence that names the argument, and the nearest right one."""

from __future__ import annotations

import numpy as np
import pytest

import tasuki

MACHINE = tasuki.Machine.from_file("host-2core")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            lambda: tasuki.Halo(1, corner=False),
            "Halo() has no argument 'corner'; did you mean 'corners'? it has fields, ",
        ),
        (lambda: tasuki.Halo(1, Corners=False), "Halo() has no argument 'Corners'; did you mean 'corners'?"),
        (lambda: tasuki.Halo(1, nothing_like_it=1), "Halo() has no argument 'nothing_like_it'; it has fields, width, "),
        (
            lambda: tasuki.Grid((20, 30)),  # type: ignore[call-arg, arg-type]
            "Grid(): argument 'context' is (20, 30); it must be a tasuki.Context, and 'shape' comes after it",
        ),
        (lambda: tasuki.Halo(), "Halo(): argument 'fields' is missing; it must be a tasuki.Field or "),
        (lambda: tasuki.Halo([], corners="yes"), "Halo(): argument 'corners' is 'yes'; it must be True or False"),
        (lambda: tasuki.Halo([], path=7), "Halo(): argument 'path' is 7; it must be a text"),
        (lambda: tasuki.Halo(1, 2), "Halo() takes at most 1 arguments without a name, not 2; give by name: width, "),
        (lambda: tasuki.Halo(1, fields=2), "Halo(): argument 'fields' is given twice"),
        (lambda: tasuki.Grid(3, (4, 4)), "Grid(): argument 'context' is 3; it must be a tasuki.Context"),
        (lambda: tasuki.Grid(perodic=True), "Grid() has no argument 'perodic'; did you mean 'periodic'?"),
        (lambda: tasuki.Transfer(1, (0, None), (1, None)), "Transfer(): argument 'context' is 1; it must be"),
        (lambda: tasuki.Broadcast(1, 0, b"", tree=2), "Broadcast() has no argument 'tree'; did you mean 'trees'?"),
        (
            lambda: tasuki.FieldShape("u", memmory="host"),
            "FieldShape() has no argument 'memmory'; did you mean 'memory'?",
        ),
        (lambda: tasuki.FieldShape(3), "FieldShape(): argument 'name' is 3; it must be a text"),
        (lambda: tasuki.predict(3), "predict(): argument "),
        (
            lambda: tasuki.plan_halo(MACHINE, (8, 8), corner=False),
            "plan_halo() has no argument 'corner'; did you mean ",
        ),
        (lambda: tasuki.Machine.from_file(fill="torus-36"), "from_file() has no argument 'fill'; did you mean 'file'?"),
    ],
)
def test_a_sentence_names_the_argument(call, expected):
    with pytest.raises(TypeError) as raised:
        call()
    told = str(raised.value)
    assert expected in told, told
    assert "\n" not in told and "incompatible function arguments" not in told


def test_a_large_value_is_not_printed_whole():
    with pytest.raises(TypeError) as raised:
        tasuki.Halo([], path=list(range(100000)))
    assert len(str(raised.value)) < 300


def test_every_form_can_be_read():
    """A signature that the sentences cannot be made from would bring nanobind's own message back."""
    from tasuki.arguments import parameters

    seen = 0
    for name in tasuki.__all__:
        thing = getattr(tasuki, name)
        functions = list(vars(thing).values()) if isinstance(thing, type) else [thing]
        for function in functions:
            for signature, *_ in getattr(function, "__nb_signature__", ()):
                if "**" not in signature:  # which takes any
                    parameters(signature)
                    seen += 1
    assert seen > 50


def test_errors_of_other_kinds_stay():
    with pytest.raises(tasuki.Error, match="there is no"):
        tasuki.Machine.from_file("no-such-machine")
    with pytest.raises(TypeError, match="no constructor"):
        tasuki.Operation()


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda text: tasuki.Plan.from_json(text), "text"),
        (lambda text: tasuki.Plan.from_text(text), "text"),
        (lambda text: tasuki.Machine.from_json(text), "text"),
        (lambda text: tasuki.Machine.from_json("{}", text), "file"),
        (lambda text: tasuki.Operator(lambda into, other: None, name=text), "name"),
        (lambda text: tasuki.FieldShape(text), "name"),
    ],
)
@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"])
def test_text_that_utf8_cannot_have_is_an_error_of_tasuki(call, argument, text):
    with pytest.raises(tasuki.Error, match=rf"argument '{argument}' is '.*ud.*', which cannot be written in UTF-8"):
        call(text)


def test_plans_that_are_odd_texts_are_errors_of_tasuki():
    for text in "", "\0", "[" * 5000, '{"format": 1e400}', "\N{SNOWMAN}", '"\\ud800"':
        for read in tasuki.Plan.from_json, tasuki.Plan.from_text:
            with pytest.raises(tasuki.Error):
                read(text)


def test_padding_of_a_described_struct_is_no_field():
    from tasuki.arguments import described_type

    for fields in [("v", "f8"), ("i", "i4")], [("v", "i8"), ("i", "i4")], [("a", "u1"), ("b", "f4"), ("c", "u1")]:
        dtype = np.dtype(fields, align=True)
        assert any(name == "" for name, *_ in dtype.descr)
        assert described_type(dtype.descr) == dtype
        assert described_type(dtype.descr).itemsize == dtype.itemsize
