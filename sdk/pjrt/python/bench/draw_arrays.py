# SPDX-License-Identifier: Apache-2.0
"""Builds drawn programs of whole arrays: elementwise, reduction, normalisation, transpose, movement."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from programs import Program

UNARY = {"tanh": jnp.tanh, "sigmoid": jax.nn.sigmoid, "gelu": jax.nn.gelu, "silu": jax.nn.silu, "softplus": jax.nn.softplus,
         "elu": jax.nn.elu, "erf": lax.erf, "cos": jnp.cos, "arctan": jnp.arctan, "log1p": lambda x: jnp.log1p(jnp.abs(x)),
         "rsqrt": lambda x: lax.rsqrt(jnp.abs(x) + 1), "clip": lambda x: jnp.clip(x, -0.5, 0.5),
         "mish": lambda x: x * jnp.tanh(jax.nn.softplus(x)), "hard_swish": jax.nn.hard_swish, "arcsinh": jnp.arcsinh, "selu": jax.nn.selu,
         "logaddexp": lambda x: jnp.logaddexp(x, 0.5), "exp": jnp.exp, "sqrt": lambda x: jnp.sqrt(jnp.abs(x)), "sinh": jnp.sinh,
         "cbrt": jnp.cbrt, "expm1": jnp.expm1, "floor": jnp.floor, "round": jnp.round, "sign": jnp.sign, "square": jnp.square,
         "cube": lambda x: x ** 3, "power": lambda x: jnp.abs(x) ** 1.7, "log_sigmoid": lambda x: jnp.log(jax.nn.sigmoid(x)),
         "erf_inv": lambda x: lax.erf_inv(jnp.tanh(x) * 0.9), "digamma": lambda x: lax.digamma(jnp.abs(x) + 1),
         "lgamma": lambda x: lax.lgamma(jnp.abs(x) + 1), "tan": jnp.tan, "arccos": lambda x: jnp.arccos(jnp.tanh(x) * 0.9),
         "exp2": jnp.exp2, "sinc": jnp.sinc}
# Divisors and bases keep away from 0, so that no result is near the largest number of float16.
BINARY = {"add": jnp.add, "multiply": jnp.multiply, "divide": lambda a, b: a / (jnp.abs(b) + 0.1), "maximum": jnp.maximum,
          "power": lambda a, b: (jnp.abs(a) + 0.5) ** b, "arctan2": jnp.arctan2, "hypot": jnp.hypot, "mod": jnp.mod,
          "multiply_add": lambda a, b: a * b + a}
BITWISE = {"add": jnp.add, "multiply": jnp.multiply, "divide": lambda a, b: a // (b | 1), "remainder": lambda a, b: a % (b | 1),
           "xor": lambda a, b: (a ^ b) & (a | b), "shift": lambda a, b: (a << 1) ^ (b >> 2),
           "min_max": lambda a, b: jnp.minimum(jnp.maximum(a, b), b + a), "population_count": lambda a, b: lax.population_count(a ^ b),
           "clz": lambda a, b: lax.clz(a ^ b), "compare": lambda a, b: (a > b) & (a != b + 1)}


def chain(m, shape, functions):
    def function(x):
        for name in functions:
            x = UNARY[name](x) * 0.5 + x * 0.25
        return x
    return Program(function, (m.floats(*shape),))


def broadcast(m, shape, axis):
    one = tuple(1 if i == axis else size for i, size in enumerate(shape))
    others = tuple(size if i == axis else 1 for i, size in enumerate(shape))
    return Program(lambda a, b, c: jnp.tanh(a * b) + c, (m.floats(*shape), m.floats(*one), m.floats(*others)))


def convert(m, shape, to):
    # Values lie in the range of each type, because conversions of others are not defined.
    return Program(lambda x: x.astype(to), (np.abs(m.floats(*shape)) if m.dtype != "bool" else m.floats(*shape),))


def gradient(m, shape, function):
    return Program(jax.grad(lambda x: jnp.sum(UNARY[function](x) ** 2)), (m.floats(*shape),))


ELEMENTWISE = {
    "unary": lambda m, shape, function: Program(UNARY[function], (m.floats(*shape),)),
    "binary": lambda m, shape, function: Program(BINARY[function], (m.floats(*shape), m.floats(*shape))),
    "chain3": chain,
    "chain5": chain,
    "integers": lambda m, shape, function: Program(BITWISE[function], (m.floats(*shape), m.floats(*shape)), tolerance=0),
    "broadcast": broadcast,
    "convert": convert,
    "select": lambda m, shape: Program(lambda x, y, chosen: jnp.where(chosen, x, jnp.where(x > y, y * 2, 0)), (
        m.floats(*shape), m.floats(*shape), m.floats(*shape, dtype="bool"))),
    "gradient": gradient,
}


def product_of_elements(m, shape, axes):
    x = m.floats(*shape)
    # Factors near 1, because products of others leave the range of floating-point types.
    return Program(lambda x: jnp.prod(x, axes), ((1 + 1e-3 * x).astype(x.dtype) if np.issubdtype(x.dtype, np.inexact) else x,))


def reduced(function):
    return lambda m, shape, axes: Program(lambda x: function(x, axes), (m.floats(*shape),))


def position(function):
    return lambda m, shape, axis: Program(lambda x: function(x, axis), (m.floats(*shape),), tolerance=0)


REDUCTION = {name: reduced(function) for name, function in {
    "sum": jnp.sum, "max": jnp.max, "min": jnp.min, "count": lambda x, axes: (x > 0).sum(axes), "any": lambda x, axes: (x > 3).any(axes),
    "min_max": lambda x, axes: (x.min(axes), x.max(axes)), "abs_sum": lambda x, axes: jnp.abs(x).sum(axes),
    "sum_squares": lambda x, axes: (x.sum(axes), (x * x).sum(axes)), "mean": jnp.mean, "var": jnp.var, "std": jnp.std,
    "logsumexp": jax.nn.logsumexp, "norm": lambda x, axes: jnp.sqrt((x * x).sum(axes))}.items()}
REDUCTION |= {"prod": product_of_elements, "argmax": position(jnp.argmax), "argmin": position(jnp.argmin)}


def normal(x, axes, epsilon=1e-5):
    """Returns x with mean 0 and variance 1 over these axes."""
    return (x - x.mean(axes, keepdims=True)) * lax.rsqrt(x.var(axes, keepdims=True) + epsilon)


def others(shape, axis):
    return tuple(i for i in range(len(shape)) if i != axis)


def along(function):
    """A program of x and of the axis."""
    return lambda m, shape, axis: Program(lambda x: function(x, axis), (m.floats(*shape),))


def scaled(function, terms):
    """A program of x, the axis, and `terms` vectors along the axis."""
    def build(m, shape, axis):
        vector = tuple(size if i == axis else 1 for i, size in enumerate(shape))
        return Program(lambda x, *vectors: function(x, axis, *vectors), (m.floats(*shape), *(m.floats(*vector) for _ in range(terms))))
    return build


def rms_norm(x, axis, gain):
    return x * lax.rsqrt((x.astype(jnp.float32) ** 2).mean(axis, keepdims=True) + 1e-6).astype(x.dtype) * gain


def group_norm(m, batch, side, channels, groups):
    def function(x):
        grouped = x.reshape(batch, side, side, groups, channels // groups)
        return normal(grouped, (1, 2, 4)).reshape(x.shape)
    return Program(function, (m.floats(batch, side, side, channels),))


def cross_entropy(m, count, classes):
    def loss(x, labels):
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(x), labels[:, None], 1))
    return Program(jax.value_and_grad(loss), (m.floats(count, classes), m.indices(count, classes)))


def softmax_gradient(m, shape, axis):
    gradient = jax.grad(lambda x, weights: jnp.sum(jax.nn.softmax(x, axis) * weights))
    return Program(gradient, (m.floats(*shape), m.floats(*shape)))


NORMALISATION = {
    "softmax": along(jax.nn.softmax),
    "log_softmax": along(jax.nn.log_softmax),
    "layer_norm": scaled(lambda x, axis, gain, bias: normal(x, axis) * gain + bias, 2),
    "rms_norm": scaled(rms_norm, 1),
    "batch_norm": scaled(lambda x, axis, gain, bias: normal(x, others(x.shape, axis)) * gain + bias, 2),
    "unit": along(lambda x, axis: x / (jnp.sqrt((x * x).sum(axis, keepdims=True)) + 1e-6)),
    # In f32, because the difference of two means of squares cancels in narrower types.
    "standardize": along(lambda x, axis: jax.nn.standardize(x.astype(jnp.float32), axis).astype(x.dtype)),
    "capped_softmax": along(lambda x, axis: jax.nn.softmax(jnp.tanh(x / 30) * 30 / 0.7, axis)),
    "softmax_gradient": softmax_gradient,
    "group_norm": group_norm,
    "cross_entropy": cross_entropy,
    "layer_norm_gradient": lambda m, shape: Program(
        jax.grad(lambda x, gain: jnp.sum((normal(x, -1) * gain) ** 3), (0, 1)), (m.floats(*shape), m.floats(shape[1]))),
}


def transposed(function):
    return lambda m, shape, order: Program(lambda x: function(jnp.transpose(x, order)), (m.floats(*shape),), tolerance=0)


TRANSPOSE = {
    "plain": transposed(lambda x: x),
    "add": transposed(lambda x: ~x if x.dtype == bool else x + jnp.ones((), x.dtype)),
    "convert": transposed(lambda x: x.real if jnp.iscomplexobj(x) else x.astype(jnp.float32)),
    "flatten": transposed(lambda x: x.reshape(-1) if x.dtype == bool else x.reshape(-1) * 2),
}


def moved(function, operands=1):
    """A program that moves the elements of some arrays of one shape; `function` also has the axis if the kind has one."""
    def build(m, shape, **axis):
        return Program(lambda *arrays: function(*arrays, **axis), tuple(m.floats(*shape) for _ in range(operands)))
    return build


def concatenate(m, shape, axis, parts):
    return Program(lambda *arrays: jnp.concatenate(arrays, axis), tuple(m.floats(*shape) for _ in range(parts)))


def split(m, shape, axis):
    quarters = tuple(max(4, size // 4 * 4) if i == axis else size for i, size in enumerate(shape))
    return Program(lambda x: [part * part for part in jnp.split(x, 4, axis)], (m.floats(*quarters),))


def part(x):
    begin, end = [size // 5 for size in x.shape], [size - size // 7 for size in x.shape]
    return lax.slice(x, begin, end) + jnp.ones((), x.dtype)


def update_slice(m, shape):
    half = [max(1, size // 2) for size in shape]
    return Program(lambda x, y, i: lax.dynamic_update_slice(x, y, (i, i)), (m.floats(*shape), m.floats(*half), np.int32(1)))


def shift(x):
    down = jnp.concatenate([jnp.zeros_like(x[:1]), x[:-1]], 0)
    return down + jnp.concatenate([x[:, 1:], x[:, :1]], 1)


MOVEMENT = {
    "concatenate": concatenate,
    "pad": lambda m, shape, before, after: Program(lambda x: jnp.pad(x, list(zip(before, after))), (m.floats(*shape),)),
    "pad_mode": lambda m, shape, mode: Program(lambda x: jnp.pad(x, 1, mode=mode), (m.floats(*shape),)),
    "slice": moved(part),
    "strided_slice": lambda m, shape, strides: Program(
        lambda x: x[tuple(slice(None, None, step) for step in strides)], (m.floats(*shape),)),
    "reverse": moved(jnp.flip),
    "roll": moved(lambda x, axis: jnp.roll(x, x.shape[axis] // 3 + 1, axis)),
    "stack": moved(lambda a, b, c, axis: jnp.stack([a, b, c], axis), 3),
    "split": split,
    "difference": moved(lambda x, axis: jnp.diff(x, axis=axis)),
    "tile": moved(lambda x: jnp.tile(x, (3, 4))),
    "broadcast": moved(lambda x: jnp.broadcast_to(x[:, None], (x.shape[0], 16, x.shape[1]))),
    "repeat": moved(lambda x, axis: jnp.repeat(x, 3, axis)),
    "triangles": lambda m, n: Program(lambda x: jnp.tril(x) + jnp.triu(x, 3), (m.floats(n, n),)),
    "update_slice": update_slice,
    "interleave": moved(lambda a, b: jnp.stack([a, b], -1).reshape(a.shape[0], -1), 2),
    "shift": moved(shift),
    "causal_mask": moved(lambda x: jnp.where(jnp.arange(x.shape[0])[:, None] >= jnp.arange(x.shape[1]), x, -1e9)),
    "grid": lambda m, n: Program(lambda a, b: jnp.sin(a[:, None]) * jnp.cos(b), (m.floats(n), m.floats(n + 7))),
    "channels_last": lambda m, batch, channels, height, width: Program(
        lambda x: jnp.transpose(x, (0, 2, 3, 1)) * 3, (m.floats(batch, channels, height, width),)),
}

BUILDERS = {"elementwise": ELEMENTWISE, "reduction": REDUCTION, "normalisation": NORMALISATION, "transpose": TRANSPOSE,
            "movement": MOVEMENT}
