# SPDX-License-Identifier: Apache-2.0
"""The kinds of programs that draw.py chooses from, with their types and the ranges of their parameters. Data only: needs no JAX.

A parameter is a tuple of values that are equally probable, or a function of the random source and of the parameters drawn before it.
Every change of a family's kinds, also of their order, changes what the seeds draw from this family.
"""
import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class Kind:
    name: str
    types: tuple[str, ...]
    weight: int
    parameters: dict


F32 = ("float32",)
FLOATS = ("float32", "float32", "float32", "bfloat16", "float16")
WIDE = FLOATS + ("float64",)
HALF = ("float32", "float32", "bfloat16")
COMPLEX = ("complex64",)
INTEGERS = ("int32", "uint8", "int8", "uint32", "int16")
NUMBERS = FLOATS + ("int32", "uint8", "int8")
STORED = ("float32", "float32", "bfloat16", "int32", "uint8")
SORTED = ("float32", "float32", "int32", "uint8", "bfloat16", "float16", "uint32")
SCANNED = ("float32", "float32", "int32", "bfloat16")
MOVED = ("float32", "float32", "bfloat16", "uint8", "int32", "complex64", "float16", "bool")
FACTORED = ("float32", "float32", "float32", "float64")
MULTIPLIED = ("float32", "float32", "float32", "bfloat16", "float16", "int8", "complex64", "int32", "float64")


def kind(name, types=F32, weight=1, **parameters):
    return Kind(name, types, weight, parameters)


def log_uniform(source, low, high):
    return int(math.exp(source.uniform(math.log(low), math.log(high))))


def sizes(low, high):
    return lambda source, values: log_uniform(source, low, high)


def shape_of(source, total, rank):
    """Returns a shape of about `total` elements whose dimensions are at least 2; some are powers of two."""
    while True:
        dims, left = [], total
        for _ in range(rank - 1):
            size = max(1, min(left, round(left ** source.uniform(0.15, 0.7))))
            if source.random() < 0.4:
                size = 1 << size.bit_length() - 1
            dims.append(size)
            left = max(1, left // size)
        dims.append(left)
        source.shuffle(dims)
        if min(dims) >= 2:
            return tuple(dims)


def shapes(low, high, *ranks):
    """A shape of `low` to `high` elements, of one of these ranks."""
    return lambda source, values: shape_of(source, log_uniform(source, low, high), source.choice(ranks))


def axis(source, values):
    return source.randrange(len(values["shape"]))


def axes(source, values):
    """One or two dimensions of the shape."""
    rank = len(values["shape"])
    return tuple(sorted(source.sample(range(rank), source.randint(1, min(2, rank)))))


def either_axis(source, values):
    """The last dimension in half of the cases, because most normalisations use it."""
    return axis(source, values) if source.random() < 0.5 else len(values["shape"]) - 1


def order(source, values):
    """A permutation of the dimensions that is not the identity."""
    dims = list(range(len(values["shape"])))
    while dims == sorted(dims):
        source.shuffle(dims)
    return tuple(dims)


def each(*choices):
    """One of `choices` for each dimension of the shape."""
    return lambda source, values: tuple(source.choice(choices) for _ in values["shape"])


def at_most_last(*choices):
    """One of `choices`, but not more than the last dimension has."""
    return lambda source, values: min(source.choice(choices), values["shape"][-1])


def several(count, names):
    return lambda source, values: tuple(source.choice(names) for _ in range(count))


def product_sizes(high):
    """The sizes m, k and n of a product of 20,000 to `high` multiplications."""
    choices = (1, 4, 10, 17, 32, 64, 100, 128, 200, 256, 384, 512, 768, 1000, 1024, 2048)

    def draw(source, values):
        while True:
            m, k, n = (source.choice(choices) for _ in range(3))
            if 2e4 <= m * k * n <= high:
                return m, k, n
    return draw


# Functions whose slope is bounded, so that chains of them do not amplify rounding errors.
SMOOTH = ("tanh", "sigmoid", "gelu", "silu", "softplus", "elu", "erf", "cos", "arctan", "log1p", "rsqrt", "clip", "mish", "hard_swish",
          "arcsinh", "selu", "logaddexp")
UNARY = SMOOTH + ("exp", "sqrt", "sinh", "cbrt", "expm1", "floor", "round", "sign", "square", "cube", "power", "log_sigmoid", "erf_inv",
                  "digamma", "lgamma", "tan", "arccos", "exp2", "sinc")
BINARY = ("add", "multiply", "divide", "maximum", "power", "arctan2", "hypot", "mod", "multiply_add")
BITWISE = ("add", "multiply", "divide", "remainder", "xor", "shift", "min_max", "population_count", "clz", "compare")
LENGTHS = (16, 60, 100, 128, 243, 256, 360, 500, 512, 625, 1000, 1009, 1024, 2048, 4096, 6000, 8192, 30000, 65536)


def batch_for(length):
    """A batch whose elements are ten thousand to a million in total."""
    return lambda source, values: max(1, min(4096, log_uniform(source, 1e4, 1e6) // values[length]))


def matrices(source, values):
    """The number of matrices: more than one only of small ones."""
    return 1 if values["n"] >= 64 else source.choice((1, 16, 200, 1000))


def factored(name, weight=1, **parameters):
    return kind(name, FACTORED, weight, n=(3, 8, 20, 64, 100, 200, 256, 384), batch=matrices, **parameters)


def rows(name, types=F32, **parameters):
    """A look-up or an update of rows of a table of `rows` times `width` elements, `count` of them."""
    return kind(name, types, 1, rows=(100, 1000, 10000, 50000), width=(1, 3, 16, 64), count=(64, 1000, 4096, 20000), **parameters)


def image(name, types=F32, **parameters):
    return kind(name, types, 1, batch=(1, 4), side=(32, 64, 100, 224), channels=(1, 3, 16), **parameters)


def convolution(name, types=F32, weight=1, **parameters):
    common = {"batch": (1, 2, 8), "side": (7, 14, 20, 28, 33, 56), "inputs": (3, 16, 32, 64, 96), "outputs": (8, 16, 32, 64, 128),
              "window": (1, 3, 3, 5, 7), "stride": (1, 1, 2), "padding": ("SAME", "VALID")}
    return kind(name, types, weight, **(common | parameters))


def multiple_of_inputs(source, values):
    return values["inputs"] * source.choice((1, 1, 2))


def pooling(name, types=F32, weight=1):
    return kind(name, types, weight, batch=(1, 2, 8), side=(8, 14, 28, 56, 100), channels=(3, 16, 64, 100), window=(2, 3, 3, 5),
                stride=(1, 2, 2, 3), padding=("SAME", "VALID"))


def attention(name, types=HALF, **parameters):
    return kind(name, types, 1, batch=(1, 2, 8), tokens=(33, 64, 128, 300, 512), heads=(2, 4, 8), width=(32, 64), **parameters)


def layers(name, types=F32, **parameters):
    return kind(name, types, 1, batch=(1, 2, 8), tokens=(33, 64, 128, 300, 512), width=(64, 128, 256, 384), **parameters)


def recurrent(name):
    return kind(name, F32, 1, steps=(20, 100), batch=(1, 2, 8), width=(32, 128))


LINE = shapes(1e3, 1e6, 1, 2, 2, 3)
PLANE = shapes(1e4, 1e6, 2)
ANY_SHAPE = shapes(1e4, 4e6, 1, 2, 3, 4)
REDUCED = shapes(2e4, 8e6, 1, 2, 2, 3, 4)
NORMAL = shapes(2e4, 4e6, 2, 3, 4)
STEPS = (10, 100, 1000, 5000)
WIDTH = (1, 8, 64, 300, 2000)

FAMILIES = {
    "elementwise": (
        kind("unary", WIDE, 2, shape=shapes(3e3, 8e6, 1, 2, 3), function=UNARY),
        kind("binary", WIDE, shape=shapes(3e3, 8e6, 2), function=BINARY),
        kind("chain3", FLOATS, shape=shapes(3e3, 8e6, 2), functions=several(3, SMOOTH)),
        kind("chain5", FLOATS, shape=shapes(3e3, 8e6, 2), functions=several(5, SMOOTH)),
        kind("integers", INTEGERS, shape=shapes(3e3, 8e6, 2), function=BITWISE),
        kind("broadcast", FLOATS, shape=shapes(3e3, 8e6, 3), axis=axis),
        kind("convert", ("float32", "bfloat16", "float16", "int32", "uint8", "int8", "bool"), shape=shapes(3e3, 8e6, 2),
             to=("float32", "bfloat16", "float16", "int32", "uint8", "int8", "bool")),
        kind("select", FLOATS, shape=shapes(3e3, 8e6, 2)),
        kind("gradient", F32, shape=shapes(3e3, 8e6, 2), function=("tanh", "gelu", "silu", "softplus", "sigmoid", "erf", "mish"))),
    "reduction": (
        *(kind(name, NUMBERS, shape=REDUCED, axes=axes) for name in (
            "sum", "max", "min", "prod", "count", "any", "min_max", "abs_sum", "sum_squares")),
        *(kind(name, WIDE, shape=REDUCED, axes=axes) for name in ("mean", "var", "std", "logsumexp", "norm")),
        *(kind(name, NUMBERS, shape=REDUCED, axis=axis) for name in ("argmax", "argmin"))),
    "normalisation": (
        *(kind(name, FLOATS, shape=NORMAL, axis=either_axis) for name in (
            "softmax", "log_softmax", "layer_norm", "rms_norm", "batch_norm", "unit", "softmax_gradient", "standardize", "capped_softmax")),
        kind("group_norm", FLOATS, batch=(1, 4), side=(8, 14, 28, 56), channels=(32, 64, 128), groups=(4, 8, 32)),
        kind("cross_entropy", F32, count=(64, 256, 1024), classes=(10, 100, 1000, 4000)),
        kind("layer_norm_gradient", F32, shape=shapes(2e4, 2e6, 2))),
    "transpose": tuple(kind(name, MOVED, weight, shape=shapes(1e4, 4e6, 2, 2, 3, 4, 5), order=order)
                       for name, weight in (("plain", 2), ("add", 1), ("convert", 1), ("flatten", 1))),
    "movement": (
        kind("concatenate", STORED, shape=ANY_SHAPE, axis=axis, parts=(2, 3, 8)),
        kind("pad", STORED, shape=ANY_SHAPE, before=each(0, 1, 2, 3), after=each(0, 1, 2, 3)),
        kind("pad_mode", F32, shape=PLANE, mode=("reflect", "edge", "wrap", "symmetric")),
        kind("slice", STORED, shape=ANY_SHAPE),
        kind("strided_slice", STORED, shape=ANY_SHAPE, strides=each(1, 2, 3)),
        *(kind(name, STORED, shape=ANY_SHAPE, axis=axis) for name in ("reverse", "roll", "stack", "split", "difference")),
        *(kind(name, STORED, shape=shapes(1e3, 2e5, 2)) for name in ("tile", "broadcast")),
        kind("repeat", STORED, shape=shapes(1e3, 5e5, 2), axis=axis),
        kind("triangles", STORED, n=(100, 512, 1000, 2000)),
        *(kind(name, STORED, shape=PLANE) for name in ("update_slice", "interleave")),
        *(kind(name, F32, shape=PLANE) for name in ("shift", "causal_mask")),
        kind("grid", F32, n=(200, 1000)),
        kind("channels_last", STORED, batch=(1, 4), channels=(3, 16, 64), height=(14, 28, 56), width=(14, 28, 56))),
    "gather": (
        *(rows(name, STORED) for name in ("rows", "columns", "scalars", "fill", "permute")),
        kind("along_axis", STORED, shape=PLANE, axis=axis),
        kind("middle", STORED, outer=(4, 16), middle=(50, 200), inner=(8, 64), count=(30, 300)),
        kind("two_indices", STORED, shape=shapes(1e4, 1e6, 3), count=(64, 1000, 4096, 20000)),
        kind("one_hot", F32, count=(64, 1000, 2000), classes=(10, 100, 1000)),
        kind("slice_each_row", F32, rows=(64, 256), length=(100, 1000), width=(8, 32, 50)),
        kind("bag", F32, rows=(100, 1000, 10000, 50000), width=(1, 3, 16, 64), bags=(32, 256), length=(10, 50)),
        kind("windows", F32, height=(28, 56), width=(28, 56), channels=(3, 16), count=(100, 500))),
    "scatter": (
        *(rows(name, STORED) for name in ("add", "set", "maximum")),
        rows("segment_sum", sorted=(True, False)),
        rows("gather_gradient"),
        kind("count", F32, count=(640, 10000, 200000), bins=(16, 256, 5000)),
        kind("two_indices", F32, shape=PLANE, count=(64, 1000, 4096, 20000))),
    "sort": (
        kind("sort", SORTED, 2, shape=LINE, axis=axis),
        kind("sort_magnitudes", F32, shape=LINE, axis=axis),
        *(kind(name, SORTED, shape=LINE, axis=axis) for name in ("argsort", "descending", "key_value", "ranks")),
        kind("top_k", ("float32", "bfloat16", "int32"), 2, shape=shapes(1e3, 1e6, 2), k=at_most_last(1, 2, 5, 8, 32, 100)),
        kind("approximate_top_k", F32, shape=shapes(1e3, 1e6, 2), k=at_most_last(10)),
        kind("partition", F32, shape=shapes(1e3, 3e5, 2), k=at_most_last(1, 6)),
        *(kind(name, F32, shape=shapes(1e3, 3e5, 2)) for name in ("median", "quantiles")),
        kind("two_keys", F32, shape=LINE, axis=axis),
        kind("two_values", F32, shape=LINE, axis=axis),
        kind("search", F32, n=sizes(1e3, 1e6)),
        kind("unique", ("int32",), n=sizes(1e3, 1e5))),
    "scan": (
        *(kind(name, SCANNED, weight, shape=LINE, axis=axis) for name, weight in (("cumsum", 2), ("cummax", 1), ("cummin", 1))),
        *(kind(name, F32, shape=LINE, axis=axis) for name in (
            "cumprod", "cumlogsumexp", "reverse", "cummax_gradient", "cumsum_gradient", "count", "log_products")),
        kind("affine", F32, shape=shapes(1e4, 5e5, 2)),
        kind("segmented", F32, n=sizes(1e4, 3e5)),
        kind("moving_average", F32, steps=(100, 1000), width=(8, 64, 1000)),
        kind("softmax_cumsum", F32, rows=(64, 256), length=(500, 3000)),
        kind("three_dimensions", F32, outer=(16, 64), length=(64, 256), inner=(16, 64))),
    "fft": (
        *(kind(name, COMPLEX, n=LENGTHS, batch=batch_for("n")) for name in ("forward", "inverse")),
        kind("real", F32, n=LENGTHS, batch=batch_for("n")),
        kind("inverse_real", COMPLEX, n=LENGTHS, batch=batch_for("n")),
        kind("spectrum", F32, n=LENGTHS, batch=batch_for("n")),
        *(kind(name, types, batch=(1, 3, 8), n=(30, 64, 100, 128, 200, 256)) for name, types in (
            ("two_dimensions", COMPLEX), ("two_dimensions_real", F32), ("convolution", F32))),
        kind("three_dimensions", COMPLEX, n=(16, 30, 64)),
        *(kind(name, types, n=(30, 64, 100, 200, 256, 512)) for name, types in (
            ("axis_0", COMPLEX), ("shift", COMPLEX), ("axes_0_1", F32)))),
    "factorization": (
        *(factored(name) for name in (
            "cholesky", "inverse", "determinant", "qr", "svd", "eigh", "lu", "log_determinant", "least_squares", "pseudo_inverse",
            "exponential", "power", "norm", "eigenvalues", "cholesky_gradient")),
        *(factored(name, columns=(1, 4, 64)) for name in ("solve", "lower_solve", "transposed_solve", "cholesky_solve"))),
    "product": (
        *(kind(name, MULTIPLIED, weight, sizes=product_sizes(5e7)) for name, weight in (
            ("plain", 1), ("right_transposed", 1), ("left_transposed", 1), ("shared_right", 1))),
        *(kind(name, types, sizes=product_sizes(1.2e9)) for name, types in (
            ("plain", FLOATS), ("right_transposed", FLOATS), ("left_transposed", FLOATS), ("bias_relu", F32), ("gelu_gate", F32),
            ("quantized", F32), ("chain", F32), ("gradient", F32), ("half_to_single", ("bfloat16",)))),
        kind("batched", MULTIPLIED, batch=(2, 8, 32), rows=(1, 4, 17, 64, 128), inner=(10, 32, 64, 100, 128),
             columns=(1, 4, 17, 64, 128)),
        kind("scores", F32, batch=(1, 4), heads=(4, 8, 12), tokens=(32, 100, 256), width=(32, 64)),
        kind("outer", F32, rows=(64, 200, 512, 1024, 2048), columns=(64, 200, 512, 1024, 2048)),
        kind("vector", FLOATS + ("int8", "int32"), rows=(64, 500, 1024, 4096), inner=(64, 500, 1024, 4096)),
        kind("gram", F32, rows=(64, 200, 1000), inner=(32, 100, 300)),
        kind("bilinear", F32, batch=(16, 64), rows=(10, 50), columns=(20, 60), outputs=(1, 20))),
    "convolution": (
        convolution("plain", HALF, 2), convolution("channels_first", HALF),
        convolution("depthwise", HALF, outputs=multiple_of_inputs, groups=lambda source, values: values["inputs"]),
        convolution("grouped", inputs=(16, 32, 64), outputs=(16, 32, 64), groups=(2, 4, 8)),
        convolution("transposed", side=(7, 14, 20, 28), stride=(2,), padding=("SAME",)),
        convolution("dilated", window=(3,), stride=(1,), padding=("SAME",)),
        convolution("operand_gradient"), convolution("filter_gradient"), convolution("scale_relu"),
        convolution("separable", window=(3,), stride=(1,), padding=("SAME",)),
        convolution("1x1", HALF, window=(1,), padding=("VALID",)), convolution("1x7", window=(7,), stride=(1,), padding=("SAME",)),
        kind("one_dimension", HALF, batch=(1, 2, 8), length=(100, 500, 2000), inputs=(3, 16, 32, 64, 96), outputs=(8, 16, 32, 64, 128),
             window=(1, 3, 5, 7), stride=(1, 1, 2), padding=("SAME", "VALID")),
        kind("causal", F32, batch=(1, 2, 8), length=(128, 1000), inputs=(3, 16, 64), outputs=(8, 32, 128), dilation=(1, 4)),
        kind("causal_depthwise", F32, batch=(1, 2, 8), length=(128, 1000), inputs=(3, 16, 64, 96)),
        kind("three_dimensions", F32, batch=(1, 2), side=(8, 12, 16), inputs=(3, 16, 32), outputs=(8, 16, 32, 64),
             padding=("SAME", "VALID")),
        kind("blur", F32, side=(70, 140, 280, 560))),
    "pooling": (
        pooling("maximum", HALF, 2), pooling("average", HALF), pooling("maximum_gradient"), pooling("average_gradient"),
        pooling("norm"), pooling("maximum_channels_first"),
        kind("minimum_rows", F32, length=(1000, 20000), window=(2, 3, 5), stride=(1, 2, 3), padding=("SAME", "VALID")),
        kind("moving_sum", F32, length=(1000, 10000), window=(10, 50)),
        kind("three_dimensions", F32, batch=(1, 2, 8), side=(8, 16, 24), channels=(3, 16, 64)),
        *(kind(name, types, batch=(1, 2, 8), side=(8, 14, 28, 56), channels=(3, 16, 64, 100)) for name, types in (
            ("global_average", HALF), ("dilated", F32)))),
    "loop": (
        *(kind(name, F32, steps=STEPS, width=WIDTH) for name in ("sines", "branch")),
        kind("congruential", ("uint32",), steps=STEPS, width=WIDTH),
        *(kind(name, F32, width=WIDTH) for name in ("newton", "until", "until_each", "bisection", "collatz")),
        *(kind(name, F32, steps=(10, 100, 1000), width=WIDTH) for name in ("sum_squares", "selection")),
        *(kind(name, F32, steps=STEPS) for name in ("set_element", "switch", "fibonacci")),
        kind("previous_row", F32, steps=STEPS, width=(1, 8, 64, 300)),
        kind("least_path", F32, n=(30, 100)),
        kind("recurrence", F32, steps=(10, 100, 1000), width=(4, 16, 64)),
        kind("heat", F32, n=(32, 100, 256)),
        kind("heat_3d", F32, n=(16, 32, 64)),
        kind("nested", F32, steps=(10, 100)),
        kind("lorenz", F32, steps=(10, 100, 400), width=(1, 100)),
        kind("power_iteration", F32, n=(50, 200)),
        kind("life", F32, n=(64, 200)),
        kind("knapsack", F32, n=(50, 200)),
        kind("viterbi", ("int32",), steps=(10, 100, 500)),
        kind("gradient", F32, steps=(10, 100, 200), width=WIDTH),
        kind("add_element", F32, steps=STEPS, width=(100, 2000)),
        kind("jacobi", F32, n=(32, 128)),
        kind("subsequence", F32, n=(64, 256)),
        kind("complex_map", COMPLEX, n=(50, 200))),
    "model": (
        *(recurrent(name) for name in ("gru", "lstm", "lstm_gradient")),
        *(attention(name) for name in ("attention", "causal", "grouped_query", "rope")),
        *(attention(name, F32) for name in ("cross_attention", "linear_attention", "sliding_window")),
        kind("decode", HALF, batch=(1, 2, 8), heads=(2, 4, 8), length=(128, 1000), width=(32, 64)),
        *(layers(name, HALF) for name in ("multi_head", "swiglu")),
        *(layers(name) for name in ("mixer", "block", "block_gradient", "state_space", "low_rank")),
        layers("experts", experts=(4, 8)),
        kind("patches", F32, batch=(1, 2, 8), patch=(8, 16), width=(64, 128, 256)),
        *(kind(name, F32, batch=(1, 2, 8), side=(16, 32), channels=(16, 64)) for name in ("residual", "upsample")),
        kind("convnext", F32, batch=(1, 2, 8), side=(14, 28), channels=(32, 96)),
        kind("adam", F32, shape=shapes(1e4, 2e6, 2)),
        kind("momentum", F32, arrays=(2, 6), shape=shapes(1e3, 2e5, 2)),
        kind("perceptron_gradient", F32, batch=(1, 16, 100), widths=several(4, (10, 64, 200, 512))),
        kind("graph", F32, nodes=(500, 3000), width=(64, 128, 256)),
        kind("word_pairs", F32, words=(1000, 5000), width=(32, 64)),
        kind("k_means", F32, count=(500, 5000)),
        *(kind(name, F32, count=(200, 2000)) for name in ("mixture", "neighbours")),
        kind("gaussian_process", F32, n=(50, 200)),
        kind("principal_components", F32, count=(500, 2000), n=(16, 64))),
    "image": (
        *(image(name, to=(50, 64, 150, 300)) for name in ("linear", "nearest", "cubic", "lanczos3", "linear_gradient")),
        *(image(name) for name in ("rotate", "normalise", "crop", "mirror", "threshold", "gray", "jitter", "cut_mix", "pixel_shuffle",
                                   "classes", "cosine_transform")),
        image("scale_bytes", ("uint8",)),
        *(kind(name, F32, side=(32, 64, 100, 224)) for name in ("coordinates", "histogram", "sobel", "median", "box", "gauss", "affine",
                                                               "similarity"))),
    "random": (
        *(kind(name, F32, n=sizes(1e3, 1e6)) for name in (
            "uniform", "normal", "bernoulli", "gumbel", "randint", "exponential", "truncated_normal", "laplace", "choice", "cauchy",
            "logistic")),
        kind("normal", ("bfloat16",), n=sizes(1e3, 1e6)),
        kind("bits", ("uint8", "uint32", "uint16"), n=sizes(1e3, 1e6)),
        kind("permutation", F32, n=sizes(1e3, 1e5)),
        kind("shuffle_rows", F32, n=sizes(1e2, 2e4)),
        kind("split", F32, n=sizes(1e3, 1e4)),
        kind("categorical", F32, n=sizes(1e2, 3e3)),
        kind("gamma", F32, n=(1000, 5000)),
        *(kind(name, F32, shape=shapes(1e3, 1e6, 2)) for name in ("dropout", "reparametrize"))),
}
