"""The command, and whole programs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).with_name("programs")
COMMAND = [sys.executable, str(ROOT / "directives" / "tasuki-cc")]


def tasuki_cc(*arguments, cwd=None, **environment):
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, cwd=cwd, env={**os.environ, **environment}
    )


@pytest.fixture(scope="module")
def meanings():
    """The typed forms of all programs, without where they stand."""
    programs = sorted(PROGRAMS.glob("*.c"))
    result = tasuki_cc("--check", "--dump-ir", *programs)
    assert (result.returncode, result.stderr) == (0, "")
    found = {}
    for program in json.loads(result.stdout):
        for directive in program["directives"]:
            for key in ("file", "line", "statement"):
                directive.pop(key, None)
        found[Path(program["file"]).stem] = program["directives"]
    return found


@pytest.mark.parametrize("name", ["laplace_xmp", "laplace_xacc", "himeno_xmp", "himeno_xacc"])
def test_programs_mean_the_same_in_both_brackets(meanings, name):
    assert len(meanings[f"{name}_round"]) >= 12
    assert meanings[f"{name}_round"] == meanings[f"{name}_square"]


def test_programs_are_serial_programs_too(tmp_path):
    for program in PROGRAMS.glob("*_xacc_*.c"):
        out = tmp_path / "program"
        flags = ["-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"]
        subprocess.run(["cc", *flags, str(program), "-o", str(out), "-lm"], check=True)
        assert subprocess.run([str(out)], capture_output=True, text=True, check=True).stdout


def test_a_fault_ends_with_1(tmp_path):
    (tmp_path / "a.c").write_text("#pragma xmp nodes p(2)\n#pragma xmp nodes p(3)\n")
    (tmp_path / "b.c").write_text("#pragma xmp bogus\n")
    result = tasuki_cc("--check", tmp_path / "a.c", tmp_path / "b.c")
    assert result.returncode == 1
    assert "a.c:2:13: error: 'p' is declared twice" in result.stderr
    assert "b.c:1:13: error: unknown directive 'bogus'" in result.stderr


def test_the_ir_has_lines_and_statements(tmp_path):
    (tmp_path / "a.c").write_text(
        "#pragma xmp nodes p(2)\nint main(void) {\n#pragma xmp task on p(2)\n  return 0;\n}\n"
    )
    nodes, task = json.loads(tasuki_cc("--dump-ir", tmp_path / "a.c").stdout)[0]["directives"]
    assert (nodes["form"], nodes["line"], nodes["extents"], nodes["function"]) == ("Nodes", 1, [2], None)
    assert (task["form"], task["line"], task["function"], task["statement"]["lines"]) == ("Task", 3, "main", [4, 4])
    assert task["on"]["subscripts"][0]["lower"] == 1


def test_without_pragmas_it_is_the_plain_compiler(tmp_path):
    (tmp_path / "a.c").write_text('#include <stdio.h>\n#include "b.h"\nint main(void) { return VALUE; }\n')
    (tmp_path / "b.h").write_text("#if 0\n#pragma xmp nodes p(2)\n#endif\n")
    out = tmp_path / "program"
    result = tasuki_cc("-DVALUE=7", "-O1", "-o", out, tmp_path / "a.c", "-lm")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert subprocess.run([str(out)], check=False).returncode == 7


def test_its_arguments_are_passed_on_as_they_are(tmp_path):
    compiler = tmp_path / "echo"
    compiler.write_text('#!/bin/sh\ncase "$*" in *-dD*) exec cc "$@";; esac\nprintf "%s|" "$@"\nexit 5\n')
    compiler.chmod(0o755)
    (tmp_path / "a.c").write_text("int x;\n")
    arguments = ["-c", "-MF", "a b.d", "-Wl,--as-needed", str(tmp_path / "a.c"), "-o", "x"]
    result = tasuki_cc(*arguments, CC=str(compiler))
    assert (result.returncode, result.stdout) == (5, "".join(f"{a}|" for a in arguments))


def test_the_compilers_own_errors(tmp_path):
    (tmp_path / "a.c").write_text('#include "nowhere.h"\n')
    result = tasuki_cc("-c", tmp_path / "a.c", "-o", tmp_path / "a.o")
    assert result.returncode == 1 and "a.c:1:" in result.stderr and "nowhere.h" in result.stderr
    result = tasuki_cc("--check", tmp_path / "a.c")
    assert result.returncode == 1 and "a.c:1:" in result.stderr and "nowhere.h" in result.stderr


def test_the_page_shows_what_the_command_prints(tmp_path):
    page = (ROOT / "docs" / "directives.md").read_text()
    program = re.search(r"```c\n(.*?)```", page, re.DOTALL)[1]
    (tmp_path / "heat.c").write_text(program)
    result = tasuki_cc("--check", "--dump-ir", "heat.c", cwd=tmp_path)
    assert result.stderr == re.search(r"```\n(heat\.c:.*?)```", page, re.DOTALL)[1]
    shown = json.loads(re.search(r"```json\n(.*?)```", page, re.DOTALL)[1])
    assert shown in json.loads(result.stdout)[0]["directives"]


def test_wrong_calls(tmp_path):
    assert tasuki_cc().returncode == 2
    assert "no file of C is named" in tasuki_cc("--check").stderr
    (tmp_path / "a.cpp").touch()
    assert "a.cpp is no file of C" in tasuki_cc("--check", tmp_path / "a.cpp").stderr
    assert "unknown option --dump" in tasuki_cc("--check", "--dump", PROGRAMS / "laplace_xmp_round.c").stderr
    assert "nothing.c cannot be read" in tasuki_cc("--check", tmp_path / "nothing.c").stderr
    assert "nothing.c" in tasuki_cc("-c", tmp_path / "nothing.c").stderr
    assert "does not start" in tasuki_cc("x.c", CC="/no/compiler").stderr


def test_the_page_shows_what_is_generated(tmp_path):
    page = (ROOT / "docs" / "directives.md").read_text()
    blocks = re.findall(r"```c\n(.*?)```", page, re.DOTALL)
    (tmp_path / "smooth.c").write_text(blocks[1])
    result = tasuki_cc("--explain", "--emit", "out", "smooth.c", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stderr == re.search(r"```\n(smooth\.c:.*?)```", page, re.DOTALL)[1]
    assert (tmp_path / "out" / "smooth.c").read_text() == blocks[2]
