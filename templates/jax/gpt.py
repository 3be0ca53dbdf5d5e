# SPDX-License-Identifier: Apache-2.0
"""A small GPT on characters, trained on a text (by default its own source), with samples during training. It does not
select a device."""
import argparse
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mnist import adam

LAYERS, WIDTH, HEADS, CONTEXT, BATCH = 2, 64, 4, 64, 16


def norm(x, p):
    x = x - jnp.mean(x, -1, keepdims=True)
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * p[0] + p[1]


def attention(p, x):
    batch, length, _ = x.shape
    q, k, v = jnp.split((x @ p["qkv"]).reshape(batch, length, HEADS, -1), 3, axis=-1)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / (WIDTH // HEADS) ** 0.5
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e30)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v).reshape(batch, length, WIDTH) @ p["project"]


def logits(p, tokens):
    x = p["letters"][tokens] + p["places"][: tokens.shape[1]]
    for layer in p["layers"]:
        x = x + attention(layer, norm(x, layer["n1"]))
        x = x + jax.nn.gelu(norm(x, layer["n2"]) @ layer["up"]) @ layer["down"]
    return norm(x, p["last"]) @ p["letters"].T


@jax.jit
def train_step(p, state, tokens):
    def loss(p):
        chances = jax.nn.log_softmax(logits(p, tokens[:, :-1]))
        return -jnp.mean(jnp.take_along_axis(chances, tokens[:, 1:, None], axis=-1))

    value, gradients = jax.value_and_grad(loss)(p)
    return (*adam(p, state, gradients, 3e-3), value)


@jax.jit
def sample(p, key):
    def step(tokens, i):
        here = lax.dynamic_index_in_dim(logits(p, tokens[None]), i, 1, keepdims=False)[0]
        letter = jax.random.categorical(jax.random.fold_in(key, i), here / 0.8)
        return tokens.at[i + 1].set(letter), letter

    return lax.scan(step, jnp.zeros(CONTEXT, jnp.int32), jnp.arange(CONTEXT - 1))[1]


def start(letters, seed=0):
    keys = iter(jax.random.split(jax.random.key(seed), 4 * LAYERS + 2))

    def weight(*shape):
        return jax.random.normal(next(keys), shape) * 0.5 / shape[0] ** 0.5

    def norms():
        return jnp.ones(WIDTH), jnp.zeros(WIDTH)

    layers = [{"qkv": weight(WIDTH, 3 * WIDTH), "project": weight(WIDTH, WIDTH), "up": weight(WIDTH, 4 * WIDTH),
               "down": weight(4 * WIDTH, WIDTH), "n1": norms(), "n2": norms()} for _ in range(LAYERS)]
    p = {"letters": weight(letters, WIDTH), "places": weight(CONTEXT, WIDTH), "layers": layers, "last": norms()}
    zeros = jax.tree.map(jnp.zeros_like, p)
    return p, (jnp.float32(0), zeros, zeros)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--text", type=pathlib.Path, default=pathlib.Path(__file__))
    options = parser.parse_args()
    print("device:", jax.devices()[0])
    text = options.text.read_text()
    alphabet = sorted(set(text))
    tokens = np.array([alphabet.index(c) for c in text], np.int32)
    p, state = start(len(alphabet))
    rng = np.random.default_rng(0)
    begun = time.perf_counter()
    for step in range(options.steps):
        at = rng.integers(0, len(tokens) - CONTEXT - 1, BATCH)
        p, state, value = train_step(p, state, np.stack([tokens[a:a + CONTEXT + 1] for a in at]))
        if step % 50 == 0 or step == options.steps - 1:
            words = "".join(alphabet[t] for t in np.asarray(sample(p, jax.random.key(step))))
            print(f"step {step:4}  loss {value:.4f}  {time.perf_counter() - begun:6.2f} s  {words!r}", flush=True)


if __name__ == "__main__":
    main()
