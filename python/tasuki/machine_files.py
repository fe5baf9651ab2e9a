"""Finds machine files: by path, or those that come with Tasuki (machines/) by their bare name."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).absolute().parent / "machines"  # where the package is, whatever its files are links to


def shipped() -> list[str]:
    """The names of the machines that come with Tasuki."""
    return sorted(file.stem for file in FOLDER.glob("*.json"))


def find(file: str | os.PathLike[str]) -> Path:
    """The file of that path, or else of that name. Raises tasuki.Error that lists the names."""
    from tasuki import Error

    path = Path(file)
    if path.is_file():
        return path
    names = shipped()
    if os.fspath(file) in names:
        return FOLDER / f"{file}.json"
    raise Error(
        f"machine file {file}: there is no such file, nor a machine of that name; with Tasuki come {', '.join(names)}"
    )


def read(file: object) -> tuple[str, str]:
    """The text of a machine file, and what to call it in messages."""
    from tasuki import Error

    if not isinstance(file, (str, os.PathLike)):
        raise TypeError(f"Machine.from_file: argument 'file' is {file!r}; it must be a path or a name")
    path = find(os.fspath(file))  # type: ignore[arg-type]
    try:
        return path.read_text(encoding="utf-8"), str(path)
    except OSError as error:
        raise Error(f"machine file {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise Error(f"machine file {path}: not text at byte {error.start}") from None
