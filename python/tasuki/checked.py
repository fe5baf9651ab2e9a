"""Reads JSON files and checks what is in them: an error names the file, the place in it, and what must be there."""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Callable
from pathlib import Path
from typing import Any


class FileError(ValueError):
    """A file that cannot be read; the text names it, and the place in it."""


MOST_DEPTH = 50  # of what lies in what; more would be too much for those who use it


def deeper(content: object, depth: int) -> bool:
    """Whether lists and objects lie in each other more than `depth` times."""
    level = [[content]]
    for _ in range(depth + 1):
        values = (value for each in level for value in (each.values() if isinstance(each, dict) else each))
        level = [value for value in values if isinstance(value, (list, dict))]
        if not level:
            return False
    return True


def read_json(file: Path) -> Any:
    """The file's content. Raises FileError that says where it is not JSON."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if deeper(content, MOST_DEPTH):
            raise RecursionError
        return content
    except OSError as error:
        raise FileError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise FileError(f"{file}: not text at byte {error.start}; a JSON file is needed") from None
    except json.JSONDecodeError as error:
        raise FileError(f"{file}: not JSON at line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise FileError(f"{file}: its lists or objects lie in each other too deeply to be read") from None
    except ValueError as error:  # a number of thousands of digits
        raise FileError(f"{file}: not JSON that can be read: {error}") from None


# What a value in a file has to be: a test, and the words for it.
Kind = tuple[Callable[[object], bool], str]


def is_whole(value: object) -> bool:
    return type(value) is int and abs(value) < 1 << 63  # a bool is none


def is_number(value: object) -> bool:
    return is_whole(value) or (isinstance(value, float) and math.isfinite(value))


TEXT: Kind = (lambda value: isinstance(value, str), "a text")
SWITCH: Kind = (lambda value: isinstance(value, bool), "true or false")
LIST: Kind = (lambda value: isinstance(value, list), "a list")
OBJECT: Kind = (lambda value: isinstance(value, dict), "an object")
COUNT: Kind = (lambda value: is_whole(value) and value >= 0, "a whole number of at least 0")
POSITIVE_COUNT: Kind = (lambda value: is_whole(value) and value >= 1, "a whole number of at least 1")
NUMBER: Kind = (lambda value: is_number(value) and value >= 0, "a number of at least 0")
POSITIVE: Kind = (lambda value: is_number(value) and value > 0, "a number above 0")


def shown(value: object) -> str:
    """In JSON's words, but not all of something long."""
    return json.dumps(value) if value is None or isinstance(value, bool) else reprlib.repr(value)


def need(value: object, kind: Kind, source: Path, place: str) -> Any:
    """The value if it is of this kind. Else raises FileError with the file and the place in it."""
    fits, words = kind
    if not fits(value):
        raise FileError(f"{source}: {place} is {shown(value)}; it must be {words}")
    return value


def need_all(record: object, kinds: dict[str, Kind], source: Path, place: str = "") -> Any:
    """The record if it is an object that has all these, each of its kind. Else raises FileError."""
    need(record, OBJECT, source, place or "the content")
    for key, kind in kinds.items():
        if key not in record:
            raise FileError(f"{source}: {place or 'the content'} has no '{key}'")
        need(record[key], kind, source, f"{place}.{key}" if place else key)
    return record
