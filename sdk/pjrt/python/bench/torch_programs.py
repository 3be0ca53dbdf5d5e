# SPDX-License-Identifier: Apache-2.0
"""The programs that are compared with PyTorch: each is a function of JAX and one of PyTorch with the same arguments.

Neither library is loaded before a program is built.
"""
import dataclasses
from collections.abc import Callable

# Convolutions of a ResNet-50: name, size of the image, channels, filters, size of the window, stride.
RESNET = (("7x7 of 224", 224, 3, 64, 7, 2), ("1x1 64 to 256 of 56", 56, 64, 256, 1, 1), ("3x3 64 of 56", 56, 64, 64, 3, 1),
          ("1x1 256 to 512 of 56 by 2", 56, 256, 512, 1, 2), ("3x3 128 of 28", 28, 128, 128, 3, 1), ("3x3 256 of 14", 14, 256, 256, 3, 1),
          ("1x1 1024 to 256 of 14", 14, 1024, 256, 1, 1), ("3x3 512 of 7", 7, 512, 512, 3, 1))
DEPTHWISE = (("32 of 112", 112, 32, 1), ("144 of 56 by 2", 56, 144, 2), ("384 of 14", 14, 384, 1))
SIZES = (64, 128, 256, 512, 1024, 2048, 4096)


@dataclasses.dataclass
class Program:
    name: str
    arguments: tuple  # numpy arrays; bfloat16 is that of ml_dtypes
    jax: Callable
    torch: Callable
    tolerance: float  # relative to each result's largest magnitude
    prepare: Callable = lambda x: x  # converts each argument of PyTorch
    onednn: Callable | None = None  # oneDNN's function, if eager PyTorch does not use it

    def torch_arguments(self):
        return [self.prepare(_torch_array(x)) for x in self.arguments]

    def difference(self, ours, theirs):
        """Returns the largest difference, relative to the result's largest magnitude."""
        import numpy as np
        ours, theirs = np.asarray(ours).astype("float64"), theirs.contiguous().to(dtype=_torch().float64).numpy()
        if theirs.shape != ours.shape:  # PyTorch has the channels as dimension 1
            theirs = np.moveaxis(theirs, 1, -1)
        return float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-30))


def _torch():
    import torch
    return torch


def _torch_array(x):
    torch = _torch()
    return torch.from_numpy(x.astype("float32")).to(torch.bfloat16) if x.dtype.name == "bfloat16" else torch.from_numpy(x)


def names():
    return list(_MAKERS)


def make(name):
    import numpy as np
    program = _MAKERS[name](np.random.default_rng(7))
    program.name = name
    return program


def _floats(random, *shape, dtype="float32", scale=1.0):
    import ml_dtypes
    values = random.standard_normal(shape) * scale
    return values.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def _simple(shape, ours, theirs, tolerance=1e-5, scale=1.0, dtype="float32"):
    """Returns a program of one array; the functions get the library as first argument."""
    def maker(random):
        import jax
        torch = _torch()
        return Program("", (_floats(random, *shape, scale=scale, dtype=dtype),), lambda x: ours(jax, x), lambda x: theirs(torch, x), tolerance)
    return maker


def _product(n, dtype):
    def maker(random):
        import jax
        import jax.numpy as jnp
        torch = _torch()
        if dtype == "int8":
            arguments = tuple(random.integers(-100, 100, (n, n)).astype("int8") for _ in range(2))
            return Program("", arguments, lambda a, b: jax.lax.dot(a, b, preferred_element_type=jnp.int32), torch._int_mm, 0)
        arguments = tuple(_floats(random, n, n, dtype=dtype, scale=n ** -0.5) for _ in range(2))
        turned = _torch_array(arguments[1]).t().contiguous()  # oneDNN's function takes transposed weights
        onednn = (lambda a, b: torch.ops.mkldnn._linear_pointwise(a, turned, None, "none", [], "")) if dtype == "float32" else None
        return Program("", arguments, lambda a, b: a @ b, torch.mm, 2e-2 if dtype == "bfloat16" else 1e-4, onednn=onednn)
    return maker


def _product_chain(n, count, dtype):
    """Returns a program with consecutive products in one call, which divides the cost of the call by their number."""
    def maker(random):
        import jax
        import jax.numpy as jnp
        torch = _torch()

        def chain(multiply):
            def run(a, b):
                for _ in range(count):
                    a = multiply(a, b)
                return a
            return run
        if dtype == "int8":  # each product's low bytes are the next product's operand
            arguments = tuple(random.integers(-100, 100, (n, n)).astype("int8") for _ in range(2))
            return Program("", arguments, chain(lambda a, b: jax.lax.dot(a, b, preferred_element_type=jnp.int32).astype(jnp.int8)),
                           chain(lambda a, b: torch._int_mm(a, b).to(torch.int8)), 0)
        arguments = tuple(_floats(random, n, n, dtype=dtype, scale=n ** -0.5) for _ in range(2))
        return Program("", arguments, chain(lambda a, b: a @ b), chain(torch.mm), 1e-3)
    return maker


def _convolution(batch, side, channels, filters, window, stride, groups=1):
    """Returns a convolution in NHWC order; PyTorch's arrays use the channels-last memory format."""
    def maker(random):
        import jax
        torch = _torch()
        x = _floats(random, batch, side, side, channels)
        w = _floats(random, filters, channels // groups, window, window, scale=(window * window * channels // groups) ** -0.5)
        low = (window - 1) // 2

        def ours(x, w):
            return jax.lax.conv_general_dilated(x, w, (stride, stride), [(low, low)] * 2, dimension_numbers=("NHWC", "OIHW", "NHWC"),
                                                feature_group_count=groups)

        def theirs(x, w):
            return torch.nn.functional.conv2d(x, w, stride=stride, padding=low, groups=groups)

        def prepare(a):
            return (a.permute(0, 3, 1, 2) if a.shape == x.shape else a).contiguous(memory_format=torch.channels_last)
        return Program("", (x, w), ours, theirs, 1e-3, prepare)
    return maker


def _attention(tokens, dtype, causal):
    def maker(random):
        import jax.numpy as jnp
        import jax
        torch = _torch()

        def ours(q, k, v):
            scores = jnp.einsum("hqd,hkd->hqk", q, k, preferred_element_type=jnp.float32) / 8
            if causal:
                scores = jnp.where(jnp.tri(tokens, dtype=bool), scores, -jnp.inf)
            return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores, -1).astype(q.dtype), v)

        def theirs(q, k, v):
            return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal)[0]
        arguments = tuple(_floats(random, 12, tokens, 64, dtype=dtype) for _ in range(3))
        return Program("", arguments, ours, theirs, 4e-2 if dtype == "bfloat16" else 1e-3)
    return maker


_MAKERS = {}
for _shape in ((64, 256), (1024, 1024), (4096, 2048)):
    _MAKERS[f"sin {_shape[0]}x{_shape[1]}"] = _simple(_shape, lambda jax, x: jax.numpy.sin(x), lambda torch, x: torch.sin(x), scale=3)
for _name, _shape, _axis in (("rows 1024x1024", (1024, 1024), 1), ("columns 1024x1024", (1024, 1024), 0), ("flat 1048576", (1 << 20,), 0)):
    _MAKERS[f"sort {_name}"] = _simple(_shape, lambda jax, x, a=_axis: jax.numpy.sort(x, a), lambda torch, x, a=_axis: torch.sort(x, a)[0])
    _MAKERS[f"argsort {_name}"] = _simple(_shape, lambda jax, x, a=_axis: jax.numpy.argsort(x, a), lambda torch, x, a=_axis: torch.sort(x, dim=a, stable=True)[1])
    _MAKERS[f"argmax {_name}"] = _simple(_shape, lambda jax, x, a=_axis: x.argmax(a), lambda torch, x, a=_axis: x.argmax(a))
    _MAKERS[f"cumsum {_name}"] = _simple(_shape, lambda jax, x, a=_axis: x.cumsum(a), lambda torch, x, a=_axis: x.cumsum(a), 1e-4)
for _name, _side, _channels, _stride in DEPTHWISE:
    for _batch in (1, 8):
        _MAKERS[f"depthwise 3x3 {_name}, batch {_batch}"] = _convolution(_batch, _side, _channels, _channels, 3, _stride, _channels)
for _dtype, _sizes in (("float32", SIZES), ("bfloat16", SIZES[:-1]), ("int8", SIZES[:-1])):
    for _n in _sizes:
        _MAKERS[f"product {_dtype} {_n}"] = _product(_n, _dtype)
for _dtype, _sizes in (("float32", SIZES[:2]), ("int8", SIZES[:3])):
    for _n in _sizes:
        _MAKERS[f"50 products {_dtype} {_n}"] = _product_chain(_n, 50, _dtype)
for _dtype in ("float32", "bfloat16"):
    for _tokens in (512, 2048):
        _MAKERS[f"attention {_dtype} {_tokens}"] = _attention(_tokens, _dtype, False)
    _MAKERS[f"attention causal {_dtype} 2048"] = _attention(2048, _dtype, True)
for _name, *_numbers in RESNET:
    for _batch in (1, 8):
        _MAKERS[f"convolution {_name}, batch {_batch}"] = _convolution(_batch, *_numbers)
