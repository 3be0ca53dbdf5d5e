# SPDX-License-Identifier: Apache-2.0
"""Builds drawn programs of parts of models and of training steps."""
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from draw_arrays import normal
from draw_windows import convolve
from programs import Program


def gru(m, steps, batch, width):
    def function(x, into, again, h):
        def step(h, x):
            update, reset = jnp.split(jax.nn.sigmoid(x @ into[:, :2 * width] + h @ again[:, :2 * width]), 2, -1)
            new = jnp.tanh(x @ into[:, 2 * width:] + (reset * h) @ again[:, 2 * width:])
            h = update * h + (1 - update) * new
            return h, h
        return lax.scan(step, h, x)[1]
    weights = (m.floats(width, 3 * width, scale=0.1), m.floats(width, 3 * width, scale=0.1))
    return Program(function, (m.floats(steps, batch, width), *weights, m.floats(batch, width)))


def lstm_layer(into, again, bias, x, h, c):
    def step(state, x):
        h, c = state
        i, forget, o, g = jnp.split(x @ into + h @ again + bias, 4, -1)
        c = jax.nn.sigmoid(forget) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h
    return lax.scan(step, (h, c), x)[1]


def lstm(function):
    def build(m, steps, batch, width):
        weights = (m.floats(width, 4 * width, scale=0.1), m.floats(width, 4 * width, scale=0.1), m.floats(4 * width))
        return Program(function, (*weights, m.floats(steps, batch, width), m.floats(batch, width), m.floats(batch, width)))
    return build


def attend(q, k, v, allowed=None):
    """Attention of arrays of batch, heads, tokens and width."""
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[-1])
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores if allowed is None else jnp.where(allowed, scores, -1e9), -1), v)


def attention(function, *, tokens_first=False, keys=None, key_heads=None, operands=3):
    """A program of queries, keys and values. `keys` and `key_heads` fix the number of keys' tokens and heads."""
    def build(m, batch, tokens, heads, width):
        shape = lambda tokens, heads: (batch, tokens, heads, width) if tokens_first else (batch, heads, tokens, width)
        others = shape(keys or tokens, key_heads or heads)
        return Program(function, (m.floats(*shape(tokens, heads)), *(m.floats(*others) for _ in range(operands - 1))))
    return build


def linear_attention(q, k, v):
    q, k = jax.nn.elu(q) + 1, jax.nn.elu(k) + 1
    mixed = jnp.einsum("bhsd,bhde->bhse", q, jnp.einsum("bhsd,bhse->bhde", k, v))
    return mixed / (jnp.einsum("bhsd,bhd->bhs", q, k.sum(2))[..., None] + 1e-6)


def sliding_window(q, k, v):
    places = jnp.arange(q.shape[2])
    return attend(q, k, v, jnp.abs(places[:, None] - places) < 32)


def rope(x):
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[1])[:, None, None] * 1e4 ** (-jnp.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * jnp.cos(angle) - b * jnp.sin(angle), a * jnp.sin(angle) + b * jnp.cos(angle)], -1).astype(x.dtype)


def decode(m, batch, heads, length, width):
    """Attention of one token, whose key and value are put into the arrays of earlier ones."""
    def function(q, keys, values, key, value, place):
        keys = lax.dynamic_update_slice(keys, key, (0, 0, place, 0))
        values = lax.dynamic_update_slice(values, value, (0, 0, place, 0))
        return attend(q, keys, values, jnp.arange(length) <= place), keys, values
    one, earlier = (batch, heads, 1, width), (batch, heads, length, width)
    return Program(function, (m.floats(*one), m.floats(*earlier), m.floats(*earlier), m.floats(*one), m.floats(*one), np.int32(length // 2)))


def weights(m, *shape):
    return m.floats(*shape, scale=0.05)


def multi_head(m, batch, tokens, width):
    def function(x, into, out):
        q, k, v = (part.reshape(batch, tokens, 4, width // 4) for part in jnp.split(x @ into, 3, -1))
        return jax.nn.dot_product_attention(q, k, v).reshape(batch, tokens, width) @ out
    return Program(function, (m.floats(batch, tokens, width), weights(m, width, 3 * width), weights(m, width, width)))


def swiglu(m, batch, tokens, width):
    function = lambda x, gate, up, down: (jax.nn.silu(x @ gate) * (x @ up)) @ down
    return Program(function, (m.floats(batch * tokens, width), weights(m, width, 2 * width), weights(m, width, 2 * width),
                              weights(m, 2 * width, width)))


def mixer(m, batch, tokens, width):
    def function(x, up, down):
        return x + jnp.swapaxes(jax.nn.gelu(jnp.swapaxes(x, 1, 2) @ up) @ down, 1, 2)
    return Program(function, (m.floats(batch, tokens, width), weights(m, tokens, 2 * tokens), weights(m, 2 * tokens, tokens)))


def block_layer(parameters, x):
    """A block of a transformer with four heads."""
    into, out, up, down = parameters
    batch, tokens, width = x.shape
    parts = jnp.split(normal(x, -1) @ into, 3, -1)
    q, k, v = (part.reshape(batch, tokens, 4, width // 4).transpose(0, 2, 1, 3) for part in parts)
    x = x + attend(q, k, v).transpose(0, 2, 1, 3).reshape(x.shape) @ out
    return x + jax.nn.gelu(normal(x, -1) @ up) @ down


def block(function):
    def build(m, batch, tokens, width):
        parameters = [weights(m, width, 3 * width), weights(m, width, width), weights(m, width, 4 * width), weights(m, 4 * width, width)]
        return Program(function, (parameters, m.floats(batch, tokens, width)))
    return build


def state_space(m, batch, tokens, width):
    def function(decay, x, out):
        combine = lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1])
        return lax.associative_scan(combine, (jax.nn.sigmoid(decay), x), axis=1)[1] * out
    return Program(function, tuple(m.floats(batch, tokens, width) for _ in range(3)))


def low_rank(m, batch, tokens, width):
    function = lambda x, w, a, b: x @ w + (x @ a) @ b * 0.5
    return Program(function, (m.floats(batch * tokens, width), weights(m, width, width), weights(m, width, 8), weights(m, 8, width)))


def experts(m, batch, tokens, width, experts):
    def function(x, gate, w):
        return jnp.einsum("te,ted->td", jax.nn.softmax(x @ gate, -1), jnp.einsum("td,edf->tef", x, w))
    return Program(function, (m.floats(batch * tokens, width), weights(m, width, experts), weights(m, experts, width, width)))


def patches(m, batch, patch, width):
    side = 224 // patch

    def function(x, w):
        return x.reshape(batch, side, patch, side, patch, 3).transpose(0, 1, 3, 2, 4, 5).reshape(batch, side * side, -1) @ w
    return Program(function, (m.floats(batch, 224, 224, 3), weights(m, patch * patch * 3, width)))


def filters(m, *shape):
    return m.floats(*shape, scale=0.1)


def residual(m, batch, side, channels):
    def function(x, first, second):
        return jax.nn.relu(x + convolve(jax.nn.relu(convolve(x, first)), second))
    shape = (3, 3, channels, channels)
    return Program(function, (m.floats(batch, side, side, channels), filters(m, *shape), filters(m, *shape)))


def upsample(m, batch, side, channels):
    large = (batch, 2 * side, 2 * side, channels)

    def function(x, kept, w):
        return convolve(jnp.concatenate([jax.image.resize(x, large, "nearest"), kept], -1), w)
    return Program(function, (m.floats(batch, side, side, channels), m.floats(*large), filters(m, 3, 3, 2 * channels, channels)))


def convnext(m, batch, side, channels):
    def function(x, depthwise, up, down):
        return x + jax.nn.gelu(normal(convolve(x, depthwise, feature_group_count=channels), -1) @ up) @ down
    return Program(function, (m.floats(batch, side, side, channels), filters(m, 7, 7, 1, channels), filters(m, channels, 4 * channels),
                              filters(m, 4 * channels, channels)))


def adam(m, shape):
    def function(p, gradient, mean, square):
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient * gradient
        return p - 1e-3 * (mean / 0.1) / (jnp.sqrt(square / 0.001) + 1e-8), mean, square
    return Program(function, (m.floats(*shape), m.floats(*shape), m.floats(*shape), np.abs(m.floats(*shape))))


def momentum(m, arrays, shape):
    def function(parameters, gradients, means):
        means = [0.9 * mean + gradient for mean, gradient in zip(means, gradients)]
        return [p - 0.1 * mean for p, mean in zip(parameters, means)], means
    # The arrays have different numbers of rows, so that no loop can serve for all.
    return Program(function, tuple([m.floats(shape[0] + i, shape[1]) for i in range(arrays)] for _ in range(3)))


def perceptron_gradient(m, batch, widths):
    def loss(layers, x):
        for w in layers:
            x = jnp.tanh(x @ w)
        return jnp.mean(x ** 2)
    layers = [filters(m, *sizes) for sizes in zip(widths, widths[1:])]
    return Program(jax.value_and_grad(loss), (layers, m.floats(batch, widths[0])))


def graph(m, nodes, width):
    def function(x, w, sources, targets):
        return jax.nn.relu(jax.ops.segment_sum((x @ w)[sources], targets, nodes))
    return Program(function, (m.floats(nodes, width), weights(m, width, width), m.indices(nodes * 8, nodes), m.indices(nodes * 8, nodes)))


def word_pairs(m, words, width):
    def loss(table, context, i, j):
        return -jnp.mean(jax.nn.log_sigmoid((table[i] * context[j]).sum(-1)))
    return Program(jax.value_and_grad(loss), (m.floats(words, width), m.floats(words, width), m.indices(512, words), m.indices(512, words)))


def k_means(m, count):
    def function(x, centres):
        nearest = jnp.argmin(((x[:, None] - centres) ** 2).sum(-1), 1)
        return jax.ops.segment_sum(x, nearest, 20) / (jnp.bincount(nearest, length=20)[:, None] + 1)
    # Each point lies close to one centre, so that rounding does not decide which one is the nearest.
    centres = m.floats(20, 16)
    return Program(function, (centres[m.indices(count, 20)] + m.floats(count, 16, scale=0.1), centres))


def mixture(m, count):
    def function(x, means, deviations):
        return jax.nn.logsumexp(-0.5 * (((x[:, None] - means) / deviations) ** 2).sum(-1) - jnp.log(deviations).sum(-1), 1)
    return Program(function, (m.floats(count, 8), m.floats(10, 8), np.abs(m.floats(10, 8)) + np.float32(0.5)))


def neighbours(m, count):
    """The distances of the nearest points; not which these are, because rounding may decide that."""
    def function(x, points):
        return lax.top_k(2 * x @ points.T - (x ** 2).sum(1)[:, None] - (points ** 2).sum(1), 5)[0]
    return Program(function, (m.floats(200, 32), m.floats(count, 32)))


def gaussian_process(m, n):
    def function(x, y):
        covariance = jnp.exp(-0.5 * (x[:, None] - x) ** 2) + 0.1 * jnp.eye(n)
        return jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(covariance), True), y)
    return Program(function, (m.floats(n), m.floats(n)))


def principal_components(m, count, n):
    def function(x):
        x = x - x.mean(0)
        return jnp.linalg.eigh(x.T @ x / count)
    # The columns' deviations differ, because the vectors of close eigenvalues are not determined.
    return Program(function, (m.floats(count, n) * np.linspace(1, 8, n, dtype=np.float32),), magnitudes=True, tolerance=1e-2)


MODEL = {
    "gru": gru, "lstm": lstm(lstm_layer),
    "lstm_gradient": lstm(jax.grad(lambda *arguments: jnp.sum(lstm_layer(*arguments) ** 2), (0, 1))),
    "attention": attention(attend),
    "causal": attention(lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True), tokens_first=True),
    "grouped_query": attention(jax.nn.dot_product_attention, tokens_first=True, key_heads=2),
    "cross_attention": attention(attend, keys=77),
    "linear_attention": attention(linear_attention),
    "sliding_window": attention(sliding_window),
    "rope": attention(rope, tokens_first=True, operands=1),
    "decode": decode, "multi_head": multi_head, "swiglu": swiglu, "mixer": mixer, "block": block(block_layer),
    "block_gradient": block(jax.grad(lambda parameters, x: jnp.sum(block_layer(parameters, x) ** 2))),
    "state_space": state_space, "low_rank": low_rank, "experts": experts, "patches": patches, "residual": residual, "upsample": upsample,
    "convnext": convnext, "adam": adam, "momentum": momentum, "perceptron_gradient": perceptron_gradient, "graph": graph,
    "word_pairs": word_pairs, "k_means": k_means, "mixture": mixture, "neighbours": neighbours, "gaussian_process": gaussian_process,
    "principal_components": principal_components,
}

BUILDERS = {"model": MODEL}
