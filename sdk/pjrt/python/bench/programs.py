# SPDX-License-Identifier: Apache-2.0
"""Builds the programs of families.py: a function of JAX, its arguments, and the work that it must do at least."""
import dataclasses
import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import families


@dataclasses.dataclass
class Program:
    function: Callable
    arguments: tuple
    flops: float = 0  # operations of multiply-adds, counted as two; 0: the bytes moved count
    # Allowed error, relative to the largest magnitude of each result; None: depends on the type.
    tolerance: float | None = None
    magnitudes: bool = False  # compares magnitudes only, because signs are arbitrary: eigenvectors and similar results


# Tolerances for rounding errors in each type, for sums of some thousand terms.
TOLERANCES = {"bfloat16": 4e-2, "float16": 1e-2, "float64": 1e-9, "complex128": 1e-9}


class Arguments:
    """Creates arguments of a type, deterministically."""

    def __init__(self, dtype, seed):
        self.dtype = dtype
        self.random = np.random.default_rng(seed)

    def floats(self, *shape, scale=1.0, dtype=None):
        """Returns random numbers of the program's type, or of `dtype`; integers if it is an integer type."""
        name = dtype or self.dtype
        if name == "bool":
            return self.random.integers(0, 2, shape).astype(name)
        if name.startswith(("int", "uint")):
            low, high = (0, 100) if name.startswith("u") else (-100, 100)
            return self.random.integers(low, high, shape).astype(name)
        values = self.random.standard_normal(shape) * scale
        if name.startswith("complex"):
            return (values + 1j * self.random.standard_normal(shape) * scale).astype(name)
        return values.astype(jnp.bfloat16) if name == "bfloat16" else values.astype(name)

    def indices(self, count, below):
        """Returns indices; `count` may be a shape."""
        return self.random.integers(0, below, count).astype(np.int32)


class Maker(Arguments):
    """Creates the arguments for one point."""

    def __init__(self, point):
        super().__init__(point.dtype, 7)
        self.point = point
        self.n, self.variant, self.rank = point.n, point.variant, point.rank

    def shape(self, rank=None):
        """Returns a shape of about n elements with `rank` dimensions, the last one the largest, none of them a round number."""
        rank = self.rank if rank is None else rank
        if rank == 1:
            return (self.n,)
        last = max(4, min(self.n // 4, int(round(math.sqrt(self.n) * 0.75)) // 4 * 4))
        rows = max(1, self.n // last)
        if rank == 2:
            return (rows, last)
        middle = max(1, int(math.sqrt(rows)))
        if rank == 3:
            return (max(1, rows // middle), middle, last)
        inner = max(1, int(math.sqrt(middle)))
        return (max(1, rows // middle), max(1, middle // inner), inner, last)

    def is_float(self):
        return self.dtype.startswith(("float", "bfloat"))


def elementwise(m):
    if not m.is_float():
        return None
    x, y = m.floats(*m.shape()), m.floats(*m.shape())
    one = {"exp": jnp.exp, "log": lambda x: jnp.log(x * x + 1), "tanh": jnp.tanh, "sin": jnp.sin, "gelu": jax.nn.gelu,
           "gelu_erf": functools.partial(jax.nn.gelu, approximate=False), "power": lambda x: jnp.power(jnp.abs(x), 1.7),
           "chain": lambda x: functools.reduce(lambda a, i: jnp.tanh(a * 0.9 + i * 0.01) + x * 0.1, range(12), x)}
    two = {"add": lambda x, y: x + y, "multiply_add": lambda x, y: x * y + x}
    if m.variant in two:
        return Program(two[m.variant], (x, y))
    return Program(one[m.variant], (x,))


def reduction(m):
    shape = m.shape()
    x = m.floats(*shape)
    if m.variant == "moments" and not m.is_float():
        return None
    function = {"rows": lambda x: x.sum(-1), "columns": lambda x: x.sum(0), "middle": lambda x: x.sum(1), "all": jnp.sum,
                "argmax": lambda x: x.argmax(-1), "moments": lambda x: (x.mean(-1), x.var(-1)),
                "any": lambda x: (x > 3).any(-1)}[m.variant]
    return Program(function, (x,))


def normalisation(m):
    shape = m.shape()
    x, gain, bias = m.floats(*shape), m.floats(shape[-1]), m.floats(shape[-1])

    def normal(x, gain, bias, axes):
        return (x - x.mean(axes, keepdims=True)) * lax.rsqrt(x.var(axes, keepdims=True) + 1e-5) * gain + bias

    function = {"softmax": lambda x, g, b: jax.nn.softmax(x, -1), "softmax_axis_0": lambda x, g, b: jax.nn.softmax(x, 0),
                "log_softmax": lambda x, g, b: jax.nn.log_softmax(x, -1),
                "layer_norm": lambda x, g, b: normal(x, g, b, -1),
                "rms_norm": lambda x, g, b: x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * g,
                "batch_norm": lambda x, g, b: normal(x, g, b, tuple(range(x.ndim - 1)))}[m.variant]
    return Program(function, (x, gain, bias))


def scan(m):
    x = m.floats(*m.shape(1 if m.variant in ("cumsum_flat", "associative") else None))
    if m.variant in ("cumprod", "associative"):
        if not m.is_float():
            return None
        x = (1 + 0.001 * x).astype(x.dtype)

    def affine(p, q):
        return p[0] * q[0], p[1] * q[0] + q[1]

    function = {"cumsum": lambda x: jnp.cumsum(x, -1), "cumprod": lambda x: jnp.cumprod(x, -1),
                "cummax": lambda x: lax.cummax(x, x.ndim - 1), "cumsum_axis_0": lambda x: jnp.cumsum(x, 0),
                "cumsum_flat": jnp.cumsum, "reverse": lambda x: lax.cumsum(x, x.ndim - 1, reverse=True),
                "associative": lambda x: lax.associative_scan(affine, (x * 0.5, x))[1]}[m.variant]
    return Program(function, (x,))


def transpose(m):
    order = {"matrix": (1, 0), "inner": (0, 2, 1), "heads": (0, 2, 1, 3), "reversed": (2, 1, 0)}[m.variant]
    return Program(lambda x: jnp.transpose(x, order), (m.floats(*m.shape(len(order))),))


def gather(m):
    rows, width = 20000, 96
    count = m.n
    if m.variant == "scalars":
        return Program(lambda x, i: x[i], (m.floats(1 << 20), m.indices(count, 1 << 20)))
    if m.variant == "along_axis":
        shape = (max(1, count // 64), 200)
        i = m.random.integers(0, 200, (shape[0], 64)).astype(np.int32)
        return Program(lambda x, i: jnp.take_along_axis(x, i, 1), (m.floats(*shape), i))
    if m.variant == "one_row_each":
        shape = (count, 24)
        return Program(lambda x, i: x[jnp.arange(x.shape[0]), i], (m.floats(*shape), m.indices(count, 24)))
    return Program(lambda x, i: x[i], (m.floats(rows, width), m.indices(max(1, count // 8), rows)))


def scatter(m):
    rows, width, count = 5000, 48, m.n
    if m.variant in ("add_rows", "segment_sum"):
        few = max(1, count // 8)
        if m.variant == "segment_sum":
            return Program(lambda u, i: jax.ops.segment_sum(u, i, 300), (m.floats(few, width), m.indices(few, 300)))
        return Program(lambda x, i, u: x.at[i].add(u), (m.floats(rows, width), m.indices(few, rows), m.floats(few, width)))
    x, u = m.floats(100000), m.floats(count)
    # If indices repeat, it is undefined which value stays, so indices of a scatter that sets values are unique.
    i = m.random.permutation(100000)[:count].astype(np.int32) if m.variant == "set_scalars" else m.indices(count, 100000)
    u = u[:len(i)]
    function = {"set_scalars": lambda x, i, u: x.at[i].set(u, unique_indices=True), "add_scalars": lambda x, i, u: x.at[i].add(u),
                "max_scalars": lambda x, i, u: x.at[i].max(u)}[m.variant]
    return Program(function, (x, i, u))


def sort(m):
    x = m.floats(*m.shape(2 if m.variant == "rows" else 1))
    function = {"flat": jnp.sort, "rows": lambda x: jnp.sort(x, -1), "argsort": jnp.argsort,
                "descending": lambda x: jnp.sort(x, descending=True),
                "key_value": lambda x: lax.sort((x, lax.iota(jnp.int32, x.shape[0])), num_keys=1)}[m.variant]
    return Program(function, (x,))


def top_k(m):
    if m.variant == "flat":
        return Program(lambda x: lax.top_k(x, 50), (m.floats(m.n),))
    k = int(m.variant[1:])
    return Program(lambda x: lax.top_k(x, k), (m.floats(max(1, m.n // 2000), 2000),))


def product(m):
    n = m.n
    if m.dtype == "int8" and m.variant in ("bias_relu",):
        return None
    rows, depth, columns = {"few_columns": (n, n, 6), "vector": (1, n, n), "tall": (16 * n, 48, 40)}.get(m.variant, (n, n, n))
    a = m.floats(rows, depth)
    b = m.floats(columns, depth) if m.variant == "transposed" else m.floats(depth, columns)
    kind = jnp.int32 if m.dtype == "int8" else None
    dimensions = (((1,), (1 if m.variant == "transposed" else 0,)), ((), ()))

    def multiply(a, b):
        return lax.dot_general(a, b, dimensions, preferred_element_type=kind)

    flops = 2.0 * rows * depth * columns
    if m.variant == "bias_relu":
        return Program(lambda a, b, c: jax.nn.relu(multiply(a, b) + c), (a, b, m.floats(columns)), flops)
    return Program(multiply, (a, b), flops)


def batched_product(m):
    side = int(m.variant[3:])
    count = (m.n,) if m.rank == 3 else (max(1, m.n // 8), 8)
    return Program(lambda a, b: a @ b, (m.floats(*count, side, side), m.floats(*count, side, side)), 2.0 * m.n * side ** 3)


def attend(q, k, v, mask=None):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * (1 / math.sqrt(q.shape[-1]))
    if mask is not None:
        scores = jnp.where(mask, scores, jnp.asarray(-1e9, scores.dtype))
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, -1), v)


def attention(m):
    heads, width, queries = 6, 64, 1 if m.variant == "decode" else m.n
    q, k, v = m.floats(1, heads, queries, width), m.floats(1, heads, m.n, width), m.floats(1, heads, m.n, width)
    flops = 4.0 * heads * queries * m.n * width
    if m.variant != "causal":
        return Program(attend, (q, k, v), flops)
    return Program(lambda q, k, v: attend(q, k, v, jnp.tril(jnp.ones((m.n, m.n), bool))), (q, k, v), flops)


def convolution(m):
    n, channels = m.n, 48

    def program(filter_shape, *, spatial=2, channels_in=channels, strides=1, groups=1, dilation=1, input_dilation=1, first=False):
        letters = "DHW"[3 - spatial:]
        numbers = ("NC" + letters, "OI" + letters, "NC" + letters) if first else ("N" + letters + "C", letters + "IO", "N" + letters + "C")
        spots = (n,) * spatial
        x = m.floats(*((1, channels_in) + spots if first else (1,) + spots + (channels_in,)))
        w = m.floats(*filter_shape, scale=0.1)

        def convolve(x, w):
            padding = ((2, 2),) * spatial if input_dilation == 2 else "SAME"
            return lax.conv_general_dilated(x, w, (strides,) * spatial, padding, lhs_dilation=(input_dilation,) * spatial,
                                            rhs_dilation=(dilation,) * spatial, dimension_numbers=numbers,
                                            feature_group_count=groups)

        taps = math.prod(filter_shape) / (filter_shape[0] if first else filter_shape[-1])
        out_features = filter_shape[0] if first else filter_shape[-1]
        outputs = (n * input_dilation // strides) ** spatial * out_features
        return convolve, (x, w), 2.0 * outputs * taps / input_dilation ** spatial

    c = channels
    chosen = {"1x1": lambda: program((1, 1, c, 2 * c)), "3x3": lambda: program((3, 3, c, c)), "5x5": lambda: program((5, 5, c, c)),
              "7x7_stride_2": lambda: program((7, 7, 3, c), channels_in=3, strides=2),
              "grouped": lambda: program((3, 3, c // 4, c), groups=4), "depthwise": lambda: program((3, 3, 1, c), groups=c),
              "transposed": lambda: program((4, 4, c, c), input_dilation=2), "dilated": lambda: program((3, 3, c, c), dilation=2),
              "channels_first": lambda: program((c, c, 3, 3), first=True),
              "1d": lambda: program((5, c, c), spatial=1), "3d": lambda: program((3, 3, 3, 8, 8), spatial=3, channels_in=8),
              "filter_gradient": lambda: program((3, 3, c, c))}
    function, arguments, flops = chosen[m.variant]()
    if m.variant == "filter_gradient":
        return Program(lambda x, w: jax.grad(lambda w: jnp.sum(function(x, w) ** 2))(w), arguments, 2 * flops)
    return Program(function, arguments, flops)


def pooling(m):
    x = m.floats(1, m.n, m.n, 32)
    window, strides = (1, 3, 3, 1), (1, 2, 2, 1)

    def maximum(x):
        return lax.reduce_window(x, np.array(-np.inf, x.dtype), lax.max, window, strides, "SAME")

    def average(x):
        return lax.reduce_window(x, np.array(0, x.dtype), lax.add, window, strides, "SAME") * jnp.asarray(1 / 9, x.dtype)

    function = {"maximum": maximum, "average": average, "global": lambda x: x.mean((1, 2)),
                "maximum_gradient": lambda x: jax.grad(lambda x: jnp.sum(maximum(x) ** 2).astype(jnp.float32))(x)}[m.variant]
    return Program(function, (x,))


def next_prime(n):
    while any(n % d == 0 for d in range(2, int(math.sqrt(n)) + 1)):
        n += 1
    return n


def fft(m):
    length = {"mixed_radix": m.n // 16 * 15, "prime": next_prime(m.n)}.get(m.variant, m.n)
    batch = 64
    if m.variant == "two_dimensions":
        length = m.n // 8
        x, total = m.floats(2, length, length), 2 * length * length
    else:
        x, total = m.floats(batch, length), batch * length
    if m.variant == "real":
        x = x.real
    function = {"two_dimensions": jnp.fft.fft2, "real": jnp.fft.rfft, "inverse_real": jnp.fft.irfft}.get(m.variant, jnp.fft.fft)
    return Program(function, (x,), (2.5 if "real" in m.variant else 5) * total * math.log2(max(length, 2)))


def factorization(m):
    n = 12 if m.variant.startswith("batched") else m.n
    batch = (m.n * 4,) if m.variant.startswith("batched") else ()
    a = m.floats(*batch, n, n)
    spd = (a @ np.swapaxes(a, -1, -2) + n * np.eye(n)).astype(a.dtype)
    good = (a + 4 * math.sqrt(n) * np.eye(n)).astype(a.dtype)
    b = m.floats(*batch, n, 4)
    lower = np.tril(good).astype(a.dtype)
    whole = math.prod(batch) if batch else 1
    lax_solve = jax.scipy.linalg.solve_triangular
    chosen = {"cholesky": (jnp.linalg.cholesky, (spd,), n ** 3 / 3), "batched_cholesky": (jnp.linalg.cholesky, (spd,), n ** 3 / 3),
              "solve": (jnp.linalg.solve, (good, b), 2 * n ** 3 / 3), "batched_solve": (jnp.linalg.solve, (good, b), 2 * n ** 3 / 3),
              "triangular_solve": (lambda a, b: lax_solve(a, b, lower=True), (lower, m.floats(*batch, n, n)), n ** 3),
              "inverse": (jnp.linalg.inv, (good,), 2 * n ** 3), "qr": (jnp.linalg.qr, (a,), 4 * n ** 3 / 3),
              "svd": (lambda a: jnp.linalg.svd(a)[1], (a,), 4 * n ** 3), "eigh": (lambda a: jnp.linalg.eigh(a)[0], (spd,), 4 * n ** 3 / 3)}
    function, arguments, flops = chosen[m.variant]
    return Program(function, arguments, flops * whole, tolerance={"float32": 1e-3, "float64": 1e-7}[m.dtype],
                   magnitudes=m.variant == "qr")


def loop(m):
    n = m.n
    x = m.floats(n)
    if m.variant == "scalar":
        return Program(lambda a: lax.fori_loop(0, n, lambda i, a: a * 0.999 + i, a), (np.float32(1),))
    if m.variant == "until":
        return Program(lambda a: lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, jnp.sin(s[1]) + 0.5), (0, a)), (np.float32(1),))
    if m.variant == "carried_array":
        return Program(lambda x: lax.fori_loop(1, n, lambda i, x: x.at[i].set(x[i] * 0.5 + x[i - 1] * 0.4), x), (x,))
    if m.variant == "carried_rows":
        rows = m.floats(n, 32)
        return Program(lambda x: lax.fori_loop(1, n, lambda i, x: x.at[i].set(jnp.tanh(x[i - 1] + x[i])), x), (rows,))
    if m.variant == "scatter_each_step":
        i = m.random.integers(0, n, (n, 4)).astype(np.int32)
        return Program(lambda x, i: lax.fori_loop(0, n, lambda t, x: x.at[i[t]].add(0.25), x), (x, i))
    grid = m.floats(32, 32)
    around = lambda x: (jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0) + jnp.roll(x, 1, 1) + jnp.roll(x, -1, 1)) * 0.25
    return Program(lambda x: lax.fori_loop(0, n, lambda i, x: around(x), x), (grid,))


def recurrent(m):
    width, batch = 96, 16
    x = m.floats(m.n, batch, width)
    gates = {"lstm": 4, "gru": 3, "rnn": 1}[m.variant]
    wx, wh = m.floats(width, gates * width, scale=0.1), m.floats(width, gates * width, scale=0.1)
    h = np.zeros((batch, width), np.float32)

    def step(state, xt, wx, wh):
        h, c = state
        if m.variant == "rnn":
            return jnp.tanh(xt @ wx + h @ wh), c
        if m.variant == "gru":
            (a, b, d), (e, f, g) = jnp.split(xt @ wx, 3, -1), jnp.split(h @ wh, 3, -1)
            z, r = jax.nn.sigmoid(a + e), jax.nn.sigmoid(b + f)
            return (1 - z) * jnp.tanh(d + r * g) + z * h, c
        i, f, o, u = jnp.split(xt @ wx + h @ wh, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(u)
        return jax.nn.sigmoid(o) * jnp.tanh(c), c

    def run(x, wx, wh, h):
        def body(state, xt):
            state = step(state, xt, wx, wh)
            return state, state[0]
        return lax.scan(body, (h, h), x)[1]

    return Program(run, (x, wx, wh, h), 4.0 * m.n * batch * width * gates * width)


def movement(m):
    shape = m.shape()
    x = m.floats(*shape)
    if m.variant == "resize":
        if m.dtype != "float32":
            return None
        side = max(8, int(math.sqrt(m.n / 8)))
        return Program(lambda x: jax.image.resize(x, (side + side // 2, side + side // 2, 8), "linear"), (m.floats(side, side, 8),))
    if m.variant == "one_hot":
        return Program(lambda i: jax.nn.one_hot(i, 100, dtype=x.dtype), (m.indices(max(1, m.n // 100), 100),))
    function = {"concatenate": lambda x: jnp.concatenate([x, x[:, ::-1], x], 1), "pad": lambda x: jnp.pad(x, ((1, 2), (3, 1))),
                "strided_slice": lambda x: x[::2, 1::3], "reverse": lambda x: x[::-1, ::-1], "roll": lambda x: jnp.roll(x, 5, 1),
                "tile": lambda x: jnp.tile(x, (2, 2)), "where": lambda x: jnp.where(x > 0, x, x[:1])}[m.variant]
    return Program(function, (x,))


def random(m):
    key = np.array([3, 4], np.uint32)
    draw = {"uniform": lambda k: jax.random.uniform(k, (m.n,)), "normal": lambda k: jax.random.normal(k, (m.n,)),
            "bits": lambda k: jax.random.bits(k, (m.n,)), "permutation": lambda k: jax.random.permutation(k, m.n)}[m.variant]
    return Program(lambda k: draw(jax.random.wrap_key_data(k)), (key,))


def block(p, x, heads):
    """A transformer block with causal attention."""
    def normal(x, gain):
        return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * gain

    tokens, width = x.shape
    q, k, v = (a.reshape(1, tokens, heads, width // heads).transpose(0, 2, 1, 3)
               for a in jnp.split(normal(x, p["g1"]) @ p["qkv"], 3, -1))
    mixed = attend(q, k, v, jnp.tril(jnp.ones((tokens, tokens), bool)))
    x = x + mixed.transpose(0, 2, 1, 3).reshape(tokens, width) @ p["out"]
    return x + jax.nn.gelu(normal(x, p["g2"]) @ p["up"]) @ p["down"]


def model(m):
    n, width, heads = m.n, 256, 4
    if m.variant == "rope":
        x = m.floats(n, 8, 64)

        def rotate(x):
            angle = jnp.arange(n)[:, None, None] / 10000.0 ** (jnp.arange(32) / 32)
            a, b = jnp.split(x, 2, -1)
            return jnp.concatenate([a * jnp.cos(angle) - b * jnp.sin(angle), a * jnp.sin(angle) + b * jnp.cos(angle)], -1)

        return Program(rotate, (x,))
    if m.variant == "mlp_step":
        weights = [m.floats(300, width, scale=0.1), m.floats(width, width, scale=0.1), m.floats(width, 10, scale=0.1)]

        def loss(weights, x, y):
            for w in weights[:-1]:
                x = jax.nn.relu(x @ w)
            return -jnp.mean(jnp.sum(y * jax.nn.log_softmax(x @ weights[-1]), -1))

        def step(weights, x, y):
            return jax.tree.map(lambda w, g: w - 0.1 * g, weights, jax.grad(loss)(weights, x, y))

        labels = np.eye(10, dtype=np.float32)[m.indices(n, 10)]
        return Program(step, (weights, m.floats(n, 300), labels), 6.0 * n * (300 * width + width * width + 10 * width))
    if m.variant == "embedding_step":
        table, i, y = m.floats(8000, width), m.indices(n, 8000), m.floats(n, width)
        step = lambda t, i, y: t - 0.1 * jax.grad(lambda t: jnp.sum((t[i] - y) ** 2))(t)
        return Program(step, (table, i, y))
    p = {"g1": m.floats(width), "g2": m.floats(width), "qkv": m.floats(width, 3 * width, scale=0.05),
         "out": m.floats(width, width, scale=0.05), "up": m.floats(width, 4 * width, scale=0.05),
         "down": m.floats(4 * width, width, scale=0.05)}
    flops = 24.0 * n * width * width + 4.0 * n * n * width
    if m.variant == "block":
        return Program(lambda p, x: block(p, x, heads), (p, m.floats(n, width)), flops)
    return Program(lambda p, x: jax.grad(lambda p: jnp.sum(block(p, x, heads) ** 2))(p), (p, m.floats(n, width)), 3 * flops)


BUILDERS = {f.__name__: f for f in (elementwise, reduction, normalisation, scan, transpose, gather, scatter, sort, top_k, product,
                                    batched_product, attention, convolution, pooling, fft, factorization, loop, recurrent,
                                    movement, random, model)}
assert set(BUILDERS) == {family.name for family in families.FAMILIES}


def with_tolerance(program, dtype):
    """Gives a program the tolerance of its type where it has none of its own."""
    if program is not None and program.tolerance is None:
        program.tolerance = TOLERANCES.get(dtype, 1e-3)
    return program


def build(point):
    """Returns the program of a point, or None if its variant is not defined for its type."""
    return with_tolerance(BUILDERS[point.family](Maker(point)), point.dtype)
