"""What a translation is asked for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Options:
    """`openmp`: loops of OpenACC become OpenMP's. `overlap`: a reflect and the loop after it are overlapped where
    possible. `explain`: what became of directives is printed."""

    openmp: bool = False
    overlap: bool = True
    explain: bool = False
