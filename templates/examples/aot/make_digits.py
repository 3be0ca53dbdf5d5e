#!/usr/bin/env python3
"""make_digits.py DATA [FILE]: trains a small network on IDX files in the folder DATA (`mnist --write-data DATA` draws some)
and writes it as an HLO program, digits.hlo, with its weights as constants. Needs numpy."""
import os
import struct
import sys

import numpy

HIDDEN = 32


def read_idx(folder, name):
    with open(os.path.join(folder, name), "rb") as file:
        data = file.read()
    rank = data[3]
    dims = struct.unpack(f">{rank}I", data[4:4 + 4 * rank])
    return numpy.frombuffer(data[4 + 4 * rank:], numpy.uint8).reshape(dims)


def pooled(images):
    """The mean of each 4 x 4 pixels, from 0 to 1."""
    return (images / 255).reshape(-1, 7, 4, 7, 4).mean((2, 4)).reshape(-1, 49)


def train(images, labels, epochs=40, batch=100):
    """Adam on the cross entropy of softmax(tanh(x w1 + b1) w2 + b2)."""
    random = numpy.random.default_rng(1)
    parameters = [random.normal(0, 0.5, (49, HIDDEN)), numpy.zeros(HIDDEN), random.normal(0, 0.3, (HIDDEN, 10)),
                  numpy.zeros(10)]
    means = [numpy.zeros_like(p) for p in parameters]
    squares = [numpy.zeros_like(p) for p in parameters]
    step = 0
    for epoch in range(epochs):
        order = random.permutation(len(images))
        for first in range(0, len(images), batch):
            step += 1
            x, y = images[order[first:first + batch]], labels[order[first:first + batch]]
            hidden = numpy.tanh(x @ parameters[0] + parameters[1])
            logits = hidden @ parameters[2] + parameters[3]
            error = numpy.exp(logits - logits.max(1, keepdims=True))
            error /= error.sum(1, keepdims=True)
            error[numpy.arange(len(y)), y] -= 1
            error /= len(y)
            back = (error @ parameters[2].T) * (1 - hidden * hidden)
            gradients = [x.T @ back, back.sum(0), hidden.T @ error, error.sum(0)]
            for i, gradient in enumerate(gradients):
                means[i] = 0.9 * means[i] + 0.1 * gradient
                squares[i] = 0.999 * squares[i] + 0.001 * gradient**2
                rate = 3e-3 * (0.5 if epoch > epochs * 2 // 3 else 1) / (1 - 0.9**step)
                parameters[i] -= rate * means[i] / (numpy.sqrt(squares[i] / (1 - 0.999**step)) + 1e-8)
    return parameters


def constant(values):
    if values.ndim > 1:
        return "{\n    " + ",\n    ".join(constant(row) for row in values) + "\n  }"
    return "{" + ", ".join(f"{value:.3g}" for value in values) + "}"


PROGRAM = """// Which digit an image of 28 x 28 pixels shows, and how likely each is. Written by make_digits.py.
HloModule digits

%larger (a: f32[], b: f32[]) -> f32[] {{
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %maximum = f32[] maximum(%a, %b)
}}

%smaller (a.1: s32[], b.1: s32[]) -> s32[] {{
  %a.1 = s32[] parameter(0)
  %b.1 = s32[] parameter(1)
  ROOT %minimum = s32[] minimum(%a.1, %b.1)
}}

%sum (a.2: f32[], b.2: f32[]) -> f32[] {{
  %a.2 = f32[] parameter(0)
  %b.2 = f32[] parameter(1)
  ROOT %add = f32[] add(%a.2, %b.2)
}}

ENTRY %main (image: u8[28,28]) -> (f32[10], s32[]) {{
  %image = u8[28,28] parameter(0)
  %pixels = f32[28,28] convert(%image)
  %zero = f32[] constant(0)
  %blocks = f32[7,7] reduce-window(%pixels, %zero), window={{size=4x4 stride=4x4}}, to_apply=%sum
  %scale = f32[] constant({scale!r})
  %scales = f32[7,7] broadcast(%scale), dimensions={{}}
  %means = f32[7,7] multiply(%blocks, %scales)
  %x = f32[49] reshape(%means)
  %w1 = f32[49,{hidden}] constant({w1})
  %b1 = f32[{hidden}] constant({b1})
  %product1 = f32[{hidden}] dot(%x, %w1), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  %sum1 = f32[{hidden}] add(%product1, %b1)
  %hidden = f32[{hidden}] tanh(%sum1)
  %w2 = f32[{hidden},10] constant({w2})
  %b2 = f32[10] constant({b2})
  %product2 = f32[10] dot(%hidden, %w2), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  %logits = f32[10] add(%product2, %b2)
  %lowest = f32[] constant(-inf)
  %most = f32[] reduce(%logits, %lowest), dimensions={{0}}, to_apply=%larger
  %mosts = f32[10] broadcast(%most), dimensions={{}}
  %below = f32[10] subtract(%logits, %mosts)
  %weights = f32[10] exponential(%below)
  %total = f32[] reduce(%weights, %zero), dimensions={{0}}, to_apply=%sum
  %totals = f32[10] broadcast(%total), dimensions={{}}
  %likelihood = f32[10] divide(%weights, %totals)
  %is_most = pred[10] compare(%logits, %mosts), direction=EQ
  %digits = s32[10] iota(), iota_dimension=0
  %none = s32[] constant(10)
  %nones = s32[10] broadcast(%none), dimensions={{}}
  %candidates = s32[10] select(%is_most, %digits, %nones)
  %digit = s32[] reduce(%candidates, %none), dimensions={{0}}, to_apply=%smaller
  ROOT %answer = (f32[10], s32[]) tuple(%likelihood, %digit)
}}
"""


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        print(__doc__)
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    folder = sys.argv[1]
    images, labels = read_idx(folder, "train-images-idx3-ubyte"), read_idx(folder, "train-labels-idx1-ubyte")
    w1, b1, w2, b2 = train(pooled(images), labels)
    with open(sys.argv[2] if len(sys.argv) == 3 else "digits.hlo", "w", encoding="utf-8") as file:
        file.write(PROGRAM.format(scale=1 / (16 * 255), hidden=HIDDEN, w1=constant(w1), b1=constant(b1), w2=constant(w2),
                                  b2=constant(b2)))
    tests, answers = read_idx(folder, "t10k-images-idx3-ubyte"), read_idx(folder, "t10k-labels-idx1-ubyte")
    found = (numpy.tanh(pooled(tests) @ w1 + b1) @ w2 + b2).argmax(1)
    print(f"{(found == answers).mean():.1%} of {len(answers)} images are recognised")
    return 0


if __name__ == "__main__":
    sys.exit(main())
