# SPDX-License-Identifier: Apache-2.0
"""Builds drawn programs of positions: gather, scatter, sort, scan; and of random numbers."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from programs import Program


def looked_up(function):
    """A program of a table and of row indices."""
    return lambda m, rows, width, count: Program(function, (m.floats(rows, width), m.indices(count, rows)), tolerance=0)


def slice_each_row(m, rows, length, width):
    one = lambda row, start: lax.dynamic_slice(row, (start,), (width,))
    return Program(jax.vmap(one), (m.floats(rows, length), m.indices(rows, length - width)))


def windows(m, height, width, channels, count):
    def function(x, tops, lefts):
        return jax.vmap(lambda top, left: lax.dynamic_slice(x, (top, left, 0), (7, 7, channels)))(tops, lefts)
    return Program(function, (m.floats(height, width, channels), m.indices(count, height - 7), m.indices(count, width - 7)))


def columns(m, rows, width, count):
    few = min(rows, 2000)
    return Program(lambda table, i: table[:, i], (m.floats(few, width), m.indices(min(count, 1000), width)), tolerance=0)


GATHER = {
    "rows": looked_up(lambda table, i: table[i]),
    "columns": columns,
    "scalars": lambda m, rows, width, count: Program(
        lambda x, i: x[i], (m.floats(rows * width), m.indices(count, rows * width)), tolerance=0),
    "fill": looked_up(lambda table, i: jnp.take(table, i, 0, mode="fill")),
    "permute": lambda m, rows, width, count: Program(
        lambda table, i: table[i], (m.floats(rows, width), m.random.permutation(rows).astype(np.int32)), tolerance=0),
    "along_axis": lambda m, shape, axis: Program(
        lambda x, i: jnp.take_along_axis(x, i, axis), (m.floats(*shape), m.indices(shape, shape[axis])), tolerance=0),
    "middle": lambda m, outer, middle, inner, count: Program(
        lambda x, i: jnp.take(x, i, 1), (m.floats(outer, middle, inner), m.indices(count, middle)), tolerance=0),
    "two_indices": lambda m, shape, count: Program(
        lambda x, i, j: x[i, j], (m.floats(*shape), m.indices(count, shape[0]), m.indices(count, shape[1])), tolerance=0),
    "one_hot": lambda m, count, classes: Program(lambda i: jax.nn.one_hot(i, classes), (m.indices(count, classes),), tolerance=0),
    "slice_each_row": slice_each_row,
    "bag": lambda m, rows, width, bags, length: Program(
        lambda table, i: table[i].mean(1), (m.floats(rows, width), m.indices((bags, length), rows))),
    "windows": windows,
}


def updated(function):
    """A program of a table, of row indices that may repeat, and of as many rows."""
    return lambda m, rows, width, count: Program(function, (m.floats(rows, width), m.indices(count, rows), m.floats(count, width)))


def set_rows(m, rows, width, count):
    # Indices do not repeat, because the order of two assignments to one row is not defined.
    few = min(rows, count)
    chosen = m.random.permutation(rows)[:few].astype(np.int32)
    return Program(lambda table, i, new: table.at[i].set(new), (m.floats(rows, width), chosen, m.floats(few, width)), tolerance=0)


def segment_sum(m, rows, width, count, sorted):
    segments = m.indices(count, rows)
    return Program(lambda x, i: jax.ops.segment_sum(x, i, rows), (m.floats(count, width), np.sort(segments) if sorted else segments))


SCATTER = {
    "add": updated(lambda table, i, new: table.at[i].add(new)),
    "set": set_rows,
    "maximum": updated(lambda table, i, new: table.at[i].max(new)),
    "segment_sum": segment_sum,
    "gather_gradient": lambda m, rows, width, count: Program(
        jax.grad(lambda table, i: jnp.sum(table[i] ** 2)), (m.floats(rows, width), m.indices(count, rows))),
    "count": lambda m, count, bins: Program(lambda i: jnp.bincount(i, length=bins), (m.indices(count, bins),), tolerance=0),
    "two_indices": lambda m, shape, count: Program(
        lambda x, i, j, new: x.at[i, j].add(new),
        (m.floats(*shape), m.indices(count, shape[0]), m.indices(count, shape[1]), m.floats(count))),
}


def ordered(function, tolerance=0):
    return lambda m, shape, axis: Program(lambda x: function(x, axis), (m.floats(*shape),), tolerance=tolerance)


def two_keys(m, shape, axis):
    few = m.indices(shape, 20)
    return Program(lambda a, b: lax.sort((a, b), dimension=axis, num_keys=2), (few, m.floats(*shape)), tolerance=0)


def two_values(m, shape, axis):
    arguments = (m.floats(*shape, dtype="int32"), m.floats(*shape), m.floats(*shape, dtype="bfloat16"))
    return Program(lambda key, a, b: lax.sort((key, a, b), dimension=axis, num_keys=1), arguments, tolerance=0)


def approximate_top_k(m, shape, k):
    # On processors without an approximate search, the result is exact.
    return Program(lambda x: lax.approx_max_k(x, k), (m.floats(*shape),), tolerance=0)


SORT = {
    "sort": ordered(jnp.sort),
    "sort_magnitudes": ordered(lambda x, axis: jnp.sort(jnp.abs(x), axis)),
    "argsort": ordered(jnp.argsort),
    "descending": ordered(lambda x, axis: jnp.sort(x, axis, descending=True)),
    "key_value": lambda m, shape, axis: Program(
        lambda key, value: lax.sort((key, value), dimension=axis, num_keys=1),
        (m.floats(*shape), m.floats(*shape, dtype="float32")), tolerance=0),
    "ranks": ordered(lambda x, axis: jnp.argsort(jnp.argsort(x, axis), axis)),
    "top_k": lambda m, shape, k: Program(lambda x: lax.top_k(x, k), (m.floats(*shape),), tolerance=0),
    "approximate_top_k": approximate_top_k,
    "partition": lambda m, shape, k: Program(lambda x: jnp.partition(x, k - 1, -1), (m.floats(*shape),), tolerance=0),
    "median": lambda m, shape: Program(lambda x: jnp.median(x, 1), (m.floats(*shape),)),
    "quantiles": lambda m, shape: Program(lambda x: jnp.quantile(x, jnp.array([0.1, 0.5, 0.9]), axis=0), (m.floats(*shape),)),
    "two_keys": two_keys,
    "two_values": two_values,
    "search": lambda m, n: Program(jnp.searchsorted, (np.sort(m.floats(n)), m.floats(5000)), tolerance=0),
    "unique": lambda m, n: Program(lambda x: jnp.unique(x, size=100, fill_value=0), (m.floats(n),), tolerance=0),
}


def scanned(function, transform=lambda x: x):
    return lambda m, shape, axis: Program(lambda x: function(x, axis), (transform(m.floats(*shape)),))


def affine(m, shape):
    def combine(p, q):
        return p[0] * q[0], p[1] * q[0] + q[1]
    slopes = m.floats(*shape, scale=0.1) + np.float32(0.8)
    return Program(lambda a, b: lax.associative_scan(combine, (a, b), axis=0)[1], (slopes, m.floats(*shape)))


def segmented(m, n):
    def combine(p, q):
        return p[0] | q[0], jnp.where(q[0], q[1], p[1] + q[1])
    return Program(lambda first, x: lax.associative_scan(combine, (first, x))[1], (m.random.random(n) < 0.05, m.floats(n)))


def moving_average(m, steps, width):
    return Program(lambda x: lax.scan(lambda mean, new: (mean * 0.9 + new * 0.1, mean), jnp.zeros(width), x)[1], (m.floats(steps, width),))


SCAN = {
    "cumsum": scanned(jnp.cumsum),
    "cummax": scanned(lax.cummax),
    "cummin": scanned(lax.cummin),
    "cumprod": scanned(jnp.cumprod, lambda x: 1 + np.float32(1e-3) * x),
    "cumlogsumexp": scanned(lax.cumlogsumexp),
    "reverse": scanned(lambda x, axis: lax.cumsum(x, axis, reverse=True)),
    "cummax_gradient": scanned(lambda x, axis: jax.grad(lambda x: jnp.sum(lax.cummax(x, axis) ** 2))(x)),
    "cumsum_gradient": scanned(lambda x, axis: jax.grad(lambda x: jnp.sum(jnp.cumsum(x, axis) ** 2))(x)),
    "count": scanned(lambda x, axis: jnp.cumsum(x > 0, axis)),
    "log_products": scanned(lambda x, axis: jnp.exp(jnp.cumsum(jnp.log(x), axis)), lambda x: 1 + np.float32(1e-3) * x),
    "affine": affine,
    "segmented": segmented,
    "moving_average": moving_average,
    "softmax_cumsum": lambda m, rows, length: Program(lambda x: jnp.cumsum(jax.nn.softmax(x, -1), -1), (m.floats(rows, length),)),
    "three_dimensions": lambda m, outer, length, inner: Program(
        lambda x: lax.associative_scan(lambda a, b: a * b + a + b, x, axis=1), (m.floats(outer, length, inner, scale=0.1),)),
}

KEY = np.array([3, 4], np.uint32)
TRANSFORMED = 1e-5  # tolerance of numbers that elementary functions make from random bits; all others must be equal


def generated(function, tolerance=TRANSFORMED):
    """A program of a random key and of the size n."""
    return lambda m, n: Program(lambda key: function(jax.random.wrap_key_data(key), n), (KEY,), tolerance=tolerance)


def with_array(function, *dims):
    """A program of a random key and of an array, whose dimensions are the size n and `dims`."""
    return lambda m, n: Program(lambda key, x: function(jax.random.wrap_key_data(key), x), (KEY, m.floats(n, *dims)), tolerance=0)


def dropout(m, shape):
    function = lambda key, x: jnp.where(jax.random.bernoulli(jax.random.wrap_key_data(key), 0.9, x.shape), x / 0.9, 0)
    return Program(function, (KEY, m.floats(*shape)), tolerance=TRANSFORMED)


def reparametrize(m, shape):
    def function(key, mean, log_variance):
        return mean + jnp.exp(0.5 * log_variance) * jax.random.normal(jax.random.wrap_key_data(key), mean.shape)
    return Program(function, (KEY, m.floats(*shape), m.floats(*shape)), tolerance=TRANSFORMED)


RANDOM = {
    "uniform": generated(lambda key, n: jax.random.uniform(key, (n,)), 0),
    "normal": lambda m, n: Program(lambda key: jax.random.normal(jax.random.wrap_key_data(key), (n,), m.dtype), (KEY,),
                                   tolerance=TRANSFORMED if m.dtype == "float32" else None),
    "bernoulli": generated(lambda key, n: jax.random.bernoulli(key, 0.3, (n,)), 0),
    "gumbel": generated(lambda key, n: jax.random.gumbel(key, (n,))),
    "randint": generated(lambda key, n: jax.random.randint(key, (n,), 0, 1000), 0),
    "exponential": generated(lambda key, n: jax.random.exponential(key, (n,))),
    "truncated_normal": generated(lambda key, n: jax.random.truncated_normal(key, -2.0, 2.0, (n,))),
    "laplace": generated(lambda key, n: jax.random.laplace(key, (n,))),
    "cauchy": generated(lambda key, n: jax.random.cauchy(key, (n,))),
    "logistic": generated(lambda key, n: jax.random.logistic(key, (n,))),
    "permutation": generated(lambda key, n: jax.random.permutation(key, n), 0),
    "split": generated(lambda key, n: jax.random.key_data(jax.random.split(key, n)), 0),
    "gamma": generated(lambda key, n: jax.random.gamma(key, 2.0, (n,)), 1e-3),
    "bits": lambda m, n: Program(lambda key: jax.random.bits(jax.random.wrap_key_data(key), (n,), m.dtype), (KEY,), tolerance=0),
    "choice": with_array(lambda key, x: jax.random.choice(key, x, (2000,))),
    "shuffle_rows": with_array(jax.random.permutation, 16),
    "categorical": with_array(lambda key, x: jax.random.categorical(key, x, 0), 64),
    "dropout": dropout,
    "reparametrize": reparametrize,
}

BUILDERS = {"gather": GATHER, "scatter": SCATTER, "sort": SORT, "scan": SCAN, "random": RANDOM}
