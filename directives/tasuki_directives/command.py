"""tasuki-cc: translates directives, and checks them; without directives it is the plain compiler."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

from . import preprocess
from .diagnostics import BadInput, Findings
from .options import Options
from .translate import DEFINED, Written, compile_and_link, translate_all, write

USAGE = """usage: tasuki-cc [OPTION...] ARGUMENT...          the compiler ($CC or cc), and the translator of directives
       tasuki-cc --emit DIR [OPTION...] ARGUMENT...   write the translated files there, and compile nothing
       tasuki-cc --check [FLAG...] FILE...            read, bind and check the directives of C files
       tasuki-cc --check -o PROGRAM [OPTION...] ARGUMENT...   a program that checks its references when it runs
       tasuki-cc --dump-ir [FLAG...] FILE...          the same, and print their typed form as JSON

OPTION: --explain says what became of every directive, whether a reflect is overlapped with the loop after it, which
loops may be vectors, and which become graphs of the GPU; --no-overlap, --no-simd and --no-graphs forbid that;
--openmp makes OpenMP's loops of OpenACC's; --device gpu makes kernels of CUDA of them, which nvcc compiles, and
--device emulated the same kernels as loops of the host.
ARGUMENT and FLAG are the compiler's. The translated program is linked with the run-time library tasuki_xmp."""
DEVICES = ("host", "gpu", "emulated")
NEEDED = "tasuki-cc: error: {}: the Python packages libclang and lark are needed, at the versions of requirements.txt"
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


def build(arguments: list[str], check: bool) -> int:
    """Translates, and calls the compiler."""
    options, folder, rest = Options(check=check), None, []
    words = iter(arguments)
    for word in words:
        if word == "--emit":
            folder = next(words, None)
            if folder is None:
                raise BadInput(f"tasuki-cc: error: --emit needs a folder\n{USAGE}")
        elif word == "--device":
            options.device = next(words, "")
            if options.device not in DEVICES:
                raise BadInput(f"tasuki-cc: error: --device is '{options.device}'; it is one of {', '.join(DEVICES)}")
        elif word == "--no-overlap":
            options.overlap = False
        elif word == "--no-simd":
            options.simd = False
        elif word == "--no-graphs":
            options.graphs = False
        elif word == "--openmp":
            options.openmp = True
            rest.append("-fopenmp")
        elif word == "--explain":
            options.explain = True
        else:
            rest.append(word)
    if options.kernels and options.openmp:
        raise BadInput("tasuki-cc: error: --openmp is for loops of the host, and --device makes kernels of them")
    if options.kernels and options.check:
        raise BadInput("tasuki-cc: error: --check checks references of the host; take --device away")
    flags, files = split(rest)
    files = [path for path in files if path.endswith(".c") and Path(path).is_file()]
    written = translated(files, flags, options)
    if options.explain:
        for line in (line for one in written for line in one.explained()):
            print(line, file=sys.stderr)
    if folder is not None:
        if not written:
            raise BadInput("tasuki-cc: error: no file has directives, so that there is nothing to translate")
        if Path(folder).exists() and not Path(folder).is_dir():
            raise BadInput(f"tasuki-cc: error: --emit {folder} is no folder; name one")
        for path in write(written, Path(folder)).values():
            print(path)
        return 0
    return compile_and_link(rest, written, options.device) if written else plain_compiler(rest)


def translated(files: list[str], flags: list[str], options: Options) -> list[Written]:
    try:
        return translate_all(files, flags, options)
    except ImportError as error:
        raise BadInput(NEEDED.format(error)) from error


def plain_compiler(arguments: list[str]) -> int:
    command = [*preprocess.compiler(), *arguments]
    try:
        os.execvp(command[0], command)
    except OSError as error:
        raise BadInput(f"tasuki-cc: error: {command[0]} does not start: {error.strerror}; set CC") from error


def analyse(arguments: list[str], dump: bool) -> int:
    flags, files = split(arguments)
    flags.append(DEFINED)
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
        raise BadInput(NEEDED.format(error)) from error
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
        rest = [a for a in arguments if a not in modes]
        makes = "--dump-ir" not in modes and any(a in ("-o", "-c", "--emit") for a in rest)
        if not modes or makes:
            return build(rest, check=bool(modes))
        return analyse(rest, "--dump-ir" in modes)
    except BadInput as error:
        print(error, file=sys.stderr)
        return 2
