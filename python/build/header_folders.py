"""Prints the folders of the header-only libraries that are installed beside this interpreter, separated by `;`."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import setup as tools_setup  # noqa: E402

folders = {
    str(Path(str(importlib.metadata.distribution(package).locate_file(folder))).parent.resolve()): None
    for package, contents in tools_setup.HEADERS.items()
    for folder in contents
}
print(";".join(folders))
