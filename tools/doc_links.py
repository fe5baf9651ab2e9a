#!/usr/bin/env python3
"""Checks the links of README.md and docs/: what they name exists, and docs/README.md lists every page.

tools/doc_links.py      names what is wrong, and exits with 1
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^()\s]+)\)")
FENCE = re.compile(r"^(```+|~~~+).*?^\1[ \t]*$", re.M | re.S)
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.M)


def without_code(text: str) -> str:
    """The text with what is code left empty, lines kept."""
    text = FENCE.sub(lambda block: "\n" * block.group(0).count("\n"), text)
    return re.sub(r"`[^`\n]+`", "", text)


def anchors(text: str) -> set[str]:
    """What links may name in a page: its headings, as GitHub and the site write them."""
    text = FENCE.sub("", text)
    found: set[str] = set()
    for heading in HEADING.findall(text):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        name, times = slug, 0
        while name in found:  # the second heading of a name
            times += 1
            name = f"{slug}-{times}"
        found.add(name)
    return found


def broken(page: Path):
    """A sentence for each link of a page that leads nowhere."""
    text = without_code(page.read_text())
    for link in LINK.finditer(text):
        target, _, anchor = link.group(1).partition("#")
        if re.match(r"[a-z][a-z+.-]*:", target):
            continue
        where = f"{page}:{text.count(chr(10), 0, link.start()) + 1}"
        file = (page.parent / target).resolve() if target else page
        if not file.exists():
            yield f"{where}: there is no {target}"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text()):
            yield f"{where}: {file.name} has no heading #{anchor}"


def unlisted(docs: Path):
    """A sentence for each page that the list of pages lacks, and for each that is listed twice."""
    listed = re.findall(r"^\| \[[\w-]+\.md\]\(([\w-]+\.md)\)", (docs / "README.md").read_text(), re.M)
    for page in sorted(docs.glob("*.md")):
        times = listed.count(page.name)
        if page.name != "README.md" and times != 1:
            yield f"{docs / 'README.md'}: lists {page.name} {times} times"


def main() -> int:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    found = [sentence for page in pages for sentence in broken(page)] + list(unlisted(ROOT / "docs"))
    print("\n".join(found) if found else f"{len(pages)} pages: every link leads somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
