# SPDX-License-Identifier: Apache-2.0
"""Checks the linear algebra of this package through the plugin, against numpy.

Run by hand in an environment with jax: PYTHONPATH=sdk/pjrt/python COLLET_PJRT_LIBRARY=.../libcollet_pjrt.so
COLLET_BACKEND_PATH=... JAX_PLATFORMS=collet python sdk/pjrt/python/lowerings_test.py
"""
import ctypes
import gc
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import types
import unittest
import unittest.mock
import warnings
import weakref

os.environ.setdefault("COLLET_DEVICES", "2")

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.lax import linalg as lax_linalg
from jax.experimental import checkify
from jax.lax import linalg
from jax_plugins.collet import callbacks, foreign, schur


def matrix(m, n, dtype, seed=0, rank=None):
    rng = np.random.default_rng(seed)
    rank = rank or min(m, n)

    def part(rows, columns):
        x = rng.standard_normal((rows, columns))
        return x + 1j * rng.standard_normal((rows, columns)) if np.issubdtype(dtype, np.complexfloating) else x

    return (part(m, n) if rank == min(m, n) else part(m, rank) @ part(rank, n)).astype(dtype)


TYPES = (np.float32, np.complex64)


class Start(unittest.TestCase):
    def test_a_platform_that_cannot_be_registered_says_why(self):
        with tempfile.TemporaryDirectory() as folder:
            library = pathlib.Path(folder) / "libcollet_pjrt.so"
            alone = {"COLLET_PJRT_LIBRARY": str(library)}
            for text in ("there is no PJRT library at", "has no PJRT table"):
                for platforms, code in (("collet", 1), ("", 0)):
                    done = subprocess.run([sys.executable, "-c", "import jax; print(jax.devices())"], capture_output=True, text=True,
                                          env=dict(os.environ, JAX_PLATFORMS=platforms, **alone), check=False)
                    self.assertEqual(done.returncode, code, done.stderr)
                    self.assertIn(text, done.stderr)
                    if code:
                        self.assertIn("could not be registered", done.stderr.splitlines()[-1])
                # The library without the one that it opens.
                shutil.copy(os.environ["COLLET_PJRT_LIBRARY"], library)


class Lowerings(unittest.TestCase):
    def close(self, got, want, size):
        got, want = np.asarray(got), np.asarray(want)
        self.assertEqual(got.shape, want.shape)
        error = np.max(np.abs(got - want), initial=0)
        self.assertLessEqual(error, 3e-6 * size * max(1, np.max(np.abs(want), initial=0)))

    def unitary(self, q):
        self.close(np.asarray(q).conj().T @ q, np.eye(q.shape[1]), q.shape[0])

    def test_device(self):
        self.assertNotIn(jax.devices()[0].platform, ("cpu", "gpu"))

    def test_explicit_shardings(self):
        mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))
        spec = jax.sharding.PartitionSpec("x")
        a = np.stack([matrix(5, 5, np.float32, seed) for seed in range(4)])
        b = np.stack([matrix(5, 2, np.float32, seed) for seed in range(4)])
        with jax.set_mesh(mesh):
            split, right = jax.sharding.reshard(a, spec), jax.sharding.reshard(b, spec)
            for jit in (lambda f: f, jax.jit):
                sign, size = jit(jnp.linalg.slogdet)(split)
                self.close(sign * jnp.exp(size), np.linalg.det(a), 50)
                x = jit(jnp.linalg.solve)(split, right)
                self.assertEqual(x.sharding.spec, jax.sharding.PartitionSpec("x", None, None))
                self.close(x, np.linalg.solve(a, b), 100)
                w = jit(jnp.linalg.eigvalsh)(split)
                self.assertEqual(w.sharding.spec, jax.sharding.PartitionSpec("x", None))
                self.close(w, np.linalg.eigvalsh((a + a.transpose(0, 2, 1)) / 2), 10)
                self.close(jit(jnp.linalg.svd)(split)[1], np.linalg.svd(a)[1], 10)

    def test_eigh(self):
        for dtype in TYPES:
            for n in (1, 2, 3, 8, 31):
                a = matrix(n, n, dtype, n)
                a = a + a.conj().T
                w, v = jnp.linalg.eigh(a)
                self.close(w, np.linalg.eigvalsh(a), n)
                self.unitary(v)
                self.close(a @ v, v * w, n)

    def test_eigh_of_equal_values_and_zero(self):
        for a in (np.eye(5, dtype=np.float32), np.zeros((4, 4), np.float32), np.ones((6, 6), np.float32)):
            w, v = jnp.linalg.eigh(a)
            self.close(w, np.linalg.eigvalsh(a), 6)
            self.unitary(v)

    def accurate(self, a, w, v):
        """Checks residual and orthogonality in units of the rounding error, which must not grow with the number of rotations."""
        a, w, v = (np.asarray(x).astype(np.complex128) for x in (a, w, v))
        n, eps = a.shape[0], np.finfo(np.float32).eps
        self.assertLess(np.linalg.norm(a @ v - v * w), (4 + n**0.5) * eps * np.linalg.norm(a) + 1e-300)
        self.assertLess(np.linalg.norm(v.conj().T @ v - np.eye(n)), 16 * eps * n**0.5)
        self.assertLess(np.max(np.abs(w - np.linalg.eigvalsh(a))), 8 * eps * np.linalg.norm(a) + 1e-300)

    def hard(self, n, dtype):
        """Returns difficult Hermitian matrices of size n: tiny, huge, graded, of low rank, with nearly equal and with equal eigenvalues."""
        any_ = matrix(n, n, np.complex128 if dtype == np.complex64 else np.float64, n)
        q = np.linalg.qr(any_)[0]
        steep = np.logspace(0, -20, n)
        low = any_[:, : 1 + n // 3]
        signs = np.where(np.arange(n) < n // 2, 1.0, -1.0)
        info = np.finfo(np.float32)
        yield any_
        yield any_ * float(info.tiny) * 16
        yield any_ / np.abs(any_).max() * (float(info.max) / n)
        yield any_ * np.outer(steep, steep)
        yield low @ low.conj().T
        yield low[:, :1] @ low[:, :1].conj().T
        yield (q * signs) @ q.conj().T
        yield (q * (signs + 1e-6 * any_[0].real)) @ q.conj().T
        yield (q * (1 + 3 * info.eps * any_[0].real)) @ q.conj().T
        yield 1 / (np.arange(n)[:, None] + np.arange(n) + 1)

    def test_eigh_is_accurate(self):
        eigh = jax.jit(jnp.linalg.eigh)
        for dtype in TYPES:
            for n in (2, 5, 50, 100):
                for a in self.hard(n, dtype):
                    a = (a / 2 + a.conj().T / 2).astype(dtype)
                    self.accurate(a, *eigh(a))

    def test_eigh_of_a_batch_that_converges_in_turns(self):
        n = 60
        a = np.stack([np.eye(n), np.zeros((n, n)), *self.hard(n, np.float32)]).astype(np.float32)
        a = a / 2 + a.swapaxes(1, 2) / 2
        for one, w, v in zip(a, *jax.vmap(jnp.linalg.eigh)(a)):
            self.accurate(one, w, v)

    def test_eigh_and_svd_of_what_is_not_finite(self):
        for n in (1, 4):
            for value in (np.nan, np.inf):
                a = np.eye(n, dtype=np.float32)
                a[0, 0] = value
                w, v = jnp.linalg.eigh(np.stack([a, np.eye(n, dtype=np.float32)]))
                self.assertTrue(np.isnan(w[0]).any() and np.isnan(v[0]).any())
                self.close(w[1], np.ones(n), n)
                self.unitary(v[1])

    def test_svd_of_graded_matrices(self):
        for dtype in TYPES:
            for a in self.hard(40, dtype):
                a = a.astype(dtype)
                u, s, vh = jnp.linalg.svd(a)
                self.unitary(u)
                self.unitary(np.asarray(vh).conj().T)
                size = np.max(np.abs(a))
                self.close((np.asarray(u) * (s / size)) @ np.asarray(vh), a / size, 40)

    def test_cholesky_of_matrices_that_are_not_definite(self):
        for dtype in TYPES:
            a = matrix(4, 4, dtype)
            bad = np.stack([a @ a.conj().T, np.ones((4, 4), dtype), -np.eye(4, dtype=dtype)])
            factors = np.asarray(jnp.linalg.cholesky(bad))
            self.close(factors[0], np.linalg.cholesky(bad[0]), 4)
            self.assertTrue(np.isnan(factors[1:][:, np.tri(4, dtype=bool)]).all())

    def test_sparse_solve(self):
        from jax.experimental.sparse.linalg import spsolve
        a = np.array([[2, 0, 1], [0, 3, 0], [1, 0, 4]], np.float32)
        data, indices, starts = np.array([2, 1, 3, 1, 4], np.float32), np.array([0, 2, 1, 0, 2]), np.array([0, 2, 3, 5])
        b = np.arange(3, dtype=np.float32)
        self.close(spsolve(data, indices, starts, b), np.linalg.solve(a, b), 3)

    def test_checks_that_are_for_debugging_do_nothing(self):
        def f(x):
            checkify.debug_check(x < 0, "never")
            return x

        self.assertEqual(jax.jit(f)(1.0), 1.0)

    def test_tridiagonal_solve(self):
        for dtype in TYPES:
            for n in (1, 2, 3, 17):
                dl, d, du = (matrix(1, n, dtype, n + i)[0] for i in range(3))
                d[0] = 0 if n > 1 else d[0]  # requires an exchange of rows
                a = np.diag(d) + np.diag(dl[1:], -1) + np.diag(du[:-1], 1)
                x = matrix(n, 2, dtype, 9)
                for perturb in (False, True):
                    got = linalg.tridiagonal_solve(dl, d, du, a @ x, perturb_singular=perturb)
                    self.close(a @ got, a @ x, 10 * n)

    def test_tridiagonal_solve_of_singular_matrices(self):
        zero, one = np.zeros((3,), np.float32), np.ones((3, 1), np.float32)
        self.assertFalse(np.isfinite(linalg.tridiagonal_solve(zero, zero, zero, one)).any())
        x = np.asarray(linalg.tridiagonal_solve(zero, zero, zero, one, perturb_singular=True))
        self.assertTrue(np.isfinite(x).all() and (np.abs(x) > 1e6).all())

    def test_svd(self):
        for dtype in TYPES:
            for m, n, rank in ((1, 1, 1), (5, 3, 3), (3, 5, 3), (8, 8, 8), (9, 6, 2), (4, 7, 1)):
                a = matrix(m, n, dtype, m + n, rank)
                for full in (False, True):
                    u, s, vh = jnp.linalg.svd(a, full_matrices=full)
                    self.close(s, np.linalg.svd(a)[1], m + n)
                    self.unitary(u)
                    self.unitary(np.asarray(vh).conj().T)
                    k = min(m, n)
                    self.close((np.asarray(u)[:, :k] * s) @ np.asarray(vh)[:k], a, m + n)
                self.close(jnp.linalg.svd(a, compute_uv=False), s, m + n)

    def test_batches_and_empty(self):
        a = np.stack([matrix(4, 3, np.float32, i) for i in range(6)]).reshape(2, 3, 4, 3)
        self.close(jnp.linalg.svd(a, compute_uv=False), np.linalg.svd(a, compute_uv=False), 4)
        for shape in ((0, 3), (3, 0), (0, 0)):
            for full in (False, True):
                got, want = (f(np.zeros(shape, np.float32), full_matrices=full) for f in (jnp.linalg.svd, np.linalg.svd))
                for x, y in zip(got, want):
                    self.close(x, y, 1)
        self.assertEqual(jnp.linalg.eigh(np.zeros((0, 3, 3), np.float32))[1].shape, (0, 3, 3))

    def test_qr(self):
        for dtype in TYPES:
            for m, n in ((1, 1), (5, 3), (3, 5), (7, 7)):
                a = matrix(m, n, dtype, m * n)
                for mode in ("reduced", "complete"):
                    q, r = jnp.linalg.qr(a, mode=mode)
                    self.unitary(q)
                    self.close(q @ r, a, m + n)
                    self.close(r, np.linalg.qr(a, mode=mode)[1], m + n)
                q, r, p = jax.scipy.linalg.qr(a, pivoting=True)
                self.close(q @ r, a[:, p], m + n)
                d = np.abs(np.diag(r))
                self.assertTrue(np.all(d[1:] <= d[:-1] * (1 + 1e-5)))

    def test_hessenberg_and_tridiagonal(self):
        for dtype in TYPES:
            for n in (1, 2, 3, 9):
                a = matrix(n, n, dtype, n)
                h, q = jax.scipy.linalg.hessenberg(a, calc_q=True)
                self.unitary(q)
                self.close(np.asarray(q) @ h @ np.asarray(q).conj().T, a, 4 * n)
                self.close(np.tril(h, -2), np.zeros((n, n)), n)
                if n == 1:
                    continue
                s = a + a.conj().T
                for lower in (False, True):
                    _, d, e, _ = linalg.tridiagonal(s, lower=lower)
                    t = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
                    self.close(np.linalg.eigvalsh(t), np.linalg.eigvalsh(s), 4 * n)

    def test_schur(self):
        for dtype in TYPES:
            for n in (1, 2, 3, 4, 10, 25):
                a = matrix(n, n, dtype, n + 1)
                t, z = jax.scipy.linalg.schur(a)
                self.unitary(z)
                self.close(np.asarray(z) @ t @ np.asarray(z).conj().T, a, 8 * n)
                below = np.diag(t, -1)
                self.close(np.tril(t, -2), np.zeros((n, n)), n)
                if dtype == np.complex64:
                    self.assertFalse(np.any(below))
                else:
                    self.assertFalse(np.any((below[1:] != 0) & (below[:-1] != 0)))

    def check_schur(self, a):
        """Checks this package's own functions, which run where the backend has no Schur form."""
        t, z = map(np.asarray, jax.jit(schur.schur)(a))
        self.unitary(z)
        self.close(z @ t @ z.conj().T, a, 8 * a.shape[0])
        return t

    def test_schur_of_blocks_in_standard_form(self):
        for a in ([[0, 1], [-1, 0]], [[2, 3], [-3, 2]], [[1, 5, 7], [0, 2, 3], [0, -3, 2]]):
            a = np.array(a, np.float32)
            self.close(np.sort_complex(np.linalg.eigvals(self.check_schur(a))), np.sort_complex(np.linalg.eigvals(a)), 10)
        for n in (4, 7):
            self.check_schur(np.eye(n, k=1, dtype=np.float32) - np.eye(n, k=-1, dtype=np.float32))

    def test_reflectors_of_a_qr_step_touch_three_rows(self):
        def bodies(jaxpr, inside):
            for equation in jaxpr.eqns:
                if inside:
                    yield equation
                for name, value in equation.params.items():
                    inner = getattr(value, "jaxpr", None)
                    if inner is not None:
                        yield from bodies(inner, inside or (equation.primitive.name, name) == ("while", "body_jaxpr"))

        for dtype in TYPES:
            h = jnp.zeros((9, 9), dtype)
            steps = list(bodies(jax.make_jaxpr(schur._chase)(h, h, *map(np.int32, (0, 6, 0))).jaxpr, False))
            self.assertIn("dynamic_slice", {step.primitive.name for step in steps})
            whole = {step.primitive.name for step in steps if any(v.aval.shape == h.shape for v in step.outvars)}
            self.assertEqual(whole, {"dynamic_update_slice"})

    def test_schur_of_low_rank(self):
        rng = np.random.default_rng(3)
        u, v = np.array([-2, 0, 2, 2, 1, 0, 1, -1]), np.array([0, 2, -2, -1, 2, 0, 2, 0])
        for dtype in TYPES:
            self.check_schur(np.outer(u, v).astype(dtype))
            for _ in range(5):
                a = rng.integers(-2, 3, (33, 2)) @ rng.integers(-2, 3, (2, 33))
                self.check_schur(a.astype(dtype))

    def test_eig(self):
        for dtype in TYPES:
            for n in (1, 2, 5, 20):
                a = matrix(n, n, dtype, n + 2)
                w, vl, vr = linalg.eig(a)
                self.close(a @ vr, vr * w, 10 * n)
                self.close(np.asarray(vl).conj().T @ a, np.asarray(w)[:, None] * np.asarray(vl).conj().T, 10 * n)
                self.close(np.linalg.norm(vr, axis=0), np.ones(n), n)
                want = np.linalg.eigvals(a)
                self.assertLess(max(np.min(np.abs(want - x)) for x in np.asarray(w)), 1e-4 * n)

    def test_scales_and_defective_matrices(self):
        for dtype in TYPES:
            for scale in (1e20, 1e-25):
                a = matrix(5, 5, dtype, 3)
                big = (a * scale).astype(dtype)
                t, z = jax.scipy.linalg.schur(big)
                self.close(np.asarray(z) @ (np.asarray(t) / scale) @ np.asarray(z).conj().T, a, 40)
                w, _, vr = linalg.eig(big)
                self.close(a @ vr, vr * (np.asarray(w) / scale), 50)
                p = jax.scipy.linalg.qr(np.diag(np.array([1, 3, 2]) * scale).astype(dtype), pivoting=True)[2]
                self.assertEqual(p.tolist(), [1, 2, 0])
            for n in (5, 8, 30):  # a single eigenvalue of multiplicity n with one eigenvector
                a = np.eye(n, k=1, dtype=dtype)
                w, vl, vr = linalg.eig(a)
                self.close(w, np.zeros(n), n)
                self.close(a @ vr, np.zeros((n, n)), n)
                self.close(np.asarray(vl).conj().T @ a, np.zeros((n, n)), n)
                self.close(np.linalg.norm(vr, axis=0), np.ones(n), n)

    def test_manual_computations(self):
        mesh = jax.make_mesh((2,), ("i",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices()[:2])
        rows = jax.sharding.PartitionSpec("i")
        a = np.stack([matrix(4, 4, np.float32, i) for i in range(2)])
        for f in (jnp.linalg.inv, lambda x: jnp.linalg.eigh(x)[0], lambda x: jnp.linalg.svd(x)[1],
                  lambda x: jnp.linalg.qr(x)[1], jax.vmap(lambda x: jax.scipy.linalg.schur(x)[0]),
                  lambda x: jnp.linalg.eig(x)[0], lambda x: jax.lax.approx_max_k(x, 2)[0]):
            got = jax.jit(jax.shard_map(f, mesh=mesh, in_specs=rows, out_specs=rows))(a)
            self.close(got, f(a), 8)

    def test_qr_of_nothing(self):
        for shape in ((3, 0), (0, 3), (0, 0)):
            a = np.zeros(shape, np.float32)
            packed, taus = lax_linalg.geqrf(a)
            self.assertEqual((packed.shape, taus.shape), (shape, (0,)))
            packed, pivots, taus = lax_linalg.geqp3(a, np.zeros(shape[1], np.int32))
            self.assertEqual((packed.shape, taus.shape), (shape, (0,)))
            self.assertEqual(pivots.tolist(), list(range(1, shape[1] + 1)))

    def test_approx_top_k(self):
        x = matrix(6, 100, np.float32)
        for f, sign in ((jax.lax.approx_max_k, 1), (jax.lax.approx_min_k, -1)):
            values, places = f(x, 5)
            self.close(values, sign * np.sort(sign * x, axis=1)[:, :-6:-1], 1)
            self.close(np.take_along_axis(x, np.asarray(places), axis=1), values, 1)
            values, _ = f(x.T, 5, reduction_dimension=0)
            self.close(values, sign * np.sort(sign * x.T, axis=0)[:-6:-1], 1)
            self.assertGreaterEqual(f(x, 5, aggregate_to_topk=False)[0].shape[1], 5)

    def test_donation(self):
        f = jax.jit(lambda x: x + 1, donate_argnums=0)
        x = jnp.ones((16,))
        f(x).block_until_ready()
        self.assertTrue(x.is_deleted())
        y = jnp.ones((16,))
        with self.assertRaisesRegex(RuntimeError, "donated"):
            jax.jit(lambda x, y: x + y, donate_argnums=0)(y, y)

    def test_strict_promotion(self):
        with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
            a = matrix(5, 5, np.float32)
            for f in (jnp.linalg.qr, jnp.linalg.svd, jnp.linalg.eigh, jnp.linalg.eig, jax.scipy.linalg.schur,
                      jax.scipy.linalg.hessenberg, lambda x: jax.scipy.linalg.qr(x, pivoting=True)):
                jax.block_until_ready(f(a))

    def test_gradient_of_eigh(self):
        a = matrix(4, 4, np.float32)
        a = a + a.T
        g = jax.grad(lambda x: jnp.linalg.eigh(x)[0][0])(a)
        v = np.linalg.eigh(a)[1][:, 0]
        self.close(g, np.outer(v, v), 8)


class Callbacks(unittest.TestCase):
    shape = jax.ShapeDtypeStruct((4,), np.float32)

    def test_runs_outlive_their_function(self):
        def slow(x):
            time.sleep(0.05)
            return np.asarray(x)

        def run():
            f = jax.jit(lambda x: jax.pure_callback(slow, self.shape, x) + 1)
            x = jnp.ones((4,), np.float32)
            for _ in range(6):
                x = f(x)
            return x, weakref.ref(f)

        before = len(callbacks._callbacks)
        x, function = run()
        gc.collect()
        self.assertIsNone(function())
        self.assertEqual(np.asarray(x).tolist(), [7] * 4)
        # Unused callbacks are removed now.
        jax.jit(lambda x: jax.pure_callback(np.sin, self.shape, x))(x).block_until_ready()
        gc.collect()
        self.assertLessEqual(len(callbacks._callbacks), before + 1)

    def test_partitioned_callbacks(self):
        mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices()[:2])
        rows = jax.sharding.PartitionSpec("x")
        x = np.arange(4, dtype=np.float32)
        split = jax.device_put(x, jax.sharding.NamedSharding(mesh, rows))
        seen = []

        def f(x):
            jax.debug.callback(lambda x: seen.append(np.asarray(x).tolist()), x, partitioned=True)
            return x + 1

        def prints(x):
            jax.debug.print("{}", x, partitioned=True)
            return x + 1

        for g in (f, prints):  # the whole array must not come instead of the shards
            with self.assertRaisesRegex(NotImplementedError, "Partitioned callback .* several devices"):
                jax.jit(g)(split)
        self.assertEqual(seen, [])
        jax.jit(jax.shard_map(f, mesh=mesh, in_specs=rows, out_specs=rows))(split).block_until_ready()
        jax.effects_barrier()
        self.assertEqual(sorted(seen), [[0, 1], [2, 3]])
        seen.clear()
        jax.jit(f)(x).block_until_ready()
        jax.effects_barrier()
        self.assertEqual(seen, [[0, 1, 2, 3]])

    def test_errors_without_a_text(self):
        class Mute(Exception):
            def __str__(self):
                raise RuntimeError("no text")

        class Long(Exception):
            def __str__(self):
                return "\u00e9" * 1000

        for error in (Mute, Long):
            def fail(x):
                raise error()

            with self.assertRaisesRegex(jax.errors.JaxRuntimeError, error.__name__):
                jax.jit(lambda x: jax.pure_callback(fail, self.shape, x))(np.ones(4, np.float32)).block_until_ready()


class ForeignFunctions(unittest.TestCase):
    platform = "collet_foreign_functions_test"  # for which JAX collects what is registered, until somebody takes it

    def test_what_cannot_be_used_costs_itself_alone(self):
        nothing = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda frame: None)
        capsule = jax.ffi.pycapsule(nothing)
        number = ctypes.c_int64(0)
        of_type = jax.ffi.pycapsule(ctypes.cast(ctypes.byref(number), ctypes.c_void_p))
        for name, version in (("test_untyped", 0), ("test_first", 1), ("test_refused", 1), ("test_last", 1)):
            jax.ffi.register_ffi_target(name, capsule, platform=self.platform, api_version=version)
        for name in ("test_refused_type", "test_type"):
            jax.ffi.register_ffi_type(name, {"type_id": of_type}, platform=self.platform)

        def added(pointer, field, size):
            name = getattr(pointer._obj, field)[:getattr(pointer._obj, size)].decode()
            taken.append(name)
            return "refused" in name

        def check(error):
            if error:
                raise RuntimeError("the library refuses it")

        taken = []
        extension = types.SimpleNamespace(register_handler=lambda pointer: added(pointer, "target", "target_size"),
                                          type_register=lambda pointer: added(pointer, "name", "name_size"))
        library = types.SimpleNamespace(find=lambda number, structure: extension, check=check)
        with unittest.mock.patch.object(foreign.extensions, "Library", lambda path: library), \
                warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            foreign.register(self.platform, "")
        self.assertEqual(taken, ["test_first", "test_refused", "test_last", "test_refused_type", "test_type"])
        said = [str(warning.message) for warning in warned]
        self.assertEqual(len(said), 3, said)
        for name, text in zip(("'test_untyped'", "'test_refused'", "'test_refused_type'"), said):
            self.assertIn(name, text)
        # Whoever registers now gets the error.
        with self.assertRaisesRegex(Exception, "untyped custom calls"):
            jax.ffi.register_ffi_target("test_late", capsule, platform=self.platform, api_version=0)


if __name__ == "__main__":
    unittest.main()
