# SPDX-License-Identifier: Apache-2.0
"""Builds drawn programs of linear algebra: fft, factorization, product."""
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from programs import Program


def transform(function):
    return lambda m, n, batch: Program(function, (m.floats(batch, n),))


def square_transform(function, *shape):
    """A program of an n by n array; `shape` has dimensions after these."""
    return lambda m, n: Program(function, (m.floats(n, n, *shape),))


def batched_transform(function, operands=1):
    return lambda m, batch, n: Program(function, tuple(m.floats(batch, n, n) for _ in range(operands)))


FFT = {
    "forward": transform(jnp.fft.fft),
    "inverse": transform(jnp.fft.ifft),
    "real": transform(jnp.fft.rfft),
    "inverse_real": lambda m, n, batch: Program(jnp.fft.irfft, (m.floats(batch, n // 2 + 1),)),
    "spectrum": transform(lambda x: jnp.abs(jnp.fft.rfft(x * jnp.hanning(x.shape[1]))) ** 2),
    "two_dimensions": batched_transform(jnp.fft.fft2),
    "two_dimensions_real": batched_transform(jnp.fft.rfft2),
    "convolution": batched_transform(lambda a, b: jnp.fft.irfft2(jnp.fft.rfft2(a) * jnp.fft.rfft2(b)), 2),
    "three_dimensions": lambda m, n: Program(jnp.fft.fftn, (m.floats(n, n, n),)),
    "axis_0": square_transform(lambda x: jnp.fft.fft(x, axis=0)),
    "shift": square_transform(lambda x: jnp.fft.fftshift(jnp.fft.fft2(x))),
    "axes_0_1": square_transform(lambda x: jnp.fft.rfftn(x, axes=(0, 1)), 4),
}


def shape_of(batch, *dims):
    return dims if batch == 1 else (batch, *dims)


def general(m, n, batch):
    """Returns matrices of independent normal numbers."""
    return m.floats(*shape_of(batch, n, n))


def dominant(m, n, batch):
    """Returns matrices that are far from singular; the permuted rows make pivots move."""
    matrix = general(m, n, batch) + 3 * math.sqrt(n) * np.eye(n)
    return matrix[..., m.random.permutation(n), :].astype(m.dtype)


def positive(m, n, batch):
    matrix = general(m, n, batch)
    return (matrix @ np.swapaxes(matrix, -1, -2) + n * np.eye(n)).astype(m.dtype)


def orthogonal(m, n, batch):
    return np.linalg.qr(m.random.standard_normal(shape_of(batch, n, n)))[0]


def separated(m, n, batch):
    """Returns matrices whose singular values lie well apart, because the vectors of close ones are not determined."""
    return ((orthogonal(m, n, batch) * np.linspace(1, 3, n)) @ orthogonal(m, n, batch)).astype(m.dtype)


def separated_symmetric(m, n, batch):
    """Returns symmetric matrices whose eigenvalues lie well apart."""
    vectors = orthogonal(m, n, batch)
    return ((vectors * np.linspace(1, 3, n)) @ np.swapaxes(vectors, -1, -2)).astype(m.dtype)


def tall(matrices):
    return matrices[..., :max(2, matrices.shape[-1] // 2)]


def factored(function, matrices, magnitudes=False):
    """A program of matrices; `magnitudes` where signs are arbitrary."""
    return lambda m, n, batch: Program(function, (matrices(m, n, batch),), tolerance=tolerance(m), magnitudes=magnitudes)


def solved(function, matrices):
    """A program of matrices and of right sides."""
    def build(m, n, batch, columns):
        return Program(function, (matrices(m, n, batch), m.floats(*shape_of(batch, n, columns))), tolerance=tolerance(m))
    return build


def tolerance(m):
    return {"float32": 1e-3, "float64": 1e-7}[m.dtype]


def least_squares(m, n, batch):
    return Program(lambda a, b: jnp.linalg.lstsq(a, b)[0], (tall(general(m, max(n, 4), 1)), m.floats(max(n, 4))), tolerance=tolerance(m))


def triangular(m, n, batch):
    return np.tril(general(m, n, batch) + 3 * math.sqrt(n) * np.eye(n)).astype(m.dtype)


def upper_triangular(m, n, batch):
    return np.swapaxes(triangular(m, n, batch), -1, -2).copy()


FACTORIZATION = {
    "cholesky": factored(jnp.linalg.cholesky, positive),
    "inverse": factored(jnp.linalg.inv, dominant),
    # Divided so that determinants stay near 1, in the range of the type.
    "determinant": factored(lambda a: jnp.linalg.det(a / (3 * math.sqrt(a.shape[-1]))), dominant),
    "log_determinant": factored(jnp.linalg.slogdet, dominant),
    "qr": factored(jnp.linalg.qr, dominant, magnitudes=True),
    "lu": factored(lax.linalg.lu, dominant),
    "svd": factored(lambda a: jnp.linalg.svd(a, full_matrices=False), separated, magnitudes=True),
    "eigh": factored(jnp.linalg.eigh, separated_symmetric, magnitudes=True),
    "eigenvalues": factored(jnp.linalg.eigvalsh, positive),
    "norm": factored(lambda a: jnp.linalg.norm(a, ord=2, axis=(-2, -1)), general),
    "pseudo_inverse": factored(jnp.linalg.pinv, lambda m, *sizes: tall(separated(m, *sizes))),
    "exponential": factored(lambda a: jax.scipy.linalg.expm(a * (0.5 / a.shape[-1])), general),
    "power": factored(lambda a: jnp.linalg.matrix_power(a / math.sqrt(a.shape[-1]), 5), general),
    "cholesky_gradient": factored(jax.grad(lambda a: jnp.sum(jnp.linalg.cholesky(a))), positive),
    "least_squares": least_squares,
    "solve": solved(jnp.linalg.solve, dominant),
    "lower_solve": solved(lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True), triangular),
    "transposed_solve": solved(
        lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=False, transpose_a=True), upper_triangular),
    "cholesky_solve": solved(lambda a, b: jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(a), True), b), positive),
}


def multiply(a, b):
    """A product; bytes are added as 32-bit integers."""
    return jnp.matmul(a, b, preferred_element_type=jnp.int32 if a.dtype == jnp.int8 else None)


def product(function, left, right, *others):
    """A program of a product of m x k and k x n. `left` and the rest name the dimensions of each argument, as in "mk"."""
    def build(m, sizes):
        size = dict(zip("mkn", sizes))
        arguments = tuple(m.floats(*(size[letter] for letter in letters)) for letters in (left, right, *others))
        return Program(function, arguments, 2.0 * math.prod(sizes))
    return build


def quantized(m, sizes):
    rows, inner, columns = sizes
    arguments = (m.floats(rows, inner), m.floats(inner, columns, dtype="int8"), m.floats(columns))
    return Program(lambda a, b, scale: a @ (b.astype(jnp.float32) * scale), arguments, 2.0 * math.prod(sizes))


def chained(m, sizes):
    rows, inner, columns = sizes
    arguments = (m.floats(rows, inner), m.floats(inner, columns), m.floats(columns, 64))
    return Program(lambda a, b, c: (a @ b) @ c, arguments, 2.0 * math.prod(sizes) + 128.0 * rows * columns)


def shared_right(m, sizes):
    rows, inner, columns = sizes
    each = rows // 4 + 1
    return Program(multiply, (m.floats(4, each, inner), m.floats(inner, columns)), 8.0 * each * inner * columns)


def scores(m, batch, heads, tokens, width):
    arguments = (m.floats(batch, tokens, heads, width), m.floats(batch, tokens, heads, width))
    return Program(lambda q, k: jnp.einsum("bshd,bthd->bhst", q, k), arguments, 2.0 * batch * heads * tokens * tokens * width)


def bilinear(m, batch, rows, columns, outputs):
    arguments = (m.floats(batch, rows), m.floats(outputs, rows, columns), m.floats(batch, columns))
    return Program(lambda x, w, y: jnp.einsum("bi,oij,bj->bo", x, w, y), arguments)


PRODUCT = {
    "plain": product(multiply, "mk", "kn"),
    "right_transposed": product(lambda a, b: multiply(a, b.T), "mk", "nk"),
    "left_transposed": product(lambda a, b: multiply(a.T, b), "km", "kn"),
    "shared_right": shared_right,
    "bias_relu": product(lambda a, b, bias: jax.nn.relu(a @ b + bias), "mk", "kn", "n"),
    "gelu_gate": product(lambda a, b, bias, gate: jax.nn.gelu(a @ b + bias) * gate, "mk", "kn", "n", "mn"),
    "gradient": product(jax.grad(lambda a, b: jnp.sum(jnp.tanh(a @ b)), (0, 1)), "mk", "kn"),
    "half_to_single": product(lambda a, b: jnp.matmul(a, b, preferred_element_type=jnp.float32), "mk", "kn"),
    "quantized": quantized,
    "chain": chained,
    "batched": lambda m, batch, rows, inner, columns: Program(
        multiply, (m.floats(batch, rows, inner), m.floats(batch, inner, columns)), 2.0 * batch * rows * inner * columns),
    "scores": scores,
    "outer": lambda m, rows, columns: Program(jnp.outer, (m.floats(rows), m.floats(columns))),
    "vector": lambda m, rows, inner: Program(multiply, (m.floats(rows, inner), m.floats(inner)), 2.0 * rows * inner),
    "gram": lambda m, rows, inner: Program(lambda a: a @ a.T, (m.floats(rows, inner),), 2.0 * rows * rows * inner),
    "bilinear": bilinear,
}

BUILDERS = {"fft": FFT, "factorization": FACTORIZATION, "product": PRODUCT}
