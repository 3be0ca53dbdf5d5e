# SPDX-License-Identifier: Apache-2.0
"""Builds drawn programs of images."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from draw_windows import ADD, reduce_windows
from programs import Program


def images(function, channels=None):
    """A program of images; `channels` fixes their number."""
    chosen = channels
    return lambda m, batch, side, channels: Program(function, (m.floats(batch, side, side, chosen or channels),))


def resized(method, change=lambda function: function):
    def build(m, batch, side, channels, to):
        function = lambda x: jax.image.resize(x, (batch, to, to, channels), method)
        return Program(change(function), (m.floats(batch, side, side, channels),))
    return build


def plane(function):
    return lambda m, side: Program(function, (m.floats(side, side),))


def crop(m, batch, side, channels):
    function = lambda x, i: lax.dynamic_slice(x, (0, i, i, 0), (batch, side // 2, side // 2, channels))
    return Program(function, (m.floats(batch, side, side, channels), np.int32(3)), tolerance=0)


def jitter(m, batch, side, channels):
    def function(x, key):
        return jnp.clip(x * (1 + 0.1 * jax.random.normal(jax.random.wrap_key_data(key), (batch, 1, 1, 1))) + 0.1, 0, 1)
    return Program(function, (m.floats(batch, side, side, channels), np.array([1, 2], np.uint32)))


def cut_mix(m, batch, side, channels):
    def function(x, y, i):
        lower = jnp.arange(side) > i
        return jnp.where((lower[:, None] & lower)[..., None], x, y)
    return Program(function, (m.floats(batch, side, side, channels), m.floats(batch, side, side, channels), np.int32(10)), tolerance=0)


def pixel_shuffle(m, batch, side, channels):
    half = side // 2

    def function(x):
        return x.reshape(batch, half, half, 2, 2, channels).transpose(0, 1, 3, 2, 4, 5).reshape(batch, 2 * half, 2 * half, channels)
    return Program(function, (m.floats(batch, half, half, 4 * channels),), tolerance=0)


def scale_bytes(m, batch, side, channels):
    function = lambda x, mean, deviation: (x.astype(jnp.float32) / 255 - mean) / deviation
    return Program(function, (m.floats(batch, side, side, channels), m.floats(channels, dtype="float32"),
                              np.abs(m.floats(channels, dtype="float32")) + np.float32(0.5)), tolerance=1e-5)


def coordinates(m, side):
    function = lambda x, places: jax.scipy.ndimage.map_coordinates(x, list(places), order=1)
    return Program(function, (m.floats(side, side), (m.random.random((2, side, side)) * side).astype(np.float32)))


def affine(m, side):
    def function(x, matrix):
        grid = jnp.stack(jnp.meshgrid(jnp.arange(side), jnp.arange(side), indexing="ij")).astype(jnp.float32)
        rows, columns = jnp.clip(jnp.einsum("ij,jhw->ihw", matrix, grid).astype(jnp.int32), 0, side - 1)
        return x[rows, columns]
    # Rounding cannot decide which pixels are read: each coordinate is one product.
    return Program(function, (m.floats(side, side), np.eye(2, dtype=np.float32) * np.float32(0.9)), tolerance=0)


def window_means(x):
    return reduce_windows(x, ADD, (5, 5), (1, 1), "VALID") / 25


def similarity(m, side):
    def function(x, y):
        a, b = window_means(x), window_means(y)
        return (2 * a * b + 0.01) / (a ** 2 + b ** 2 + 0.01)
    return Program(function, (m.floats(side, side), m.floats(side, side)))


def gauss(m, side):
    return Program(lambda x, g: jnp.apply_along_axis(lambda row: jnp.convolve(row, g, "same"), 1, x), (m.floats(side, side), m.floats(9)))


def median(x):
    return jnp.median(jnp.stack([jnp.roll(jnp.roll(x, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1)]), 0)


IMAGE = {
    **{method: resized(method) for method in ("linear", "nearest", "cubic", "lanczos3")},
    "linear_gradient": resized("linear", lambda function: jax.grad(lambda x: jnp.sum(function(x) ** 2))),
    "rotate": images(lambda x: jnp.rot90(x, axes=(1, 2))),
    "normalise": images(lambda x: (x - x.mean((1, 2), keepdims=True)) / (x.std((1, 2), keepdims=True) + 1e-5)),
    "crop": crop,
    "mirror": images(lambda x: x[:, :, ::-1]),
    # The limit is the half of an element, which has no rounding error.
    "threshold": images(lambda x: jnp.where(x > x.max() * 0.5, 255, 0).astype(jnp.uint8)),
    "gray": images(lambda x: (x * jnp.array([0.3, 0.6, 0.1])).sum(-1), channels=3),
    "jitter": jitter,
    "cut_mix": cut_mix,
    "pixel_shuffle": pixel_shuffle,
    "classes": images(lambda x: jnp.argmax(x, -1).astype(jnp.uint8), channels=21),
    "cosine_transform": images(lambda x: jax.scipy.fft.dct(x, axis=2)),
    "scale_bytes": scale_bytes,
    "coordinates": coordinates,
    "histogram": plane(lambda x: jnp.histogram(x, bins=32, range=(-3, 3))[0]),
    "sobel": plane(lambda x: jnp.hypot(x[2:, 1:-1] - x[:-2, 1:-1], x[1:-1, 2:] - x[1:-1, :-2])),
    "median": plane(median),
    "box": plane(lambda x: reduce_windows(x, ADD, (7, 7), (1, 1), "SAME") / 49),
    "gauss": gauss,
    "affine": affine,
    "similarity": similarity,
}

BUILDERS = {"image": IMAGE}
