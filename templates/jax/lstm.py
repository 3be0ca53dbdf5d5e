# SPDX-License-Identifier: Apache-2.0
"""An LSTM that learns to add: it reads numbers and marks, and returns the sum of the two marked numbers. It does not
select a device."""
import argparse

import jax
import jax.numpy as jnp
from jax import lax

from mnist import adam

LENGTH, BATCH, WIDTH = 20, 64, 48


def problems(key):
    numbers, places = jax.random.split(key)
    x = jax.random.uniform(numbers, (BATCH, LENGTH))
    order = jnp.argsort(jax.random.uniform(places, (BATCH, LENGTH)), axis=1)
    marks = (order < 2).astype(x.dtype)
    return jnp.stack([x, marks], axis=-1), jnp.sum(x * marks, axis=1)


def predict(p, x):
    def step(state, now):
        h, c = state
        i, f, g, o = jnp.split(jnp.concatenate([now, h], axis=1) @ p["w"] + p["b"], 4, axis=1)
        c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), None

    zeros = jnp.zeros((x.shape[0], WIDTH))
    (h, _), _ = lax.scan(step, (zeros, zeros), jnp.swapaxes(x, 0, 1))
    return (h @ p["out"])[:, 0] + p["bias"]


@jax.jit
def train_step(p, state, key):
    x, y = problems(key)
    value, gradients = jax.value_and_grad(lambda p: jnp.mean((predict(p, x) - y) ** 2))(p)
    return (*adam(p, state, gradients, 5e-3), value)


def start(seed=0):
    keys = jax.random.split(jax.random.key(seed), 2)
    p = {"w": jax.random.normal(keys[0], (2 + WIDTH, 4 * WIDTH)) / (2 + WIDTH) ** 0.5, "b": jnp.zeros(4 * WIDTH),
         "out": jax.random.normal(keys[1], (WIDTH, 1)) / WIDTH**0.5, "bias": jnp.ones(())}
    zeros = jax.tree.map(jnp.zeros_like, p)
    return p, (jnp.float32(0), zeros, zeros)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400)
    options = parser.parse_args()
    print("device:", jax.devices()[0])
    p, state = start()
    for step in range(options.steps):
        p, state, value = train_step(p, state, jax.random.fold_in(jax.random.key(1), step))
        if step % 50 == 0 or step == options.steps - 1:
            print(f"step {step:4}  squared error {value:.4f}", flush=True)


if __name__ == "__main__":
    main()
