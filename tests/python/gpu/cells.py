"""Numbers for the cells of a global array, and what a rank's part of it must look like."""

from __future__ import annotations

import numpy as np


def numbers(shape, dtype="float64"):
    return np.arange(1, np.prod(shape) + 1).reshape(shape).astype(dtype)


def with_shadow(field, whole, fill):
    """A local array: the owned cells of `whole`, and `fill` in the shadow."""
    values = np.full(field.shape, fill, whole.dtype)
    values[field.local_box] = whole[field.box]
    return values


def after_exchange(field, whole):
    """A local array with the neighbours' cells in its shadow; all dimensions are periodic."""
    at = [
        np.arange(s.start - low, s.stop + high) % n for s, (low, high), n in zip(field.box, field.shadow, whole.shape)
    ]
    return whole[np.ix_(*at)]
