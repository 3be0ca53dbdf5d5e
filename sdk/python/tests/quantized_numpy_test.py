# SPDX-License-Identifier: Apache-2.0
"""Quantized StableHLO against numpy: the formulas of the specification in float32, with sums of products in int64.

Each layer is a product into accumulators, a bias, requantization to 8 bits and a relu of the stored values. Every step but
the sum is rounded as the specification says, so that the integers must be equal."""
import unittest

import numpy

import collet

LOW, HIGH = -128, 127


def quantized(dims, storage, scales, zeros, axis=None):
    """The type of an array."""
    pairs = ", ".join(f"{float(s):.9e}:{int(z)}" for s, z in zip(scales, zeros))
    place = "" if axis is None else f":{axis}"
    pairs = pairs if axis is None else "{" + pairs + "}"
    return f"tensor<{'x'.join(map(str, dims))}x!quant.uniform<{storage}:f32{place}, {pairs}>>"


def zero_points(random, count):
    """Zero points of weights: none, one, or one for each channel."""
    draws = [[0] * count, [int(random.integers(LOW, HIGH + 1))] * count, random.integers(LOW, HIGH + 1, count).tolist()]
    return numpy.array(draws[int(random.integers(3))])


def constant(array, element, of):
    """A constant of stored values."""
    dims = "x".join(map(str, array.shape))
    return f'"stablehlo.constant"() <{{value = dense<{array.tolist()}> : tensor<{dims}x{element}>}}> : () -> {of}'


def requantized(sums, scale, to_scale, to_zero):
    """uniform_quantize of an accumulator, and a relu of the stored integers."""
    real = sums.astype(numpy.float32) * scale.astype(numpy.float32)
    stored = real / numpy.float32(to_scale) + numpy.float32(to_zero)
    rounded = numpy.rint(numpy.clip(stored, numpy.float32(LOW), numpy.float32(HIGH))).astype(numpy.int8)
    return numpy.maximum(rounded, numpy.int8(to_zero))


class Layer:
    """A drawn layer: its program, its input, and what numpy makes of it."""

    def __init__(self, seed, convolves):
        random = numpy.random.default_rng(seed)
        self.channels = int(random.integers(1, 6))
        per_axis = bool(random.integers(2))
        self.x_scale = numpy.float32(random.uniform(0.01, 1))
        self.x_zero = int(random.choice([LOW, HIGH, 0, random.integers(LOW, HIGH + 1)]))
        w_scales = random.uniform(0.01, 1, self.channels if per_axis else 1).astype(numpy.float32)
        y_scale = numpy.float32(random.uniform(5, 60))
        y_zero = int(random.choice([LOW, HIGH, 0, random.integers(LOW, HIGH + 1)]))
        w_zeros = zero_points(random, len(w_scales))
        sum_scales = self.x_scale * w_scales
        draw = lambda dims: random.choice([LOW, HIGH] + list(range(LOW, HIGH + 1)), dims).astype(numpy.int8)
        if convolves:
            size, features, height = (int(random.integers(1, n)) for n in (4, 4, 8))
            pad, stride = int(random.integers(size)), int(random.integers(1, 3))
            rows = (height + 2 * pad - size) // stride + 1
            if rows <= 0:
                pad, rows = size, (height + size) // stride + 1
            self.x, self.w = draw((1, height, features)), draw((size, features, self.channels))
            op = (f"stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {{stride = [{stride}], "
                  f"pad = [[{pad}, {pad}]]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}")
            wide = numpy.pad(self.x.astype(numpy.int64) - self.x_zero, ((0, 0), (pad, pad), (0, 0)))
            sums = numpy.stack([numpy.einsum("bsf,sfc->bc", wide[:, i * stride:i * stride + size], self.w - w_zeros)
                                for i in range(rows)], 1)
            axis = 2
        else:
            m, k = (int(random.integers(1, n)) for n in (5, 40))
            self.x, self.w = draw((m, k)), draw((k, self.channels))
            op = "stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]"
            sums = (self.x.astype(numpy.int64) - self.x_zero) @ (self.w - w_zeros)
            axis = 1
        bias = random.integers(-20000, 20000, self.channels).astype(numpy.int32)
        place, zeros = axis if per_axis else None, [0] * len(w_scales)
        x_type = quantized(self.x.shape, "i8", [self.x_scale], [self.x_zero])
        w_type = quantized(self.w.shape, "i8", w_scales, w_zeros, None if place is None else self.w.ndim - 1)
        sum_type = quantized(sums.shape, "i32", sum_scales, zeros, place)
        bias_type = quantized(bias.shape, "i32", sum_scales, zeros, None if place is None else 0)
        y_type = quantized(sums.shape, "i8", [y_scale], [y_zero])
        self.text = f"""func.func @main(%x: {x_type}) -> {y_type} {{
  %w = {constant(self.w, "i8", w_type)}
  %b = {constant(bias, "i32", bias_type)}
  %0 = {op} : ({x_type}, {w_type}) -> {sum_type}
  %1 = stablehlo.broadcast_in_dim %b, dims = [{axis}] : ({bias_type}) -> {sum_type}
  %2 = stablehlo.add %0, %1 : {sum_type}
  %3 = stablehlo.uniform_quantize %2 : ({sum_type}) -> {y_type}
  %z = {constant(numpy.full(sums.shape, y_zero, numpy.int8), "i8", y_type)}
  %4 = stablehlo.maximum %3, %z : {y_type}
  return %4 : {y_type}
}}
"""
        self.expected = requantized(sums + bias, sum_scales, y_scale, y_zero)


class QuantizedTest(unittest.TestCase):

    def check(self, convolves):
        kept = total = 0
        for backend in ("interpreter", "cpu"):
            try:
                client = collet.Client(backend)
            except collet.Error:
                continue  # this build has no cpu backend
            with client:
                for seed in range(30):
                    layer = Layer(seed, convolves)
                    [y] = client.compile(layer.text)(layer.x)
                    numpy.testing.assert_array_equal(y.numpy(), layer.expected, f"{backend}, seed {seed}:\n{layer.text}")
                    kept += int(((layer.expected > LOW) & (layer.expected < HIGH)).sum())
                    total += layer.expected.size
        self.assertGreater(kept, total / 4)  # most results are not saturated

    def test_dots(self):
        self.check(False)

    def test_convolutions(self):
        self.check(True)


if __name__ == "__main__":
    unittest.main()
