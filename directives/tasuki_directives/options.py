"""What a translation is asked for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Options:
    """`openmp`: loops of OpenACC become OpenMP's. `overlap`: a reflect and the loop after it are overlapped where
    possible. `explain`: what became of directives is printed. `device`: where OpenACC's nests run: host (loops as they
    stand), gpu, or emulated (kernels as loops of the host). `check`: the program compares each index of a distributed
    dimension with what the node has. `simd`: innermost loops may run as vectors, which sum in another order. `graphs`:
    loops of the host that only give work to the GPU are recorded and launched as a whole."""

    openmp: bool = False
    overlap: bool = True
    explain: bool = False
    device: str = "host"
    check: bool = False
    simd: bool = True
    graphs: bool = True

    @property
    def kernels(self) -> bool:
        return self.device != "host"
