# SPDX-License-Identifier: Apache-2.0
"""`torch.compile(model, backend="collet")`: runs the graphs that TorchDynamo finds on a Collet device, training included.

AOTAutograd gives the graphs of forward and backward passes as ATen ops; torchax, which implements ATen ops by JAX, and JAX's
plugin for Collet compile them. Tensors stay torch's, in host memory: each call copies its arguments to the device and its results
back. Ops that cannot run there stay in torch: the file that COLLET_EXPLAIN names says for each graph which ops those are, and why.
"""
from torch._dynamo.backends import common
from torch.nn import attention

from . import compiler, lowerings


def backend(graph, inputs, **options):
    """The function that TorchDynamo calls for each graph; the entry point of the group torch_dynamo_backends."""
    if options.get("options"):
        raise ValueError(f"the backend has no options, but {', '.join(options['options'])} was given")
    compile_graph = compiler.compile_graph
    # Attention is traced as its products and softmax: torch's own kernels for it have results that only their backward ops read.
    with attention.sdpa_kernel(attention.SDPBackend.MATH):
        return common.aot_autograd(fw_compiler=compile_graph, bw_compiler=compile_graph, inference_compiler=compile_graph,
                                   decompositions=lowerings.DECOMPOSITIONS)(graph, inputs)
