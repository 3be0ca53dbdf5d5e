# SPDX-License-Identifier: Apache-2.0
"""Compares TensorFlow on the plugin's device with TensorFlow's own CPU: functions under jit_compile=True, updates of variables
outside of compiled functions, Keras's fit, and the losses of the programs of templates/tensorflow.

What TensorFlow cannot compile on its CPU either is counted as such. Exit code 1 if anything differs or fails.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.python.framework import function  # noqa: E402
from tensorflow.python.ops import functional_ops  # noqa: E402

tf.get_logger().setLevel("ERROR")
CPU = "/CPU:0"
RANDOM = np.random.RandomState(0)
SQUARE = RANDOM.rand(6, 6).astype("f")
POSITIVE = (SQUARE @ SQUARE.T + 6 * np.eye(6)).astype("f")
TABLE = RANDOM.randn(4, 8).astype("f")
IMAGES = RANDOM.rand(2, 16, 16, 3).astype("f")
VECTOR = RANDOM.rand(32).astype("f")
FILTER = RANDOM.randn(3, 3, 3, 4).astype("f")
NUMBERS = RANDOM.randint(0, 5, 8).astype("i")
COMPLEX = VECTOR.astype("complex64")
RANDOM_ROWS = [list(RANDOM.randint(1, 50, RANDOM.randint(2, 12))) for _ in range(16)]

UNARY = """abs acos asin asinh atan atanh ceil cos cosh digamma erf erfc erfinv exp expm1 floor lgamma log log1p log_sigmoid
    negative reciprocal rint round rsqrt sigmoid sign sin sinh softplus softsign sqrt square tan tanh is_finite is_inf is_nan
    bessel_i0e bessel_i1e cumsum cumprod cumulative_logsumexp reduce_sum reduce_mean reduce_max reduce_min reduce_prod
    reduce_std reduce_variance reduce_logsumexp reduce_euclidean_norm argmax argmin zero_fraction ndtri""".split()
BINARY = """add subtract multiply divide pow maximum minimum atan2 floordiv floormod mod squared_difference igamma igammac zeta
    polygamma xdivy xlogy xlog1py less less_equal greater greater_equal equal not_equal nextafter truediv""".split()
LINALG = "cholesky det inv slogdet matrix_transpose diag_part trace logdet pinv expm lu norm adjoint".split()
NETWORK = {
    "conv2d": lambda x: tf.nn.conv2d(x, FILTER, 1, "SAME"),
    "conv2d of stride 2": lambda x: tf.nn.conv2d(x, FILTER, 2, "VALID"),
    "atrous_conv2d": lambda x: tf.nn.atrous_conv2d(x, FILTER, 2, "SAME"),
    "depthwise_conv2d": lambda x: tf.nn.depthwise_conv2d(x, FILTER, [1, 1, 1, 1], "SAME"),
    "max_pool2d": lambda x: tf.nn.max_pool2d(x, 2, 2, "SAME"),
    "avg_pool2d": lambda x: tf.nn.avg_pool2d(x, 3, 2, "VALID"),
    "local_response_normalization": tf.nn.local_response_normalization,
    "softmax": tf.nn.softmax,
    "log_softmax": tf.nn.log_softmax,
    "gelu": tf.nn.gelu,
    "selu": tf.nn.selu,
    "elu": tf.nn.elu,
    "relu6": tf.nn.relu6,
    "silu": tf.nn.silu,
    "leaky_relu": tf.nn.leaky_relu,
    "moments": lambda x: tf.nn.moments(x, [0, 1, 2])[0],
    "l2_loss": tf.nn.l2_loss,
    "batch_normalization": lambda x: tf.nn.batch_normalization(x, *[tf.ones(3)] * 4, 1e-3),
}
IMAGE = {
    "flip_left_right": tf.image.flip_left_right,
    "resize": lambda x: tf.image.resize(x, [8, 8]),
    "resize, nearest": lambda x: tf.image.resize(x, [8, 8], "nearest"),
    "rgb_to_hsv": tf.image.rgb_to_hsv,
    "rgb_to_grayscale": tf.image.rgb_to_grayscale,
    "rgb_to_yuv": tf.image.rgb_to_yuv,
    "per_image_standardization": tf.image.per_image_standardization,
    "rot90": tf.image.rot90,
    "adjust_contrast": lambda x: tf.image.adjust_contrast(x, 2.0),
    "adjust_brightness": lambda x: tf.image.adjust_brightness(x, 0.1),
    "adjust_saturation": lambda x: tf.image.adjust_saturation(x, 2.0),
    "adjust_hue": lambda x: tf.image.adjust_hue(x, 0.1),
    "central_crop": lambda x: tf.image.central_crop(x, 0.5),
    "pad_to_bounding_box": lambda x: tf.image.pad_to_bounding_box(x, 1, 1, 20, 20),
    "sobel_edges": tf.image.sobel_edges,
    "total_variation": tf.image.total_variation,
    "ssim": lambda x: tf.image.ssim(x, x * 0.9, 1.0),
    "crop_and_resize": lambda x: tf.image.crop_and_resize(x, [[0.0, 0.0, 0.5, 0.5]], [0], [4, 4]),
    "extract_patches": lambda x: tf.image.extract_patches(x, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"),
    "space_to_depth": lambda x: tf.nn.space_to_depth(x, 2),
}
ARRAYS = {
    "concat": lambda x: tf.concat([x, x], 1),
    "stack": lambda x: tf.stack([x, x]),
    "split": lambda x: tf.split(x, 2, 1),
    "tile": lambda x: tf.tile(x, [2, 3]),
    "pad": lambda x: tf.pad(x, [[1, 1], [2, 0]], "REFLECT"),
    "gather": lambda x: tf.gather(x, [2, 0], axis=0),
    "gather_nd": lambda x: tf.gather_nd(x, [[0, 1], [3, 2]]),
    "tensor_scatter_nd_add": lambda x: tf.tensor_scatter_nd_add(x, [[0], [2]], x[:2]),
    "where": lambda x: tf.where(x > 0, x, -x),
    "sort": tf.sort,
    "argsort": tf.argsort,
    "top_k": lambda x: tf.math.top_k(x, 5),
    "reverse": lambda x: tf.reverse(x, [1]),
    "roll": lambda x: tf.roll(x, 1, 0),
    "transpose": tf.transpose,
    "strided slice": lambda x: x[1:3, ::2],
    "one_hot": lambda x: tf.one_hot(tf.cast(tf.abs(x), tf.int32), 4),
    "cast": lambda x: tf.cast(x, tf.int32),
    "bfloat16": lambda x: tf.cast(tf.cast(x, tf.bfloat16), tf.float32),
    "float16": lambda x: tf.cast(tf.cast(x, tf.float16) * 2, tf.float32),
    "meshgrid": lambda x: tf.meshgrid(x[0], x[1]),
    "range": lambda x: tf.range(5.0) + x[0, 0],
    "searchsorted": lambda x: tf.searchsorted(tf.sort(x[0]), x[1]),
    "clip_by_value": lambda x: tf.clip_by_value(x, -0.5, 0.5),
    "while_loop": lambda x: tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, tf.sin(y)), (0, x))[1],
    "cond": lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2, lambda: x * 3),
    "scan": lambda x: tf.scan(lambda a, b: a + b, x),
    "map_fn": lambda x: tf.map_fn(lambda r: r * 2, x),
    "TensorArray": lambda x: tf.TensorArray(tf.float32, 4).unstack(x).stack(),
    "stateless_uniform": lambda x: tf.random.stateless_uniform([8], [1, 2]) + x[0],
    "stateless_normal": lambda x: tf.random.stateless_normal([8], [1, 2]) + x[0],
    "stateless_uniform of int32": lambda x: tf.random.stateless_uniform([8], [1, 2], 0, 10, tf.int32),
    "unsorted_segment_sum": lambda x: tf.math.unsorted_segment_sum(x, [0, 1, 2, 1], 3),
    "l2_normalize": lambda x: tf.math.l2_normalize(x, 0),
    "sparse_softmax_cross_entropy": lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits([0, 1, 2, 3], x),
}
DATA_DEPENDENT = {
    "boolean_mask": lambda x: tf.boolean_mask(x, x[:, 0] > 0),
    "boolean_mask of the columns": lambda x: tf.boolean_mask(x, x[0] > 0, axis=1),
    "where": lambda x: tf.where(x > 0),
    "where, nothing": lambda x: tf.where(x > 100),
    "where, transposed": lambda x: tf.transpose(tf.where(x > 0)),
    "unique": lambda x: tf.unique(tf.cast(x[0] * 2, tf.int32)),
    "gather_nd of where": lambda x: tf.gather_nd(x, tf.where(x > 0)),
    "non_max_suppression": lambda x: tf.image.non_max_suppression(tf.reshape(tf.abs(x), [8, 4]), x[0], 4),
    "concat behind a mask": lambda x: tf.concat([tf.boolean_mask(x, x[:, 0] > 0), x], 0),
    "slice": lambda x: x[:tf.reduce_sum(tf.cast(x[:, 0] > 0, tf.int32))],
    "repeat": lambda x: tf.repeat(x, tf.cast(tf.abs(x[:, 0]) * 2, tf.int32), axis=0),
    "a mask beside other results": lambda x: (x + 1, tf.boolean_mask(x, x[:, 1] > 0), tf.reduce_sum(x)),
    "no rows": lambda x: tf.boolean_mask(x, x[:, 0] > 100),
}
SIGNAL = {
    "rfft": tf.signal.rfft,
    "irfft": lambda x: tf.signal.irfft(tf.signal.rfft(x)),
    "stft": lambda x: tf.signal.stft(x, 8, 4),
    "dct": tf.signal.dct,
    "hann_window": lambda x: x * tf.signal.hann_window(32),
    "frame": lambda x: tf.signal.frame(x, 8, 4),
}


def functions():
    """Yields (name, function, arguments)."""
    for name in UNARY:
        yield f"math.{name}", getattr(tf.math, name), (VECTOR,)
    yield "math.acosh", tf.math.acosh, (VECTOR + 1,)
    for name in BINARY:
        if hasattr(tf.math, name):
            yield f"math.{name}", getattr(tf.math, name), (VECTOR + 1.5, VECTOR[::-1].copy() + 0.5)
    yield "math.bincount", lambda z: tf.math.bincount(z, minlength=5, maxlength=5), (NUMBERS,)
    yield "math.invert_permutation", tf.math.invert_permutation, (RANDOM.permutation(8).astype("i"),)
    for name in LINALG:
        yield f"linalg.{name}", getattr(tf.linalg, name), (POSITIVE,)
    yield "linalg.svd", lambda x: tf.linalg.svd(x, compute_uv=False), (POSITIVE,)
    yield "linalg.eigh", lambda x: tf.linalg.eigh(x)[0], (POSITIVE,)
    yield "linalg.qr", lambda x: tf.abs(tf.linalg.qr(x)[1]), (POSITIVE,)
    yield "linalg.solve", tf.linalg.solve, (POSITIVE, SQUARE)
    yield "linalg.triangular_solve", tf.linalg.triangular_solve, (np.tril(POSITIVE), SQUARE)
    yield "linalg.cholesky_solve", tf.linalg.cholesky_solve, (np.linalg.cholesky(POSITIVE), SQUARE)
    yield "linalg.band_part", lambda x: tf.linalg.band_part(x, 1, 1), (SQUARE,)
    yield "matmul", tf.matmul, (SQUARE, SQUARE)
    yield "einsum", lambda a, b: tf.einsum("ij,kj->ik", a, b), (SQUARE, SQUARE)
    yield "tensordot", lambda a, b: tf.tensordot(a, b, 1), (SQUARE, SQUARE)
    yield "signal.fft", tf.signal.fft, (COMPLEX,)
    yield "signal.ifft", tf.signal.ifft, (COMPLEX,)
    yield "signal.fft2d", tf.signal.fft2d, (SQUARE.astype("complex64"),)
    for group, entries, argument in (("signal", SIGNAL, VECTOR), ("image", IMAGE, IMAGES), ("nn", NETWORK, IMAGES),
                                     ("array", ARRAYS, TABLE), ("data-dependent size", DATA_DEPENDENT, TABLE)):
        for name, function in entries.items():
            yield f"{group}.{name}", function, (argument,)
    for name, function in NETWORK.items():
        def gradient(x, function=function):
            return tf.gradients(tf.reduce_sum(tf.sin(function(x))), x)[0]
        yield f"gradient of nn.{name}", gradient, (IMAGES,)


def array_of(x):
    """Returns a tf.TensorArray with the rows of x."""
    return tf.TensorArray(tf.float32, 4).unstack(x)


def loop_of_arrays(x, read):
    """Returns what `read` makes of a TensorArray that a loop has filled, and its gradient."""
    def step(i, h, array):
        h = tf.tanh(h * 0.5 + x[i][None])
        return i + 1, h, array.write(i, h)

    with tf.GradientTape() as tape:
        tape.watch(x)
        array = tf.while_loop(lambda i, *_: i < 4, step, (0, tf.zeros([1, 8]), tf.TensorArray(tf.float32, 4)))[2]
        out = tf.reduce_sum(read(array)**2)
    return out, tape.gradient(out, x)


# Outside of compiled functions TensorArrays are lists of TensorFlow's runtime.
LISTS = {
    "map_fn": lambda x: tf.map_fn(lambda r: r * 2, x),
    "nested map_fn": lambda x: tf.map_fn(lambda r: tf.map_fn(lambda s: s * s, r), x),
    "map_fn to int32": lambda x: tf.map_fn(lambda r: tf.cast(r, tf.int32), x, fn_output_signature=tf.int32),
    "map_fn to bool": lambda x: tf.map_fn(lambda r: r > 0, x, fn_output_signature=tf.bool),
    "map_fn to strings": lambda x: tf.strings.length(
        tf.map_fn(lambda r: tf.strings.as_string(r[0]), x, fn_output_signature=tf.string)),
    "map_fn of ragged rows": lambda x: tf.map_fn(tf.reduce_sum, tf.RaggedTensor.from_row_lengths(x[:, 0], [1, 3]),
                                                 fn_output_signature=tf.float32),
    "scan": lambda x: tf.scan(lambda a, b: a + b, x),
    "foldl": lambda x: tf.foldl(lambda a, b: a + b, x),
    "stack": lambda x: array_of(x).stack(),
    "read": lambda x: array_of(x).read(2) + 1,
    "gather": lambda x: array_of(x).gather([2, 0]),
    "scatter": lambda x: tf.TensorArray(tf.float32, 4).scatter([3, 1, 0, 2], x).stack(),
    "concat": lambda x: tf.TensorArray(tf.float32, 4, infer_shape=False, element_shape=[None]).unstack(x).concat(),
    "split": lambda x: tf.TensorArray(tf.float32, 2, infer_shape=False).split(x, [1, 3]).concat(),
    "stack of what is not written": lambda x: tf.TensorArray(tf.float32, 4, element_shape=[8]).write(1, x[0]).stack(),
    "read of what is not written": lambda x: tf.TensorArray(tf.float32, 4, element_shape=[8]).write(1, x[0]).read(2),
    "gradient of a loop": lambda x: loop_of_arrays(x, lambda array: array.stack()),
    "gradient of the last element": lambda x: loop_of_arrays(x, lambda array: array.read(3)),
}


def functional_loop(device):
    """Returns what is wrong with the error of a loop whose functions TensorFlow would run on the device one operation at a time."""
    types = (tf.int32, tf.float32)
    condition = function.Defun(*types)(lambda i, x: i < 3)
    body = function.Defun(*types)(lambda i, x: (i + 1, x * 2))
    found = outcome(lambda x: functional_ops.While([0, x], condition, body)[1], (TABLE,), device, None)
    return "" if isinstance(found, str) and "jit_compile=True" in found else f"{found}, not an error that names jit_compile"


def recurrent_fit():
    """Returns losses of a recurrent network with masks that Keras trains uncompiled, and a prediction."""
    keras.utils.set_random_seed(4)
    rows = RANDOM_ROWS
    words = keras.Input((12,), dtype="int32")
    x = keras.layers.Bidirectional(keras.layers.GRU(6, return_sequences=True))(keras.layers.Embedding(50, 8, mask_zero=True)(words))
    model = keras.Model(words, keras.layers.Dense(1)(keras.layers.LSTM(5, go_backwards=True)(x)))
    model.compile("adam", "mse", jit_compile=False)
    padded = tf.ragged.constant(rows, dtype=tf.int32).to_tensor(shape=[None, 12])
    data = tf.data.Dataset.from_tensor_slices((padded, np.array([len(r) / 12 for r in rows], "f"))).batch(8)
    losses = model.fit(data, epochs=2, verbose=0, shuffle=False).history["loss"]
    return [tf.constant(losses), tf.constant(model.predict(padded, verbose=0))]


def outcome(function, arguments, device, compiled=True):
    """Returns the results as arrays, or the message of an error. `compiled` None: a function that is not compiled."""
    try:
        with tf.device(device):
            if compiled or compiled is None:
                function = tf.function(function, jit_compile=compiled, autograph=False)
            return [np.asarray(part) for part in tf.nest.flatten(function(*map(tf.constant, arguments)))]
    except Exception as error:  # pylint: disable=broad-exception-caught
        return str(error).splitlines()[0][:300]


def difference(expected, found):
    """Returns a text that says how results differ; empty if they agree."""
    for want, have in zip(expected, found, strict=True):
        if want.shape != have.shape:
            return f"shape {have.shape}, not {want.shape}"
        close = (np.allclose(want, have, rtol=2e-4, atol=1e-5, equal_nan=True) if want.dtype.kind in "fc"
                 else np.array_equal(want, have))
        if not close:
            return f"{have.ravel()[:4]}, not {want.ravel()[:4]}"
    return ""


def updates():
    """Yields (name, function): updates of variables outside of compiled functions."""
    def variable_of(change):
        def function():
            v = tf.Variable(TABLE)
            change(v)
            return v.read_value()
        return function

    rows = tf.IndexedSlices(tf.constant(TABLE[:2]), tf.constant([1, 3]))
    yield "assign", variable_of(lambda v: v.assign(TABLE * 2))
    yield "assign_add", variable_of(lambda v: v.assign_add(TABLE))
    yield "assign_sub", variable_of(lambda v: v.assign_sub(TABLE / 2))
    yield "scatter_add", variable_of(lambda v: v.scatter_add(rows))
    yield "scatter_sub", variable_of(lambda v: v.scatter_sub(rows))
    yield "scatter_mul", variable_of(lambda v: v.scatter_mul(rows))
    yield "scatter_max", variable_of(lambda v: v.scatter_max(rows))
    yield "scatter_update", variable_of(lambda v: v.scatter_update(rows))
    yield "slice assign", variable_of(lambda v: v[1:3, 2:6].assign(TABLE[:2, :4]))
    yield "gather", lambda: tf.gather(tf.Variable(TABLE), [3, 1])

    def count():
        v = tf.Variable(3, dtype=tf.int64)
        v.assign_add(4)
        return v.read_value()
    yield "int64 assign_add", count
    raw = tf.raw_ops
    yield "ResourceApplyGradientDescent", variable_of(
        lambda v: raw.ResourceApplyGradientDescent(var=v.handle, alpha=0.1, delta=TABLE))
    yield "ResourceApplyMomentum", variable_of(
        lambda v: raw.ResourceApplyMomentum(var=v.handle, accum=tf.Variable(TABLE).handle, lr=0.1, grad=TABLE, momentum=0.9))
    yield "ResourceApplyAdam", variable_of(
        lambda v: raw.ResourceApplyAdam(var=v.handle, m=tf.Variable(TABLE).handle, v=tf.Variable(TABLE**2).handle,
                                        beta1_power=0.9, beta2_power=0.99, lr=0.1, beta1=0.9, beta2=0.99, epsilon=1e-7,
                                        grad=TABLE))


OPTIMIZERS = "SGD RMSprop Adam AdamW Adadelta Adagrad Adamax Nadam Ftrl Lion Adafactor".split()


def fits():
    """Yields (name, function): losses of Keras's fit, and a prediction, with each optimizer, compiled and not."""
    x, y = RANDOM.rand(64, 12, 12, 1).astype("f"), RANDOM.randint(0, 10, 64)
    for name in OPTIMIZERS:
        for compiled in (True, False):
            def function(name=name, compiled=compiled):
                keras.utils.set_random_seed(1)
                model = keras.Sequential([
                    keras.layers.Input((12, 12, 1)), keras.layers.Conv2D(4, 3, activation="relu"),
                    keras.layers.BatchNormalization(), keras.layers.Flatten(), keras.layers.Dropout(0.0), keras.layers.Dense(10)])
                loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
                model.compile(optimizer=getattr(keras.optimizers, name)(), loss=loss, jit_compile=compiled)
                data = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)
                losses = model.fit(data, epochs=2, verbose=0).history["loss"]
                return [tf.constant(losses), tf.constant(model.predict(x[:2], verbose=0))]
            yield f"fit with {name}, {'compiled' if compiled else 'not compiled'}", function


def masked_argument():
    """Returns what functions, compiled and not, compute of a result whose size the data have decided."""
    rows = tf.function(lambda x: tf.boolean_mask(x, x[:, 0] > 0), jit_compile=True)(tf.constant(TABLE))
    return [tf.function(lambda r: tf.reduce_sum(r, 0), jit_compile=True)(rows), rows + 1]


def saved():
    """Returns what a SavedModel computes after it was saved and loaded."""
    keras.utils.set_random_seed(2)
    model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(3)])
    with tempfile.TemporaryDirectory() as folder:
        model.export(folder, verbose=False)
        loaded = tf.saved_model.load(folder)
        return tf.function(loaded.serve, jit_compile=True)(tf.constant(TABLE))


def programs(device, steps):
    """Yields (name, difference) of the programs of templates/tensorflow."""
    folder = pathlib.Path(__file__).resolve().parents[4] / "templates/tensorflow"
    for path in sorted(folder.glob("*.py")):
        if path.stem == "training":
            continue
        losses = []
        with tempfile.TemporaryDirectory() as work:
            for where in (CPU, device):
                file = pathlib.Path(work) / "losses"
                done = subprocess.run([sys.executable, path, "--steps", str(steps), "--device", where, "--losses", file],
                                      capture_output=True, text=True, check=False)
                if done.returncode:
                    yield f"templates/tensorflow/{path.name}", f"on {where}: {done.stderr.strip().splitlines()[-1:]}"
                    break
                losses.append([np.array([float(line) for line in file.read_text(encoding="utf-8").split()])])
        if len(losses) == 2:
            close = np.allclose(losses[0], losses[1], rtol=2e-2, atol=1e-3)
            yield f"templates/tensorflow/{path.name}", "" if close else f"losses {losses[1]}, not {losses[0]}"


def mirrored_losses(devices):
    """Returns losses of a training over the devices: each computes gradients in a compiled function, and they are averaged. TensorFlow's
    own reduction needs streams, which PJRT devices do not have, so the sum is taken on one device."""
    strategy = tf.distribute.MirroredStrategy(devices, cross_device_ops=tf.distribute.ReductionToOneDevice())
    x, y = np.random.RandomState(0).rand(64, 8).astype("f"), np.random.RandomState(1).rand(64, 1).astype("f")
    with strategy.scope():
        weights = tf.Variable(np.full((8, 1), 0.1, "f"))
    data = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((x, y)).batch(16))

    @tf.function(jit_compile=True)
    def gradient(a, b):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((a @ weights - b)**2)
        return loss, tape.gradient(loss, weights)

    def step(a, b):
        loss, change = gradient(a, b)
        weights.assign_sub(0.1 * tf.distribute.get_replica_context().all_reduce("mean", change))
        return loss

    run = tf.function(lambda a, b: strategy.reduce("mean", strategy.run(step, args=(a, b)), axis=None))
    return [float(run(a, b)) for a, b in data]


def mirrored():
    """Compares a training over two devices, in a process with so many, with one on TensorFlow's CPU."""
    done = subprocess.run([sys.executable, __file__, "--mirrored"], env=dict(os.environ, COLLET_DEVICES="2"),
                          capture_output=True, text=True, check=False)
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["no message"])[-1][:300]
    sides = json.loads(done.stdout.splitlines()[-1])
    if sides["count"] < 2:
        return ""  # the backend has one device
    return difference(*([np.array(sides[side], "f")] for side in ("cpu", "devices")))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="TensorFlow's name of the device; the plugin's first one unless told")
    parser.add_argument("--steps", type=int, default=20, help="of the programs (%(default)s)")
    parser.add_argument("--json", type=pathlib.Path, help="a file that gets the outcome of each check")
    parser.add_argument("--filter", default="", help="runs only what has this in its name")
    parser.add_argument("--mirrored", action="store_true", help=argparse.SUPPRESS)  # the process of mirrored()
    options = parser.parse_args()
    others = [d for d in tf.config.list_logical_devices() if d.device_type != "CPU"]
    if not options.device and not others:
        sys.exit("tensorflow_check.py: TensorFlow shows no device but its CPU; is the plugin installed?")
    if options.mirrored:
        sides = {"cpu": ["/cpu:0"], "devices": [d.name for d in others][:2]}
        print(json.dumps({"count": len(others), **{side: mirrored_losses(names) for side, names in sides.items()}}))
        return 0
    device = options.device or others[0].name
    print(f"TensorFlow {tf.__version__}, {device}")
    found = {}

    def note(name, text):
        found[name] = text or "same"
        if text:
            print(f"{name}: {text}", flush=True)

    checks = [(name, f, a, True) for name, f, a in functions()]
    checks += [(f"update: {name}", f, (), False) for name, f in updates()]
    checks += [(name, f, (), False) for name, f in fits()] + [("SavedModel", saved, (), False)]
    checks += [("data-dependent size of an argument", masked_argument, (), False)]
    checks += [(f"not compiled: {name}", f, (TABLE,), None) for name, f in LISTS.items()]
    checks += [("not compiled: recurrent network", recurrent_fit, (), False)]
    for i, (name, function, arguments, compiled) in enumerate(checks):
        if options.filter not in name:
            continue
        if sys.stderr.isatty():
            print(f"\r{i}/{len(checks)} {name:60.60}", end="\r", file=sys.stderr)
        expected = outcome(function, arguments, CPU, compiled)
        have = outcome(function, arguments, device, compiled)
        if isinstance(expected, str):
            found[name] = "not on TensorFlow's CPU either" if isinstance(have, str) else "only on the device"
        else:
            note(name, have if isinstance(have, str) else difference(expected, have))
    if options.filter in "not compiled: functional loop":
        note("not compiled: functional loop", functional_loop(device))
    if options.filter in "MirroredStrategy":
        note("MirroredStrategy over two devices", mirrored())
    if options.steps and options.filter in "templates":
        for name, text in programs(device, options.steps):
            note(name, text)
    neither = sum(text == "not on TensorFlow's CPU either" for text in found.values())
    same = sum(text in ("same", "only on the device") for text in found.values())
    print(f"{same} of {len(found) - neither} agree; {neither} more TensorFlow does not compile on its own CPU either")
    if options.json:
        options.json.write_text(json.dumps({"tensorflow": tf.__version__, "device": device, "checks": found}, indent=1) + "\n",
                                encoding="utf-8")
    return 0 if found and same + neither == len(found) else 1


if __name__ == "__main__":
    sys.exit(main())
