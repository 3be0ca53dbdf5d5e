#!/usr/bin/env python3
"""make_losses.py DIR [OUT]: writes losses.txt. Trains on the IDX files in DIR (mnist --write-data DIR) with JAX, which
compiles through XLA:CPU, and writes the first ten losses. It implements the formulas independently of train.hlo, so
that it checks train.hlo too. Needs jax, which neither the build nor the tests need."""
import sys

import jax
import jax.numpy as jnp
import numpy as np


def read_idx(path, rank):
    with open(path, "rb") as file:
        data = file.read()
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(int.from_bytes(data[4:8], "big"), -1)


def loss(parameters, images, labels):
    weights, bias = parameters
    logits = jnp.matmul(images, weights, precision="highest") + bias
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1))


@jax.jit
def step(parameters, images, labels):
    value, gradients = jax.value_and_grad(loss)(parameters, images, labels)
    return tuple(p - 0.5 * g for p, g in zip(parameters, gradients)), value


def main():
    folder, out = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "losses.txt"
    images = read_idx(folder + "/train-images-idx3-ubyte", 3).astype(np.float32) / np.float32(255)
    labels = read_idx(folder + "/train-labels-idx1-ubyte", 1)[:, 0].astype(np.int32)
    parameters = (jnp.zeros((784, 10)), jnp.zeros(10))
    with open(out, "w") as file:
        print(f"# First losses of softmax regression (batch 100, rate 0.5) on the drawn digits of seed 1, by XLA:CPU, jaxlib "
              f"{jax.lib.__version__}: make_losses.py", file=file)
        for i in range(10):
            parameters, value = step(parameters, images[100 * i:100 * i + 100], labels[100 * i:100 * i + 100])
            print(f"{float(value):.9g}", file=file)


main()
