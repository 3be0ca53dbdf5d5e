# SPDX-License-Identifier: Apache-2.0
"""Other features of JAX: random numbers, loops, linear algebra, Fourier transforms, sorting; the results are compared
with numpy. It does not select a device."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def check(name, got, want, bound=2e-4):
    error = float(np.max(np.abs(np.asarray(got) - np.asarray(want)), initial=0))
    print(f"{name:<44} error {error:.1e}{'' if error <= bound else '   TOO LARGE'}")
    return error <= bound


def main():
    print("device:", jax.devices()[0])
    key = jax.random.key(3)
    a = np.random.default_rng(0).normal(size=(12, 12)).astype(np.float32)
    symmetric = a + a.T
    x = jax.random.normal(key, (20000,))
    right = [
        check("mean and deviation of 20,000 normal numbers", jnp.stack([x.mean(), x.std()]), [0, 1], 0.03),
        check("the same key gives the same numbers", jax.random.uniform(key, (5,)), jax.random.uniform(key, (5,)), 0),
        check("scan: running sums", lax.scan(lambda s, v: (s + v, s + v), 0.0, jnp.arange(50.0))[1],
              np.cumsum(np.arange(50)), 0),
        check("while_loop: the square root of two by Newton",
              lax.while_loop(lambda r: jnp.abs(r * r - 2) > 1e-6, lambda r: (r + 2 / r) / 2, 1.0), np.sqrt(2)),
        check("cond under vmap", jax.vmap(lambda v: lax.cond(v > 0, jnp.sin, jnp.cos, v))(a[0]),
              np.where(a[0] > 0, np.sin(a[0]), np.cos(a[0]))),
        check("matmul", a @ jnp.asarray(a), a @ a),
        check("solve", jnp.linalg.solve(a, a[:, 0]), np.eye(12)[0]),
        check("cholesky", jnp.linalg.cholesky(a @ a.T + np.eye(12)), np.linalg.cholesky(a @ a.T + np.eye(12))),
        check("eigenvalues of a symmetric matrix", jnp.linalg.eigvalsh(symmetric), np.linalg.eigvalsh(symmetric)),
        check("singular values", jnp.linalg.svd(a)[1], np.linalg.svd(a)[1]),
        check("fft and back", jnp.fft.ifft(jnp.fft.fft(a[1])).real, a[1]),
        check("rfft2", jnp.fft.rfft2(a), np.fft.rfft2(a), 1e-3),
        check("sort", jnp.sort(a, axis=0), np.sort(a, axis=0), 0),
        check("gradient of a determinant", jax.grad(jnp.linalg.det)(jnp.eye(4) * 2.0), np.eye(4) * 8),
    ]
    print(f"{sum(right)} of {len(right)} right")
    return 0 if all(right) else 1


if __name__ == "__main__":
    raise SystemExit(main())
