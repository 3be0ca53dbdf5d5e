# SPDX-License-Identifier: Apache-2.0
"""Jacobi's method: Hermitian eigenvalues (two-sided) and singular values (one-sided, of the columns).

The columns are kept in two halves; column i of the first half is rotated with column i of the second half, all pairs at once.
A round-robin schedule, in which the first column stays, then moves the columns: after n - 1 rounds each pair has been rotated
once, and each column is at its first position again.
"""
import jax.numpy as jnp
from jax import lax

from . import reflectors

_SWEEPS = 30
_SWEEPS_ANYWAY = 15


def _rotation(p, q, mixed, small):
    """Returns the rotation (s, tangent of half the angle, phase) that makes `mixed` zero between the diagonal entries p and q; no rotation if it is small."""
    r = jnp.abs(mixed)
    info = jnp.finfo(r.dtype)
    # For numbers close to the smallest ones the phase is inaccurate.
    nothing = ~(r > jnp.maximum(small, info.tiny / info.eps))
    r = jnp.where(nothing, 1, r)
    phase = jnp.where(nothing, 1, mixed / r)
    tau = (q - p) / (2 * r)
    t = jnp.where(tau >= 0, 1, -1) / (jnp.abs(tau) + jnp.hypot(tau, jnp.ones_like(tau)))
    t = jnp.where(nothing, 0, t).astype(p.dtype)
    length = jnp.sqrt(1 + t * t)
    return (t / length).astype(mixed.dtype), (t / (1 + length)).astype(mixed.dtype), phase


def _round(x, axis, s, half_tan, phase):
    """Rotates the columns of x (for axis 0 its rows, by the adjoint) and moves them to their positions in the next round."""
    # The cosine is written as 1 - s * half_tan: a cosine that is rounded to 1 or its neighbour would change the lengths
    # of the columns slightly in each round, always in the same direction.
    if axis == 0:
        s, half_tan, phase = s[:, None], half_tan[:, None], phase.conj()[:, None]
    half = x.shape[axis] // 2
    left, right = (lax.slice_in_dim(x, k, k + half, axis=axis) for k in (0, half))
    left, right = left - s * (phase.conj() * right + half_tan * left), right + s * (phase * left - half_tan * right)
    if half < 2:
        return jnp.concatenate([left, right], axis=axis)
    part = lambda x, start, limit: lax.slice_in_dim(x, start, limit, axis=axis)
    middle = (part(left, 1, half - 1),) if half > 2 else ()
    return jnp.concatenate(
        [part(left, 0, 1), part(right, 0, 1), *middle, part(right, 1, half), part(left, half - 1, half)], axis=axis)


def _even(n):
    return n + n % 2


def _square(a):
    return jnp.sum((a * a.conj()).real)


def _product(a, b):
    return jnp.matmul(a, b, precision=lax.Precision.HIGHEST)


def _sweep(a):
    """Returns (w^H a w, w), where w is the product of rotations that have made each off-diagonal entry zero once."""
    size = a.shape[0]
    half = size // 2
    small = jnp.finfo(a.dtype).eps ** 2

    def round_(_, state):
        a, w = state
        diagonal = jnp.diag(a).real
        rotation = _rotation(diagonal[:half], diagonal[half:], jnp.diag(a[:half, half:]), small)
        return _round(_round(a, 1, *rotation), 0, *rotation), _round(w, 1, *rotation)

    return lax.fori_loop(0, size - 1, round_, (a, jnp.eye(size, dtype=a.dtype)))


def _correction(a):
    """Returns x such that I + x, to first order, makes all entries zero that are small compared to the distance of their eigenvalues.

    Rotations make them zero one after the other, but rotations between nearly equal eigenvalues may have any angle, and make other
    entries nonzero again. Distances of the size of rounding errors are ignored.
    """
    values = jnp.diag(a).real
    apart = values[None, :] - values[:, None]
    least = jnp.max(jnp.abs(values)) * float(jnp.finfo(a.dtype).eps) ** 0.5
    simple = (jnp.abs(a) * (32 * a.shape[0]) < jnp.abs(apart)) & (jnp.abs(apart) > least)
    return jnp.where(simple, a / jnp.where(simple, apart, 1), 0)


def eigh(a):
    """Returns (ascending eigenvalues, eigenvectors) of a Hermitian matrix; NaN if an entry is not finite."""
    n = a.shape[0]
    if n < 2:
        finite = jnp.isfinite(a)
        return jnp.where(jnp.diag(finite), jnp.diag(a).real, jnp.nan), jnp.where(finite, jnp.ones_like(a), jnp.nan)
    size = _even(n)
    scale = reflectors.largest(a)
    finite = jnp.isfinite(scale)
    a = jnp.pad(a / scale, (0, size - n))
    eye = jnp.eye(size, dtype=a.dtype)
    # The size of the off-diagonal entries that rounding errors leave.
    noise = _square(a) * (float(jnp.finfo(a.dtype).eps) ** 2 * size / 8)

    def off(a):
        return _square(jnp.where(eye == 0, a, 0))

    def unfinished(state):
        sweep, before, now, _, _ = state
        return (now > noise) & (sweep < _SWEEPS) & ((sweep < _SWEEPS_ANYWAY) | (now < before / 4))

    def sweep_(state):
        # To avoid the accumulation of errors, the vectors are made orthogonal again after each sweep, and the next
        # sweep begins with the original matrix transformed by them.
        sweep, _, now, b, v = state
        b, w = _sweep(b)
        v = _product(v, w)
        v = v + _product(v, _correction(b))
        v = v + _product(v, eye - _product(v.conj().T, v)) / 2
        b = _product(v.conj().T, _product(a, v))
        b = (b + b.conj().T) / 2
        return sweep + 1, now, off(b), b, v

    start = off(a)
    *_, b, v = lax.while_loop(unfinished, sweep_, (jnp.int32(0), start, start, a, eye))
    values, v = jnp.diag(b).real[:n] * scale, v[:n, :n]
    by_size = jnp.argsort(values)
    return jnp.where(finite, values[by_size], jnp.nan), jnp.where(finite, v[:, by_size], jnp.nan)


def _orthogonal_columns(a, with_v):
    """Returns (a v, v) such that a v has orthogonal columns, the longest first."""
    m, n = a.shape
    size = _even(n)
    half = size // 2
    tolerance = jnp.finfo(a.dtype).eps * max(m, 1) ** 0.5
    w = jnp.pad(a, ((0, 0), (0, size - n)))
    v = jnp.eye(size if with_v else 0, size, dtype=a.dtype)

    def round_(_, state):
        worst, w, v = state
        length = jnp.sum((w * w.conj()).real, axis=0)
        p, q = length[:half], length[half:]
        mixed = jnp.sum(w[:, :half].conj() * w[:, half:], axis=0)
        bound = jnp.sqrt(p) * jnp.sqrt(q)
        rotation = _rotation(p, q, mixed, bound * tolerance)
        worst = jnp.maximum(worst, jnp.max(jnp.where(bound > 0, jnp.abs(mixed) / jnp.where(bound > 0, bound, 1), 0)))
        return worst, _round(w, 1, *rotation), _round(v, 1, *rotation)

    def unfinished(state):
        sweep, worst, _, _ = state
        return (sweep < _SWEEPS) & (worst > tolerance)

    def sweep_(state):
        sweep, _, w, v = state
        worst = jnp.zeros((), jnp.finfo(a.dtype).dtype)
        worst, w, v = lax.fori_loop(0, size - 1, round_, (worst, w, v))
        return sweep + 1, worst, w, v

    start = jnp.ones((), jnp.finfo(a.dtype).dtype)
    _, _, w, v = lax.while_loop(unfinished, sweep_, (jnp.int32(0), start, w, v))
    w, v = w[:, :n], v[:n, :n]
    by_length = jnp.argsort(-jnp.sum((w * w.conj()).real, axis=0))
    return w[:, by_length], v[:, by_length]


def svd(a, *, full_matrices, compute_uv):
    """Returns the singular value decomposition: (s,) or (s, u, vh)."""
    m, n = a.shape
    if not min(m, n):
        s = jnp.zeros((0,), jnp.finfo(a.dtype).dtype)
        side = lambda size: jnp.eye(size, size if full_matrices else 0, dtype=a.dtype)
        return (s, side(m), side(n).T) if compute_uv else (s,)
    if m < n:
        s, *vectors = svd(a.conj().T, full_matrices=full_matrices, compute_uv=compute_uv)
        return (s, vectors[1].conj().T, vectors[0].conj().T) if compute_uv else (s,)
    scale = reflectors.largest(a)
    w, v = _orthogonal_columns(a / scale, compute_uv)
    s = jnp.sqrt(jnp.sum((w * w.conj()).real, axis=0)) * scale
    if not compute_uv:
        return (s,)
    # The columns are orthogonal, so their QR factorization has a diagonal R, and a Q that is unitary even if columns
    # are zero.
    packed, taus = reflectors.geqrf(w)
    u = reflectors.product(jnp.pad(packed, ((0, 0), (0, m - n))) if full_matrices else packed, taus)
    diagonal = jnp.diag(packed)
    sign = jnp.where(diagonal.real < 0, -1, 1).astype(a.dtype)
    return s, u * jnp.pad(sign, (0, u.shape[1] - n), constant_values=1), v.conj().T
