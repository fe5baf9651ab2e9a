"""Files of kernels: nvcc compiles them, or with `emulated` the host's compiler of C++."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path

from .diagnostics import BadInput

EMULATED = "-DXACC_EMULATED"
# Arguments that nvcc alone understands.
NVCC_ALONE = re.compile(r"--?(arch|gencode|generate-code|gpu-architecture|fmad|maxrregcount|use_fast_math)\b")
SEEN = re.compile(r"-(I|D|U|O|g|std=c\+\+|isystem|iquote)")
FOR_CXX = re.compile(r"-(f|m|W)(?!l,|strict-proto|missing-proto|no-implicit|p,)")
WITH_WORD = {"-I", "-D", "-U", "-isystem", "-iquote"}


def nvcc() -> str:
    """$CUDACXX, or what lies on the path or where CUDA is installed."""
    found = os.environ.get("CUDACXX") or shutil.which("nvcc")
    if found is None and Path("/usr/local/cuda/bin/nvcc").exists():
        found = "/usr/local/cuda/bin/nvcc"
    if found is None:
        raise BadInput("tasuki-cc: error: --device gpu needs nvcc; put it on PATH, or set CUDACXX")
    return found


def for_host(arguments: list[str]) -> list[str]:
    return [word for word in arguments if not NVCC_ALONE.match(word)]


def kernel_command(device: str, arguments: list[str], source: str, target: str) -> list[str]:
    """What compiles a file of kernels."""
    flags, words = [], iter(arguments)
    for word in words:
        if word in WITH_WORD:
            flags += [word, next(words, "")]
        elif SEEN.match(word) and word != "-" or device == "gpu" and NVCC_ALONE.match(word):
            flags.append(word)
        elif device == "gpu" and word == "-ffp-contract=off":
            flags.append("--fmad=false")
        elif device == "emulated" and FOR_CXX.match(word):
            flags.append(word)
    if not any(word.startswith("-std=c++") for word in flags):
        flags.append("-std=c++17")
    if device == "gpu":
        # Pragmas of directives in headers are the translator's.
        flags = [re.sub(r"^-iquote", "-I", word) for word in flags]
        return [nvcc(), "-x", "cu", "-Xcompiler", "-fPIC,-Wno-unknown-pragmas", *flags, "-c", source, "-o", target]
    compiler = shlex.split(os.environ.get("CXX") or "c++")
    return [*compiler, "-x", "c++", "-fPIC", *flags, "-Wno-unknown-pragmas", EMULATED, "-c", source, "-o", target]


def link_flags(device: str) -> list[str]:
    if device == "host":
        return []
    if device == "emulated":
        return ["-lstdc++", "-lm"]
    root = Path(shutil.which(nvcc()) or nvcc()).resolve().parents[1]
    folders = [root / "lib64", *root.glob("targets/*/lib"), root / "lib"]
    library = next((folder for folder in folders if (folder / "libcudart_static.a").exists()), folders[0])
    return [f"-L{library}", "-lcudart_static", "-lstdc++", "-ldl", "-lrt", "-lpthread", "-lm"]
