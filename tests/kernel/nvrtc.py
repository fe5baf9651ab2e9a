"""The header of kernels under NVRTC, with the options of docs/kernels.md and of examples/heat_kernel.py and no others.

There is no header of the standard library's. All versions that are installed from PyPI compile it: the oldest that can
and a new one (requirements.txt); else that of a CUDA toolkit does.
"""

import ctypes
import importlib.util
import re
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = """
#include <tasuki/kernel.cuh>

namespace device = tasuki::device;

extern "C" __global__ void relay(TASUKI_PARAMETER device::Messages m, device::Shape shape, void* memory) {
  const auto block = device::this_block();
  const auto warp = device::this_warp();
  device::Request send;
  device::Request receive;
  device::Word word = 0;
  bool done = false;
  const int next = (m.team.rank + 1) % m.team.ranks;
  if (!device::put_with_signal(m.team, block, next, 0, memory, 64, 0, 1)) return;
  if (!device::wait_signal(m.team, block, 0, 0, 1)) return;
  if (!device::put_word(m.team, block, next, 0, 1, 2) || !device::wait_word(m.team, block, 0, 0, 1, word)) return;
  if (!device::put_packet(m.team, block, next, 0, 1, memory, 100)) return;
  if (!device::wait_packet(m.team, block, 0, 0, 1, memory, 100)) return;
  if (!device::all_to_all(m.team, block, &word, &word, 1)) return;
  if (!device::allreduce(m.team, block, 2.5f * word, device::Sum(), *static_cast<float*>(memory))) return;
  if (!device::irecv(m, block, 0, memory, shape, 9, receive) || !device::isend(m, block, 0, memory, shape, 9, send))
    return;
  if (!device::irecv(m, block, 0, memory, 100, device::kAnyTag, receive)) return;
  if (!device::isend(m, block, next, memory, 100, 7, send)) return;
  if (!device::test(m, block, send, done) || !device::wait(m, block, receive)) return;
  if (warp.warp() == 0 && !device::irecv(m, warp, 0, memory, 100, 3, receive)) return;
  if (block.thread() == 0 && !device::isend(m, device::this_thread(), next, memory, 100, 3, send)) return;
  if (!device::echo(m, block, 3, word)) return;
  if (!device::barrier(m.team, block)) return;
  device::barrier(m.team, device::this_grid());
}
"""
# Handles of operations: all calls, by all kinds of groups. The assertions are what the host's side counts on.
OPERATIONS = """
#include <tasuki/kernel.cuh>

namespace device = tasuki::device;

static_assert(sizeof(device::Handle) == sizeof(device::ReducingHandle));
static_assert(sizeof(device::lowered::Job) == 128);

extern "C" __global__ void heat(TASUKI_PARAMETER device::Handle halo, float* now, float* next, int cells, int steps) {
  const auto grid = device::this_grid();
  const auto block = device::this_block();
  for (int step = 0; step < steps; ++step) {
    if (!device::start(halo, grid, step)) return;
    for (int i = block.block() * block.threads() + block.thread(); i < cells; i += block.blocks() * block.threads())
      next[i] = 2 * now[i];
    if (!device::wait(halo, grid, step) || device::failed(halo)) return;
    float* const old = now;
    now = next;
    next = old;
  }
}

extern "C" __global__ void some(TASUKI_PARAMETER device::Handle halo, TASUKI_PARAMETER device::Handle other) {
  const auto first = device::blocks(0, 3);
  if (first.has_this_block() && !device::run(halo, first)) return;
  if (device::this_block().block() == 3) device::run(other, device::this_block(), 1);
}

extern "C" __global__ void sum(TASUKI_PARAMETER device::ReducingHandle reduction) {
  if (!device::start(reduction, device::this_grid())) return;
  if (!device::wait(reduction, device::this_grid())) return;
  device::run(reduction, device::this_grid());
}
"""
EXAMPLE = re.search(
    r'KERNEL = r"""\n(.*?)""".*\n    options = \((.*?)\)\n', (ROOT / "examples/heat_kernel.py").read_text(), re.S
)
DOCUMENTED = ("--std=c++20", "-I{tasuki.get_include()}")  # where docs/kernels.md and get_include() name them
PROGRAMS = {
    "calls": (SOURCE, ("relay",), DOCUMENTED),
    "operations": (OPERATIONS, ("heat", "some", "sum"), DOCUMENTED),
    "examples/heat_kernel.py": (
        EXAMPLE[1] if EXAMPLE else "",
        ("heat",),
        re.findall(r'"(.*?)"(?:, |$)', EXAMPLE[2]) if EXAMPLE else (),
    ),
}
ARCHITECTURES = ("90", "80")


def libraries() -> list[ctypes.CDLL]:
    """NVRTC from PyPI, in all versions that are installed, or else that of a CUDA toolkit."""
    places = []
    for package in ("nvidia.cu13", "nvidia.cuda_nvrtc"):
        try:
            spec = importlib.util.find_spec(package)
        except ModuleNotFoundError:
            continue
        places += [Path(place) for place in spec.submodule_search_locations or []] if spec else []
    found = [path for place in places for path in library_in(place)] or library_in(Path("/usr/local/cuda"))
    return [ctypes.CDLL(str(path)) for path in found]


def library_in(place: Path) -> list[Path]:
    return [path for path in sorted(place.glob("lib*/libnvrtc.so.*")) if ".alt." not in path.name][:1]


def version_of(nvrtc: ctypes.CDLL) -> tuple[int, int]:
    major, minor = ctypes.c_int(), ctypes.c_int()
    nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def compile_for(
    nvrtc: ctypes.CDLL, source: str, architecture: str, given: Sequence[str] = DOCUMENTED
) -> tuple[str, str]:
    """What was compiled, empty if nothing, and what the compiler said."""
    program = ctypes.c_void_p()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None) == 0
    include = str(ROOT / "include")
    wanted = [f"--gpu-architecture=compute_{architecture}"]
    wanted += [option.replace("{tasuki.get_include()}", include) for option in given]
    options = (ctypes.c_char_p * len(wanted))(*[option.encode() for option in wanted])
    code = nvrtc.nvrtcCompileProgram(program, len(wanted), options)
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    if code == 0:
        nvrtc.nvrtcGetPTX(program, ptx)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return ptx.value.decode(), log.value.decode()


def check(nvrtc: ctypes.CDLL, name: str, architecture: str) -> str:
    """What is wrong with a program, empty if nothing."""
    source, kernels, options = PROGRAMS[name]
    ptx, log = compile_for(nvrtc, source, architecture, options)
    missing = [kernel for kernel in kernels if f".entry {kernel}(" not in ptx]
    return log + (f"what was compiled has no kernel {', '.join(missing)}\n" if missing else "")


def check_all(nvrtc: ctypes.CDLL) -> int:
    """How much is wrong, after having said what."""
    major, minor = version_of(nvrtc)
    failed = 0
    for architecture in ARCHITECTURES:
        # The code of operations has nothing that older GPUs do otherwise, and takes long.
        for name in PROGRAMS if architecture == ARCHITECTURES[0] else ("calls",):
            wrong = check(nvrtc, name, architecture)
            print(f"NVRTC {major}.{minor}, compute_{architecture}, {name}: {wrong or 'compiled'}")
            failed += wrong != ""
    ptx, log = compile_for(nvrtc, OPERATIONS, ARCHITECTURES[0], ("--std=c++17", *DOCUMENTED[1:]))
    if ptx or "--std=c++20" not in log:
        print("C++17 does not say that C++20 is needed:\n" + log)
        failed += 1
    return failed


def main() -> int:
    found = libraries()
    if not found:
        print("SKIPPED: there is no NVRTC: neither the package nvidia-cuda-nvrtc nor a CUDA toolkit")
        return 0
    return 1 if sum(check_all(nvrtc) for nvrtc in found) else 0


if __name__ == "__main__":
    sys.exit(main())
