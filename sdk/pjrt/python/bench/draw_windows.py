# SPDX-License-Identifier: Apache-2.0
"""Builds drawn programs of windows: convolution, pooling."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from programs import Program

CHANNELS_LAST = ("NHWC", "HWIO", "NHWC")


def convolve(x, filters, stride=1, padding="SAME", **options):
    """A convolution over one, two or three dimensions, the channels last."""
    dims = "DHW"[-(x.ndim - 2):]
    numbers = (f"N{dims}C", f"{dims}IO", f"N{dims}C")
    return lax.conv_general_dilated(x, filters, (stride,) * len(dims), padding, dimension_numbers=numbers, **options)


def convolution(change=lambda apply: apply, sides=None, **fixed):
    """A convolution in two dimensions. `change` makes the program's function of it. `sides` are the window's height and width if they
    differ, `fixed` options that the kind does not have."""
    def build(m, batch, side, inputs, outputs, window, groups=1, **options):
        height, width = sides or (min(window, side),) * 2
        apply = lambda x, w: convolve(x, w, feature_group_count=groups, **options, **fixed)
        return Program(change(apply), (m.floats(batch, side, side, inputs), m.floats(height, width, inputs // groups, outputs)))
    return build


def channels_first(m, batch, side, inputs, outputs, window, stride, padding):
    window = min(window, side)
    arguments = (m.floats(batch, inputs, side, side), m.floats(outputs, inputs, window, window))
    return Program(lambda x, w: lax.conv_general_dilated(x, w, (stride, stride), padding), arguments)


def transposed(m, batch, side, inputs, outputs, window, stride, padding):
    function = lambda x, w: lax.conv_transpose(x, w, (stride, stride), padding, dimension_numbers=CHANNELS_LAST)
    return Program(function, (m.floats(batch, side, side, inputs), m.floats(window, window, inputs, outputs)))


def scale_relu(m, outputs, **rest):
    program = convolution(lambda apply: lambda x, w, gain, bias: jax.nn.relu(apply(x, w) * gain + bias))(m, outputs=outputs, **rest)
    program.arguments += (m.floats(outputs), m.floats(outputs))
    return program


def separable(m, batch, side, inputs, outputs, window, stride, padding):
    def function(x, depthwise, pointwise):
        return jax.nn.relu(convolve(x, depthwise, stride, padding, feature_group_count=inputs)) @ pointwise
    return Program(function, (m.floats(batch, side, side, inputs), m.floats(window, window, 1, inputs), m.floats(inputs, outputs)))


def one_dimension(m, batch, length, inputs, outputs, window, stride, padding):
    return Program(lambda x, w: convolve(x, w, stride, padding), (m.floats(batch, length, inputs), m.floats(window, inputs, outputs)))


def causal(m, batch, length, inputs, outputs, dilation):
    function = lambda x, w: convolve(x, w, padding=[(2 * dilation, 0)], rhs_dilation=(dilation,))
    return Program(function, (m.floats(batch, length, inputs), m.floats(3, inputs, outputs)))


def causal_depthwise(m, batch, length, inputs):
    function = lambda x, w: convolve(x, w, padding=[(3, 0)], feature_group_count=inputs)
    return Program(function, (m.floats(batch, length, inputs), m.floats(4, 1, inputs)))


def three_dimensions(m, batch, side, inputs, outputs, padding):
    arguments = (m.floats(batch, side, side, side, inputs), m.floats(3, 3, 3, inputs, outputs))
    return Program(lambda x, w: convolve(x, w, padding=padding), arguments)


CONVOLUTION = {
    "plain": convolution(),
    "channels_first": channels_first,
    "depthwise": convolution(),
    "grouped": convolution(),
    "transposed": transposed,
    "dilated": convolution(rhs_dilation=(2, 2)),
    "operand_gradient": convolution(lambda apply: jax.grad(lambda x, w: jnp.sum(apply(x, w) ** 2))),
    "filter_gradient": convolution(lambda apply: jax.grad(lambda x, w: jnp.sum(apply(x, w) ** 2), 1)),
    "scale_relu": scale_relu,
    "separable": separable,
    "1x1": convolution(),
    "1x7": convolution(sides=(1, 7)),
    "one_dimension": one_dimension,
    "causal": causal,
    "causal_depthwise": causal_depthwise,
    "three_dimensions": three_dimensions,
    "blur": lambda m, side: Program(lambda x: convolve(x[None, :, :, None], jnp.ones((5, 5, 1, 1)) / 25)[0, :, :, 0], (m.floats(side, side),)),
}

MAXIMUM, ADD, MINIMUM = (lax.max, -np.inf), (lax.add, 0), (lax.min, np.inf)


def reduce_windows(x, reduction, *arguments, **options):
    function, start = reduction
    return lax.reduce_window(x, np.array(start, x.dtype), function, *arguments, **options)


def pooling(reduction, change=lambda apply, area: apply, channels_first=False):
    """A reduction of windows; `change` makes the program's function of it and of the window's area."""
    def build(m, batch, side, channels, window, stride, padding):
        planes = lambda size: (1, 1, size, size) if channels_first else (1, size, size, 1)
        apply = lambda x: reduce_windows(x, reduction, planes(window), planes(stride), padding)
        shape = (batch, channels, side, side) if channels_first else (batch, side, side, channels)
        return Program(change(apply, window * window), (m.floats(*shape),))
    return build


def square_gradient(apply, area):
    return jax.grad(lambda x: jnp.sum((apply(x) / area) ** 2))


POOLING = {
    "maximum": pooling(MAXIMUM),
    "average": pooling(ADD, lambda apply, area: lambda x: apply(x) / area),
    "maximum_gradient": pooling(MAXIMUM, square_gradient),
    "average_gradient": pooling(ADD, square_gradient),
    "norm": pooling(ADD, lambda apply, area: lambda x: jnp.sqrt(apply(x * x))),
    "maximum_channels_first": pooling(MAXIMUM, channels_first=True),
    "minimum_rows": lambda m, length, window, stride, padding: Program(
        lambda x: reduce_windows(x, MINIMUM, (1, window), (1, stride), padding), (m.floats(16, length),)),
    "moving_sum": lambda m, length, window: Program(lambda x: reduce_windows(x, ADD, (1, window), (1, 1), "VALID"), (m.floats(8, length),)),
    "three_dimensions": lambda m, batch, side, channels: Program(
        lambda x: reduce_windows(x, MAXIMUM, (1, 2, 2, 2, 1), (1, 2, 2, 2, 1), "VALID"), (m.floats(batch, side, side, side, channels),)),
    "global_average": lambda m, batch, side, channels: Program(lambda x: x.mean((1, 2)), (m.floats(batch, side, side, channels),)),
    "dilated": lambda m, batch, side, channels: Program(
        lambda x: reduce_windows(x, MAXIMUM, (1, 3, 3, 1), (1, 1, 1, 1), "SAME", window_dilation=(1, 2, 2, 1)),
        (m.floats(batch, side, side, channels),)),
}

BUILDERS = {"convolution": CONVOLUTION, "pooling": POOLING}
