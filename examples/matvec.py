"""Products of a sparse matrix and a vector, both spread over the ranks by rows: the power method, with SciPy.

tasuki run -n 3 examples/matvec.py
"""

import numpy as np
import scipy.sparse

import tasuki

ROWS, STEPS = 500, 20


def whole_matrix():
    """Small whole numbers, so that sums are exact in any order."""
    rng = np.random.default_rng(5)
    matrix = scipy.sparse.random_array((ROWS, ROWS), density=0.01, rng=rng, format="csr")
    matrix.data[:] = rng.integers(1, 4, matrix.nnz)
    return matrix


def main():
    context = tasuki.Context()
    matrix = whole_matrix()  # a program of its own would make its own rows only
    first, last = ROWS * context.rank // context.size, ROWS * (context.rank + 1) // context.size
    part = tasuki.Exchange.of_matrix(context, matrix[first:last])
    count = last - first
    whole = np.arange(ROWS) % 7 + 1.0
    part.vector[:count] = whole[first:last]
    same = True
    for _ in range(STEPS):
        part.exchange.run()
        product = (part.matrix @ part.vector) % 1000
        whole = (matrix @ whole) % 1000
        same = same and np.array_equal(product, whole[first:last])
        part.vector[:count] = product
    result = np.array([int(same)])
    tasuki.Allreduce(context, tasuki.in_place, result, op="min").run()
    if context.rank == 0:
        print(f"{STEPS} products on {context.size} ranks: {'' if result[0] else 'NOT '}equal to the serial product")


main()
