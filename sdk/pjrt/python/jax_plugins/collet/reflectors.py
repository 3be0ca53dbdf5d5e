# SPDX-License-Identifier: Apache-2.0
"""Householder reflectors: QR, its product, QR with pivoting, Hessenberg and tridiagonal form; LAPACK's conventions.

A reflector is H = I - tau v v^H with v[i] = 1 and H^H x = beta e_i, beta real.
"""
import jax.numpy as jnp
from jax import lax


def hermitian(a, lower):
    """Returns the Hermitian matrix of which `a` holds one triangle."""
    strict = jnp.tril(a, -1) if lower else jnp.triu(a, 1)
    return strict + strict.conj().T + jnp.diag(jnp.diag(a).real).astype(a.dtype)


def largest(a):
    """Returns a power of two close to the absolute value of the largest entry, or 1: entries are divided by it before they are squared, to avoid overflow."""
    size = jnp.max(jnp.abs(a))
    info = jnp.finfo(size.dtype)
    power = lax.reduce_precision(jnp.minimum(size, info.max / 2), exponent_bits=info.nexp, mantissa_bits=0)
    return jnp.where(jnp.isfinite(size), jnp.where(size > 0, jnp.maximum(power, info.tiny), 1), size)


def reflector(x, i):
    """Returns the reflector (v, tau, beta) for the entries of the vector x from i on; v is zero before i."""
    rows = lax.iota(jnp.int32, x.shape[0])
    scale = largest(jnp.where(rows >= i, x, 0))
    x = jnp.where(rows >= i, x / scale, 0)
    alpha = jnp.sum(jnp.where(rows == i, x, 0))
    tail = jnp.where(rows > i, x, 0)
    square = jnp.sum((tail * tail.conj()).real)
    nothing = (square == 0) & (alpha.imag == 0)
    length = jnp.sqrt(square + (alpha * alpha.conj()).real)
    beta = jnp.where(alpha.real > 0, -length, length)
    beta_or_one = jnp.where(nothing, 1, beta)
    tau = jnp.where(nothing, 0, (beta_or_one - alpha) / beta_or_one)
    v = tail / jnp.where(nothing, 1, alpha - beta) + (rows == i)
    return v, tau.astype(x.dtype), jnp.where(nothing, alpha.real, beta) * scale


def apply_left(a, v, tau):
    """Returns H^H a."""
    return a - jnp.conj(tau) * v[:, None] * jnp.sum(v.conj()[:, None] * a, axis=0)[None, :]


def apply_right(a, v, tau):
    """Returns a H."""
    return a - tau * jnp.sum(a * v[None, :], axis=1)[:, None] * v.conj()[None, :]


def _factor_column(a, i, first):
    """Eliminates column i below row `first`; the reflector's vector is stored in place of the zeros."""
    rows = lax.iota(jnp.int32, a.shape[0])
    columns = lax.iota(jnp.int32, a.shape[1])
    column = lax.dynamic_index_in_dim(a, i, 1, keepdims=False)
    v, tau, beta = reflector(column, first)
    packed = jnp.where(rows > first, v, jnp.where(rows == first, beta.astype(a.dtype), column))
    a = jnp.where(columns[None, :] > i, apply_left(a, v, tau), a)
    return jnp.where(columns[None, :] == i, packed[:, None], a), v, tau


def geqrf(a):
    """QR factorization; returns (packed, taus)."""
    k = min(a.shape)
    if not k:
        return a, jnp.zeros((0,), a.dtype)

    def step(i, state):
        a, taus = state
        a, _, tau = _factor_column(a, i, i)
        return a, taus.at[i].set(tau)

    return lax.fori_loop(0, k, step, (a, jnp.zeros((k,), a.dtype)))


def geqp3(a, jpvt):
    """QR factorization with pivoting; returns (packed, pivots, taus). Columns with jpvt other than 0 come first and are not moved; pivots count from 1."""
    m, n = a.shape
    k = min(m, n)
    order = jnp.argsort(jpvt == 0, stable=True).astype(jpvt.dtype)
    fixed = jnp.sum(jpvt != 0).astype(jnp.int32)
    if not k:
        return a[:, order], order + 1, jnp.zeros((0,), a.dtype)
    rows, columns = lax.iota(jnp.int32, m), lax.iota(jnp.int32, n)

    def step(i, state):
        a, order, taus = state
        rest = jnp.where((rows[:, None] >= i) & (columns >= i), a, 0)
        rest = rest / largest(rest)
        weight = jnp.where(columns >= i, jnp.sum((rest * rest.conj()).real, axis=0), -1)
        best = jnp.where(i < fixed, i, jnp.argmax(weight).astype(jnp.int32))
        swap = jnp.where(columns == i, best, jnp.where(columns == best, i, columns))
        a, _, tau = _factor_column(a[:, swap], i, i)
        return a, order[swap], taus.at[i].set(tau)

    a, order, taus = lax.fori_loop(0, k, step, (a[:, order], order, jnp.zeros((k,), a.dtype)))
    return a, order + 1, taus


def product(a, taus):
    """Returns the first columns of the product H_0 H_1 ... of the reflectors packed in a."""
    m, n = a.shape
    rows = lax.iota(jnp.int32, m)
    count = taus.shape[0]

    def step(j, q):
        i = count - 1 - j
        column = lax.dynamic_index_in_dim(a, i, 1, keepdims=False)
        v = jnp.where(rows > i, column, 0) + (rows == i).astype(a.dtype)
        return apply_left(q, v, jnp.conj(taus[i]))

    q = jnp.eye(m, n, dtype=a.dtype)
    return lax.fori_loop(0, count, step, q) if count else q


def hessenberg(a):
    """Reduction to Hessenberg form; returns (packed, taus)."""
    n = a.shape[0]

    def step(i, state):
        a, taus = state
        a, v, tau = _factor_column(a, i, i + 1)
        columns = lax.iota(jnp.int32, n)
        a = jnp.where(columns[None, :] > i, apply_right(a, v, tau), a)
        return a, taus.at[i].set(tau)

    if n < 2:
        return a, jnp.zeros((max(n - 1, 0),), a.dtype)
    return lax.fori_loop(0, n - 1, step, (a, jnp.zeros((n - 1,), a.dtype)))


def tridiagonal(a, *, lower):
    """Reduces a Hermitian matrix, of which one triangle is given, to tridiagonal form; returns (packed, diagonal, off-diagonal, taus)."""
    full = hermitian(a, lower)
    packed, taus = hessenberg(full if lower else full[::-1, ::-1])
    diagonal, off = jnp.diag(packed).real, jnp.diag(packed, -1).real
    if lower:
        return jnp.tril(packed) + jnp.triu(a, 1), diagonal, off, taus
    return jnp.triu(packed[::-1, ::-1]) + jnp.tril(a, -1), diagonal[::-1], off[::-1], taus[::-1]
