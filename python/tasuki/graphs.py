"""Exchanges whose entries are found out: from global numbers of cells, or from the rows of a sparse matrix.

`Exchange.of_numbers` and `Exchange.of_matrix` are these functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from . import _core
from ._core import Error

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ._core import Context, Exchange


def of_numbers(context: Context, fields: Any, owned: ArrayLike, ghosts: ArrayLike, **options: Any) -> Exchange:
    """An exchange of cells that have numbers which are the same on all ranks. Collective.

    owned: the numbers of the cells 0, 1, ... of each field. ghosts: those of the cells that follow them, in any order.
    fields, options: as for `Exchange`; entries: those of `find_entries`.
    """
    return _core.Exchange(context, fields, _core.find_entries(context, owned, ghosts), **options)


class RowPart(NamedTuple):
    """This rank's rows of a matrix, for products with a vector that is spread over the ranks as the rows are."""

    exchange: Exchange  # fills the end of `vector` from the ranks that own its elements
    matrix: Any  # the rows as a scipy.sparse.csr_array, with the columns renumbered to the elements of `vector`
    vector: Any  # a NumPy array: the elements of this rank's rows, then those that its rows need of other ranks


def of_matrix(context: Context, rows: Any, **options: Any) -> RowPart:
    """What a rank needs for products of a sparse square matrix and a vector. Collective.

    rows: this rank's rows, anything that scipy.sparse.csr_array takes, with all columns of the matrix; ranks have the
    rows one after the other, in rank order. options: as for `Exchange`.

    `part.vector[: rows.shape[0]] = x`, `part.exchange.run()`, `y = part.matrix @ part.vector`.
    """
    import numpy as np
    import scipy.sparse

    local = scipy.sparse.csr_array(rows)
    shapes = np.empty((context.size, 2), np.int64)
    _core.Allgather(context, np.array(local.shape, np.int64), shapes).run()
    ends = np.cumsum(shapes[:, 0])
    for rank, columns in enumerate(shapes[:, 1]):  # the same on all ranks
        if columns != ends[-1]:
            raise Error(
                f"Exchange.of_matrix: rank {rank}: argument 'rows' has {columns} columns, but the ranks have "
                f"{ends[-1]} rows together; the matrix must be square, and every rank gives whole rows"
            )
    count = local.shape[0]
    first = int(ends[context.rank]) - count
    columns = local.indices.astype(np.int64)
    here = (columns >= first) & (columns < first + count)
    ghosts = np.unique(columns[~here])
    numbers = np.where(here, columns - first, count + np.searchsorted(ghosts, columns))
    vector = _core.shared_array(context, (count + len(ghosts),), local.dtype)
    exchange = of_numbers(context, vector, np.arange(first, first + count), ghosts, **options)
    matrix = scipy.sparse.csr_array((local.data, numbers, local.indptr), shape=(count, count + len(ghosts)))
    return RowPart(exchange, matrix, vector)
