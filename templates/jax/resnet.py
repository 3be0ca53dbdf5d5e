# SPDX-License-Identifier: Apache-2.0
"""A small residual network: convolutions, batch normalisation, pooling, momentum. It does not select a device."""
import argparse

import jax
import jax.numpy as jnp
from jax import lax

from mnist import digits


def convolution(x, w, stride=1):
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def normalise(x, scale, shift):
    mean, variance = jnp.mean(x, (0, 1, 2)), jnp.var(x, (0, 1, 2))
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + shift


def block(p, x, stride):
    y = jax.nn.relu(normalise(convolution(x, p["w1"], stride), *p["n1"]))
    y = normalise(convolution(y, p["w2"]), *p["n2"])
    if "skip" in p:
        x = convolution(x, p["skip"], stride)
    return jax.nn.relu(x + y)


def logits(p, images):
    x = jax.nn.relu(normalise(convolution(images.reshape(-1, 16, 16, 1), p["stem"]), *p["n0"]))
    for stride, b in zip((1, 2, 2), p["blocks"]):
        x = block(b, x, stride)
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return jnp.mean(x, (1, 2)) @ p["out"]


def loss(p, x, y):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits(p, x)), y[:, None], axis=1))


@jax.jit
def train_step(p, momentum, x, y):
    value, g = jax.value_and_grad(loss)(p, x, y)
    momentum = jax.tree.map(lambda m, d: 0.9 * m + d, momentum, g)
    return jax.tree.map(lambda w, m: w - 0.05 * m, p, momentum), momentum, value


def start(seed=0, widths=(8, 8, 16, 32)):
    keys = iter(jax.random.split(jax.random.key(seed), 20))

    def weight(*shape):
        fan = shape[0] * shape[1] * shape[2] if len(shape) == 4 else shape[0]
        return jax.random.normal(next(keys), shape) * (2 / fan) ** 0.5

    def norm(n):
        return jnp.ones(n), jnp.zeros(n)

    blocks = []
    for a, b in zip(widths, widths[1:]):
        p = {"w1": weight(3, 3, a, b), "w2": weight(3, 3, b, b), "n1": norm(b), "n2": norm(b)}
        if a != b:
            p["skip"] = weight(1, 1, a, b)
        blocks.append(p)
    return {"stem": weight(3, 3, 1, widths[0]), "n0": norm(widths[0]), "blocks": blocks, "out": weight(widths[-1], 10)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    print("device:", jax.devices()[0])
    images, labels = digits(2200, seed=2)
    p = start()
    momentum = jax.tree.map(jnp.zeros_like, p)
    for step in range(options.steps):
        at = step * 50 % 2000
        p, momentum, value = train_step(p, momentum, images[at:at + 50], labels[at:at + 50])
        if step % 10 == 0 or step == options.steps - 1:
            print(f"step {step:4}  loss {value:.4f}", flush=True)
    right = jnp.mean(jnp.argmax(jax.jit(logits)(p, images[2000:]), axis=1) == labels[2000:])
    print(f"{100 * right:.1f} % of 200 new digits are read rightly")


if __name__ == "__main__":
    main()
