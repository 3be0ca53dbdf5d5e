# SPDX-License-Identifier: Apache-2.0
"""Jacobi's method: Hermitian eigenvalues (two-sided) and singular values (one-sided, of the columns).

The columns stand in two halves; column i of the first is rotated with column i of the second, all pairs at once, and
a round robin moves them on: after n - 1 rounds each pair has met once and each column is back in its place.
"""
import jax.numpy as jnp
from jax import lax

from . import reflectors

_SWEEPS = 30


def _round_robin(n):
    half = n // 2
    top, bottom = list(range(half)), list(range(half, n))
    return jnp.array([top[0], bottom[0], *top[1:-1], *bottom[1:], top[-1]] if half > 1 else top + bottom, jnp.int32)


def _rotation(p, q, mixed, small):
    """(c, s, phase): the rotation that makes `mixed` zero between diagonal entries p and q; none where it is small."""
    r = jnp.abs(mixed)
    nothing = ~(r > small)
    r = jnp.where(nothing, 1, r)
    phase = jnp.where(nothing, 1, mixed / r)
    tau = (q - p) / (2 * r)
    t = jnp.where(tau >= 0, 1, -1) / (jnp.abs(tau) + jnp.hypot(tau, jnp.ones_like(tau)))
    t = jnp.where(nothing, 0, t).astype(p.dtype)
    c = 1 / jnp.sqrt(1 + t * t)
    return c.astype(mixed.dtype), (t * c).astype(mixed.dtype), phase


def _rotate_columns(a, c, s, phase):
    half = a.shape[1] // 2
    left, right = a[:, :half], a[:, half:]
    return jnp.concatenate([c * left - s * phase.conj() * right, s * phase * left + c * right], axis=1)


def _even(n):
    return n + n % 2


def eigh(a):
    """(values ascending, vectors) of a Hermitian matrix."""
    n = a.shape[0]
    if n < 2:
        return jnp.diag(a).real, jnp.ones_like(a)
    size = _even(n)
    scale = reflectors.largest(a)
    a = jnp.pad(a / scale, (0, size - n))
    half = size // 2
    order = _round_robin(size)
    eps = jnp.finfo(a.dtype).eps
    small = jnp.asarray(eps, scale.dtype) ** 2

    def round_(_, state):
        a, v = state
        diagonal = jnp.diag(a).real
        rotation = _rotation(diagonal[:half], diagonal[half:], jnp.diag(a[:half, half:]), small)
        a = _rotate_columns(a, *rotation)
        a = _rotate_columns(a.conj().T, *rotation).conj().T
        v = _rotate_columns(v, *rotation)
        return a[order][:, order], v[:, order]

    def off(a):
        b = a - jnp.diag(jnp.diag(a))
        return jnp.sum((b * b.conj()).real)

    total = jnp.sum((a * a.conj()).real)

    def unfinished(state):
        sweep, before, now, _, _ = state
        return (sweep < _SWEEPS) & (now > total * small * 1e-4) & ((sweep < 6) | (now < before / 4))

    def sweep_(state):
        sweep, _, now, a, v = state
        a, v = lax.fori_loop(0, size - 1, round_, (a, v))
        return sweep + 1, now, off(a), a, v

    start = off(a)
    *_, a, v = lax.while_loop(unfinished, sweep_, (jnp.int32(0), start, start, a, jnp.eye(size, dtype=a.dtype)))
    values, v = jnp.diag(a).real[:n] * scale, v[:n, :n]
    by_size = jnp.argsort(values)
    return values[by_size], v[:, by_size]


def _orthogonal_columns(a, with_v):
    """(a v, v) with orthogonal columns, longest first."""
    m, n = a.shape
    size = _even(n)
    half = size // 2
    order = _round_robin(size)
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
        return worst, _rotate_columns(w, *rotation)[:, order], _rotate_columns(v, *rotation)[:, order]

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
    """(s,) or (s, u, vh)."""
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
    # The columns are orthogonal: their QR has a diagonal R, and a Q that is unitary even where columns are zero.
    packed, taus = reflectors.geqrf(w)
    u = reflectors.product(jnp.pad(packed, ((0, 0), (0, m - n))) if full_matrices else packed, taus)
    diagonal = jnp.diag(packed)
    sign = jnp.where(diagonal.real < 0, -1, 1).astype(a.dtype)
    return s, u * jnp.pad(sign, (0, u.shape[1] - n), constant_values=1), v.conj().T
