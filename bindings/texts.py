"""Sentences of the schema in the words of each language, and text in lines."""

from __future__ import annotations

import re
import textwrap

from schema import Argument, Form, Operation

COLUMNS = 120
OPERATORS = (
    "'sum', 'product', 'min', 'max', 'band', 'bor', 'bxor', 'land', 'lor', 'lxor', 'minloc', 'maxloc' (of pairs)"
)
WORDS = {
    "c": {
        "in_place": "TASUKI_IN_PLACE",
        "null": "null",
        "equal": "null: `count` each",
        "device": "TASUKI_DEVICE",
        "type_of": "a tasuki_type",
        "fields_of": "`count` fields",
        "cells_of": "The fields",
        "operators": "a tasuki_op",
    },
    "fortran": {
        "in_place": "tasuki_in_place()",
        "null": "left out",
        "equal": "left out: `count` each",
        "device": ".true.",
        "fields_of": "One field, or a list",
        "cells_of": "The fields",
        "type_of": "tasuki_real64 or another; tasuki_bytes: what is only moved",
        "operators": "tasuki_sum or another, or what tasuki_operator_create makes",
    },
    "python": {
        "in_place": "tasuki.in_place",
        "null": "None",
        "equal": "None: all are equal",
        "device": "'device'",
        "fields_of": "A field, a pair (field, width), or a list of these",
        "cells_of": "A field, a list of fields, or a dictionary",
        "type_of": "as NumPy has it",
        "operators": f"{OPERATORS}; on the host also an Operator, or a function or ufunc that becomes one",
    },
}


def said(entry: Operation, language: str, text: str) -> str:
    """The sentence in the words of a language."""
    names = {one.name: one.in_language(language) for one in entry.arguments}

    def word(found: re.Match[str]) -> str:
        known = names | WORDS[language]
        if found[1] not in known:
            entry.place.refuse(
                f"operation '{entry.name}' says {{{found[1]}}}, which is no argument or word in {language}"
            )
        return known[found[1]]

    return re.sub(r"\{(\w+)\}", word, text)


def sentence_of(entry: Operation, form: Form, one: Argument, language: str) -> str:
    """What is said of an argument. A buffer's layout is said with the buffer's blocks."""
    if one.kind == "layout":
        return f"Which bytes of `{named(entry, one.of, language)}` are meant."
    if one.kind == "layouts":
        each = "neighbour" if entry.among_neighbours else "rank"
        return f"Which bytes of `{named(entry, one.of, language)}` each block is, an entry a {each}."
    return said(entry, language, one.says)


def named(entry: Operation, name: str, language: str) -> str:
    return next(one.in_language(language) for one in entry.arguments if one.name == name)


def making(entry: Operation, form: Form) -> str:
    """What the operation does, and who makes it."""
    parts = [entry.about, entry.says]
    if form.layouts:
        parts.append(entry.by_layouts)
    if entry.collective:
        parts.append("Collective.")
    return " ".join(part for part in parts if part)


def filled(text: str, first: str, then: str, columns: int = COLUMNS) -> list[str]:
    return textwrap.wrap(text, columns, initial_indent=first, subsequent_indent=then, break_long_words=False)


def entries(pairs: list[tuple[str, str]], lead: str, columns: int = COLUMNS) -> list[str]:
    """`name  sentence`, a paragraph each, the sentences below each other."""
    width = max((len(name) for name, _ in pairs), default=0)
    lines = []
    for name, text in pairs:
        lines += filled(text, f"{lead}{name:<{width}}  ", lead + " " * (width + 2), columns)
    return lines
