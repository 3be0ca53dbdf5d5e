# SPDX-License-Identifier: Apache-2.0
"""make_models.py [FOLDER]

Writes jax_mobilenet.mlir, jax_transformer.mlir and jax_scan.mlir: int8 networks as plain integer code of JAX 0.10.2, lowered with weights as
arguments. The texts beside this file were written by it."""
import os
import sys

import jax
import jax.numpy as jnp
from jax import lax

LOW, HIGH = -128, 127


def quantized(x, scale, zero):
    """Floats as s8."""
    return jnp.clip(jnp.round(x / scale) + zero, LOW, HIGH).astype(jnp.int8)


def dense(x, zero, w, scale, bias):
    """A layer of s8 whose input has a zero point, as s32 sums, scaled for each column."""
    sums = lax.dot_general(x, w, (((x.ndim - 1,), (0,)), ((), ())), preferred_element_type=jnp.int32)
    sums = sums - zero * jnp.sum(w, axis=0, dtype=jnp.int32) + bias
    return sums.astype(jnp.float32) * scale


def convolution(x, zero, w, scale, bias, stride=1, groups=1):
    """The same of images. What lies outside is the zero point."""
    pad = w.shape[0] // 2
    x = jnp.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)), constant_values=zero)
    sums = lax.conv_general_dilated(x, w, (stride, stride), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"),
                                    feature_group_count=groups, preferred_element_type=jnp.int32)
    sums = sums - zero * jnp.sum(w, axis=(0, 1, 2), dtype=jnp.int32) + bias
    return sums.astype(jnp.float32) * scale


def bottleneck(x, zero, p, stride):
    """An inverted residual block of MobileNet V2: values of scale 1/16 in, and out."""
    expand, depth, project = p
    y = jnp.clip(convolution(x, zero, *expand), 0, 6)
    y = quantized(y, 6 / 255, LOW)
    y = jnp.clip(convolution(y, LOW, *depth, stride=stride, groups=y.shape[3]), 0, 6)
    y = quantized(y, 6 / 255, LOW)
    y = convolution(y, LOW, *project)
    if stride == 1 and x.shape[3] == y.shape[3]:
        y = y + (x.astype(jnp.float32) - zero) / 16
    return quantized(y, 1 / 16, 3)


def mobilenet(image, stem, blocks, head):
    x = quantized(image, 1 / 32, -5)
    x = quantized(jnp.clip(convolution(x, -5, *stem, stride=2), 0, 6), 1 / 16, 3)
    for p, stride in zip(blocks, (1, 2, 1)):
        x = bottleneck(x, 3, p, stride)
    means = jnp.mean((x.astype(jnp.float32) - 3) / 16, axis=(1, 2))
    return jax.nn.softmax(dense(quantized(means, 1 / 32, 0), 0, *head))


def normalized(x, gain, offset):
    mean = jnp.mean(x, axis=-1, keepdims=True)
    square = jnp.mean((x - mean) ** 2, axis=-1, keepdims=True)
    return (x - mean) * lax.rsqrt(square + 1e-5) * (1 + gain) + offset


def attention(x, p, heads):
    query, key, value, out = p
    n, d = x.shape
    split = lambda y: y.reshape(n, heads, d // heads).transpose(1, 0, 2)
    stored = quantized(x, 1 / 32, 2)
    q, k, v = (split(quantized(dense(stored, 2, *w), 1 / 16, 0)) for w in (query, key, value))
    scores = lax.dot_general(q, k, (((2,), (2,)), ((0,), (0,))), preferred_element_type=jnp.int32)
    weights = jax.nn.softmax(scores.astype(jnp.float32) * (1 / 256 / (d // heads) ** 0.5))
    mixed = lax.dot_general(quantized(weights, 1 / 255, LOW).astype(jnp.int32) - LOW, v.astype(jnp.int32),
                            (((2,), (1,)), ((0,), (0,))))
    mixed = quantized(mixed.astype(jnp.float32) * (1 / 255 / 16), 1 / 16, 0)
    return dense(mixed.transpose(1, 0, 2).reshape(n, d), 0, *out)


def transformer(x, layers):
    for attend, first, second, norms in layers:
        x = x + attention(normalized(x, *norms[0]), attend, 4)
        y = dense(quantized(normalized(x, *norms[1]), 1 / 32, 2), 2, *first)
        x = x + dense(quantized(jax.nn.gelu(y), 1 / 32, -100), -100, *second)
    return x


def classifier(x, layers, head):
    """Layers in a loop, and the class of each row."""
    step = lambda x, p: (quantized(jnp.maximum(dense(x, LOW, *p), 0), 1 / 64, LOW), None)
    x, _ = lax.scan(step, quantized(jnp.maximum(x, 0), 1 / 64, LOW), layers)
    y = jax.nn.softmax(dense(x, LOW, *head))
    return y, jnp.argmax(y, axis=-1)


def layer(*shape):
    """Types of the weights of a layer, its scales and its bias."""
    return tuple(jax.ShapeDtypeStruct(*one) for one in ((shape, jnp.int8), (shape[-1:], jnp.float32), (shape[-1:], jnp.int32)))


def arguments():
    floats = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.float32)
    block = lambda c, wide, out: (layer(1, 1, c, wide), layer(3, 3, 1, wide), layer(1, 1, wide, out))
    d = 32
    vectors = (floats(d), floats(d))
    one = ((layer(d, d),) * 4, layer(d, 4 * d), layer(4 * d, d), (vectors, vectors))
    return {"jax_mobilenet": (mobilenet, (floats(1, 32, 32, 3), layer(3, 3, 3, 8),
                                          (block(8, 24, 8), block(8, 24, 16), block(16, 48, 16)), layer(16, 10))),
            "jax_transformer": (transformer, (floats(20, d), (one,))),
            "jax_scan": (classifier, (floats(20, 64), (jax.ShapeDtypeStruct((6, 64, 64), jnp.int8), floats(6),
                                                       jax.ShapeDtypeStruct((6, 64), jnp.int32)), layer(64, 10)))}


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    for name, (model, types) in arguments().items():
        with open(os.path.join(folder, name + ".mlir"), "w") as file:
            file.write(jax.jit(model).lower(*types).as_text())
