"""tasuki-cc: checks directives, prints their typed form; without directives it is the plain compiler."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

from . import preprocess
from .diagnostics import BadInput, Findings
from .source import Source

USAGE = """usage: tasuki-cc --check [FLAG...] FILE...    read, bind and check the directives of C files
       tasuki-cc --dump-ir [FLAG...] FILE...  the same, and print their typed form as JSON
       tasuki-cc ARGUMENT...                  the compiler ($CC or cc), if no file has directives

FLAG is the compiler's: -I, -D, -U, -std, -include and so on. Directives are not yet translated: there is no run-time
library for them."""
# Flags that the preprocessor sees too, with a word after them or not.
WITH_WORD = {"-I", "-D", "-U", "-include", "-imacros", "-isystem", "-iquote", "-idirafter"}
SEEN = re.compile(r"-(-std=|-sysroot=|I|D|U|std=|isystem|iquote|idirafter|f|m|O|ansi$|pthread$|trigraphs$)")
OTHERS_WITH_WORD = {"-o", "-x", "-L", "-l", "-MF", "-MT", "-MQ", "-Xlinker", "-T", "-u", "-z"}


def split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Flags of the preprocessor, and files of C."""
    flags, files, words = [], [], iter(arguments)
    for word in words:
        if word in WITH_WORD:
            flags += [word, next(words, "")]
        elif word in OTHERS_WITH_WORD:
            next(words, "")
        elif SEEN.match(word):
            flags.append(word)
        elif not word.startswith("-") and word.endswith((".c", ".h")):
            files.append(word)
    return flags, files


def first_directive(arguments: list[str]) -> tuple[str, int] | None:
    """Where the first directive stands that counts, of the files or of their headers."""
    flags, files = split(arguments)
    for path in files:
        if not Path(path).is_file():
            continue  # the compiler says so
        try:
            unit = preprocess.read_unit(path, flags, Findings())
        except BadInput:
            if Source(path).pragmas:
                raise
            continue  # nor does the compiler take it, and it says so
        if unit.pragmas:
            span = unit.pragmas[0].span
            return span.source.path, span.source.place(span.start)[0]
    return None


def plain_compiler(arguments: list[str]) -> int:
    found = first_directive(arguments)
    if found:
        print(
            f"{found[0]}:{found[1]}: error: directives are not translated yet\n"
            "    remedy: `tasuki-cc --check` checks them; to compile the program as serial C, call the compiler itself",
            file=sys.stderr,
        )
        return 2
    command = [*preprocess.compiler(), *arguments]
    try:
        os.execvp(command[0], command)
    except OSError as error:
        raise BadInput(f"tasuki-cc: error: {command[0]} does not start: {error.strerror}; set CC") from error


def analyse(arguments: list[str], dump: bool) -> int:
    flags, files = split(arguments)
    for word in arguments:
        if word.startswith("--") and not word.startswith(("--std=", "--sysroot=")):
            raise BadInput(f"tasuki-cc: error: unknown option {word}\n{USAGE}")
        if not word.startswith("-") and word not in files and Path(word).is_file() and word not in flags:
            raise BadInput(f"tasuki-cc: error: {word} is no file of C: its name must end in .c or .h")
    if not files:
        raise BadInput(f"tasuki-cc: error: no file of C is named\n{USAGE}")
    try:
        from .bind import read_program
        from .checks import check_program
        from .report import described
    except ImportError as error:
        raise BadInput(
            f"tasuki-cc: error: {error}: the Python packages libclang and lark are needed, at the versions of"
            " requirements.txt"
        ) from error
    failed, listed = False, []
    for path in files:
        findings = Findings()
        try:
            program = read_program(path, flags, findings)
            if program is not None:
                check_program(program, findings)
        except BadInput as error:
            print(error, file=sys.stderr)
            failed = True
            continue
        for finding in sorted(findings, key=lambda f: (f.span.source.path, f.span.start)):
            print(finding, file=sys.stderr)
        failed = failed or bool(findings)
        listed.append({"file": path, "directives": described(program) if program else []})
    if dump:
        print(json.dumps(listed, indent=2))
    return 1 if failed else 0


def main(arguments: list[str]) -> int:
    try:
        if arguments in ([], ["--help"], ["-h"]):
            print(USAGE)
            return 0 if arguments else 2
        modes = [a for a in arguments if a in ("--check", "--dump-ir")]
        if not modes:
            return plain_compiler(arguments)
        return analyse([a for a in arguments if a not in modes], "--dump-ir" in modes)
    except BadInput as error:
        print(error, file=sys.stderr)
        return 2
