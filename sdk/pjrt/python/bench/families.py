# SPDX-License-Identifier: Apache-2.0
"""The families of programs that are measured. This file has data only, so that it can be read without JAX; programs.py builds the programs."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Family:
    """Programs that differ in variant, element type, size and rank.

    `size_is` describes the size `n`; the cost of one program grows as n**exponent, perhaps with a logarithmic factor. `exponents`
    has the exponents of variants that differ. `sizes` are used by comparisons, `ladder` by the scaling study.
    """
    name: str
    size_is: str
    variants: tuple[str, ...]
    sizes: tuple[int, ...]
    ladder: tuple[int, ...]
    types: tuple[str, ...] = ("float32",)
    ranks: tuple[int, ...] = (2,)
    exponent: float = 1
    exponents: dict = dataclasses.field(default_factory=dict)

    def exponent_of(self, variant):
        return self.exponents.get(variant, self.exponent)


@dataclasses.dataclass(frozen=True)
class Point:
    """One program of a family."""
    family: str
    variant: str
    dtype: str
    n: int
    rank: int

    @property
    def name(self):
        return f"{self.family}/{self.variant} {self.dtype} n={self.n} rank={self.rank}"

    @property
    def facts(self):
        """What a row of the report says beside the name, the family, the variant and the type."""
        return {"n": self.n, "rank": self.rank}


def powers(first, last, step=1):
    """Returns (2**first, 2**(first + step), ..., 2**last)."""
    return tuple(2 ** k for k in range(first, last + 1, step))


ELEMENTS = "elements of the operand"
FAMILIES = (
    Family("elementwise", ELEMENTS, ("add", "multiply_add", "exp", "log", "tanh", "sin", "power", "gelu", "gelu_erf", "chain"),
           (1 << 14, 1 << 19, 1 << 23), powers(14, 24, 2), ("float32", "bfloat16", "float64"), (2, 1, 3)),
    Family("reduction", ELEMENTS, ("rows", "columns", "middle", "all", "argmax", "moments", "any"),
           (3 * (1 << 14), 3 * (1 << 18), 1 << 23), powers(14, 24, 2), ("float32", "bfloat16", "int32"), (3, 4)),
    Family("normalisation", ELEMENTS, ("softmax", "softmax_axis_0", "log_softmax", "layer_norm", "rms_norm", "batch_norm"),
           (1 << 15, 3 * (1 << 18), 1 << 23), powers(14, 24, 2), ("float32", "bfloat16"), (2, 3)),
    Family("scan", ELEMENTS, ("cumsum", "cumprod", "cummax", "cumsum_axis_0", "cumsum_flat", "reverse", "associative"),
           (1 << 14, 3 * (1 << 18)), powers(12, 20, 2), ("float32", "int32"), (2, 3)),
    Family("transpose", ELEMENTS, ("matrix", "inner", "heads", "reversed"), (1 << 14, 1 << 20, 3 * (1 << 21)), powers(14, 24, 2),
           ("float32", "bfloat16", "uint8", "float64")),
    Family("gather", "indices", ("scalars", "rows", "along_axis", "one_row_each"), (1 << 12, 1 << 16), powers(12, 20, 2),
           ("float32", "bfloat16")),
    Family("scatter", "indices", ("add_rows", "set_scalars", "add_scalars", "max_scalars", "segment_sum"), (1 << 10, 1 << 14),
           powers(10, 18, 2), ("float32", "int32")),
    Family("sort", ELEMENTS, ("flat", "rows", "argsort", "key_value", "descending"), (1 << 14, 1 << 18), powers(12, 20, 2),
           ("float32", "int32", "bfloat16")),
    Family("top_k", ELEMENTS, ("k8", "k100", "flat"), (1 << 16, 1 << 20), powers(14, 22, 2), ("float32", "bfloat16")),
    Family("product", "rows and columns", ("square", "transposed", "bias_relu", "few_columns", "vector", "tall"),
           (64, 192, 512, 1024), (64, 128, 256, 512, 1024), ("float32", "float64", "bfloat16", "float16", "int8"), exponent=3,
           exponents={"few_columns": 2, "vector": 2, "tall": 1}),
    Family("batched_product", "products", ("of_16", "of_64", "of_100"), (32, 512), powers(5, 11, 2), ("float32", "bfloat16"),
           (3, 4)),
    Family("attention", "tokens", ("plain", "causal", "decode"), (128, 512, 1024), (256, 512, 1024, 2048), ("float32", "bfloat16"),
           exponent=2, exponents={"decode": 1}),
    Family("convolution", "positions of a side", ("1x1", "3x3", "5x5", "7x7_stride_2", "grouped", "depthwise", "transposed",
                                                 "dilated", "channels_first", "1d", "3d", "filter_gradient"),
           (14, 28, 56), (16, 32, 64, 128), ("float32",), exponent=2, exponents={"1d": 1, "3d": 3}),
    Family("pooling", "positions of a side", ("maximum", "average", "maximum_gradient", "global"), (28, 112), (32, 64, 128, 256),
           ("float32", "bfloat16"), exponent=2),
    Family("fft", "length", ("complex", "mixed_radix", "prime", "real", "inverse_real", "two_dimensions"), (256, 2048),
           (256, 1024, 4096, 16384), ("complex64", "complex128"), exponents={"two_dimensions": 2}),
    Family("factorization", "rows", ("cholesky", "solve", "triangular_solve", "inverse", "qr", "svd", "eigh", "batched_cholesky",
                                     "batched_solve"),
           (32, 128, 256), (32, 64, 128, 256), ("float32", "float64"), exponent=3,
           exponents={"batched_cholesky": 1, "batched_solve": 1}),
    Family("loop", "steps", ("scalar", "carried_array", "carried_rows", "scatter_each_step", "until", "stencil"), (1000, 10000),
           (512, 2048, 8192, 32768)),
    Family("recurrent", "steps", ("lstm", "gru", "rnn"), (16, 128), (16, 64, 256), ("float32",)),
    Family("movement", ELEMENTS, ("concatenate", "pad", "strided_slice", "reverse", "roll", "tile", "resize", "where", "one_hot"),
           (1 << 14, 1 << 20, 1 << 23), powers(14, 24, 2), ("float32", "bfloat16", "uint8")),
    Family("random", "numbers", ("uniform", "normal", "bits", "permutation"), (1 << 14, 1 << 19), powers(12, 20, 2), ("float32",)),
    Family("model", "tokens or rows", ("mlp_step", "block", "block_step", "embedding_step", "rope"), (32, 128), (64, 128, 256, 512)),
)


def by_name(name):
    return next(family for family in FAMILIES if family.name == name)


def points(family, everything=False):
    """Returns the programs of a comparison: all variants in all sizes, and each other type and rank at one size. `everything`: all combinations."""
    middle = family.sizes[len(family.sizes) // 2]
    chosen = {}
    for variant in family.variants:
        for dtype in family.types:
            for rank in family.ranks:
                for n in family.sizes:
                    others = (dtype != family.types[0]) + (rank != family.ranks[0])
                    if everything or others == 0 or (others == 1 and n == middle):
                        chosen[Point(family.name, variant, dtype, n, rank)] = None
    return list(chosen)


def ladder(family, variant):
    """Returns the programs of the scaling study: one variant in growing sizes."""
    return [Point(family.name, variant, family.types[0], n, family.ranks[0]) for n in family.ladder]
