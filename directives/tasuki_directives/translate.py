"""Files with directives become files without; the host's compiler makes a program of them."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from . import preprocess
from .device import EMULATED, for_host, kernel_command
from .device import link_flags as device_link_flags
from .diagnostics import BadInput, Findings
from .options import Options
from .source import Source

ROOT = Path(__file__).resolve().parents[2]
COMPILES_ONLY = {"-c", "-S", "-E", "-fsyntax-only", "-M", "-MM"}
DEFINED = "-D_XCALABLEMP=201911"  # the language's version 1.4
MOST_SHOWN = 60  # characters of a directive
MAIN = re.compile(r"\bmain\s*\(")


@dataclass
class Written:
    """A translated file: `texts` are what is written, by path within the folder; the first one is compiled."""

    path: str
    texts: dict
    lowering: object

    def explained(self) -> list[str]:
        """A line for each directive, and one more for each reflect and each innermost loop."""
        found = []
        for bound in self.lowering.program.directives:
            span = bound.pragma.span
            start = bound.pragma.tokens[0].span.start
            text = " ".join(span.source.text[start : span.end].replace("\\\n", " ").split())
            text = text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + " ..."
            place = f"{span.source.path}:{bound.pragma.first_line}: {text}: "
            found.append(place + self.lowering.became[id(bound)])
            found += [place + sentence for about, sentence in self.lowering.explained if about is bound]
        return list(dict.fromkeys(found))  # one line for all arrays of a directive


def translate(path: str, flags: list[str], options: Options, always: bool = False) -> Written | None:
    """None if the file has no directives. Prints what is wrong, and throws BadInput, if something is."""
    findings = Findings()
    try:
        unit = preprocess.read_unit(path, flags, findings)
    except BadInput:
        if Source(path).pragmas:
            raise
        return None  # nor does the compiler take it, and it says so
    if not unit.pragmas and not always:
        return None
    from .bind import bound_program  # which needs packages that the plain compiler does not
    from .checks import check_program
    from .lower import lower_program

    program = bound_program(unit, findings)
    symbols = check_program(program, findings)
    lowering = None
    if not findings:
        lowering = lower_program(program, symbols, findings, options)
    if findings:
        listed = sorted(findings, key=lambda f: (f.span.source.path, f.span.start))
        raise BadInput("\n".join(map(str, listed)))
    folder = Path(path).resolve().parent
    texts = {Path(path).name: lowering.of(program.code.unit.main).printed()}
    if lowering.cuda:
        texts[f"{Path(path).stem}.cu"] = lowering.cuda
    for real, source in program.code.unit.sources.items():
        if source is program.code.unit.main or id(source) not in lowering.edits:
            continue
        try:
            within = str(Path(real).relative_to(folder))
        except ValueError as error:
            message = f"{source.path}: error: a header with directives lies outside of {folder}"
            raise BadInput(f"{message}\n    remedy: put it beside the file that includes it, or below") from error
        texts[within] = lowering.of(source).printed()
    return Written(path, texts, lowering)


def translate_all(files: list[str], flags: list[str], options: Options) -> list[Written]:
    """The files that are to be compiled in the place of the program's."""
    flags = [*flags, DEFINED]
    if any(
        re.search(r"^[ \t]*#[ \t]*include.*\bxmp\.h", Path(path).read_text(errors="replace"), re.M) for path in files
    ):
        flags += runtime_flags()[0]
    found = {path: translate(path, flags, options) for path in files}
    if any(found.values()):
        for path, written in found.items():
            if written is None and MAIN.search(Path(path).read_text(errors="replace")):
                found[path] = translate(path, flags, options, always=True)
    return [written for written in found.values() if written is not None]


def write(written: list[Written], folder: Path) -> dict:
    """The files; gives where each source's is."""
    places, known = {}, {}
    for one in written:
        for within, text in one.texts.items():
            path = folder / within
            if known.setdefault(path, text) != text:
                message = f"tasuki-cc: error: {within} would be written twice, with different texts"
                raise BadInput(f"{message}; compile the files one by one")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        places[one.path] = str(folder / next(iter(one.texts)))
    return places


def runtime_flags() -> tuple[list[str], list[str]]:
    """For the preprocessor, and for the linker. XMP_RUNTIME names a build folder, or where Tasuki is installed."""
    folder = Path(os.environ.get("XMP_RUNTIME") or ROOT / "build")
    library = folder / "lib"
    installed, beside = folder / "include" / "tasuki" / "directives", ROOT / "directives" / "runtime" / "include"
    include = installed if installed.is_dir() else beside
    if (library / "libtasuki_xmp.so").exists() and include.is_dir():
        return [f"-I{include}"], [f"-L{library}", f"-Wl,-rpath,{library}", "-ltasuki_xmp"]
    if os.environ.get("XMP_RUNTIME"):
        raise BadInput(f"tasuki-cc: error: there is no {library}/libtasuki_xmp.so; correct XMP_RUNTIME")
    return package_flags()


def package_flags() -> tuple[list[str], list[str]]:
    found = []
    for what in ("--cflags", "--libs"):
        try:
            result = subprocess.run(["pkg-config", what, "tasuki_xmp"], capture_output=True, text=True, check=False)
            words = result.stdout.split() if result.returncode == 0 else []
        except OSError:
            words = []
        if not words:
            raise BadInput(
                "tasuki-cc: error: the run-time library tasuki_xmp is not found; build it, and set XMP_RUNTIME to the"
                " build folder or to where it is installed"
            )
        found.append(words)
    return found[0], found[1]


def compile_and_link(arguments: list[str], written: list[Written], device: str = "host") -> int:
    """The compilers, with translated files in the place of the program's."""
    compile_flags, link_flags = runtime_flags()
    compile_flags = [*compile_flags, DEFINED, *([EMULATED] if device == "emulated" else [])]
    with tempfile.TemporaryDirectory(prefix="tasuki-cc-") as folder:
        places = write(written, Path(folder))
        if any('_Pragma("omp simd' in text for one in written for text in one.texts.values()):
            compile_flags.append("-fopenmp-simd")
        compile_flags += sorted({f"-iquote{Path(one.path).resolve().parent}" for one in written})
        kernels = {one.path: f"{folder}/{Path(one.path).stem}.cu" for one in written if one.lowering.cuda}
        alone = bool(COMPILES_ONLY & set(arguments))
        if kernels and alone and "-c" not in arguments:
            raise BadInput("tasuki-cc: error: kernels are in a file of their own; use --emit to see or to check it")
        objects = {}
        for path, source in kernels.items():
            objects[path] = source[: -len(".cu")] + "_kernels.o"
            status = run(kernel_command(device, [*arguments, *compile_flags], source, objects[path]))
            if status != 0:
                return status
        arguments = for_host(arguments)
        if kernels and alone:
            return compile_objects(arguments, compile_flags, written, places, objects)
        command = [*preprocess.compiler(), *compile_flags, *[places.get(word, word) for word in arguments]]
        if not alone:
            command += [*objects.values(), *link_flags, *device_link_flags(device)]
        return run(command)


def compile_objects(arguments: list[str], flags: list[str], written: list[Written], places: dict, objects: dict) -> int:
    """With -c: each object holds the kernels of its file."""
    named = arguments[arguments.index("-o") + 1] if "-o" in arguments[:-1] else None
    files = [one.path for one in written]
    if named is not None:
        at = arguments.index("-o")
        arguments = arguments[:at] + arguments[at + 2 :]
    for path in files:
        target = named or f"{Path(path).stem}.o"
        one = [word for word in arguments if word == path or word not in files]
        whole = f"{places[path]}.o" if path in objects else target
        status = run([*preprocess.compiler(), *flags, *[places.get(word, word) for word in one], "-o", whole])
        if status == 0 and path in objects:
            status = run([*preprocess.compiler(), "-r", "-nostdlib", whole, objects[path], "-o", target])
        if status != 0:
            return status
    return 0


def run(command: list[str]) -> int:
    try:
        return subprocess.run(command, check=False).returncode
    except OSError as error:
        remedy = "set CC, CXX or CUDACXX"
        raise BadInput(f"tasuki-cc: error: {command[0]} does not start: {error.strerror}; {remedy}") from error
