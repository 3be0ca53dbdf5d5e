# SPDX-License-Identifier: Apache-2.0
"""Generates HLO modules of a given size, to measure the cost of compiling. Needs no JAX."""
import dataclasses
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Kind:
    """Modules of one kind, with a parameter for their size."""
    name: str
    size_is: str
    text: Callable  # size -> HLO text
    sizes: tuple = (100, 1000, 10000, 100000)
    exponent: float = 1

    def up_to(self, most):
        """Returns the sizes to measure: numbers of instructions are limited to `most`, other sizes are not."""
        if self.size_is != "instructions":
            return self.sizes
        sizes = [100]
        while sizes[-1] * 10 <= most:
            sizes += [sizes[-1] * 3, sizes[-1] * 10]
        return tuple(sizes)


ADD = "add_f32 {\n  p = f32[] parameter(0)\n  q = f32[] parameter(1)\n  ROOT s = f32[] add(p, q)\n}\n\n"


def module(lines, before="", parameter="f32[64]"):
    """Builds a module from lines (name, rest of the line); the last one is the result."""
    body = "".join(f"  {'ROOT ' if i + 1 == len(lines) else ''}{name} = {rest}\n" for i, (name, rest) in enumerate(lines))
    return f"HloModule m\n\n{before}ENTRY e {{\n  x = {parameter} parameter(0)\n{body}}}\n"


def chain(n):
    """A chain of elementwise operations, each on the result of the one before."""
    ops, previous, lines = ("add({0}, x)", "multiply({0}, x)", "subtract({0}, x)", "maximum({0}, x)"), "x", []
    for i in range(n):
        lines.append((f"v_{i}", "f32[64] " + ops[i % 4].format(previous)))
        previous = f"v_{i}"
    return module(lines)


def functions(n):
    """A chain in which every second operation is an elementary function."""
    ops, previous, lines = ("tanh({0})", "add({0}, x)", "cosine({0})", "multiply({0}, x)"), "x", []
    for i in range(n):
        lines.append((f"v_{i}", "f32[64] " + ops[i % 4].format(previous)))
        previous = f"v_{i}"
    return module(lines)


def wide(n):
    """Independent operations on the argument, and a tree of additions."""
    level, lines = [], []
    for i in range(max(1, n // 2)):
        lines.append((f"v_{i}", "f32[64] " + ("negate(x)", "multiply(x, x)", "add(x, x)", "abs(x)")[i % 4]))
        level.append(f"v_{i}")
    while len(level) > 1:
        pairs = [level[i:i + 2] for i in range(0, len(level), 2)]
        level = []
        for pair in pairs:
            if len(pair) == 2:
                lines.append((f"sum{len(lines)}", f"f32[64] add({pair[0]}, {pair[1]})"))
                pair = [f"sum{len(lines) - 1}"]
            level += pair
    return module(lines)


def layers(n):
    """Matrix products, each followed by a bias and a maximum (relu)."""
    previous, lines = "x", []
    for i in range(max(1, n // 3)):
        lines += [(f"d_{i}", f"f32[16,16] dot({previous}, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"),
                  (f"a_{i}", f"f32[16,16] add(d_{i}, x)"), (f"m_{i}", f"f32[16,16] maximum(a_{i}, x)")]
        previous = f"m_{i}"
    return module(lines, parameter="f32[16,16]")


def reductions(n):
    """Sums of rows, each subtracted from its row again."""
    previous, lines = "x", [("zero", "f32[] constant(0)")]
    for i in range(max(1, n // 3)):
        lines += [(f"r_{i}", f"f32[16] reduce({previous}, zero), dimensions={{1}}, to_apply=add_f32"),
                  (f"b_{i}", f"f32[16,16] broadcast(r_{i}), dimensions={{0}}"), (f"t_{i}", f"f32[16,16] subtract({previous}, b_{i})")]
        previous = f"t_{i}"
    return module(lines, ADD, "f32[16,16]")


def movement(n):
    """Slices, concatenations, transposes and reversals."""
    previous, lines = "x", []
    for i in range(max(1, n // 5)):
        lines += [(f"l_{i}", f"f32[8,16] slice({previous}), slice={{[0:8], [0:16]}}"), (f"h_{i}", f"f32[8,16] slice({previous}), slice={{[8:16], [0:16]}}"),
                  (f"c_{i}", f"f32[16,16] concatenate(h_{i}, l_{i}), dimensions={{0}}"), (f"t_{i}", f"f32[16,16] transpose(c_{i}), dimensions={{1,0}}"),
                  (f"r_{i}", f"f32[16,16] reverse(t_{i}), dimensions={{1}}")]
        previous = f"r_{i}"
    return module(lines, parameter="f32[16,16]")


def loop(number, body, state="(s32[], f32[64])"):
    """Returns the condition and body of a loop of three iterations; `body` has lines that compute `y` from `v`."""
    return (f"body{number} {{\n  p = {state} parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n  v = f32[64] get-tuple-element(p), index=1\n"
            f"  one = s32[] constant(1)\n  j = s32[] add(i, one)\n{body}  ROOT t = {state} tuple(j, y)\n}}\n\n"
            f"cond{number} {{\n  p = {state} parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n  three = s32[] constant(3)\n"
            f"  ROOT less = pred[] compare(i, three), direction=LT\n}}\n\n")


def call_loop(number, operand, name):
    """Returns lines that run a loop on `operand`, with a counter from 0."""
    return [(f"z{number}", "s32[] constant(0)"), (f"p{number}", f"(s32[], f32[64]) tuple(z{number}, {operand})"),
            (f"w{number}", f"(s32[], f32[64]) while(p{number}), condition=cond{number}, body=body{number}"),
            (name, f"f32[64] get-tuple-element(w{number}), index=1")]


def loops(n):
    """Consecutive loops of about fifteen instructions each."""
    before, previous, lines = "", "x", []
    for i in range(max(1, n // 15)):
        before += loop(i, "  y = f32[64] cosine(v)\n")
        lines += call_loop(i, previous, f"v_{i}")
        previous = f"v_{i}"
    return module(lines, before)


def nesting(n):
    """Loops nested n deep; all except the innermost run one iteration, so that execution is cheap."""
    before = ""
    for i in reversed(range(n)):
        if i == n - 1:
            body = "  y = f32[64] cosine(v)\n"
        else:
            body = "".join(f"  {name} = {rest}\n" for name, rest in call_loop(i + 1, "v", "y"))
        before += loop(i, body).replace("constant(3)", f"constant({1 if i < n - 1 else 3})")
    return module(call_loop(0, "x", "r"), before)


def constants(n):
    """Constants of sixteen elements, each with a sum."""
    previous, lines = "x", []
    for i in range(max(1, n // 2)):
        values = ", ".join(str((i * 7 + j) % 1000) for j in range(16))
        lines += [(f"c_{i}", f"f32[16] constant({{{values}}})"), (f"v_{i}", f"f32[16] add({previous}, c_{i})")]
        previous = f"v_{i}"
    return module(lines, parameter="f32[16]")


def large_constant(n):
    """One constant of n elements."""
    # The text is built with little memory here, because the peak memory of a child process starts with that of this
    # process.
    period = ", ".join(map(str, range(1000)))
    values = ", ".join([period] * (n // 1000) + ([", ".join(map(str, range(n % 1000)))] if n % 1000 else []))
    return module([("c", f"f32[{n}] constant({{{values}}})"), ("s", f"f32[{n}] add(x, c)")], parameter=f"f32[{n}]")


def arguments(n):
    """A program that adds up its arguments."""
    lines = "".join(f"  x_{i} = f32[16] parameter({i})\n" for i in range(n))
    sums = "".join(f"  {'ROOT ' if i == n - 1 else ''}sum_{i} = f32[16] add({'x_0' if i == 0 else f'sum_{i - 1}'}, x_{i})\n" for i in range(n))
    return f"HloModule m\n\nENTRY e {{\n{lines}{sums}}}\n"


KINDS = (Kind("chain", "instructions", chain), Kind("functions", "instructions", functions), Kind("wide", "instructions", wide),
         Kind("layers", "instructions", layers), Kind("reductions", "instructions", reductions), Kind("movement", "instructions", movement),
         Kind("loops", "instructions", loops), Kind("nesting", "loops within loops", nesting, (4, 8, 16, 32, 64)),
         Kind("constants", "instructions", constants), Kind("large_constant", "elements of one constant", large_constant,
                                                            (1000, 10000, 100000, 1000000, 4000000)),
         Kind("arguments", "arguments", arguments, (10, 100, 1000, 10000)))
