# SPDX-License-Identifier: Apache-2.0
"""A classifier of drawn digits: two dense layers, trained with Adam. An ordinary JAX program, which does not select a
device."""
import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

# the lit segments of each digit in a seven-segment display
STROKES = ("abcdef", "bc", "abged", "abgcd", "fgbc", "afgcd", "afgedc", "abc", "abcdefg", "abcdfg")
LINES = {"a": (2, 2, 0, 1), "b": (2, 9, 1, 0), "c": (8, 9, 1, 0), "d": (13, 2, 0, 1), "e": (8, 2, 1, 0), "f": (2, 2, 1, 0),
         "g": (8, 2, 0, 1)}


def digits(count, seed):
    """Returns images of 16 x 16 with digits at random places, of random intensity and with noise, and their labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, count)
    images = rng.normal(0, 0.2, (count, 16, 16)).astype(np.float32)
    for image, label in zip(images, labels):
        top, left, ink = *rng.integers(-1, 3, 2), rng.uniform(0.7, 1.3)
        for stroke in STROKES[label]:
            y, x, down, right = LINES[stroke]
            for i in range(7):
                image[np.clip(y + top + down * i, 0, 15), np.clip(x + left + right * i, 0, 15)] += ink
    return images.reshape(count, 256), labels.astype(np.int32)


def logits(weights, x):
    hidden = jax.nn.relu(x @ weights["w1"] + weights["b1"])
    return hidden @ weights["w2"] + weights["b2"]


def loss(weights, x, y):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits(weights, x)), y[:, None], axis=1))


def adam(weights, state, gradients, rate):
    step, first, second = state
    step += 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)
    scale = rate * jnp.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    weights = jax.tree.map(lambda w, m, v: w - scale * m / (jnp.sqrt(v) + 1e-8), weights, first, second)
    return weights, (step, first, second)


@jax.jit
def train_step(weights, state, x, y):
    value, gradients = jax.value_and_grad(loss)(weights, x, y)
    return (*adam(weights, state, gradients, 2e-3), value)


def start(seed=0, hidden=128):
    keys = jax.random.split(jax.random.key(seed), 2)
    weights = {"w1": jax.random.normal(keys[0], (256, hidden)) / 16, "b1": jnp.zeros(hidden),
               "w2": jax.random.normal(keys[1], (hidden, 10)) / hidden**0.5, "b2": jnp.zeros(10)}
    zeros = jax.tree.map(jnp.zeros_like, weights)
    return weights, (jnp.float32(0), zeros, zeros)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    options = parser.parse_args()
    print("device:", jax.devices()[0])
    images, labels = digits(6000, seed=1)
    weights, state = start()
    begun = time.perf_counter()
    for step in range(options.steps):
        at = step * 100 % 5000
        weights, state, value = train_step(weights, state, images[at:at + 100], labels[at:at + 100])
        if step % 50 == 0 or step == options.steps - 1:
            print(f"step {step:4}  loss {value:.4f}  {time.perf_counter() - begun:6.2f} s", flush=True)
    right = jnp.mean(jnp.argmax(jax.jit(logits)(weights, images[5000:]), axis=1) == labels[5000:])
    print(f"{100 * right:.1f} % of 1000 new digits are read rightly")


if __name__ == "__main__":
    main()
