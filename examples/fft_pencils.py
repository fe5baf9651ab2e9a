"""A Fourier transform in three dimensions of an array that is spread over the ranks in pencils, there and back.

tasuki run -n 4 examples/fft_pencils.py
"""

import numpy as np

import tasuki

try:
    from scipy import fft  # faster, and keeps single precision
except ImportError:
    from numpy import fft

SHAPE = (20, 18, 15)  # x, y, z: not multiples of the ranks


def main():
    context = tasuki.Context()
    p = next(p for p in range(int(context.size**0.5), 0, -1) if context.size % p == 0)
    q = context.size // p
    # Each time the dimension that is transformed is whole and last, so that lines are contiguous.
    nx, ny, nz = SHAPE
    along_z = tasuki.ArrayDistribution((nx, ny, nz), (p, q, 1))
    along_y = tasuki.ArrayDistribution((nx, nz, ny), (p, q, 1))
    along_x = tasuki.ArrayDistribution((ny, nz, nx), (p, q, 1))
    a, b, c = (
        tasuki.shared_array(context, one.local_shape(context.rank), "complex128") for one in (along_z, along_y, along_x)
    )
    there = [
        tasuki.Redistribute(context, (a, along_z), (b, along_y), axes=(0, 2, 1)),
        tasuki.Redistribute(context, (b, along_y), (c, along_x), axes=(2, 1, 0)),
    ]
    back = [
        tasuki.Redistribute(context, (c, along_x), (b, along_y), axes=(2, 1, 0)),
        tasuki.Redistribute(context, (b, along_y), (a, along_z), axes=(0, 2, 1)),
    ]
    # For the check: the transform on one rank, as x, y, z.
    one = tasuki.ArrayDistribution(SHAPE, (1, 1, 1), ranks=[0])
    result = np.zeros(SHAPE, "complex128") if context.rank == 0 else None
    gather = tasuki.Redistribute(context, (c, along_x), (result, one), axes=(2, 0, 1))

    rng = np.random.default_rng(1)  # a program of its own would have its own part only
    for _ in range(3):
        whole = rng.standard_normal(SHAPE) + 1j * rng.standard_normal(SHAPE)
        a[...] = own = whole[np.ix_(*along_z.indices(context.rank))]
        a[...] = fft.fft(a)
        there[0].run()
        b[...] = fft.fft(b)
        there[1].run()
        c[...] = fft.fft(c)
        gather.run()
        if result is not None:
            assert np.allclose(result, np.fft.fftn(whole))
        c[...] = fft.ifft(c)
        back[0].run()
        b[...] = fft.ifft(b)
        back[1].run()
        a[...] = fft.ifft(a)
        assert np.allclose(a, own)
    if context.rank == 0:
        print(f"transforms on {p} x {q} ranks: equal to numpy.fft.fftn, and back again")


main()
