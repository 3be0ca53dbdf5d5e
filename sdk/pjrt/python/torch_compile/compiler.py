# SPDX-License-Identifier: Apache-2.0
"""Compiles a graph of ATen ops: the ops that torchax lowers to JAX become functions that JAX compiles, the others stay in torch."""
import operator
import os

import jax
import numpy as np
import torch
from functorch.compile import make_boxed_func
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from . import lowerings, platform


def compile_graph(graph, inputs):
    """Compiles a graph of AOTAutograd's; returns a function of a list of tensors."""
    support = _Support()
    partitioner = CapabilityBasedPartitioner(graph, support, allows_single_node_partition=True)
    whole = partitioner.fuse_partitions(partitioner.propose_partitions())
    parts = 0
    for node in whole.graph.nodes:
        if node.op == "call_module" and str(node.target).startswith("fused_"):
            part = _Part(getattr(whole, node.target))
            delattr(whole, node.target)
            setattr(whole, node.target, part)
            parts += 1
    whole.recompile()
    file = os.environ.get("COLLET_EXPLAIN", "")
    if file and not file.endswith(".json"):
        with open(file, "a") as out:
            _explain(support, parts, out)
    return make_boxed_func(whole.forward)


def _explain(support, parts, out):
    runs = sum(1 for answer in support.answers.values() if not answer)
    stays = [(name, reason) for name, reason in support.answers.items() if reason]
    print(f"collet: a graph of {runs + len(stays)} ops: {runs} run on {platform.device()}, as {parts} programs; "
          f"{len(stays)} stay in torch", file=out)
    for name, reason in stays:
        print(f"collet:   {name}: {reason}", file=out)


def _type(dtype):
    return np.dtype(lowerings.jax_type(dtype))


class _Interpreter(torch.fx.Interpreter):
    """Runs a graph on JAX's arrays. Each result gets the type that torch gives it."""

    def call_function(self, target, args, kwargs):
        if target is operator.getitem:
            return args[0][args[1]]
        return lowerings.lowering(target)(*args, **kwargs)

    def run_node(self, node):
        result = super().run_node(node)
        if node.op != "call_function" or node.target is operator.getitem:
            return result
        return jax.tree.map(_fit, _tuples(result), _expected(node))


def _expected(node):
    """Returns what torch says of a node's results: fake tensors, in tuples."""
    return _tuples(node.meta["val"])


def _tuples(value):
    """Turns lists and named tuples into tuples."""
    return tuple(_tuples(v) for v in value) if isinstance(value, (list, tuple)) else value


def _fit(result, fake):
    if not isinstance(fake, torch.Tensor):
        return result
    result = jax.numpy.asarray(result)
    if result.shape != tuple(fake.shape):
        raise TypeError(f"torchax gives the shape {result.shape}, torch {tuple(fake.shape)}")
    return result.astype(_type(fake.dtype))


class _Support(OperatorSupportBase):
    """Says which nodes of a graph run on the device, and keeps why others do not."""

    def __init__(self):
        self.answers = {}  # name of a node and its op -> reason; empty: it runs on the device

    def is_node_supported(self, submodules, node):
        if node.op != "call_function":
            return False
        if node.target is operator.getitem:
            return self._answer(node.args[0]) == "" if isinstance(node.args[0], torch.fx.Node) else False
        return self._answer(node) == ""

    def _answer(self, node):
        if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
            return "no op of ATen"
        key = f"{node.name} = {node.target}"
        if key not in self.answers:
            self.answers[key] = _complaint(node)
        return self.answers[key]


def _complaint(node):
    """Returns why an op cannot run on the device; empty if it can."""
    if lowerings.lowering(node.target) is None:
        return "torchax has no lowering to JAX for it"
    if "val" not in node.meta:
        return "its type is not known"
    tensors = [v for v in jax.tree.leaves((node.meta["val"], [i.meta.get("val") for i in node.all_input_nodes]))
               if isinstance(v, torch.Tensor)]
    for tensor in tensors:
        if any(not isinstance(extent, int) for extent in tensor.shape):
            return "a size that is not known when it is compiled; torch.compile(dynamic=False) makes them known"
        if not lowerings.has_type(tensor.dtype):
            return f"elements of type {tensor.dtype}"
        if tensor.layout != torch.strided:
            return f"a tensor of layout {tensor.layout}"
    inputs = {i: _abstract(i) for i in node.all_input_nodes}

    def run(values):
        arguments, options = torch.fx.node.map_arg((node.args, node.kwargs), lambda i: values[i.name])
        result = lowerings.lowering(node.target)(*arguments, **options)
        return jax.tree.map(_fit, _tuples(result), _expected(node))

    try:
        with jax.enable_x64(True):
            jax.eval_shape(run, {i.name: value for i, value in inputs.items()})
    except Exception as error:  # whatever goes wrong in a lowering, torch can run the op
        return f"torchax fails: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return ""


def _abstract(node):
    value = node.meta.get("val")
    make = lambda v: jax.ShapeDtypeStruct(tuple(v.shape), _type(v.dtype)) if isinstance(v, torch.Tensor) else v
    return tuple(make(v) for v in value) if isinstance(value, (list, tuple)) else make(value)


def to_device(tensor):
    """Copies a tensor to the device; other values stay what they are."""
    if not isinstance(tensor, torch.Tensor):
        return tensor
    tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
    dtype = _type(tensor.dtype)
    bits = tensor if tensor.dtype in _NUMPY_TYPES else tensor.view(_SAME_SIZE[tensor.element_size()])
    return jax.device_put(bits.numpy().view(dtype), platform.device())


def to_torch(array, fake):
    """Copies an array to a tensor with the type and the strides of `fake`: ops of torch that read it may depend on them."""
    host = np.asarray(array)
    if fake.dtype in _NUMPY_TYPES:
        tensor = torch.from_numpy(host.copy())
    else:
        tensor = torch.from_numpy(host.view(_INTEGERS[host.dtype.itemsize]).copy()).view(fake.dtype)
    if tensor.stride() == fake.stride():
        return tensor
    for dim, stride in enumerate(fake.stride()):
        if stride == 0:  # all elements along it are one
            tensor = tensor.narrow(dim, 0, min(tensor.shape[dim], 1))
    return torch.empty_strided(tensor.shape, fake.stride(), dtype=fake.dtype).copy_(tensor).expand(fake.shape)


_NUMPY_TYPES = {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32,
                torch.float64, torch.complex64, torch.complex128}
_SAME_SIZE = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_INTEGERS = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


class _Part(torch.nn.Module):
    """A part of a graph that runs on the device."""

    def __init__(self, graph):
        super().__init__()
        interpreter = _Interpreter(graph)
        results = next(node for node in reversed(graph.graph.nodes) if node.op == "output").args[0]
        self.single = not isinstance(results, (tuple, list))
        self.fakes = [_fake(node) for node in ([results] if self.single else results)]
        self.function = jax.jit(lambda *arguments: interpreter.run(*arguments))

    def forward(self, *arguments):
        with jax.enable_x64(True):
            results = self.function(*(to_device(a) for a in arguments))
        results = [results] if self.single else results
        out = [result if fake is None else to_torch(result, fake) for result, fake in zip(results, self.fakes)]
        return out[0] if self.single else tuple(out)


def _fake(node):
    """Returns the fake tensor that stands for a result of a graph; None if the result is no tensor."""
    value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    return value if isinstance(value, torch.Tensor) else None
