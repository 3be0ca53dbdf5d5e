# SPDX-License-Identifier: Apache-2.0
"""Quantizes trained models with `collet quantize`, and counts how many images they still read rightly: the two dense layers
of mnist.py, and a small convolutional network with a batch norm, a residual sum and poolings. JAX trains on any device; the
programs run by `collet run`.

  python templates/jax/quantize.py --collet build/bin/collet --backend cpu"""
import argparse
import pathlib
import subprocess
import tempfile

import jax
import jax.numpy as jnp
import numpy as np

import mnist

TESTS = 1000  # images that no model was trained with, and that no range was found from
CHOICES = [("w8a8", "min-max"), ("w8a8", "percentile"), ("w8a8", "entropy"), ("w8a8", "mse"), ("w8a8-symmetric", "min-max"),
           ("w8", "min-max"), ("w4", "min-max")]


def convolve(x, kernel):
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def pool(x):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def features(p, x):
    return pool(jax.nn.relu(convolve(x.reshape(-1, 16, 16, 1), p["k1"]) + p["b1"]))


def cnn(p, x, statistics=None):
    """Returns logits. Without `statistics`, a mean and a variance for each channel, the norm takes those of the batch."""
    x = features(p, x)
    y = convolve(x, p["k2"])
    mean, variance = statistics or (y.mean((0, 1, 2)), y.var((0, 1, 2)))
    y = jax.nn.relu6((y - mean) * jax.lax.rsqrt(variance + 1e-3) * p["scale"] + p["shift"])
    y = pool(jax.nn.relu(y + (convolve(x, p["k3"]) + p["b3"])))
    return y.reshape(-1, 256) @ p["w"] + p["b"]


def start_cnn(seed=0):
    keys = jax.random.split(jax.random.key(seed), 4)
    return {"k1": jax.random.normal(keys[0], (3, 3, 1, 8)) / 3, "b1": jnp.zeros(8),
            "k2": jax.random.normal(keys[1], (3, 3, 8, 16)) / 8, "scale": jnp.ones(16), "shift": jnp.zeros(16),
            "k3": jax.random.normal(keys[2], (1, 1, 8, 16)) / 3, "b3": jnp.zeros(16),
            "w": jax.random.normal(keys[3], (256, 10)) / 16, "b": jnp.zeros(10)}


def train(network, p, images, labels, steps):
    def loss(p, x, y):
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(network(p, x)), y[:, None], axis=1))

    @jax.jit
    def step(p, state, x, y):
        return mnist.adam(p, state, jax.grad(loss)(p, x, y), 2e-3)

    zeros = jax.tree.map(jnp.zeros_like, p)
    state = (jnp.float32(0), zeros, zeros)
    for i in range(steps):
        at = i * 100 % len(images)
        p, state = step(p, state, images[at:at + 100], labels[at:at + 100])
    return p


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collet", default="collet", help="the command")
    parser.add_argument("--backend", default="cpu", help="where programs run")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--output", type=pathlib.Path, help="keep the programs and the data in this folder")
    options = parser.parse_args()
    images, labels = mnist.digits(5000 + TESTS, seed=1)
    right = labels[5000:]
    mlp = train(mnist.logits, mnist.start()[0], images[:5000], labels[:5000], options.steps)
    p = train(cnn, start_cnn(), images[:5000], labels[:5000], options.steps)
    y = convolve(features(p, images[:1000]), p["k2"])
    statistics = (y.mean((0, 1, 2)), y.var((0, 1, 2)))
    networks = {"mlp": lambda x: mnist.logits(mlp, x), "cnn": lambda x: cnn(p, x, statistics)}

    with tempfile.TemporaryDirectory() as made:
        folder = options.output or pathlib.Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / "ranges.npy", images[:2000])
        np.save(folder / "tests.npy", images[5000:])

        def accuracy(program):
            subprocess.run([options.collet, "run", folder / program, "--backend", options.backend, "--inputs",
                            folder / "tests.npy", "--output", folder / "results"], check=True, stdout=subprocess.DEVNULL)
            results = np.fromfile(folder / "results/output_0.bin", np.float32).reshape(TESTS, 10)
            return 100 * float(np.mean(results.argmax(axis=1) == right))

        worst = 0
        for name, network in networks.items():
            text = jax.jit(network).lower(jax.ShapeDtypeStruct((TESTS, 256), jnp.float32)).as_text()
            (folder / f"{name}.mlir").write_text(text)
            wanted = accuracy(f"{name}.mlir")
            print(f"{name}: float {wanted:.1f} % of {TESTS} new digits are read rightly")
            for scheme, method in CHOICES:
                subprocess.run([options.collet, "quantize", folder / f"{name}.mlir", "--calibrate", folder / "ranges.npy",
                                "--scheme", scheme, "--method", method, "--backend", options.backend, "--no-layer-errors",
                                "-o", folder / f"{name}.{scheme}.mlir"], check=True, stdout=subprocess.DEVNULL)
                got = accuracy(f"{name}.{scheme}.mlir")
                worst = max(worst, wanted - got if scheme.startswith("w8a8") else 0)
                print(f"{name}: {scheme:<15} {method:<11} {got:.1f} %")
    print(f"w8a8 reads at most {worst:.1f} points less than float")
    return 0 if worst <= 1 else 1


if __name__ == "__main__":
    raise SystemExit(main())
