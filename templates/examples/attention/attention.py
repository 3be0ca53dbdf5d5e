# SPDX-License-Identifier: Apache-2.0
"""Reaches the kernel of this example from JAX, by a foreign call and by a composite, and compares both with plain JAX.

    COLLET_BACKEND=build/libcollet_backend_attention.so COLLET_FALLBACK=cpu python attention.py

A composite runs on every device: where nothing claims its name, its own computation runs. A foreign call runs where a kernel with its
name is. Exit code 1 if a result or a gradient differs.
"""
import argparse
import functools
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np

SHAPE = (2, 3, 17, 8)  # batch, heads, places, width
SCALE = 8**-0.5
TOLERANCE = 1e-5


def plain(q, k, v, *, causal, scale):
    scores = jnp.einsum("...qd,...kd->...qk", q, k) * scale
    if causal:
        scores = jnp.where(jnp.tri(q.shape[-2], k.shape[-2], dtype=bool), scores, -jnp.inf)
    return jax.nn.softmax(scores) @ v


def by_composite(q, k, v, *, causal):
    return jax.lax.composite(plain, name="acme.attention")(q, k, v, causal=causal, scale=SCALE)


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def by_foreign_call(q, k, v, causal):
    out = jax.ShapeDtypeStruct((*q.shape[:-1], v.shape[-1]), q.dtype)
    return jax.ffi.ffi_call("acme_attention", out)(q, k, v, causal=causal, scale=np.float32(SCALE))


# JAX cannot look into a foreign call, so its gradient is that of the plain computation.
by_foreign_call.defvjp(lambda q, k, v, causal: (by_foreign_call(q, k, v, causal), (q, k, v)),
                       lambda causal, saved, g: jax.vjp(functools.partial(plain, causal=causal, scale=SCALE), *saved)[1](g))


def inputs():
    return [jax.random.normal(key, SHAPE) for key in jax.random.split(jax.random.key(0), 3)]


def agrees(q, k, v):
    """Returns whether the foreign calls compute what plain JAX computes, not causal and causal."""
    return jnp.stack([jnp.max(jnp.abs(by_foreign_call(q, k, v, causal) - plain(q, k, v, causal=causal, scale=SCALE))) < TOLERANCE
                      for causal in (False, True)])


def write(folder):
    """Writes two programs, which need no JAX where they run."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, function in (("composite", functools.partial(by_composite, causal=True)), ("foreign_call", agrees)):
        (folder / f"{name}.mlir").write_text(jax.jit(function).lower(*inputs()).as_text(), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--composite-only", action="store_true", help="for devices without a kernel of that name")
    parser.add_argument("--write", type=pathlib.Path, metavar="DIR", help="write tests/*.mlir to this folder, and end")
    options = parser.parse_args()
    if options.write:
        write(options.write)
        return 0
    q, k, v = inputs()
    worst = 0.0
    for causal in (False, True):
        expected = jax.jit(functools.partial(plain, causal=causal, scale=SCALE))
        ways = {"composite": functools.partial(by_composite, causal=causal)}
        if not options.composite_only:
            ways["foreign call"] = lambda q, k, v, causal=causal: by_foreign_call(q, k, v, causal)
        for name, way in ways.items():
            gradient = lambda f: jax.jit(jax.grad(lambda q: (f(q, k, v)**2).sum()))(q)
            differences = [float(jnp.max(jnp.abs(jax.jit(way)(q, k, v) - expected(q, k, v)))),
                           float(jnp.max(jnp.abs(gradient(way) - gradient(expected)))) if name == "foreign call" else 0.0]
            print(f"{name}{', causal' if causal else ''}: largest difference {differences[0]:.1e}, of the gradient {differences[1]:.1e}")
            worst = max(worst, *differences)
    return 0 if worst <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
