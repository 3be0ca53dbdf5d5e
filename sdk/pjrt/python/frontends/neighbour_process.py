# SPDX-License-Identifier: Apache-2.0
"""One process for neighbours_check.py: loads another library and Collet's plugin, in a given order, and lets both work in turn and
then at once. Prints a line before each step, so that a process that ends shows in which one.
"""
import argparse
import ctypes
import io
import os
import pathlib
import sys
import threading

import numpy as np

ROUNDS = 2  # in which both libraries work
GLOBAL_NOW = os.RTLD_NOW | os.RTLD_GLOBAL


def values(rows, columns):
    return np.random.RandomState(rows).rand(rows, columns).astype("float32")


def same(have, want, tolerance=1e-4):
    np.testing.assert_allclose(np.asarray(have), np.asarray(want), rtol=tolerance, atol=tolerance)


def tensorflow(n):
    """Gradients of a matrix product and a convolution by TensorFlow's kernels, and a function by its own compiler."""
    import tensorflow as tf

    with tf.device("/CPU:0"):
        a, b = tf.constant(values(n, 5)), tf.Variable(values(5, 7))
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(a @ b)
        same(tape.gradient(total, b), np.tile(a.numpy().sum(0)[:, None], (1, 7)))
        image = tf.constant(values(n, 16 * 3).reshape(n, 4, 4, 3))
        same(tf.nn.conv2d(image, tf.ones((1, 1, 3, 1)), 1, "SAME"), image.numpy().sum(-1, keepdims=True))
        compiled = tf.function(lambda x: tf.reduce_sum(tf.tanh(x) * 2, axis=1), jit_compile=True)
        same(compiled(a), 2 * np.tanh(a.numpy()).sum(1))
    return tf.__version__


def tensorflow_with_plugin(n):
    """As above, and a function by the plugin for TensorFlow."""
    import tensorflow as tf

    devices = tf.config.list_logical_devices("COLLET")
    if not devices:
        raise RuntimeError("TensorFlow shows no device of the type COLLET")
    with tf.device(devices[0].name):
        x = values(n, 6)
        same(tf.function(lambda v: tf.nn.softmax(v @ tf.transpose(v)), jit_compile=True)(tf.constant(x)).numpy().sum(1), np.ones(n))
    return tensorflow(n)


def torch(n):
    """A matrix product with its gradient, and a factorization by LAPACK."""
    import torch

    a, b = torch.tensor(values(n, 5)), torch.tensor(values(5, 7), requires_grad=True)
    (a @ b).sum().backward()
    same(b.grad, np.tile(values(n, 5).sum(0)[:, None], (1, 7)))
    square = a @ a.T + n * torch.eye(n)
    factor = torch.linalg.cholesky(square)
    same(factor @ factor.T, square)
    return torch.__version__


def onnxruntime(n):
    """A model of a matrix product and a rectifier."""
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        [helper.make_node("MatMul", ["a", "b"], ["c"]), helper.make_node("Relu", ["c"], ["d"])], "graph",
        [helper.make_tensor_value_info("a", TensorProto.FLOAT, [n, 5]), helper.make_tensor_value_info("b", TensorProto.FLOAT, [5, 7])],
        [helper.make_tensor_value_info("d", TensorProto.FLOAT, [n, 7])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    a, b = values(n, 5), values(5, 7) - 0.5
    same(session.run(None, {"a": a, "b": b})[0], np.maximum(a @ b, 0))
    return onnxruntime.__version__


def pyarrow(n):
    """A table that goes through Parquet, compressed by zstd, and a sum."""
    import pyarrow
    import pyarrow.compute
    import pyarrow.parquet

    numbers = values(n, 1000).ravel()
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"x": numbers, "text": [str(i) for i in range(len(numbers))]}), file, compression="zstd")
    file.seek(0)
    table = pyarrow.parquet.read_table(file)
    same(table["x"].to_numpy(), numbers, 0)
    same(pyarrow.compute.sum(table["x"]).as_py(), numbers.sum(dtype="float64"))
    return pyarrow.__version__


def llvmlite(n):
    """A function of LLVM IR, optimised and compiled by the LLVM that is linked into llvmlite."""
    import llvmlite
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    module = binding.parse_assembly("""
        define double @sum(ptr %data, i64 %count) {
        entry:
          br label %loop
        loop:
          %i = phi i64 [ 0, %entry ], [ %next, %loop ]
          %total = phi double [ 0.0, %entry ], [ %more, %loop ]
          %place = getelementptr double, ptr %data, i64 %i
          %value = load double, ptr %place
          %more = fadd fast double %total, %value
          %next = add i64 %i, 1
          %done = icmp eq i64 %next, %count
          br i1 %done, label %end, label %loop
        end:
          ret double %more
        }""")
    module.verify()
    machine = binding.Target.from_default_triple().create_target_machine(opt=3)
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=3))
    builder.getModulePassManager().run(module, builder)
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p, ctypes.c_int64)(engine.get_function_address("sum"))
    numbers = values(n, 100).astype("float64").ravel()
    same(function(numbers.ctypes.data, len(numbers)), numbers.sum())
    return llvmlite.__version__


# name -> (packages whose libraries become visible to all, what works)
NEIGHBOURS = {
    "tensorflow": (("tensorflow",), tensorflow),
    "tensorflow with collet-tensorflow": (("tensorflow",), tensorflow_with_plugin),
    "torch": (("torch", "nvidia"), torch),
    "onnxruntime": (("onnxruntime", "onnx"), onnxruntime),
    "pyarrow": (("pyarrow",), pyarrow),
    "llvmlite": (("llvmlite",), llvmlite),
}


def collet(n):
    """A program with products, a gradient, factorizations, sorting, a Fourier transform and a loop, random numbers, and the program's
    text, which comes as HloModuleProto; each n is compiled anew."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_compilation_cache", False)
    x = values(n, n)

    @jax.jit
    def function(x):
        square = x @ x.T + n * jnp.eye(n)
        factor = jnp.linalg.cholesky(square)
        powers = jax.lax.fori_loop(0, 3, lambda i, y: jnp.tanh(y @ x), x)
        gradient = jax.grad(lambda y: (y @ x).sum())(x)
        return factor @ factor.T - square, jnp.sort(x, axis=1), jnp.fft.fft(x).real, powers, gradient, jnp.linalg.eigh(square)[0]

    compiled = function.lower(jnp.asarray(x)).compile()
    zero, ordered, transform, powers, gradient, spectrum = compiled(jnp.asarray(x))
    assert "HloModule" in compiled.as_text()
    same(zero, np.zeros((n, n)), 1e-3)
    same(ordered, np.sort(x, axis=1), 0)
    same(transform, np.fft.fft(x).real, 1e-3)
    y = x
    for _ in range(3):
        y = np.tanh(y @ x)
    same(powers, y)
    same(gradient, np.tile(x.sum(1), (n, 1)), 1e-3)
    same(spectrum, np.linalg.eigvalsh(x @ x.T + n * np.eye(n)), 1e-3 * n)
    assert jax.random.uniform(jax.random.key(n), (n,)).shape == (n,)
    return f"{jax.devices()[0].platform}, JAX {jax.__version__}"


def loaded_libraries():
    with open("/proc/self/maps", encoding="utf-8") as lines:
        return sorted({line.split(maxsplit=5)[5].rstrip("\n") for line in lines if ".so" in line and len(line.split()) > 5})


def make_visible(packages):
    """Makes the symbols of the packages' libraries visible to all libraries that are loaded or bound from now on."""
    for path in loaded_libraries():
        parts = pathlib.Path(path).parts
        if any(name in parts or f"{name}.libs" in parts for name in packages):
            ctypes.CDLL(path, mode=GLOBAL_NOW | os.RTLD_NOLOAD)


def step(text, function, *arguments):
    print(f"step: {text}", flush=True)
    return function(*arguments)


def together(*works):
    """Runs the functions at once; raises what one of them raised."""
    errors = []

    def run(work):
        try:
            for n in range(20, 20 + ROUNDS):
                work(n)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("neighbour", choices=NEIGHBOURS)
    parser.add_argument("--order", choices=("before", "after"), required=True, help="when the neighbour is loaded")
    parser.add_argument("--scope", choices=("local", "global"), required=True,
                        help="whether the symbols of both are visible to all; local: as each package opens its libraries")
    options = parser.parse_args()
    packages, work = NEIGHBOURS[options.neighbour]
    visible = options.scope == "global"

    def neighbour_begins():
        flags = sys.getdlopenflags()
        if visible:
            sys.setdlopenflags(GLOBAL_NOW)
        version = work(8)
        sys.setdlopenflags(flags)
        if visible:
            make_visible(packages)
        print(f"neighbour: {version}", flush=True)

    def collet_begins():
        if visible and os.environ.get("COLLET_PJRT_LIBRARY"):
            ctypes.CDLL(os.environ["COLLET_PJRT_LIBRARY"], mode=GLOBAL_NOW)
        print(f"platform: {collet(8)}", flush=True)

    name = options.neighbour
    begin = [(f"{name} begins", neighbour_begins), ("Collet begins", collet_begins)]
    for text, function in begin if options.order == "before" else begin[::-1]:
        step(text, function)
    for n in range(10, 10 + ROUNDS):
        step(f"{name} works, Collet was there", work, n)
        step(f"Collet works, {name} was there", collet, n)
    step("both work at once", together, work, collet)
    print("step: the process ends", flush=True)


if __name__ == "__main__":
    main()
