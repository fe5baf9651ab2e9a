"""Whatever is written: it is read, or refused with a message; nothing else."""

import re
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tasuki_directives.bind import read_program
from tasuki_directives.checks import check_program
from tasuki_directives.diagnostics import BadInput, Findings
from tasuki_directives.reader import CLAUSES, DIRECTIVES, Reader
from tasuki_directives.report import described
from tasuki_directives.source import Source

PROGRAMS = [path.read_text() for path in sorted(Path(__file__).with_name("programs").glob("*.c"))]
WORDS = [*DIRECTIVES, *(c for clauses in CLAUSES.values() for c in clauses), "onto", "with", "block", "cyclic"]
WORDS += [*"(())[[]],,::*+-/=><?&.ptaij018", "->", "1.5", "max", "firstmin", "periodic", "sizeof"]
PRAGMAS = [line.split() for text in PROGRAMS for line in text.split("\n") if line.startswith("#pragma")]
QUIET = {"deadline": None, "derandomize": True, "database": None}


@settings(max_examples=300, **QUIET)
@given(
    st.sampled_from(PRAGMAS), st.lists(st.tuples(st.integers(2, 30), st.booleans(), st.sampled_from(WORDS)), max_size=4)
)
def test_directives(words, changes):
    words = list(words)
    for at, more, word in changes:
        words[min(at, len(words)) : min(at, len(words)) + (not more)] = [word] if more or at % 2 else []
    findings = Findings()
    reader = Reader(findings)
    reader.nodes.add("p")
    pragmas = Source("a.c", " ".join(words)).pragmas
    read = [form for pragma in pragmas for form in reader.read(pragma)]
    assert read or findings
    for finding in findings:
        assert re.match(r"a\.c:1:\d+: error: .+\n.+\n +\^~*\n    remedy: .+$", str(finding))


@settings(max_examples=200, **QUIET)
@given(st.text(alphabet="a1[]():?,;{}\"'/*\\\n #é", max_size=60))
def test_text(text):
    source = Source("a.c", text + "\n#pragma xmp barrier\n" + text)
    assert len(source.as_c) == len(source.text)
    assert [i for i, c in enumerate(source.as_c) if c == "\n"] == [i for i, c in enumerate(source.text) if c == "\n"]


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture], **QUIET)
@given(
    st.sampled_from(PROGRAMS), st.integers(0, 10**6), st.integers(0, 30), st.sampled_from(["", "{", "}", "[", ";", '"'])
)
def test_programs(tmp_path, text, at, gone, put):
    at %= len(text)
    (tmp_path / "a.c").write_text(text[:at] + put + text[at + gone :])
    findings = Findings()
    try:
        program = read_program(str(tmp_path / "a.c"), [], findings)
    except BadInput as error:
        assert str(error)
        return
    if program is not None:
        check_program(program, findings)
        assert described(program) or findings
    assert all(map(str, findings))
