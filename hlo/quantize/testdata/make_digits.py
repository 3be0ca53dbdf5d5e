#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the data and the trained models of the tests of quantization, with numpy and JAX: digits.txt, mlp.hlo, cnn.hlo.

  PYTHONPATH=templates/jax hlo/quantize/testdata/make_digits.py

The images are those of templates/jax/mnist.py, of 8 x 8 pixels with 16 shades. digits.txt has a line for each: the label, and
a hexadecimal digit for each pixel."""
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

import mnist

FOLDER = pathlib.Path(__file__).parent
IMAGES = 200  # in the file; training has others


def shades(count, seed):
    """Returns images of 8 x 8 whole numbers from 0 to 15, and their labels."""
    images, labels = mnist.digits(count, seed)
    small = images.reshape(count, 8, 2, 8, 2).mean(axis=(2, 4))
    return np.clip(np.round(small * 9), 0, 15).astype(np.int32), labels


def mlp(p, x):
    return jax.nn.relu(x.reshape(-1, 64) @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]


def convolve(x, kernel):
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def pool(x):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def cnn(p, x):
    x = pool(jax.nn.relu(convolve(x.reshape(-1, 8, 8, 1), p["k1"]) + p["b1"]))
    y = jnp.clip(convolve(x, p["k2"]) * p["s2"] + p["b2"], 0, 6)
    y = pool(jax.nn.relu(y + (convolve(x, p["k3"]) + p["b3"])))
    return y.reshape(-1, 32) @ p["w"] + p["b"]


def start_mlp(keys):
    return {"w1": jax.random.normal(keys[0], (64, 12)) / 8, "b1": jnp.zeros(12),
            "w2": jax.random.normal(keys[1], (12, 10)) / 4, "b2": jnp.zeros(10)}


def start_cnn(keys):
    return {"k1": jax.random.normal(keys[0], (3, 3, 1, 4)) / 3, "b1": jnp.zeros(4),
            "k2": jax.random.normal(keys[1], (3, 3, 4, 8)) / 6, "s2": jnp.ones(8), "b2": jnp.zeros(8),
            "k3": jax.random.normal(keys[2], (1, 1, 4, 8)) / 2, "b3": jnp.zeros(8),
            "w": jax.random.normal(keys[3], (32, 10)) / 6, "b": jnp.zeros(10)}


def train(network, p, images, labels, steps=1500):
    def loss(p, x, y):
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(network(p, x)), y[:, None], axis=1))

    @jax.jit
    def step(p, state, x, y):
        return mnist.adam(p, state, jax.grad(loss)(p, x, y), 3e-3)

    zeros = jax.tree.map(jnp.zeros_like, p)
    state = (jnp.float32(0), zeros, zeros)
    for i in range(steps):
        at = i * 100 % len(images)
        p, state = step(p, state, images[at:at + 100], labels[at:at + 100])
    return jax.tree.map(lambda a: jnp.asarray(np.array([float(f"{v:.3g}") for v in np.ravel(a)], np.float32).reshape(a.shape)), p)


def main():
    images, labels = shades(6000 + IMAGES, seed=3)
    lines = [f"{label} {''.join(f'{v:x}' for v in image.ravel())}" for image, label in zip(images[:IMAGES], labels)]
    (FOLDER / "digits.txt").write_text("\n".join(lines) + "\n")
    x = images.reshape(-1, 64).astype(np.float32) / 15
    for network, start in ((mlp, start_mlp), (cnn, start_cnn)):
        p = train(network, start(jax.random.split(jax.random.key(1), 4)), x[IMAGES:], labels[IMAGES:])
        right = np.mean(np.argmax(network(p, x[:IMAGES]), axis=1) == labels[:IMAGES])
        print(f"{network.__name__}: {100 * right:.1f} % of {IMAGES} images are read rightly")
        lowered = jax.jit(lambda x: network(p, x)).lower(jax.ShapeDtypeStruct((50, 64), jnp.float32))
        (FOLDER / f"{network.__name__}.mlir").write_text(lowered.as_text())


if __name__ == "__main__":
    main()
