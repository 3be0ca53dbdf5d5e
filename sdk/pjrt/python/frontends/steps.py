# SPDX-License-Identifier: Apache-2.0
"""Measures training steps of the programs in templates/jax, and the dispatch of a small function, on two platforms in one run.

JAX_PLATFORMS=collet,cpu python steps.py [PLATFORM [REFERENCE]]: the defaults are collet and cpu. Prints microseconds and the
ratio; the two platforms alternate, and the best of several rounds counts.
"""
import argparse
import pathlib
import sys
import time

import jax
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[4] / "templates" / "jax"))
import gpt  # noqa: E402
import lstm  # noqa: E402
import mnist  # noqa: E402


def dispatch():
    function, x = jax.jit(lambda a: a + 1), jax.numpy.ones((4, 4))
    return lambda: function(x), 2000


def mnist_step():
    weights, state = mnist.start()
    x, y = (jax.device_put(a) for a in mnist.digits(100, 0))
    return lambda: mnist.train_step(weights, state, x, y), 20


def lstm_step():
    p, state = lstm.start()
    key = jax.random.key(0)
    return lambda: lstm.train_step(p, state, key), 5


def gpt_step():
    p, state = gpt.start(96)
    tokens = jax.device_put(np.random.default_rng(0).integers(0, 96, (gpt.BATCH, gpt.CONTEXT + 1)).astype(np.int32))
    return lambda: gpt.train_step(p, state, tokens), 3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("platform", nargs="?", default="collet")
    parser.add_argument("reference", nargs="?", default="cpu")
    options = parser.parse_args()
    platforms = [options.platform, options.reference]
    print(f"{'':<12}" + "".join(f"{p:>14}" for p in platforms) + f"{'ratio':>9}")
    for make in (dispatch, mnist_step, lstm_step, gpt_step):
        runs = {}
        for platform in platforms:
            with jax.default_device(jax.devices(platform)[0]):
                run, count = make()
                jax.block_until_ready(run())
                runs[platform] = run
        best = dict.fromkeys(platforms, float("inf"))
        for _ in range(9):
            for platform, run in runs.items():
                with jax.default_device(jax.devices(platform)[0]):
                    begun = time.perf_counter()
                    for _ in range(count):
                        result = run()
                    jax.block_until_ready(result)
                    best[platform] = min(best[platform], (time.perf_counter() - begun) / count)
        ours, reference = (best[p] * 1e6 for p in platforms)
        print(f"{make.__name__:<12}{ours:>11.1f} us{reference:>11.1f} us{ours / reference:>9.2f}", flush=True)


if __name__ == "__main__":
    main()
