# SPDX-License-Identifier: Apache-2.0
"""The QR algorithm: computes the Schur form (with one shift for complex matrices, double shifts for real ones), and the eigenvectors of general matrices."""
import jax.numpy as jnp
from jax import lax

from . import reflectors

_STEPS_PER_VALUE = 30


def _entry(h, i, j):
    return lax.dynamic_slice(h, (i, j), (1, 1))[0, 0]


def _reflect(h, z, x, k):
    """Applies to rows and columns k, k+1, k+2 the reflector that maps x to its first direction."""
    v, tau, _ = reflectors.reflector(x, 0)
    rows = lax.dynamic_slice_in_dim(h, k, 3, 0)
    h = lax.dynamic_update_slice_in_dim(h, reflectors.apply_left(rows, v, tau), k, 0)
    columns = lax.dynamic_slice_in_dim(h, k, 3, 1)
    h = lax.dynamic_update_slice_in_dim(h, reflectors.apply_right(columns, v, tau), k, 1)
    columns = lax.dynamic_slice_in_dim(z, k, 3, 1)
    return h, lax.dynamic_update_slice_in_dim(z, reflectors.apply_right(columns, v, tau), k, 1)


def _first_column(h, low, high, tries):
    """Returns a multiple of the first column of the shifted matrix (complex) or of the product of both shifted matrices (real)."""
    a, b, c, d = (_entry(h, high - i, high - j) for i, j in ((1, 1), (1, 0), (0, 1), (0, 0)))
    entries = [a, b, c, d, _entry(h, low, low), _entry(h, low + 1, low)]
    if not jnp.iscomplexobj(h):
        entries += [_entry(h, i, j) for i, j in ((low, low + 1), (low + 1, low + 1), (low + 2, low + 1), (high - 1, high - 2))]
    # The products underflow in a block of tiny entries, which matrices of low rank have, unless the entries are scaled first.
    entries = jnp.stack(entries)
    a, b, c, d, h00, h10, *others = entries / reflectors.largest(entries)
    odd = (tries % 10) == 9
    if jnp.iscomplexobj(h):
        half, root = (a - d) / 2, jnp.sqrt(((a - d) / 2) ** 2 + b * c)
        root = jnp.where((half * root.conj()).real < 0, -root, root)
        below = half + root
        shift = d - jnp.where(below == 0, 0, b * c / jnp.where(below == 0, 1, below))
        shift = jnp.where(odd, d + jnp.abs(c), shift)
        return jnp.stack([h00 - shift, h10, jnp.zeros_like(h10)])
    h01, h11, h21, before = others
    trace, determinant = a + d, a * d - b * c
    other = jnp.abs(c) + jnp.abs(before)
    trace = jnp.where(odd, 1.5 * other + 2 * d, trace)
    determinant = jnp.where(odd, (d + 0.75 * other) ** 2 + 0.4375 * other * other, determinant)
    return jnp.stack([h00 * h00 + h01 * h10 - trace * h00 + determinant, h10 * (h00 + h11 - trace), h10 * h21])


def _chase(h, z, low, high, tries):
    """One QR step on the rows low to high."""
    is_complex = jnp.iscomplexobj(h)

    def step(k, state):
        h, z = state
        before = jnp.maximum(k - 1, 0)
        inner = jnp.stack([_entry(h, k + i, before) for i in range(3)])
        x = jnp.where(k == low, first, inner)
        last = (k + 2 > high) if not is_complex else True
        x = jnp.where(jnp.array([False, False, True]) & last, 0, x)
        h, z = _reflect(h, z, x, k)
        # Two entries below the subdiagonal become 0; what lies below row `high` is 0 already. The first reflector has no column before it,
        # for which the padding's last column stands. A mask of the whole matrix would make the cost of all steps n^4.
        gone = jnp.where(k > low, k - 1, h.shape[0] - 1)
        return lax.dynamic_update_slice(h, jnp.zeros((2, 1), h.dtype), (k + 1, gone)), z

    first = _first_column(h, low, high, tries)
    return lax.fori_loop(low, high, step, (h, z))


def _standard_block(h, z, i):
    """Rotates the real 2x2 block at i into standard form: triangular for real eigenvalues, else with equal diagonal entries."""
    a, b, c, d = (_entry(h, i + j, i + k) for j, k in ((0, 0), (0, 1), (1, 0), (1, 1)))
    p = (a - d) / 2
    disc = p * p + b * c
    real = disc >= 0
    root = p + jnp.where(p < 0, -1, 1) * jnp.sqrt(jnp.where(real, disc, 0))
    length = jnp.hypot(c, root)
    sigma = b + c
    span = jnp.hypot(sigma, a - d)
    # Without a span the block is in standard form, and the angle is 0.
    ratio = jnp.where(span > 0, jnp.abs(sigma) / jnp.where(span > 0, span, 1), 1)
    span = jnp.where(span > 0, span, 1)
    cosine = jnp.sqrt((1 + ratio) / 2)
    sine = -(p / (span * cosine)) * jnp.where(sigma < 0, -1, 1)
    length = jnp.where(length > 0, length, 1)
    cosine, sine = jnp.where(real, root / length, cosine), jnp.where(real, c / length, sine)
    turn = jnp.stack([jnp.stack([cosine, -sine]), jnp.stack([sine, cosine])])

    def columns(x):
        part = lax.dynamic_slice_in_dim(x, i, 2, 1)
        return lax.dynamic_update_slice_in_dim(x, jnp.sum(part[:, :, None] * turn[None], axis=1), i, 1)

    h, z = columns(columns(h).T).T, columns(z)
    corner = jnp.where(real, 0, _entry(h, i + 1, i))
    return lax.dynamic_update_slice(h, corner[None, None], (i + 1, i)), z


def _scale(a):
    """Returns a factor to divide by if products of a few entries would overflow or underflow; else 1, which causes no rounding."""
    size = reflectors.largest(a)
    return jnp.where((size > 1e8) | (size < 1e-8), size, 1)


def schur(a):
    """Returns (t, z) with a = z t z^H; t is upper triangular, for real matrices with 2x2 blocks for complex eigenvalues."""
    n = a.shape[0]
    if n < 2:
        return a, jnp.ones_like(a)
    scale = _scale(a)
    packed, taus = reflectors.hessenberg(a / scale)
    q = jnp.pad(reflectors.product(packed[1:, : n - 1], taus), (1, 0)).at[0, 0].set(1)
    # Adds two rows and columns of zeros, because a reflector of three rows may extend beyond the edge.
    h, z = jnp.pad(jnp.triu(packed, -1), (0, 2)), jnp.pad(q, (0, 2))
    size = n + 2
    info = jnp.finfo(a.dtype)
    # What is below `least` is nothing beside the scaled matrix, and a rotation of such entries has few digits.
    eps, least = info.eps, info.tiny * (n / info.eps)
    rows = lax.iota(jnp.int32, size)
    norm = jnp.max(jnp.abs(h))

    def step(state):
        h, z, high, tries, steps = state
        diagonal = jnp.abs(jnp.diag(h))
        near = diagonal + jnp.roll(diagonal, 1)
        near = jnp.where(near > 0, near, norm)
        below = jnp.pad(jnp.diag(h, -1), (1, 0))
        zero = (jnp.abs(below) <= jnp.maximum(eps * near, least)) | (rows == 0)
        h = jnp.where(zero[:, None] & (rows[:, None] == rows[None, :] + 1), 0, h)
        low = jnp.max(jnp.where(zero & (rows <= high), rows, 0))
        cases = [lambda h, z: (h, z)]
        if not jnp.iscomplexobj(a):
            cases.append(lambda h, z: _standard_block(h, z, low))
        cases.append(lambda h, z: _chase(h, z, low, high, tries))
        case = jnp.minimum(high - low, len(cases) - 1)
        h, z = lax.switch(case, cases, h, z)
        done = case < len(cases) - 1
        return (h, z, jnp.where(done, low - 1, high).astype(jnp.int32), jnp.where(done, 0, tries + 1), steps + 1)

    def unfinished(state):
        _, _, high, _, steps = state
        return (high > 0) & (steps < _STEPS_PER_VALUE * n)

    h, z, high, _, _ = lax.while_loop(unfinished, step, (h, z, jnp.int32(n - 1), jnp.int32(0), jnp.int32(0)))
    failed = high > 0
    return jnp.where(failed, jnp.nan, h[:n, :n] * scale), jnp.where(failed, jnp.nan, z[:n, :n])


def _back_substitute(t):
    """Returns the eigenvectors of an upper triangular matrix, whose entries are about 1, as columns."""
    n = t.shape[0]
    values = jnp.diag(t)
    columns = lax.iota(jnp.int32, n)
    info = jnp.finfo(t.dtype)
    least = info.eps * jnp.maximum(jnp.max(jnp.abs(t)), info.tiny * 1e8)
    most = info.max**0.5

    def step(j, x):
        i = n - 1 - j
        row = lax.dynamic_index_in_dim(t, i, 0, keepdims=False)
        right = -jnp.sum(jnp.where(columns > i, row, 0)[:, None] * x, axis=0)
        gap = row[i] - values
        gap = jnp.where(jnp.abs(gap) < least, least.astype(t.dtype), gap)
        new = jnp.where(columns > i, right / gap, (columns == i).astype(t.dtype))
        # For nearly equal eigenvalues the columns grow repeatedly, so they are scaled.
        size = jnp.abs(new)
        shrink = jnp.where(size > most, 1 / size, 1)
        x, new = x * shrink, new * shrink
        return lax.dynamic_update_index_in_dim(x, new, i, 0)

    return lax.fori_loop(0, n, step, jnp.zeros_like(t))


def _normal(v):
    """Returns the columns scaled to length 1, with a real largest entry."""
    v = v / jnp.max(jnp.abs(v), axis=0, keepdims=True)
    v = v / jnp.sqrt(jnp.sum((v * v.conj()).real, axis=0, keepdims=True))
    largest = jnp.take_along_axis(v, jnp.argmax(jnp.abs(v), axis=0)[None, :], axis=0)
    return v * (largest.conj() / jnp.abs(largest))


def eig(a, left, right):
    """Returns (eigenvalues, left vectors if requested, right vectors if requested) of a general matrix."""
    a = a.astype(jnp.result_type(a.dtype, jnp.complex64))
    if not a.shape[0]:
        return (jnp.diag(a),) + (a,) * (left + right)
    scale = _scale(a)
    t, z = schur(a / scale)
    results = [jnp.diag(t) * scale]
    if left:
        # The left vectors are the right ones of the adjoint, which becomes upper triangular when the order of rows and
        # columns is reversed.
        flipped = _back_substitute(t.conj().T[::-1, ::-1])[::-1, ::-1]
        results.append(_normal(jnp.matmul(z, flipped, precision="highest")))
    if right:
        results.append(_normal(jnp.matmul(z, _back_substitute(t), precision="highest")))
    return tuple(results)
