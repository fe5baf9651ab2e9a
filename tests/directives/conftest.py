"""Reads a piece of C with directives and gives the forms, or what the checks say; makes programs.

Tests marked `broad` are more of the same: other ranks, the other brackets, another compiler. CTest's launches leave
them out; `make test-directives` runs all.
"""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "directives"))

from running import Programs  # noqa: E402
from tasuki_directives.bind import read_program  # noqa: E402
from tasuki_directives.checks import check_program  # noqa: E402
from tasuki_directives.diagnostics import Findings  # noqa: E402
from tasuki_directives.reader import Reader  # noqa: E402
from tasuki_directives.source import Source  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "broad: more of the same, for `make test-directives`")


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    return Programs(tmp_path_factory.mktemp("programs"))


class Read:
    """A program, and all that was found in it."""

    def __init__(self, path, flags=()):
        self.findings = Findings()
        self.program = read_program(str(path), list(flags), self.findings)
        if self.program is not None:
            check_program(self.program, self.findings)

    @property
    def directives(self):
        return self.program.directives if self.program else []

    @property
    def forms(self):
        return [bound.form for bound in self.directives]

    @property
    def messages(self):
        return [finding.message for finding in self.findings]


@pytest.fixture
def read(tmp_path):
    """Binds and checks a program."""

    def run(text, *flags, name="a.c"):
        path = tmp_path / name
        path.write_text(text)
        return Read(path, flags)

    return run


@pytest.fixture
def forms():
    """Only the grammar: forms of the lines, each a pragma, and nodes `p` and `q` to refer to."""

    def run(*lines, language="xmp"):
        known = "#pragma xmp nodes p(4)\n#pragma xmp nodes q(2, 4)\n"
        source = Source("forms.c", known + "".join(f"#pragma {language} {line}\n" for line in lines))
        findings = Findings()
        reader = Reader(findings)
        found = [form for pragma in source.pragmas for form in reader.read(pragma)]
        assert not findings, "\n".join(map(str, findings))
        return found[2:]

    return run


@pytest.fixture
def fault(read):
    """A program with one fault: its message, and the text over its caret."""

    def run(text, *flags):
        findings = read(text, *flags).findings
        assert len(findings) == 1, "\n".join(map(str, findings)) or "nothing was found"
        span = findings[0].span
        assert findings[0].remedy
        return findings[0].message, span.source.text[span.start : span.end]

    return run
