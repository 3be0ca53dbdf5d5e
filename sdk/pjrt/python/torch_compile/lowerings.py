# SPDX-License-Identifier: Apache-2.0
"""Lowerings of ATen ops to JAX: torchax's, and some of our own."""
import contextlib
import importlib.util
import math
import sys
import types

import jax
import jax.numpy as jnp
import torch
from jax import lax
from torch._decomp import core_aten_decompositions


class _Absent(str):
    """Stands for an op that torch lacks, and for each of its overloads."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Absent(f"{self}.{name}")


@contextlib.contextmanager
def _ops_that_torch_lacks():
    """Lets torchax be imported by a torch that has removed ops which torchax names: those get lowerings that nothing uses."""
    changed = [(kind, kind.__getattr__) for kind in (torch._ops._OpNamespace, torch._ops.OpOverloadPacket)]

    def lenient(original):
        def find(self, name):
            try:
                return original(self, name)
            except AttributeError:
                if name.startswith("__"):
                    raise
                return _Absent(f"{self}.{name}")

        return find

    for kind, original in changed:
        kind.__getattr__ = lenient(original)
    try:
        yield
    finally:
        for kind, original in changed:
            kind.__getattr__ = original


@contextlib.contextmanager
def _without_device():
    """Lets the modules of torchax be imported without its package, which would make "jax" a device of torch and with that break
    TorchDynamo. A torchax that the program imports itself is another copy."""
    mine = lambda name: name == "torchax" or name.startswith("torchax.")
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if mine(name)}
    package = types.ModuleType("torchax")
    package.__path__ = list(importlib.util.find_spec("torchax").submodule_search_locations)
    sys.modules["torchax"] = package
    try:
        yield
    finally:
        for name in list(sys.modules):
            if mine(name):
                del sys.modules[name]
        sys.modules.update(before)


with _without_device(), _ops_that_torch_lacks():
    from torchax import decompositions as _decompositions
    from torchax.ops import jaten, mappings, ops_registry  # noqa: F401: jaten fills the registry

# torchax's decompositions take precedence, because its lowerings expect them.
DECOMPOSITIONS = {**core_aten_decompositions(), **_decompositions.DECOMPOSITIONS}

_aten = torch.ops.aten


def _torchax(target):
    op = ops_registry.all_aten_ops.get(target) or ops_registry.all_aten_ops.get(target.overloadpacket)
    return op.func if op and op.is_jax_function and not op.needs_env else None


def _max_pool(x, kernel, stride=(), padding=(0,), dilation=(1,), ceil_mode=False):
    """Returns the maxima and their places in the spatial dimensions, numbered in row-major order; the first one of equal maxima."""
    rank = len(kernel)
    kernel, stride, padding, dilation = (tuple(v) * (rank if len(v) == 1 else 1) for v in (kernel, stride or kernel, padding, dilation))
    batch, space = x.shape[:-rank], x.shape[-rank:]
    pads = []
    for size, k, s, p, d in zip(space, kernel, stride, padding, dilation):
        reach = size + 2 * p - d * (k - 1) - 1
        count = (-(-reach // s) if ceil_mode else reach // s) + 1
        if ceil_mode and (count - 1) * s >= size + p:
            count -= 1  # the last window would lie in the padding
        pads.append((p, max((count - 1) * s + d * (k - 1) + 1 - size - p, 0)))
    least = -jnp.inf if jnp.issubdtype(x.dtype, jnp.floating) else jnp.iinfo(x.dtype).min
    places = jnp.broadcast_to(jnp.arange(math.prod(space)).reshape(space), x.shape)

    def later(a, b):
        before = (a[0] > b[0]) | (a[0] != a[0]) | ((a[0] == b[0]) & (a[1] < b[1]) & (a[1] >= 0)) | (b[1] < 0)
        return jnp.where(before, a[0], b[0]), jnp.where(before, a[1], b[1])

    ones = (1,) * len(batch)
    return lax.reduce_window((x, places), (jnp.array(least, x.dtype), jnp.array(-1, places.dtype)), later, ones + kernel,
                             ones + stride, [(0, 0)] * len(batch) + pads, window_dilation=ones + dilation)


def _max_pool_backward(gradient, x, kernel, stride, padding, dilation, ceil_mode, places):
    rank = len(kernel)
    planes = math.prod(x.shape[:-rank])
    flat = jnp.zeros((planes, math.prod(x.shape[-rank:])), gradient.dtype)
    rows = jnp.arange(planes)[:, None]
    return flat.at[rows, places.reshape(planes, -1)].add(gradient.reshape(planes, -1)).reshape(x.shape)


def _convolution_backward(gradient, x, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, mask):
    forward = lambda x, weight: _torchax(_aten.convolution.default)(x, weight, None, stride, padding, dilation, transposed,
                                                                    output_padding, groups)
    of_x, of_weight = jax.vjp(forward, x, weight)[1](gradient)
    of_bias = jnp.sum(gradient, axis=(0, *range(2, gradient.ndim)))
    return tuple(value if wanted else None for value, wanted in zip((of_x, of_weight, of_bias), mask))


def _by_vjp(forward, arguments):
    """Returns the lowering of an op (gradient, x, ...): the gradient of `forward` with respect to x; `arguments` gives its other
    arguments from the gradient and those of the op."""

    def backward(gradient, x, *rest):
        more = arguments(gradient, *rest)
        return jax.vjp(lambda x: _torchax(forward)(x, *more), x)[1](gradient)[0]

    return backward


def _slice_scatter(x, source, dim=0, start=None, end=None, step=1):
    where = [slice(None)] * x.ndim
    where[dim] = slice(start, end, step)
    return x.at[tuple(where)].set(source)


# Ops that torchax lacks, or gets wrong: its places of maxima are other ones than torch's, and its slices take no default end.
_OWN = {
    _aten.max_pool2d_with_indices.default: _max_pool,
    _aten.max_pool3d_with_indices.default: _max_pool,
    _aten.max_pool2d_with_indices_backward.default: _max_pool_backward,
    _aten.max_pool3d_with_indices_backward.default: _max_pool_backward,
    _aten.convolution_backward.default: _convolution_backward,
    _aten.avg_pool2d_backward.default: _by_vjp(_aten.avg_pool2d.default, lambda _, *rest: rest),
    _aten.avg_pool3d_backward.default: _by_vjp(_aten.avg_pool3d.default, lambda _, *rest: rest),
    _aten._adaptive_avg_pool2d_backward.default: _by_vjp(_aten._adaptive_avg_pool2d.default, lambda g: (g.shape[-2:],)),
    _aten._adaptive_avg_pool3d_backward.default: _by_vjp(_aten._adaptive_avg_pool3d.default, lambda g: (g.shape[-3:],)),
    _aten.angle.default: jnp.angle,
    _aten.slice_scatter.default: _slice_scatter,
}


def lowering(target):
    """Returns the function that computes an op by JAX, or None."""
    return _OWN.get(target) or _torchax(target)


def has_type(dtype):
    """Returns whether JAX has an element type of torch's."""
    return dtype in mappings.TORCH_DTYPE_TO_JAX


def jax_type(dtype):
    """Returns JAX's name of an element type of torch's."""
    return mappings.t2j_dtype(dtype)
