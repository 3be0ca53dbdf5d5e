# SPDX-License-Identifier: Apache-2.0
"""Lowerings of linear algebra functions, which JAX has only for platforms that it knows: expansions into portable operations."""
import functools
import importlib.abc
import importlib.util
import sys

import jax
import jax.numpy as jnp
from jax.interpreters import mlir
from jax.sharding import AxisType, NamedSharding, PartitionSpec, use_abstract_mesh

from . import jacobi, private, reflectors, schur, tridiagonal


def _wide(dtype):
    """Returns the type for computations: 16-bit types are computed in f32."""
    return jnp.float32 if jnp.finfo(dtype).bits < 32 else dtype


def _each(function, *operands):
    """Applies `function`, which takes single matrices, to each element of a batch."""
    for _ in range(operands[0].ndim - 2):
        function = jax.vmap(function)
    return function(*operands)


def _named(name, function, ranks, *operands):
    """Applies `function`, which takes single matrices, over leading batch dimensions; the k-th operand has rank `ranks[k]` without
    these. The whole computation becomes a composite with a name, which a backend may implement itself: see docs/patterns.md.
    None: it gets no name."""
    batch = operands[0].shape[: operands[0].ndim - ranks[0]]
    if 0 in batch:
        singles = [jax.ShapeDtypeStruct(o.shape[len(batch):], o.dtype) for o in operands]
        results = jax.eval_shape(function, *singles)
        return tuple(jnp.zeros(batch + result.shape, result.dtype) for result in results)
    for _ in batch:
        function = jax.vmap(function)
    if name:
        function = jax.lax.composite(function, name="collet." + name)
    return function(*operands)


def _widened(function):
    """Computes `function` of 16-bit types in f32. A program may be traced under JAX's strictest type rules, which are relaxed here,
    because they are meant for the program's own code."""

    def call(*operands, **options):
        types = [operand.dtype for operand in operands]
        wide = [o.astype(_wide(o.dtype)) if jnp.issubdtype(o.dtype, jnp.inexact) else o for o in operands]
        with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
            results = function(*wide, **options)
        if wide[0].dtype != types[0]:
            results = [r.astype(types[0]) if jnp.issubdtype(r.dtype, jnp.floating) else r for r in results]
        return tuple(results)

    return call


def _lu(a):
    return jax.lax.composite(lambda a: tuple(private.lu_python(a)), name="collet.lu")(a)


def _eigh(a, *, lower, sort_eigenvalues, subset_by_index, algorithm=None):
    del sort_eigenvalues, algorithm
    a = _each(functools.partial(reflectors.hermitian, lower=lower), a)
    vectors, values = _named("eigh", lambda a: jacobi.eigh(a)[::-1], (2,), a)
    if subset_by_index is not None:
        values, vectors = values[..., slice(*subset_by_index)], vectors[..., slice(*subset_by_index)]
    return vectors, values


def _svd(a, *, full_matrices, compute_uv, subset_by_index, algorithm=None):
    del algorithm
    one = functools.partial(jacobi.svd, full_matrices=full_matrices, compute_uv=compute_uv)
    results = _named("svd", lambda a: tuple(one(a)), (2,), a)
    if subset_by_index is None or subset_by_index == (0, min(a.shape[-2:])):
        return results
    part = slice(*subset_by_index)
    return (results[0][..., part], *((results[1][..., part], results[2][..., part, :]) if compute_uv else ()))


def _schur(a, *, compute_schur_vectors, sort_eig_vals, select_callable):
    del select_callable
    if sort_eig_vals:
        raise NotImplementedError("schur does not sort eigenvalues")
    return _named("schur", lambda a: tuple(schur.schur(a)[: 2 if compute_schur_vectors else 1]), (2,), a)


def _eig(a, *, compute_left_eigenvectors, compute_right_eigenvectors, **_):
    # The name says whether no vectors, the right ones, or both are computed.
    left, right = compute_left_eigenvectors, compute_right_eigenvectors
    results = _named("eig", lambda a: schur.eig(a, left, left or right), (2,), a)
    return results[:2] if left and not right else results


def _geqp3(a, jpvt, *, use_magma):
    del use_magma
    return _named(None, reflectors.geqp3, (2, 1), a, jpvt)


def _geqrf(a):
    return _named("geqrf", reflectors.geqrf, (2,), a)


def _householder_product(a, taus):
    return _named("householder_product", lambda a, taus: (reflectors.product(a, taus),), (2, 1), a, taus)


def _hessenberg(a):
    return _named("hessenberg", reflectors.hessenberg, (2,), a)


def _tridiagonal(a, *, lower):
    return _named(None, functools.partial(reflectors.tridiagonal, lower=lower), (2,), a)


def _tridiagonal_solve(*operands, **options):
    return _named(None, lambda *o: (tridiagonal.solve(*o, **options),), (1, 1, 1, 2), *operands)


def _approx_top_k(x, *, k, reduction_dimension, recall_target, is_max_k, reduction_input_size_override,
                  aggregate_to_topk):
    """Computes approx_top_k exactly; it may return more than `k` elements if these are only candidates."""
    if not aggregate_to_topk:
        k = private.approx_top_k_p.abstract_eval(
            jax.core.ShapedArray(x.shape, x.dtype), k=k, reduction_dimension=reduction_dimension,
            recall_target=recall_target, is_max_k=is_max_k, aggregate_to_topk=False,
            reduction_input_size_override=reduction_input_size_override)[0][0].shape[reduction_dimension]
    rows = jnp.moveaxis(x if is_max_k else -x, reduction_dimension, -1)
    values, places = jax.lax.top_k(rows, k)
    values, places = (jnp.moveaxis(y, -1, reduction_dimension) for y in (values, places))
    return values if is_max_k else -values, places


_RULES = (
    ("eigh_p", _eigh),
    ("svd_p", _svd),
    ("schur_p", _schur),
    ("eig_p", _eig),
    ("hessenberg_p", _hessenberg),
    ("tridiagonal_p", _tridiagonal),
    ("geqrf_p", _geqrf),
    ("geqp3_p", _geqp3),
    ("tridiagonal_solve_p", _tridiagonal_solve),
    ("householder_product_p", _householder_product),
)


def _rule(function):
    """A lowering that traces `function`, which gives a tuple.

    In a manual computation (shard_map) the types of arguments contain the axes along which they vary, and loops must be written
    for that. The functions traced here work on each device's part only, so their types omit these axes. If types contain
    shardings, the types of the results do, too; intermediate types contain none.
    """
    lower = private.lower_fun(function, multiple_results=True)

    def rule(ctx, *operands, **options):
        mesh = private.explicit_mesh((*ctx.avals_in, *ctx.avals_out))
        avals = [private.without_manual_axes(a) for a in ctx.avals_in]
        if mesh is None:
            with private.check_vma(False):
                return lower(ctx.replace(avals_in=avals), *operands, **options)
        mesh = mesh.update_axis_types({n: AxisType.Auto for n in mesh.explicit_axes})
        avals = [a.update(sharding=NamedSharding(mesh, PartitionSpec(*[None] * a.ndim))) for a in avals]
        with private.check_vma(False), use_abstract_mesh(mesh):
            results = lower(ctx.replace(avals_in=avals), *operands, **options)
        return [private.lower_with_sharding_in_types(ctx, r, a) for r, a in zip(results, ctx.avals_out)]

    return rule


def _nan_unless_definite(factor):
    ok = jnp.all(jnp.diagonal(factor, axis1=-2, axis2=-1).real > 0, axis=-1)
    return (jnp.where(ok[..., None, None], factor, jnp.nan),)


def _cholesky(ctx, a):
    """Lowers to the operation cholesky itself; the factor of a matrix that is not positive definite is NaN."""
    results = private.cholesky_lowering(ctx, a)
    if not private.is_constant_shape(ctx.avals_out[0].shape):
        return results
    return _rule(_nan_unless_definite)(ctx.replace(avals_in=ctx.avals_out), *results)


_SPARSE = "jax.experimental.sparse.linalg"


class _WhenImported(importlib.abc.MetaPathFinder):
    """Calls `then` when the module `name` is imported, so that rarely used modules are not loaded by all programs."""

    def __init__(self, name, then):
        self.name, self.then = name, then

    def find_spec(self, name, path, target=None):
        if name != self.name or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            self.then()

        spec.loader.exec_module = exec_module
        return spec


def _register_sparse(platform):
    mlir.register_lowering(private.spsolve_p, private.spsolve_lowering, platform=platform)


def _entries():
    """Yields (operation, name of its primitive in `private`, function that makes its lowering)."""
    yield "cholesky", "cholesky_p", lambda: _cholesky
    yield "checkify's checks", "check_p", lambda: private.check_lowering
    yield "approx_max_k", "approx_top_k_p", lambda: _rule(_approx_top_k)
    yield "lu", "lu_p", lambda: _rule(_lu)
    for name, function in _RULES:
        yield name.removesuffix("_p"), name, lambda function=function: _rule(_widened(function))


def register(platform: str) -> None:
    """Registers all lowerings for `platform`, which must be known to JAX."""
    for operation, primitive, make in _entries():
        private.attempt(operation, lambda: mlir.register_lowering(private.find(primitive), make(), platform=platform))
    register_sparse = functools.partial(private.attempt, "spsolve", _register_sparse, platform)
    if _SPARSE in sys.modules:
        register_sparse()
    else:
        sys.meta_path.insert(0, _WhenImported(_SPARSE, register_sparse))
