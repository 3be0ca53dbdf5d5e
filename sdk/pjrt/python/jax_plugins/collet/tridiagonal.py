# SPDX-License-Identifier: Apache-2.0
"""Solves tridiagonal systems by elimination with row exchanges, because of which U has a second upper diagonal."""
import jax.numpy as jnp
from jax import lax


def _size(x):
    return jnp.abs(x.real) + jnp.abs(x.imag) if jnp.iscomplexobj(x) else jnp.abs(x)


def _apart(pivots, largest):
    """Returns the pivots; those that are negligible compared to the largest entry of U are moved away from zero."""
    info = jnp.finfo(pivots.dtype)
    least = jnp.maximum(info.eps * largest, info.tiny / info.eps)
    tiny = _size(pivots) < least
    return jnp.where(tiny, jnp.where(pivots.real < 0, -least, least).astype(pivots.dtype), pivots)


def solve(dl, d, du, b, *, perturb_singular):
    """Returns x with A x = b; dl[0] and du[-1] are not read."""
    n = d.shape[0]
    if not n:
        return b
    zero = jnp.zeros((1,), d.dtype)
    below, above = jnp.concatenate([dl[1:], zero]), jnp.concatenate([du[:-1], zero])

    def eliminate(row, following):
        # `row`: the remainder of row i, in columns i and i + 1, and its right-hand side.
        pivot, right, rhs = row
        low, diagonal, high, next_rhs = following
        swap = _size(low) > _size(pivot)
        first = jnp.where(swap, low, pivot), jnp.where(swap, diagonal, right), jnp.where(swap, high, 0)
        first_rhs = jnp.where(swap, next_rhs, rhs)
        second = jnp.where(swap, pivot, low), jnp.where(swap, right, diagonal), jnp.where(swap, 0, high)
        second_rhs = jnp.where(swap, rhs, next_rhs)
        # If the entry to eliminate is zero, no division is needed, and the divisor may be zero.
        factor = jnp.where(second[0] == 0, 0, second[0] / jnp.where(second[0] == 0, 1, first[0]))
        rest = second[1] - factor * first[1], second[2] - factor * first[2], second_rhs - factor * first_rhs
        return rest, (*first, first_rhs)

    start = d[0], above[0], b[0]
    last, upper = lax.scan(eliminate, start, (below[:-1], d[1:], above[1:], b[1:]))
    pivots, firsts, seconds, rhs = (
        jnp.concatenate([rows, end[None]]) for rows, end in zip(upper, (last[0], last[1], jnp.zeros_like(d[0]), last[2])))
    if perturb_singular:
        largest = jnp.maximum(jnp.max(_size(pivots)), jnp.maximum(jnp.max(_size(firsts)), jnp.max(_size(seconds))))
        pivots = _apart(pivots, largest)

    def substitute(known, row):
        pivot, first, second, right = row
        x = (right - first * known[0] - second * known[1]) / pivot
        return (x, known[0]), x

    none = jnp.zeros_like(b[0])
    return lax.scan(substitute, (none, none), (pivots, firsts, seconds, rhs), reverse=True)[1]
